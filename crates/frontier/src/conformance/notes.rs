//! What is written down besides entries: values under keys, and the log of fetches.

use forager_core::order::Order;

use super::World;
use super::world::*;
use crate::entry::Token;
use crate::host::{Gate, HostSettings};
use crate::moment::Moment;
use crate::verbs::{FetchError, FetchRow, HostChange, Link, MAX_NOTE_BYTES, Note, Page, Report, Sent, Terms};

const HOME: &str = "https://a.example/";

async fn site(mut world: World) -> World {
    world.harvest("c", Order::Hierarchy, HOME).await;
    world.start_seed(HOME).await;
    world
}

fn keep(key: &str, value: &str) -> Note {
    Note::Keep(key.to_owned(), Some(value.as_bytes().to_vec()))
}

fn forget(key: &str) -> Note {
    Note::Keep(key.to_owned(), None)
}

/// A fetch for no entry, such as that of a robots.txt.
fn fetch_of(host: &str, path: &str, now: Moment) -> FetchRow {
    FetchRow {
        started: now,
        ended: now.after_millis(70),
        host: host.to_owned(),
        url: format!("https://{host}{path}"),
        result: "200".to_owned(),
        bytes: 12,
        robots: "always allowed".to_owned(),
        ..FetchRow::default()
    }
}

/// A report of a fetch that began now.
fn sent(world: &World, report: Report) -> Report {
    let fetch = Sent { at: world.moment(), robots: "allowed by /".to_owned(), ..Sent::default() };
    Report { fetch: Some(fetch), ..report }
}

pub async fn a_value_is_kept_replaced_and_forgotten(mut world: World) {
    assert_eq!(world.noted("k").await, None);
    let steps = [(keep("k", "one"), Some("one")), (keep("k", "two"), Some("two")), (forget("k"), None)];
    for (note, want) in steps {
        world.note([note]).await;
        assert_eq!(world.noted("k").await.as_deref(), want);
        world.reopen();
        assert_eq!(world.noted("k").await.as_deref(), want, "after a restart");
    }
    world.note([forget("k"), forget("never was")]).await;
    world.note([]).await;
}

pub async fn values_are_answered_in_the_order_of_their_keys(mut world: World) {
    world.note([keep("a", "1"), keep("b", ""), Note::Keep("c".into(), Some(vec![0, 255, 0]))]).await;
    let keys = ["c", "missing", "a", "b", "a"].map(ToOwned::to_owned);
    let noted = world.frontier().noted(&keys).await.unwrap();
    let want = [Some(vec![0, 255, 0]), None, Some(b"1".to_vec()), Some(vec![]), Some(b"1".to_vec())];
    assert_eq!(noted, want);
    assert_eq!(world.frontier().noted(&[]).await.unwrap(), [] as [Option<Vec<u8>>; 0]);
}

pub async fn the_last_note_of_a_call_counts(mut world: World) {
    world.note([keep("k", "one"), forget("k"), keep("k", "three"), keep("gone", "x"), forget("gone")]).await;
    world.reopen();
    assert_eq!(world.noted("k").await.as_deref(), Some("three"));
    assert_eq!(world.noted("gone").await, None);
}

pub async fn keys_are_told_apart_byte_by_byte(mut world: World) {
    let keys = ["a", "a ", "A", "a b", "ä", "\0", "robots https://a.example"];
    world.note(keys.map(|key| keep(key, key))).await;
    world.reopen();
    for key in keys {
        assert_eq!(world.noted(key).await.as_deref(), Some(key));
    }
}

pub async fn large_values_are_kept(mut world: World) {
    let large = "x".repeat(600_000);
    world.note([keep("large", &large)]).await;
    world.reopen();
    assert_eq!(world.noted("large").await.map(|value| value.len()), Some(large.len()));
}

pub async fn a_key_that_cannot_be_kept_fails_the_whole_call(mut world: World) {
    for key in [String::new(), "k".repeat(60_001), "k".repeat(70_000)] {
        let log = Note::Fetch(fetch_of("x.example", "/robots.txt", world.moment()));
        let slow = Note::CrawlDelay("x.example".into(), Some(interval("9s")));
        let notes = [keep("good", "x"), log, slow, keep(&key, "x")];
        let error = world.frontier().note(&notes, world.now).await.unwrap_err();
        assert!(error.to_string().contains(&format!("{} bytes", key.len())), "{error}");
        assert_eq!(world.noted("good").await, None, "all of it or nothing");
        assert_eq!(world.fetches().await, []);
        assert_eq!(world.noted(&key).await, None, "nor does asking for it do harm");
    }
    let longest = "k".repeat(60_000);
    world.note([keep(&longest, "x")]).await;
    world.reopen();
    assert_eq!(world.noted(&longest).await.as_deref(), Some("x"));
}

