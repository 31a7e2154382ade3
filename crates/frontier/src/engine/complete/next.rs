//! What becomes of an entry after a fetch: whether it stays, and when it is due again.

use std::sync::Arc;

use forager_core::scope::after_fetch::{Fate, after_fetch};
use forager_core::scope::before_fetch::Rule;
use forager_core::sentinel::schedule::{Reason, next_scan, next_try};
use forager_core::time::Interval;

use super::super::Tx;
use super::super::chance::{draw, random};
use super::super::lease::{judged_by, scope_entry};
use super::super::priority::adopt;
use super::{Done, FetchResult, LONGEST_PAUSE};
use crate::catalog::Kind;
use crate::entry::{Record, Standing};
use crate::host::to_millis;
use crate::moment::Moment;
use crate::verbs::Outcome;

/// What becomes of an entry, before it is written down.
pub(super) struct Next<'c> {
    pub(super) outcome: Outcome,
    pub(super) due: Option<Moment>,
    pub(super) rule: Why<'c>,
}

/// Why an entry is due when it is.
pub(super) enum Why<'c> {
    Scope(Rule<'c>),
    Text(Arc<str>),
}

impl<'c> Done<'c, '_> {
    /// Whether an entry stays, and when it is due again.
    pub(super) fn decide<T: Tx>(
        &self,
        tx: &T,
        url: &str,
        standing: &mut Standing,
        before: &Record,
        record: &mut Record,
    ) -> Next<'c> {
        let last_fetch = Moment::from_second(self.now.second());
        if self.collection.spec.kind == Kind::Plain {
            standing.last_fetch = Some(last_fetch);
            return Next { outcome: Outcome::Done, due: None, rule: Why::Text("plain".into()) };
        }
        let Some((identity, seed)) = judged_by(self.catalog, self.collection, standing, url) else {
            return Next { outcome: Outcome::Removed, due: None, rule: Why::Text("seed gone".into()) };
        };
        let entry = scope_entry(self.collection, &identity, seed, standing, before);
        let (after, fate) = after_fetch(
            self.catalog.scopes(),
            &entry,
            before.counters(),
            self.result.outcome(),
            self.now.timestamp(),
        );
        standing.last_fetch = Some(last_fetch);
        (record.errors, record.not_found) = (after.counters.errors, after.counters.not_found);
        record.length = after.length;
        match fate {
            Fate::Spent => {
                let text = "fetched as often as asked";
                Next { outcome: Outcome::Done, due: None, rule: Why::Text(text.into()) }
            }
            Fate::Remove { rule } => Next { outcome: Outcome::Removed, due: None, rule: Why::Scope(rule) },
            Fate::Stay { seed, not_before, rule } => {
                let before = standing.seed;
                standing.seed = self.catalog.seed_number(seed).or(before);
                adopt(self.catalog, &self.collection.spec.id, before, standing, record, self.now);
                let not_before = not_before.map(|time| Moment::due(time, self.now));
                self.schedule(tx, url, standing, record, not_before, rule)
            }
        }
    }

    /// When an entry that stays is due again.
    fn schedule<T: Tx>(
        &self,
        tx: &T,
        url: &str,
        standing: &Standing,
        record: &mut Record,
        not_before: Option<Moment>,
        rule: Rule<'c>,
    ) -> Next<'c> {
        let settings = tx.settings();
        let learned = (record.evidence().velocity, standing.risk);
        let at_least = |due: Moment| not_before.map_or(due, |bound| bound.max(due));
        let now = self.now.timestamp();
        let Some(failure) = self.result.failure() else {
            if let (Rule::TooEarly { .. }, Some(due)) = (rule, not_before) {
                return Next { outcome: Outcome::Again, due: Some(due), rule: Why::Scope(rule) };
            }
            let mut random = random(url, record.scans);
            let next = next_scan(learned.0, learned.1, &settings.sentinel, now, &mut random);
            let due = at_least(Moment::due(next.due, self.now));
            return Next { outcome: Outcome::Again, due: Some(due), rule: Why::Scope(rule) };
        };
        if record.length.is_some() && self.result != FetchResult::NotFound {
            return self.retry(tx, url, record, at_least);
        }
        if let (Rule::TooEarly { profile, every }, Some(due)) = (rule, not_before)
            && self.result != FetchResult::Forbidden
        {
            return self.as_often_as_said(profile, every, due, record);
        }
        let failures = record.errors.max(record.not_found).saturating_sub(1);
        let next = next_try(failure, failures, self.report.retry_after, learned, &settings.sentinel, now);
        let reasons: Vec<String> = next.reasons.iter().map(ToString::to_string).collect();
        let because = format!("{}: {}", self.words(), reasons.join("; "));
        record.due_because = Some(because.clone());
        let due = at_least(Moment::due(next.due, self.now));
        Next { outcome: Outcome::Again, due: Some(due), rule: Why::Text(because.into()) }
    }

    /// A failed fetch of a page whose profile says how often it is fetched: that holds, for whoever says so wants to know
    /// soon when the page is there again. Its host is spared all the same.
    fn as_often_as_said(&self, profile: &str, every: Interval, due: Moment, record: &mut Record) -> Next<'c> {
        let mut because = format!("{}: every {every} ({profile})", self.words());
        let asked = self.report.retry_after.map(|asked| asked.min(LONGEST_PAUSE));
        let asked = asked.map(|asked| (asked, Moment::due(asked.after(self.now.timestamp()), self.now)));
        let later = asked.filter(|(_, until)| *until > due);
        if let Some((asked, _)) = later {
            because = format!("{because}; {}", Reason::RetryAfter(asked));
        }
        record.due_because = Some(because.clone());
        let due = later.map_or(due, |(_, until)| until);
        Next { outcome: Outcome::Again, due: Some(due), rule: Why::Text(because.into()) }
    }

    /// A failed fetch of a page that is fetched a limited number of times: a few tries, then it is given up.
    fn retry<T: Tx>(
        &self,
        tx: &T,
        url: &str,
        record: &mut Record,
        at_least: impl Fn(Moment) -> Moment,
    ) -> Next<'c> {
        let (retry, tries) = (tx.settings().retry, self.tries(tx));
        let failures = record.errors;
        if failures > tries {
            let after = match tries {
                0 => "at once".to_owned(),
                1 => "after 1 more try".to_owned(),
                _ => format!("after {tries} more tries"),
            };
            let text = format!("{}: given up {after}", self.words());
            return Next { outcome: Outcome::Failed, due: None, rule: Why::Text(text.into()) };
        }
        let wait = to_millis(retry.first.doubled(failures.saturating_sub(1), retry.longest));
        let wait = wait + draw(url, u64::from(failures), wait / 5);
        let asked = self.report.retry_after.map_or(0, to_millis);
        let due = self.now.after_millis(wait.max(asked));
        let because = format!("{}: try {failures} of {tries}", self.words());
        record.due_because = Some(because.clone());
        let due = at_least(Moment::due(due.timestamp(), self.now));
        Next { outcome: Outcome::Again, due: Some(due), rule: Why::Text(because.into()) }
    }

    /// How often a page with a limited number of fetches is tried again after this.
    pub(super) fn tries<T: Tx>(&self, tx: &T) -> u32 {
        let retry = tx.settings().retry;
        match self.result {
            FetchResult::Refused => retry.refused,
            FetchResult::Failed { .. } | FetchResult::Unknown => retry.failed,
            FetchResult::Page { .. } | FetchResult::NotFound | FetchResult::Dead | FetchResult::Forbidden => {
                0
            }
        }
    }
}
