//! What robots.txt asks for: a wait between fetches, and not to fetch at all.

use forager_core::order::Order;
use forager_core::scope::Profile;
use forager_core::scope::extent::Kind as Scope;

use super::World;
use super::world::*;
use crate::entry::Token;
use crate::host::{Gate, HostSettings};
use crate::moment::Moment;
use crate::settings::Settings;
use crate::verbs::{FetchError, LeaseRequest, Leased, Note, Outcome, Page, Report};

const HOME: &str = "https://a.example/";
const HOST: &str = "x.example";

/// A collection that takes links to any host, with so many pages at `x.example`.
async fn pages(mut world: World, count: usize) -> World {
    let anywhere = |profile: &mut Profile| (profile.scope, profile.order) = (Scope::Any, Order::Fifo);
    world.configure([planned("c"), profile("c", "c", anywhere), seed(HOME, ["c"])]).await;
    let urls: Vec<String> = (0..count).map(|number| format!("https://{HOST}/{number}")).collect();
    world.discover(page_of_seed("c", HOME, urls.iter().map(String::as_str))).await;
    world
}

/// A collection whose pages are fetched once.
async fn once(mut world: World) -> World {
    let once = |profile: &mut Profile| profile.length = Some(1);
    world.configure([planned("c"), profile("c", "c", once), seed(HOME, ["c"])]).await;
    world.start_seed(HOME).await;
    world
}

/// Between 2 and 5 seconds, 2 at a time: what everybody has.
fn usual(settings: &mut Settings) {
    (settings.politeness.delay, settings.politeness.max_delay) = (interval("2s"), interval("5s"));
    settings.politeness.in_flight = 2;
}

fn crawl_delay(time: &str) -> Note {
    Note::CrawlDelay(HOST.into(), Some(interval(time)))
}

/// The milliseconds until the host opens.
async fn waits(world: &mut World) -> u64 {
    let opens = world.host(HOST).await.opens.unwrap_or_default().max(world.moment());
    opens.millisecond() - world.moment().millisecond()
}

/// Leases and completes, and says how long the host is left alone after that.
async fn wait_after_a_fetch(world: &mut World) -> u64 {
    world.fetch("x").await;
    waits(world).await
}

async fn forbidden(world: &mut World, leased: &Leased) -> Outcome {
    world.complete(no_answer(leased.token, FetchError::Robots)).await.outcome
}

pub async fn the_longer_wait_of_ours_and_theirs_counts(world: World) {
    let own = |delay: &str| HostSettings { delay: Some(interval(delay)), ..HostSettings::default() };
    let cases = [
        ("theirs is longer", None, "30s", 30_000..=30_000),
        ("longer than ours at least", None, "4s", 4000..=5000),
        ("ours is longer", None, "1s", 2000..=5000),
        ("not even a second", None, "10ms", 2000..=5000),
        ("none at all, if asked for", None, "0s", 2000..=5000),
        ("theirs, and one of its own", Some("10s"), "30s", 30_000..=30_000),
        ("one of its own that is longer", Some("1m"), "30s", 60_000..=60_000),
        ("its own is none", Some("0s"), "30s", 30_000..=30_000),
    ];
    for (name, ours, theirs, want) in cases {
        let mut world = pages(world.another().with(usual), 3).await;
        if let Some(ours) = ours {
            world.set_host(HOST, own(ours)).await;
        }
        world.note([crawl_delay(theirs)]).await;
        assert_eq!(waits(&mut world).await, 0, "{name}: nothing was fetched yet");
        world.reopen();
        let wait = wait_after_a_fetch(&mut world).await;
        assert!(want.contains(&wait), "{name}: {wait} ms");
    }
}

pub async fn a_host_that_asks_for_a_wait_gets_one_fetch_at_a_time(world: World) {
    let own = |in_flight| HostSettings {
        in_flight: Some(in_flight),
        delay: Some(interval("0s")),
        ..HostSettings::default()
    };
    for settings in [HostSettings::default(), own(5)] {
        let mut world = pages(world.another().with(usual), 3).await;
        world.set_host(HOST, settings).await;
        world.note([crawl_delay("0s")]).await;
        world.reopen();
        let leased = world.lease_one().await;
        world.pass("10s");
        assert_eq!(world.lease(9).await, []);
        let host = world.host(HOST).await;
        assert_eq!((host.in_flight, host.gate), (1, Some(Gate::InFlight)));
        world.complete(ok(leased.token, "x")).await;
        assert_eq!(world.lease(9).await.len(), 1, "one after the other");
    }
    let mut world = pages(world, 3).await;
    world.set_host(HOST, own(0)).await;
    world.note([crawl_delay("1s")]).await;
    assert_eq!(world.lease(9).await, [], "none stays none");
}

