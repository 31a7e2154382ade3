//! The news score: its table row by row, its steps in time, and the ranking.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{ago, cases, now, part};
use forager_core::score::{Level, Ranking, Relevance, Scored, UrlSignals, next_change, score};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

const HOUR: i64 = 3_600_000_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    input: Value,
    expected: Expected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    url: String,
    score: u8,
    level: String,
    reasons: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Invalid {
    name: String,
    input: Value,
    /// What the message says.
    #[serde(default)]
    says: String,
}

/// A page without any term: visited two days ago, never changed, of no relevance.
fn page() -> UrlSignals<'static> {
    UrlSignals {
        url: "https://example.com/a".into(),
        visits: 0,
        last_visited: Some(ago("48h")),
        last_changed: None,
        topic_relevance: relevance(0.0),
        hub_depth: 0,
        is_hub: false,
    }
}

fn relevance(value: f64) -> Relevance {
    Relevance::new(value).unwrap()
}

#[test]
fn every_case_has_its_score_level_and_reasons() {
    for (file, at_least) in [("score", 19), ("more-score", 30)] {
        let now: Timestamp = part(file, "now");
        for Case { name, input, expected } in cases(file, "cases", at_least) {
            let text = input.to_string();
            let signals: UrlSignals =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let scored = score(&signals, now);
            assert_eq!(signals.url, expected.url, "{name}: url");
            assert_eq!(scored.score, expected.score, "{name}: score");
            assert_eq!(
                serde_json::to_value(scored.level()).unwrap(),
                expected.level.as_str(),
                "{name}: level"
            );
            let reasons: Vec<String> = scored.reasons().map(|reason| reason.to_string()).collect();
            assert_eq!(reasons, expected.reasons, "{name}: reasons");
        }
    }
}

#[test]
fn invalid_signals_are_errors_that_name_the_value() {
    for (file, at_least) in [("score", 5), ("more-score", 15)] {
        for Invalid { name, input, says } in cases(file, "invalid", at_least) {
            let text = input.to_string();
            match serde_json::from_str::<UrlSignals>(&text) {
                Ok(signals) => panic!("{name}: accepted as {signals:?}"),
                Err(error) => assert!(error.to_string().contains(&says), "{name}: {error}"),
            }
        }
    }
}

#[test]
fn no_nan_becomes_a_relevance() {
    for value in [f64::NAN, f64::INFINITY, -f64::INFINITY, -0.000_1, 1.000_1] {
        assert_eq!(Relevance::new(value), None, "{value}");
    }
}

#[test]
fn every_relevance_of_three_decimals_rounds_half_up() {
    for thousandths in 0..=1000_u32 {
        let signals = UrlSignals { topic_relevance: relevance(f64::from(thousandths) / 1000.0), ..page() };
        let points = (thousandths * 15 + 500) / 1000;
        assert_eq!(u32::from(score(&signals, now()).score), 50 + points, "relevance {thousandths}/1000");
    }
}

#[test]
fn levels_begin_at_80_60_40_and_20() {
    let levels = [
        (100, Level::VeryHigh),
        (80, Level::VeryHigh),
        (79, Level::High),
        (60, Level::High),
        (59, Level::Medium),
        (40, Level::Medium),
        (39, Level::Low),
        (20, Level::Low),
        (19, Level::VeryLow),
        (0, Level::VeryLow),
    ];
    for (score, level) in levels {
        assert_eq!(Level::of(score), level, "{score}");
    }
}

#[test]
fn the_score_is_50_and_its_terms() {
    let signals = UrlSignals { last_changed: Some(ago("1h")), is_hub: true, hub_depth: 4, ..page() };
    let Scored { score, terms } = score(&signals, now());
    assert_eq!(terms.map(|term| term.adds), [0, 20, 0, 10, -5]);
    assert_eq!(score, 75);
}

/// A name, how long ago the page was visited and changed, and how long until its score differs.
type Row = (&'static str, Option<&'static str>, Option<&'static str>, Option<&'static str>);

