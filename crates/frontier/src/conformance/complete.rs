//! What came of a fetch: counters, velocity, the next due time, and the events in the same call.

use forager_core::order::Order;
use forager_core::scope::Profile;

use super::World;
use super::world::*;
use crate::catalog::Change;
use crate::entry::{State, Token, Visit};
use crate::moment::Moment;
use crate::verbs::{Completed, Difference, Event, FetchError, Outcome, Presence, Report};

const HOME: &str = "https://a.example/";

async fn site(mut world: World) -> World {
    world.harvest("c", Order::Hierarchy, HOME).await;
    world.start_seed(HOME).await;
    world
}

/// Every page is fetched so many times.
async fn limited(mut world: World, times: u32) -> World {
    let limited = |profile: &mut Profile| profile.length = Some(times);
    world.configure([planned("c"), profile("c", "c", limited), seed(HOME, ["c"])]).await;
    world.start_seed(HOME).await;
    world
}

/// Waits until the homepage is due and its host open, leases it, and reports.
async fn when_due(world: &mut World, report: impl FnOnce(Token) -> Report) -> Completed {
    let (entry, host) = (world.the_entry("c", HOME).await, world.host("a.example").await);
    world.pass_until(entry.due.max(host.opens.unwrap_or_default()).max(world.moment()));
    let leased = world.lease_one().await;
    world.complete(report(leased.token)).await
}

/// What a worker reports of a lease.
type ReportOf = Box<dyn Fn(Token) -> Report>;

fn error(error: FetchError) -> impl Fn(Token) -> Report {
    move |token| Report { token: token.0, error: Some(error), ..Report::default() }
}

fn status(status: u16) -> impl Fn(Token) -> Report {
    move |token| answered(token, status)
}

pub async fn a_success_is_scheduled_by_velocity_and_risk(world: World) {
    // 4 h / (0.5 × factor), within 4 h and 720 h.
    let cases = [("x", "8h"), ("archive/x", "16h"), ("news/x", "4h"), ("zakon/x", "4h")];
    for (path, interval) in cases {
        let mut world = world.another();
        world.harvest("c", Order::Hierarchy, HOME).await;
        let url = format!("https://a.example/{path}");
        world.find_for("c", HOME, [&url]).await;
        let done = world.fetch("x").await;
        assert_eq!((done.outcome, done.changed), (Outcome::Again, false), "{path}");
        assert_eq!(done.due, Some(world.later(interval)), "{path}");
        let entry = world.the_entry("c", &url).await;
        assert_eq!((entry.state, Some(entry.due)), (State::Queued, done.due), "{path}");
        assert_eq!(entry.last_fetch, Some(world.moment()), "{path}");
    }
}

pub async fn velocity_is_learned_from_the_fourth_scan_on(world: World) {
    let mut world = site(world).await;
    let velocities = [("a", 0.5), ("b", 0.5), ("c", 0.5), ("d", 0.65), ("d", 0.585), ("e", 0.7095)];
    for (number, (content, velocity)) in (1..).zip(velocities) {
        when_due(&mut world, |token| ok(token, content)).await;
        world.reopen();
        let record = world.the_entry("c", HOME).await.record;
        assert_eq!((record.velocity, record.scans), (velocity, number), "scan {number}");
    }
}

pub async fn the_first_fetch_is_never_a_change(world: World) {
    let mut world = site(world).await;
    let leased = world.lease_one().await;
    let insists = Report { changed: Some(true), ..ok(leased.token, "one") };
    assert!(!world.complete(insists).await.changed);
    assert_eq!(world.events().await, []);
}

pub async fn a_change_is_told_in_the_same_call(world: World) {
    let mut world = site(world).await;
    world.fetch("one").await;
    world.pass("8h");
    assert!(world.fetch("two").await.changed);
    let (entry, events) = (world.the_entry("c", HOME).await, world.events().await);
    assert_eq!(entry.record.fingerprint.as_deref(), Some("two"));
    assert_eq!(entry.record.last_changed, Some(world.moment()));
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].position, events[0].at, events[0].collection.as_str()), (0, world.moment(), "c"));
    assert_eq!(events[0].subject, HOME);
    assert_eq!(
        events[0].event,
        Event::Changed {
            from: Some("one".into()),
            to: Some("two".into()),
            difference: Difference::default()
        }
    );
    assert_eq!(world.stats("c").await.tally.changes, 1);
    world.reopen();
    assert_eq!(world.events().await, events);
}

