//! The texts and records of what workers hold: each is asked for again when its report comes, and
//! need not be read from disk a second time.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use crate::entry::{EntryId, Record};

/// How many are kept at most.
const MOST: usize = 50_000;

/// What was read for entries that are leased.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// What was read last: it is kept if the entry is handed out.
    last: RefCell<Option<(EntryId, String, Record)>>,
    kept: FxHashMap<EntryId, (String, Record)>,
}

impl Held {
    /// What is known of an entry, if it is kept.
    pub(super) fn get(&self, entry: EntryId) -> Option<(String, Record)> {
        self.kept.get(&entry).cloned()
    }

    /// Notes what was read of an entry.
    pub(super) fn note(&self, entry: EntryId, (url, record): &(String, Record)) {
        *self.last.borrow_mut() = Some((entry, url.clone(), record.clone()));
    }

    /// Keeps what was just read of an entry.
    pub(super) fn keep(&mut self, entry: EntryId) {
        if let Some((read, url, record)) = self.last.get_mut().take()
            && read == entry
            && self.kept.len() < MOST
        {
            self.kept.insert(entry, (url, record));
        }
    }

    /// An entry has changed, or is not leased any more.
    pub(super) fn forget(&mut self, entry: EntryId) {
        self.last.get_mut().take_if(|(read, ..)| *read == entry);
        self.kept.remove(&entry);
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
