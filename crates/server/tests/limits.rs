//! How much there may be: of what clients send, and of what they are answered.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::sync::{Arc, Mutex};

use common::troubled::Troubled;
use common::*;
use forager_frontier::catalog::{Change, CollectionSpec, Kind};
use forager_server::Options;
use forager_server::limits::{MAX_COLLECTIONS, MAX_HANDED_OUT, MAX_QUEUES_LISTED};
use forager_server::proto::ack_message::Status::{Fail, Ok, Skipped};
use forager_server::proto::{
    DeleteCrawlMessage, DiscoveredBatch, GetParams, ListUrlParams, Local, Pagination, QueueList, UrlInfo,
};
use jiff::Timestamp;

on_every_store![
    urls_and_names_of_crawls_have_a_longest,
    no_crawl_is_made_for_what_cannot_be_kept,
    a_crawl_is_made_for_the_first_url_that_can_be_kept,
];

/// A URL of so many bytes.
fn of_length(bytes: usize) -> String {
    let start = "http://a.example/";
    format!("{start}{}", "x".repeat(bytes - start.len()))
}

async fn urls_and_names_of_crawls_have_a_longest(mut world: World) {
    let cases = [
        ("a URL of 64 KiB", info(&of_length(64 << 10)), Ok),
        ("a longer one", info(&of_length((64 << 10) + 1)), Skipped),
        ("a crawl of 1024 bytes", placed("http://b.example/", "", &"c".repeat(1024)), Ok),
        ("a longer one", placed("http://b.example/", "", &"c".repeat(1025)), Skipped),
        ("one with a control character", placed("http://b.example/", "", "a\nb"), Skipped),
        ("metadata of 256 KiB", with_metadata(info("http://c.example/"), &[("m", &[&metadata(0)])]), Ok),
        ("more", with_metadata(info("http://d.example/"), &[("m", &[&metadata(1)])]), Skipped),
    ];
    for (name, info, want) in cases {
        assert_eq!(world.put(vec![found(info)]).await, [want], "{name}");
    }
    let listed = world.listed(ListUrlParams { size: 9, ..ListUrlParams::default() }).await;
    let mut lengths: Vec<usize> = listed.into_iter().map(|item| known(item).0.url.len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [17, 64 << 10], "and comes back whole");
}