#[test]
fn the_next_change_is_the_next_step_of_the_score() {
    let table: [Row; 19] = [
        ("never visited, never changed", None, None, None),
        ("half an hour after the visit", Some("30m"), None, Some("30m")),
        ("1 ns before the hour", Some("59m 59s 999ms 999us 999ns"), None, Some("1ns")),
        ("the hour is over: the day is next", Some("1h"), None, Some("23h")),
        ("the day is over: the week is next", Some("24h"), None, Some("144h 1ns")),
        ("at exactly a week the step is 1 ns away", Some("168h"), None, Some("1ns")),
        ("past the week nothing follows", Some("168h 1ns"), None, None),
        ("changed just now", None, Some("0s"), Some("24h")),
        ("1 ns before the day", None, Some("23h 59m 59s 999ms 999us 999ns"), Some("1ns")),
        ("changed a day ago", None, Some("24h"), None),
        ("the sooner of both: visit", Some("30m"), Some("20h"), Some("30m")),
        ("the sooner of both: change", Some("2h"), Some("20h"), Some("4h")),
        ("+20 after 1 h and -20 after 24 h cancel", Some("30m"), Some("23h 30m"), Some("23h 30m")),
        (
            "1 ns apart they do not: visit first",
            Some("30m"),
            Some("23h 29m 59s 999ms 999us 999ns"),
            Some("30m"),
        ),
        (
            "1 ns apart they do not: change first",
            Some("30m"),
            Some("23h 30m 1ns"),
            Some("29m 59s 999ms 999us 999ns"),
        ),
        ("+10 and -20 at one instant do not cancel", Some("23h"), Some("23h"), Some("1h")),
        ("+15 comes 1 ns after -20", Some("167h"), Some("23h"), Some("1h")),
        ("a visit in the future has age zero", Some("-2h"), None, Some("3h")),
        ("a change in the future has age zero", None, Some("-1h"), Some("25h")),
    ];
    for (name, visited, changed, until) in table {
        let signals = UrlSignals { last_visited: visited.map(ago), last_changed: changed.map(ago), ..page() };
        let want = until.map(|length| now() + length.parse::<SignedDuration>().unwrap());
        assert_eq!(next_change(&signals, now()), want, "{name}");
    }
}

#[test]
fn a_step_after_the_end_of_time_never_comes() {
    let signals = UrlSignals { last_visited: Some(Timestamp::MAX), ..page() };
    assert_eq!(next_change(&signals, now()), None);
}

#[test]
fn a_ranking_keeps_ties_in_order_and_goes_by_top_and_threshold() {
    let input = [(50, "a"), (94, "b"), (20, "c"), (94, "d"), (50, "e")];
    let table: [(&str, Option<usize>, u8, &[&str]); 6] = [
        ("all", None, 0, &["b", "d", "a", "e", "c"]),
        ("top 3", Some(3), 0, &["b", "d", "a"]),
        ("top of none", Some(0), 0, &[]),
        ("the threshold is inclusive", None, 50, &["b", "d", "a", "e"]),
        ("nothing reaches it", None, 95, &[]),
        ("both", Some(1), 21, &["b"]),
    ];
    for (name, top, min_score, want) in table {
        let mut ranking = Ranking::new(top, min_score);
        for (sequence, (score, item)) in (0..).zip(input) {
            ranking.push(score, sequence, item);
        }
        assert_eq!(ranking.into_sorted().map(|(_, item)| item).collect::<Vec<_>>(), want, "{name}");
    }
}

/// Instants around `now`, many of them on a step or one nanosecond beside it.
fn instants() -> impl Strategy<Value = Timestamp> {
    let edges = [-168, -24, -23, -1, 0, 1, 24, 168];
    prop_oneof![
        (-400 * HOUR..100 * HOUR).prop_map(|nanos| now() + SignedDuration::from_nanos(nanos)),
        (prop::sample::select(edges.to_vec()), -1..=1_i64)
            .prop_map(|(hours, nanos)| now() + SignedDuration::from_nanos(hours * HOUR + nanos)),
    ]
}

prop_compose! {
    fn signals()(
        visits in any::<u64>(),
        last_visited in prop::option::of(instants()),
        last_changed in prop::option::of(instants()),
        relevance in 0.0..=1.0_f64,
        hub_depth in prop_oneof![0..6_u64, any::<u64>()],
        is_hub in any::<bool>(),
    ) -> UrlSignals<'static> {
        let topic_relevance = Relevance::new(relevance).unwrap();
        UrlSignals { visits, last_visited, last_changed, topic_relevance, hub_depth, is_hub, ..page() }
    }
}

