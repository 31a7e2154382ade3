//! Scores and schedules, from any JSON. Input: the signals of a URL, as the command line takes them.
#![no_main]

use forager_core::time::Interval;
use forager_core::score::{UrlSignals, next_change, score};
use forager_core::sentinel::Risk;
use forager_core::sentinel::schedule::{
    Failure, Jitter, LONGEST, SHORTEST, ScheduleConfig, interval, next_scan, next_try,
};
use forager_core::sentinel::velocity::{Evidence, Velocity};
use jiff::{SignedDuration, Timestamp};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &str| {
    let Ok(signals) = serde_json::from_str::<UrlSignals>(json) else { return };
    let moments = [signals.last_visited, signals.last_changed, Some(Timestamp::MIN), Some(Timestamp::MAX)];
    for now in moments.into_iter().flatten() {
        score_holds(&signals, now);
    }
    let velocity = Velocity::new(signals.topic_relevance.get()).expect("from 0 to 1");
    let now = signals.last_visited.unwrap_or(Timestamp::UNIX_EPOCH);
    for risk in Risk::ALL {
        schedule_holds(velocity, risk, signals.visits, now);
    }
    let evidence = Evidence { velocity, scan_count: signals.visits, last_changed_at: signals.last_changed };
    let after = evidence.after_scan(signals.is_hub, now);
    assert!((Velocity::MIN..=Velocity::MAX).contains(&after.velocity));
});

fn score_holds(signals: &UrlSignals<'_>, now: Timestamp) {
    let scored = score(signals, now);
    assert!(scored.score <= 100);
    let Some(step) = next_change(signals, now) else { return };
    assert!(step > now, "the next change lies ahead");
    assert_ne!(score(signals, step).score, scored.score, "it is a change");
    let before = step - SignedDuration::from_nanos(1);
    assert_eq!(score(signals, before).score, scored.score, "nothing changes earlier");
}

fn schedule_holds(velocity: Velocity, risk: Risk, visits: u64, now: Timestamp) {
    let plain = ScheduleConfig { jitter: Jitter::NONE, ..ScheduleConfig::default() };
    let (normal, reasons) = interval(velocity, risk, &plain);
    assert!((SHORTEST..=LONGEST).contains(&normal) && !reasons.is_empty());
    let mut rng = rand_pcg::Pcg64::new(u128::from(visits), 1);
    let strict = ScheduleConfig { strict_bounds: true, ..ScheduleConfig::default() };
    let next = next_scan(velocity, risk, &strict, now, &mut rng);
    assert!((SHORTEST..=LONGEST).contains(&next.interval) && next.due >= now);
    let promised = next_scan(velocity, risk, &ScheduleConfig::sentinel(), now, &mut rng);
    assert!(risk != Risk::Critical || promised.interval <= SHORTEST, "critical pages within 4 hours");
    let failures = u32::try_from(visits).unwrap_or(u32::MAX);
    for failure in [Failure::Transient, Failure::Dead] {
        let retry = next_try(failure, failures, Some(Interval::MAX), (velocity, risk), &plain, now);
        assert!(retry.interval <= LONGEST);
        let patient = next_try(failure, failures, None, (velocity, risk), &plain, now);
        assert!(patient.interval <= retry.interval, "Retry-After never shortens the wait");
        assert!(
            failure == Failure::Transient || patient.interval >= normal,
            "dead pages are not polled more"
        );
    }
}
