//! What a call looked for and did not find loaded.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;

use super::loaded::Key;
use super::numbers::Numbered;
use crate::engine::{Wanted, Within};
use crate::entry::{CollectionId, EntryId, QueueId, Token};
use crate::moment::Moment;

/// An entry as it is looked up: by collection, queue key and what stands for its identity.
pub(super) type Lookup = (CollectionId, String, Key);

/// A part of a listing: what is looked through, and after which entry.
pub(super) type Stretch = (Within, Option<EntryId>);

/// What is to be loaded before the call runs again.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(super) struct Wants {
    pub(super) lookups: FxHashSet<Lookup>,
    /// Whether those of them that are not there may be added.
    pub(super) may_add: bool,
    pub(super) queues: BTreeSet<(CollectionId, String)>,
    pub(super) hosts: BTreeSet<(Option<CollectionId>, String)>,
    pub(super) tokens: BTreeSet<Token>,
    pub(super) entries: BTreeSet<EntryId>,
    pub(super) texts: BTreeSet<EntryId>,
    /// So many of those that come first.
    pub(super) ready: BTreeMap<QueueId, usize>,
    /// So many of the oldest.
    pub(super) oldest: BTreeMap<QueueId, usize>,
    pub(super) claims: Option<(Wanted, usize)>,
    /// What those wait for that are not among these queues.
    pub(super) outlook: Option<(Wanted, BTreeSet<QueueId>)>,
    pub(super) expired: Option<Moment>,
    pub(super) wake: bool,
    pub(super) scans: BTreeMap<StretchKey, (Stretch, usize)>,
    pub(super) counters: BTreeSet<CollectionId>,
    /// How many hosts these have.
    pub(super) host_counts: BTreeSet<CollectionId>,
    pub(super) all_queues: bool,
    pub(super) all_hosts: bool,
    pub(super) notes: BTreeSet<String>,
    /// The keys of notes that begin like this.
    pub(super) note_prefixes: BTreeSet<String>,
    pub(super) events: Option<(u64, usize)>,
    pub(super) fetches: Option<(u64, usize)>,
    pub(super) numbers: [usize; Numbered::ALL.len()],
}

/// What orders stretches.
pub(super) type StretchKey = (u8, u32, Option<EntryId>);

/// The key of a stretch.
pub(super) fn stretch_key((within, after): Stretch) -> StretchKey {
    match within {
        Within::Everything => (0, 0, after),
        Within::Collection(CollectionId(number)) => (1, number, after),
        Within::Queue(QueueId(number)) => (2, number, after),
    }
}

impl Wants {
    /// Whether everything was there.
    pub(super) fn is_empty(&self) -> bool {
        let Self {
            lookups,
            // Says something of the look-ups.
            may_add: _,
            queues,
            hosts,
            tokens,
            entries,
            texts,
            ready,
            oldest,
            claims,
            outlook,
            expired,
            wake,
            scans,
            counters,
            host_counts,
            all_queues,
            all_hosts,
            notes,
            note_prefixes,
            events,
            fetches,
            numbers,
        } = self;
        let no_rows = lookups.is_empty()
            && queues.is_empty()
            && hosts.is_empty()
            && tokens.is_empty()
            && entries.is_empty()
            && texts.is_empty();
        let no_heads = ready.is_empty() && oldest.is_empty() && claims.is_none() && outlook.is_none();
        let no_lists = scans.is_empty()
            && counters.is_empty()
            && host_counts.is_empty()
            && notes.is_empty()
            && note_prefixes.is_empty()
            && !all_queues
            && !all_hosts;
        let no_logs = events.is_none() && fetches.is_none();
        no_rows
            && no_heads
            && no_lists
            && no_logs
            && expired.is_none()
            && !wake
            && numbers.iter().all(|count| *count == 0)
    }

    /// Whether it is numbers only that are missing.
    pub(super) fn are_only_numbers(&self) -> bool {
        let others = Self { numbers: [0; Numbered::ALL.len()], ..self.clone() };
        others.is_empty()
    }

    /// Takes in what was wanted before.
    pub(super) fn merge(&mut self, other: Self) {
        self.lookups.extend(other.lookups);
        self.may_add |= other.may_add;
        self.queues.extend(other.queues);
        self.hosts.extend(other.hosts);
        self.tokens.extend(other.tokens);
        self.entries.extend(other.entries);
        self.texts.extend(other.texts);
        merge_counts(&mut self.ready, other.ready);
        merge_counts(&mut self.oldest, other.oldest);
        self.claims = other.claims.or(self.claims.take());
        self.outlook = other.outlook.or(self.outlook.take());
        self.expired = other.expired.or(self.expired);
        self.wake |= other.wake;
        self.scans.extend(other.scans);
        self.counters.extend(other.counters);
        self.host_counts.extend(other.host_counts);
        self.all_queues |= other.all_queues;
        self.all_hosts |= other.all_hosts;
        self.notes.extend(other.notes);
        self.note_prefixes.extend(other.note_prefixes);
        self.events = other.events.or(self.events);
        self.fetches = other.fetches.or(self.fetches);
    }
}

fn merge_counts(all: &mut BTreeMap<QueueId, usize>, more: BTreeMap<QueueId, usize>) {
    for (queue, count) in more {
        let known = all.entry(queue).or_default();
        *known = count.max(*known);
    }
}
