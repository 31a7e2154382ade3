//! Whether a crawler was polite, by what the server saw.
//!
//! **How many at once** is exact. A request counts from when its head was read until its answer was handed to the
//! connection: less time than the crawler spends on it, which has sent it before and still has to read the answer.
//! So a server that sees too many saw too many. The one exception are requests whose client goes away before the
//! answer: they count until the server notices.
//!
//! **How far apart** is measured between arrivals, which are later than the requests were due: by what it takes to
//! send them, to connect, and to be read. Where one request takes longer to arrive than the next, the two come
//! closer together than they were sent, and never by more than the first was late. [`Rule::tolerance`] is the bound
//! on that lateness. It is not granted anew for each request: of any number of requests in a row, the
//! last must come no sooner after the first than the gaps between them add up to, less the tolerance once. So a
//! crawler that is always a little too fast is found out, however generous the tolerance is.
//!
//! **Pauses**: after an answer that asks to be left alone no request may arrive before the time it names, but for those
//! that were on their way. Who was told when the last byte had been handed over has the tolerance to be seen to know.
//!
//! All times are those of the clock of the site. Where that goes faster than the one on the wall, so must
//! the tolerance: 50 ms of a busy machine are 5 s of a clock that is 100 times as fast.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::log::Seen;

/// What is asked of a crawler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// How many requests may be under way at a host.
    pub limit: usize,
    /// The least time between two requests.
    pub gap: SignedDuration,
    /// By how much a request may arrive later than it was due.
    pub tolerance: SignedDuration,
}

/// A request that should not have come when it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The host.
    pub host: Arc<str>,
    /// The number of the request.
    pub number: u64,
    /// What was requested.
    pub path: String,
    /// When it arrived.
    pub arrived: Timestamp,
    /// What is wrong with that.
    pub what: Impolite,
}

/// What is impolite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impolite {
    /// Too many requests were under way.
    TooMany {
        /// So many, this one among them.
        at_once: usize,
        /// So many may be.
        limit: usize,
    },
    /// It came too soon after an earlier one.
    TooSoon {
        /// The number of the earlier one.
        after: u64,
        /// How many requests later it came.
        requests: usize,
        /// So long after it.
        waited: SignedDuration,
        /// So long it should have been at least.
        least: SignedDuration,
    },
    /// It came though the host had asked for a pause.
    InPause {
        /// The number of the request whose answer asked for it.
        after: u64,
        /// When the pause ends.
        until: Timestamp,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, number, path, arrived, what } = self;
        write!(f, "{arrived} {host}{path} (request {number}): ")?;
        match what {
            Impolite::TooMany { at_once, limit } => write!(f, "{at_once} at once, {limit} allowed"),
            Impolite::TooSoon { after, requests, waited, least } => {
                write!(f, "{waited:#} after request {after}, {requests} before it; at least {least:#} asked")
            }
            Impolite::InPause { after, until } => {
                write!(f, "the answer to request {after} had asked for a pause until {until}")
            }
        }
    }
}

/// Finds the requests that came too soon, with too many others, or in a pause. `rule` says what is asked of the requests to a host.
///
/// ```
/// # use forager_site::{Log, checks};
/// # use jiff::SignedDuration;
/// # fn show(log: &Log) {
/// let rule = checks::Rule {
///     limit: 2,
///     gap: SignedDuration::from_secs(2),
///     tolerance: SignedDuration::from_millis(100),
/// };
/// for violation in checks::politeness(&log.snapshot(), |_host| rule) {
///     println!("{violation}");
/// }
/// # }
/// ```
pub fn politeness(log: &[Seen], rule: impl Fn(&str) -> Rule) -> Vec<Violation> {
    let mut hosts: BTreeMap<&str, Vec<&Seen>> = BTreeMap::new();
    for seen in log {
        hosts.entry(&seen.host).or_default().push(seen);
    }
    let mut found = Vec::new();
    for (host, mut requests) in hosts {
        requests.sort_unstable_by_key(|seen| (seen.arrived, seen.number));
        let rule = rule(host);
        let crowded = requests.iter().filter_map(|seen| too_many(seen, rule));
        found.extend(crowded.map(|(seen, what)| violation(seen, what)));
        found.extend(too_soon(&requests, rule).into_iter().map(|(seen, what)| violation(seen, what)));
        found.extend(in_pause(&requests, rule).map(|(seen, what)| violation(seen, what)));
    }
    found.sort_by_key(|violation| violation.number);
    found
}

