//! Politeness: what is set for hosts, what they earn by failing, and that all of it is durable.

use forager_core::order::Order;
use forager_core::scope::Profile;
use forager_core::scope::extent::Kind as Scope;

use super::World;
use super::world::*;
use crate::error::Error;
use crate::host::{Gate, HostSettings, Robots, Setting};
use crate::moment::Moment;
use crate::verbs::{Action, FetchError, HostChange, HostFilter, Report};

const HOME: &str = "https://a.example/";

/// A collection that takes links to any host, with so many pages at `x.example`.
async fn pages(mut world: World, count: usize) -> World {
    let anywhere = |profile: &mut Profile| (profile.scope, profile.order) = (Scope::Any, Order::Fifo);
    world.configure([planned("c"), profile("c", "c", anywhere), seed(HOME, ["c"])]).await;
    let urls: Vec<String> = (0..count).map(|number| format!("https://x.example/{number}")).collect();
    world.discover(page_of_seed("c", HOME, urls.iter().map(String::as_str))).await;
    world
}

pub async fn a_host_hands_out_one_entry_and_then_waits(world: World) {
    let mut world = pages(world.with(delay("10s")), 3).await;
    assert_eq!(world.lease(9).await.len(), 1, "however many were asked for");
    let host = world.host("x.example").await;
    assert_eq!((host.opens, host.gate), (Some(world.later("10s")), Some(Gate::Delay)));
    world.pass("9s");
    world.reopen();
    assert_eq!(world.lease(9).await, []);
    world.pass("1s");
    assert_eq!(world.lease(9).await.len(), 1);
}

pub async fn the_delay_counts_from_the_lease_and_not_from_the_report(world: World) {
    let mut world = pages(world.with(delay("10s")), 2).await;
    let leased = world.lease_one().await;
    world.pass("10s");
    assert_eq!(world.lease(1).await.len(), 1, "the first is still under way");
    world.complete(ok(leased.token, "x")).await;
}

pub async fn delays_are_drawn_between_their_bounds(world: World) {
    let mut world = pages(
        world.with(|settings| {
            (settings.politeness.delay, settings.politeness.max_delay) = (interval("2s"), interval("5s"));
        }),
        40,
    )
    .await;
    let mut drawn = std::collections::BTreeSet::new();
    for _ in 0..40 {
        assert_eq!(world.lease(1).await.len(), 1);
        let opens = world.host("x.example").await.opens.unwrap();
        let wait = opens.millisecond() - world.moment().millisecond();
        assert!((2000..=5000).contains(&wait), "{wait} ms");
        drawn.insert(wait);
        world.pass_until(opens);
    }
    assert!(drawn.len() > 20, "they differ: {drawn:?}");
}

/// Callers read the clock and then wait for their turn: what is told may be a little behind.
pub async fn a_clock_that_is_behind_does_not_shorten_a_delay(world: World) {
    let mut world = pages(world.with(delay("10s")), 3).await;
    let start = world.now;
    let after = |time: &str| interval(time).after(start);
    assert_eq!(world.lease(1).await.len(), 1);
    world.now = after("10s");
    world.stats("c").await; // so that late it is, at least
    world.now = after("9s");
    let at = if world.lease(1).await.is_empty() { "0s" } else { "10s" };
    world.now = after("19s");
    let gap_is_kept = at == "0s" || world.lease(1).await.is_empty();
    assert!(gap_is_kept, "asked at 10 s at the earliest, and again at 19 s");
}

pub async fn ports_protocols_and_collections_share_the_patience_of_a_host(world: World) {
    let mut world = pages(world.with(delay("10s")), 1).await;
    let anywhere = |profile: &mut Profile| profile.scope = Scope::Any;
    world.configure([planned("d"), profile("d", "d", anywhere), seed("https://d.example/", ["d"])]).await;
    world.find_for("d", "https://d.example/", ["http://x.example:8080/1"]).await;
    assert_eq!(world.lease(9).await.len(), 1);
    assert_eq!(world.lease(9).await, []);
    world.pass("10s");
    assert_eq!(world.lease(9).await.len(), 1);
    assert_eq!(world.host("x.example").await.in_flight, 2);
}

