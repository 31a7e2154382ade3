//! Random calls over a small universe: few hosts, pages, collections, profiles of every order, seeds.
//!
//! A call is a plain value and picks what it is about by number, so that any part of a sequence makes
//! sense by itself and a failure can be cut down to what it needs.

mod caller;
mod values;

use forager_core::time::Interval;
use forager_frontier::Moment;
use forager_frontier::catalog::Change;
use forager_frontier::host::HostSettings;
use forager_frontier::verbs::Note;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

pub use self::caller::{Answer, Caller, Freed};
use self::values::{HOSTS, change, note, settings};

/// Something that is asked of a frontier.
#[derive(Clone, Debug)]
pub enum Call {
    Configure(Vec<Edit>),
    Start(u8),
    Discover {
        collection: u8,
        source: u8,
        depth: u8,
        links: Vec<(u8, u8)>,
    },
    Put {
        collection: u8,
        items: Vec<(u8, u8)>,
    },
    Remove {
        collection: u8,
        key: Option<u8>,
    },
    Purge {
        collection: u8,
        key: Option<u8>,
        all: bool,
    },
    Lease {
        max: u8,
        per_host: u8,
        collection: Option<u8>,
        host: Option<u8>,
        hold: u8,
    },
    Complete(Vec<Told>),
    Extend(Vec<u8>, u8),
    Release(Vec<u8>),
    Reclaim(u8),
    Note(Vec<(u8, u8, u8)>),
    SetHost {
        host: u8,
        plain: Option<u8>,
        kind: u8,
        amount: u8,
    },
    StartJob {
        job: u8,
        url: u8,
        order: u8,
        limit: u8,
    },
    SteerJob {
        job: u8,
        how: u8,
    },
    Import {
        from: u8,
        to: u8,
    },
    Pass(u8),
    /// The next calls come from one whose clock is behind.
    Back(u8),
    Look(u8, u8),
}

/// A report of one of the last leases: what came of it, what it says besides, and what was found.
#[derive(Clone, Debug)]
pub struct Told {
    lease: u8,
    look: u8,
    extras: u8,
    links: Vec<(u8, u8)>,
}

/// A change of the catalog.
#[derive(Clone, Debug)]
pub enum Edit {
    Collection { which: u8, kind: u8 },
    EnableCollection(u8, bool),
    RemoveCollection(u8),
    Profile { which: u8, look: u8, set: bool },
    EnableProfile(u8, bool),
    RemoveProfile(u8),
    Seed { which: u8, profiles: u8, set: bool },
    EnableSeed(u8, bool),
    RemoveSeed(u8),
    SetActive(bool),
    SetPlainDelay(u8),
}

fn edits() -> impl Strategy<Value = Edit> {
    let n = any::<u8>;
    prop_oneof![
        2 => (n(), n()).prop_map(|(which, kind)| Edit::Collection { which, kind }),
        3 => (n(), any::<bool>()).prop_map(|(which, on)| Edit::EnableCollection(which, on)),
        1 => n().prop_map(Edit::RemoveCollection),
        4 => (n(), n(), any::<bool>()).prop_map(|(which, look, set)| Edit::Profile { which, look, set }),
        3 => (n(), any::<bool>()).prop_map(|(which, on)| Edit::EnableProfile(which, on)),
        1 => n().prop_map(Edit::RemoveProfile),
        4 => (n(), n(), any::<bool>()).prop_map(|(which, profiles, set)| Edit::Seed { which, profiles, set }),
        3 => (n(), any::<bool>()).prop_map(|(which, on)| Edit::EnableSeed(which, on)),
        1 => n().prop_map(Edit::RemoveSeed),
        // Nothing is handed out otherwise for most of the time.
        2 => proptest::bool::weighted(0.8).prop_map(Edit::SetActive),
        2 => n().prop_map(Edit::SetPlainDelay),
    ]
}