pub async fn whether_it_changed_is_told_by_the_worker_or_the_fingerprint(world: World) {
    let said = |changed, fingerprint: Option<&str>, code| {
        let fingerprint = fingerprint.map(ToOwned::to_owned);
        move |token: Token| Report { fingerprint, changed, ..answered(token, code) }
    };
    let cases = [
        ("same fingerprint", None, Some("one"), 200, false, "one"),
        ("other fingerprint", None, Some("two"), 200, true, "two"),
        ("no fingerprint", None, None, 200, false, "one"),
        ("the worker says it did", Some(true), Some("one"), 200, true, "one"),
        ("the worker says it did not", Some(false), Some("two"), 200, false, "two"),
        ("the worker says it did, without fingerprint", Some(true), None, 200, true, "one"),
        ("304 is never a change", None, Some("two"), 304, false, "one"),
        ("304, whatever the worker says", Some(true), None, 304, false, "one"),
    ];
    for (name, changed, fingerprint, code, want, kept) in cases {
        let mut world = site(world.another()).await;
        world.fetch("one").await;
        let done = when_due(&mut world, said(changed, fingerprint, code)).await;
        assert_eq!(done.changed, want, "{name}");
        let record = world.the_entry("c", HOME).await.record;
        assert_eq!((record.fingerprint.as_deref(), record.scans), (Some(kept), 2), "{name}");
        assert_eq!(world.events().await.len(), usize::from(want), "{name}");
    }
}

pub async fn a_long_fingerprint_is_bounded_and_still_compares(world: World) {
    let mut world = site(world).await;
    let long = "f".repeat(5000);
    world.fetch(&long).await;
    let kept = world.the_entry("c", HOME).await.record.fingerprint.unwrap();
    assert!(kept.len() <= 512, "{} bytes", kept.len());
    let done = when_due(&mut world, |token| ok(token, &long)).await;
    assert!(!done.changed, "the same content");
}

pub async fn failures_touch_nothing_that_was_learned(world: World) {
    let mut world = site(world).await;
    for content in ["a", "b", "c", "d"] {
        when_due(&mut world, |token| ok(token, content)).await;
    }
    let learned = world.the_entry("c", HOME).await.record;
    for (number, report) in (1..).zip([
        Box::new(error(FetchError::Timeout)) as ReportOf,
        Box::new(error(FetchError::Network)),
        Box::new(status(500)),
        Box::new(status(503)),
        Box::new(status(429)),
    ]) {
        let done = when_due(&mut world, report).await;
        assert_eq!((done.outcome, done.changed), (Outcome::Again, false));
        let record = world.the_entry("c", HOME).await.record;
        assert_eq!((record.velocity, record.scans), (learned.velocity, learned.scans), "failure {number}");
        assert_eq!((&record.fingerprint, record.last_changed), (&learned.fingerprint, learned.last_changed));
        assert_eq!(record.errors, number);
    }
}

pub async fn counters_count_failures_in_a_row(world: World) {
    let mut world = site(world).await;
    let steps: [(u16, u32, u32); 8] = [
        (500, 1, 0),
        (503, 2, 0),
        (404, 0, 1),
        (410, 0, 2),
        (502, 1, 2),
        (200, 0, 0),
        (404, 0, 1),
        (304, 0, 0),
    ];
    for (code, errors, not_found) in steps {
        when_due(&mut world, status(code)).await;
        let record = world.the_entry("c", HOME).await.record;
        assert_eq!((record.errors, record.not_found), (errors, not_found), "after {code}");
    }
}

pub async fn a_transient_failure_waits_an_hour_and_doubles(world: World) {
    let mut world = site(world).await;
    for (number, wait) in
        (0..).zip(["1h", "2h", "4h", "8h", "16h", "32h", "64h", "128h", "256h", "512h", "720h", "720h"])
    {
        let report = if number % 2 == 0 { status(500) } else { status(502) };
        let done = when_due(&mut world, report).await;
        assert_eq!(
            (done.outcome, done.due),
            (Outcome::Again, Some(world.later(wait))),
            "{wait}: {}",
            done.rule
        );
    }
    let done = when_due(&mut world, |token| ok(token, "x")).await;
    assert_eq!(done.due, Some(world.later("8h")), "and a success ends it");
}

