//! Calls that show what there is.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::*;
use forager_server::proto::{
    BlockQueueParams, CountUrlParams, CrawlLimitParams, ListUrlParams, Local, Pagination, QueueList,
    UrlStatusRequest,
};
use tonic::Code;

const LATER: u64 = 2_943_003_600;

on_every_store![
    crawls_are_those_with_a_queue,
    stats_are_of_one_crawl,
    stats_follow_every_change,
    stats_of_nothing_are_zero,
    queues_come_in_pages,
    queues_without_anything_to_fetch_are_left_out,
    a_url_is_shown_as_it_stands,
    a_url_that_is_not_known_is_not_found,
    what_is_not_found_is_told_in_few_words_however_long_it_is,
    urls_are_listed_whatever_has_become_of_them,
    urls_are_filtered_by_their_text,
    filters_are_texts_and_not_patterns,
    the_crawl_without_a_name_is_told_by_its_name,
    many_urls_are_listed_in_pieces,
    large_urls_are_listed_in_pieces,
    what_is_listed_can_be_put_elsewhere,
];

/// Five URLs in three queues: found, completed, later, and two elsewhere.
async fn five(world: &mut World) {
    let items = vec![
        found(with_metadata(info("http://a.example/One"), &[("source", &["seed"])])),
        due(info("http://a.example/done"), 0u64),
        due(info("http://a.example/later"), LATER),
        found(info("http://b.example/one")),
        found(info("http://c.example/")),
    ];
    world.good(items).await;
    world.good(vec![found(placed("http://a.example/One", "", "BESPOKE"))]).await;
}

async fn crawls(world: &mut World) -> Vec<String> {
    sorted(world.client.list_crawls(Local { local: true }).await.unwrap().into_inner().values)
}

async fn queues(world: &mut World, params: Pagination) -> QueueList {
    world.client.list_queues(params).await.unwrap().into_inner()
}

async fn count(world: &mut World, params: CountUrlParams) -> u64 {
    world.client.count_ur_ls(params).await.unwrap().into_inner().value
}

async fn crawls_are_those_with_a_queue(mut world: World) {
    assert_eq!(crawls(&mut world).await, [""; 0]);
    world.put(vec![found(placed("", "", "EMPTY"))]).await;
    assert_eq!(crawls(&mut world).await, [""; 0], "what was skipped makes no crawl");
    five(&mut world).await;
    world.good(vec![due(placed("u", "k", "completed"), 0u64)]).await;
    assert_eq!(crawls(&mut world).await, ["BESPOKE", "DEFAULT", "completed"]);
}

async fn stats_are_of_one_crawl(mut world: World) {
    five(&mut world).await;
    let all = world.stats("", "").await;
    assert_eq!((all.size, all.number_of_queues, all.crawl_id.as_str()), (4, 3, "DEFAULT"));
    assert_eq!((all.counts["completed"], all.counts["active_queues"]), (1, 3));
    assert_eq!(world.stats("DEFAULT", "").await, all);
    assert_eq!(world.stats(" ", "").await, all);
    let other = world.stats("BESPOKE", "").await;
    assert_eq!((other.size, other.number_of_queues, other.crawl_id.as_str()), (1, 1, "BESPOKE"));
    let queue = world.stats("", "a.example").await;
    assert_eq!((queue.size, queue.number_of_queues, queue.counts["completed"]), (2, 1, 1));
    assert_eq!((queue.counts["active_queues"], queue.crawl_id.as_str()), (1, "DEFAULT"));
}

async fn stats_follow_every_change(mut world: World) {
    let url = "http://a.example/";
    let told = async |world: &mut World| {
        let (all, queue) = (world.stats("", "").await, world.stats("", "a.example").await);
        assert_eq!((all.size, all.in_process, &all.counts), (queue.size, queue.in_process, &queue.counts));
        (all.size, all.in_process, all.counts["completed"], all.counts["active_queues"])
    };
    world.good(vec![found(info(url))]).await;
    assert_eq!(told(&mut world).await, (1, 0, 0, 1), "found");
    world.get(keyed("a.example", 1)).await;
    assert_eq!(told(&mut world).await, (1, 1, 0, 1), "handed out");
    world.good(vec![due(info(url), 0u64)]).await;
    assert_eq!(told(&mut world).await, (0, 0, 1, 0), "completed");
    world.good(vec![due(info(url), 0u64)]).await;
    assert_eq!(told(&mut world).await, (0, 0, 1, 0), "completed once more");
    world.good(vec![due(info(url), LATER)]).await;
    assert_eq!(told(&mut world).await, (1, 0, 0, 1), "scheduled again");
    world.good(vec![due(info(url), LATER)]).await;
    assert_eq!(told(&mut world).await, (1, 0, 0, 1), "scheduled once more");
}

