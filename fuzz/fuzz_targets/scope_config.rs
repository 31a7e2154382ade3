//! Every verdict about scope, under any configuration. Input: JSON as in `Input`.
#![no_main]

use forager_core::scope::after_fetch::{Counters, Fate, Outcome, after_fetch};
use forager_core::scope::before_fetch::{Action, Entry, Rule, before_fetch};
use forager_core::scope::outlink::{self, Context, Hop, Queued, outlink};
use forager_core::scope::start::{Target, start};
use forager_core::scope::{Collection, Place, Profile, ScopeOptions, Scopes, Seed};
use forager_core::url::{FetchUrl, Identity};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;

#[derive(Deserialize)]
struct Input {
    #[serde(default)]
    collections: Vec<Collection>,
    #[serde(default)]
    profiles: Vec<Profile>,
    #[serde(default)]
    seeds: Vec<Seed>,
    #[serde(default)]
    options: ScopeOptions,
    url: FetchUrl,
    /// The seed that the entry is queued with, and the one that a link is found with.
    queued_seed: FetchUrl,
    context_seed: FetchUrl,
    #[serde(default)]
    collection: String,
    #[serde(default)]
    depth: u32,
    #[serde(default)]
    hops: u32,
    #[serde(default)]
    length: Option<u32>,
    #[serde(default)]
    last_fetch: Option<Timestamp>,
    #[serde(default)]
    leased: bool,
    #[serde(default)]
    is_listing: bool,
    #[serde(default)]
    hop: usize,
    now: Timestamp,
}

fuzz_target!(|json: &str| {
    let Ok(input) = serde_json::from_str::<Input>(json) else { return };
    let Input { collections, profiles, seeds, options, .. } = &input;
    let Ok(scopes) = Scopes::new(collections, profiles, seeds, *options) else { return };
    let identity = |url| scopes.identity(&input.collection, url);
    let (url, seed) = (identity(&input.url), identity(&input.queued_seed));
    let place = Place { depth: input.depth, hops_off_domain: input.hops };
    let entry = Entry {
        collection: &input.collection,
        url: &url,
        seed: &seed,
        place,
        last_fetch: input.last_fetch,
        length: input.length,
        is_listing: input.is_listing,
    };
    before_holds(&scopes, &entry, &input);
    after_holds(&scopes, &entry, input.now);
    let hop = [Hop::Link, Hop::Redirect, Hop::Listing][input.hop % 3];
    let context_seed = identity(&input.context_seed);
    let context = Context { collection: &input.collection, seed: &context_seed, place, hop };
    link_holds(&scopes, &context, &entry, &input);
    start_holds(&scopes, &seed, &input);
});

fn before_holds(scopes: &Scopes, entry: &Entry<'_>, input: &Input) {
    let verdict = before_fetch(scopes, entry, input.now);
    let is_configured = |seed: &Identity| start(scopes, Target::Seed(seed), input.now).is_ok();
    assert_eq!(verdict.taken_over, verdict.seed.is_some() && !is_configured(entry.seed));
    assert_eq!(verdict.seed.is_none(), verdict.rule == Rule::SeedGone);
    match verdict.action {
        Action::Fetch => assert!(matches!(verdict.rule, Rule::InScope { .. })),
        // At the end of time there is nothing later.
        Action::Postpone { due } => {
            assert!(
                due > input.now
                    || due == Timestamp::MAX
                    || input.options.postpone_at_least.as_secs_f64() == 0.0
            );
        }
        Action::Remove => assert!(matches!(
            verdict.rule,
            Rule::SeedGone | Rule::CollectionGone | Rule::NoProfile | Rule::OutOfScope { .. }
        )),
    }
    if let (Action::Postpone { due }, Rule::TooEarly { .. }) = (verdict.action, verdict.rule) {
        assert_eq!(before_fetch(scopes, entry, due).action, Action::Fetch, "one wait is enough");
    }
}

fn after_holds(scopes: &Scopes, entry: &Entry<'_>, now: Timestamp) {
    for outcome in [Outcome::Success, Outcome::NotFound, Outcome::Failure] {
        let (after, fate) = after_fetch(scopes, entry, Counters::default(), outcome, now);
        assert_eq!(after.last_fetch, now);
        assert!(after.length <= entry.length, "the length only counts down");
        assert_eq!(fate == Fate::Spent, after.length == Some(0));
    }
}

fn link_holds(scopes: &Scopes, context: &Context<'_>, entry: &Entry<'_>, input: &Input) {
    let new = outlink(scopes, context, entry.url, None, input.now);
    assert!(matches!(new.action, outlink::Action::Add { .. } | outlink::Action::Ignore));
    let Entry { seed, place, last_fetch, .. } = *entry;
    let queued = Queued { seed, place, due: input.now, last_fetch, leased: input.leased };
    let again = outlink(scopes, context, entry.url, Some(&queued), input.now);
    match again.action {
        outlink::Action::Add { .. } => panic!("it was queued already"),
        outlink::Action::Merge(claim) => {
            assert!(claim.due <= queued.due, "a link never delays");
            assert!(claim.seed != seed || claim.place.depth <= place.depth, "nor does it push deeper");
        }
        outlink::Action::Keep | outlink::Action::Remove | outlink::Action::Ignore => {}
    }
}

fn start_holds(scopes: &Scopes, seed: &Identity, input: &Input) {
    let mut targets = vec![Target::Seed(seed), Target::Collection(&input.collection)];
    targets.extend(input.profiles.iter().map(|profile| Target::Profile(&profile.id)));
    for target in targets {
        let Ok(started) = start(scopes, target, input.now) else { continue };
        let mut keys: Vec<_> = started.iter().map(|one| (one.collection, one.seed)).collect();
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all, "each seed once in each collection");
    }
}
