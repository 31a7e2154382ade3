//! What starting a seed, a profile or a collection queues.

use jiff::Timestamp;

use super::config::{ProfileRules, Scopes, SeedRules};
use super::extent::{Outside, Place};
use super::standing::{Profiles, Standing, later, length};
use crate::url::Identity;

/// What to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A seed, in the collections of all its profiles.
    Seed(&'a Identity),
    /// All seeds of a profile, in the collection of that profile.
    Profile(&'a str),
    /// All profiles that have a collection.
    Collection(&'a str),
}

/// A seed that is put into the queue of a collection, as if a link to it had been found there.
///
/// On an entry that is already queued it sets depth 0 and this due time, and keeps the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started<'c> {
    /// The collection.
    pub collection: &'c str,
    /// The seed.
    pub seed: &'c Identity,
    /// Its URL, as the collection counts it.
    pub url: &'c Identity,
    /// What becomes of it.
    pub action: Action<'c>,
}

/// What becomes of a seed that is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'c> {
    /// It is queued at depth 0.
    Queue {
        /// Now, or later if the seed, the profiles or the collection are disabled.
        due: Timestamp,
        /// How many fetches it gets; unlimited if none.
        length: Option<u32>,
    },
    /// Its own profiles do not have it in scope.
    OutOfScope {
        /// The first profile that was asked.
        profile: &'c str,
        /// What it said.
        outside: Outside<'c>,
    },
    /// The collection is gone.
    CollectionGone,
}

impl Action<'_> {
    /// Why the seed is not queued, if it is not.
    pub fn obstacle(&self) -> Option<String> {
        match self {
            Self::Queue { .. } => None,
            Self::OutOfScope { profile, outside } => Some(format!("out of scope ({profile}: {outside})")),
            Self::CollectionGone => Some("collection gone".to_owned()),
        }
    }
}

/// Something to start that is not configured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// No such seed.
    #[error("seed {0:?} is not configured")]
    Seed(String),
    /// No such profile.
    #[error("profile {0:?} is not configured")]
    Profile(String),
    /// No such collection.
    #[error("collection {0:?} is not configured")]
    Collection(String),
}

/// Decides what starting `target` at `now` queues: each seed once in each collection.
pub fn start<'c>(
    scopes: &'c Scopes,
    target: Target<'_>,
    now: Timestamp,
) -> Result<Vec<Started<'c>>, StartError> {
    check(scopes, target)?;
    let mut started = Vec::new();
    for seed in scopes.seeds() {
        if matches!(target, Target::Seed(url) if scopes.seed(url).is_none_or(|found| found.url != seed.url)) {
            continue;
        }
        for collection in collections(scopes, seed) {
            let profiles = scopes.profiles_of(seed, collection).filter(|profile| is_meant(target, profile));
            if profiles.clone().next().is_some() {
                let action = start_one(scopes, seed, collection, profiles, now);
                started.push(Started { collection, seed: &seed.url, url: seed.url_in(collection), action });
            }
        }
    }
    Ok(started)
}

fn check(scopes: &Scopes, target: Target<'_>) -> Result<(), StartError> {
    match target {
        Target::Seed(url) if scopes.seed(url).is_none() => Err(StartError::Seed(url.to_string())),
        Target::Profile(id) if !scopes.profiles().iter().any(|profile| profile.id == id) => {
            Err(StartError::Profile(id.to_owned()))
        }
        Target::Collection(id) if scopes.collection_enabled(id).is_none() => {
            Err(StartError::Collection(id.to_owned()))
        }
        _ => Ok(()),
    }
}

fn is_meant(target: Target<'_>, profile: &ProfileRules) -> bool {
    match target {
        Target::Seed(_) => true,
        Target::Profile(id) => profile.id == id,
        Target::Collection(id) => profile.collection == id,
    }
}

/// The collections of the profiles of a seed, each once.
fn collections<'c>(scopes: &'c Scopes, seed: &'c SeedRules) -> std::collections::BTreeSet<&'c str> {
    scopes.all_profiles_of(seed).map(|profile| profile.collection.as_str()).collect()
}

fn start_one<'c>(
    scopes: &'c Scopes,
    seed: &'c SeedRules,
    collection: &str,
    profiles: impl Profiles<'c>,
    now: Timestamp,
) -> Action<'c> {
    let Some(collection_enabled) = scopes.collection_enabled(collection) else {
        return Action::CollectionGone;
    };
    let length = length(profiles.clone());
    let postponed = Action::Queue { due: later(scopes.options, profiles.clone(), now), length };
    let url = seed.url_in(collection);
    match Standing::of(profiles, url, url, Place::default(), now) {
        Standing::Outside(profile, outside) => Action::OutOfScope { profile: &profile.id, outside },
        Standing::Active { .. } if seed.enabled && collection_enabled => Action::Queue { due: now, length },
        Standing::Active { .. } | Standing::Disabled(_) | Standing::NoProfiles => postponed,
    }
}