pub async fn a_page_that_is_gone_is_never_polled_more_often_than_a_healthy_one(world: World) {
    let mut world = site(world).await;
    for (code, wait) in [(404, "8h"), (410, "16h"), (404, "32h"), (404, "64h")] {
        let done = when_due(&mut world, status(code)).await;
        assert_eq!(
            (done.outcome, done.due),
            (Outcome::Again, Some(world.later(wait))),
            "{wait}: {}",
            done.rule
        );
    }
}

pub async fn a_page_with_fetches_left_that_is_gone_waits_its_normal_interval_too(world: World) {
    let mut world = limited(world, 3).await;
    let done = world.fetch_status(404).await;
    assert_eq!(done.outcome, Outcome::Again);
    assert!(done.due >= Some(world.later("8h")), "as a healthy page would: {:?}, {}", done.due, done.rule);
}

pub async fn retry_after_lengthens_the_wait_and_never_shortens_it(world: World) {
    let cases = [("30s", "1h"), ("3h", "3h"), ("9000h", "720h")];
    for (asked, want) in cases {
        let mut world = site(world.another()).await;
        let leased = world.lease_one().await;
        let report = Report { retry_after: Some(interval(asked)), ..answered(leased.token, 429) };
        let done = world.complete(report).await;
        assert_eq!(done.due, Some(world.later(want)), "the server asks for {asked}");
        let host = world.host("a.example").await;
        let least = if asked == "9000h" { "720h" } else { asked };
        assert!(host.opens >= Some(world.later(least)), "the whole host is left alone: {:?}", host.opens);
    }
}

pub async fn a_profile_says_how_often_at_most(world: World) {
    let codes = [200, 404, 410, 403, 500, 502, 999];
    for (time, code) in ["2m", "1h", "30 days"].into_iter().flat_map(|time| codes.map(|code| (time, code))) {
        let mut world = site(world.another()).await;
        let every = changed_profile("c", "c", |profile| profile.every = Some(interval(time)));
        world.configure([every]).await;
        let done = world.fetch_status(code).await;
        assert_eq!(done.due, Some(world.later(time)), "every {time}, {code}: {}", done.rule);
        let again = when_due(&mut world, status(code)).await;
        assert_eq!(again.due, Some(world.later(time)), "every {time}, {code} again: {}", again.rule);
    }
}

pub async fn who_asks_for_a_longer_wait_than_the_profile_gets_it(world: World) {
    for (asked, want) in [("30s", "5m"), ("3h", "3h"), ("9000h", "720h")] {
        let mut world = site(world.another()).await;
        let every = changed_profile("c", "c", |profile| profile.every = Some(interval("5m")));
        world.configure([every]).await;
        let leased = world.lease_one().await;
        let report = Report { retry_after: Some(interval(asked)), ..answered(leased.token, 503) };
        let done = world.complete(report).await;
        assert_eq!(done.due, Some(world.later(want)), "the server asks for {asked}: {}", done.rule);
        let because = world.explain("c", HOME).await.due.unwrap().because;
        assert!(because.starts_with("503: every 5m (c)"), "{because}");
    }
}