pub async fn a_value_that_is_too_large_fails_the_whole_call(mut world: World) {
    let large = "x".repeat(MAX_NOTE_BYTES);
    let too_large = format!("{large}x");
    let notes = [keep("good", "x"), keep("k", &too_large)];
    let error = world.frontier().note(&notes, world.now).await.unwrap_err().to_string();
    for part in ["\"k\"", "1048577 bytes", "1048576"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(world.noted("good").await, None, "all of it or nothing");
    world.note([keep("k", &large)]).await;
    world.reopen();
    assert_eq!(world.noted("k").await.map(|value| value.len()), Some(large.len()));
}

pub async fn a_report_with_a_fetch_is_logged(world: World) {
    let mut world = site(world.with(delay("2s"))).await;
    let start = world.moment();
    let leased = world.lease_one().await;
    world.pass("1s");
    let at = world.moment();
    let report = sent(&world, ok(leased.token, "four"));
    world.pass("3s");
    world.complete(report).await;
    let want = FetchRow {
        position: 0,
        started: at,
        ended: world.moment(),
        collection: "c".into(),
        host: "a.example".into(),
        url: HOME.into(),
        result: "200".into(),
        bytes: 4,
        robots: "allowed by /".into(),
        least_gap: 2000,
        most_in_flight: 1000,
        back_off_until: None,
    };
    assert!(start < at && at < want.ended);
    let want = [want];
    assert_eq!(world.fetches().await, want);
    world.reopen();
    assert_eq!(world.fetches().await, want);
}

/// A worker knows better when the answer had come; but nothing ends before it began, or after it is reported.
pub async fn when_an_answer_was_whole_is_logged(world: World) {
    for (name, ended, is_taken) in
        [("then", "3s", true), ("too early", "1s", false), ("too late", "9s", false)]
    {
        let mut world = site(world.another()).await;
        let ended = world.later(ended);
        let leased = world.lease_one().await;
        world.pass("2s");
        let mut report = sent(&world, ok(leased.token, "x"));
        world.pass("3s");
        report.fetch.as_mut().unwrap().ended = Some(ended);
        world.complete(report).await;
        let want = if is_taken { ended } else { world.moment() };
        assert_eq!(world.fetches().await[0].ended, want, "{name}");
    }
}

/// How long a host is left alone is in the log, so that it can be proved.
pub async fn the_pause_after_a_fetch_is_logged(world: World) {
    let asked = |token| Report { retry_after: Some(interval("7m")), ..answered(token, 503) };
    let cases: [(&str, ReportOf, bool); 6] = [
        ("a page", |token| answered(token, 200), false),
        ("gone", |token| answered(token, 404), false),
        ("its own failure", |token| answered(token, 500), false),
        ("too many", |token| answered(token, 429), true),
        ("out of reach", |token| no_answer(token, FetchError::Network), true),
        ("asked for", asked, true),
    ];
    for (name, report, pauses) in cases {
        let mut world = site(world.another()).await;
        let leased = world.lease_one().await;
        let report = sent(&world, report(leased.token));
        world.complete(report).await;
        let opens = world.host("a.example").await.opens.filter(|_| pauses);
        assert_eq!(opens.is_some(), pauses, "{name}");
        assert_eq!(world.fetches().await[0].back_off_until, opens, "{name}");
    }
}

pub async fn a_pause_asked_for_with_robots_txt_is_kept(world: World) {
    let mut world = site(world).await;
    let until = world.later("1h");
    let row = fetch_of("a.example", "/robots.txt", world.moment());
    world.note([Note::Fetch(FetchRow { back_off_until: Some(until), ..row.clone() })]).await;
    world.note([Note::Fetch(FetchRow { back_off_until: Some(world.later("1m")), ..row.clone() })]).await;
    world.reopen();
    let host = world.host("a.example").await;
    assert_eq!((host.opens, host.gate), (Some(until), Some(Gate::BackOff)));
    assert_eq!(world.lease(1).await, []);
    assert_eq!(world.fetches().await[0].back_off_until, Some(until));
    world.note([Note::Fetch(FetchRow { back_off_until: Some(Moment::NEVER), ..row })]).await;
    let opens = world.host("a.example").await.opens.unwrap();
    assert!(opens <= world.later("30 days"), "nobody may ask for ever: {opens}");
}

/// Whoever answers 429 or 503 without saying for how long is left alone like after a page, longer each time.
pub async fn a_refusal_of_robots_txt_counts_like_that_of_a_page(world: World) {
    let mut of_page = site(world.another()).await;
    let leased = of_page.lease_one().await;
    let report = sent(&of_page, answered(leased.token, 503));
    of_page.complete(report).await;
    let mut world = site(world).await;
    let mut waits = Vec::new();
    for _ in 0..3 {
        let now = world.moment();
        let row = fetch_of("a.example", "/robots.txt", now);
        world.note([Note::Fetch(FetchRow { back_off_until: Some(now), ..row })]).await;
        world.reopen();
        let host = world.host("a.example").await;
        assert_eq!(host.gate, Some(Gate::BackOff));
        assert_eq!(world.lease(1).await, []);
        let opens = host.opens.unwrap();
        assert_eq!(world.fetches().await.last().unwrap().back_off_until, Some(opens));
        waits.push(opens.millisecond() - now.millisecond());
        world.pass("1h");
    }
    let of_page =
        of_page.host("a.example").await.opens.unwrap().millisecond() - of_page.moment().millisecond();
    assert!(of_page >= 30_000 && waits[0] >= 30_000, "{of_page}, {waits:?}");
    assert!(waits[1] >= 60_000 && waits[2] >= 120_000, "{waits:?}");
}

/// What a worker reports of a lease.
type ReportOf = fn(Token) -> Report;

pub async fn what_came_of_a_fetch_is_logged_in_words(world: World) {
    let cases: [(ReportOf, &str); 5] = [
        (|token| answered(token, 200), "200"),
        (|token| answered(token, 304), "304"),
        (|token| answered(token, 503), "503"),
        (|token| no_answer(token, FetchError::Timeout), "timeout"),
        (|token| no_answer(token, FetchError::Network), "network"),
    ];
    for (report, words) in cases {
        let mut world = site(world.another()).await;
        let leased = world.lease_one().await;
        let report = sent(&world, report(leased.token));
        world.complete(report).await;
        assert_eq!(world.fetches().await[0].result, words);
    }
}

pub async fn nothing_is_logged_without_a_fetch(world: World) {
    let mut world = site(world).await;
    world.fetch("x").await;
    let refused = sent(&world, ok(Token(77_777), "x"));
    world.complete(refused).await;
    world.pass("8h");
    let lost = world.lease_one().await;
    world.pass_until(lost.until);
    let late = sent(&world, ok(lost.token, "x"));
    world.complete(late).await;
    assert_eq!(world.fetches().await, []);
}

pub async fn a_fetch_for_no_entry_is_logged_too(mut world: World) {
    let row = fetch_of("new.example", "/robots.txt", world.moment());
    world.note([Note::Fetch(FetchRow { position: 77, ..row.clone() })]).await;
    let want = FetchRow { position: 0, least_gap: 0, most_in_flight: 1000, ..row };
    assert_eq!(world.fetches().await, [want], "its position and limits are filled in");
    assert_eq!(world.host("new.example").await.fetched, 0, "no entry of the host was fetched");
}

/// The log shows the limits that a host had at the time, not those it has when it is read.
pub async fn limits_are_logged_as_they_are(world: World) {
    let mut world = site(world.with(|settings| {
        (settings.politeness.delay, settings.politeness.max_delay) = (interval("2s"), interval("5s"));
        settings.politeness.in_flight = 2;
    }))
    .await;
    let own = |delay: &str, in_flight| HostSettings {
        delay: Some(interval(delay)),
        in_flight: Some(in_flight),
        ..HostSettings::default()
    };
    let row = fetch_of("a.example", "/robots.txt", world.moment());
    world.note([Note::Fetch(row.clone())]).await;
    world.set_host("a.example", own("7s", 4)).await;
    world.note([Note::Fetch(row.clone())]).await;
    let slow = Note::CrawlDelay("a.example".into(), Some(interval("30s")));
    world.note([slow, Note::Fetch(row.clone())]).await;
    world.set_host("a.example", own("1m", 4)).await;
    world.note([Note::Fetch(row.clone())]).await;
    world.set_host("a.example", HostSettings::default()).await;
    world.note([Note::CrawlDelay("a.example".into(), None), Note::Fetch(row)]).await;
    world.reopen();
    let limits: Vec<(u64, u32)> =
        world.fetches().await.iter().map(|row| (row.least_gap, row.most_in_flight)).collect();
    assert_eq!(limits, [(2000, 2), (7000, 4), (30_000, 1), (60_000, 1), (2000, 2)]);
}

/// What was asked for after a request was sent is none of its limits. The host waits by what holds now all the same.
pub async fn limits_are_logged_as_they_were_when_a_request_was_sent(world: World) {
    let mut world = site(world.with(|settings| {
        (settings.politeness.delay, settings.politeness.max_delay) = (interval("2s"), interval("2s"));
        settings.politeness.in_flight = 2;
    }))
    .await;
    let leased = world.lease_one().await;
    assert_eq!(leased.terms, Terms { least_gap: 2000, most_in_flight: 2 });
    let mut report = sent(&world, ok(leased.token, "x"));
    report.fetch.iter_mut().for_each(|sent| sent.terms = Some(leased.terms));
    let row = fetch_of("a.example", "/robots.txt", world.moment());
    let told = FetchRow { least_gap: 0, most_in_flight: 9, ..row.clone() };
    let at = world.moment();
    world.note([Note::CrawlDelay("a.example".into(), Some(interval("30s")))]).await;
    world.complete(report).await;
    world.note([Note::Fetch(told), Note::Fetch(row)]).await;
    world.reopen();
    let limits: Vec<(u64, u32)> =
        world.fetches().await.iter().map(|row| (row.least_gap, row.most_in_flight)).collect();
    assert_eq!(limits, [(2000, 2), (0, 9), (30_000, 1)]);
    assert!(world.host("a.example").await.opens >= Some(at.after_millis(30_000)));
}

pub async fn a_fetch_of_a_plain_collection_has_its_own_limits(mut world: World) {
    world.configure([unplanned("p")]).await;
    let links = vec![Link { key: Some("k".into()), ..link("no url") }];
    world.discover(Page { collection: "p".into(), links, ..Page::default() }).await;
    let settings = HostSettings { in_flight: Some(3), ..HostSettings::default() };
    let change =
        HostChange { key: "k".into(), collection: Some("p".into()), sets: settings.all(), only_known: false };
    world.frontier().set_hosts(&[change], world.now).await.unwrap();
    let leased = world.lease_one().await;
    let report = sent(&world, ok(leased.token, "x"));
    world.complete(report).await;
    let row = world.fetches().await.remove(0);
    assert_eq!((row.collection.as_str(), row.host.as_str(), row.url.as_str()), ("p", "k", "no url"));
    assert_eq!((row.least_gap, row.most_in_flight), (1000, 3));
}

pub async fn the_log_of_fetches_is_read_a_page_at_a_time(world: World) {
    let mut world = site(world).await;
    let leased = world.lease_one().await;
    let report = sent(&world, ok(leased.token, "x"));
    let now = world.moment();
    world.note((0..3).map(|n| Note::Fetch(fetch_of("h.example", &format!("/{n}"), now)))).await;
    world.complete(report).await;
    world.reopen();
    world.note([Note::Fetch(fetch_of("h.example", "/4", now))]).await;
    let all = world.fetches().await;
    assert_eq!(all.iter().map(|row| row.position).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let urls: Vec<&str> = all.iter().map(|row| row.url.as_str()).collect();
    assert_eq!(&urls[2..], ["https://h.example/2", HOME, "https://h.example/4"]);
    for (from, limit, want) in
        [(0, 2, 0..2), (2, 2, 2..4), (4, 2, 4..5), (5, 2, 5..5), (9, 9, 5..5), (1, 0, 1..1)]
    {
        let page = world.frontier().fetches(from, limit).await.unwrap();
        assert_eq!(page, all[want], "{limit} from {from}");
    }
}
