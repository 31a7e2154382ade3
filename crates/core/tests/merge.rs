//! What a rediscovery may change, the best few of a stream, and lengths of time.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{after, ago, now};
use forager_core::merge::Standing;
use forager_core::scope::Place;
use forager_core::time::{Interval, IntervalError};
use forager_core::top::Top;
use jiff::Timestamp;
use proptest::prelude::*;

fn standing(priority: u16, depth: u32, due: &str) -> Standing<u16> {
    Standing { priority, place: Place { depth, hops_off_domain: 0 }, due: ago(due) }
}

#[test]
fn a_rediscovery_changes_each_part_only_for_the_better() {
    let known = standing(500, 3, "0s");
    let table = [
        ("the same again", standing(500, 3, "0s"), known),
        ("worse in every part", standing(100, 9, "-1h"), known),
        ("higher priority", standing(800, 9, "-1h"), standing(800, 3, "0s")),
        ("lower depth", standing(100, 1, "-1h"), standing(500, 1, "0s")),
        ("due earlier", standing(100, 9, "1h"), standing(500, 3, "1h")),
        ("better in every part", standing(900, 0, "9h"), standing(900, 0, "9h")),
    ];
    for (name, again, want) in table {
        assert_eq!(known.merge(again), want, "{name}");
    }
}

#[test]
fn lengths_of_time_are_read_as_people_write_them() {
    let hours = Interval::hours;
    let table = [
        ("4h", hours(4)),
        ("90 minutes", Interval::from_secs_f64(5400.0)),
        ("1h 30m", Interval::from_secs_f64(5400.0)),
        (" 2 days ", hours(48)),
        ("1w", hours(168)),
        ("1 week 1 day", hours(192)),
        ("PT1H", hours(1)),
        ("0s", hours(0)),
        ("36500 days", Interval::MAX),
    ];
    for (text, want) in table {
        assert_eq!(text.parse(), Ok(want), "{text:?}");
        assert_eq!(want.to_string().parse(), Ok(want), "{text:?} as it is shown");
        assert_eq!(serde_json::from_str::<Interval>(&format!("{text:?}")).unwrap(), want, "{text:?} in JSON");
    }
}

#[test]
fn other_lengths_are_refused_by_their_text() {
    for text in ["", "4", "four hours", "1 month", "1y", "4h!", "now"] {
        assert_eq!(
            text.parse::<Interval>(),
            Err(IntervalError::Invalid { text: text.to_owned() }),
            "{text:?}"
        );
    }
    for text in ["-1h", "1h ago", "36501 days", "36500d 1ns"] {
        assert_eq!(
            text.parse::<Interval>(),
            Err(IntervalError::OutOfRange { text: text.to_owned() }),
            "{text:?}"
        );
    }
    assert!(serde_json::from_str::<Interval>("3600").is_err(), "a bare number says no unit");
}

#[test]
fn lengths_stay_within_their_bounds() {
    assert_eq!(Interval::hours(u32::MAX), Interval::MAX);
    let seconds = [(-1.0, 0), (f64::NAN, 0), (3599.5, 1), (f64::NEG_INFINITY, 0)];
    for (seconds, hours) in seconds {
        assert_eq!(Interval::from_secs_f64(seconds), Interval::hours(hours), "{seconds}");
    }
    assert_eq!(Interval::from_secs_f64(f64::INFINITY), Interval::MAX);
    assert_eq!(Interval::hours(1).after(now()), after("1h"));
    assert_eq!(Interval::MAX.after(Timestamp::MAX), Timestamp::MAX);
}

#[test]
fn a_length_doubles_up_to_its_limit() {
    let limit = Interval::hours(720);
    for (times, want) in [(0, 1), (1, 2), (9, 512), (10, 720), (31, 720), (u32::MAX, 720)] {
        assert_eq!(Interval::hours(1).doubled(times, limit), Interval::hours(want), "{times} times");
    }
    assert_eq!(Interval::MAX.doubled(u32::MAX, limit), limit);
    assert_eq!(Interval::hours(800).doubled(0, limit), limit);
}

#[test]
fn an_equal_key_displaces_nothing() {
    let mut top = Top::new(1);
    assert_eq!(top.push(1, "first"), None);
    assert!(!top.would_keep(&1));
    assert_eq!(top.push(1, "second"), Some((1, "second")));
    assert_eq!(top.into_sorted(), [(1, "first")]);
}

prop_compose! {
    fn standings()(priority in 0..4_u16, depth in 0..4_u32, hops_off_domain in 0..3_u32, hours in 0..4_i64)
        -> Standing<u16> {
        Standing { priority, place: Place { depth, hops_off_domain }, due: Timestamp::from_second(hours * 3600).unwrap() }
    }
}

proptest! {
    #[test]
    fn merging_is_commutative_associative_and_idempotent(
        a in standings(),
        b in standings(),
        c in standings(),
    ) {
        prop_assert_eq!(a.merge(b), b.merge(a));
        prop_assert_eq!(a.merge(b).merge(c), a.merge(b.merge(c)));
        prop_assert_eq!(a.merge(a), a);
        prop_assert_eq!(a.merge(b).merge(b), a.merge(b));
        let merged = a.merge(b);
        prop_assert!(merged.priority >= a.priority && merged.place <= a.place && merged.due <= a.due);
    }

    #[test]
    fn the_best_few_are_the_start_of_the_sorted_whole(
        keys in prop::collection::vec(0..50_u8, 0..60),
        limit in 0..20_usize,
    ) {
        let mut top = Top::new(limit);
        let mut out = Vec::new();
        for key in keys.iter().copied().zip(0_u64..) {
            let kept = top.would_keep(&key);
            let fell_out = top.push(key, ());
            prop_assert_eq!(kept, fell_out.is_none_or(|(other, ())| other != key));
            out.extend(fell_out.map(|(key, ())| key));
        }
        let mut whole: Vec<_> = keys.iter().copied().zip(0_u64..).collect();
        whole.sort_unstable();
        out.sort_unstable();
        let kept: Vec<_> = top.into_sorted().into_iter().map(|(key, ())| key).collect();
        let (best, rest) = whole.split_at(limit.min(whole.len()));
        prop_assert_eq!(kept, best);
        prop_assert_eq!(out, rest);
    }
}
