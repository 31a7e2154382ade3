//! What becomes of a link that was found on a page.

use core::fmt;

use jiff::Timestamp;

use super::config::{ProfileRules, Scopes, SeedRules};
use super::extent::{Comparable, Outside, Place, Within, share_domain};
use super::standing::{Standing, later, length};
use crate::merge;
use crate::order::Order;
use crate::url::Identity;

/// The page on which the link was found.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The collection it was fetched for.
    pub collection: &'a str,
    /// The seed it was fetched for.
    pub seed: &'a Identity,
    /// How far from the seed it is.
    pub place: Place,
    /// What leads from it to the URL.
    pub hop: Hop,
}

/// What leads from a page to a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hop {
    /// A link: one farther from the seed.
    #[default]
    Link,
    /// A redirect: the page has moved, and is no farther away.
    Redirect,
    /// A word about where a site lists its pages: such a list is in scope wherever it lies, for what
    /// counts is what it lists.
    Listing,
}

/// The entry that the linked URL already has in the queue.
#[derive(Clone, Copy, Debug)]
pub struct Queued<'a> {
    /// The seed that owns it.
    pub seed: &'a Identity,
    /// How far from that seed it was found.
    pub place: Place,
    /// When it is due.
    pub due: Timestamp,
    /// When it was last fetched.
    pub last_fetch: Option<Timestamp>,
    /// Whether a worker has it now.
    pub leased: bool,
}

/// What to do with the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'c> {
    /// Queue it.
    Add {
        /// How many fetches it gets; unlimited if none.
        length: Option<u32>,
        /// Its owner, place and due time.
        claim: Claim<'c>,
    },
    /// It is queued: give the entry this owner, place and due time.
    Merge(Claim<'c>),
    /// It is queued: leave the entry as it is.
    Keep,
    /// It is queued: take the entry out.
    Remove,
    /// Do nothing.
    Ignore,
}

/// What a link gives to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'c> {
    /// The seed that owns it.
    pub seed: &'c Identity,
    /// How far from that seed it was found.
    pub place: Place,
    /// When it is due.
    pub due: Timestamp,
}

/// The rule that decided about a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule<'c> {
    /// The collection is gone.
    CollectionGone,
    /// The seed of the page is gone; what it owns is decided before its next fetch.
    SeedGone,
    /// No profile of the seed has the collection.
    NoProfile,
    /// In scope of no profile.
    OutOfScope {
        /// The first profile that was asked.
        profile: &'c str,
        /// What it said.
        outside: Outside<'c>,
    },
    /// Found out of scope, but queued at a place that is in scope.
    StoredPlaceInScope {
        /// The profile that has it in scope.
        profile: &'c str,
    },
    /// In scope, but the seed, the collection or every such profile is disabled: it waits.
    Postponed {
        /// The first profile that has it in scope.
        profile: &'c str,
    },
    /// In scope of an active profile.
    InScope {
        /// The first of those.
        profile: &'c str,
        /// Why it is.
        within: Within,
    },
    /// A worker has the entry, so that its owner stays.
    Leased,
    /// Two seeds claimed it.
    Owner(OwnerRule),
}

/// The rule that chose between two seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerRule {
    /// The seed in the queue is gone.
    QueuedSeedGone,
    /// a: the URL is the seed of the page.
    EqualsContext,
    /// b: the URL is the seed in the queue.
    EqualsQueued,
    /// c: on the domain of both; the longest prefix owns it.
    LongestPrefix,
    /// d: on the domain of the page's seed only.
    ContextDomain,
    /// e: on the domain of the queued seed only.
    QueuedDomain,
    /// c, d, e: on the domain of either, and nothing else tells them apart.
    EarliestOnDomain,
    /// f: on the domain of neither.
    EarliestOffDomain,
}

impl fmt::Display for Rule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CollectionGone => f.write_str("collection gone"),
            Self::SeedGone => f.write_str("seed gone"),
            Self::NoProfile => f.write_str("no profile of the seed has the collection"),
            Self::OutOfScope { profile, outside } => write!(f, "out of scope ({profile}: {outside})"),
            Self::StoredPlaceInScope { profile } => write!(f, "stored depth in scope ({profile})"),
            Self::Postponed { profile } => write!(f, "in scope, disabled ({profile})"),
            Self::InScope { profile, within } => write!(f, "in scope ({profile}: {within})"),
            Self::Leased => f.write_str("leased: the owner stays"),
            Self::Owner(rule) => write!(f, "owner {rule}"),
        }
    }
}

impl fmt::Display for OwnerRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::QueuedSeedGone => "the queued seed is gone",
            Self::EqualsContext => "a: equals the seed of the page",
            Self::EqualsQueued => "b: equals the queued seed",
            Self::LongestPrefix => "c: longest prefix",
            Self::ContextDomain => "d: on the domain of the page's seed",
            Self::QueuedDomain => "e: on the domain of the queued seed",
            Self::EarliestOnDomain => "c, d, e: earliest next fetch",
            Self::EarliestOffDomain => "f: earliest next fetch",
        })
    }
}

