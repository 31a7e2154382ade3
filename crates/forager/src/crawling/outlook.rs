//! How long a crawl will take, and what keeps it from being faster.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forager_core::url::FetchUrl;
use forager_crawl::PageLine;
use forager_frontier::catalog::Limits;
use forager_frontier::host::Gate;
use forager_frontier::settings::Politeness;
use forager_frontier::verbs::{HostFilter, HostView, JobView, Outcome};
use forager_frontier::{Frontier, Moment};
use jiff::Timestamp;

use super::counts::is_failed;
use crate::store;
use crate::words::{counted, in_time};

/// How many hosts are looked at. The end of a crawl of more is not that of any single one.
const MOST_HOSTS: usize = 10_000;
/// An estimate is good for so long at most, and at least: to ask for all hosts takes its time.
const GOOD_FOR: Duration = Duration::from_secs(5);
const SHORT: Duration = Duration::from_secs(1);
/// From so many fetches on, what a host takes is known better than what is set for it.
const ENOUGH: u64 = 4;

/// How far apart the fetches from a host are.
#[derive(Clone, Debug)]
struct Gap {
    last: Timestamp,
    /// Seconds between fetches, altogether.
    seconds: f64,
    /// How many times between two fetches that is.
    count: u64,
    /// Whether the last fetch failed, so that its host may be left alone for a while.
    has_failed: bool,
}

impl Gap {
    fn new(first: &PageLine) -> Self {
        Self { last: first.at, seconds: 0.0, count: 0, has_failed: has_failed(first) }
    }

    /// A wait for another try, or for a host that failed, does not say how far apart its pages are.
    fn note(&mut self, page: &PageLine) {
        if page.failures == 0 && !self.has_failed {
            // Answers do not come in the order of requests.
            self.seconds += page.at.duration_since(self.last).as_secs_f64().max(0.0);
            self.count += 1;
        }
        self.last = self.last.max(page.at);
        self.has_failed = has_failed(page);
    }
}

/// Whether a fetch failed and is tried again.
fn has_failed(page: &PageLine) -> bool {
    is_failed(page) && page.outcome == Some(Outcome::Again)
}

/// How far apart the fetches from each host are, as it was seen.
#[derive(Debug, Default)]
pub(crate) struct Gaps(HashMap<String, Gap>);

impl Gaps {
    /// Takes note of a fetch.
    pub(crate) fn note(&mut self, page: &PageLine) {
        let Ok(url) = FetchUrl::parse(&page.url) else { return };
        let is_full = self.0.len() >= MOST_HOSTS;
        match self.0.get_mut(url.host_key()) {
            Some(gap) => gap.note(page),
            None if !is_full => {
                self.0.insert(url.host_key().to_owned(), Gap::new(page));
            }
            None => {}
        }
    }

    /// The mean gap of a host in seconds, once it has been fetched from often enough.
    fn mean(&self, host: &str) -> Option<f64> {
        let gap = self.0.get(host).filter(|gap| gap.count + 1 >= ENOUGH)?;
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        Some(gap.seconds / gap.count as f64)
    }
}

/// About how long it will take, and why.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) seconds: f64,
    /// What it is bound by: a host, or a limit.
    pub(crate) bound: String,
    /// What that has to do with it, as it follows upon the name.
    pub(crate) why: String,
}

impl Estimate {
    fn at_limit(seconds: f64, limit: impl fmt::Display) -> Self {
        Self { seconds, bound: format!("the limit of {limit}"), why: String::new() }
    }
}

/// How long an estimate is good for. A short one, or none, is of the first pages, and of them only: what they lead to is
/// not known yet.
fn good_for(estimate: Option<&Estimate>) -> Duration {
    let seconds = estimate.map_or(0.0, |estimate| estimate.seconds);
    Duration::from_secs_f64(seconds.clamp(SHORT.as_secs_f64(), GOOD_FOR.as_secs_f64()))
}

