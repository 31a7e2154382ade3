//! Finds entries, hosts and queues by what they are known by, without a second copy of any text.

use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::slots::Slots;
use crate::entry::{CollectionId, HostId, QueueId};

/// Each shard grows alone, so that no call waits for the whole index to be moved.
const SHARD_BITS: u32 = 12;

/// Which entries there are, by the hash of (queue, identity).
///
/// Two texts with the same 64 bits count as the same. Among 100 million entries that happens once in
/// 3,700 stores by chance; and because the hash is keyed with a secret of the store, nobody can
/// bring it about.
#[derive(Debug)]
pub(super) struct Index {
    secret: u64,
    shards: Vec<HashTable<u32>>,
}

impl Index {
    /// An empty index.
    pub(super) fn new(secret: u64) -> Self {
        Self { secret, shards: (0..1 << SHARD_BITS).map(|_| HashTable::new()).collect() }
    }

    /// What an entry is known by.
    pub(super) fn hash(&self, queue: QueueId, identity: &str) -> u64 {
        // An odd multiplier keeps queues apart: no two have the same seed.
        let seed = self.secret ^ u64::from(queue.0).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        xxh3_64_with_seed(identity.as_bytes(), seed)
    }

    /// The entry with this hash.
    pub(super) fn find(&self, hash: u64, slots: &Slots) -> Option<u32> {
        let is_it = |number: &u32| slots.live(*number).is_some_and(|slot| slot.hash == hash);
        self.shards[shard(hash)].find(spread(hash), is_it).copied()
    }

    /// Adds an entry that is not there yet.
    pub(super) fn insert(&mut self, hash: u64, number: u32, slots: &Slots) {
        let rehash = |number: &u32| slots.get(*number).map_or(0, |slot| spread(slot.hash));
        self.shards[shard(hash)].insert_unique(spread(hash), number, rehash);
    }

    /// Forgets an entry.
    pub(super) fn remove(&mut self, hash: u64, number: u32) {
        if let Ok(found) = self.shards[shard(hash)].find_entry(spread(hash), |known| *known == number) {
            found.remove();
        }
    }

    /// How many entries it has.
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(HashTable::len).sum()
    }

    /// Makes room for so many entries at once.
    pub(super) fn reserve(&mut self, entries: usize, slots: &Slots) {
        let rehash = |number: &u32| slots.get(*number).map_or(0, |slot| spread(slot.hash));
        for shard in &mut self.shards {
            shard.reserve(entries >> SHARD_BITS, rehash);
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "twelve bits")]
fn shard(hash: u64) -> usize {
    (hash >> (64 - SHARD_BITS)) as usize
}

/// The bits that chose the shard are the same for all of it: the table gets the others.
fn spread(hash: u64) -> u64 {
    hash.rotate_left(SHARD_BITS)
}

/// Which hosts and queues there are.
#[derive(Debug, Default)]
pub(super) struct Names {
    hosts: HashTable<u32>,
    queues: FxHashMap<(CollectionId, HostId), QueueId>,
}

impl Names {
    fn host_hash(owner: Option<CollectionId>, key: &str) -> u64 {
        xxh3_64_with_seed(key.as_bytes(), owner.map_or(0, |owner| u64::from(owner.0) + 1))
    }

    /// The host with this key; `is_it` compares a number with it.
    pub(super) fn host(
        &self,
        owner: Option<CollectionId>,
        key: &str,
        is_it: impl Fn(HostId) -> bool,
    ) -> Option<HostId> {
        self.hosts
            .find(Self::host_hash(owner, key), |number| is_it(HostId(*number)))
            .map(|number| HostId(*number))
    }

    /// Adds a host; `known` gives the names of those there are.
    pub(super) fn add_host<'a>(
        &mut self,
        host: HostId,
        owner: Option<CollectionId>,
        key: &str,
        known: impl Fn(HostId) -> (&'a str, Option<CollectionId>),
    ) {
        let rehash = |number: &u32| {
            let (key, owner) = known(HostId(*number));
            Self::host_hash(owner, key)
        };
        self.hosts.insert_unique(Self::host_hash(owner, key), host.0, rehash);
    }

    /// Forgets a host.
    pub(super) fn remove_host(&mut self, host: HostId, owner: Option<CollectionId>, key: &str) {
        if let Ok(found) = self.hosts.find_entry(Self::host_hash(owner, key), |known| *known == host.0) {
            found.remove();
        }
    }

    /// The queue of a collection at a host.
    pub(super) fn queue(&self, collection: CollectionId, host: HostId) -> Option<QueueId> {
        self.queues.get(&(collection, host)).copied()
    }

    /// Adds a queue.
    pub(super) fn add_queue(&mut self, queue: QueueId, collection: CollectionId, host: HostId) {
        self.queues.insert((collection, host), queue);
    }

    /// Forgets a queue.
    pub(super) fn remove_queue(&mut self, collection: CollectionId, host: HostId) {
        self.queues.remove(&(collection, host));
    }
}
