//! Why a page must not be asked for.

use forager_core::time::Interval;
use forager_core::url::FetchUrl;
use forager_fetch::robots::{LastTry, Rules, Ruling, Why};
use forager_frontier::Moment;
use forager_frontier::verbs::{FetchError, Report};
use jiff::Timestamp;

use crate::robots;
use crate::told::{NotFetched, PageLine};

/// Why a page must not be asked for, if so.
pub(crate) fn obstacle(found: &robots::Found, ruling: &Ruling) -> Option<NotFetched> {
    match ruling.allowed {
        _ if found.refused.is_some() => Some(NotFetched::AddressRefused),
        true => None,
        false if is_out_of_reach(ruling) => Some(NotFetched::RobotsUnreachable),
        false => Some(NotFetched::Robots),
    }
}

/// Tells that a page was not asked for, why, and where that is from.
pub(crate) fn keep_from(
    report: &mut Report,
    line: &mut PageLine,
    not_fetched: NotFetched,
    found: &robots::Found,
    (url, now): (&FetchUrl, Timestamp),
) {
    line.not_fetched = Some(not_fetched);
    line.is_rate_limited = is_rate_limited(&found.rules);
    if let Some(refused) = &found.refused {
        report.error = Some(FetchError::Address);
        line.robots = String::from("not asked for");
        line.error = Some(refused.to_string());
        line.rule = refused.clone();
        return;
    }
    let (error, until) = match not_fetched {
        NotFetched::Robots => (FetchError::Robots, "counts until"),
        NotFetched::RobotsUnreachable | NotFetched::AddressRefused => {
            (FetchError::Unreachable, "is asked for again at")
        }
    };
    report.error = Some(error);
    if not_fetched == NotFetched::RobotsUnreachable {
        // Before that nobody is asked, so that another try would be in vain.
        report.retry_after = Some(until_then(found.expires, now));
    }
    line.error = Some(line.robots.clone());
    let (source, expires) = (robots::robots_url(url), Moment::of(found.expires));
    line.rule = format!("{not_fetched}: {}; {source} {until} {expires}", line.robots).into();
}

/// How long it is from now until then, in whole seconds and never too short.
fn until_then(then: Timestamp, now: Timestamp) -> Interval {
    Interval::from_secs_f64(then.duration_since(now).as_secs_f64().ceil())
}

/// Whether robots.txt cannot be had because whoever has it wants to be asked less.
pub(crate) fn is_rate_limited(rules: &Rules) -> bool {
    matches!(rules, Rules::Unreachable { last: LastTry::Status(429 | 503), .. })
}

/// Whether nobody can tell what is allowed.
pub(crate) fn is_out_of_reach(ruling: &Ruling) -> bool {
    matches!(ruling.why, Why::Unreachable { .. })
}