/// What a host still has to do.
#[derive(Clone, Debug)]
struct Left {
    host: String,
    queued: u64,
    /// Seconds between two fetches.
    gap: f64,
    /// Seconds before the first.
    first: f64,
    /// Why that is, if it is not the usual wait between two.
    closed: Option<String>,
    /// Whether its robots.txt asks for a long wait.
    is_slow: bool,
}

impl Left {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    fn seconds(&self) -> f64 {
        self.first + self.queued.saturating_sub(1) as f64 * self.gap
    }

    fn why(&self) -> String {
        let Self { queued, gap, first, closed, is_slow, .. } = self;
        let why = if *is_slow { " as its robots.txt asks: a slow host" } else { "" };
        let pages = format!("{}, one in {gap:.1}s{why}", counted(*queued, "page", "pages"));
        match closed {
            Some(why) if *first > self.seconds() / 2.0 => format!(": {why}, then {pages}"),
            _ => format!(": {pages}"),
        }
    }
}

/// Where the crawl of a job is bound for.
pub(crate) struct Outlook {
    frontier: Arc<dyn Frontier>,
    collection: String,
    politeness: Politeness,
    limits: Limits,
    /// When the limit of time ends it.
    time_ends: Option<Timestamp>,
    /// Fetches of the job before this crawl.
    before: u64,
    /// The hosts, where they were asked for since the last estimate.
    hosts: Option<Vec<HostView>>,
    last: Option<(Instant, Option<Estimate>)>,
}

impl Outlook {
    pub(crate) fn new(frontier: Arc<dyn Frontier>, politeness: Politeness, job: &JobView) -> Self {
        Self {
            frontier,
            collection: job.id.clone(),
            politeness,
            limits: job.job.limits,
            time_ends: job.job.time_ends().map(Moment::timestamp),
            before: job.progress.tally.fetches,
            hosts: None,
            last: None,
        }
    }

    /// Looks at the hosts, unless the last estimate is still good.
    pub(crate) fn look(&mut self) {
        if self.last.as_ref().is_some_and(|(at, known)| at.elapsed() < good_for(known.as_ref())) {
            return;
        }
        let filter = HostFilter {
            collection: Some(self.collection.clone()),
            limit: MOST_HOSTS,
            ..HostFilter::default()
        };
        // Whoever cannot be asked has nothing to tell; the crawl finds out by itself what is wrong.
        self.hosts = Some(store::glance(self.frontier.hosts(&filter, Timestamp::now())).unwrap_or_default());
    }

    /// How long it will take by what was [looked](Self::look) at last, with so many fetches done, at so many a second, and nothing
    /// due before a time.
    pub(crate) fn estimate(
        &mut self,
        gaps: &Gaps,
        (fetched, rate): (u64, f64),
        not_before: Option<Moment>,
    ) -> Option<Estimate> {
        let Some(hosts) = self.hosts.take() else {
            let (at, estimate) = self.last.as_ref()?;
            return estimate.clone().map(|estimate| Estimate {
                seconds: (estimate.seconds - at.elapsed().as_secs_f64()).max(0.0),
                ..estimate
            });
        };
        let now = Timestamp::now();
        let left = hosts.into_iter().filter(|host| host.queued > 0);
        let left = left.map(|host| self.left(gaps, host, not_before, now));
        let estimate = soonest(slowest(left), self.limited(fetched, rate, now));
        self.last = Some((Instant::now(), estimate.clone()));
        estimate
    }

