//! A server whose disk is full: what cannot be kept fails, the client learns so, and the server ends.

use std::process::{Command, Stdio};

use crate::common::{Queue, forager};
use crate::serving::{Serving, found, free_port, info, page};
use forager_server::proto::DiscoveredBatch;
use forager_server::proto::ack_message::Status;
use futures_util::stream;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

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

/// A supervisor that starts it again, or a person who makes room, can mend it; the server itself cannot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_kept_fails_and_the_server_ends() {
    let (queue, figures) = (Queue::nowhere(), free_port());
    let server = Serving::start(on_a_small_disk(&queue).args(["--prometheus", &figures.to_string()]));
    let mut health = HealthClient::new(server.channel().await);
    let mut health = health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert_eq!(health.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    assert!(page(figures, "/readyz").starts_with("HTTP/1.1 200"));
    let long = "x".repeat(1000);
    let items = (0..).map(move |n| found(info(&format!("http://h.example/{n}/{long}"), "")));
    let mut client = server.client().await;
    let mut answers = client.put_ur_ls(stream::iter(items)).await.unwrap().into_inner();
    let (mut kept, mut failed) = (0, 0);
    let end = loop {
        match answers.message().await {
            Ok(Some(ack)) if ack.status() == Status::Ok && failed == 0 => kept += 1,
            Ok(Some(ack)) => {
                assert_eq!(ack.status(), Status::Fail, "after {failed} that failed");
                failed += 1;
                if failed == 1 {
                    let page = page(figures, "/readyz");
                    assert!(page.is_empty() || page.starts_with("HTTP/1.1 503"), "{page}");
                }
            }
            Ok(None) => panic!("an end without a reason"),
            Err(status) => break status,
        }
    };
    assert_eq!(end.code(), Code::Unavailable);
    assert!(kept > 100 && failed > 0, "{kept} and {failed}");
    assert_eq!(health.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    drop((client, health));
    let (status, told) = server.ended();
    assert_eq!(status, 3, "{told}");
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
    let mut answers = client.put_discovered(stream::iter((0..).map(batch))).await.unwrap().into_inner();
    let (mut kept, mut failed) = (0, 0);
    let end = loop {
        match answers.message().await {
            Ok(Some(ack)) if failed == 0 && ack.statuses == all_ok => kept += 1,
            Ok(Some(ack)) => {
                assert_eq!(ack.statuses, all_failed, "{}", ack.id);
                failed += 1;
            }
            Ok(None) => panic!("an end without a reason"),
            Err(status) => break status,
        }
    };
    assert_eq!(end.code(), Code::Unavailable);
    assert!(kept > 0 && failed > 0, "{kept} and {failed}");
    drop(client);
    assert_eq!(server.ended().0, 3);
}

/// Two hundred of a kind, and one that is malformed.
fn statuses(status: Status) -> Vec<i32> {
    [vec![i32::from(status); 200], vec![i32::from(Status::Skipped)]].concat()
}
