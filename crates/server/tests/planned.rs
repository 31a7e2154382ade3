//! Collections with profiles: clients say what they know, and the profiles decide.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::*;
use forager_core::scope::{Profile, Seed};
use forager_frontier::catalog::{Change, CollectionSpec, Kind};
use forager_frontier::verbs::Target;
use forager_server::proto::ack_message::Status::{Ok, Skipped};
use forager_server::proto::{
    BlockQueueParams, CountUrlParams, CrawlLimitParams, DeleteCrawlMessage, GetParams, Pagination,
    PurgeUrlParams, QueueDelayParams, QueueWithinCrawlParams, UrlStatusRequest,
};
use jiff::Timestamp;
use tonic::Code;

const HOME: &str = "https://www.paper.example/";
const HOST: &str = "www.paper.example";

on_every_store![
    scope_decides_what_is_taken_in,
    a_page_that_was_fetched_comes_back_when_its_profile_says,
    the_best_goes_first,
    its_hosts_are_steered_too,
    what_could_not_be_fetched_is_no_success,
    a_report_of_what_nobody_was_to_fetch_is_skipped,
    what_comes_with_a_report_is_kept,
    a_delay_holds_for_the_last_hand_out,
    a_link_is_on_the_last_page_of_its_path,
    a_limit_counts_what_was_fetched_and_is_under_way,
    stats_of_a_queue_are_those_of_its_crawl,
    a_url_is_found_however_it_is_written,
    what_is_deleted_is_gone_and_the_profiles_stay,
    what_was_set_for_a_host_goes_with_its_last_queue,
    a_crawl_steers_only_hosts_that_it_has_a_queue_at,
    a_queue_is_its_host_however_that_is_written,
    a_collection_that_profiles_wait_for_is_planned,
];

/// A collection `news` with one profile, whose seed is queued.
async fn news(world: &mut World) {
    planned(world, "news", HOME).await;
}

async fn planned(world: &mut World, name: &str, home: &str) {
    let now = Timestamp::from_second(world.now().into()).unwrap();
    let profile_name = format!("{name} daily");
    let mut profile = Profile::new(&profile_name, name);
    profile.depth = Some(2);
    let seed = Seed { url: home.into(), profiles: vec![profile_name], enabled: true };
    let changes = [
        Change::AddCollection(CollectionSpec::new(name, Kind::Planned)),
        Change::AddProfile(Box::new(profile)),
        Change::AddSeed(seed),
    ];
    world.frontier.configure(&changes, now).await.unwrap();
    world.frontier.start(&[Target::Collection(name.into())], now).await.unwrap();
}

/// What became of the last fetch of a page.
async fn last_result(world: &World, url: &str) -> Option<String> {
    let now = Timestamp::from_second(world.now().into()).unwrap();
    let entry = world.frontier.entry("news", None, url, now).await.unwrap()?;
    entry.record.history.last().map(|visit| visit.result.clone())
}

