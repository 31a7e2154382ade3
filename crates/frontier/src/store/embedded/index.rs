//! Finds entries by what they are known by, without a copy of any text.

use std::hint::black_box;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::slots::Slots;
use crate::entry::QueueId;

const SHARD_BITS: u32 = 12;

/// Numbers by the hashes of what they stand for. Each shard grows alone, so that no call waits for all of
/// them to be moved.
#[derive(Debug)]
pub(super) struct Shards(Vec<HashTable<u32>>);

impl Default for Shards {
    fn default() -> Self {
        Self((0..1 << SHARD_BITS).map(|_| HashTable::new()).collect())
    }
}

impl Shards {
    /// The number with this hash for which `is_it` holds.
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.0[shard(hash)].find(hash, |number| is_it(*number)).copied()
    }

    /// The number that most likely has this hash; what it stands for is not looked at.
    pub(super) fn likely(&self, hash: u64) -> Option<u32> {
        self.0[shard(hash)].find(hash, |_| true).copied()
    }

    /// Adds a number that is not there yet.
    pub(super) fn insert(&mut self, hash: u64, number: u32, rehash: impl Fn(&u32) -> u64) {
        let shard = &mut self.0[shard(hash)];
        if shard.len() == shard.capacity() {
            // It grows, and asks for each hash only when the one before has found its place. What they are kept in is
            // fetched before, all together.
            black_box(shard.iter().map(&rehash).fold(0, u64::wrapping_add));
        }
        shard.insert_unique(hash, number, rehash);
    }

    /// Forgets a number.
    pub(super) fn remove(&mut self, hash: u64, number: u32) {
        if let Ok(found) = self.0[shard(hash)].find_entry(hash, |known| *known == number) {
            found.remove();
        }
    }

    /// How many numbers there are.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(HashTable::len).sum()
    }
}

/// Which entries there are, by the hash of (queue, identity).
///
/// Two texts with the same 64 bits count as the same. Among 100 million entries that happens once in
/// 3,700 stores by chance; and because the hash is keyed with a secret of the store, nobody can
/// bring it about.
#[derive(Debug)]
pub(super) struct Index {
    secret: u64,
    shards: Shards,
}

impl Index {
    /// An empty index.
    pub(super) fn new(secret: u64) -> Self {
        Self { secret, shards: Shards::default() }
    }

    /// What an entry is known by.
    pub(super) fn hash(&self, queue: QueueId, identity: &str) -> u64 {
        // An odd multiplier keeps queues apart: no two have the same seed.
        let seed = self.secret ^ u64::from(queue.0).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        xxh3_64_with_seed(identity.as_bytes(), seed)
    }

    /// The entry with this hash.
    pub(super) fn find(&self, hash: u64, slots: &Slots) -> Option<u32> {
        self.shards.find(hash, |number| slots.live(number).is_some_and(|slot| slot.hash == hash))
    }

    /// The entry that most likely has this hash; its slot is not looked at.
    pub(super) fn likely(&self, hash: u64) -> Option<u32> {
        self.shards.likely(hash)
    }

    /// Adds an entry that is not there yet.
    pub(super) fn insert(&mut self, hash: u64, number: u32, slots: &Slots) {
        let rehash = |number: &u32| slots.get(*number).map_or(0, |slot| slot.hash);
        self.shards.insert(hash, number, rehash);
    }

    /// Forgets an entry.
    pub(super) fn remove(&mut self, hash: u64, number: u32) {
        self.shards.remove(hash, number);
    }

    /// How many entries it has.
    pub(super) fn len(&self) -> usize {
        self.shards.len()
    }

    /// Adds all entries that there are, to an empty index.
    ///
    /// One by one each would be somewhere else in memory than the last. So they are taken in batches,
    /// and each batch in the order of the shards.
    pub(super) fn fill(&mut self, slots: &Slots) {
        const BATCH: usize = 1 << 21;
        const PARTS: usize = 1 << PART_BITS;
        let rehash = |number: &u32| slots.get(*number).map_or(0, |slot| slot.hash);
        for shard in &mut self.shards.0 {
            shard.reserve(slots.len() as usize >> SHARD_BITS, rehash);
        }
        let mut parts: Vec<Vec<(u64, u32)>> = vec![Vec::new(); PARTS];
        let mut live = slots.iter().peekable();
        while live.peek().is_some() {
            for (number, slot) in live.by_ref().take(BATCH) {
                parts[part(slot.hash)].push((slot.hash, number));
            }
            for (hash, number) in parts.iter_mut().flat_map(|part| part.drain(..)) {
                self.shards.insert(hash, number, rehash);
            }
        }
    }
}

/// Entries are added at the start in so many parts, each of several shards.
const PART_BITS: u32 = 8;

fn part(hash: u64) -> usize {
    shard(hash) >> (SHARD_BITS - PART_BITS)
}

/// The shard of a hash. A table goes by the lowest and the highest bits, so these are not the same for
/// all of a shard.
fn shard(hash: u64) -> usize {
    (hash >> 32) as usize & ((1 << SHARD_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::super::slots::Slot;
    use super::super::slots::tests::plain;
    use super::*;

    const SECRET: u64 = 42;

    fn filled(entries: u32) -> (Index, Slots) {
        let (mut index, mut slots) = (Index::new(SECRET), Slots::default());
        for number in 0..entries {
            let hash = index.hash(QueueId(number % 7), &number.to_string());
            slots.push(Slot::new(hash, 0, &plain(number % 7)));
            index.insert(hash, number, &slots);
        }
        (index, slots)
    }

    #[test]
    fn every_entry_is_found_and_no_other() {
        let (mut index, slots) = filled(50_000);
        for number in 0..50_000 {
            let hash = index.hash(QueueId(number % 7), &number.to_string());
            assert_eq!(index.find(hash, &slots), Some(number));
        }
        assert_eq!(index.find(index.hash(QueueId(1), "0"), &slots), None, "in another queue");
        let hash = index.hash(QueueId(0), "0");
        index.remove(hash, 0);
        assert_eq!((index.find(hash, &slots), index.len()), (None, 49_999));
    }

    #[test]
    fn an_index_that_is_filled_at_once_is_like_one_that_grew() {
        let (_, slots) = filled(50_000);
        let mut index = Index::new(SECRET);
        index.fill(&slots);
        assert_eq!(index.len(), 50_000);
        assert!(slots.iter().all(|(number, slot)| index.find(slot.hash, &slots) == Some(number)));
    }

    #[test]
    fn the_hash_depends_on_the_queue_and_the_secret() {
        let index = Index::new(SECRET);
        assert_ne!(index.hash(QueueId(0), "a"), index.hash(QueueId(1), "a"));
        assert_ne!(index.hash(QueueId(0), "a"), Index::new(SECRET + 1).hash(QueueId(0), "a"));
    }
}
