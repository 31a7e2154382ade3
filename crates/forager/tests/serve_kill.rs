//! A server that is killed while clients put and get has lost nothing that it acknowledged.

#![allow(missing_docs, clippy::unwrap_used, reason = "the names say it, and a test that cannot go on fails")]

mod common;
mod serving;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use common::Queue;
use forager_server::proto::ack_message::Status;
use forager_server::proto::url_frontier_client::UrlFrontierClient;
use forager_server::proto::{DiscoveredBatch, QueueDelayParams, UrlItem};
use futures_util::stream;
use serving::{Serving, all_urls, found, get, info, one_of_each, stats};
use tokio::sync::watch;
use tonic::transport::Channel;

type Client = UrlFrontierClient<Channel>;

/// What clients were told.
#[derive(Default)]
struct Told {
    /// URLs that were acknowledged.
    kept: Mutex<BTreeSet<String>>,
    /// URLs that were handed out.
    held: Mutex<BTreeSet<String>>,
}

fn url(name: &str, number: u64) -> String {
    format!("http://h{}.example/{name}/{number}", number % 500)
}

/// Puts items one by one, until the server is gone.
async fn put(mut client: Client, name: String, told: Arc<Told>, count: watch::Sender<usize>) {
    let names = name.clone();
    let items = stream::iter((0..).map(move |number| found(info(&url(&names, number), ""))));
    let Ok(answers) = client.put_ur_ls(items).await else { return };
    let mut answers = answers.into_inner();
    while let Ok(Some(ack)) = answers.message().await {
        assert_eq!(ack.status, Status::Ok as i32, "{ack:?}");
        told.kept.lock().unwrap().insert(ack.id);
        count.send_modify(|count| *count += 1);
    }
}

/// Puts batches, until the server is gone.
async fn put_batches(mut client: Client, name: String, told: Arc<Told>) {
    let urls = move |batch: u64| (0..100).map(|n| url(&name, batch * 100 + n)).collect::<Vec<_>>();
    let all = urls.clone();
    let batches = stream::iter((0..).map(move |number| DiscoveredBatch {
        id: number.to_string(),
        items: urls(number).iter().map(|url| info(url, "")).collect(),
    }));
    let Ok(answers) = client.put_discovered(batches).await else { return };
    let mut answers = answers.into_inner();
    while let Ok(Some(ack)) = answers.message().await {
        assert_eq!(ack.statuses, [Status::Ok as i32; 100]);
        told.kept.lock().unwrap().extend(all(ack.id.parse().unwrap()));
    }
}

/// Gets URLs and keeps them, until the server is gone.
async fn hold(mut client: Client, told: Arc<Told>) {
    while let Ok(answers) = client.get_ur_ls(one_of_each()).await {
        let mut answers = answers.into_inner();
        while let Ok(Some(info)) = answers.message().await {
            told.held.lock().unwrap().insert(info.url);
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost() {
    let queue = Queue::nowhere();
    let told = Arc::new(Told::default());
    for round in 0..4 {
        let server = Serving::start(&mut queue.command(&["serve", "--port", "0"]));
        let mut client = server.client().await;
        client.set_delay(QueueDelayParams::default()).await.unwrap();
        check(&mut client, &told).await;
        let (sender, mut count) = watch::channel(0);
        let mut work = Vec::new();
        for worker in 0..2 {
            let name = format!("{round}-{worker}");
            work.push(tokio::spawn(put(server.client().await, name, told.clone(), sender.clone())));
        }
        work.push(tokio::spawn(put_batches(server.client().await, format!("{round}-b"), told.clone())));
        work.push(tokio::spawn(hold(server.client().await, told.clone())));
        count.wait_for(|count| *count >= 1000 * (round + 1)).await.unwrap();
        server.kill();
        for task in work {
            task.await.unwrap();
        }
    }
    let server = Serving::start(&mut queue.command(&["serve", "--port", "0"]));
    check(&mut server.client().await, &told).await;
    assert_eq!(server.stop().0, 0);
    let checked = queue.run(&["check"], "");
    assert_eq!(checked.status, 0, "{checked:?}");
}

/// All that was acknowledged is there, and what is held is handed out to nobody else.
async fn check(client: &mut Client, told: &Told) {
    let there: BTreeSet<String> = all_urls(client).await.into_iter().collect();
    let lost: Vec<String> = told.kept.lock().unwrap().difference(&there).cloned().collect();
    assert_eq!(lost, [""; 0], "of {}", there.len());
    let held = told.held.lock().unwrap().clone();
    assert!(stats(client, "").await.in_process as usize >= held.len());
    let again: Vec<String> = get(client, one_of_each()).await;
    let twice: Vec<&String> = again.iter().filter(|url| held.contains(*url)).collect();
    assert_eq!(twice, [""; 0]);
    told.held.lock().unwrap().extend(again);
}

/// Whoever asks it to end gets an answer for each item that it had taken in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_asked_to_end_tells_of_all_it_kept() {
    let queue = Queue::nowhere();
    let server = Serving::start(&mut queue.command(&["serve", "--port", "0"]));
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
    let server = Serving::start(&mut queue.command(&["serve", "--port", "0"]));
    let there: BTreeSet<String> = all_urls(&mut server.client().await).await.into_iter().collect();
    let (kept, _) = &*told.lock().unwrap();
    assert_eq!(&there, kept, "what was kept was told, and what was told was kept");
    assert_eq!(server.stop().0, 0);
}

fn count_up(sender: &watch::Sender<usize>) {
    sender.send_modify(|count| *count += 1);
}
