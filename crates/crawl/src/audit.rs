//! Proof of politeness, from the log of fetches.
//!
//! What is proved: no host had more fetches under way than its limit, no two requests to a host were closer
//! together than its gap, none was sent while its host was to be left alone because it had failed or asked for a
//! pause, and no page was fetched that the robots.txt of the time forbids to the name of the time. The limits are those that
//! were in force when a fetch was made, as the log has them, and a `Crawl-delay` from when it was read.

mod pace;
mod robots;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use forager_core::url::FetchUrl;
use forager_frontier::Moment;
use forager_frontier::verbs::FetchRow;
use serde::Serialize;

use crate::robots::Label;
use pace::{Pace, Span};
use robots::{Files, Rulebook};

/// What an audit found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// What each host can be shown.
    pub hosts: Vec<Evidence>,
    /// What should not have been, if anything.
    pub violations: Vec<Violation>,
}

/// How a host was treated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// The host.
    pub host: String,
    /// How many requests it had.
    pub fetches: u64,
    /// How many bytes it sent.
    pub bytes: u64,
    /// The first of them.
    pub first: Moment,
    /// The last.
    pub last: Moment,
    /// The most that were under way at a time.
    pub most_in_flight: u32,
    /// How many could be under way when they were so many, at least; none if that is not known.
    pub most_allowed: Option<u32>,
    /// The shortest time between two requests, in milliseconds; none if there was but one.
    pub shortest_gap: Option<u64>,
    /// The time that was due between these, in milliseconds: what was agreed, or asked for by robots.txt if that is more.
    pub gap_due: Option<u64>,
    /// The longest wait that robots.txt asked for at any time, in milliseconds.
    pub crawl_delay: Option<u64>,
    /// How often robots.txt was read.
    pub robots_read: u64,
    /// How many pages were taken by somebody who died: those may have been requested, and are not in the log.
    pub abandoned: u64,
    /// The names under which robots.txt was asked for.
    pub names: Vec<String>,
    /// What was known of robots.txt, and from when on.
    pub robots: Vec<InForce>,
}

/// What was known of the robots.txt of a site from some time on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InForce {
    /// From when on.
    pub from: Moment,
    /// The scheme, host and port that it is for.
    pub site: String,
    /// The name under which it was asked for.
    pub asked_as: Option<String>,
    /// What came of that: a status, or the words of an error.
    pub answer: String,
    /// What the text is known by that counts from then on; none if there is none.
    pub file: Option<String>,
    /// The wait that it asks for, in milliseconds.
    pub crawl_delay: Option<u64>,
}

impl InForce {
    /// Whether it says the same as what was known before.
    fn goes_on(&self, before: &Self) -> bool {
        *self == Self { from: self.from, ..before.clone() }
    }
}

impl Evidence {
    /// Takes in what was known of the robots.txt of one of its sites from then on.
    fn learn(&mut self, now: InForce) {
        self.crawl_delay = self.crawl_delay.max(now.crawl_delay);
        self.names.extend(now.asked_as.clone().filter(|name| !self.names.contains(name)));
        let before = self.robots.iter().rev().find(|known| known.site == now.site);
        if before.is_none_or(|before| !now.goes_on(before)) {
            self.robots.push(now);
        }
    }
}

/// Something that should not have been.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// The host.
    pub host: String,
    /// What was requested.
    pub url: String,
    /// When.
    pub at: Moment,
    /// What is wrong with that.
    pub what: String,
}

/// A page that somebody took and never reported: it may have been fetched.
#[derive(Clone, Debug)]
pub struct Abandoned {
    /// The host.
    pub host: String,
    /// The page.
    pub url: String,
    /// When it was taken.
    pub from: Moment,
    /// When it was given up.
    pub until: Moment,
}