pub async fn a_page_that_is_gone_and_one_that_is_back_have_changed(world: World) {
    let steps: [(u16, Option<Presence>); 12] = [
        (404, None), // it never was there
        (200, None),
        (304, None),
        (404, Some(Presence::Gone)),
        (410, None),
        (500, None),
        (404, None),
        (304, Some(Presence::Back)),
        (403, None),
        (200, None),
        (410, Some(Presence::Gone)),
        (200, Some(Presence::Back)),
    ];
    let mut world = site(world).await;
    let mut events = Vec::new();
    for (number, (code, want)) in steps.into_iter().enumerate() {
        let before = world.the_entry("c", HOME).await.record;
        let done = when_due(&mut world, status(code)).await;
        assert_eq!((done.presence, done.changed), (want, want.is_some()), "step {number}: {code}");
        let record = world.the_entry("c", HOME).await.record;
        assert_eq!(record.last_changed, before.last_changed, "nothing is learned of it");
        assert_eq!(record.history.last().unwrap().changed, want.is_some(), "step {number}: {code}");
        events.extend(want.map(|presence| Difference::default().with(Some(presence))));
    }
    let told = world.events().await.into_iter().map(|row| row.event);
    let told = told.map(|event| match event {
        Event::Changed { difference, .. } => difference,
        other => panic!("{other:?}"),
    });
    assert_eq!(told.collect::<Vec<_>>(), events);
    assert_eq!(world.stats("c").await.tally.changes, 4);
}

pub async fn disabled_meanwhile_postpones_and_never_removes(world: World) {
    for disable in [
        Change::EnableSeed(HOME.into(), false),
        Change::EnableProfile("c".into(), false),
        Change::EnableCollection("c".into(), false),
    ] {
        let mut world = site(world.another()).await;
        let leased = world.lease_one().await;
        world.configure([disable.clone()]).await;
        let done = world.complete(ok(leased.token, "x")).await;
        assert_eq!(done.outcome, Outcome::Again, "{disable:?}");
        assert!(done.due >= Some(world.later("1h")), "{disable:?}: {:?}", done.due);
        assert_eq!(world.the_entry("c", HOME).await.record.scans, 1, "{disable:?}");
    }
}

pub async fn out_of_scope_meanwhile_is_removed(world: World) {
    for change in [
        Change::RemoveSeed(HOME.into()),
        Change::RemoveProfile("c".into()),
        changed_profile("c", "c", |profile| profile.exclude = vec!["a.example".into()]),
    ] {
        let mut world = site(world.another()).await;
        let leased = world.lease_one().await;
        world.configure([change.clone()]).await;
        let done = world.complete(ok(leased.token, "x")).await;
        assert_eq!((done.outcome, done.due), (Outcome::Removed, None), "{change:?}");
        assert_eq!(world.entry("c", HOME).await, None, "{change:?}");
        assert!(matches!(
            world.events().await[..],
            [crate::verbs::EventRow { event: Event::Removed { .. }, .. }]
        ));
        world.counts_equal_a_scan("c").await;
    }
}

pub async fn another_seed_takes_over_after_a_fetch(mut world: World) {
    let inside = "https://a.example/in";
    world.configure([planned("c"), profile("p", "c", |_| {}), seed(HOME, ["p"]), seed(inside, ["p"])]).await;
    world.find_for("c", HOME, ["https://a.example/in/x"]).await;
    let leased = world.lease_one().await;
    world.configure([Change::RemoveSeed(inside.into())]).await;
    world.configure([Change::RemoveSeed(HOME.into()), seed(inside, ["p"])]).await;
    assert_eq!(world.complete(ok(leased.token, "x")).await.outcome, Outcome::Again);
    assert_eq!(world.the_entry("c", "https://a.example/in/x").await.seed.as_deref(), Some(inside));
}

pub async fn length_counts_down_and_ends_the_entry_but_not_its_history(world: World) {
    let mut world = limited(world, 3).await;
    for (code, left, outcome) in [(200, 2, Outcome::Again), (304, 1, Outcome::Again), (200, 0, Outcome::Done)]
    {
        let done = when_due(&mut world, status(code)).await;
        assert_eq!(done.outcome, outcome);
        assert_eq!(world.the_entry("c", HOME).await.record.length, Some(left));
    }
    let entry = world.the_entry("c", HOME).await;
    assert_eq!((entry.state, entry.record.history.len()), (State::Done, 3));
    world.pass("1000 days");
    assert_eq!(world.lease(1).await, []);
    assert_eq!(world.stats("c").await.done, 1);
    world.counts_equal_a_scan("c").await;
}

pub async fn an_answer_that_there_is_no_page_counts_down_too(world: World) {
    let mut world = limited(world, 1).await;
    assert_eq!(world.fetch_status(404).await.outcome, Outcome::Done);
}