fn of_host(crawl: &str) -> QueueWithinCrawlParams {
    QueueWithinCrawlParams { key: HOST.into(), crawl_id: crawl.into(), local: false }
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

/// Names and their values.
type Metadata<'a> = &'a [(&'a str, &'a [&'a str])];

async fn what_could_not_be_fetched_is_no_success(mut world: World) {
    news(&mut world).await;
    let cases: [(Metadata<'_>, &str); 3] = [
        (&[("fetch.statusCode", &["-1"]), ("fetch.exception", &["timeout"])], "network"),
        (&[("fetch.statusCode", &["404"])], "404"),
        (&[("fetch.exception", &["timeout"])], "network"),
    ];
    for (metadata, result) in cases {
        world.pass(400 * 24 * 60 * 60);
        assert_eq!(world.get(of("news", 1, 1)).await, [HOME], "{result}");
        world.good(vec![due(with_metadata(page(HOME), metadata), 0u64)]).await;
        assert_eq!(last_result(&world, HOME).await.as_deref(), Some(result));
    }
}

async fn a_report_of_what_nobody_was_to_fetch_is_skipped(mut world: World) {
    news(&mut world).await;
    let absent = "https://www.paper.example/absent";
    assert_eq!(world.put(vec![due(page(absent), 0u64), due(page(HOME), 0u64)]).await, [Skipped, Skipped]);
    assert_eq!(world.stats("news", "").await.size, 1);
}

async fn what_comes_with_a_report_is_kept(mut world: World) {
    news(&mut world).await;
    world.get(of("news", 1, 1)).await;
    world.good(vec![due(with_metadata(page(HOME), &[("b", &["2"])]), 0u64)]).await;
    let request =
        UrlStatusRequest { url: HOME.into(), crawl_id: "news".into(), ..UrlStatusRequest::default() };
    let (info, _) = known(world.status_of(request).await.unwrap());
    assert_eq!(info.metadata, with_metadata(page(HOME), &[("b", &["2"])]).metadata);
}

async fn a_delay_holds_for_the_last_hand_out(mut world: World) {
    news(&mut world).await;
    world.good(vec![found(page("https://www.paper.example/a"))]).await;
    assert_eq!(world.get(of("news", 1, 1)).await, [HOME]);
    let delay =
        QueueDelayParams { key: HOST.into(), delay_requestable: 300, crawl_id: "news".into(), local: false };
    world.client.set_delay(delay).await.unwrap();
    for (seconds, want) in [(299, 0), (1, 1)] {
        world.pass(seconds);
        assert_eq!(world.get(of("news", 0, 1)).await.len(), want, "after {seconds} s more");
    }
}

async fn a_link_is_on_the_last_page_of_its_path(mut world: World) {
    news(&mut world).await;
    let [a, b, c] = ["a", "b", "c"].map(|path| format!("{HOME}{path}"));
    // What is found, the pages that lead there, whether it is taken in, and how far from the seed.
    let cases: [(&str, &[&str], _, _); 4] = [
        (&a, &[HOME], Ok, Some(1)),
        (&b, &[HOME, &a], Ok, Some(2)),
        (&c, &[HOME, &a, &b], Skipped, None),
        (&c, &[HOME], Ok, Some(1)),
    ];
    for (url, path, want, depth) in cases {
        let item = found(with_metadata(page(url), &[("url.path", path)]));
        assert_eq!(world.put(vec![item]).await, [want], "{url} by {path:?}");
        let now = Timestamp::from_second(world.now().into()).unwrap();
        let entry = world.frontier.entry("news", None, url, now).await.unwrap();
        assert_eq!(entry.map(|entry| entry.depth), depth, "{url} by {path:?}");
    }
    let mut order = Vec::new();
    for _ in 0..4 {
        let next = world.get(of("news", 1, 1)).await;
        world.good(next.iter().map(|url| due(page(url), 0u64)).collect()).await;
        order.extend(next);
        world.pass(10);
    }
    assert_eq!(order, [HOME, &a, &c, &b], "a page is worth more the nearer it is");
}

async fn a_limit_counts_what_was_fetched_and_is_under_way(mut world: World) {
    news(&mut world).await;
    world.good(vec![found(page("https://www.paper.example/a"))]).await;
    let set = |limit| CrawlLimitParams { key: HOST.into(), limit, crawl_id: "news".into(), local: false };
    world.client.set_crawl_limit(set(1)).await.unwrap();
    let long = || GetParams { delay_requestable: 1000, ..of("news", 0, 0) };
    assert_eq!(world.get(long()).await, [HOME]);
    world.pass(60);
    assert_eq!(world.get(long()).await, [""; 0], "it is under way");
    world.good(vec![due(page(HOME), 0u64)]).await;
    world.pass(60);
    assert_eq!(world.get(long()).await, [""; 0], "it was fetched");
    world.client.set_crawl_limit(set(2)).await.unwrap();
    assert_eq!(world.get(long()).await, ["https://www.paper.example/a"]);
}

async fn stats_of_a_queue_are_those_of_its_crawl(mut world: World) {
    news(&mut world).await;
    planned(&mut world, "blog", "https://www.paper.example/blog").await;
    assert_eq!(world.get(of("news", 1, 1)).await, [HOME]);
    for (crawl, in_process) in [("news", 1), ("blog", 0)] {
        let stats = world.stats(crawl, HOST).await;
        assert_eq!((stats.size, stats.in_process), (1, in_process), "{crawl}");
        let params = CountUrlParams { key: HOST.into(), crawl_id: crawl.into(), ..CountUrlParams::default() };
        assert_eq!(world.client.count_ur_ls(params).await.unwrap().into_inner().value, 1, "{crawl}");
    }
}

async fn a_url_is_found_however_it_is_written(mut world: World) {
    news(&mut world).await;
    for (url, key) in [(HOME, ""), ("https://WWW.Paper.example/", ""), (HOME, HOST)] {
        let request = UrlStatusRequest { url: url.into(), key: key.into(), crawl_id: "news".into() };
        assert_eq!(known(world.status_of(request).await.unwrap()).0.url, HOME, "{url}, {key:?}");
    }
}

async fn what_is_deleted_is_gone_and_the_profiles_stay(mut world: World) {
    news(&mut world).await;
    let sport = "https://www.paper.example/sport";
    world.good(vec![found(page(sport))]).await;
    assert_eq!(world.client.delete_queue(of_host("news")).await.unwrap().into_inner().value, 2);
    assert_eq!(world.stats("news", "").await.size, 0);
    world.good(vec![found(page(sport))]).await;
    let all = PurgeUrlParams { crawl_id: "news".into(), ..PurgeUrlParams::default() };
    assert_eq!(world.client.purge_ur_ls(all).await.unwrap().into_inner().value, 1);
    world.good(vec![found(page(sport))]).await;
    let crawl = DeleteCrawlMessage { value: "news".into(), local: false };
    assert_eq!(world.client.delete_crawl(crawl).await.unwrap().into_inner().value, 1);
    world.good(vec![found(page(sport))]).await;
}

async fn what_was_set_for_a_host_goes_with_its_last_queue(mut world: World) {
    let blog = "https://www.paper.example/blog";
    news(&mut world).await;
    planned(&mut world, "blog", blog).await;
    for whole in [true, false] {
        let (key, crawl_id) = (HOST.to_owned(), "news".to_owned());
        let block = BlockQueueParams { key, time: u64::MAX, crawl_id, local: false };
        world.client.block_queue_until(block).await.unwrap();
        for crawl in ["news", "blog"] {
            assert_eq!(world.get(of("blog", 1, 1)).await, [""; 0], "blocked as long as it has a queue there");
            if whole {
                let crawl = DeleteCrawlMessage { value: crawl.into(), local: false };
                world.client.delete_crawl(crawl).await.unwrap();
            } else {
                world.client.delete_queue(of_host(crawl)).await.unwrap();
            }
        }
        world.good(vec![found(page(HOME)), found(placed(blog, "", "blog"))]).await;
        assert_eq!(world.get(of("blog", 1, 1)).await, [blog], "nobody has said anything of the new queue");
        world.pass(60 * 60);
    }
}

async fn a_crawl_steers_only_hosts_that_it_has_a_queue_at(mut world: World) {
    news(&mut world).await;
    planned(&mut world, "blog", "https://blog.example/").await;
    let crawl_id = || "blog".to_owned();
    let limit = CrawlLimitParams { key: HOST.into(), limit: 1, crawl_id: crawl_id(), local: false };
    assert_eq!(world.client.set_crawl_limit(limit).await.unwrap_err().code(), Code::Unknown);
    let block = BlockQueueParams { key: HOST.into(), time: u64::MAX, crawl_id: crawl_id(), local: false };
    world.client.block_queue_until(block).await.unwrap();
    let delay =
        QueueDelayParams { key: HOST.into(), delay_requestable: 900, crawl_id: crawl_id(), local: false };
    world.client.set_delay(delay).await.unwrap();
    world.good(vec![found(page("https://www.paper.example/a"))]).await;
    for _ in 0..2 {
        assert_eq!(world.get(of("news", 1, 1)).await.len(), 1, "neither block nor delay");
        world.pass(60);
    }
}

async fn a_queue_is_its_host_however_that_is_written(mut world: World) {
    news(&mut world).await;
    let (crawl_id, sport) = ("news".to_owned(), "https://www.paper.example/sport");
    for host in [HOST, "WWW.Paper.example", "www.paper.example.", "WWW.PAPER.EXAMPLE."] {
        let key = || host.to_owned();
        assert_eq!(world.stats("news", host).await.size, 1, "{host}");
        let request = UrlStatusRequest { url: HOME.into(), key: key(), crawl_id: crawl_id.clone() };
        assert_eq!(known(world.status_of(request).await.unwrap()).0.key, HOST, "{host}");
        for filter in [None, Some("paper".to_owned())] {
            let (key, crawl_id) = (key(), crawl_id.clone());
            let params = CountUrlParams { key, crawl_id, filter, ..CountUrlParams::default() };
            assert_eq!(world.client.count_ur_ls(params).await.unwrap().into_inner().value, 1, "{host}");
        }
        let limit = CrawlLimitParams { key: key(), limit: 0, crawl_id: crawl_id.clone(), local: false };
        world.client.set_crawl_limit(limit).await.unwrap();
        let of_it = || GetParams { key: key(), ..of("news", 1, 1) };
        let until = |time| BlockQueueParams { key: key(), time, crawl_id: crawl_id.clone(), local: false };
        world.client.block_queue_until(until(u64::MAX)).await.unwrap();
        assert_eq!(world.get(of_it()).await, [""; 0], "{host}: blocked");
        world.client.block_queue_until(until(0)).await.unwrap();
        assert_eq!(world.get(of_it()).await, [HOME], "{host}: not any more");
        world.pass(60 * 60);
        world.good(vec![found(page(sport))]).await;
        let purge = PurgeUrlParams { key: key(), days: 0, crawl_id: crawl_id.clone() };
        assert_eq!(world.client.purge_ur_ls(purge).await.unwrap().into_inner().value, 2, "{host}");
        world.good(vec![found(page(HOME)), found(page(sport))]).await;
        let queue = QueueWithinCrawlParams { key: key(), crawl_id: crawl_id.clone(), local: false };
        assert_eq!(world.client.delete_queue(queue).await.unwrap().into_inner().value, 2, "{host}");
        world.good(vec![found(page(HOME))]).await;
    }
    world.good(vec![found(placed("u", "Key.", "own"))]).await;
    for (key, size) in [("Key.", 1), ("key", 0)] {
        assert_eq!(world.stats("own", key).await.size, size, "{key}: clients choose the keys of a plain one");
    }
}

/// Somebody removed it, and a client comes before it is added again.
async fn a_collection_that_profiles_wait_for_is_planned(mut world: World) {
    news(&mut world).await;
    let now = Timestamp::from_second(world.now().into()).unwrap();
    world.frontier.configure(&[Change::RemoveCollection("news".into())], now).await.unwrap();
    let items =
        vec![found(page("https://www.paper.example/sport")), found(page("https://elsewhere.example/"))];
    assert_eq!(world.put(items).await, [Ok, Skipped]);
}
