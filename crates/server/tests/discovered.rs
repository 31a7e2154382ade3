//! `PutDiscovered`: links, in batches.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::*;
use forager_server::limits::MAX_MESSAGE_PARTS;
use forager_server::proto::ack_message::Status::{Ok, Skipped};
use forager_server::proto::{DiscoveredBatch, UrlInfo};
use futures_util::stream;
use tonic::Code;

on_every_store![
    each_item_has_its_status_in_order,
    an_empty_batch_is_acknowledged,
    many_batches_are_each_acknowledged,
    batches_of_several_crawls_stay_apart,
];

fn batch(id: &str, items: Vec<UrlInfo>) -> DiscoveredBatch {
    DiscoveredBatch { id: id.into(), items }
}

async fn each_item_has_its_status_in_order(mut world: World) {
    world.good(vec![found(info("http://known.example/")), due(info("http://done.example/"), 0u64)]).await;
    let items = vec![
        info("http://new.example/"),
        info("http://known.example/"),
        info(""),
        info("http://new.example/"),
        info("http://done.example/"),
        placed("http://new.example/", "other", ""),
        placed("http://x.example/", &"k".repeat(256), ""),
        info("http://last.example/"),
    ];
    let acks = world.batches(vec![batch("b1", items)]).await;
    let want = vec![Ok, Skipped, Skipped, Skipped, Skipped, Ok, Skipped, Ok];
    assert_eq!(acks, [("b1".to_owned(), want)]);
    assert_eq!(world.date("http://new.example/").await, u64::from(world.now()));
    assert_eq!(world.stats("", "").await.size, 4);
}

/// Clients send one to learn whether there is this call at all.
async fn an_empty_batch_is_acknowledged(mut world: World) {
    assert_eq!(world.batches(vec![batch("probe", vec![])]).await, [("probe".to_owned(), vec![])]);
    assert_eq!(
        world
            .client
            .list_crawls(forager_server::proto::Local::default())
            .await
            .unwrap()
            .into_inner()
            .values
            .len(),
        0
    );
}

async fn many_batches_are_each_acknowledged(mut world: World) {
    let batches: Vec<DiscoveredBatch> = (0..50)
        .map(|b| batch(&b.to_string(), (0..b).map(|n| info(&format!("http://h{b}.example/{n}"))).collect()))
        .collect();
    let mut acks = world.batches(batches).await;
    acks.sort_by_key(|(id, _)| id.parse::<usize>().unwrap());
    let want: Vec<_> = (0..50).map(|b| (b.to_string(), vec![Ok; b])).collect();
    assert_eq!(acks, want);
}

async fn batches_of_several_crawls_stay_apart(mut world: World) {
    let url = "http://a.example/";
    let items = ["", "A", "B", "A", "DEFAULT"].map(|crawl| placed(url, "", crawl)).to_vec();
    let acks = world.batches(vec![batch("b", items)]).await;
    assert_eq!(acks, [("b".to_owned(), vec![Ok, Ok, Ok, Skipped, Skipped])]);
    for crawl in ["", "A", "B"] {
        assert_eq!(world.stats(crawl, "").await.size, 1, "{crawl}");
    }
}

#[tokio::test]
async fn a_message_of_too_many_items_ends_its_stream_before_they_are_made() {
    let mut world = World::in_memory().await;
    let batches = vec![
        batch("one", vec![info("http://a.example/")]),
        batch("many", vec![UrlInfo::default(); 100_000]),
        batch("too many", vec![UrlInfo::default(); MAX_MESSAGE_PARTS + 1]),
    ];
    let mut answers = world.client.put_discovered(stream::iter(batches)).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap().id, "one");
    let many = answers.message().await.unwrap().unwrap();
    assert_eq!((many.id.as_str(), many.statuses.len()), ("many", 100_000));
    let refused = answers.message().await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("262144"), "{refused}");
    assert_eq!(world.stats("", "").await.size, 1);
}