async fn stats_of_nothing_are_zero(mut world: World) {
    five(&mut world).await;
    for (crawl, key) in [("unknown", ""), ("", "unknown"), ("unknown", "unknown"), ("BESPOKE", "b.example")] {
        let stats = world.stats(crawl, key).await;
        assert_eq!((stats.size, stats.in_process, stats.number_of_queues), (0, 0, 0), "{crawl} {key}");
        assert_eq!((stats.counts["completed"], stats.counts["active_queues"]), (0, 0), "{crawl} {key}");
    }
}

async fn queues_come_in_pages(mut world: World) {
    let items = (0..250).map(|n| found(placed("u", &format!("k{n}"), if n % 2 == 0 { "A" } else { "B" })));
    world.good(items.collect()).await;
    let page = |start, size| Pagination { start, size, crawl_id: "A".into(), ..Pagination::default() };
    let mut all = Vec::new();
    for (start, size, want) in [(0, 0, 100), (100, 20, 20), (120, 100, 5), (125, 5, 0), (u32::MAX, 5, 0)] {
        let list = queues(&mut world, page(start, size)).await;
        let told = (list.values.len(), list.start, list.size, list.total, list.crawl_id.as_str());
        assert_eq!(told, (want, start, u32::try_from(want).unwrap(), 0, "A"));
        world.get(of("A", 1, 3)).await; // handing out does not change the order
        all.extend(list.values);
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 125);
    assert_eq!(queues(&mut world, page(0, u32::MAX)).await.size, 125);
}

async fn queues_without_anything_to_fetch_are_left_out(mut world: World) {
    world.good(vec![due(placed("u", "completed", ""), 0u64), due(placed("u", "later", ""), LATER)]).await;
    world.good(["blocked", "open", "held"].map(|key| found(placed("u", key, ""))).to_vec()).await;
    let time = u64::from(world.now()) + 100;
    let block = BlockQueueParams { key: "blocked".into(), time, ..BlockQueueParams::default() };
    world.client.block_queue_until(block).await.unwrap();
    assert_eq!(world.get(keyed("held", 1)).await.len(), 1);
    let active = queues(&mut world, Pagination::default()).await;
    assert_eq!(sorted(active.values), ["held", "later", "open"]);
    let second = queues(&mut world, Pagination { start: 1, size: 1, ..Pagination::default() }).await;
    assert_eq!(second.values.len(), 1, "those that are left out do not count");
    let all = queues(&mut world, Pagination { include_inactive: true, ..Pagination::default() }).await;
    assert_eq!(sorted(all.values), ["blocked", "completed", "held", "later", "open"]);
    world.pass(101);
    assert_eq!(queues(&mut world, Pagination::default()).await.size, 4, "the block is over");
    let unknown = Pagination { crawl_id: "unknown".into(), ..Pagination::default() };
    assert_eq!(queues(&mut world, unknown).await.values, [""; 0]);
}

async fn a_url_is_shown_as_it_stands(mut world: World) {
    let created = u64::from(world.now());
    five(&mut world).await;
    let cases =
        [("http://a.example/One", created), ("http://a.example/done", 0), ("http://a.example/later", LATER)];
    for (url, date) in cases {
        let item = world.status(url).await.unwrap();
        assert_eq!((item.id.as_str(), item.creation_date), ("", created));
        let (info, told) = known(item);
        assert_eq!(
            (info.url.as_str(), info.key.as_str(), info.crawl_id.as_str()),
            (url, "a.example", "DEFAULT")
        );
        assert_eq!(told, date, "{url}");
    }
    let (info, _) = known(world.status("http://a.example/One").await.unwrap());
    assert_eq!(info.metadata["source"].values, ["seed"]);
    assert_eq!(world.get(keyed("a.example", 1)).await, ["http://a.example/One"]);
    assert_eq!(world.date("http://a.example/One").await, created, "handed out, it is still scheduled");
}

async fn a_url_that_is_not_known_is_not_found(mut world: World) {
    five(&mut world).await;
    let request = |url: &str, key: &str, crawl: &str| UrlStatusRequest {
        url: url.into(),
        key: key.into(),
        crawl_id: crawl.into(),
    };
    let cases = [
        ("another URL", request("http://a.example/two", "", ""), Code::NotFound),
        ("another queue", request("http://a.example/One", "b.example", ""), Code::NotFound),
        ("no such queue", request("http://a.example/One", "none", ""), Code::NotFound),
        ("no such crawl", request("http://a.example/One", "", "none"), Code::NotFound),
        ("no queue can be taken from it", request("/path", "", ""), Code::InvalidArgument),
        ("nothing", request("", "", ""), Code::InvalidArgument),
    ];
    for (name, request, code) in cases {
        assert_eq!(world.status_of(request).await, Err(code), "{name}");
    }
}

