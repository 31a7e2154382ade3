//! A server that is killed while clients put and get has lost nothing that it acknowledged.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::common::Queue;
use crate::serving::lasting::{self, url};
use crate::serving::{Serving, all_urls, found, info};
use forager_server::proto::UrlItem;
use forager_server::proto::ack_message::Status;
use futures_util::stream;
use tokio::sync::watch;

fn serve(queue: &Queue) -> Serving {
    Serving::start(&mut queue.command(&["serve", "--port", "0"]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost() {
    let queue = Queue::nowhere();
    lasting::nothing_acknowledged_is_lost(|| serve(&queue), 4, 1000).await;
    let checked = queue.run(&["check"], "");
    assert_eq!(checked.status, 0, "{checked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_set_and_handed_out_stays() {
    let queue = Queue::nowhere();
    lasting::what_was_set_and_handed_out_outlives(|| serve(&queue), Serving::kill).await;
}

/// Whoever asks it to end gets an answer for each item that it had taken in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_asked_to_end_tells_of_all_it_kept() {
    let queue = Queue::nowhere();
    let server = serve(&queue);
    let told = Arc::new(Mutex::new((BTreeSet::new(), 0_usize)));
    let (sender, mut count) = watch::channel(0);
    let mut client = server.client().await;
    let seen = told.clone();
    let work = tokio::spawn(async move {
        let items = stream::iter((0..).map(|number| -> UrlItem { found(info(&url("x", number), "")) }));
        let mut answers = client.put_ur_ls(items).await.unwrap().into_inner();
        while let Ok(Some(ack)) = answers.message().await {
            let mut seen = seen.lock().unwrap();
            match Status::try_from(ack.status).unwrap() {
                Status::Ok => drop(seen.0.insert(ack.id)),
                Status::Fail => seen.1 += 1,
                Status::Skipped => panic!("{ack:?}"),
            }
            count_up(&sender);
        }
    });
    count.wait_for(|count| *count >= 500).await.unwrap();
    assert_eq!(server.stop().0, 0);
    work.await.unwrap();
    let server = serve(&queue);
    let there: BTreeSet<String> = all_urls(&mut server.client().await).await.into_iter().collect();
    let (kept, _) = &*told.lock().unwrap();
    assert_eq!(&there, kept, "what was kept was told, and what was told was kept");
    assert_eq!(server.stop().0, 0);
}

fn count_up(sender: &watch::Sender<usize>) {
    sender.send_modify(|count| *count += 1);
}
