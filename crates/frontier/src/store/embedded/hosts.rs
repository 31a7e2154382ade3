//! The hosts, and how they and their queues are found by name.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::blocks::Blocks;
use super::index::Shards;
use crate::entry::{CollectionId, HostId, QueueId, Token};
use crate::host::{Host, InFlight};
use crate::moment::Moment;

/// A host in memory. There may be millions of them, of which most wait for their first turn.
#[derive(Debug)]
pub(super) struct HostEntry {
    pub(super) key: Box<str>,
    pub(super) owner: Option<CollectionId>,
    /// The keyed hash of (owner, key), by which it is looked for.
    hash: u64,
    pub(super) queues: Queues,
    /// None as long as it is like any other.
    met: Option<Box<Met>>,
}

/// What there is to know of a host that was asked, or that something was set for.
#[derive(Debug, Default)]
struct Met {
    state: Host,
    /// What is under way, by (end, token).
    leases: BTreeSet<(Moment, Token)>,
}

/// What is known of a host that was never asked.
static UNMET: LazyLock<Met> = LazyLock::new(Met::default);

impl HostEntry {
    /// A host that was never asked.
    pub(super) fn new(key: &str, owner: Option<CollectionId>) -> Self {
        Self { key: key.into(), owner, hash: 0, queues: Queues::default(), met: None }
    }

    fn known(&self) -> &Met {
        self.met.as_deref().unwrap_or(&UNMET)
    }

    /// Its state.
    pub(super) fn state(&self) -> &Host {
        &self.known().state
    }

    /// Gives it another state.
    pub(super) fn set_state(&mut self, state: Host) {
        if self.state() != &state {
            self.met.get_or_insert_default().state = state;
        }
    }

    /// What is under way, by (end, token).
    pub(super) fn leases(&self) -> &BTreeSet<(Moment, Token)> {
        &self.known().leases
    }

    /// Something is under way.
    pub(super) fn add_lease(&mut self, until: Moment, token: Token) {
        self.met.get_or_insert_default().leases.insert((until, token));
    }

    /// Something is not under way any more.
    pub(super) fn remove_lease(&mut self, until: Moment, token: Token) {
        if let Some(met) = &mut self.met {
            met.leases.remove(&(until, token));
        }
    }

    /// How much is under way.
    pub(super) fn in_flight(&self) -> InFlight {
        let leases = self.leases();
        let count = u32::try_from(leases.len()).unwrap_or(u32::MAX);
        InFlight { count, first_expiry: leases.first().map(|(until, _)| *until) }
    }
}

/// The queues of a host, one for each collection that has entries there, by collection. Most hosts have one, which
/// takes no room of its own.
#[derive(Debug, Default)]
pub(super) enum Queues {
    /// None yet, or none any more.
    #[default]
    None,
    /// The only one.
    One([(CollectionId, QueueId); 1]),
    /// Several.
    Many(Vec<(CollectionId, QueueId)>),
}

impl Queues {
    fn all(&self) -> &[(CollectionId, QueueId)] {
        match self {
            Self::None => &[],
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }

    /// The queue of a collection.
    pub(super) fn of(&self, collection: CollectionId) -> Option<QueueId> {
        let all = self.all();
        all.binary_search_by_key(&collection, |(known, _)| *known).ok().map(|place| all[place].1)
    }

    /// The queue at a place.
    pub(super) fn at(&self, place: usize) -> Option<QueueId> {
        self.all().get(place).map(|(_, queue)| *queue)
    }

    /// Adds the queue of a collection.
    pub(super) fn add(&mut self, collection: CollectionId, queue: QueueId) {
        if let Self::None = self {
            *self = Self::One([(collection, queue)]);
            return;
        }
        let mut many = self.take();
        let place = many.partition_point(|(known, _)| *known < collection);
        many.insert(place, (collection, queue));
        *self = Self::Many(many);
    }

    /// Forgets the queue of a collection.
    pub(super) fn remove(&mut self, collection: CollectionId) {
        let mut many = self.take();
        many.retain(|(known, _)| *known != collection);
        *self = match *many.as_slice() {
            [] => Self::None,
            [one] => Self::One([one]),
            _ => Self::Many(many),
        };
    }

    fn take(&mut self) -> Vec<(CollectionId, QueueId)> {
        match std::mem::take(self) {
            Self::Many(many) => many,
            few => few.all().to_vec(),
        }
    }
}

/// All hosts, by number and by name.
#[derive(Debug)]
pub(super) struct Hosts {
    secret: u64,
    /// None where one was removed.
    all: Blocks<Option<HostEntry>>,
    /// By the hash of owner and key.
    by_name: Shards,
}

impl Hosts {
    /// No hosts yet.
    pub(super) fn new(secret: u64) -> Self {
        Self { secret, all: Blocks::default(), by_name: Shards::default() }
    }

