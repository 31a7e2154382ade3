//! The rules of the queue, once for every store.
//!
//! Each verb is one function over a [`Tx`]: what a store shows the engine of itself while one call
//! runs. The functions decide with `forager-core` and tell the store what to change; a store
//! holds indexes and no rule. So a rule cannot come out differently on another store.

mod catalog;
mod chance;
mod complete;
mod discover;
mod explain;
mod hold;
mod hosts;
mod image;
mod jobs;
mod lease;
mod notes;
mod plain;
mod priority;
mod put;
mod read;
mod remove;
mod rules;

use std::collections::HashMap;
use std::sync::Arc;

pub(crate) use catalog::{configure, start};
pub(crate) use complete::complete;
pub(crate) use discover::discover;
pub(crate) use explain::explain;
pub(crate) use hold::{extend, reclaim, release, settle};
pub(crate) use hosts::{hosts, leave, set_hosts, visit};
pub(crate) use image::{append, export, import, learn};
pub(crate) use jobs::{jobs, start_job, steer_job};
pub(crate) use lease::{lease, wake};
pub(crate) use notes::{note, noted};
pub(crate) use plain::problem_of as plain_problem;
pub(crate) use put::put;
pub(crate) use read::{entry, list, plan, stats};
pub(crate) use remove::{purge, remove};

use crate::catalog::{Catalog, CollectionRow};
use crate::entry::{CollectionId, EntryId, HostId, Lease, QueueId, Record, Standing, State, Token};
use crate::error::Result;
use crate::host::{Host, InFlight, Opens};
use crate::moment::Moment;
use crate::settings::Settings;
use crate::verbs::{Event, EventRow, FetchRow, Tally};

/// A new entry.
#[derive(Debug)]
pub(crate) struct NewEntry<'a> {
    /// The text by which it is known in its queue: the identity, or the URL in a plain collection.
    pub(crate) identity: &'a str,
    /// What is requested.
    pub(crate) url: &'a str,
    pub(crate) standing: Standing,
    pub(crate) record: Record,
}

/// Where an entry is to be looked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sought {
    /// Its queue, if there is one.
    pub(crate) queue: Option<QueueId>,
    /// What the store looks for it by within that queue, if it has something like that.
    pub(crate) mark: u64,
}

/// Which queues a call is about.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Those of these collections.
    pub(crate) collections: Vec<CollectionId>,
    /// Those with this key.
    pub(crate) key: Option<String>,
    /// How many entries are asked for, so that a store that has far to go for them can fetch them together.
    pub(crate) most: usize,
    /// How many of them may be of one host.
    pub(crate) per_host: usize,
}

/// A queue and its place in line.
pub(crate) type InLine = (u64, QueueId);

/// Which entries a call looks through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Within {
    Everything,
    Collection(CollectionId),
    Queue(QueueId),
}

/// What the queues that are wanted wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "each is the first of its kind")]
pub(crate) struct Outlook {
    /// Of the hosts that are closed though something is due there, the one that opens first.
    /// Of several, the one with the lowest queue number.
    pub(crate) first_open: Option<Opens>,
    /// Of the queues with nothing due, the earliest time at which one has something due and its host is open.
    pub(crate) first_due: Option<Moment>,
    /// The lease that runs out first.
    pub(crate) first_expiry: Option<Moment>,
}

/// How many entries there are in each state, in the order of [`State::ALL`].
pub(crate) type Counts = [u64; State::ALL.len()];

/// How many hosts each collection has that are [listed](hosts::is_listed), and how many of them with something queued or under
/// way. One that has none may be left out.
pub(crate) type HostCounts = HashMap<CollectionId, [u64; 2]>;

