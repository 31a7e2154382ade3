//! Whether an entry may be fetched now.

use core::cmp::Reverse;
use core::fmt;

use jiff::Timestamp;

use super::config::{Scopes, SeedRules};
use super::extent::{Comparable, Outside, Place, Within, share_domain};
use super::standing::{Profiles, Standing, later};
use crate::time::Interval;
use crate::url::Identity;

/// A queued URL, as far as scope is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The collection it is queued in.
    pub collection: &'a str,
    /// The URL.
    pub url: &'a Identity,
    /// The seed that owns it.
    pub seed: &'a Identity,
    /// How far from the seed it was found.
    pub place: Place,
    /// When it was last fetched.
    pub last_fetch: Option<Timestamp>,
    /// How many fetches are left; unlimited if none.
    pub length: Option<u32>,
    /// Whether it lists pages of a site, and is in scope wherever it lies.
    pub is_listing: bool,
}

impl Entry<'_> {
    /// How it stands with the profiles of a seed.
    fn standing<'c>(&self, profiles: impl Profiles<'c>, seed: &Identity, now: Timestamp) -> Standing<'c> {
        if self.is_listing {
            return Standing::of_listing(profiles);
        }
        Standing::of(profiles, seed, self.url, self.place, now)
    }
}

/// What to do with the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Fetch it now.
    Fetch,
    /// Put it back until then; its other fields stay.
    Postpone {
        /// When it may be looked at again.
        due: Timestamp,
    },
    /// Take it out of the queue.
    Remove,
}

/// The rule that decided, in the order they are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule<'c> {
    /// 1. The seed is gone, and no other seed of the collection has the URL in scope.
    SeedGone,
    /// 2. The collection is gone.
    CollectionGone,
    /// 3. The seed is disabled.
    SeedDisabled,
    /// 4. The collection is disabled.
    CollectionDisabled,
    /// 5. No profile of the seed has the collection.
    NoProfile,
    /// 6. The URL is in scope of no profile.
    OutOfScope {
        /// The first profile that was asked.
        profile: &'c str,
        /// What it said.
        outside: Outside<'c>,
    },
    /// 6. The URL is in scope of disabled profiles only.
    ProfileDisabled {
        /// The first of them.
        profile: &'c str,
    },
    /// 6. It was fetched too recently.
    TooEarly {
        /// The active profile with the shortest interval.
        profile: &'c str,
        /// That interval.
        every: Interval,
    },
    /// 7. Nothing speaks against it.
    InScope {
        /// The first active profile that has it in scope.
        profile: &'c str,
        /// Why it has.
        within: Within,
    },
}

impl fmt::Display for Rule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SeedGone => f.write_str("1: seed gone, no other covers the URL"),
            Self::CollectionGone => f.write_str("2: collection gone"),
            Self::SeedDisabled => f.write_str("3: seed disabled"),
            Self::CollectionDisabled => f.write_str("4: collection disabled"),
            Self::NoProfile => f.write_str("5: no profile of the seed has the collection"),
            Self::OutOfScope { profile, outside } => write!(f, "6: out of scope ({profile}: {outside})"),
            Self::ProfileDisabled { profile } => {
                write!(f, "6: only in scope of disabled profiles ({profile})")
            }
            Self::TooEarly { profile, every } => write!(f, "6: too early ({profile}: every {every})"),
            Self::InScope { profile, within } => write!(f, "7: in scope ({profile}: {within})"),
        }
    }
}

/// What to do with an entry before its fetch, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict<'c> {
    /// What to do.
    pub action: Action,
    /// The seed that owns the entry from now on; none if its seed is gone.
    pub seed: Option<&'c Identity>,
    /// Whether that seed took over from one that is gone.
    pub taken_over: bool,
    /// The rule that decided.
    pub rule: Rule<'c>,
}

impl fmt::Display for Verdict<'_> {
    /// The rule that decided, after the one by which another seed took over.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.taken_over {
            f.write_str("1: taken over; ")?;
        }
        self.rule.fmt(f)
    }
}

/// Decides whether an entry may be fetched at `now`: one function per rule, in their order.
pub fn before_fetch<'c>(scopes: &'c Scopes, entry: &Entry<'_>, now: Timestamp) -> Verdict<'c> {
    let Some((seed, taken_over)) = seed_in_charge(scopes, entry, now) else {
        return Verdict { action: Action::Remove, seed: None, taken_over: false, rule: Rule::SeedGone };
    };
    let judged = judge(scopes, entry, seed, now);
    let (action, rule) = match judged {
        Ok(rule) => (Action::Fetch, rule),
        Err(stopped) => stopped,
    };
    Verdict { action, seed: Some(&seed.url), taken_over, rule }
}

/// A rule that stops the fetch, and what happens instead.
type Stopped<'c> = (Action, Rule<'c>);