pub async fn what_a_host_asks_for_can_be_lifted(world: World) {
    let mut world = pages(world.with(usual), 9).await;
    world.note([crawl_delay("1h")]).await;
    assert_eq!(wait_after_a_fetch(&mut world).await, 3_600_000);
    world.note([Note::CrawlDelay(HOST.into(), None)]).await;
    world.reopen();
    assert_eq!(waits(&mut world).await, 3_600_000, "what was promised after the last fetch is kept");
    world.pass("1h");
    assert_eq!(world.lease(1).await.len(), 1);
    let wait = waits(&mut world).await;
    assert!((2000..=5000).contains(&wait), "{wait} ms");
    world.pass("5s");
    assert_eq!(world.lease(1).await.len(), 1, "two at a time again");
}

/// The file is read when the first page is about to be fetched, and that page is fetched then.
pub async fn a_longer_wait_counts_for_the_page_under_way_too(world: World) {
    let mut world = pages(world.with(usual), 3).await;
    let first = world.lease_one().await;
    world.note([crawl_delay("10s")]).await;
    world.complete(ok(first.token, "x")).await;
    assert_eq!(waits(&mut world).await, 10_000, "from when it was learned");
    world.pass("1s");
    for theirs in ["10s", "4s"] {
        world.note([crawl_delay(theirs)]).await;
        assert_eq!(waits(&mut world).await, 9000, "read again, {theirs}: no reason to begin anew");
    }
}

pub async fn a_crawl_delay_stays_when_settings_are_replaced(world: World) {
    let mut world = pages(world.with(usual), 3).await;
    world.note([crawl_delay("30s")]).await;
    world.set_host(HOST, HostSettings { in_flight: Some(9), ..HostSettings::default() }).await;
    world.set_host(HOST, HostSettings::default()).await;
    assert_eq!(wait_after_a_fetch(&mut world).await, 30_000);
}

pub async fn a_crawl_delay_is_of_one_host(world: World) {
    let mut world = pages(world.with(usual), 1).await;
    world.note([crawl_delay("1h"), Note::CrawlDelay("new.example".into(), Some(interval("7s")))]).await;
    world.find_for("c", HOME, ["https://www.x.example/", "https://new.example/"]).await;
    world.reopen();
    let leased = world.lease(9).await;
    assert_eq!(leased.len(), 3);
    for leased in leased {
        world.complete(ok(leased.token, "x")).await;
    }
    let opens = world.host("www.x.example").await.opens.unwrap();
    assert!(opens <= world.later("5s"), "{opens}");
    assert_eq!(world.host("new.example").await.opens, Some(world.later("7s")), "known before it had pages");
}

pub async fn what_is_forbidden_costs_its_host_no_wait(world: World) {
    let mut world = pages(world.with(delay("10s")), 3).await;
    for _ in 0..2 {
        let leased = world.lease_one().await;
        world.pass("1s");
        assert_eq!(waits(&mut world).await, 9000);
        world.reopen();
        forbidden(&mut world, &leased).await;
        let host = world.host(HOST).await;
        assert_eq!((host.opens, host.fetched, host.failures), (None, 0, 0), "open, and not fetched");
    }
    assert_eq!(wait_after_a_fetch(&mut world).await, 10_000, "what is fetched costs one");
    assert_eq!(world.host(HOST).await.fetched, 1);
}

pub async fn what_was_handed_out_after_it_keeps_its_wait(world: World) {
    let mut world = pages(world.with(delay("10s")), 3).await;
    let first = world.lease_one().await;
    world.pass("10s");
    let second = world.lease_one().await;
    world.pass("1s");
    forbidden(&mut world, &first).await;
    assert_eq!(waits(&mut world).await, 9000, "the second was asked for a second ago");
    forbidden(&mut world, &second).await;
    assert_eq!(waits(&mut world).await, 0, "the first more than ten seconds ago");
}

/// An address that may not be connected to is not asked, and will not be better the next time.
pub async fn what_is_at_a_refused_address_is_given_up_at_once(world: World) {
    let mut world = once(world.with(delay("10s"))).await;
    let leased = world.lease_one().await;
    let done = world.complete(no_answer(leased.token, FetchError::Address)).await;
    assert_eq!((done.outcome, done.due), (Outcome::Failed, None));
    assert_eq!(&*done.rule, "address: given up at once");
    let host = world.host("a.example").await;
    assert_eq!((host.opens, host.fetched, host.failures), (None, 0, 0), "open, and not fetched");
    assert_eq!(world.stats("c").await.tally.fetches, 0);
    assert_eq!(world.explain("c", HOME).await.verdict, "given up: address");
}

/// Without a robots.txt nobody knows: the host is left alone, and tried again.
pub async fn what_waits_for_robots_txt_is_tried_again_and_not_fetched(world: World) {
    let tries = 2;
    let mut world = once(world.with(|settings| settings.retry.failed = tries)).await;
    for number in 1..=tries + 1 {
        let leased = world.lease_one().await;
        let done = world.complete(no_answer(leased.token, FetchError::Unreachable)).await;
        let (outcome, rule) = match number {
            last if last > tries => {
                (Outcome::Failed, format!("unreachable: given up after {tries} more tries"))
            }
            _ => (Outcome::Again, format!("unreachable: try {number} of {tries}")),
        };
        assert_eq!((done.outcome, &*done.rule), (outcome, rule.as_str()));
        let host = world.host("a.example").await;
        assert_eq!((host.gate, host.failures, host.fetched), (Some(Gate::BackOff), number, 0));
        world.pass_until(host.opens.unwrap().max(done.due.unwrap_or_default()));
    }
    assert_eq!(world.stats("c").await.tally.fetches, 0);
}

