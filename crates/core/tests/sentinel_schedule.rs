//! The adaptive sentinel: when a page is scanned again, and what one cycle scans.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use core::cmp::Reverse;

use common::{after, ago, cases, now};
use forager_core::sentinel::Risk;
use forager_core::sentinel::manifest::{Manifest, ManifestConfig, Percent, Why};
use forager_core::sentinel::schedule::{
    Failure, Jitter, LONGEST, MaxInterval, NextScan, SHORTEST, ScheduleConfig, interval, next_scan, next_try,
};
use forager_core::sentinel::velocity::Velocity;
use forager_core::time::Interval;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rand_pcg::Pcg64;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct IntervalCase {
    velocity: Velocity,
    risk: Risk,
    expected_hours: f64,
}

fn velocity(value: f64) -> Velocity {
    Velocity::new(value).unwrap()
}

fn without_jitter() -> ScheduleConfig {
    ScheduleConfig { jitter: Jitter::NONE, ..ScheduleConfig::default() }
}

/// The shortest and the longest of many intervals, in hours.
fn range(value: f64, risk: Risk, config: &ScheduleConfig) -> (f64, f64) {
    let mut rng = Pcg64::new(1, 1);
    let hours =
        (0..2000).map(|_| next_scan(velocity(value), risk, config, now(), &mut rng).interval.as_hours_f64());
    hours.fold((f64::MAX, f64::MIN), |(low, high), hours| (low.min(hours), high.max(hours)))
}

#[test]
fn every_case_has_its_interval() {
    for (file, at_least) in [("sentinel", 16), ("more-sentinel", 14)] {
        for case in cases::<IntervalCase>(file, "interval_without_jitter", at_least) {
            let IntervalCase { velocity, risk, expected_hours } = case;
            let next = next_scan(velocity, risk, &without_jitter(), now(), &mut Pcg64::new(1, 1));
            let hours = next.interval.as_hours_f64();
            assert!(
                (hours - expected_hours).abs() < 1e-3,
                "{velocity:?} {risk}: {hours} h, not {expected_hours} h"
            );
            assert_eq!(next.due, next.interval.after(now()), "{velocity:?} {risk}");
        }
    }
}

#[test]
fn the_random_part_moves_an_interval_as_far_as_it_is_told() {
    let default = ScheduleConfig::default();
    let strict = ScheduleConfig { strict_bounds: true, ..default };
    let wide = ScheduleConfig { jitter: Jitter::new(0.5).unwrap(), ..default };
    let sentinel = ScheduleConfig::sentinel();
    let high_at_most = |hours| MaxInterval { high: Some(Interval::hours(hours)), ..MaxInterval::default() };
    let capped = ScheduleConfig { max_interval: high_at_most(50), ..default };
    let capped_long = ScheduleConfig { max_interval: high_at_most(900), ..without_jitter() };
    let capped_short = ScheduleConfig { max_interval: high_at_most(1), strict_bounds: true, ..default };
    let table = [
        ("ten per cent either way", 0.1, Risk::Medium, default, (36.0, 44.0)),
        ("none at all", 0.1, Risk::Medium, without_jitter(), (40.0, 40.0)),
        ("half either way", 0.1, Risk::Medium, wide, (20.0, 60.0)),
        ("below the shortest", 0.5, Risk::High, default, (3.6, 4.4)),
        ("strict: not below the shortest", 0.5, Risk::High, strict, (4.0, 4.4)),
        ("above the longest", 0.01, Risk::Low, default, (648.0, 792.0)),
        ("strict: not above the longest", 0.01, Risk::Low, strict, (648.0, 720.0)),
        ("a maximum is never passed", 0.01, Risk::High, capped, (45.0, 50.0)),
        ("where there is a maximum, jitter only shortens", 0.1, Risk::High, capped, (18.0, 20.0)),
        ("a maximum of another risk", 0.1, Risk::Medium, capped, (36.0, 44.0)),
        ("a maximum lengthens nothing", 0.01, Risk::High, capped_long, (200.0, 200.0)),
        ("strict, with a maximum under the shortest", 0.01, Risk::High, capped_short, (1.0, 1.0)),
        ("sentinel: critical within 4 h", 0.01, Risk::Critical, sentinel, (3.6, 4.0)),
        ("sentinel: the others as ever", 0.01, Risk::High, sentinel, (180.0, 220.0)),
        ("the bare function lets critical pages wait", 0.01, Risk::Critical, default, (90.0, 110.0)),
    ];
    for (name, velocity, risk, config, (lowest, highest)) in table {
        let (low, high) = range(velocity, risk, &config);
        // Two thousand draws come near both ends, and never pass them by more than a rounded second.
        let near = (highest - lowest) * 0.02 + 0.001;
        assert!((lowest - 0.001..=lowest + near).contains(&low), "{name}: down to {low} h");
        assert!((highest - near..=highest + 0.001).contains(&high), "{name}: up to {high} h");
    }
}

