//! What outlives a server, wherever its queue is.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use forager_server::proto::ack_message::Status;
use forager_server::proto::url_frontier_client::UrlFrontierClient;
use forager_server::proto::{
    Active, BlockQueueParams, CrawlLimitParams, DiscoveredBatch, Local, QueueDelayParams,
};
use futures_util::stream;
use tokio::sync::watch;
use tonic::transport::Channel;

use super::{Serving, all_urls, found, get, info, known, of_queue, one_of_each, stats};

type Client = UrlFrontierClient<Channel>;

/// What clients were told.
#[derive(Default)]
struct Told {
    /// URLs that were acknowledged.
    kept: Mutex<BTreeSet<String>>,
    /// URLs that were handed out.
    held: Mutex<BTreeSet<String>>,
}

pub(crate) fn url(name: &str, number: u64) -> String {
    format!("http://h{}.example/{name}/{number}", number % 500)
}

/// Puts items one by one, until the server is gone.
async fn put_one_by_one(mut client: Client, name: String, told: Arc<Told>, count: watch::Sender<usize>) {
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

/// Has a server killed so many times while clients put and get, each time when it has acknowledged so many items.
pub(crate) async fn nothing_acknowledged_is_lost(start: impl Fn() -> Serving, rounds: usize, items: usize) {
    let told = Arc::new(Told::default());
    for round in 0..rounds {
        let server = start();
        let mut client = server.client().await;
        client.set_delay(QueueDelayParams::default()).await.unwrap();
        check(&mut client, &told).await;
        let (sender, mut count) = watch::channel(0);
        let mut work = Vec::new();
        for worker in 0..2 {
            let name = format!("{round}-{worker}");
            let put = put_one_by_one(server.client().await, name, told.clone(), sender.clone());
            work.push(tokio::spawn(put));
        }
        work.push(tokio::spawn(put_batches(server.client().await, format!("{round}-b"), told.clone())));
        work.push(tokio::spawn(hold(server.client().await, told.clone())));
        count.wait_for(|count| *count >= items * (round + 1)).await.unwrap();
        server.kill();
        for task in work {
            task.await.unwrap();
        }
    }
    let server = start();
    check(&mut server.client().await, &told).await;
    assert!(!told.held.lock().unwrap().is_empty());
    assert_eq!(server.stop().0, 0);
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

/// What the reference forgets when it is started again is kept here.
pub(crate) async fn what_was_set_and_handed_out_outlives(
    start: impl Fn() -> Serving,
    end: impl FnOnce(Serving),
) {
    let server = start();
    let mut client = server.client().await;
    let keys = ["leased", "slow", "blocked", "limited", "free"];
    let items = keys.iter().flat_map(|key| [1, 2].map(|n| found(info(&format!("{key} {n}"), key))));
    super::put(&mut client, items.collect()).await;
    super::put(&mut client, vec![known(info("limited 0", "limited"), 0)]).await;
    let far = u64::from(u32::MAX) - 10;
    let block = BlockQueueParams { key: "blocked".into(), time: far, ..BlockQueueParams::default() };
    client.block_queue_until(block).await.unwrap();
    let limit = CrawlLimitParams { key: "limited".into(), limit: 1, ..CrawlLimitParams::default() };
    client.set_crawl_limit(limit).await.unwrap();
    assert_eq!(get(&mut client, of_queue("leased", 2)).await.len(), 2);
    assert_eq!(get(&mut client, of_queue("slow", 1)).await.len(), 1);
    let delay =
        QueueDelayParams { key: "slow".into(), delay_requestable: 90_000, ..QueueDelayParams::default() };
    client.set_delay(delay).await.unwrap();
    client
        .set_delay(QueueDelayParams { delay_requestable: 80_000, ..QueueDelayParams::default() })
        .await
        .unwrap();
    client.set_active(Active { state: false, local: false }).await.unwrap();
    drop(client);
    end(server);

    let server = start();
    let mut client = server.client().await;
    assert!(!client.get_active(Local::default()).await.unwrap().into_inner().state, "it is inactive");
    assert!(get(&mut client, one_of_each()).await.is_empty());
    client.set_active(Active { state: true, local: false }).await.unwrap();
    assert_eq!(stats(&mut client, "leased").await.in_process, 2);
    for key in ["leased", "slow", "blocked", "limited"] {
        assert!(get(&mut client, of_queue(key, 9)).await.is_empty(), "{key}");
    }
    assert_eq!(get(&mut client, one_of_each()).await, ["free 1"]);
    assert!(get(&mut client, of_queue("free", 9)).await.is_empty(), "the delay of all holds");
    server.kill();
}