    fn left(&self, gaps: &Gaps, host: HostView, not_before: Option<Moment>, now: Timestamp) -> Left {
        let Politeness { delay, max_delay, .. } = self.politeness;
        let (delay, max_delay) = (delay.as_secs_f64(), max_delay.as_secs_f64());
        let (least, usual) = match host.settings.delay {
            Some(own) => (own.as_secs_f64(), own.as_secs_f64()),
            None => (delay, f64::midpoint(delay, max_delay.max(delay))),
        };
        // What robots.txt asks for is known from the first page on, and never gone below.
        let least = host.crawl_delay.map_or(least, |theirs| theirs.as_secs_f64().max(least));
        let gap = gaps.mean(&host.host).unwrap_or(usual).max(least);
        let seconds = |at: Moment| at.timestamp().duration_since(now).as_secs_f64().max(0.0);
        let gate = match (host.gate, host.opens.map(seconds)) {
            // A host that has enough under way opens with the next answer, and not when somebody would give up waiting for it;
            // what is left then of the wait after that request is not known.
            (Some(Gate::InFlight), _) => Some((gap, None)),
            (Some(Gate::Delay), Some(seconds)) => Some((seconds, None)),
            (Some(gate), Some(seconds)) => {
                Some((seconds, Some(format!("closed for {} ({gate})", in_time(seconds)))))
            }
            (_, None) | (None, _) => None,
        };
        let due = not_before
            .map(|until| (seconds(until), Some(format!("nothing is due for {}", in_time(seconds(until))))));
        let waits = gate.into_iter().chain(due).max_by(|one, other| one.0.total_cmp(&other.0));
        let (first, closed) = waits.unwrap_or_default();
        Left { gap, first, closed, queued: host.queued, is_slow: host.is_slow, host: host.host }
    }

    /// When limits end it, whatever is left then.
    fn limited(&self, fetched: u64, rate: f64, now: Timestamp) -> Vec<Estimate> {
        let mut limits = Vec::new();
        if let Some(pages) = self.limits.pages.filter(|_| rate > 0.0) {
            let left = pages.saturating_sub(self.before + fetched);
            #[expect(clippy::cast_precision_loss, reason = "for people")]
            let seconds = left as f64 / rate;
            limits.push(Estimate::at_limit(seconds, counted(pages, "page", "pages")));
        }
        if let Some((time, ends)) = self.limits.time.zip(self.time_ends) {
            let left = ends.duration_since(now).as_secs_f64();
            limits.push(Estimate::at_limit(left.max(0.0), time));
        }
        limits
    }
}

/// A crawl is over when its slowest host is.
fn slowest(hosts: impl Iterator<Item = Left>) -> Option<Estimate> {
    let slowest = hosts.max_by(|one, other| one.seconds().total_cmp(&other.seconds()))?;
    Some(Estimate { seconds: slowest.seconds(), why: slowest.why(), bound: slowest.host })
}