    /// How many numbers were given out.
    pub(super) fn len(&self) -> u32 {
        self.all.len()
    }

    /// How many can be found by name.
    pub(super) fn names(&self) -> usize {
        self.by_name.len()
    }

    /// A host that there is.
    pub(super) fn get(&self, host: HostId) -> Option<&HostEntry> {
        self.all.get(host.0)?.as_ref()
    }

    /// A host that there is, to be changed.
    pub(super) fn get_mut(&mut self, host: HostId) -> Option<&mut HostEntry> {
        self.all.get_mut(host.0)?.as_mut()
    }

    /// The hosts from `first` on, in the order of their numbers; none where one was removed.
    pub(super) fn iter_from(&self, first: u32) -> impl Iterator<Item = Option<&HostEntry>> {
        self.all.iter_from(first).map(Option::as_ref)
    }

    /// The numbers of all that there are.
    pub(super) fn numbers(&self) -> impl Iterator<Item = HostId> {
        (0..).zip(self.all.iter()).filter(|(_, host)| host.is_some()).map(|(number, _)| HostId(number))
    }

    /// The host with this key.
    pub(super) fn find(&self, owner: Option<CollectionId>, key: &str) -> Option<HostId> {
        self.find_hashed(hash(self.secret, owner, key), owner, key)
    }

    fn find_hashed(&self, hash: u64, owner: Option<CollectionId>, key: &str) -> Option<HostId> {
        // Keys come from strangers, and two hosts that were taken for one would share delays, limits and queues: the
        // hash only says where to look.
        let is_it = |number| {
            let host = self.get(HostId(number));
            host.is_some_and(|host| host.hash == hash && host.owner == owner && *host.key == *key)
        };
        self.by_name.find(hash, is_it).map(HostId)
    }

    /// The queue of a collection with this key. Its host is one of the collection alone, as those of plain collections
    /// are, or one that is shared; there is one of both only, so that the likely one is looked for first.
    pub(super) fn find_queue(&self, collection: CollectionId, key: &str, is_plain: bool) -> Option<QueueId> {
        let owners = if is_plain { [Some(collection), None] } else { [None, Some(collection)] };
        owners.into_iter().find_map(|owner| self.get(self.find(owner, key)?)?.queues.of(collection))
    }

    /// The queues of a collection with these keys. Each step of a look-up is somewhere else in memory; here it is
    /// taken for all of them before the next, so that they wait for the memory together.
    pub(super) fn find_queues(
        &self,
        collection: CollectionId,
        keys: &[&str],
        is_plain: bool,
    ) -> Vec<Option<QueueId>> {
        let owner = is_plain.then_some(collection);
        let hashes: Vec<u64> = keys.iter().map(|key| hash(self.secret, owner, key)).collect();
        let likely: Vec<Option<u32>> = hashes.iter().map(|hash| self.by_name.likely(*hash)).collect();
        let entries = || likely.iter().filter_map(|number| self.get(HostId((*number)?)));
        black_box(entries().map(|host| host.hash).fold(0, u64::wrapping_add));
        black_box(entries().filter_map(|host| host.key.as_bytes().last()).fold(0, |all, last| all ^ last));
        let found = |(key, hash): (&&str, &u64)| {
            let host = self.find_hashed(*hash, owner, key).and_then(|host| self.get(host));
            let queue = host.and_then(|host| host.queues.of(collection));
            queue.or_else(|| self.find_queue(collection, key, is_plain))
        };
        keys.iter().zip(&hashes).map(found).collect()
    }

    /// Adds a host under the next number, or uses the number up.
    pub(super) fn push(&mut self, mut host: Option<HostEntry>) {
        if let Some(host) = &mut host {
            host.hash = hash(self.secret, host.owner, &host.key);
            let all = &self.all;
            let rehash = |number: &u32| all.get(*number).and_then(Option::as_ref).map_or(0, |host| host.hash);
            self.by_name.insert(host.hash, all.len(), rehash);
        }
        self.all.push(host);
    }

