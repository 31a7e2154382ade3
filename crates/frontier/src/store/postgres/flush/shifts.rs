//! What a call has done to queues, by the entries that it has changed.

use std::collections::BTreeMap;

use super::super::view::View;
use super::before;
use crate::entry::{QueueId, Standing, State};
use crate::moment::Moment;

/// What the call has done to each queue whose entries it has changed.
pub(super) type Shifts = BTreeMap<QueueId, Shift>;

/// What the call has done to a queue.
#[derive(Debug, Default)]
pub(super) struct Shift {
    /// How many entries it has gained or lost, by state.
    pub(super) counts: [i64; State::ALL.len()],
    /// Whether one of those that were changed is ready.
    pub(super) has_ready: bool,
    /// When the first of them is due that waits.
    pub(super) first_due: Option<Moment>,
    /// When the score of the first of them steps.
    pub(super) step: Option<Moment>,
    /// When the last of those was due that were queued before.
    last_queued: Option<Moment>,
}

impl Shift {
    fn take_away(&mut self, standing: &Standing) {
        self.counts[standing.state as usize] -= 1;
        if standing.state == State::Queued {
            self.last_queued = self.last_queued.max(Some(standing.due));
        }
    }

    fn add(&mut self, standing: &Standing, is_ready: bool) {
        self.counts[standing.state as usize] += 1;
        self.has_ready |= is_ready;
        if standing.state == State::Queued {
            let first = |one: Option<Moment>, other: Option<Moment>| one.into_iter().chain(other).min();
            self.first_due = first(self.first_due, Some(standing.due).filter(|_| !is_ready));
            self.step = first(self.step, standing.step);
        }
    }

    /// Whether something is ready in a queue, where that is known: `before` says whether something was, and `others` whether one
    /// is that the call has left as it was.
    pub(super) fn has_ready_after(&self, before: bool, others: Option<bool>) -> Option<bool> {
        if self.has_ready || self.last_queued.is_none() || !before {
            return Some(self.has_ready || (before && self.last_queued.is_none()));
        }
        others
    }

    /// Whether it is known when the first entry of a queue is due that waits, if that was `before`. One that waited may not any
    /// more: then only its entries know.
    pub(super) fn knows_first_due(&self, before: Option<Moment>) -> bool {
        before.is_none_or(|first| self.last_queued.is_none_or(|last| last < first))
    }

    /// When that is, where it is known.
    pub(super) fn first_due_after(&self, before: Option<Moment>) -> Option<Moment> {
        before.into_iter().chain(self.first_due).min()
    }
}

/// What the call has done.
pub(super) fn shifts(view: &View) -> Shifts {
    let mut shifts = Shifts::new();
    for (entry, row) in &view.changes.entries {
        if let Some(row) = before(view, *entry) {
            shifts.entry(row.standing.queue).or_default().take_away(&row.standing);
        }
        if let Some(row) = row {
            let is_ready = view.is_ready(&row.standing);
            shifts.entry(row.standing.queue).or_default().add(&row.standing, is_ready);
        }
    }
    shifts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ready_is_known_unless_the_last_one_may_be_taken() {
        let taken = Some(Moment::from_second(50));
        let cases = [
            // has one, has taken one; before, others; after
            ("one is added", (true, None), (false, None), Some(true)),
            ("one is taken, another added", (true, taken), (true, None), Some(true)),
            ("none is touched", (false, None), (true, None), Some(true)),
            ("none is there", (false, None), (false, None), Some(false)),
            ("one that waited is taken", (false, taken), (false, None), Some(false)),
            ("one is taken, others are left", (false, taken), (true, Some(true)), Some(true)),
            ("the last one is taken", (false, taken), (true, Some(false)), Some(false)),
            ("one is taken, of others nothing is known", (false, taken), (true, None), None),
        ];
        for (name, (has_ready, last_queued), (before, others), wanted) in cases {
            let shift = Shift { has_ready, last_queued, ..Shift::default() };
            assert_eq!(shift.has_ready_after(before, others), wanted, "{name}");
        }
    }

    #[test]
    fn the_first_due_is_known_unless_one_that_waited_may_be_gone() {
        let at = Moment::from_second;
        let shift = |first_due: Option<u32>, last_queued: Option<u32>| Shift {
            first_due: first_due.map(at),
            last_queued: last_queued.map(at),
            ..Shift::default()
        };
        let cases = [
            ("nothing changed", shift(None, None), Some(50), Some(50)),
            ("one is added that waits longer", shift(Some(60), None), Some(50), Some(50)),
            ("one is added that is due sooner", shift(Some(40), None), Some(50), Some(40)),
            ("the first that waits is added", shift(Some(60), None), None, Some(60)),
            ("what is taken was ready", shift(None, Some(49)), Some(50), Some(50)),
            ("none waited", shift(None, Some(70)), None, None),
        ];
        for (name, shift, before, wanted) in cases {
            let before = before.map(at);
            assert!(shift.knows_first_due(before), "{name}");
            assert_eq!(shift.first_due_after(before), wanted.map(at), "{name}");
        }
        assert!(!shift(None, Some(50)).knows_first_due(Some(at(50))), "what is taken may have waited");
    }
}