#[test]
fn one_random_source_gives_one_schedule() {
    let scan = |seed| {
        next_scan(velocity(0.1), Risk::Low, &ScheduleConfig::default(), now(), &mut Pcg64::new(seed, 1))
    };
    assert_eq!(scan(7), scan(7));
    assert_ne!(scan(7), scan(8));
}

#[test]
fn an_interval_says_what_it_is_made_of() {
    let sentinel = ScheduleConfig { jitter: Jitter::NONE, ..ScheduleConfig::sentinel() };
    let table: [(f64, Risk, ScheduleConfig, &[&str]); 4] = [
        (0.1, Risk::Medium, without_jitter(), &["velocity and MEDIUM risk give 40h"]),
        (0.5, Risk::Critical, without_jitter(), &["velocity and CRITICAL risk give 2h", "at least 4h"]),
        (0.01, Risk::Low, without_jitter(), &["velocity and LOW risk give 800h", "at most 720h"]),
        (
            0.01,
            Risk::Critical,
            sentinel,
            &["velocity and CRITICAL risk give 100h", "at most 4h for CRITICAL risk"],
        ),
    ];
    for (value, risk, config, want) in table {
        let next = next_scan(velocity(value), risk, &config, now(), &mut Pcg64::new(1, 1));
        assert_eq!(next.reasons.iter().map(ToString::to_string).collect::<Vec<_>>(), want);
    }
    let jittered =
        next_scan(velocity(0.1), Risk::Low, &ScheduleConfig::default(), now(), &mut Pcg64::new(1, 1));
    let last = jittered.reasons.last().unwrap().to_string();
    assert_eq!(last, format!("jitter moves it to {}", jittered.interval));
}

#[test]
fn a_scan_after_the_end_of_time_is_at_its_end() {
    let next = next_scan(velocity(0.1), Risk::Low, &without_jitter(), Timestamp::MAX, &mut Pcg64::new(1, 1));
    assert_eq!(next.due, Timestamp::MAX);
}

#[test]
fn a_failure_waits_longer_each_time() {
    let page = (velocity(0.1), Risk::Medium); // healthy: every 40 h
    let (transient, dead) = (Failure::Transient, Failure::Dead);
    let hours = |hours| Some(Interval::hours(hours));
    let table = [
        ("transient, the first", transient, 0, None, 1),
        ("transient, the second", transient, 1, None, 2),
        ("transient, the tenth", transient, 9, None, 512),
        ("transient, capped", transient, 10, None, 720),
        ("transient, for ever", transient, u32::MAX, None, 720),
        ("dead, the first", dead, 0, None, 40),
        ("dead, the second", dead, 1, None, 80),
        ("dead, the fifth", dead, 4, None, 640),
        ("dead, capped", dead, 5, None, 720),
        ("dead, for ever", dead, u32::MAX, None, 720),
        ("Retry-After lengthens", transient, 0, hours(3), 3),
        ("Retry-After never shortens", transient, 3, hours(3), 8),
        ("Retry-After as long as the wait", transient, 3, hours(8), 8),
        ("Retry-After beyond the longest", transient, 0, Some(Interval::MAX), 720),
        ("Retry-After of nothing", transient, 0, hours(0), 1),
        ("Retry-After for a dead page", dead, 0, hours(100), 100),
        ("Retry-After shorter than a dead page waits", dead, 0, hours(1), 40),
    ];
    for (name, failure, failures, retry_after, want) in table {
        let NextScan { interval, due, .. } =
            next_try(failure, failures, retry_after, page, &without_jitter(), now());
        assert_eq!(interval, Interval::hours(want), "{name}");
        assert_eq!(due, interval.after(now()), "{name}");
    }
}