/// What makes 256 KiB as JSON, `{"m":["…"]}`, and so many bytes more.
fn metadata(more: usize) -> String {
    "v".repeat((256 << 10) - r#"{"m":[""]}"#.len() + more)
}

async fn crawls(world: &mut World) -> usize {
    world.client.list_crawls(Local::default()).await.unwrap().into_inner().values.len()
}

async fn collections(world: &World) -> usize {
    world.frontier.catalog().await.unwrap().rows().collections.len()
}

/// Else whoever sends nonsense would use up all the names that there may be.
async fn no_crawl_is_made_for_what_cannot_be_kept(mut world: World) {
    let of = |n: usize| {
        let crawl = format!("ghost{n}");
        [
            placed("", "", &crawl),
            placed("http:///x", "", &crawl),
            placed(&of_length((64 << 10) + 1), "", &crawl),
            placed("http://a.example/", &"k".repeat(256), &crawl),
        ]
    };
    let items: Vec<_> = (0..10).flat_map(of).collect();
    assert_eq!(world.put(items.iter().cloned().map(found).collect()).await, [Skipped; 40]);
    let batch = DiscoveredBatch { id: "b".into(), items };
    assert_eq!(world.batches(vec![batch]).await, [("b".to_owned(), vec![Skipped; 40])]);
    assert_eq!((crawls(&mut world).await, collections(&world).await), (0, 0));
}

async fn a_crawl_is_made_for_the_first_url_that_can_be_kept(mut world: World) {
    let url = "http://a.example/";
    let items = ["", url, ""].map(|url| placed(url, "", "news")).to_vec();
    let batch = |items| DiscoveredBatch { id: "b".into(), items };
    assert_eq!(world.batches(vec![batch(items)]).await, [("b".to_owned(), vec![Skipped, Ok, Skipped])]);
    assert_eq!((crawls(&mut world).await, collections(&world).await), (1, 1));
}

/// What who runs the server was told.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[tokio::test]
async fn who_runs_the_server_learns_that_there_is_no_room_for_another_crawl() {
    let complain = |problem: &dyn std::fmt::Display| TOLD.lock().unwrap().push(problem.to_string());
    let mut world = World::with(Options { complain, ..Options::default() }).await;
    let plain = |n: usize| Change::AddCollection(CollectionSpec::new(format!("c{n}"), Kind::Plain));
    let changes: Vec<Change> = (0..MAX_COLLECTIONS).map(plain).collect();
    let now = Timestamp::from_second(START.into()).unwrap();
    world.frontier.configure(&changes, now).await.unwrap();
    let url = "http://a.example/";
    let items = [placed(url, "", "one more"), placed("", "", "one more"), placed(url, "", "c7")];
    for _ in 0..2 {
        let batch = DiscoveredBatch { id: "b".into(), items: items.to_vec() };
        let acks = world.batches(vec![batch]).await.pop().unwrap().1;
        assert_eq!(acks[..2], [Fail, Skipped], "what could be kept may be sent again");
    }
    assert_eq!(world.put(vec![found(placed(url, "", "another"))]).await, [Fail]);
    {
        let told = TOLD.lock().unwrap();
        assert!(told.len() == 1 && told[0].contains("10000 collections"), "once: {told:?}");
    }
    world.frontier.remove("c8", None, now).await.unwrap();
    world.good(vec![found(placed(url, "", "one more"))]).await;
}

/// There is a collection again, and then there is none: what could be kept is not given up for that.
#[tokio::test]
async fn what_others_remove_again_and_again_fails_in_the_end() {
    let queue = Arc::new(Troubled::new());
    let mut world = World::over(queue.clone(), Options::default(), None).await;
    for (name, removals, want) in [("a few times", 3, Ok), ("once more", 4, Fail), ("no more", 0, Ok)] {
        queue.remove_before(removals);
        let items = ["http://a.example/", ""].map(|url| placed(url, "", "news")).to_vec();
        let batch = DiscoveredBatch { id: "b".into(), items };
        assert_eq!(world.batches(vec![batch]).await, [("b".to_owned(), vec![want, Skipped])], "{name}");
        world.client.delete_crawl(DeleteCrawlMessage { value: "news".into(), local: false }).await.unwrap();
    }
}

/// Many URLs are put in batches, which is the quickest.
async fn fill(world: &mut World, count: usize, placed: impl Fn(usize) -> UrlInfo) {
    let numbers: Vec<usize> = (0..count).collect();
    let batch = |numbers: &[usize]| DiscoveredBatch {
        id: String::new(),
        items: numbers.iter().map(|n| placed(*n)).collect(),
    };
    for (_, statuses) in world.batches(numbers.chunks(1000).map(batch).collect()).await {
        assert!(statuses.iter().all(|status| *status == Ok));
    }
}

#[tokio::test]
async fn so_many_urls_are_handed_out_in_a_call() {
    let mut world = World::in_a_folder().await;
    fill(&mut world, MAX_HANDED_OUT + 10, |n| placed(&format!("{n}"), "k", "")).await;
    assert_eq!(world.get(GetParams::default()).await.len(), MAX_HANDED_OUT);
    world.pass(1);
    assert_eq!(world.get(keyed("k", 0)).await.len(), 10, "the rest, with the next call");
}

async fn queues(world: &mut World, start: usize, size: u32) -> QueueList {
    let start = u32::try_from(start).unwrap();
    world.client.list_queues(Pagination { start, size, ..Pagination::default() }).await.unwrap().into_inner()
}

#[tokio::test]
async fn so_many_queues_are_named_in_a_call() {
    let mut world = World::in_a_folder().await;
    fill(&mut world, MAX_QUEUES_LISTED + 10, |n| placed("u", &format!("k{n}"), "")).await;
    let list = queues(&mut world, 0, u32::MAX).await;
    assert_eq!((list.values.len(), list.total), (MAX_QUEUES_LISTED, 0));
    assert_eq!(queues(&mut world, MAX_QUEUES_LISTED, u32::MAX).await.values.len(), 10);
}

/// Clients read answers of 4 MiB. What does not fit is on the next pages.
#[tokio::test]
async fn long_names_of_queues_come_in_answers_that_can_be_read() {
    const QUEUES: usize = 9000;
    let mut world = World::in_a_folder().await;
    let long = "ü".repeat(250);
    fill(&mut world, QUEUES, |n| placed("u", &format!("{n:04}{long}"), "")).await;
    let mut names = Vec::new();
    loop {
        let list = queues(&mut world, names.len(), u32::MAX).await;
        let is_cut = names.len() + list.values.len() < QUEUES;
        assert_eq!(list.total, if is_cut { QUEUES as u64 } else { 0 }, "after {}", names.len());
        assert_eq!(usize::try_from(list.size).unwrap(), list.values.len());
        assert!(!list.values.is_empty());
        names.extend(list.values);
        if !is_cut {
            break;
        }
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), QUEUES, "each once");
}
