//! Whose turn it is: the queues of each collection by what they wait for.

use std::collections::BTreeSet;
use std::ops::Bound;

use rustc_hash::FxHashMap;

use crate::engine::InLine;
use crate::entry::{CollectionId, QueueId};
use crate::moment::Moment;

/// Where a queue is filed. It is in one set at most, so a lease looks at open queues only, however
/// many others there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filed {
    /// It has nothing queued.
    Nowhere,
    /// Something is ready and the host is open: by its place in line.
    Open(u64),
    /// Something is ready, though the host opens only then.
    Closed(Moment),
    /// Nothing is ready before this second.
    Asleep(u32),
}

/// The queues of one collection that have something queued.
#[derive(Debug, Default)]
pub(super) struct Rota {
    /// By (place in line, number).
    pub(super) open: BTreeSet<(u64, QueueId)>,
    /// By (when the host opens, number).
    pub(super) closed: BTreeSet<(Moment, QueueId)>,
    /// By (when the first entry is due, number).
    pub(super) asleep: BTreeSet<(u32, QueueId)>,
}

impl Rota {
    /// The first that is open, of those that come after another.
    pub(super) fn first_after(&self, after: Option<InLine>) -> Option<InLine> {
        match after {
            None => self.open.first().copied(),
            Some(after) => self.open.range((Bound::Excluded(after), Bound::Unbounded)).next().copied(),
        }
    }
}

/// The queues of all collections.
#[derive(Debug, Default)]
pub(super) struct Rotation {
    rotas: FxHashMap<CollectionId, Rota>,
}

impl Rotation {
    /// The queues of a collection.
    pub(super) fn rota(&self, collection: CollectionId) -> Option<&Rota> {
        self.rotas.get(&collection)
    }

    /// Moves a queue.
    pub(super) fn refile(&mut self, collection: CollectionId, queue: QueueId, from: Filed, to: Filed) {
        let rota = self.rotas.entry(collection).or_default();
        match from {
            Filed::Nowhere => true,
            Filed::Open(place) => rota.open.remove(&(place, queue)),
            Filed::Closed(until) => rota.closed.remove(&(until, queue)),
            Filed::Asleep(due) => rota.asleep.remove(&(due, queue)),
        };
        match to {
            Filed::Nowhere => true,
            Filed::Open(place) => rota.open.insert((place, queue)),
            Filed::Closed(until) => rota.closed.insert((until, queue)),
            Filed::Asleep(due) => rota.asleep.insert((due, queue)),
        };
    }

    /// Forgets a collection.
    pub(super) fn remove(&mut self, collection: CollectionId) {
        self.rotas.remove(&collection);
    }

    /// How many queues it has.
    pub(super) fn len(&self) -> usize {
        self.rotas.values().map(|rota| rota.open.len() + rota.closed.len() + rota.asleep.len()).sum()
    }

    /// The queues with something due by `now` that is not ready yet.
    pub(super) fn due(&self, now: Moment) -> Vec<QueueId> {
        let due = |rota: &Rota| first(rota.asleep.iter(), |due| *due <= now.second());
        self.rotas.values().flat_map(due).collect()
    }

    /// The queues whose hosts open by `now` and are filed as closed.
    pub(super) fn opening(&self, now: Moment) -> Vec<QueueId> {
        let opening = |rota: &Rota| first(rota.closed.iter(), |at| *at <= now);
        self.rotas.values().flat_map(opening).collect()
    }
}

fn first<'a, K: 'a>(
    set: impl Iterator<Item = &'a (K, QueueId)>,
    is_over: impl Fn(&K) -> bool,
) -> Vec<QueueId> {
    set.take_while(|(key, _)| is_over(key)).map(|(_, queue)| *queue).collect()
}
