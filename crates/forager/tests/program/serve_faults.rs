//! A server whose disk is full: what cannot be kept fails, and the client learns so.

use std::process::{Command, Stdio};

use crate::common::{Queue, forager};
use crate::serving::{Serving, found, info};
use forager_server::proto::ack_message::Status;
use forager_server::proto::{DiscoveredBatch, Empty, QueueWithinCrawlParams};
use futures_util::stream::{self, StreamExt as _};
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

/// A batch of which nothing could be kept fails item by item, but for what could never be; so do all that follow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_cannot_be_kept_fails_as_a_whole() {
    let queue = Queue::nowhere();
    let server = Serving::start(&mut on_a_small_disk(&queue));
    let mut client = server.client().await;
    let long = "x".repeat(1000);
    let batch = move |number: usize| {
        let mut items: Vec<_> =
            (0..200).map(|n| info(&format!("http://h.example/{number}/{n}/{long}"), "")).collect();
        items.push(info("", ""));
        DiscoveredBatch { id: number.to_string(), items }
    };
    let (all_ok, all_failed) = (statuses(Status::Ok), statuses(Status::Fail));
    let mut answers = client.put_discovered(stream::iter((0..200).map(batch))).await.unwrap().into_inner();
    let (mut kept, mut failed) = (0, 0);
    while let Some(ack) = answers.message().await.unwrap() {
        if failed == 0 && ack.statuses == all_ok {
            kept += 1;
        } else {
            assert_eq!(ack.statuses, all_failed, "{}", ack.id);
            failed += 1;
        }
    }
    assert!(kept > 0 && failed > 0, "{kept} and {failed}");
    assert_eq!(kept + failed, 200, "each is acknowledged");
    drop(client);
    server.stop();
}

/// Two hundred of a kind, and one that is malformed.
fn statuses(status: Status) -> Vec<i32> {
    [vec![i32::from(status); 200], vec![i32::from(Status::Skipped)]].concat()
}