/// A status travels among the headers, and clients end a connection whose headers have more than 8,000 bytes.
async fn what_is_not_found_is_told_in_few_words_however_long_it_is(mut world: World) {
    five(&mut world).await;
    for letter in ["a", "ü", "\u{1f98a}"] {
        let long = letter.repeat(60_000 / letter.len());
        let (known, hostless) = (format!("http://a.example/{long}"), format!("/{long}"));
        for (url, code) in [(known, Code::NotFound), (hostless, Code::InvalidArgument)] {
            let (key, crawl_id) = (String::new(), String::new());
            let request = UrlStatusRequest { url: url.clone(), key, crawl_id };
            few_words(&world.client.get_url_status(request).await.unwrap_err(), code, &url);
        }
        let crawl_id = String::new();
        let limit = CrawlLimitParams { key: long.clone(), limit: 1, crawl_id, local: false };
        few_words(&world.client.set_crawl_limit(limit).await.unwrap_err(), Code::Unknown, &long);
    }
    assert_eq!(world.stats("", "").await.size, 4, "the connection is still there");
}

/// A status that begins to quote `text`, and takes little room even if every byte of it takes three.
fn few_words(status: &tonic::Status, code: Code, text: &str) {
    assert_eq!(status.code(), code, "{status}");
    let begin: String = text.chars().take(20).collect();
    assert!(status.message().contains(&begin) && status.message().len() < 1000, "{}", status.message());
}

async fn urls_are_listed_whatever_has_become_of_them(mut world: World) {
    five(&mut world).await;
    let all = world.listed(ListUrlParams::default()).await;
    assert!(all.iter().all(|item| item.creation_date > 0 && item.id.is_empty()));
    assert_eq!(all.len(), 5);
    let dates: Vec<u64> = all.into_iter().map(|item| known(item).1).collect();
    assert_eq!(dates.iter().filter(|date| **date == 0).count(), 1);
    let of_queue = |key: &str| ListUrlParams { key: key.into(), ..ListUrlParams::default() };
    assert_eq!(world.list(of_queue("b.example")).await, ["http://b.example/one"]);
    assert_eq!(world.list(of_queue("a.example")).await.len(), 3);
    assert_eq!(world.list(of_queue("none")).await, [""; 0]);
    let of_crawl = |crawl: &str| ListUrlParams { crawl_id: crawl.into(), ..ListUrlParams::default() };
    assert_eq!(world.list(of_crawl("BESPOKE")).await, ["http://a.example/One"]);
    assert_eq!(world.list(of_crawl("none")).await, [""; 0]);
    for (key, crawl, want) in
        [("", "", 5), ("a.example", "", 3), ("", "BESPOKE", 1), ("none", "", 0), ("", "none", 0)]
    {
        let params = CountUrlParams { key: key.into(), crawl_id: crawl.into(), ..CountUrlParams::default() };
        assert_eq!(count(&mut world, params).await, want, "{key} {crawl}");
    }
}

async fn urls_are_filtered_by_their_text(mut world: World) {
    five(&mut world).await;
    let cases: [(&str, Option<&str>, Option<bool>, usize); 7] = [
        ("no filter", None, Some(true), 5),
        ("white space is none", Some("  "), None, 5),
        ("as it is written", Some("/one"), None, 1),
        ("in any case", Some("/oNE"), Some(true), 2),
        ("in its own case", Some("/oNE"), Some(false), 0),
        ("of a host", Some("a.example"), None, 3),
        ("in none", Some("nowhere"), Some(true), 0),
    ];
    for (name, filter, ignore_case, want) in cases {
        let filter = filter.map(str::to_owned);
        let list = ListUrlParams { filter: filter.clone(), ignore_case, ..ListUrlParams::default() };
        assert_eq!(world.list(list.clone()).await.len(), want, "{name}");
        let skipping = ListUrlParams { start: 1, ..list };
        assert_eq!(
            world.list(skipping).await.len(),
            want.saturating_sub(1),
            "{name}: start counts what fits"
        );
        let params = CountUrlParams { filter, ignore_case, local: Some(true), ..CountUrlParams::default() };
        assert_eq!(count(&mut world, params).await, want as u64, "{name}");
    }
}