fn violation(seen: &Seen, what: Impolite) -> Violation {
    let (host, path) = (seen.host.clone(), seen.path.clone());
    Violation { host, number: seen.number, path, arrived: seen.arrived, what }
}

fn too_many(seen: &Seen, rule: Rule) -> Option<(&Seen, Impolite)> {
    let Seen { at_once, .. } = *seen;
    (at_once > rule.limit).then_some((seen, Impolite::TooMany { at_once, limit: rule.limit }))
}

/// The requests that came in a pause; of several pauses the one that ends last is named.
fn in_pause<'s>(requests: &[&'s Seen], rule: Rule) -> impl Iterator<Item = (&'s Seen, Impolite)> {
    let pauses: Vec<(Timestamp, Timestamp, u64)> = requests
        .iter()
        .filter_map(|seen| Some((seen.ended?.checked_add(rule.tolerance).ok()?, seen.pause?, seen.number)))
        .collect();
    requests.iter().filter_map(move |seen| {
        let is_in =
            |(from, until, _): &&(Timestamp, Timestamp, u64)| *from < seen.arrived && seen.arrived < *until;
        let (_, until, after) = pauses.iter().filter(is_in).max_by_key(|(_, until, _)| *until)?;
        Some((*seen, Impolite::InPause { after: *after, until: *until }))
    })
}

