//! What a call has changed and is not on disk yet.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::fresh::Fresh;
use crate::catalog::Catalog;
use crate::entry::{CollectionId, Record};
use crate::verbs::{EventRow, FetchRow};

/// What a call has changed. The numbers of what changed are enough for most of it: the rows are
/// made from memory when the call ends.
#[derive(Debug, Default)]
pub(super) struct Staged {
    /// The entries that the call added; the first of them has the number that was next before it.
    pub(super) fresh: Fresh,
    /// Older entries that stand elsewhere, or are leased otherwise.
    pub(super) states: Vec<u32>,
    /// What was learned of older entries.
    pub(super) records: FxHashMap<u32, Record>,
    /// Older entries that were removed and had a record.
    pub(super) forgotten: Vec<u32>,
    /// Hosts that are in another state.
    pub(super) hosts: Vec<u32>,
    /// Hosts that are new or gone.
    pub(super) named_hosts: Vec<u32>,
    /// Queues that are new or gone.
    pub(super) queues: Vec<u32>,
    /// Collections whose tallies changed.
    pub(super) tallies: Vec<CollectionId>,
    /// New events.
    pub(super) events: Vec<EventRow>,
    /// What was written down under keys, or is to be forgotten.
    pub(super) notes: FxHashMap<String, Option<Vec<u8>>>,
    /// New fetches.
    pub(super) fetches: Vec<FetchRow>,
    /// The catalog before the call, if it is another one now.
    pub(super) catalog_before: Option<Arc<Catalog>>,
    /// Whether a number was drawn.
    pub(super) counters: bool,
    /// Whether there may be something new to lease.
    pub(super) rings: bool,
}

impl Staged {
    /// Whether nothing has to be written.
    pub(super) fn is_empty(&self) -> bool {
        self.fresh.is_empty()
            && self.states.is_empty()
            && self.records.is_empty()
            && self.forgotten.is_empty()
            && self.hosts.is_empty()
            && self.named_hosts.is_empty()
            && self.queues.is_empty()
            && self.tallies.is_empty()
            && self.events.is_empty()
            && self.notes.is_empty()
            && self.fetches.is_empty()
            && self.catalog_before.is_none()
            && !self.counters
    }
}
