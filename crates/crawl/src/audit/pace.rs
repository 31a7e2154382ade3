//! Whether one host had its gaps, its limit and its pauses.

use forager_core::url::FetchUrl;
use forager_frontier::Moment;
use forager_frontier::verbs::FetchRow;

use super::robots::Rulebook;
use super::{Abandoned, Violation};

/// From one request to its answer.
pub(super) struct Span {
    started: Moment,
    ended: Moment,
    url: String,
    /// The gap and limit in force; none if nobody knows when the request was sent, or whether it was.
    limits: Option<(u64, u32)>,
    /// Whether robots.txt has a say in it.
    is_page: bool,
    /// The milliseconds that robots.txt wanted before it, by what was known when it was sent.
    wait: u64,
    /// Until when the host is to be left alone after its answer.
    pause: Option<Moment>,
}

impl Span {
    pub(super) fn new(row: FetchRow, is_page: bool) -> Self {
        let limits = Some((row.least_gap, row.most_in_flight));
        let (started, ended, pause) = (row.started, row.ended, row.back_off_until);
        Self { started, ended, url: row.url, limits, is_page, wait: 0, pause }
    }
}

impl From<Abandoned> for Span {
    fn from(page: Abandoned) -> Self {
        let Abandoned { url, from: started, until: ended, .. } = page;
        Self { started, ended, url, limits: None, is_page: false, wait: 0, pause: None }
    }
}

/// All requests to one host, judged together.
pub(super) struct Pace {
    host: String,
    /// By their starts.
    spans: Vec<Span>,
    pub(super) violations: Vec<Violation>,
}

impl Pace {
    pub(super) fn new(host: String, mut spans: Vec<Span>) -> Self {
        spans.sort_by_key(|span| span.started);
        Self { host, spans, violations: Vec::new() }
    }

    /// The requests of which it is known when they were sent.
    fn sent(&self) -> impl Iterator<Item = &Span> {
        self.spans.iter().filter(|span| span.limits.is_some())
    }

    /// Judges each page by the rules that were known when it was requested.
    pub(super) fn check_allowed(&mut self, rules: &Rulebook<'_>) {
        let mut found = Vec::new();
        for span in self.spans.iter_mut().filter(|span| span.is_page) {
            let Ok(url) = FetchUrl::parse(&span.url) else { continue };
            span.wait = rules.wait(&url, span.started);
            if let Some(what) = rules.objection(&url, span.started) {
                found.push(violation(&self.host, span, what));
            }
        }
        self.violations.append(&mut found);
    }

    /// Holds each request against the one before it. Returns the shortest gap, and what was due there.
    pub(super) fn check_gaps(&mut self) -> Option<(u64, u64)> {
        let (mut shortest, mut found) = (None, Vec::new());
        // What was abandoned has no time of its own, and does not part those around it: they are held against each other.
        for (before, after) in self.sent().zip(self.sent().skip(1)) {
            let (Some((first, _)), Some((second, _))) = (before.limits, after.limits) else { continue };
            let gap = after.started.millisecond().saturating_sub(before.started.millisecond());
            // A limit that was changed in between holds from then on. What robots.txt asks for holds as soon as it is read, by
            // whatever limits a page was handed out.
            let least = first.min(second).max(after.wait);
            shortest = shortest.into_iter().chain([(gap, least)]).min_by_key(|(gap, _): &(u64, u64)| *gap);
            if gap < least {
                let what = format!("{gap} ms after {}, and {least} ms were due", before.url);
                found.push(violation(&self.host, after, what));
            }
        }
        self.violations.append(&mut found);
        shortest
    }

    /// Counts the requests under way at the start of each. Returns the most that were so at a time, and how many could be then;
    /// the fewest, if they were so many more than once.
    pub(super) fn check_in_flight(&mut self) -> (u32, Option<u32>) {
        let (mut most, mut found) = ((0, None), Vec::new());
        let mut under_way: Vec<Moment> = Vec::new();
        for span in &self.spans {
            under_way.retain(|ended| *ended > span.started);
            under_way.push(span.ended);
            let count = u32::try_from(under_way.len()).unwrap_or(u32::MAX);
            let allowed = span.limits.map(|(_, limit)| limit);
            if count > most.0 {
                most = (count, allowed);
            } else if count == most.0 {
                most.1 = most.1.into_iter().chain(allowed).min();
            }
            if let Some(limit) = allowed.filter(|limit| count > *limit) {
                found.push(violation(
                    &self.host,
                    span,
                    format!("{count} under way, and {limit} were allowed"),
                ));
            }
        }
        self.violations.append(&mut found);
        most
    }

    /// No request is sent between an answer that asked for a pause and the end of that.
    pub(super) fn check_pauses(&mut self) {
        let mut asked: Vec<&Span> = self.spans.iter().filter(|span| span.pause.is_some()).collect();
        asked.sort_by_key(|span| span.ended);
        let mut asked = asked.into_iter().peekable();
        let (mut longest, mut found): (Option<&Span>, _) = (None, Vec::new());
        for span in self.sent() {
            while let Some(earlier) = asked.next_if(|earlier| earlier.ended < span.started) {
                longest = longest.into_iter().chain([earlier]).max_by_key(|span| span.pause);
            }
            let Some((earlier, until)) = longest.and_then(|span| Some((span, span.pause?))) else { continue };
            if span.started < until {
                let what = format!("the host was to be left alone until {until}, after {}", earlier.url);
                found.push(violation(&self.host, span, what));
            }
        }
        self.violations.append(&mut found);
    }
}

fn violation(host: &str, span: &Span, what: String) -> Violation {
    Violation { host: host.to_owned(), url: span.url.clone(), at: span.started, what }
}