/// How far ahead of its time each request is, compared with that earlier one that had the most reason to wait for.
fn too_soon<'s>(requests: &[&'s Seen], rule: Rule) -> Vec<(&'s Seen, Impolite)> {
    let mut found = Vec::new();
    let Some(mut latest) = (!requests.is_empty()).then_some(0) else { return found };
    for (index, seen) in requests.iter().enumerate().skip(1) {
        let least = |from: usize| {
            let times = i32::try_from(index - from).unwrap_or(i32::MAX);
            rule.gap.checked_mul(times).unwrap_or(SignedDuration::MAX)
        };
        let waited = seen.arrived.duration_since(requests[latest].arrived);
        let least = least(latest);
        if waited < least.saturating_sub(rule.tolerance) {
            let (after, requests) = (requests[latest].number, index - latest);
            found.push((*seen, Impolite::TooSoon { after, requests, waited, least }));
        }
        // One that came late, or wrongly early and was found out, is what the next ones count from.
        let is_found = found.last().is_some_and(|(last, _)| last.number == seen.number);
        if waited >= least || is_found {
            latest = index;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seen(number: u64, millis: i64, at_once: usize) -> Seen {
        Seen {
            number,
            host: "a".into(),
            path: format!("/{number}"),
            arrived: Timestamp::from_millisecond(millis).unwrap(),
            ended: None,
            status: None,
            whole: false,
            user_agent: None,
            if_none_match: None,
            if_modified_since: None,
            at_once,
            pause: None,
        }
    }

    fn rule(tolerance: i64) -> Rule {
        let tolerance = SignedDuration::from_millis(tolerance);
        Rule { limit: 2, gap: SignedDuration::from_secs(1), tolerance }
    }

    fn found(millis: &[i64], tolerance: i64) -> Vec<u64> {
        let log: Vec<Seen> = (0..).zip(millis).map(|(number, at)| seen(number, *at, 1)).collect();
        politeness(&log, |_| rule(tolerance)).into_iter().map(|violation| violation.number).collect()
    }

    #[test]
    fn requests_too_close_together_are_found() {
        let table: [(&str, &[i64], i64, &[u64]); 9] = [
            ("none", &[], 0, &[]),
            ("one", &[0], 0, &[]),
            ("just far enough", &[0, 1000, 2000], 0, &[]),
            ("too close", &[0, 999], 0, &[1]),
            ("too close, and excused", &[0, 900], 100, &[]),
            ("a late one, and the next in time", &[0, 1080, 2000], 100, &[]),
            ("each a little too soon, and all together too much", &[0, 960, 1920, 2880], 100, &[3]),
            ("a long pause saves up nothing", &[0, 60_000, 60_500], 100, &[2]),
            ("after a violation the count begins anew", &[0, 10, 1010, 1500], 100, &[1, 3]),
        ];
        for (name, millis, tolerance, want) in table {
            assert_eq!(found(millis, tolerance), want, "{name}");
        }
    }

    #[test]
    fn too_many_at_once_are_found() {
        let log = [seen(0, 0, 1), seen(1, 1000, 2), seen(2, 2000, 3)];
        let found = politeness(&log, |_| rule(0));
        let told: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["1970-01-01T00:00:02Z a/2 (request 2): 3 at once, 2 allowed"]);
    }

    #[test]
    fn requests_in_a_pause_are_found() {
        let time = |millis| Timestamp::from_millisecond(millis).unwrap();
        let busy = |number, millis, ended, until| Seen {
            ended: Some(time(ended)),
            pause: Some(time(until)),
            ..seen(number, millis, 1)
        };
        let table: [(&str, Seen, i64, &[u64]); 5] = [
            ("in the pause", seen(1, 5000, 1), 0, &[1]),
            ("when it is over", seen(1, 9000, 1), 0, &[]),
            ("on its way before", seen(1, 1550, 1), 100, &[]),
            ("later than anything is on its way", seen(1, 1601, 1), 100, &[1]),
            ("another host", Seen { host: "b".into(), ..seen(1, 5000, 1) }, 0, &[]),
        ];
        for (name, next, tolerance, want) in table {
            let log = [busy(0, 0, 1500, 9000), next];
            let found: Vec<u64> =
                politeness(&log, |_| rule(tolerance)).iter().map(|violation| violation.number).collect();
            assert_eq!(found, want, "{name}");
        }
        let told = politeness(&[busy(0, 0, 1500, 9000), seen(1, 5000, 1)], |_| rule(0))[0].to_string();
        let want = "1970-01-01T00:00:05Z a/1 (request 1): the answer to request 0 had asked for a pause until \
                    1970-01-01T00:00:09Z";
        assert_eq!(told, want);
    }

    #[test]
    fn hosts_are_judged_apart() {
        let other = Seen { host: "b".into(), ..seen(1, 10, 1) };
        assert_eq!(politeness(&[seen(0, 0, 1), other], |_| rule(0)), []);
    }

    proptest! {
        /// Requests that were sent far enough apart and arrive late, but not later than tolerated, are never blamed.
        #[test]
        fn the_polite_are_not_blamed(steps in proptest::collection::vec((0..3000_i64, 0..=100_i64), 1..50)) {
            let mut sent = 0;
            let arrivals: Vec<i64> = steps
                .iter()
                .map(|(extra, late)| {
                    sent += 1000 + extra;
                    sent + late
                })
                .collect();
            prop_assert_eq!(found(&arrivals, 100), Vec::<u64>::new());
        }

        /// Whoever keeps a shorter gap is found out in the end, whatever is tolerated.
        #[test]
        fn the_hasty_are_found_out(gap in 0..995_i64, tolerance in 0..5000_i64) {
            let enough = tolerance / (1000 - gap) + 2;
            let arrivals: Vec<i64> = (0..=enough).map(|number| number * gap).collect();
            prop_assert!(!found(&arrivals, tolerance).is_empty());
        }
    }
}