/// What to do with a link, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict<'c> {
    /// What to do.
    pub action: Action<'c>,
    /// The rule that decided.
    pub rule: Rule<'c>,
}

/// Decides about a link to `url`, found at `now` on the page of `context`.
pub fn outlink<'c>(
    scopes: &'c Scopes,
    context: &Context<'_>,
    url: &Identity,
    queued: Option<&Queued<'c>>,
    now: Timestamp,
) -> Verdict<'c> {
    Page::of(scopes, context).judge(context.hop, url, queued, now)
}

/// A page, for judging its links: what is the same for all of them is looked up once.
#[derive(Clone, Copy, Debug)]
pub struct Page<'c, 'a> {
    scopes: &'c Scopes,
    collection: &'a str,
    place: Place,
    /// None if the collection is gone.
    collection_enabled: Option<bool>,
    /// None if it is gone.
    seed: Option<&'c SeedRules>,
}

impl<'c, 'a> Page<'c, 'a> {
    /// The page of `context`; what leads from it is said for each link.
    pub fn of(scopes: &'c Scopes, context: &Context<'a>) -> Self {
        let Context { collection, place, .. } = *context;
        let collection_enabled = scopes.collection_enabled(collection);
        Self { scopes, collection, place, collection_enabled, seed: scopes.seed_in(collection, context.seed) }
    }

    /// How the URLs that its seed owns in its collection are ordered; see [`Scopes::order`].
    pub fn order(&self) -> Order {
        self.first_profile().map_or(Order::default(), |profile| profile.order)
    }

    /// How many URLs of one host its seed may bring into its collection, as its first profile there says; 0 if any number.
    pub fn max_per_host(&self) -> u64 {
        self.first_profile().map_or(0, |profile| profile.extent.traps().max_per_host)
    }

    fn first_profile(&self) -> Option<&'c ProfileRules> {
        self.scopes.profiles_of(self.seed?, self.collection).next()
    }

    /// Decides about a link to `url`, found at `now`; see [`outlink`].
    pub fn judge(
        &self,
        hop: Hop,
        url: &Identity,
        queued: Option<&Queued<'c>>,
        now: Timestamp,
    ) -> Verdict<'c> {
        let Some(collection_enabled) = self.collection_enabled else {
            let action = if queued.is_some() { Action::Remove } else { Action::Ignore };
            return Verdict { action, rule: Rule::CollectionGone };
        };
        let Some(seed) = self.seed else {
            let action = if queued.is_some() { Action::Keep } else { Action::Ignore };
            return Verdict { action, rule: Rule::SeedGone };
        };
        let enabled = collection_enabled && seed.enabled;
        let seed_url = seed.url_in(self.collection);
        Link { page: self, hop, seed, seed_url, enabled, url, now }.judge(queued)
    }
}

/// A link whose seed and collection are there.
struct Link<'c, 'a> {
    page: &'a Page<'c, 'a>,
    hop: Hop,
    seed: &'c SeedRules,
    /// The identity of the seed in this collection.
    seed_url: &'c Identity,
    enabled: bool,
    url: &'a Identity,
    now: Timestamp,
}

