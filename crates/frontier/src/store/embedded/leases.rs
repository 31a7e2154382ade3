//! What workers hold.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::entry::{CollectionId, EntryId, Lease, Token};
use crate::moment::Moment;

/// All leases, by token, by entry and by their end.
#[derive(Debug, Default)]
pub(super) struct Leases {
    by_token: FxHashMap<Token, Lease>,
    by_entry: FxHashMap<EntryId, Token>,
    ends: BTreeSet<(Moment, Token)>,
    ends_of: FxHashMap<CollectionId, BTreeSet<(Moment, Token)>>,
}

impl Leases {
    /// Adds a lease of an entry of `collection`.
    pub(super) fn insert(&mut self, lease: Lease, collection: CollectionId) {
        self.by_token.insert(lease.token, lease);
        self.by_entry.insert(lease.entry, lease.token);
        self.ends.insert((lease.until, lease.token));
        self.ends_of.entry(collection).or_default().insert((lease.until, lease.token));
    }

    /// Forgets a lease of an entry of `collection`.
    pub(super) fn remove(&mut self, lease: Lease, collection: CollectionId) {
        self.by_token.remove(&lease.token);
        self.by_entry.remove(&lease.entry);
        self.ends.remove(&(lease.until, lease.token));
        if let Some(ends) = self.ends_of.get_mut(&collection) {
            ends.remove(&(lease.until, lease.token));
        }
    }

    /// Forgets that there is such a collection.
    pub(super) fn remove_collection(&mut self, collection: CollectionId) {
        self.ends_of.remove(&collection);
    }

    /// The lease with this token.
    pub(super) fn get(&self, token: Token) -> Option<Lease> {
        self.by_token.get(&token).copied()
    }

    /// The lease of an entry.
    pub(super) fn of(&self, entry: EntryId) -> Option<Lease> {
        self.get(*self.by_entry.get(&entry)?)
    }

    /// Those that ran out by `now`, by (end, token).
    pub(super) fn expired(&self, now: Moment) -> Vec<Lease> {
        let over = self.ends.iter().take_while(|(until, _)| *until <= now);
        over.filter_map(|(_, token)| self.get(*token)).collect()
    }

    /// When the first of a collection runs out.
    pub(super) fn first_end(&self, collection: CollectionId) -> Option<Moment> {
        Some(self.ends_of.get(&collection)?.first()?.0)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = Lease> {
        self.by_token.values().copied()
    }
}
