//! Collections with profiles: clients say what they know, and the profiles decide.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::*;
use forager_core::scope::{Profile, Seed};
use forager_frontier::catalog::{Change, CollectionSpec, Kind};
use forager_frontier::verbs::Target;
use forager_server::proto::ack_message::Status::{Ok, Skipped};
use forager_server::proto::{BlockQueueParams, Pagination, QueueDelayParams};
use jiff::Timestamp;

const HOME: &str = "https://www.paper.example/";

on_every_store![
    scope_decides_what_is_taken_in,
    a_page_that_was_fetched_comes_back_when_its_profile_says,
    the_best_goes_first,
    its_hosts_are_steered_too,
];

/// A collection `news` with one profile, whose seed is queued.
async fn news(world: &mut World) {
    let now = Timestamp::from_second(world.now().into()).unwrap();
    let mut profile = Profile::new("daily", "news");
    profile.depth = Some(2);
    let seed = Seed { url: HOME.into(), profiles: vec!["daily".into()], enabled: true };
    let changes = [
        Change::AddCollection(CollectionSpec::new("news", Kind::Planned)),
        Change::AddProfile(Box::new(profile)),
        Change::AddSeed(seed),
    ];
    world.frontier.configure(&changes, now).await.unwrap();
    world.frontier.start(&[Target::Collection("news".into())], now).await.unwrap();
}

fn page(url: &str) -> forager_server::proto::UrlInfo {
    placed(url, "", "news")
}

async fn scope_decides_what_is_taken_in(mut world: World) {
    news(&mut world).await;
    let items = vec![
        found(page("https://www.paper.example/sport")),
        found(page("https://elsewhere.example/")),
        found(page("https://www.paper.example/sport#top")),
        found(page(HOME)),
    ];
    assert_eq!(world.put(items).await, [Ok, Skipped, Skipped, Skipped]);
    assert_eq!(world.stats("news", "").await.size, 2);
}

async fn a_page_that_was_fetched_comes_back_when_its_profile_says(mut world: World) {
    news(&mut world).await;
    assert_eq!(world.get(of("news", 1, 1)).await, [HOME]);
    assert_eq!(world.stats("news", "").await.in_process, 1);
    world.pass(1);
    let fetched = with_metadata(page(HOME), &[("fetch.statusCode", &["200"])]);
    world.good(vec![due(fetched, 0u64)]).await;
    assert_eq!(world.stats("news", "").await.in_process, 0);
    let now = Timestamp::from_second(world.now().into()).unwrap();
    let entry = world.frontier.entry("news", None, HOME, now).await.unwrap().unwrap();
    assert_eq!(entry.record.history.len(), 1, "{entry:?}");
    assert_eq!(entry.record.history[0].result, "200");
}

async fn the_best_goes_first(mut world: World) {
    news(&mut world).await;
    world
        .good(vec![
            found(page("https://www.paper.example/a/b/c")),
            found(page("https://www.paper.example/sport")),
        ])
        .await;
    let first = world.get(of("news", 1, 1)).await;
    assert_eq!(first, [HOME], "the seed before what was found");
}

async fn its_hosts_are_steered_too(mut world: World) {
    news(&mut world).await;
    let list = Pagination { crawl_id: "news".into(), ..Pagination::default() };
    assert_eq!(world.client.list_queues(list).await.unwrap().into_inner().values, ["www.paper.example"]);
    let time = u64::from(world.now()) + 100;
    let block =
        BlockQueueParams { key: "www.paper.example".into(), time, crawl_id: "news".into(), local: false };
    world.client.block_queue_until(block).await.unwrap();
    assert_eq!(world.get(of("news", 1, 1)).await, [""; 0]);
    world.pass(101);
    let delay = QueueDelayParams {
        key: "www.paper.example".into(),
        delay_requestable: 50,
        crawl_id: "news".into(),
        local: false,
    };
    world.client.set_delay(delay).await.unwrap();
    assert_eq!(world.get(of("news", 1, 1)).await.len(), 1);
}