impl<'c> Link<'c, '_> {
    fn judge(&self, queued: Option<&Queued<'c>>) -> Verdict<'c> {
        let place = self.place();
        let standing = self.standing(place);
        let is_own = |seed| is_same(seed, &self.seed.url) || is_same(seed, self.seed_url);
        let own = queued.filter(|queued| is_own(queued.seed));
        let rule = match standing {
            Standing::NoProfiles => Rule::NoProfile,
            Standing::Outside(profile, outside) => Rule::OutOfScope { profile: &profile.id, outside },
            Standing::Disabled(profile) => Rule::Postponed { profile: &profile.id },
            Standing::Active { profile, .. } if !self.enabled => Rule::Postponed { profile: &profile.id },
            Standing::Active { profile, within, .. } => Rule::InScope { profile: &profile.id, within },
        };
        let is_active = matches!(rule, Rule::InScope { .. });
        let claim = Claim { seed: &self.seed.url, place, due: self.next_fetch(&standing, queued, is_active) };
        match (standing.is_in_scope(), queued, own) {
            (true, None, _) => {
                let length = length(self.page.scopes.profiles_of(self.seed, self.page.collection));
                Verdict { action: Action::Add { length, claim }, rule }
            }
            (true, _, Some(own)) if is_active => Verdict { action: Action::Merge(nearer(claim, own)), rule },
            (true, _, Some(own)) if place < own.place => {
                Verdict { action: Action::Merge(Claim { due: own.due, ..claim }), rule }
            }
            (true, _, Some(_)) => Verdict { action: Action::Keep, rule },
            (true, Some(other), None) => self.choose_owner(claim, is_active, other),
            (false, _, Some(own)) => self.keep_or_remove(own, rule),
            (false, _, None) => Verdict { action: Action::Ignore, rule },
        }
    }

    /// Where the link leads to: one deeper, if it is a link, and one farther off the domain if it is off it.
    fn place(&self) -> Place {
        let Place { depth, hops_off_domain } = self.page.place;
        let on_domain = share_domain(self.seed_url, self.url, self.page.scopes.options.registrable_domain);
        let hops_off_domain = if on_domain { 0 } else { hops_off_domain.saturating_add(1) };
        let step = u32::from(self.hop == Hop::Link);
        Place { depth: depth.saturating_add(step), hops_off_domain }
    }

    fn standing(&self, place: Place) -> Standing<'c> {
        let profiles = self.page.scopes.profiles_of(self.seed, self.page.collection);
        if self.hop == Hop::Listing {
            return Standing::of_listing(profiles);
        }
        Standing::of(profiles, self.seed_url, self.url, place, self.now)
    }

    /// When this seed would have the URL fetched next.
    fn next_fetch(&self, standing: &Standing<'c>, queued: Option<&Queued<'_>>, is_active: bool) -> Timestamp {
        if !is_active {
            let profiles = self.page.scopes.profiles_of(self.seed, self.page.collection);
            return later(self.page.scopes.options, profiles, self.now);
        }
        let Some((known, last)) = queued.and_then(|known| Some((known, known.last_fetch?))) else {
            return self.now;
        };
        // A link found again must not have a page fetched again before its time.
        standing.every().map_or(known.due, |every| every.after(last).max(self.now))
    }

    /// Found out of scope, queued with the same seed: the stored place decides.
    fn keep_or_remove(&self, own: &Queued<'_>, rule: Rule<'c>) -> Verdict<'c> {
        match self.standing(own.place) {
            Standing::Disabled(profile) | Standing::Active { profile, .. } => {
                Verdict { action: Action::Keep, rule: Rule::StoredPlaceInScope { profile: &profile.id } }
            }
            Standing::NoProfiles | Standing::Outside(..) => Verdict { action: Action::Remove, rule },
        }
    }

    /// Queued with another seed: the rules a to f choose who owns it.
    fn choose_owner(&self, claim: Claim<'c>, is_active: bool, queued: &Queued<'c>) -> Verdict<'c> {
        if queued.leased {
            return Verdict { action: Action::Keep, rule: Rule::Leased };
        }
        // A claim that waits is never the earliest, and brings nothing forward.
        let next_fetch = if is_active { claim.due } else { Timestamp::MAX };
        let (winner, rule) = match self.page.scopes.seed_in(self.page.collection, queued.seed) {
            Some(holder) => self.winner(next_fetch, holder.url_in(self.page.collection), queued.due),
            None => (Winner::Context, OwnerRule::QueuedSeedGone),
        };
        let due = next_fetch.min(queued.due);
        let merged = match winner {
            Winner::Context => Claim { due, ..claim },
            Winner::Queued => Claim { seed: queued.seed, place: queued.place, due },
        };
        Verdict { action: Action::Merge(merged), rule: Rule::Owner(rule) }
    }

    fn winner(&self, due: Timestamp, holder: &Identity, holder_due: Timestamp) -> (Winner, OwnerRule) {
        let options = self.page.scopes.options;
        let shares = |seed| share_domain(seed, self.url, options.registrable_domain);
        if is_same(self.url, self.seed_url) {
            return (Winner::Context, OwnerRule::EqualsContext);
        }
        if is_same(self.url, holder) {
            return (Winner::Queued, OwnerRule::EqualsQueued);
        }
        let domains = (shares(self.seed_url), shares(holder));
        let prefixes = (prefix_length(self.seed_url, self.url), prefix_length(holder, self.url));
        let earliest = if due < holder_due { Winner::Context } else { Winner::Queued };
        match domains {
            (true, true) if prefixes.0 > prefixes.1 => (Winner::Context, OwnerRule::LongestPrefix),
            (true, true) if prefixes.0 < prefixes.1 => (Winner::Queued, OwnerRule::LongestPrefix),
            (true, false) if options.own_domain => (Winner::Context, OwnerRule::ContextDomain),
            (false, true) if options.own_domain => (Winner::Queued, OwnerRule::QueuedDomain),
            (false, false) => (earliest, OwnerRule::EarliestOffDomain),
            _ => (earliest, OwnerRule::EarliestOnDomain),
        }
    }
}

enum Winner {
    Context,
    Queued,
}

/// The better of a claim and what the entry has.
fn nearer<'c>(claim: Claim<'c>, own: &Queued<'_>) -> Claim<'c> {
    let found = merge::Standing { priority: (), place: claim.place, due: claim.due };
    let merged = found.merge(merge::Standing { priority: (), place: own.place, due: own.due });
    Claim { place: merged.place, due: merged.due, ..claim }
}

fn is_same(a: &Identity, b: &Identity) -> bool {
    Comparable::of(a) == Comparable::of(b)
}

fn prefix_length(seed: &Identity, url: &Identity) -> Option<usize> {
    let seed = Comparable::of(seed);
    seed.is_prefix_of(&Comparable::of(url)).then(|| seed.path_length())
}