/// What a store shows the engine while one call runs. What the engine changes is seen by the same
/// call at once; it becomes durable, all together, when the call ends.
///
/// An entry is *ready* if it is queued and due, and a queue if it has a ready entry. A ready queue
/// is *open* if its host is, by [`Host::opens`].
pub(crate) trait Tx {
    fn settings(&self) -> &Arc<Settings>;
    fn catalog(&self) -> &Arc<Catalog>;
    /// Puts another catalog in place.
    fn set_catalog(&mut self, catalog: Arc<Catalog>);
    /// Drops all entries and queues of a collection, and the hosts of its own. Returns how many entries.
    fn clear_collection(&mut self, collection: CollectionId) -> Result<u64>;
    fn tally(&self, collection: CollectionId) -> Tally;
    /// Adds to what is counted of a collection, which need not be read for that.
    fn count_up(&mut self, collection: CollectionId, more: Tally);

    /// Entries of a collection that [`find`](Tx::find) will be asked for next, by (queue key, identity), and that may
    /// be added: a store that has far to go for them can fetch them together. Says whether they are at hand; if not,
    /// the call runs again when they are, and need not go on with them now.
    fn look_ahead(&self, _collection: CollectionId, _wanted: &[(&str, &str)]) -> bool {
        true
    }
    /// How many entries are best sought at a time.
    const TOGETHER: usize = usize::MAX;

    /// Where entries of a collection are to be looked for, by (queue key, identity); none if the call has to run again, as with
    /// [`look_ahead`](Tx::look_ahead), which it stands for. What is not there may be added meanwhile.
    fn seek(&self, collection: CollectionId, wanted: &[(&str, &str)]) -> Option<Vec<Sought>> {
        let sought = |(key, _): &(&str, &str)| Sought { queue: self.find_queue(collection, key), mark: 0 };
        self.look_ahead(collection, wanted).then(|| wanted.iter().map(sought).collect())
    }
    /// The same for an entry of a queue.
    fn sought_in(&self, queue: QueueId, _identity: &str) -> Sought {
        Sought { queue: Some(queue), mark: 0 }
    }
    /// The entry that is known by `identity`, where it was sought.
    fn find_sought(&self, sought: &Sought, identity: &str) -> Result<Option<EntryId>> {
        sought.queue.map_or(Ok(None), |queue| self.find(queue, identity))
    }
    /// Adds an entry that is not where it was sought.
    fn insert_sought(&mut self, new: NewEntry<'_>, _sought: &Sought) -> EntryId {
        self.insert(new)
    }

