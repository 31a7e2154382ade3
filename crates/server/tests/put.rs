//! `PutURLs`: what clients say of URLs, and what they are told.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::*;
use forager_server::proto::ack_message::Status::{Ok, Skipped};
use forager_server::proto::url_frontier_client::UrlFrontierClient;
use forager_server::proto::{ListUrlParams, UrlItem, UrlStatusRequest};
use futures_util::stream;
use tokio::sync::mpsc;
use tonic::Code;
use tonic::transport::Channel;

const LATER: u64 = 2_943_003_600;

on_every_store![
    each_status_is_that_of_the_table,
    an_item_is_known_by_its_id_or_its_url,
    metadata_is_replaced_as_a_whole,
    what_is_said_of_a_url_that_is_handed_out_frees_it,
    the_date_of_creation_is_that_of_the_server_and_stays,
    the_key_is_given_or_taken_from_the_url,
    what_is_malformed_is_skipped_and_the_others_go_on,
    a_key_is_measured_as_clients_measure_it,
    urls_stay_byte_for_byte,
    a_url_is_one_in_each_queue_and_crawl,
    dates_far_off_are_kept_as_far_as_they_can_be,
    a_thousand_items_are_all_acknowledged,
    two_who_put_at_once_make_one_queue_and_each_url_once,
];

/// What a record may be before: nothing, scheduled, or completed.
async fn each_status_is_that_of_the_table(mut world: World) {
    let now = u64::from(world.now());
    let cases = [
        ("found, absent", None, None, Ok, now),
        ("found, scheduled", Some(LATER), None, Skipped, LATER),
        ("found, completed", Some(0), None, Skipped, 0),
        ("never again, absent", None, Some(0), Ok, 0),
        ("never again, scheduled", Some(LATER), Some(0), Ok, 0),
        ("never again, completed", Some(0), Some(0), Ok, 0),
        ("known, absent", None, Some(LATER), Ok, LATER),
        ("known, scheduled", Some(now), Some(LATER), Ok, LATER),
        ("known, completed", Some(0), Some(LATER), Ok, LATER),
    ];
    for (number, (name, before, word, status, date)) in cases.into_iter().enumerate() {
        let url = format!("http://host.example/{number}");
        if let Some(before) = before {
            world.good(vec![due(info(&url), before)]).await;
        }
        let item = word.map_or_else(|| found(info(&url)), |date| due(info(&url), date));
        assert_eq!(world.put(vec![item]).await, [status], "{name}");
        assert_eq!(world.date(&url).await, date, "{name}");
    }
    let stats = world.stats("", "host.example").await;
    assert_eq!((stats.size, stats.counts["completed"]), (5, 4));
    assert_eq!(world.put(vec![UrlItem::default()]).await, [Skipped], "nothing said of nothing");
}

async fn an_item_is_known_by_its_id_or_its_url(mut world: World) {
    let named = |id: &str, url: &str| UrlItem { id: id.into(), ..found(info(url)) };
    let items = vec![
        named("", "http://a.example/"),
        named("mine", "http://b.example/"),
        named("mine", "http://c.example/"),
        named("", "http://a.example/"),
    ];
    let mut acks = world.acks(items).await;
    acks.sort();
    let want = [("http://a.example/", Ok), ("http://a.example/", Skipped), ("mine", Ok), ("mine", Ok)];
    assert_eq!(acks, want.map(|(id, status)| (id.to_owned(), status)));
}

async fn metadata_is_replaced_as_a_whole(mut world: World) {
    let url = "http://a.example/";
    let first = with_metadata(info(url), &[("depth", &["1"]), ("parents", &["x", "y"])]);
    world.good(vec![found(first.clone())]).await;
    let told = known(world.status(url).await.unwrap()).0;
    assert_eq!(told.metadata, first.metadata);
    let second = with_metadata(info(url), &[("status", &["200"])]);
    assert_eq!(world.put(vec![found(second.clone())]).await, [Skipped]);
    assert_eq!(known(world.status(url).await.unwrap()).0.metadata, first.metadata, "found again: kept");
    world.good(vec![due(second.clone(), LATER)]).await;
    assert_eq!(known(world.status(url).await.unwrap()).0.metadata, second.metadata);
    world.good(vec![due(info(url), LATER)]).await;
    assert_eq!(known(world.status(url).await.unwrap()).0.metadata.len(), 0);
    world.good(vec![due(second.clone(), 0u64)]).await;
    assert_eq!(
        known(world.status(url).await.unwrap()).0.metadata,
        second.metadata,
        "completed, with its own"
    );
}

async fn what_is_said_of_a_url_that_is_handed_out_frees_it(mut world: World) {
    let cases = [("found again", None, 1), ("known", Some(1), 0), ("never again", Some(0), 0)];
    for (number, (name, date, in_process)) in cases.into_iter().enumerate() {
        let (url, key) = (format!("http://h{number}.example/"), format!("h{number}.example"));
        world.good(vec![found(info(&url))]).await;
        assert_eq!(world.get(keyed(&key, 1)).await, std::slice::from_ref(&url), "{name}");
        world.put(vec![date.map_or_else(|| found(info(&url)), |date: u64| due(info(&url), date))]).await;
        assert_eq!(world.stats("", &key).await.in_process, in_process, "{name}");
    }
}

