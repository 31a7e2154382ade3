//! Clients that send and ask, and never read: the server has them wait, and keeps little for them.

#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::Queue;
use crate::serving::{Serving, found, get, info, of_queue, put, stats};
use forager_server::proto::{DiscoveredBatch, ListUrlParams, Local, StringList, UrlInfo, UrlItem};
use futures_util::stream;

/// How many clients there are of each kind.
const CLIENTS: usize = 40;
/// What there is to read, and what each client would send, in messages of so many bytes.
const MESSAGES: u64 = 400;
const BYTES: usize = 100 << 10;
/// What the server may have, in MiB. Without limits, those who list would have it keep half as much again; and those who put, if
/// they were read without being acknowledged, thrice as much.
const MOST_MEMORY: u64 = 1000;

fn large(number: u64) -> UrlInfo {
    let values = vec!["x".repeat(BYTES)];
    let metadata = [("large".to_owned(), StringList { values })].into();
    UrlInfo { metadata, ..info(&format!("http://large.example/{number}"), "large") }
}

/// Messages as they are asked for, and how many that were.
fn counted<T: Send + 'static>(
    sent: &Arc<AtomicU64>,
    message: impl Fn(u64) -> T + Send + 'static,
) -> impl stream::Stream<Item = T> + Send + 'static {
    let sent = sent.clone();
    stream::iter((0..MESSAGES).map(move |number| {
        sent.fetch_add(1, Ordering::SeqCst);
        message(number)
    }))
}

/// Waits until nothing more is sent, since everybody has to wait.
async fn at_rest(sent: &AtomicU64) {
    let mut before = u64::MAX;
    while before != sent.load(Ordering::SeqCst) {
        before = sent.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_never_reads_cannot_exhaust_the_memory() {
    let queue = Queue::nowhere();
    let server = Serving::start(&mut queue.command(&["serve", "--port", "0"]));
    let mut client = server.client().await;
    for number in 0..MESSAGES {
        put(&mut client, vec![found(large(number))]).await;
    }
    let (sent, id) = (Arc::new(AtomicU64::new(0)), "i".repeat(BYTES));
    // Kept, so that none of them is over.
    let mut unread: Vec<Box<dyn Send>> = Vec::new();
    for number in 0..CLIENTS {
        // Each by itself: of one connection, whoever is not read holds up the others.
        let [mut lists, mut gets, mut puts, mut batches] =
            [server.client().await, server.client().await, server.client().await, server.client().await];
        let all = ListUrlParams { size: u32::MAX, ..ListUrlParams::default() };
        unread.push(Box::new(lists.list_ur_ls(all).await.unwrap()));
        unread.push(Box::new(gets.get_ur_ls(of_queue("large", 0)).await.unwrap()));
        let named = id.clone();
        let item = move |n| UrlItem { id: named.clone(), ..found(info(&format!("{number}/{n}"), "items")) };
        unread.push(Box::new(puts.put_ur_ls(counted(&sent, item)).await.unwrap()));
        let named = id.clone();
        let batch = move |n| DiscoveredBatch {
            id: named.clone(),
            items: vec![info(&format!("{number}/{n}"), "batches")],
        };
        unread.push(Box::new(batches.put_discovered(counted(&sent, batch)).await.unwrap()));
    }
    at_rest(&sent).await;
    let memory = server.most_memory();
    assert!(sent.load(Ordering::SeqCst) < 2 * CLIENTS as u64 * MESSAGES, "they have to wait");
    assert!(memory < MOST_MEMORY, "{memory} MiB");
    // Whoever does read is served meanwhile.
    client.get_active(Local::default()).await.unwrap();
    put(&mut client, vec![found(info("http://small.example/", "small"))]).await;
    assert_eq!(get(&mut client, of_queue("small", 1)).await, ["http://small.example/"]);
    // And what was taken in of the others is there.
    assert!(stats(&mut client, "items").await.size > 0);
    drop((unread, client));
    assert_eq!(server.stop(), (0, String::new()));
}