pub async fn failures_do_not_count_down(world: World) {
    let mut world = limited(world, 1).await;
    assert_eq!(world.fetch_status(500).await.outcome, Outcome::Again);
    assert_eq!(world.the_entry("c", HOME).await.record.length, Some(1));
    assert_eq!(when_due(&mut world, status(200)).await.outcome, Outcome::Done);
}

pub async fn a_limited_page_is_tried_again_so_often_and_then_given_up(world: World) {
    let cases: [(&str, ReportOf, u32); 11] = [
        ("429", Box::new(status(429)), 3),
        ("503", Box::new(status(503)), 3),
        ("500", Box::new(status(500)), 5),
        ("502", Box::new(status(502)), 5),
        ("timeout", Box::new(error(FetchError::Timeout)), 5),
        ("network", Box::new(error(FetchError::Network)), 5),
        ("damaged", Box::new(error(FetchError::Damaged)), 5),
        ("403", Box::new(status(403)), 0),
        ("600", Box::new(status(600)), 0),
        ("999", Box::new(status(999)), 0),
        ("robots", Box::new(error(FetchError::Robots)), 0),
    ];
    for (name, report, tries) in cases {
        let mut world = limited(world.another(), 1).await;
        let mut wait = interval("1m").as_secs_f64();
        for number in 1..=tries {
            let done = when_due(&mut world, &report).await;
            assert_eq!(done.outcome, Outcome::Again, "{name}: try {number}, {}", done.rule);
            // A minute, doubled each time, and up to a fifth more by chance.
            let waits = seconds_until(&world, done.due);
            assert!(
                (wait..=wait * 1.2 + 1.0).contains(&waits),
                "{name}: {waits} s before try {number}, not {wait}"
            );
            wait *= 2.0;
        }
        let done = when_due(&mut world, &report).await;
        assert_eq!((done.outcome, done.due), (Outcome::Failed, None), "{name}: {}", done.rule);
        assert_eq!(world.the_entry("c", HOME).await.state, State::Failed, "{name}");
        let last = world.events().await.pop().unwrap();
        assert_eq!(last.event, Event::Failed { result: name.into() });
        world.pass("1000 days");
        assert_eq!(world.lease(1).await, [], "{name}");
        world.counts_equal_a_scan("c").await;
    }
}

pub async fn a_damaged_page_is_no_fault_of_its_host_and_its_links_count_when_it_is_given_up(world: World) {
    let mut world = limited(world, 1).await;
    for number in 1..=6 {
        let links = vec![link("https://a.example/x")];
        let damaged = |token: Token| Report { links, ..error(FetchError::Damaged)(token) };
        let done = when_due(&mut world, damaged).await;
        let host = world.host("a.example").await;
        assert_eq!((host.failures, host.gate), (0, None), "try {number}");
        let is_last = number == 6;
        assert_eq!(done.outcome, if is_last { Outcome::Failed } else { Outcome::Again }, "try {number}");
        assert_eq!(world.entry("c", "https://a.example/x").await.is_some(), is_last, "try {number}");
        assert_eq!(done.found.len(), usize::from(is_last), "try {number}");
    }
}

