//! Collections, profiles and seeds: as they are written, and as they are looked up.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::extent::{Comparable, Extent, Kind, Place, Traps, share_domain};
use super::standing::Profiles;
use crate::order::Order;
use crate::time::Interval;
use crate::url::{FetchUrl, Identity, IdentityOptions, UrlError, without_user_info};

/// A namespace of queued URLs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collection {
    /// Its name.
    pub id: String,
    /// Whether it is harvested; if not, its URLs wait.
    #[serde(default = "enabled")]
    pub enabled: bool,
}

/// How to harvest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name.
    pub id: String,
    /// The collection it belongs to.
    pub collection: String,
    /// Whether it is harvested; if not, its URLs wait.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// Which of the URLs that are due at a host goes first.
    #[serde(default)]
    pub order: Order,
    /// Which URLs are in scope, relative to the seed.
    #[serde(default)]
    pub scope: Kind,
    /// How many links away from the seed, inclusive; unlimited if not set.
    #[serde(default)]
    pub depth: Option<u32>,
    /// How many links in a row may lead off the domain of the seed.
    #[serde(default)]
    pub hops_off_domain: u32,
    /// How often a URL is fetched at most; not limited if not set.
    #[serde(default)]
    pub every: Option<Interval>,
    /// How many times a URL is fetched before it leaves the queue; unlimited if not set.
    #[serde(default)]
    pub length: Option<u32>,
    /// If any are given, a URL other than the seed must match one of these expressions.
    #[serde(default)]
    pub include: Vec<String>,
    /// A URL that matches one of these expressions is out of scope.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// The schemes that are in scope.
    #[serde(default = "web_schemes")]
    pub schemes: Vec<String>,
    /// The longest URL that is in scope, in bytes.
    #[serde(default = "max_url_length")]
    pub max_url_length: usize,
    /// Guards against endless sites.
    #[serde(default)]
    pub traps: Traps,
    /// Count URLs that differ only in the order of their parameters as one.
    #[serde(default)]
    pub sort_query: bool,
    /// Parameters that do not count, such as `sid` or `utm_*`.
    #[serde(default)]
    pub strip_params: Vec<String>,
    /// How pages are read.
    #[serde(default)]
    pub reading: Reading,
}

/// How pages are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reading {
    /// Whether pages are also found through the sitemaps that robots.txt names.
    pub sitemaps: bool,
    /// Leave out links that are marked `nofollow`.
    pub respect_nofollow: bool,
    /// Follow no link of a page that asks for that, by `meta robots` or `X-Robots-Tag`.
    pub respect_meta_robots: bool,
    /// What makes a page count as changed.
    pub change: ChangeBy,
    /// A CSS selector of the part that counts.
    pub content: Option<String>,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            sitemaps: true,
            respect_nofollow: false,
            respect_meta_robots: true,
            change: ChangeBy::default(),
            content: None,
        }
    }
}

/// What makes a page count as changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeBy {
    /// What it says to its readers.
    #[default]
    Content,
    /// Any byte.
    Exact,
}

impl Profile {
    /// A profile with every setting at its default.
    pub fn new(id: impl Into<String>, collection: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            collection: collection.into(),
            enabled: true,
            order: Order::default(),
            scope: Kind::default(),
            depth: None,
            hops_off_domain: 0,
            every: None,
            length: None,
            include: Vec::new(),
            exclude: Vec::new(),
            schemes: web_schemes(),
            max_url_length: max_url_length(),
            traps: Traps::default(),
            sort_query: false,
            strip_params: Vec::new(),
            reading: Reading::default(),
        }
    }

    fn identity_options(&self) -> IdentityOptions {
        let mut strip_params = self.strip_params.clone();
        strip_params.sort_unstable(); // profiles that differ only in the order do not differ
        strip_params.dedup();
        IdentityOptions { sort_query: self.sort_query, strip_params }
    }
}

/// A URL with the profiles it is harvested under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// Where the harvest starts.
    pub url: String,
    /// The names of its profiles.
    pub profiles: Vec<String>,
    /// Whether it is harvested; if not, its URLs wait.
    #[serde(default = "enabled")]
    pub enabled: bool,
}