/// An audit under way.
pub struct Auditor<'f> {
    /// The host that is judged, if not all are.
    only: Option<String>,
    hosts: BTreeMap<String, Vec<Span>>,
    evidence: BTreeMap<String, Evidence>,
    /// What asking for robots.txt came to, and when. An import adds what happened elsewhere, so that time goes back in a log: rules
    /// are learned in the order of time, when all of it is here.
    asked: Vec<(Moment, String)>,
    rules: Rulebook<'f>,
}

impl<'f> Auditor<'f> {
    /// An audit. By which name robots.txt was asked for, and so whose rules count, the log says; where it does not, it is this
    /// one. `files` finds a text of robots.txt by the key it is kept under.
    pub fn new(name: &'f str, files: Files<'f>) -> Self {
        Self {
            only: None,
            hosts: BTreeMap::new(),
            evidence: BTreeMap::new(),
            asked: Vec::new(),
            rules: Rulebook::new(name, files),
        }
    }

    /// Judges one host alone, if there is one. It has to be shown all fetches nevertheless: the robots.txt of the host may have
    /// come from another one.
    #[must_use]
    pub fn only(mut self, host: Option<&str>) -> Self {
        self.only = host.map(str::to_owned);
        self
    }

    fn is_judged(&self, host: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == host)
    }

    /// Whether a robots.txt is for a host that is judged, wherever it came from.
    fn is_for_judged(&self, label: &Label<'_>) -> bool {
        FetchUrl::parse(label.origin).is_ok_and(|site| self.is_judged(site.host_key()))
    }

    /// Takes in the next fetch of the log.
    pub fn fetch(&mut self, row: FetchRow) {
        let label = Label::of(&row.robots);
        if label.is_some_and(|label| self.is_for_judged(&label)) {
            self.asked.push((row.ended, row.robots.clone()));
        }
        if !self.is_judged(&row.host) {
            return;
        }
        let evidence = self.evidence_of(&row.host, row.started);
        evidence.fetches += 1;
        evidence.bytes += row.bytes;
        evidence.first = evidence.first.min(row.started);
        evidence.last = evidence.last.max(row.started);
        evidence.robots_read += u64::from(label.is_some());
        let is_page = label.is_none();
        self.hosts.entry(row.host.clone()).or_default().push(Span::new(row, is_page));
    }

    /// Takes in a page that may have been fetched.
    pub fn abandoned(&mut self, page: Abandoned) {
        if self.is_judged(&page.host) {
            self.evidence_of(&page.host, page.from).abandoned += 1;
            self.hosts.entry(page.host.clone()).or_default().push(page.into());
        }
    }

    /// What is known of a host, of which nothing was before this.
    fn evidence_of(&mut self, host: &str, at: Moment) -> &mut Evidence {
        self.evidence.entry(host.to_owned()).or_insert_with(|| Evidence {
            host: host.to_owned(),
            first: at,
            last: at,
            ..Evidence::default()
        })
    }

    /// The result.
    pub fn finish(mut self) -> Audit {
        self.asked.sort_by_key(|(at, _)| *at);
        for (at, label) in &self.asked {
            if let Some(label) = Label::of(label)
                && let Some(now) = self.rules.learn(&label, *at)
                && let Ok(site) = FetchUrl::parse(label.origin)
                && let Some(evidence) = self.evidence.get_mut(site.host_key())
            {
                evidence.learn(now);
            }
        }
        let mut violations = Vec::new();
        for (host, spans) in self.hosts {
            let evidence = self.evidence.get_mut(&host);
            let mut pace = Pace::new(host, spans);
            pace.check_allowed(&self.rules);
            let (gap, in_flight) = (pace.check_gaps(), pace.check_in_flight());
            pace.check_pauses();
            violations.append(&mut pace.violations);
            if let Some(evidence) = evidence {
                (evidence.shortest_gap, evidence.gap_due) = gap.unzip();
                (evidence.most_in_flight, evidence.most_allowed) = in_flight;
            }
        }
        violations.sort_by_key(|violation| violation.at);
        Audit { hosts: self.evidence.into_values().collect(), violations }
    }
}