async fn the_date_of_creation_is_that_of_the_server_and_stays(mut world: World) {
    let url = "http://a.example/";
    let created = u64::from(world.now());
    world.good(vec![UrlItem { creation_date: 7, ..found(info(url)) }]).await;
    for date in [LATER, 0, LATER] {
        world.pass(10);
        world.good(vec![UrlItem { creation_date: 8, ..due(info(url), date) }]).await;
        let item = world.status(url).await.unwrap();
        assert_eq!((item.creation_date, item.id.as_str()), (created, ""));
    }
}

async fn the_key_is_given_or_taken_from_the_url(mut world: World) {
    let cases = [
        ("http://gac.icann.org?language_id=9", "gac.icann.org"),
        ("https://Host.example:8080/a", "Host.example"),
        ("host.example/a", "host.example"),
        ("http://h.example&x", "h.example"),
        ("http://user:secret@h.example/", "user"),
        ("mailto:x", "mailto"),
        ("not a url", "not a url"),
        ("http://frag.example#x", "frag.example#x"),
    ];
    for (url, key) in cases {
        world.good(vec![found(info(url))]).await;
        let told = known(world.status(url).await.unwrap()).0;
        assert_eq!((told.key.as_str(), told.crawl_id.as_str()), (key, "DEFAULT"), "{url}");
        assert_eq!(world.stats("", key).await.size, 1, "{url}");
    }
    world.good(vec![found(placed("http://a.example/", "_DEFAULT_", ""))]).await;
    assert_eq!(world.stats("", "_DEFAULT_").await.size, 1);
}

async fn what_is_malformed_is_skipped_and_the_others_go_on(mut world: World) {
    let long_key = "k".repeat(256);
    let large = "x".repeat(300_000);
    let bad = [
        info(""),
        info("//host/path"),
        info("http://"),
        info("/path"),
        placed("", "key", ""),
        placed("http://a.example/", &long_key, ""),
        placed("http://a.example/", "", "a\nb"),
        placed("http://a.example/", "", &"c".repeat(2000)),
        with_metadata(info("http://a.example/"), &[("page", &[&large])]),
    ];
    let mut items: Vec<UrlItem> = bad.iter().cloned().map(found).collect();
    items.push(found(placed("http://a.example/", &"k".repeat(255), "")));
    items.extend(bad.iter().cloned().map(|info| due(info, LATER)));
    items.push(found(info("http://good.example/")));
    let mut want = [vec![Skipped; bad.len()], vec![Ok]].concat();
    want.extend(want.clone());
    assert_eq!(world.put(items).await, want);
    assert_eq!(world.stats("", "").await.size, 2);
}

/// In units of UTF-16, of which letters beyond the first 65,536 take two, whatever their bytes.
async fn a_key_is_measured_as_clients_measure_it(mut world: World) {
    let cases = [
        ("k".repeat(255), Ok),
        ("k".repeat(256), Skipped),
        ("\u{fc}".repeat(255), Ok),
        ("\u{fc}".repeat(256), Skipped),
        ("\u{1f980}".repeat(127) + "k", Ok),
        ("\u{1f980}".repeat(128), Skipped),
    ];
    let items = cases.iter().map(|(key, _)| found(placed("u", key, ""))).collect();
    assert_eq!(world.put(items).await, cases.each_ref().map(|(_, status)| *status));
    for (key, status) in &cases {
        assert_eq!(world.stats("", key).await.size, u64::from(*status == Ok), "{key}");
    }
}

async fn urls_stay_byte_for_byte(mut world: World) {
    let odd =
        ["HTTP://Example.ORG:80/%7Ea/../b#frag", "https://example.org/ü?b=2&a=1", " x ", "tab\tand\u{1F980}"];
    world.good(odd.map(|url| found(placed(url, "k", ""))).to_vec()).await;
    let listed = world.list(ListUrlParams::default()).await;
    assert_eq!(sorted(listed), sorted(odd.map(str::to_owned).to_vec()));
    assert_eq!(sorted(world.get(keyed("k", 9)).await), sorted(odd.map(str::to_owned).to_vec()));
}

async fn a_url_is_one_in_each_queue_and_crawl(mut world: World) {
    let url = "http://a.example/";
    let places = [("", ""), ("", "BESPOKE"), ("other", ""), ("my_key", "my_crawl")];
    world.good(places.map(|(key, crawl)| found(placed(url, key, crawl))).to_vec()).await;
    let same = [("a.example", "DEFAULT"), ("", " "), ("other", "DEFAULT"), ("a.example", "BESPOKE")];
    let again = same.map(|(key, crawl)| found(placed(url, key, crawl))).to_vec();
    assert_eq!(world.put(again).await, [Skipped; 4]);
    let request = UrlStatusRequest { url: url.into(), key: "other".into(), crawl_id: "BESPOKE".into() };
    assert_eq!(world.status_of(request).await, Err(Code::NotFound));
    world.good(vec![due(placed(url, "other", ""), 0u64)]).await;
    assert_eq!(world.date(url).await, u64::from(world.now()), "the others stay as they are");
}