fn judge<'c>(
    scopes: &'c Scopes,
    entry: &Entry<'_>,
    seed: &'c SeedRules,
    now: Timestamp,
) -> Result<Rule<'c>, Stopped<'c>> {
    let profiles = scopes.profiles_of(seed, entry.collection);
    let back = Action::Postpone { due: later(scopes.options, profiles.clone(), now) };
    let enabled = collection_there(scopes, entry)?;
    seed_enabled(seed, back)?;
    collection_enabled(enabled, back)?;
    let standing = entry.standing(profiles, seed.url_in(entry.collection), now);
    profiles_there(&standing)?;
    let rule = in_scope(&standing, back)?;
    not_too_early(&standing, entry, now)?;
    Ok(rule)
}

/// Rule 1: the seed of the entry, or the one that takes over from it.
fn seed_in_charge<'c>(
    scopes: &'c Scopes,
    entry: &Entry<'_>,
    now: Timestamp,
) -> Option<(&'c SeedRules, bool)> {
    match scopes.seed_in(entry.collection, entry.seed) {
        Some(seed) => Some((seed, false)),
        None => heir(scopes, entry, now).map(|seed| (seed, true)),
    }
}

/// The best other seed of the collection whose scope has the URL: one that equals it, then the
/// longest prefix on its domain, then one that is active, then the most frequent.
fn heir<'c>(scopes: &'c Scopes, entry: &Entry<'_>, now: Timestamp) -> Option<&'c SeedRules> {
    let url = Comparable::of(entry.url);
    let claim = |seed: &'c SeedRules| {
        let profiles = scopes.profiles_of(seed, entry.collection);
        let seed_url = seed.url_in(entry.collection);
        let standing = entry.standing(profiles, seed_url, now);
        if !standing.is_in_scope() {
            return None;
        }
        let own = Comparable::of(seed_url);
        let shares = share_domain(seed_url, entry.url, scopes.options.registrable_domain);
        let prefix = (shares && own.is_prefix_of(&url)).then(|| own.path_length());
        let active = seed.enabled && matches!(standing, Standing::Active { .. });
        let every = standing.every().unwrap_or(Interval::MAX);
        Some(((own == url, prefix, active, Reverse(every)), seed))
    };
    // Seeds are sorted; of equal claims the first one stands.
    let claims = scopes.seeds().iter().rev().filter_map(claim);
    claims.max_by_key(|(claim, _)| *claim).map(|(_, seed)| seed)
}

impl Scopes {
    /// The seed of a collection that has a URL in its scope at `now` of which nothing else is known: the one that would take it
    /// over.
    pub fn covering_seed(&self, collection: &str, url: &Identity, now: Timestamp) -> Option<&Identity> {
        let place = Place::default();
        let entry =
            Entry { collection, url, seed: url, place, last_fetch: None, length: None, is_listing: false };
        heir(self, &entry, now).map(|seed| &seed.url)
    }
}

/// Rule 2. Tells whether the collection is enabled, for rule 4.
fn collection_there<'c>(scopes: &Scopes, entry: &Entry<'_>) -> Result<bool, Stopped<'c>> {
    scopes.collection_enabled(entry.collection).ok_or((Action::Remove, Rule::CollectionGone))
}

/// Rule 3.
fn seed_enabled<'c>(seed: &SeedRules, back: Action) -> Result<(), Stopped<'c>> {
    if seed.enabled { Ok(()) } else { Err((back, Rule::SeedDisabled)) }
}

/// Rule 4.
fn collection_enabled<'c>(enabled: bool, back: Action) -> Result<(), Stopped<'c>> {
    if enabled { Ok(()) } else { Err((back, Rule::CollectionDisabled)) }
}

/// Rule 5.
fn profiles_there<'c>(standing: &Standing<'c>) -> Result<(), Stopped<'c>> {
    match standing {
        Standing::NoProfiles => Err((Action::Remove, Rule::NoProfile)),
        _ => Ok(()),
    }
}

/// Rule 6: an active profile has the URL in scope.
fn in_scope<'c>(standing: &Standing<'c>, back: Action) -> Result<Rule<'c>, Stopped<'c>> {
    match *standing {
        Standing::NoProfiles => Err((Action::Remove, Rule::NoProfile)), // rule 5 has stopped it
        Standing::Outside(profile, outside) => {
            Err((Action::Remove, Rule::OutOfScope { profile: &profile.id, outside }))
        }
        Standing::Disabled(profile) => Err((back, Rule::ProfileDisabled { profile: &profile.id })),
        Standing::Active { profile, within, .. } => Ok(Rule::InScope { profile: &profile.id, within }),
    }
}

/// Rule 6, its last part: a profile may have become slower since the entry was queued.
fn not_too_early<'c>(standing: &Standing<'c>, entry: &Entry<'_>, now: Timestamp) -> Result<(), Stopped<'c>> {
    let Standing::Active { most_frequent: Some((profile, every)), .. } = *standing else {
        return Ok(());
    };
    match entry.last_fetch.map(|last| every.after(last)) {
        Some(due) if due > now => {
            Err((Action::Postpone { due }, Rule::TooEarly { profile: &profile.id, every }))
        }
        _ => Ok(()),
    }
}
