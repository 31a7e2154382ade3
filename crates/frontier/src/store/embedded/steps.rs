//! When the scores of entries step: few entries have such a time, so it is kept apart from them.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::queue::{Heap, tidy};
use super::slots::Slots;
use crate::entry::State;
use crate::moment::Moment;

/// The entries whose score steps.
#[derive(Debug, Default)]
pub(super) struct Steps {
    by_entry: FxHashMap<u32, Moment>,
    /// By (time, number); an element that is out of date is dropped when it comes up.
    alarms: Heap<(Moment, u32)>,
}

impl Steps {
    /// When the score of an entry steps.
    pub(super) fn get(&self, number: u32) -> Option<Moment> {
        self.by_entry.get(&number).copied()
    }

    /// Sets when the score of an entry steps. `is_queued` says whether it needs to be told.
    pub(super) fn set(&mut self, number: u32, step: Option<Moment>, is_queued: bool) {
        match step {
            Some(step) => {
                self.by_entry.insert(number, step);
                if is_queued {
                    self.alarms.push(Reverse((step, number)));
                }
            }
            None => {
                self.by_entry.remove(&number);
            }
        }
        if self.alarms.len() > 2 * self.by_entry.len() + 64 {
            let by_entry = &self.by_entry;
            tidy(&mut self.alarms, |(step, number)| by_entry.get(number) == Some(step));
        }
    }

    /// The queued entries whose score steps by `now`, in the order of their numbers.
    pub(super) fn due(&mut self, slots: &Slots, now: Moment) -> Vec<u32> {
        let mut due = Vec::new();
        while let Some(&Reverse((step, number))) =
            self.alarms.peek().filter(|Reverse((step, _))| *step <= now)
        {
            self.alarms.pop();
            let is_queued = slots.live(number).is_some_and(|slot| slot.state() == State::Queued);
            if is_queued && self.get(number) == Some(step) {
                due.push((number, step));
            }
        }
        due.sort_unstable();
        due.dedup();
        // They stay until the engine has set another time.
        self.alarms.extend(due.iter().map(|&(number, step)| Reverse((step, number))));
        due.into_iter().map(|(number, _)| number).collect()
    }
}