impl Seed {
    /// The seed as it may be kept: a name and password in its URL are never sent.
    #[must_use]
    pub fn public(&self) -> Self {
        Self { url: without_user_info(&self.url).into_owned(), ..self.clone() }
    }
}

/// What holds for every profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScopeOptions {
    /// The shortest time for which a disabled URL is put back.
    pub postpone_at_least: Interval,
    /// Of two seeds, the one on the domain of the URL owns it.
    pub own_domain: bool,
    /// Compare the domains that one could register instead of hosts, so that subdomains count as one.
    pub registrable_domain: bool,
}

impl Default for ScopeOptions {
    fn default() -> Self {
        Self { postpone_at_least: Interval::hours(1), own_domain: false, registrable_domain: false }
    }
}

/// What is wrong with a configuration of scopes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// Two things of one kind have one name.
    #[error("{kind} {name:?} is there twice")]
    Twice {
        /// Collection, profile or seed.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A seed is not a URL.
    #[error("seed {url:?}: {cause}")]
    SeedUrl {
        /// What was written.
        url: String,
        /// What is wrong with it.
        cause: UrlError,
    },
    /// A pattern is not a regular expression.
    #[error("profile {profile:?}: {list}: {cause}")]
    Pattern {
        /// The profile.
        profile: String,
        /// The list that holds the pattern.
        list: &'static str,
        /// What is wrong with it.
        cause: String,
    },
    /// A scheme that cannot be crawled.
    #[error("profile {profile:?}: scheme {scheme:?} cannot be crawled; take http or https")]
    Scheme {
        /// The profile.
        profile: String,
        /// The scheme.
        scheme: String,
    },
    /// Two profiles of one collection disagree about what counts as one URL.
    #[error(
        "profiles {first:?} and {second:?} of collection {collection:?} differ in sort_query or \
         strip_params; in one collection a URL has one identity"
    )]
    IdentityDiffers {
        /// The collection.
        collection: String,
        /// The profile that came first.
        first: String,
        /// The profile that differs from it.
        second: String,
    },
}

/// A profile, ready to judge URLs.
#[derive(Clone, Debug)]
pub(super) struct ProfileRules {
    pub(super) id: String,
    pub(super) collection: String,
    pub(super) enabled: bool,
    pub(super) every: Option<Interval>,
    pub(super) length: Option<u32>,
    pub(super) order: Order,
    pub(super) extent: Extent,
    identity: IdentityOptions,
}

/// A seed, ready to be compared with URLs.
#[derive(Clone, Debug)]
pub(super) struct SeedRules {
    /// What the seed is known by.
    pub(super) url: Identity,
    pub(super) enabled: bool,
    profiles: Vec<usize>,
    /// Its identity in collections that count parameters otherwise.
    elsewhere: Vec<(String, Identity)>,
}

impl SeedRules {
    /// The identity of the seed in a collection, for comparing it with URLs there.
    pub(super) fn url_in(&self, collection: &str) -> &Identity {
        let own = self.elsewhere.iter().find(|(name, _)| name == collection);
        own.map_or(&self.url, |(_, url)| url)
    }
}

/// Collections, profiles and seeds, ready for verdicts.
///
/// What is not among them counts as deleted; a name that refers to something deleted is allowed,
/// and [`Scopes::dangling`] lists it.
#[derive(Clone, Debug)]
pub struct Scopes {
    pub(super) options: ScopeOptions,
    collections: BTreeMap<String, bool>,
    profiles: Vec<ProfileRules>,
    /// Sorted by what they compare by.
    seeds: Vec<SeedRules>,
    dangling: Vec<Dangling>,
}

/// A reference to something that is not configured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Dangling {
    /// A profile of a collection that is not there.
    #[error("profile {profile:?} belongs to collection {collection:?}, which is not configured")]
    Collection {
        /// The profile.
        profile: String,
        /// The collection.
        collection: String,
    },
    /// A seed of a profile that is not there.
    #[error("seed {seed:?} names profile {profile:?}, which is not configured")]
    Profile {
        /// The seed.
        seed: String,
        /// The profile.
        profile: String,
    },
}