pub async fn www_is_a_host_of_its_own(world: World) {
    let mut world = pages(world.with(delay("10s")), 1).await;
    world.find_for("c", HOME, ["https://www.x.example/"]).await;
    assert_eq!(world.lease(9).await.len(), 2);
}

pub async fn a_final_dot_makes_no_other_host(world: World) {
    let mut world = pages(world.with(delay("10s")), 1).await;
    let dotted = ["https://x.example./0", "https://x.example.:8443/"];
    assert_eq!(world.find_for("c", HOME, dotted).await, [Action::Added; 2], "pages are told apart");
    world.reopen();
    assert_eq!(world.find_for("c", HOME, dotted).await, [Action::Kept; 2]);
    for url in dotted {
        let entry = world.the_entry("c", url).await;
        assert_eq!((entry.url.as_str(), entry.host.as_str()), (url, "x.example"));
    }
    assert_eq!(world.host("x.example").await.queued, 3);
    assert_eq!(world.lease(9).await.len(), 1, "one host, one pause");
}

pub async fn a_host_may_have_a_delay_of_its_own(world: World) {
    let mut world = pages(world.with(delay("10s")), 3).await;
    let slow = HostSettings { delay: Some(interval("1m")), ..HostSettings::default() };
    assert_eq!(world.set_host("x.example", slow.clone()).await.settings, slow);
    world.reopen();
    world.lease(1).await;
    assert_eq!(world.host("x.example").await.opens, Some(world.later("1m")));
    world
        .set_host("x.example", HostSettings { delay: Some(interval("0s")), ..HostSettings::default() })
        .await;
    world.pass("1m");
    assert_eq!(world.lease(9).await.len(), 2, "no delay at all");
}

pub async fn a_blocked_host_opens_at_its_time_or_never(world: World) {
    let mut world = pages(world, 2).await;
    let until = world.later("1h");
    world.set_host("x.example", HostSettings { blocked_until: Some(until), ..HostSettings::default() }).await;
    world.reopen();
    let host = world.host("x.example").await;
    assert_eq!((host.opens, host.gate), (Some(until), Some(Gate::Blocked)));
    world.pass_until(until);
    assert_eq!(world.lease(1).await.len(), 1);
    let never = HostSettings { blocked_until: Some(Moment::NEVER), ..HostSettings::default() };
    world.set_host("x.example", never.clone()).await;
    world.reopen();
    world.pass("10000 days");
    assert_eq!(world.lease(1).await, []);
    let none_at_all = HostSettings { in_flight: Some(0), ..HostSettings::default() };
    let none_ever = HostSettings { fetch_limit: Some(0), ..HostSettings::default() };
    for (settings, gate) in
        [(never, Gate::Blocked), (none_at_all, Gate::InFlight), (none_ever, Gate::FetchLimit)]
    {
        world.set_host("x.example", settings).await;
        let host = world.host("x.example").await;
        assert_eq!((host.opens, host.gate), (None, Some(gate)), "no date stands for never");
    }
}

pub async fn no_more_are_in_flight_than_may_be(world: World) {
    let mut world = pages(world.with(|settings| settings.politeness.in_flight = 2), 5).await;
    let leased = world.lease(9).await;
    assert_eq!(leased.len(), 2);
    world.reopen();
    let host = world.host("x.example").await;
    assert_eq!((host.in_flight, host.gate, host.opens), (2, Some(Gate::InFlight), Some(leased[0].until)));
    world.set_host("x.example", HostSettings { in_flight: Some(3), ..HostSettings::default() }).await;
    assert_eq!(world.lease(9).await.len(), 1, "one more for this host");
    world.frontier().release(&[leased[0].token, leased[1].token], world.now).await.unwrap();
    assert_eq!(world.lease(9).await.len(), 2, "what was given back counts no more");
    world.pass_until(leased[0].until);
    assert_eq!(world.host("x.example").await.in_flight, 0, "nor does what ran out");
}

