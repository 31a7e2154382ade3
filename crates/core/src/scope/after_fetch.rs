//! What becomes of an entry after its fetch.

use jiff::Timestamp;

use super::before_fetch::{Action, Entry, Rule, Verdict, before_fetch};
use super::config::Scopes;
use crate::url::Identity;

/// How a fetch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was a page, changed or not.
    Success,
    /// 404 or 410.
    NotFound,
    /// Anything else.
    Failure,
}

/// What an entry counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Failures in a row.
    pub errors: u32,
    /// Times in a row that the page was not found.
    pub not_found: u32,
}

impl Counters {
    /// The counters after one more fetch.
    #[must_use]
    pub fn after(self, outcome: Outcome) -> Self {
        match outcome {
            Outcome::Success => Self::default(),
            Outcome::NotFound => Self { errors: 0, not_found: self.not_found.saturating_add(1) },
            Outcome::Failure => Self { errors: self.errors.saturating_add(1), ..self },
        }
    }
}

/// Whether the entry stays in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate<'c> {
    /// It stays. The time is the earliest that its profiles allow; none if no profile says, and
    /// the schedule alone decides.
    Stay {
        /// The seed that owns it: another one than before if that one is gone.
        seed: &'c Identity,
        /// The earliest time of the next fetch.
        not_before: Option<Timestamp>,
        /// What decided.
        rule: Rule<'c>,
    },
    /// It leaves: it was fetched as often as its profiles ask. Its history stays.
    Spent,
    /// It leaves: what it was queued for is gone.
    Remove {
        /// What decided.
        rule: Rule<'c>,
    },
}

/// An entry after its fetch. Its depth stays, as does its seed unless [`Fate`] names another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AfterFetch {
    /// When it was last fetched.
    pub last_fetch: Timestamp,
    /// Its counters.
    pub counters: Counters,
    /// How many fetches are left; unlimited if none.
    pub length: Option<u32>,
}

/// Decides what becomes of an entry that was fetched at `now`.
///
/// A failure is not a harvest: only an answer, be it that there is no such page, counts down the
/// length. A profile, seed or collection disabled meanwhile postpones, and never removes.
pub fn after_fetch<'c>(
    scopes: &'c Scopes,
    entry: &Entry<'_>,
    counters: Counters,
    outcome: Outcome,
    now: Timestamp,
) -> (AfterFetch, Fate<'c>) {
    let harvested = u32::from(outcome != Outcome::Failure);
    let length = entry.length.map(|length| length.saturating_sub(harvested));
    let after = AfterFetch { last_fetch: now, counters: counters.after(outcome), length };
    if length == Some(0) {
        return (after, Fate::Spent);
    }
    let touched = Entry { last_fetch: Some(now), length, ..*entry };
    let Verdict { action, seed, rule, .. } = before_fetch(scopes, &touched, now);
    let fate = match (action, seed) {
        (Action::Fetch, Some(seed)) => Fate::Stay { seed, not_before: None, rule },
        (Action::Postpone { due }, Some(seed)) => Fate::Stay { seed, not_before: Some(due), rule },
        (Action::Remove, _) | (_, None) => Fate::Remove { rule },
    };
    (after, fate)
}