impl Scopes {
    /// Prepares a configuration.
    pub fn new(
        collections: &[Collection],
        profiles: &[Profile],
        seeds: &[Seed],
        options: ScopeOptions,
    ) -> Result<Self, ScopeError> {
        let mut scopes = Self {
            options,
            collections: BTreeMap::new(),
            profiles: Vec::with_capacity(profiles.len()),
            seeds: Vec::with_capacity(seeds.len()),
            dangling: Vec::new(),
        };
        for collection in collections {
            scopes.add_collection(collection)?;
        }
        let mut by_id = BTreeMap::new();
        for profile in profiles {
            if by_id.insert(profile.id.as_str(), scopes.profiles.len()).is_some() {
                return Err(ScopeError::Twice { kind: "profile", name: profile.id.clone() });
            }
            scopes.add_profile(profile)?;
        }
        for seed in seeds {
            scopes.add_seed(seed, &by_id)?;
        }
        scopes.sort_seeds()?;
        Ok(scopes)
    }

    fn add_collection(&mut self, collection: &Collection) -> Result<(), ScopeError> {
        match self.collections.insert(collection.id.clone(), collection.enabled) {
            Some(_) => Err(ScopeError::Twice { kind: "collection", name: collection.id.clone() }),
            None => Ok(()),
        }
    }

    fn add_profile(&mut self, profile: &Profile) -> Result<(), ScopeError> {
        let identity = profile.identity_options();
        let sibling = self.profiles.iter().find(|other| other.collection == profile.collection);
        if let Some(sibling) = sibling.filter(|sibling| sibling.identity != identity) {
            return Err(ScopeError::IdentityDiffers {
                collection: profile.collection.clone(),
                first: sibling.id.clone(),
                second: profile.id.clone(),
            });
        }
        if !self.collections.contains_key(&profile.collection) {
            let (profile, collection) = (profile.id.clone(), profile.collection.clone());
            self.dangling.push(Dangling::Collection { profile, collection });
        }
        self.profiles.push(ProfileRules {
            id: profile.id.clone(),
            collection: profile.collection.clone(),
            enabled: profile.enabled,
            every: profile.every,
            length: profile.length,
            order: profile.order,
            extent: Extent::new(profile, self.options.registrable_domain)?,
            identity,
        });
        Ok(())
    }

    fn add_seed(&mut self, seed: &Seed, by_id: &BTreeMap<&str, usize>) -> Result<(), ScopeError> {
        let fetch = FetchUrl::parse(&seed.url)
            .map_err(|cause| ScopeError::SeedUrl { url: seed.url.clone(), cause })?;
        let url = fetch.identity(&IdentityOptions::default());
        let mut profiles = Vec::with_capacity(seed.profiles.len());
        for name in &seed.profiles {
            match by_id.get(name.as_str()) {
                Some(&index) if !profiles.contains(&index) => profiles.push(index),
                Some(_) => {}
                None => {
                    let (seed, profile) = (seed.url.clone(), name.clone());
                    self.dangling.push(Dangling::Profile { seed, profile });
                }
            }
        }
        let rules = profiles.iter().map(|&index: &usize| &self.profiles[index]);
        let elsewhere = rules
            .map(|profile| (profile.collection.clone(), fetch.identity(&profile.identity)))
            .filter(|(_, own)| *own != url)
            .collect();
        self.seeds.push(SeedRules { url, enabled: seed.enabled, profiles, elsewhere });
        Ok(())
    }

    fn sort_seeds(&mut self) -> Result<(), ScopeError> {
        self.seeds.sort_by(|a, b| Comparable::of(&a.url).cmp(&Comparable::of(&b.url)));
        let same = |pair: &&[SeedRules]| Comparable::of(&pair[0].url) == Comparable::of(&pair[1].url);
        if let Some(pair) = self.seeds.windows(2).find(same) {
            return Err(ScopeError::Twice { kind: "seed", name: pair[1].url.to_string() });
        }
        self.check_seeds_elsewhere()
    }