/// Every instant at which the score could change, with its neighbours.
fn possible_steps(signals: &UrlSignals<'_>) -> Vec<Timestamp> {
    let from = signals.last_visited.into_iter().chain(signals.last_changed);
    from.flat_map(|from| [0, 1, 24, 168].map(|hours| from + SignedDuration::from_hours(hours)))
        .flat_map(|step| [-1, 0, 1, 2].map(|nanos| step + SignedDuration::from_nanos(nanos)))
        .collect()
}

proptest! {
    #[test]
    fn a_score_is_at_most_100(signals in signals()) {
        let scored = score(&signals, now());
        prop_assert!(scored.score <= 100);
        let sum = 50 + scored.terms.iter().map(|term| term.adds).sum::<i32>();
        prop_assert_eq!(i32::from(scored.score), sum.clamp(0, 100));
    }

    /// More relevance, a hub, a later change never lower a score; more depth, a later visit never raise it.
    #[test]
    fn a_score_is_monotone_in_each_term(one in signals(), other in signals()) {
        let points = |signals: &UrlSignals<'_>| score(signals, now()).score;
        let fitter = if one.topic_relevance > other.topic_relevance { &one } else { &other };
        // None sorts first: never changed is the longest ago, and so is never visited.
        let raised = [
            UrlSignals { topic_relevance: fitter.topic_relevance, ..one.clone() },
            UrlSignals { is_hub: true, ..one.clone() },
            UrlSignals { hub_depth: one.hub_depth.min(other.hub_depth), ..one.clone() },
            UrlSignals { last_changed: one.last_changed.max(other.last_changed), ..one.clone() },
            UrlSignals { last_visited: one.last_visited.min(other.last_visited), ..one.clone() },
        ];
        for better in &raised {
            prop_assert!(points(better) >= points(&one), "{:?}", better);
        }
        let more_visits = UrlSignals { visits: other.visits, ..one.clone() };
        prop_assert_eq!(points(&more_visits), points(&one));
    }

    /// Moving an entry exactly then is enough, and never pointless.
    #[test]
    fn nothing_changes_before_the_next_change(signals in signals(), thousandth in 0..1000_i64) {
        let present = score(&signals, now()).score;
        let next = next_change(&signals, now());
        if let Some(next) = next {
            prop_assert!(next > now());
            prop_assert_ne!(score(&signals, next).score, present);
            let nanos = i64::try_from(next.duration_since(now()).as_nanos()).unwrap();
            let between = now() + SignedDuration::from_nanos(nanos / 1000 * thousandth);
            prop_assert_eq!(score(&signals, between).score, present, "at {}", between);
        }
        for instant in possible_steps(&signals) {
            if instant > now() && next.is_none_or(|next| instant < next) {
                prop_assert_eq!(score(&signals, instant).score, present, "at {}", instant);
            }
        }
    }

    #[test]
    fn a_ranking_is_a_stable_sort(
        scores in prop::collection::vec(0..=100_u8, 0..60),
        top in prop::option::of(0..70_usize),
        min_score in 0..=100_u8,
        split in 0..60_usize,
    ) {
        let mut want: Vec<(u8, usize)> = scores.iter().copied().zip(0..).collect();
        want.retain(|(score, _)| *score >= min_score);
        want.sort_by_key(|(score, _)| core::cmp::Reverse(*score));
        want.truncate(top.unwrap_or(usize::MAX));

        // Two halves ranked apart and put together, as threads do.
        let mut halves = [Ranking::new(top, min_score), Ranking::new(top, min_score)];
        for (index, score) in scores.iter().copied().enumerate() {
            let half = &mut halves[usize::from(index >= split)];
            if half.would_keep(score, index as u64) {
                half.push(score, index as u64, index);
            }
        }
        let [mut ranking, second] = halves;
        ranking.absorb(second);
        prop_assert_eq!(ranking.into_sorted().collect::<Vec<_>>(), want);
    }
}