pub async fn no_more_are_fetched_than_may_be(world: World) {
    let mut world = pages(world, 5).await;
    world.set_host("x.example", HostSettings { fetch_limit: Some(2), ..HostSettings::default() }).await;
    for _ in 0..2 {
        world.fetch("x").await;
        world.reopen();
    }
    let host = world.host("x.example").await;
    assert_eq!((host.fetched, host.gate), (2, Some(Gate::FetchLimit)));
    assert_eq!(world.lease(1).await, []);
    world.set_host("x.example", HostSettings { fetch_limit: Some(3), ..HostSettings::default() }).await;
    assert_eq!(world.lease(1).await.len(), 1);
}

/// What is under way counts too, or a limit of 2 would let three workers fetch at once.
pub async fn a_fetch_limit_is_kept_by_workers_at_the_same_time(world: World) {
    let mut world = pages(world, 5).await;
    world.set_host("x.example", HostSettings { fetch_limit: Some(2), ..HostSettings::default() }).await;
    assert_eq!(world.lease(9).await.len(), 2);
}

pub async fn robots_close_a_host_until_they_expire(world: World) {
    let mut world = pages(world, 2).await;
    let expires = world.later("1 day");
    let robots =
        |allowed| HostSettings { robots: Some(Robots { allowed, expires }), ..HostSettings::default() };
    world.set_host("x.example", robots(false)).await;
    world.reopen();
    assert_eq!(world.lease(1).await, []);
    let host = world.host("x.example").await;
    assert_eq!((host.opens, host.gate), (Some(expires), Some(Gate::Robots)));
    world.pass_until(expires);
    assert_eq!(world.lease(1).await.len(), 1, "they have to be read again");
    world.set_host("x.example", robots(true)).await;
    assert_eq!(world.lease(1).await.len(), 1);
}

pub async fn a_host_that_fails_is_left_alone_longer_each_time(world: World) {
    let mut world = pages(world, 30).await;
    let mut wait = 30_000;
    for failures in 1..=10 {
        let leased = world.lease_one().await;
        let report = match failures % 4 {
            0 => answered(leased.token, 429),
            1 => answered(leased.token, 503),
            2 => Report { token: leased.token.0, error: Some(FetchError::Timeout), ..Report::default() },
            _ => Report { token: leased.token.0, error: Some(FetchError::Network), ..Report::default() },
        };
        world.complete(report).await;
        world.reopen();
        let host = world.host("x.example").await;
        assert_eq!((host.failures, host.gate), (failures, Some(Gate::BackOff)));
        // Half a minute, doubled each time, at most an hour, and up to a fifth more by chance.
        let waits = host.opens.unwrap().millisecond() - world.moment().millisecond();
        assert!((wait..=wait * 6 / 5).contains(&waits), "{waits} ms after {failures} failures, not {wait}");
        wait = (wait * 2).min(3_600_000);
        assert_eq!(world.lease(1).await, []);
        world.pass_until(host.opens.unwrap());
    }
    let leased = world.lease_one().await;
    world.complete(ok(leased.token, "x")).await;
    assert_eq!(world.host("x.example").await.failures, 0, "an answer ends the row");
    assert_eq!(world.lease(1).await.len(), 1, "and it is open at once");
    let leased = world.lease_one().await;
    world.complete(answered(leased.token, 503)).await;
    let waits = world.host("x.example").await.opens.unwrap().millisecond() - world.moment().millisecond();
    assert!((30_000..=36_000).contains(&waits), "the next row starts over: {waits}");
}

pub async fn failures_that_were_under_way_together_are_one_in_a_row(world: World) {
    let mut world = pages(world, 5).await;
    for (failures, wait) in [(1, 30_000), (2, 60_000)] {
        let leased = world.lease(2).await;
        assert_eq!(leased.len(), 2);
        for leased in leased {
            world.complete(answered(leased.token, 503)).await;
            let host = world.host("x.example").await;
            let waits = host.opens.unwrap().millisecond() - world.moment().millisecond();
            assert_eq!(host.failures, failures);
            assert!((wait..=wait * 6 / 5).contains(&waits), "{waits} ms after {failures} in a row");
        }
        let opens = world.host("x.example").await.opens.unwrap();
        world.pass_until(opens);
    }
}

