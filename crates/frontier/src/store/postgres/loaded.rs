//! What was read from the database, and what a call changed of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::numbers::Numbered;
use super::wants::{StretchKey, Wants};
use crate::catalog::Catalog;
use crate::engine::{Counts, HostCounts, Outlook, Wanted};
use crate::entry::{CollectionId, EntryId, HostId, Lease, QueueId, Record, Standing, State, Token};
use crate::host::Host;
use crate::moment::Moment;
use crate::verbs::{EventRow, FetchRow, Tally};

/// An entry.
#[derive(Clone, Debug)]
pub(super) struct EntryRow {
    pub(super) standing: Standing,
    /// When it came into the queue; whole seconds. Numbers do not tell: each process has set some aside.
    pub(super) arrived: Moment,
    pub(super) lease: Option<Lease>,
    /// None if it was not read.
    pub(super) text: Option<Text>,
}

/// What an entry is called, and what was learned of it.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) identity: Arc<str>,
    pub(super) url: Arc<str>,
    pub(super) record: Record,
}

/// A host.
#[derive(Clone, Debug)]
pub(super) struct HostRow {
    pub(super) key: String,
    pub(super) owner: Option<CollectionId>,
    pub(super) state: Host,
}

/// A queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueRow {
    pub(super) collection: CollectionId,
    pub(super) host: HostId,
    pub(super) counts: Counts,
    /// Its place in line, if an entry is ready.
    pub(super) place: Option<i64>,
    /// When it can be claimed, if none is ready and one will be.
    pub(super) opens: Option<Moment>,
    /// When the first entry is due that is not yet.
    pub(super) first_due: Option<Moment>,
    /// When its entries are to be looked at.
    pub(super) wake_at: Option<Moment>,
    /// When it was last changed.
    pub(super) seen: Moment,
    /// Another one after each change.
    pub(super) version: i64,
}

/// Entries in an order, from the first one on.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    pub(super) entries: Vec<EntryId>,
    /// Whether there are no more.
    pub(super) is_all: bool,
}

/// Queues that were claimed for this call.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    /// How many were asked for.
    pub(super) asked: usize,
    /// The last one in line.
    pub(super) last: Option<(u64, QueueId)>,
    /// Whether there are no more.
    pub(super) is_all: bool,
}

/// What queues wait for that this call does not hold.
#[derive(Clone, Debug)]
pub(super) struct Elsewhere {
    pub(super) wanted: Wanted,
    pub(super) without: BTreeSet<QueueId>,
    pub(super) outlook: Outlook,
    /// The queue of the host that opens first.
    pub(super) first_open: Option<QueueId>,
}

/// What is counted of a collection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) counts: Counts,
    pub(super) tally: Tally,
}

/// The sixteen bytes by which an identity is looked up.
pub(super) type Key = [u8; 16];

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) hosts: FxHashMap<HostId, HostRow>,
    pub(super) host_by: FxHashMap<(Option<CollectionId>, String), Option<HostId>>,
    pub(super) queues: BTreeMap<QueueId, QueueRow>,
    pub(super) queue_by: FxHashMap<(CollectionId, String), Option<QueueId>>,
    /// The queues of the hosts that were read.
    pub(super) queues_of: FxHashMap<HostId, Vec<QueueId>>,
    /// What is under way at the hosts that were read.
    pub(super) leased: FxHashMap<HostId, Vec<(EntryId, QueueId, Moment)>>,
    pub(super) entries: FxHashMap<EntryId, Option<EntryRow>>,
    /// Those that were read before their hosts were locked: who changes them reads them again.
    pub(super) outdated: FxHashSet<EntryId>,
    pub(super) found: FxHashMap<(QueueId, Key), Option<EntryId>>,
    pub(super) tokens: FxHashMap<Token, Option<EntryId>>,
    pub(super) ready: FxHashMap<QueueId, Head>,
    pub(super) oldest: FxHashMap<QueueId, Head>,
    pub(super) claims: Option<Claims>,
    pub(super) outlook: Option<Elsewhere>,
    pub(super) expired: Option<Vec<Lease>>,
    /// Entries whose score steps, of the hosts that are being woken.
    pub(super) stepping: Option<Vec<EntryId>>,
    pub(super) scans: BTreeMap<StretchKey, Head>,
    pub(super) counters: FxHashMap<CollectionId, Counters>,
    /// As the tables have them, without what the call changes.
    pub(super) host_counts: HostCounts,
    pub(super) has_all_queues: bool,
    pub(super) has_all_hosts: bool,
    pub(super) notes: FxHashMap<String, Option<Vec<u8>>>,
    /// The keys of notes that begin like this.
    pub(super) note_keys: FxHashMap<String, Vec<String>>,
    pub(super) events: Option<Vec<EventRow>>,
    pub(super) fetches: Option<Vec<FetchRow>>,
    /// Hosts that nobody else can change.
    pub(super) locked: FxHashSet<HostId>,
    /// Everything that was asked for so far.
    pub(super) asked: Wants,
}