/// Every call, those of every day more often.
pub fn calls() -> impl Strategy<Value = Call> {
    let n = any::<u8>;
    let some = |most| proptest::collection::vec(any::<u8>(), 1..most);
    let pairs = |most| proptest::collection::vec((any::<u8>(), any::<u8>()), 1..most);
    let maybe = || proptest::option::weighted(0.2, any::<u8>());
    let told = (n(), n(), n(), proptest::collection::vec((n(), n()), 0..4))
        .prop_map(|(lease, look, extras, links)| Told { lease, look, extras, links });
    prop_oneof![
        3 => proptest::collection::vec(edits(), 1..4).prop_map(Call::Configure),
        2 => n().prop_map(Call::Start),
        12 => (n(), n(), n(), pairs(8)).prop_map(|(collection, source, depth, links)| {
            Call::Discover { collection, source, depth, links }
        }),
        8 => (n(), pairs(6)).prop_map(|(collection, items)| Call::Put { collection, items }),
        1 => (n(), proptest::option::weighted(0.8, n())).prop_map(|(collection, key)| {
            Call::Remove { collection, key }
        }),
        1 => (n(), maybe(), any::<bool>()).prop_map(|(collection, key, all)| {
            Call::Purge { collection, key, all }
        }),
        16 => (n(), n(), maybe(), maybe(), n()).prop_map(|(max, per_host, collection, host, hold)| {
            Call::Lease { max, per_host, collection, host, hold }
        }),
        12 => proptest::collection::vec(told, 1..5).prop_map(Call::Complete),
        2 => (some(4), n()).prop_map(|(tokens, hold)| Call::Extend(tokens, hold)),
        3 => some(4).prop_map(Call::Release),
        1 => n().prop_map(Call::Reclaim),
        4 => proptest::collection::vec((n(), n(), n()), 1..4).prop_map(Call::Note),
        3 => (n(), maybe(), n(), n()).prop_map(|(host, plain, kind, amount)| {
            Call::SetHost { host, plain, kind, amount }
        }),
        1 => (n(), n(), n(), n()).prop_map(|(job, url, order, limit)| Call::StartJob { job, url, order, limit }),
        1 => (n(), n()).prop_map(|(job, how)| Call::SteerJob { job, how }),
        1 => (n(), n()).prop_map(|(from, to)| Call::Import { from, to }),
        16 => n().prop_map(Call::Pass),
        1 => n().prop_map(Call::Back),
        4 => (n(), n()).prop_map(|(what, which)| Call::Look(what, which)),
    ]
}

/// A source of values that comes out the same for the same seed.
pub fn runner(seed: u64, cases: u32) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 4096,
        max_shrink_time: 60_000,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, rng)
}

/// The first calls of the sequence that belongs to a seed.
pub fn sequence(seed: u64, count: usize) -> Vec<Call> {
    let mut runner = runner(seed, 1);
    let strategy = calls();
    (0..count).map(|_| strategy.new_tree(&mut runner).expect("calls can always be made").current()).collect()
}

impl Call {
    /// The hosts of planned collections whose robots.txt it brings, with the wait that they ask for.
    pub fn slows_hosts(&self, now: Moment) -> Vec<(String, Option<Interval>)> {
        let Self::Note(picks) = self else { return Vec::new() };
        let slowed = picks.iter().filter_map(|pick| match note(*pick, now) {
            Note::CrawlDelay(host, delay) => Some((host, delay)),
            Note::Keep(..) | Note::Fetch(_) => None,
        });
        slowed.collect()
    }

    /// The host that it sets something for, if that is one of planned collections.
    pub fn sets_host(&self, now: Moment) -> Option<(&'static str, HostSettings)> {
        match *self {
            Self::SetHost { host, plain: None, kind, amount } => {
                Some((HOSTS[usize::from(host) % HOSTS.len()], settings(kind, amount, now)))
            }
            _ => None,
        }
    }

    /// The collections that it removes.
    pub fn removes(&self) -> Vec<String> {
        let Self::Configure(edits) = self else { return Vec::new() };
        let removed = edits.iter().filter_map(|edit| match change(edit) {
            Change::RemoveCollection(name) => Some(name),
            _ => None,
        });
        removed.collect()
    }
}
