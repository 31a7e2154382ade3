//! The cases that came with the rules, as data.

use forager_core::scope::before_fetch::{self, before_fetch};
use forager_core::scope::outlink::{self, Context, Hop, outlink};
use forager_core::scope::{Collection, Profile, Seed};
use jiff::Timestamp;
use serde::Deserialize;

use crate::common::{cases, part};
use crate::{Queued, World, at_depth, identity};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    collections: Vec<Collection>,
    profiles: Vec<Profile>,
    seeds: Vec<Seed>,
}

impl From<Config> for World {
    fn from(Config { collections, profiles, seeds }: Config) -> Self {
        Self { collections, profiles, seeds, ..Self::default() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BeforeFetch {
    name: String,
    config: Config,
    entry: EntryCase,
    expected: Expected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryCase {
    collection: String,
    url: String,
    seed: String,
    depth: u32,
    last_fetch: Option<Timestamp>,
    length: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Outlink {
    name: String,
    config: Config,
    context: ContextCase,
    url: String,
    queued: Option<QueuedCase>,
    expected: Expected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContextCase {
    collection: String,
    seed: String,
    depth: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueuedCase {
    seed: String,
    depth: u32,
    due: Timestamp,
}

/// What is compared: the action always, the rest where it is given.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    action: String,
    seed: Option<String>,
    depth: Option<u32>,
    due: Option<Timestamp>,
}

#[test]
fn every_entry_is_fetched_postponed_or_removed_as_given() {
    let now: Timestamp = part("scope", "now");
    for case in cases::<BeforeFetch>("scope", "before_fetch", 13) {
        let name = &case.name;
        let EntryCase { collection, url, seed, depth, last_fetch, length } = case.entry;
        let (url, seed) = (identity(&url), identity(&seed));
        let entry =
            Queued { collection, url, seed, place: at_depth(depth), last_fetch, length, is_listing: false };
        let scopes = World::from(case.config).scopes();
        let verdict = before_fetch(&scopes, &entry.entry(), now);
        let (action, due) = match verdict.action {
            before_fetch::Action::Fetch => ("fetch", None),
            before_fetch::Action::Postpone { due } => ("postpone", Some(due)),
            before_fetch::Action::Remove => ("remove", None),
        };
        assert_eq!(action, case.expected.action, "{name}");
        assert!(due.is_none_or(|due| due > now), "{name}: postponed into the future");
        if let Some(want) = case.expected.due {
            assert_eq!(due, Some(want), "{name}: due");
        }
        if let Some(want) = case.expected.seed {
            assert_eq!(verdict.seed, Some(&identity(&want)), "{name}: seed");
        }
        assert_eq!(case.expected.depth, None, "{name}: a fetch changes no depth");
    }
}

#[test]
fn every_link_is_added_merged_or_left_as_given() {
    let now: Timestamp = part("scope", "now");
    for case in cases::<Outlink>("scope", "outlink", 15) {
        let name = &case.name;
        let scopes = World::from(case.config).scopes();
        let seed = identity(&case.context.seed);
        let place = at_depth(case.context.depth);
        let context = Context { collection: &case.context.collection, seed: &seed, place, hop: Hop::Link };
        let owner = case.queued.as_ref().map(|queued| identity(&queued.seed));
        let queued = case.queued.as_ref().zip(owner.as_ref()).map(|(queued, seed)| outlink::Queued {
            seed,
            place: at_depth(queued.depth),
            due: queued.due,
            last_fetch: None,
            leased: false,
        });
        let verdict = outlink(&scopes, &context, &identity(&case.url), queued.as_ref(), now);
        let (action, claim) = match verdict.action {
            outlink::Action::Add { claim, .. } => ("add", Some(claim)),
            outlink::Action::Merge(claim) => ("merge", Some(claim)),
            outlink::Action::Keep => ("keep", None),
            outlink::Action::Remove => ("remove", None),
            outlink::Action::Ignore => ("ignore", None),
        };
        assert_eq!(action, case.expected.action, "{name}");
        if let Some(want) = case.expected.seed {
            assert_eq!(claim.map(|claim| claim.seed), Some(&identity(&want)), "{name}: seed");
        }
        if let Some(want) = case.expected.depth {
            assert_eq!(claim.map(|claim| claim.place.depth), Some(want), "{name}: depth");
        }
        if let Some(want) = case.expected.due {
            assert_eq!(claim.map(|claim| claim.due), Some(want), "{name}: due");
        }
    }
}