    /// The entry that is known by `identity` in a queue.
    fn find(&self, queue: QueueId, identity: &str) -> Result<Option<EntryId>>;
    /// Where an entry stands; none if it was removed.
    fn standing(&self, entry: EntryId) -> Option<Standing>;
    /// When an entry came into its queue, where numbers are not in that order; none where they are.
    fn arrived(&self, _entry: EntryId) -> Option<Moment> {
        None
    }
    /// What an entry requests, and what was learned of it.
    fn load(&self, entry: EntryId) -> Result<(String, Record)>;
    fn insert(&mut self, new: NewEntry<'_>) -> EntryId;
    fn set_standing(&mut self, entry: EntryId, standing: Standing);
    fn set_record(&mut self, entry: EntryId, record: Record);
    fn remove(&mut self, entry: EntryId);

    /// The queue of a key in a collection; it and its host are made if they are not there. The hosts
    /// of planned collections are shared; `is_plain` collections have their own.
    fn queue(&mut self, collection: CollectionId, key: &str, is_plain: bool) -> QueueId;
    fn find_queue(&self, collection: CollectionId, key: &str) -> Option<QueueId>;
    /// Forgets a queue that has no entries left, and its host if that is of a plain collection.
    fn forget_queue(&mut self, queue: QueueId);
    /// The collection and the host of a queue.
    fn queue_parts(&self, queue: QueueId) -> (CollectionId, HostId);
    /// All queues, in the order of their numbers.
    fn queues(&self) -> Vec<QueueId>;
    /// The entries of a queue by state.
    fn queue_counts(&self, queue: QueueId) -> Counts;
    /// The entries of a collection by state.
    fn counts(&self, collection: CollectionId) -> Counts;

    /// How many hosts collections have, and how many of them have something to do. A store that has far to go for queues can
    /// count them where they are.
    fn hosts_of(&self, collections: &[CollectionId]) -> HostCounts
    where
        Self: Sized,
    {
        read::counted_hosts(self, collections)
    }

    /// The host of a key, shared or of a plain collection; made if it is not there.
    fn host_of(&mut self, owner: Option<CollectionId>, key: &str) -> HostId;
    /// The key of a host, and the plain collection it belongs to.
    fn host_key(&self, host: HostId) -> (&str, Option<CollectionId>);
    fn host(&self, host: HostId) -> &Host;
    fn set_host(&mut self, host: HostId, state: Host);
    /// What is under way at a host.
    fn in_flight(&self, host: HostId) -> InFlight;
    /// All hosts, in the order of their numbers.
    fn all_hosts(&self) -> Vec<HostId>;

    /// A number that was never used before.
    fn next_token(&mut self) -> Token;
    /// A number higher than that of every earlier turn.
    fn next_turn(&mut self) -> u64;
    /// Records a lease, or another end of one. The entry is set to leased by the engine.
    fn grant(&mut self, lease: Lease);
    fn lease(&self, token: Token) -> Option<Lease>;
    fn lease_of(&self, entry: EntryId) -> Option<Lease>;
    /// Forgets a lease.
    fn end_lease(&mut self, token: Token);
    /// Leases that ran out by `now`, by (end, token).
    fn expired(&self, now: Moment) -> Vec<Lease>;

    /// What is due by `now` becomes ready. Returns queued entries whose score steps by `now`, in the order of
    /// their numbers.
    fn wake(&mut self, now: Moment) -> Vec<EntryId>;
    /// Of the wanted queues that are ready and open, the one with the lowest ([`Host::place`] of its
    /// collection, number) that comes after `after`, if that place is lower than `below`; with its place.
    fn next_queue(&mut self, wanted: &Wanted, after: Option<InLine>, below: u64) -> Option<InLine>;
    /// The ready entry of a queue that comes first: by (priority descending, due time if it goes by
    /// that, number); or, of those that go by their due time, the one with the lowest (due time, number).
    /// The engine leases, moves or removes it before it takes another.
    fn take(&mut self, queue: QueueId, as_oldest: bool) -> Option<EntryId>;
    /// What the wanted queues wait for, when none of them is ready and open.
    fn outlook(&self, wanted: &Wanted) -> Outlook;

    /// Appends to the log of events.
    fn emit(&mut self, at: Moment, collection: &str, subject: &str, event: Event);
    /// The log from a position on.
    fn events(&self, from: u64, limit: usize) -> Result<Vec<EventRow>>;

    /// What was written down under a key.
    fn noted(&self, key: &str) -> Result<Option<Vec<u8>>>;
    /// The keys of what was written down that begin with `prefix`, in any order.
    fn note_keys(&self, prefix: &str) -> Result<Vec<String>>;
    /// Writes down a value under a key; none forgets it.
    fn set_note(&mut self, key: &str, value: Option<Vec<u8>>);
    /// Appends to the log of fetches. The position is filled in.
    fn log_fetch(&mut self, fetch: FetchRow);
    /// The log of fetches from a position on.
    fn fetches(&self, from: u64, limit: usize) -> Result<Vec<FetchRow>>;

    /// Up to `limit` entries after `after` that `keep` wants, in the order of their numbers.
    fn scan(
        &self,
        within: Within,
        after: Option<EntryId>,
        limit: usize,
        keep: &mut dyn FnMut(EntryId, &Standing) -> bool,
    ) -> Vec<EntryId>;
}

/// Takes an entry out of the queue, and says so in the log.
fn note_removal<T: Tx>(
    tx: &mut T,
    collection: &CollectionRow,
    entry: EntryId,
    rule: &str,
    now: Moment,
) -> Result<()> {
    let (url, record) = tx.load(entry)?;
    notes::forget_text(tx, collection, &url, &record);
    tx.remove(entry);
    tx.emit(now, &collection.spec.id, &url, Event::Removed { rule: rule.to_owned() });
    tx.count_up(collection.number, Tally { skipped: 1, ..Tally::default() });
    Ok(())
}
