//! How far a crawl is, counted where it works and told by a thread of its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use forager_crawl::{NotFetched, PageLine};
use forager_frontier::verbs::{Nothing, Outcome};
use jiff::Timestamp;
use serde_json::json;

use super::line::Line;
use super::outlook::{Gaps, Outlook};
use super::teller::Told;

/// What is counted.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) fetched: u64,
    pub(crate) queued: u64,
    pub(crate) under_way: usize,
    pub(crate) waits_for: Option<Nothing>,
    errors: u64,
    gaps: Gaps,
    started: Instant,
}

/// Counts that a crawl and whoever tells of it share.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<Mutex<Counts>>);

impl Shared {
    /// Counts of a crawl that begins with so many pages.
    pub(crate) fn new(queued: u64) -> Self {
        Self(Arc::new(Mutex::new(Counts {
            fetched: 0,
            queued,
            under_way: 0,
            waits_for: None,
            errors: 0,
            gaps: Gaps::default(),
            started: Instant::now(),
        })))
    }

    pub(crate) fn get(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a fetch did not come to what was hoped for.
pub(crate) fn is_failed(page: &PageLine) -> bool {
    page.error.is_some() || page.status.is_none_or(|status| status >= 400)
}

impl Counts {
    /// Counts a page.
    pub(crate) fn page(&mut self, page: &PageLine) {
        self.waits_for = None;
        // What robots.txt forbids is as it should be.
        self.errors += u64::from(is_failed(page) && page.not_fetched != Some(NotFetched::Robots));
        if page.not_fetched.is_none() {
            self.fetched += 1;
            self.gaps.note(page);
        }
        self.queued += page.added as u64;
        if page.outcome != Some(Outcome::Again) {
            self.queued = self.queued.saturating_sub(1);
        }
    }

    /// How far it is, in a line. With an outlook, also how long it will take, and why.
    pub(crate) fn told(&self, outlook: Option<&mut Outlook>) -> Told {
        let Self { fetched, queued, under_way, errors, .. } = *self;
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let rate = fetched as f64 / self.started.elapsed().as_secs_f64().max(0.001);
        let not_before = match self.waits_for {
            Some(Nothing::NotDue { until }) => Some(until),
            _ => None,
        };
        let estimate = outlook.and_then(|outlook| outlook.estimate(&self.gaps, (fetched, rate), not_before));
        // Less than a second is no estimate, but what is left of an old one, or all that is known at the start.
        let left = estimate.filter(|estimate| estimate.seconds >= 1.0);
        let line = Line { done: fetched, queued, under_way, errors, rate, left, waits: self.waits() };
        let figures = json!({"done": fetched, "queued": queued, "underWay": under_way, "errors": errors});
        Told { line: line.whole(), parts: Some(line), figures }
    }

    /// What it waits for, if it waits.
    fn waits(&self) -> String {
        let until = |until: forager_frontier::Moment| {
            let until = until.timestamp();
            let is_soon = until.duration_since(Timestamp::now()) < jiff::SignedDuration::from_hours(24);
            until.strftime(if is_soon { "%H:%M:%S UTC" } else { "%Y-%m-%d %H:%M UTC" }).to_string()
        };
        match self.waits_for {
            Some(Nothing::Throttled { gate, until: at }) => {
                format!("; waiting until {} for a host ({gate})", until(at))
            }
            Some(Nothing::NotDue { until: at }) => {
                format!("; waiting until {} for a page to be due", until(at))
            }
            Some(Nothing::Blocked { .. }) => "; waiting for answers".to_owned(),
            Some(Nothing::Empty) | None => String::new(),
        }
    }
}
