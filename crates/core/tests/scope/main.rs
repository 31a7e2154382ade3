//! Scope: what is fetched, queued, postponed or removed, and which seed owns it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod after_fetch;
mod before_fetch;
#[path = "../common/mod.rs"]
mod common;
mod config;
mod every_combination;
mod extent;
mod given_cases;
mod outlink;
mod owner;
mod start;

use common::{ago, now};
use forager_core::scope::before_fetch::Entry;
use forager_core::scope::{Collection, Place, Profile, ScopeOptions, Scopes, Seed};
use forager_core::url::Identity;
use jiff::Timestamp;

/// A configuration before it is prepared.
#[derive(Clone, Default)]
struct World {
    collections: Vec<Collection>,
    profiles: Vec<Profile>,
    seeds: Vec<Seed>,
    options: ScopeOptions,
}

impl World {
    fn scopes(&self) -> Scopes {
        Scopes::new(&self.collections, &self.profiles, &self.seeds, self.options).unwrap()
    }

    /// The first profile, which most cases change.
    fn daily(&mut self) -> &mut Profile {
        &mut self.profiles[0]
    }

    /// One more profile of the only collection, and of the first seed.
    fn add_profile(&mut self, id: &str) -> &mut Profile {
        self.seeds[0].profiles.push(id.to_owned());
        self.profiles.push(Profile::new(id, "C1"));
        self.profiles.last_mut().unwrap()
    }

    /// One more seed, of the first profile.
    fn add_seed(&mut self, url: &str) -> &mut Seed {
        self.seeds.push(seed(url, &["daily"]));
        self.seeds.last_mut().unwrap()
    }
}

/// Everything enabled: collection `C1`, its profile `daily` (domain, depth 2, every 24 h) and a seed of it.
fn world() -> World {
    let daily =
        Profile { depth: Some(2), every: Some("24h".parse().unwrap()), ..Profile::new("daily", "C1") };
    World {
        collections: vec![collection("C1")],
        profiles: vec![daily],
        seeds: vec![seed("https://www.db.no/", &["daily"])],
        options: ScopeOptions::default(),
    }
}

fn collection(id: &str) -> Collection {
    Collection { id: id.to_owned(), enabled: true }
}

fn seed(url: &str, profiles: &[&str]) -> Seed {
    Seed { url: url.to_owned(), profiles: profiles.iter().map(|&id| id.to_owned()).collect(), enabled: true }
}

fn identity(url: &str) -> Identity {
    Identity::parse(url).unwrap()
}

fn at_depth(depth: u32) -> Place {
    Place { depth, hops_off_domain: 0 }
}

/// When that is, seen from now: `+24h`, `-1h`, `now`.
fn from_now(due: Timestamp) -> String {
    let length = due.duration_since(now());
    match length.signum() {
        0 => "now".to_owned(),
        1 => format!("+{length:#}"),
        _ => format!("-{:#}", length.abs()),
    }
}

/// An entry with texts of its own.
struct Queued {
    collection: String,
    url: Identity,
    seed: Identity,
    place: Place,
    last_fetch: Option<Timestamp>,
    length: Option<u32>,
    is_listing: bool,
}

impl Queued {
    fn entry(&self) -> Entry<'_> {
        let Self { collection, url, seed, place, last_fetch, length, is_listing } = self;
        Entry {
            collection,
            url,
            seed,
            place: *place,
            last_fetch: *last_fetch,
            length: *length,
            is_listing: *is_listing,
        }
    }
}

/// An entry of [`world`] that may be fetched: one link from the seed, last fetched two days ago.
fn queued() -> Queued {
    Queued {
        collection: "C1".to_owned(),
        url: identity("https://www.db.no/a"),
        seed: identity("https://www.db.no/"),
        place: at_depth(1),
        last_fetch: Some(ago("48h")),
        length: None,
        is_listing: false,
    }
}