    /// Takes back the last host.
    pub(super) fn pop(&mut self) {
        if let Some(last) = self.len().checked_sub(1) {
            self.remove(HostId(last));
            self.all.pop();
        }
    }

    /// Removes a host. Its number is never used again.
    pub(super) fn remove(&mut self, host: HostId) {
        if let Some(gone) = self.all.get_mut(host.0).and_then(Option::take) {
            self.by_name.remove(gone.hash, host.0);
        }
    }
}

/// What a host is looked up by. The hash is keyed, so that nobody can choose keys that meet.
fn hash(secret: u64, owner: Option<CollectionId>, key: &str) -> u64 {
    // An odd multiplier keeps owners apart: no two have the same seed.
    let owner = owner.map_or(0, |owner| u64::from(owner.0) + 1);
    xxh3_64_with_seed(key.as_bytes(), secret ^ owner.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: CollectionId = CollectionId(1);
    const TWO: CollectionId = CollectionId(2);

    #[test]
    fn a_host_that_waits_for_its_first_turn_takes_little() {
        assert!(size_of::<Option<HostEntry>>() <= 64, "{}", size_of::<Option<HostEntry>>());
        let mut host = HostEntry::new("a.example", None);
        host.set_state(Host::default());
        assert!(host.met.is_none(), "what is said of every host is not kept");
    }

    #[test]
    fn a_host_is_found_by_owner_and_key() {
        let mut hosts = Hosts::new(42);
        for (owner, key) in [(None, "a"), (Some(ONE), "a"), (Some(ONE), "b")] {
            hosts.push(Some(HostEntry::new(key, owner)));
        }
        let cases = [
            ("shared", None, "a", Some(HostId(0))),
            ("of its own", Some(ONE), "a", Some(HostId(1))),
            ("another key", Some(ONE), "b", Some(HostId(2))),
            ("not shared", None, "b", None),
            ("of another", Some(TWO), "a", None),
        ];
        for (name, owner, key, want) in cases {
            assert_eq!(hosts.find(owner, key), want, "{name}");
        }
        hosts.remove(HostId(1));
        hosts.pop();
        assert_eq!((hosts.find(Some(ONE), "a"), hosts.find(Some(ONE), "b"), hosts.len()), (None, None, 2));
        assert_eq!(hosts.find(None, "a"), Some(HostId(0)));
    }

    #[test]
    fn hosts_whose_hashes_meet_are_two() {
        let mut hosts = Hosts::new(42);
        let met = hash(42, None, "b");
        hosts.all.push(Some(HostEntry { hash: met, ..HostEntry::new("a", None) }));
        hosts.by_name.insert(met, 0, |_| met);
        assert_eq!(hosts.find(None, "b"), None, "not the one that has its hash");
        hosts.push(Some(HostEntry::new("b", None)));
        assert_eq!((hosts.find(None, "b"), hosts.names()), (Some(HostId(1)), 2));
        hosts.remove(HostId(1));
        assert_eq!((hosts.find(None, "b"), hosts.names()), (None, 1));
        assert!(hosts.get(HostId(0)).is_some(), "the other one stays");
    }

    #[test]
    fn every_one_of_many_is_found() {
        let mut hosts = Hosts::new(42);
        for number in 0..20_000 {
            hosts.push(Some(HostEntry::new(&number.to_string(), Some(ONE))));
        }
        assert!((0..20_000).all(|number| hosts.find(Some(ONE), &number.to_string()) == Some(HostId(number))));
        assert_eq!(hosts.numbers().count(), 20_000);
    }

    #[test]
    fn queues_are_found_by_collection() {
        let mut queues = Queues::default();
        for collection in [3, 1, 2] {
            queues.add(CollectionId(collection), QueueId(collection * 10));
        }
        let found = |queues: &Queues| [0, 1, 2, 3].map(|collection| queues.of(CollectionId(collection)));
        assert_eq!(found(&queues), [None, Some(QueueId(10)), Some(QueueId(20)), Some(QueueId(30))]);
        queues.remove(CollectionId(1));
        queues.remove(CollectionId(3));
        assert_eq!(found(&queues), [None, None, Some(QueueId(20)), None]);
        assert_eq!((queues.at(0), queues.at(1)), (Some(QueueId(20)), None));
        queues.remove(CollectionId(2));
        assert!(matches!(queues, Queues::None));
    }
}