    /// Two seeds may differ, and yet be one URL in a collection that strips or sorts parameters.
    fn check_seeds_elsewhere(&self) -> Result<(), ScopeError> {
        let mut known = BTreeMap::new();
        for seed in &self.seeds {
            for (collection, url) in &seed.elsewhere {
                known.insert((collection, Comparable::of(url)), seed);
            }
        }
        for seed in &self.seeds {
            for profile in self.all_profiles_of(seed) {
                let own = (&profile.collection, Comparable::of(seed.url_in(&profile.collection)));
                if known.get(&own).is_some_and(|other| other.url != seed.url) {
                    return Err(ScopeError::Twice { kind: "seed", name: seed.url.to_string() });
                }
            }
        }
        Ok(())
    }

    /// The names that refer to nothing: most often slips, though a deleted profile or collection
    /// leaves them too.
    pub fn dangling(&self) -> &[Dangling] {
        &self.dangling
    }

    /// The text by which `url` is one entry of `collection`, as its profiles ask.
    pub fn identity(&self, collection: &str, url: &FetchUrl) -> Identity {
        match self.profiles.iter().find(|profile| profile.collection == collection) {
            Some(profile) => url.identity(&profile.identity),
            None => url.identity(&IdentityOptions::default()),
        }
    }

    /// The place of a URL that was found at `depth`, and so many hops off the domain of `seed`.
    /// Without word about the hops, a URL off that domain is one hop off.
    pub fn place(&self, seed: &Identity, url: &Identity, depth: u32, hops_off_domain: Option<u32>) -> Place {
        let least = || u32::from(!share_domain(seed, url, self.options.registrable_domain));
        Place { depth, hops_off_domain: hops_off_domain.unwrap_or_else(least) }
    }

    /// How the URLs that `seed` owns in `collection` are ordered: as its first profile there asks.
    pub fn order(&self, collection: &str, seed: &Identity) -> Order {
        let seed = self.seed_in(collection, seed);
        let first = seed.and_then(|seed| self.profiles_of(seed, collection).next());
        first.map_or(Order::default(), |profile| profile.order)
    }

    /// Whether a collection is enabled; none if it is gone.
    pub(super) fn collection_enabled(&self, id: &str) -> Option<bool> {
        self.collections.get(id).copied()
    }

    /// The seed that is known by `url`, or that `url` is in a collection.
    pub(super) fn seed_in(&self, collection: &str, url: &Identity) -> Option<&SeedRules> {
        let wanted = Comparable::of(url);
        let is_it = |seed: &&SeedRules| Comparable::of(seed.url_in(collection)) == wanted;
        self.seed(url).or_else(|| self.seeds.iter().filter(|seed| !seed.elsewhere.is_empty()).find(is_it))
    }

    pub(super) fn seed(&self, url: &Identity) -> Option<&SeedRules> {
        let wanted = Comparable::of(url);
        // Most seeds differ in the authority already, which is what they are sorted by first.
        let order = |seed: &SeedRules| {
            let by_authority = seed.url.authority().cmp(url.authority());
            by_authority.then_with(|| Comparable::of(&seed.url).cmp(&wanted))
        };
        let index = self.seeds.binary_search_by(order).ok()?;
        Some(&self.seeds[index])
    }

    pub(super) fn seeds(&self) -> &[SeedRules] {
        &self.seeds
    }

    pub(super) fn profiles(&self) -> &[ProfileRules] {
        &self.profiles
    }

    /// The profiles of a seed.
    pub(super) fn all_profiles_of<'c>(&'c self, seed: &'c SeedRules) -> impl Profiles<'c> {
        seed.profiles.iter().map(|&index| &self.profiles[index])
    }

    /// The profiles of a seed that have this collection.
    pub(super) fn profiles_of<'c>(&'c self, seed: &'c SeedRules, collection: &str) -> impl Profiles<'c> {
        self.all_profiles_of(seed).filter(move |profile| profile.collection == collection)
    }
}

fn enabled() -> bool {
    true
}

fn web_schemes() -> Vec<String> {
    vec!["http".to_owned(), "https".to_owned()]
}

fn max_url_length() -> usize {
    8192
}