/// What comes first ends it. With nothing left there is nothing to wait for.
fn soonest(hosts: Option<Estimate>, limits: Vec<Estimate>) -> Option<Estimate> {
    let all = [hosts?].into_iter().chain(limits);
    all.min_by(|one, other| one.seconds.total_cmp(&other.seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(host: &str, queued: u64, gap: f64, closed: Option<f64>) -> Left {
        let why = |seconds| format!("closed for {} (back-off after failures)", in_time(seconds));
        let first = closed.unwrap_or_default();
        Left { host: host.to_owned(), queued, gap, first, closed: closed.map(why), is_slow: gap > 60.0 }
    }

    /// Hosts and limits, and how long that takes for which reason.
    type Case<'a> = (&'a str, &'a [&'a Left], Vec<Estimate>, Option<(f64, &'a str)>);

    #[test]
    fn the_slowest_host_or_the_first_limit_decides() {
        let limit = |seconds| Estimate::at_limit(seconds, "10 pages");
        let (many, slow) = (left("many.test", 100, 3.5, None), left("slow.test", 10, 60.0, None));
        let closed = left("closed.test", 1, 2.0, Some(900.0));
        let crawl = left("crawl.test", 10, 90.0, None);
        let last = Left { first: 95.0, ..left("last.test", 1, 100.0, None) };
        let table: [Case<'_>; 8] = [
            ("nothing left", &[], vec![limit(5.0)], None),
            ("one host", &[&many], vec![], Some((346.5, "many.test: 100 pages, one in 3.5s"))),
            (
                "the last page of one, as soon as its wait is over",
                &[&last],
                vec![],
                Some((95.0, "last.test: 1 page, one in 100.0s as its robots.txt asks: a slow host")),
            ),
            ("a slow one", &[&many, &slow], vec![], Some((540.0, "slow.test: 10 pages, one in 60.0s"))),
            (
                "one that asks for long waits",
                &[&many, &crawl],
                vec![],
                Some((810.0, "crawl.test: 10 pages, one in 90.0s as its robots.txt asks: a slow host")),
            ),
            (
                "one that is closed",
                &[&many, &closed],
                vec![],
                Some((
                    900.0,
                    "closed.test: closed for 15m 0s (back-off after failures), then 1 page, one in 2.0s",
                )),
            ),
            ("a limit", &[&many, &slow], vec![limit(70.0)], Some((70.0, "the limit of 10 pages"))),
            (
                "a limit that is far off",
                &[&many],
                vec![limit(7000.0)],
                Some((346.5, "many.test: 100 pages, one in 3.5s")),
            ),
        ];
        for (name, hosts, limits, want) in table {
            let want = want.map(|(seconds, bound)| (seconds, bound.to_owned()));
            let got = soonest(slowest(hosts.iter().map(|left| (*left).clone())), limits);
            assert_eq!(got.map(|got| (got.seconds, got.bound + &got.why)), want, "{name}");
        }
    }

    #[test]
    fn an_estimate_of_next_to_nothing_is_soon_made_anew() {
        let table = [(None, 1.0), (Some(0.1), 1.0), (Some(3.5), 3.5), (Some(1e300), 5.0)];
        for (seconds, want) in table {
            let estimate = seconds.map(|seconds| Estimate::at_limit(seconds, "1 page"));
            assert_eq!(good_for(estimate.as_ref()), Duration::from_secs_f64(want), "{seconds:?}");
        }
    }

    #[test]
    fn gaps_are_those_that_were_seen() {
        let mut gaps = Gaps::default();
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for number in 0..6 {
            let at = start + jiff::SignedDuration::from_millis(number * 7500);
            let url = "http://a.test:8080/x".to_owned();
            gaps.note(&PageLine { url, at, status: Some(200), ..PageLine::default() });
            assert_eq!(gaps.mean("a.test").is_some(), number >= 3, "{number}");
        }
        assert_eq!(gaps.mean("a.test"), Some(7.5));
        assert_eq!(gaps.mean("b.test"), None);
    }
    /// Pages that fail and are tried again, among others that are fetched every second.
    #[test]
    fn waits_for_another_try_are_no_gaps() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let page = |second: i64, status: u16, failures| PageLine {
            url: "http://a.test/".to_owned(),
            at: start + jiff::SignedDuration::from_secs(second),
            status: Some(status),
            failures,
            outcome: Some(if status == 200 { Outcome::Done } else { Outcome::Again }),
            ..PageLine::default()
        };
        let others = |from: i64| (from..from + 10).map(move |second| page(second, 200, 0));
        let failing = [page(180, 503, 1), page(360, 503, 2), page(600, 503, 3)];
        let after = [page(601, 200, 0), page(602, 200, 0)];
        let table: [(&str, Vec<PageLine>); 2] = [
            (
                "from the first try on",
                [page(0, 503, 0)].into_iter().chain(others(60)).chain(failing).chain(after).collect(),
            ),
            ("since an earlier crawl", others(0).chain([page(180, 200, 1), page(400, 200, 1)]).collect()),
        ];
        for (name, pages) in table {
            let mut gaps = Gaps::default();
            for page in &pages {
                gaps.note(page);
            }
            assert_eq!(gaps.mean("a.test"), Some(1.0), "{name}");
        }
    }
}