/// Such as those in milliseconds: they must not be due before their time, nor stop others.
async fn dates_far_off_are_kept_as_far_as_they_can_be(mut world: World) {
    let dates = [LATER * 1000, u64::MAX, 1 << 63];
    let items = dates.iter().enumerate().map(|(n, date)| due(placed(&format!("far {n}"), "k", ""), *date));
    world.good(items.collect()).await;
    world.good(vec![found(placed("now", "k", ""))]).await;
    assert_eq!(world.get(keyed("k", 9)).await, ["now"]);
    let request = UrlStatusRequest { url: "far 0".into(), key: "k".into(), ..UrlStatusRequest::default() };
    assert!(known(world.status_of(request).await.unwrap()).1 >= LATER);
}

async fn a_thousand_items_are_all_acknowledged(mut world: World) {
    let items: Vec<UrlItem> =
        (0..5000).map(|n| found(info(&format!("http://h{}.example/{n}", n % 7)))).collect();
    assert_eq!(world.put(items.clone()).await, vec![Ok; 5000]);
    assert_eq!(world.put(items).await, vec![Skipped; 5000]);
    let stats = world.stats("", "").await;
    assert_eq!((stats.size, stats.number_of_queues), (5000, 7));
}

/// Whoever is first adds it; nobody adds it twice.
#[tokio::test]
async fn several_clients_may_put_the_same_at_the_same_time() {
    let world = World::in_a_folder().await;
    let put = || {
        let mut client = world.client.clone();
        async move {
            let items = (0..2000).map(|n| found(info(&format!("http://h{}.example/{n}", n % 3))));
            let mut answers = client.put_ur_ls(stream::iter(items)).await.unwrap().into_inner();
            let (mut taken, mut all) = (0, 0);
            while let Some(ack) = answers.message().await.unwrap() {
                taken += usize::from(ack.status == Ok as i32);
                all += 1;
            }
            assert_eq!(all, 2000);
            taken
        }
    };
    let (a, b, c) = tokio::join!(put(), put(), put());
    assert_eq!(a + b + c, 2000);
}

/// Acknowledgements come while the stream is open, and it ends only when the client has nothing more to say.
#[tokio::test]
async fn a_stream_ends_after_its_last_acknowledgement() {
    let mut world = World::in_memory().await;
    let (sender, receiver) = mpsc::channel(1);
    let items = stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
    let mut answers = world.client.put_ur_ls(items).await.unwrap().into_inner();
    for url in ["http://a.example/", "http://b.example/"] {
        sender.send(found(info(url))).await.unwrap();
        assert_eq!(answers.message().await.unwrap().unwrap().id, url);
    }
    // Another stream does not wait for this one.
    world.good(vec![found(info("http://c.example/"))]).await;
    drop(sender);
    assert_eq!(answers.message().await.unwrap(), None);
}

/// Some clients leave after the first acknowledgement.
#[tokio::test]
async fn a_client_may_leave_at_any_time() {
    let mut world = World::in_memory().await;
    for number in 0..20 {
        let url = format!("http://h{number}.example/");
        let items = stream::iter([found(info(&url))]);
        let mut answers = world.client.put_ur_ls(items).await.unwrap().into_inner();
        answers.message().await.unwrap().unwrap();
    }
    assert_eq!(world.stats("", "").await.size, 20);
}

#[tokio::test]
async fn a_message_that_is_too_large_ends_its_stream_and_no_other() {
    let mut world = World::in_memory().await;
    let large = info(&format!("http://a.example/{}", "x".repeat(5 << 20)));
    let items = vec![found(info("http://b.example/")), found(large)];
    let mut answers = world.client.put_ur_ls(stream::iter(items)).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap().id, "http://b.example/");
    assert_eq!(answers.message().await.unwrap_err().code(), Code::ResourceExhausted);
    assert_eq!(world.stats("", "").await.size, 1);
}

async fn two_who_put_at_once_make_one_queue_and_each_url_once(mut world: World) {
    let items = |own: &str| {
        let both = (0..20).map(|n| format!("both/{n}"));
        let urls = both.chain((0..20).map(|n| format!("{own}/{n}")));
        urls.map(|url| found(placed(&url, "k", "new"))).collect::<Vec<_>>()
    };
    let taken = async |mut client: UrlFrontierClient<Channel>, items: Vec<UrlItem>| {
        let mut answers = client.put_ur_ls(stream::iter(items)).await.unwrap().into_inner();
        let mut taken = 0;
        while let Some(ack) = answers.message().await.unwrap() {
            taken += usize::from(ack.status == i32::from(Ok));
        }
        taken
    };
    let (one, other) = (world.client.clone(), world.client.clone());
    let (one, other) = tokio::join!(taken(one, items("one")), taken(other, items("other")));
    assert_eq!(one + other, 60, "{one} and {other}: of the same URL, one is new");
    let stats = world.stats("new", "").await;
    assert_eq!((stats.size, stats.number_of_queues), (60, 1));
}
