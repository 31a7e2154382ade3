//! Takes back in memory what a call did that failed. What it staged for the disk is dropped.

use std::sync::Arc;

use super::codec::Counters;
use super::inner::Inner;
use super::slots::Slot;
use super::staged::Staged;
use crate::catalog::Catalog;
use crate::entry::{CollectionId, HostId, Lease};
use crate::host::Host;
use crate::moment::Moment;
use crate::verbs::Tally;

/// One thing that a call did, with what was there before.
#[derive(Debug)]
pub(super) enum Deed {
    /// Added the last entries, so many.
    Inserted(u32),
    /// Gave an entry another standing.
    Stood(u32, Slot, Option<Moment>),
    /// Removed an entry.
    Removed(u32, Slot, Option<Moment>),
    /// Recorded a lease.
    Granted(Lease),
    /// Forgot a lease.
    Ended(Lease),
    /// Gave a host another state.
    SetHost(HostId, Box<Host>),
    /// Added the last host.
    MadeHost,
    /// Added the last queue.
    MadeQueue,
    /// Changed a tally.
    SetTally(CollectionId, Option<Tally>),
    /// Put another catalog in place.
    SetCatalog(Arc<Catalog>),
    /// Dropped a queue, or a whole collection: too much to remember, so all is read from disk again.
    Cleared,
}

/// What a call did, in order, and the numbers before it.
#[derive(Debug, Default)]
pub(super) struct Undo {
    deeds: Vec<Deed>,
    before: Counters,
}

impl Undo {
    /// Begins a call.
    pub(super) fn begin(&mut self, counters: Counters) {
        self.deeds.clear();
        self.before = counters;
    }

    /// Notes that an entry was added. Most come in a row, and are noted together.
    pub(super) fn note_inserted(&mut self) {
        match self.deeds.last_mut() {
            Some(Deed::Inserted(count)) => *count += 1,
            _ => self.note(Deed::Inserted(1)),
        }
    }

    /// Notes a deed.
    pub(super) fn note(&mut self, deed: Deed) {
        self.deeds.push(deed);
    }
}

impl Inner {
    /// Takes back what the call did. Says whether that was possible.
    pub(super) fn undo(&mut self) -> bool {
        self.staged = Staged::default();
        self.held.clear();
        let deeds = std::mem::take(&mut self.undo.deeds);
        if deeds.iter().any(|deed| matches!(deed, Deed::Cleared)) {
            return false;
        }
        for deed in deeds.into_iter().rev() {
            self.take_back(deed);
        }
        // The time goes on: what has become ready stays ready.
        let now = self.counters.now;
        self.counters = Counters { now, ..self.undo.before };
        true
    }

    fn take_back(&mut self, deed: Deed) {
        match deed {
            Deed::Inserted(count) => (0..count).for_each(|_| self.take_back_last()),
            Deed::Stood(number, slot, step) => {
                self.restand(number, slot, step);
                if let Some(now) = self.slots.get_mut(number) {
                    now.set_has_record(slot.has_record());
                }
            }
            Deed::Removed(number, slot, step) => self.put_back(number, slot, step),
            Deed::Granted(lease) => self.drop_lease(lease),
            Deed::Ended(lease) => self.put_lease(lease),
            Deed::SetHost(host, state) => self.put_host(host, *state),
            Deed::MadeHost => self.hosts.pop(),
            Deed::MadeQueue => self.unmake_queue(),
            Deed::SetTally(collection, Some(tally)) => {
                self.tallies.insert(collection, tally);
            }
            Deed::SetTally(collection, None) => {
                self.tallies.remove(&collection);
            }
            Deed::SetCatalog(catalog) => self.put_catalog(catalog),
            Deed::Cleared => {}
        }
    }

    fn take_back_last(&mut self) {
        let number = self.slots.len().saturating_sub(1);
        self.displace(number);
        self.slots.pop();
    }

    fn unmake_queue(&mut self) {
        if let Some(Some(queue)) = self.queues.pop() {
            self.forget_queue(&queue);
        }
    }
}