async fn filters_are_texts_and_not_patterns(mut world: World) {
    let urls = [
        "/a%b_c",
        "/aXbYc",
        "/\u{c4}pfel",
        "/\u{e4}pfel",
        "/\u{41f}\u{443}\u{442}\u{44c}",
        "/back\\slash",
        "/s*ar",
    ];
    world.good(urls.map(|url| found(placed(url, "k", ""))).to_vec()).await;
    let cases: [(&str, bool, &[&str]); 10] = [
        ("%", false, &["/a%b_c"]),
        ("_", false, &["/a%b_c"]),
        ("A%B_C", true, &["/a%b_c"]),
        ("a.b", true, &[]),
        ("*", true, &["/s*ar"]),
        ("\\", true, &["/back\\slash"]),
        ("\u{e4}PFEL", false, &[]),
        ("\u{e4}PFEL", true, &["/\u{c4}pfel", "/\u{e4}pfel"]),
        ("\u{c4}p", false, &["/\u{c4}pfel"]),
        ("\u{43f}\u{423}\u{442}", true, &["/\u{41f}\u{443}\u{442}\u{44c}"]),
    ];
    for (filter, ignore_case, want) in cases {
        let (filter, ignore_case) = (Some(filter.to_owned()), Some(ignore_case));
        let list = ListUrlParams { filter: filter.clone(), ignore_case, ..ListUrlParams::default() };
        assert_eq!(world.list(list).await, want, "{filter:?} {ignore_case:?}");
        let params = CountUrlParams { filter: filter.clone(), ignore_case, ..CountUrlParams::default() };
        assert_eq!(count(&mut world, params).await, want.len() as u64, "{filter:?} {ignore_case:?}");
    }
}

/// However it was put, and however it is asked for.
async fn the_crawl_without_a_name_is_told_by_its_name(mut world: World) {
    let names = ["", " ", "DEFAULT"];
    for (n, crawl) in names.iter().enumerate() {
        let (open, done) = (format!("open {n}"), format!("done {n}"));
        world.good(vec![found(placed(&open, "k", crawl)), due(placed(&done, "k", crawl), 0u64)]).await;
        for (url, asked) in [open, done].iter().flat_map(|url| names.map(|asked| (url, asked))) {
            let request = UrlStatusRequest { url: url.clone(), key: "k".into(), crawl_id: asked.into() };
            let told = known(world.status_of(request).await.unwrap()).0;
            assert_eq!(told, placed(url, "k", "DEFAULT"), "put to {crawl:?}, asked of {asked:?}");
        }
    }
    assert!(world.infos(keyed("k", 9)).await.iter().all(|info| info.crawl_id == "DEFAULT"));
}

async fn many_urls_are_listed_in_pieces(mut world: World) {
    let items = (0..2500).map(|n| found(placed(&format!("u{n}"), &format!("k{}", n % 10), "")));
    world.good(items.collect()).await;
    let page = |start, size| ListUrlParams { start, size, ..ListUrlParams::default() };
    for (start, size, want) in [
        (0, 0, 100),
        (0, i32::MAX as u32, 2500),
        (2400, 0, 100),
        (2450, 100, 50),
        (2500, 1, 0),
        (u32::MAX, 1, 0),
    ] {
        assert_eq!(world.list(page(start, size)).await.len(), want, "{start} {size}");
    }
    let mut all = [world.list(page(0, 1200)).await, world.list(page(1200, 1300)).await].concat();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 2500);
}

/// As the tools of URLFrontier dump and import: dates and metadata come along.
async fn what_is_listed_can_be_put_elsewhere(mut world: World) {
    five(&mut world).await;
    let mut elsewhere = World::in_memory().await;
    elsewhere.pass(1000);
    for crawl_id in crawls(&mut world).await {
        let params = ListUrlParams { crawl_id, size: i32::MAX as u32, ..ListUrlParams::default() };
        let dumped = world.listed(params.clone()).await;
        elsewhere.good(dumped.clone()).await;
        let told = |items: Vec<_>| items.into_iter().map(known).collect::<Vec<_>>();
        assert_eq!(told(elsewhere.listed(params).await), told(dumped));
    }
    assert_eq!(crawls(&mut elsewhere).await, ["BESPOKE", "DEFAULT"]);
}

async fn large_urls_are_listed_in_pieces(mut world: World) {
    let large = "m".repeat(100_000);
    let urls: Vec<String> = (10..30).map(|n| format!("http://a.example/{n}")).collect();
    for url in &urls {
        world.good(vec![found(with_metadata(info(url), &[("large", &[&large])]))]).await;
    }
    let listed = |start, size| ListUrlParams { start, size, ..ListUrlParams::default() };
    assert_eq!(world.list(listed(0, 100)).await, urls);
    assert_eq!(world.list(listed(7, 9)).await, urls[7..16]);
    let params = CountUrlParams { filter: Some("example/2".into()), ..CountUrlParams::default() };
    assert_eq!(count(&mut world, params).await, 10);
}
