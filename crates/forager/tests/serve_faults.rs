//! A server whose disk is full: what cannot be kept fails, and the client learns so.

#![allow(missing_docs, clippy::unwrap_used, reason = "the names say it, and a test that cannot go on fails")]

mod common;
mod serving;

use std::process::{Command, Stdio};

use common::{Queue, forager};
use forager_server::proto::ack_message::Status;
use forager_server::proto::{Empty, QueueWithinCrawlParams};
use futures_util::stream::{self, StreamExt as _};
use serving::{Serving, found, info};
use tokio::sync::oneshot;
use tonic::Code;

/// Has a command run where its folder `disk` is a small one of its own, which goes with it.
fn on_a_small_disk(queue: &Queue) -> Command {
    let ways = [&["--mount"][..], &["--map-root-user", "--mount"][..]];
    let works = |way: &&&[&str]| {
        let tried = Command::new("unshare").args(**way).arg("true").stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    let way = ways.iter().find(works).expect("this test needs `unshare --mount`");
    std::fs::create_dir(queue.folder().join("disk")).unwrap();
    let script = "mount -t tmpfs -o size=8m tmpfs disk && exec \"$@\"";
    let program = forager();
    let mut command = Command::new("unshare");
    command.args(*way).args(["sh", "-c", script, "sh"]).arg(program.get_program());
    command.args(["serve", "--port", "0", "--data", "disk/queue"]).current_dir(queue.folder());
    for (name, value) in program.get_envs().filter(|(_, value)| value.is_none()) {
        assert!(value.is_none());
        command.env_remove(name);
    }
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_kept_fails_and_the_stream_goes_on() {
    let queue = Queue::nowhere();
    let server = Serving::start(&mut on_a_small_disk(&queue));
    let mut client = server.client().await;
    let long = "x".repeat(1000);
    let items = (0..).map(move |n| found(info(&format!("http://h.example/{n}/{long}"), "")));
    let (enough, until) = oneshot::channel::<()>();
    let items = stream::iter(items).take_until(until);
    let mut answers = client.put_ur_ls(items).await.unwrap().into_inner();
    let (mut kept, mut failed) = (0, 0);
    while failed < 3000 {
        let ack = answers.message().await.unwrap().unwrap();
        match Status::try_from(ack.status).unwrap() {
            Status::Ok if failed == 0 => kept += 1,
            Status::Fail => failed += 1,
            other => panic!("{other:?} after {failed} that failed"),
        }
    }
    assert!(kept > 100, "{kept}");
    enough.send(()).unwrap();
    while let Some(ack) = answers.message().await.unwrap() {
        assert_eq!(Status::try_from(ack.status), Ok(Status::Fail));
    }
    let stats = client.get_stats(QueueWithinCrawlParams::default()).await;
    assert_eq!(stats.unwrap_err().code(), Code::Unavailable, "nothing is built on what is not there");
    client.list_nodes(Empty {}).await.unwrap();
    drop(client);
    let (_, told) = server.stop();
    assert!(told.to_lowercase().contains("no space left"), "{told}");
}