/// What a call changed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) catalog: Option<Arc<Catalog>>,
    pub(super) cleared: Vec<CollectionId>,
    /// What was counted by this call.
    pub(super) tallies: BTreeMap<CollectionId, Tally>,
    /// None where one was removed.
    pub(super) entries: BTreeMap<EntryId, Option<EntryRow>>,
    /// All of them, by queue.
    pub(super) by_queue: FxHashMap<QueueId, Vec<EntryId>>,
    pub(super) new_entries: BTreeSet<EntryId>,
    pub(super) found: FxHashMap<(QueueId, Key), EntryId>,
    pub(super) tokens: FxHashMap<Token, EntryId>,
    pub(super) hosts: BTreeMap<HostId, HostRow>,
    pub(super) new_hosts: BTreeSet<HostId>,
    /// New hosts by their keys.
    pub(super) host_by: FxHashMap<(Option<CollectionId>, String), HostId>,
    pub(super) new_queues: BTreeMap<QueueId, QueueRow>,
    /// New queues by their hosts, among others that are not there any more.
    pub(super) new_queues_at: FxHashMap<HostId, Vec<QueueId>>,
    /// New queues by their keys.
    pub(super) queue_by: FxHashMap<(CollectionId, String), QueueId>,
    /// Queues that are gone, each with its host and whether that goes too.
    pub(super) forgotten: BTreeMap<QueueId, (HostId, bool)>,
    pub(super) events: Vec<EventRow>,
    pub(super) fetches: Vec<FetchRow>,
    pub(super) notes: BTreeMap<String, Option<Vec<u8>>>,
    /// How many numbers of each kind were used.
    pub(super) used: [usize; Numbered::ALL.len()],
}

impl Loaded {
    /// Whether more hosts can be waited for without waiting in a circle: all hosts are locked in the same order.
    pub(super) fn can_lock(&self, hosts: &BTreeSet<HostId>) -> bool {
        let last = self.locked.iter().max();
        last.is_none_or(|last| hosts.first().is_none_or(|first| first > last))
    }

    /// The time that counts for a call that says it is `now`: hosts that it changes may have been changed by one whose
    /// clock is a little ahead, or who did not have to wait as long.
    pub(super) fn advanced(&self, now: Moment, is_alone: bool) -> Moment {
        let held = self.queues.values().filter(|queue| is_alone || self.locked.contains(&queue.host));
        held.map(|queue| queue.seen.advanced(now)).max().unwrap_or(now)
    }
}

impl Changes {
    /// Takes in an entry that is new, or the first change of one.
    pub(super) fn take(&mut self, entry: EntryId, row: EntryRow) {
        self.by_queue.entry(row.standing.queue).or_default().push(entry);
        self.entries.insert(entry, Some(row));
    }

    /// Takes in a new queue.
    pub(super) fn take_queue(&mut self, queue: QueueId, row: QueueRow) {
        let at_host = self.new_queues_at.entry(row.host).or_default();
        // All queues have one number while it is not known which they will have.
        if at_host.last() != Some(&queue) {
            at_host.push(queue);
        }
        self.new_queues.insert(queue, row);
    }

    /// The new queues of a host.
    pub(super) fn queues_at(&self, host: HostId) -> impl Iterator<Item = QueueId> {
        let is_its = move |queue: &QueueId| self.new_queues.get(queue).is_some_and(|row| row.host == host);
        self.new_queues_at.get(&host).into_iter().flatten().copied().filter(is_its)
    }

    /// Whether an entry came into a queue, or moved in it.
    pub(super) fn queues_something(&self) -> bool {
        self.entries.values().flatten().any(|row| row.standing.state == State::Queued)
    }

    /// Whether there is nothing to write.
    pub(super) fn are_none(&self) -> bool {
        self.catalog.is_none()
            && self.cleared.is_empty()
            && self.tallies.is_empty()
            && self.entries.is_empty()
            && self.hosts.is_empty()
            && self.new_queues.is_empty()
            && self.forgotten.is_empty()
            && self.events.is_empty()
            && self.fetches.is_empty()
            && self.notes.is_empty()
    }
}