#[test]
fn a_failure_says_why_it_waits() {
    let page = (velocity(0.1), Risk::Medium);
    let say = |failure, retry_after| {
        let next = next_try(failure, 2, retry_after, page, &without_jitter(), now());
        next.reasons.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let asked = Some(Interval::hours(9));
    let transient = "transient error after 2 others: 1h doubled each time";
    assert_eq!(say(Failure::Transient, asked), [transient, "the server asks for 9h"]);
    assert_eq!(say(Failure::Transient, Some(Interval::hours(1))), [transient]);
    let dead = "dead page after 2 other errors: normal interval doubled each time";
    assert_eq!(say(Failure::Dead, asked), ["velocity and MEDIUM risk give 40h", dead]);
}

#[test]
fn statuses_tell_transient_failures_from_dead_pages() {
    let transient = [408, 425, 429, 500, 502, 503, 504, 599];
    let dead = [400, 401, 403, 404, 410, 451, 499, 600, 999, u16::MAX];
    let neither = [0, 100, 200, 204, 301, 304, 399];
    for status in transient {
        assert_eq!(Failure::of_status(status), Some(Failure::Transient), "{status}");
    }
    for status in dead {
        assert_eq!(Failure::of_status(status), Some(Failure::Dead), "{status}");
    }
    for status in neither {
        assert_eq!(Failure::of_status(status), None, "{status}");
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    for share in [-0.1, 1.0, f64::NAN] {
        assert_eq!(Jitter::new(share), None, "{share}");
    }
    assert_eq!(Percent::new(101), None);
    let refused = [
        r#"{"jitter": 1}"#,
        r#"{"jitters": 0}"#,
        r#"{"max_interval": {"severe": "1h"}}"#,
        r#"{"max_interval": {"low": "1 month"}}"#,
    ];
    for text in refused {
        assert!(serde_json::from_str::<ScheduleConfig>(text).is_err(), "{text}");
    }
    assert!(serde_json::from_str::<ManifestConfig>(r#"{"reserved_percent": 101}"#).is_err());
    let read = |text: &str| serde_json::from_str::<ScheduleConfig>(text).unwrap();
    let by_hand = read(r#"{"max_interval": {"critical": "4h"}}"#);
    assert_eq!(by_hand.max_interval, ScheduleConfig::sentinel().max_interval);
    assert_eq!(read(r#"{"preset": "sentinel"}"#), ScheduleConfig::sentinel());
    let said =
        read(r#"{"preset": "sentinel", "max_interval": {"critical": "1h", "low": "24h"}, "jitter": 0}"#);
    let hours = |hours| Some(Interval::hours(hours));
    let longest = MaxInterval { critical: hours(1), low: hours(24), ..MaxInterval::default() };
    assert_eq!(
        (said.max_interval, said.jitter),
        (longest, Jitter::NONE),
        "what is said wins over the preset"
    );
}

/// An item of a manifest: its number, its risk and when it is due.
type Item = (usize, Risk, Timestamp);

fn choose(config: &ManifestConfig, items: &[Item]) -> Vec<(usize, Why)> {
    let mut manifest = Manifest::new(config, now());
    for &(number, risk, due) in items {
        manifest.push(number, risk, due);
    }
    manifest.finish().into_iter().map(|chosen| (chosen.item, chosen.why)).collect()
}

/// The rules word for word, with everything in memory.
fn choose_by_sorting(limit: usize, reserved: usize, items: &[Item]) -> Vec<(usize, Why)> {
    let mut due: Vec<(usize, &Item)> = items.iter().enumerate().filter(|(_, item)| item.2 <= now()).collect();
    let by_risk = |&(arrival, &(_, risk, due)): &(usize, &Item)| (Reverse(risk), due, arrival);
    due.sort_by_key(by_risk);
    let mut rest = due.split_off((limit - reserved).min(due.len()));
    rest.sort_by_key(|&(arrival, &(_, _, due))| (due, arrival));
    rest.truncate(reserved);
    let mut chosen: Vec<_> = due.into_iter().map(|item| (item, Why::Risk)).collect();
    chosen.extend(rest.into_iter().map(|item| (item, Why::OldestDue)));
    chosen.sort_by_key(|(item, _)| by_risk(item));
    chosen.into_iter().map(|((_, item), why)| (item.0, why)).collect()
}

#[test]
fn a_manifest_goes_by_risk_then_due_time_then_arrival() {
    let items = [
        (0, Risk::Low, ago("9h")),
        (1, Risk::Critical, ago("1h")),
        (2, Risk::High, ago("2h")),
        (3, Risk::Critical, ago("3h")),
        (4, Risk::Critical, ago("1h")),
        (5, Risk::Medium, now()),
        (6, Risk::Critical, after("1ns")),
    ];
    let order: Vec<_> =
        choose(&ManifestConfig::default(), &items).into_iter().map(|(item, _)| item).collect();
    assert_eq!(order, [3, 1, 4, 2, 5, 0], "what is due now is due, 1 ns later is not");
}

#[test]
fn a_tenth_of_a_manifest_is_for_the_oldest_due() {
    // A thousand critical items, and a hundred of low risk that have waited far longer.
    let item = |number: usize, risk, hours: usize| (number, risk, ago(&format!("{hours}h")));
    let mut items: Vec<Item> = (0..1000).map(|number| item(number, Risk::Critical, 1)).collect();
    items.extend((0..100).map(|number| item(1000 + number, Risk::Low, 100 + number)));
    let chosen = choose(&ManifestConfig::default(), &items);
    assert_eq!(chosen.len(), 500);
    let (by_risk, oldest) = chosen.split_at(450);
    assert!(by_risk.iter().enumerate().all(|(index, chosen)| *chosen == (index, Why::Risk)));
    let want: Vec<_> = (1050..1100).rev().map(|number| (number, Why::OldestDue)).collect();
    assert_eq!(oldest, want);
}

#[test]
fn reserved_places_are_rounded_up_and_never_the_only_one() {
    // All items critical but the last, which is the oldest: is it chosen?
    let mut items: Vec<Item> = (0..600).map(|number| (number, Risk::Critical, ago("1h"))).collect();
    items.push((600, Risk::Low, ago("2h")));
    let table = [
        ("default", 500, 10, 450),
        ("a share of less than one place is one", 5, 10, 4),
        ("rounded up", 11, 10, 9),
        ("never the only place", 1, 100, 1),
        ("one always goes by risk", 10, 100, 1),
        ("none reserved", 10, 0, 10),
        ("no places", 0, 10, 0),
    ];
    for (name, limit, percent, by_risk) in table {
        let config = ManifestConfig { limit, reserved_percent: Percent::new(percent).unwrap() };
        let chosen = choose(&config, &items);
        assert_eq!(chosen.len(), limit, "{name}");
        assert_eq!(chosen.iter().filter(|(_, why)| *why == Why::Risk).count(), by_risk, "{name}");
        assert_eq!(chosen.contains(&(600, Why::OldestDue)), by_risk < limit, "{name}");
    }
}

fn risks() -> impl Strategy<Value = Risk> {
    prop::sample::select(Risk::ALL.to_vec())
}

prop_compose! {
    fn configs()(
        share in 0.0..0.999_f64,
        strict_bounds in any::<bool>(),
        hours in prop::collection::vec(prop::option::of(1..1000_u32), 4),
    ) -> ScheduleConfig {
        let max = |index: usize| hours[index].map(Interval::hours);
        let max_interval = MaxInterval { low: max(0), medium: max(1), high: max(2), critical: max(3) };
        ScheduleConfig { preset: None, jitter: Jitter::new(share).unwrap(), strict_bounds, max_interval }
    }
}

proptest! {
    #[test]
    fn an_interval_stays_within_its_bounds(
        value in 0.0..=1.0_f64,
        risk in risks(),
        config in configs(),
        seed in any::<u128>(),
    ) {
        let (plain, _) = interval(velocity(value), risk, &without_jitter());
        prop_assert!((SHORTEST..=LONGEST).contains(&plain));
        let default = ScheduleConfig::default();
        let next = next_scan(velocity(value), risk, &default, now(), &mut Pcg64::new(seed, 1));
        let share = next.interval.as_secs_f64() / plain.as_secs_f64();
        prop_assert!((0.8999..=1.1001).contains(&share), "{share}");
        let max = match risk {
            Risk::Low => config.max_interval.low,
            Risk::Medium => config.max_interval.medium,
            Risk::High => config.max_interval.high,
            Risk::Critical => config.max_interval.critical,
        };
        let next = next_scan(velocity(value), risk, &config, now(), &mut Pcg64::new(seed, 1));
        prop_assert!(max.is_none_or(|max| next.interval <= max), "a maximum holds after jitter too");
        if config.strict_bounds {
            prop_assert!(next.interval <= LONGEST);
            prop_assert!(next.interval >= max.map_or(SHORTEST, |max| SHORTEST.min(max)));
        }
    }

    /// More change or more risk never means a longer wait.
    #[test]
    fn an_interval_is_monotone(a in 0.0..=1.0_f64, b in 0.0..=1.0_f64, x in risks(), y in risks()) {
        let of = |value, risk| interval(velocity(value), risk, &without_jitter()).0;
        prop_assert!(of(a.max(b), x) <= of(a.min(b), x));
        prop_assert!(of(a, x.max(y)) <= of(a, x.min(y)));
    }

    #[test]
    fn a_dead_page_is_never_polled_more_often_than_a_healthy_one(
        value in 0.0..=1.0_f64,
        risk in risks(),
        failures in prop_oneof![0..12_u32, any::<u32>()],
        config in configs(),
        asked in prop::option::of(0..2000_u32),
    ) {
        let page = (velocity(value), risk);
        let asked = asked.map(Interval::hours);
        let (healthy, _) = interval(page.0, risk, &config);
        let dead = next_try(Failure::Dead, failures, asked, page, &config, now()).interval;
        prop_assert!((healthy..=LONGEST).contains(&dead));
        let transient_after =
            |failures| next_try(Failure::Transient, failures, asked, page, &config, now()).interval;
        let transient = transient_after(failures);
        prop_assert!((Interval::hours(1)..=LONGEST).contains(&transient));
        prop_assert!(transient_after(failures.saturating_add(1)) >= transient);
        prop_assert!(asked.is_none_or(|asked| transient >= asked.min(LONGEST) && dead >= asked.min(LONGEST)));
    }

    #[test]
    fn a_manifest_is_what_sorting_everything_gives(
        items in prop::collection::vec((risks(), -3..8_i64), 0..60),
        limit in 0..20_usize,
        percent in 0..=100_u8,
    ) {
        let items: Vec<Item> = (0..)
            .zip(items)
            .map(|(number, (risk, hours))| (number, risk, now() - SignedDuration::from_hours(hours)))
            .collect();
        let config = ManifestConfig { limit, reserved_percent: Percent::new(percent).unwrap() };
        let reserved = (limit * usize::from(percent)).div_ceil(100).min(limit.saturating_sub(1));
        prop_assert_eq!(choose(&config, &items), choose_by_sorting(limit, reserved, &items));
    }
}