/// Whoever knows when robots.txt is asked for again comes back then. Nobody was asked for the page, so that its host has not
/// failed once more.
pub async fn what_knows_when_robots_txt_is_asked_for_again_waits_for_that(world: World) {
    let mut world = once(world).await;
    for number in 1..=3 {
        let leased = world.lease_one().await;
        let report = no_answer(leased.token, FetchError::Unreachable);
        let until = world.later("3h");
        let done = world.complete(Report { retry_after: Some(interval("3h")), ..report }).await;
        assert_eq!((done.outcome, done.due), (Outcome::Again, Some(until)), "{number}");
        let host = world.host("a.example").await;
        assert_eq!((host.failures, host.fetched), (0, 0), "{number}");
        world.pass_until(until);
    }
}

pub async fn a_wait_is_given_back_once(world: World) {
    let mut world = pages(world.with(delay("10s")), 3).await;
    let first = world.lease_one().await;
    forbidden(&mut world, &first).await;
    world.lease_one().await;
    assert_eq!(forbidden(&mut world, &first).await, Outcome::Refused);
    assert_eq!(waits(&mut world).await, 10_000);
}

pub async fn what_is_forbidden_opens_no_other_gate(world: World) {
    let mut world = pages(world.with(delay("10s")), 9).await;
    let first = world.lease_one().await;
    world.pass("10s");
    let second = world.lease_one().await;
    world.complete(answered(first.token, 503)).await;
    let opens = world.host(HOST).await.opens.unwrap();
    assert!(opens >= world.later("30s"));
    forbidden(&mut world, &second).await;
    let host = world.host(HOST).await;
    assert_eq!((host.opens, host.gate), (Some(opens), Some(Gate::BackOff)));
    assert_eq!(host.failures, 1, "nor does it end a row of failures");

    let until = world.later("2h");
    for (settings, gate) in [
        (HostSettings { blocked_until: Some(until), ..HostSettings::default() }, Gate::Blocked),
        (HostSettings { fetch_limit: Some(1), ..HostSettings::default() }, Gate::FetchLimit),
        (HostSettings { in_flight: Some(1), ..HostSettings::default() }, Gate::InFlight),
    ] {
        let mut world = pages(world.another(), 9).await;
        let leased = world.lease_one().await;
        world.pass("10s");
        let other = world.lease_one().await;
        if gate == Gate::FetchLimit {
            world.complete(ok(leased.token, "x")).await;
        }
        world.set_host(HOST, settings).await;
        forbidden(&mut world, &other).await;
        assert_eq!(world.host(HOST).await.gate, Some(gate));
        assert_eq!(world.lease(9).await, [], "{gate}");
    }
}

pub async fn what_is_forbidden_counts_for_no_limit_of_its_host(world: World) {
    let mut world = pages(world, 5).await;
    world.set_host(HOST, HostSettings { fetch_limit: Some(1), ..HostSettings::default() }).await;
    for _ in 0..3 {
        let leased = world.lease_one().await;
        forbidden(&mut world, &leased).await;
    }
    world.fetch("x").await;
    assert_eq!(world.host(HOST).await.gate, Some(Gate::FetchLimit));
}

/// Clients get several of a queue at once and pace them by themselves: the wait is for all of them.
pub async fn a_wait_that_several_share_is_not_given_back_by_one(mut world: World) {
    world.configure([unplanned("p")]).await;
    let links =
        ["k 1", "k 2", "k 3", "k 4"].map(|url| crate::verbs::Link { key: Some("k".into()), ..link(url) });
    world.discover(Page { collection: "p".into(), links: links.to_vec(), ..Page::default() }).await;
    let leased = world.ask(&LeaseRequest { max: 2, per_host: 2, ..LeaseRequest::default() }).await.leased;
    let last: Token = leased[1].token;
    world.complete(no_answer(last, FetchError::Robots)).await;
    assert_eq!(world.host("k").await.opens, Some(world.later("1s")), "the other may have been fetched");
    world.pass("1s");
    let alone = world.lease_one().await;
    world.complete(no_answer(alone.token, FetchError::Robots)).await;
    assert_eq!(world.host("k").await.opens.unwrap_or_default(), Moment::ZERO);
}

pub async fn a_host_that_asks_for_long_waits_is_slow_and_neither_dropped_nor_hurried(world: World) {
    for (asked, slow) in [("1s", false), ("1m", false), ("61s", true), ("24h", true)] {
        let mut world = pages(world.another(), 1).await;
        world.note([crawl_delay(asked)]).await;
        let host = world.host(HOST).await;
        assert_eq!((host.crawl_delay, host.is_slow), (Some(interval(asked)), slow), "{asked}");
        world.lease_one().await;
        let opens = world.host(HOST).await.opens;
        assert!(opens >= Some(world.later(asked)), "{asked}: {opens:?}");
    }
}