pub async fn the_links_of_a_page_that_times_out_count_when_it_is_given_up_if_a_part_of_it_came(world: World) {
    // What comes along with no answer at all is not of the page.
    for (status, counts_from) in [(Some(200), 6), (None, 1)] {
        let mut world = limited(world.another(), 1).await;
        for number in 1..=6 {
            let links = vec![link("https://a.example/x")];
            let late = |token: Token| Report { status, links, ..error(FetchError::Timeout)(token) };
            let done = when_due(&mut world, late).await;
            assert_eq!(done.found.len(), usize::from(number >= counts_from), "{status:?}: try {number}");
            let is_there = world.entry("c", "https://a.example/x").await.is_some();
            assert_eq!(is_there, number >= counts_from, "{status:?}: try {number}");
            if is_there {
                break;
            }
            assert_eq!(world.host("a.example").await.failures, number, "{status:?}: its host is left alone");
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a few hours")]
fn seconds_until(world: &World, due: Option<Moment>) -> f64 {
    (due.unwrap().millisecond() - world.moment().millisecond()) as f64 / 1000.0
}

pub async fn an_unlimited_page_is_never_given_up(world: World) {
    let mut world = site(world).await;
    for _ in 0..30 {
        assert_eq!(when_due(&mut world, status(503)).await.outcome, Outcome::Again);
    }
}

pub async fn history_keeps_the_last_fetches_oldest_first(world: World) {
    let mut world = site(world).await;
    let mut want = Vec::new();
    for number in 0..12_u16 {
        if number % 3 == 2 {
            when_due(&mut world, error(FetchError::Timeout)).await;
            want.push(Visit { at: world.moment(), result: "timeout".into(), changed: false });
        } else {
            let changed = when_due(&mut world, |token| ok(token, &number.to_string())).await.changed;
            want.push(Visit { at: world.moment(), result: "200".into(), changed });
        }
    }
    world.reopen();
    let history = world.the_entry("c", HOME).await.record.history;
    assert_eq!(history, want[want.len() - crate::entry::HISTORY..]);
    assert!(history[0].changed || history[1].changed);
}

pub async fn a_report_without_status_or_error_is_refused(world: World) {
    let mut world = site(world).await;
    let leased = world.lease_one().await;
    for status in [None, Some(0), Some(99)] {
        let done = world.complete(Report { token: leased.token.0, status, ..Report::default() }).await;
        assert_eq!(done.outcome, Outcome::Refused, "{status:?}");
        assert_eq!(world.the_entry("c", HOME).await.state, State::Leased, "and the lease is held on");
    }
    assert_eq!(world.complete(ok(leased.token, "x")).await.outcome, Outcome::Again);
}

pub async fn a_batch_is_answered_in_order_and_counted_once(world: World) {
    let mut world = site(world).await;
    world.find("c", HOME, ["https://a.example/1", "https://a.example/2"]).await;
    let leased = world.lease(3).await;
    let reports = [answered(leased[2].token, 404), ok(Token(77_777), "x"), ok(leased[0].token, "four")];
    let told = world.frontier().complete(&reports, world.now).await.unwrap();
    let outcomes: Vec<(Token, Outcome)> = told.iter().map(|done| (done.token, done.outcome)).collect();
    let want = [
        (leased[2].token, Outcome::Again),
        (Token(77_777), Outcome::Refused),
        (leased[0].token, Outcome::Again),
    ];
    assert_eq!(outcomes, want);
    let tally = world.stats("c").await.tally;
    assert_eq!((tally.fetches, tally.bytes, tally.changes), (2, 4, 0));
    assert_eq!(world.host("a.example").await.fetched, 2);
    world.counts_equal_a_scan("c").await;
}

pub async fn due_times_are_whole_seconds_and_never_too_early(world: World) {
    let mut world = site(world).await;
    let every = changed_profile("c", "c", |profile| profile.every = Some(interval("1h")));
    world.configure([every]).await;
    world.now = Moment::from_millisecond(world.moment().millisecond() + 1).timestamp();
    let done = world.fetch("x").await;
    let due = done.due.unwrap();
    assert_eq!(due.millisecond() % 1000, 0);
    assert!(due >= world.later("1h"), "{due} is too early");
    assert!(due.millisecond() < world.later("1h").millisecond() + 1000);
    world.pass_until(due);
    assert_eq!(world.lease(1).await.len(), 1, "and it is handed out then");
}

pub async fn jitter_stays_within_its_bounds(world: World) {
    use forager_core::sentinel::schedule::ScheduleConfig;
    let mut world = world.with(|settings| settings.sentinel = ScheduleConfig::default());
    world.harvest("c", Order::Hierarchy, HOME).await;
    let urls: Vec<String> = (0..50).map(|number| format!("https://a.example/{number}")).collect();
    world.discover(page_of_seed("c", HOME, urls.iter().map(String::as_str))).await;
    let mut waits = std::collections::BTreeSet::new();
    for leased in world.lease(50).await {
        let done = world.complete(ok(leased.token, "x")).await;
        let wait = (done.due.unwrap().millisecond() - world.moment().millisecond()) / 1000;
        assert!((25_920..=31_680).contains(&wait), "8 h, 10 % up or down: {wait} s");
        waits.insert(wait);
    }
    assert!(waits.len() > 25, "what was fetched together does not stay together");
}