pub async fn a_success_that_was_under_way_does_not_end_the_pause(world: World) {
    let mut world = pages(world, 3).await;
    let leased = world.lease(2).await;
    world.complete(answered(leased[0].token, 503)).await;
    let opens = world.host("x.example").await.opens;
    world.complete(ok(leased[1].token, "x")).await;
    assert_eq!(world.host("x.example").await.opens, opens, "the host asked for it");
    assert_eq!(world.lease(1).await, []);
}

pub async fn a_page_that_fails_is_not_the_fault_of_its_host(world: World) {
    for code in [404, 410, 403, 500] {
        let mut world = pages(world.another(), 3).await;
        let leased = world.lease_one().await;
        world.complete(answered(leased.token, code)).await;
        let host = world.host("x.example").await;
        assert_eq!((host.failures, host.opens), (0, None), "{code}");
    }
}

pub async fn a_host_that_is_not_known_yet_can_be_set(mut world: World) {
    let settings = HostSettings { delay: Some(interval("7s")), ..HostSettings::default() };
    let view = world.set_host("x.example", settings.clone()).await;
    assert_eq!((view.host.as_str(), view.queued, view.in_flight, view.fetched), ("x.example", 0, 0, 0));
    let mut world = pages(world, 2).await;
    world.lease(1).await;
    assert_eq!(world.host("x.example").await.opens, Some(world.later("7s")));
}

pub async fn settings_are_replaced_as_a_whole(mut world: World) {
    let both = HostSettings { delay: Some(interval("7s")), in_flight: Some(1), ..HostSettings::default() };
    world.set_host("x.example", both).await;
    let one = HostSettings { in_flight: Some(5), ..HostSettings::default() };
    assert_eq!(world.set_host("x.example", one.clone()).await.settings, one);
}

pub async fn hosts_are_listed_in_the_order_they_became_known(world: World) {
    let mut world = pages(world, 2).await;
    world.find_for("c", HOME, ["https://b.example/", "https://a.example/"]).await;
    world.set_host("set.example", HostSettings::default()).await;
    world.reopen();
    let all = HostFilter { limit: 9, ..HostFilter::default() };
    let told = |views: Vec<crate::verbs::HostView>| -> Vec<(String, u64)> {
        views.into_iter().map(|view| (view.host, view.queued)).collect()
    };
    let want = |rows: &[(&str, u64)]| {
        rows.iter().map(|(host, queued)| ((*host).to_owned(), *queued)).collect::<Vec<_>>()
    };
    let views = world.frontier().hosts(&all, world.now).await.unwrap();
    assert_eq!(
        told(views),
        want(&[("x.example", 2), ("b.example", 1), ("a.example", 1), ("set.example", 0)])
    );
    let some = HostFilter { skip: 1, limit: 2, ..HostFilter::default() };
    let views = world.frontier().hosts(&some, world.now).await.unwrap();
    assert_eq!(told(views), want(&[("b.example", 1), ("a.example", 1)]));
    let of = HostFilter { collection: Some("c".into()), limit: 9, ..HostFilter::default() };
    let views = world.frontier().hosts(&of, world.now).await.unwrap();
    assert_eq!(views.len(), 3, "those with entries of the collection");
    let none = HostFilter { collection: Some("nowhere".into()), limit: 9, ..HostFilter::default() };
    let error = world.frontier().hosts(&none, world.now).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { kind: "collection", .. }), "{error}");
}

pub async fn only_plain_collections_have_hosts_of_their_own(world: World) {
    let mut world = pages(world, 1).await;
    let change = |collection: &str| HostChange {
        key: "x.example".into(),
        collection: Some(collection.into()),
        sets: vec![Setting::BlockedUntil(Some(Moment::NEVER))],
        only_known: false,
    };
    let free = HostChange { collection: None, ..change("") };
    // All of the call or nothing: the first change is good.
    for bad in ["c", "nowhere"] {
        let error = world.frontier().set_hosts(&[free.clone(), change(bad)], world.now).await.unwrap_err();
        assert!(error.to_string().contains(bad), "{error}");
        assert_eq!(world.host("x.example").await.settings, HostSettings::default());
    }
}
