//! Every combination of what is enabled, disabled and deleted has a verdict, and disabling
//! anything never removes what would otherwise stay.

use forager_core::scope::after_fetch::{Counters, Fate, Outcome, after_fetch};
use forager_core::scope::before_fetch::{Action, before_fetch};
use forager_core::scope::outlink::{self, Context, Hop, outlink};
use forager_core::scope::{Collection, Profile, Seed};

use crate::common::now;
use crate::{Queued, World, at_depth, collection, identity, queued, seed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Enabled,
    Disabled,
    Deleted,
}

use State::{Deleted, Disabled, Enabled};

const STATES: [State; 3] = [Enabled, Disabled, Deleted];

/// The collection, two profiles (depth 1 and depth 3), the seed of the entry and another one.
type States = [State; 5];

fn every_combination() -> impl Iterator<Item = States> {
    (0..3_usize.pow(5)).map(|number| {
        core::array::from_fn(|place| STATES[number / 3_usize.pow(u32::try_from(place).unwrap()) % 3])
    })
}

fn there<T>(state: State, item: T, disable: fn(&mut T)) -> Option<T> {
    let mut item = item;
    match state {
        Enabled => Some(item),
        Disabled => {
            disable(&mut item);
            Some(item)
        }
        Deleted => None,
    }
}

fn world([one, shallow, deep, own, other]: States) -> World {
    let profile = |id: &str, depth| Profile { depth: Some(depth), ..Profile::new(id, "C1") };
    let of_both = |url: &str| seed(url, &["shallow", "deep"]);
    let profile_off: fn(&mut Profile) = |profile| profile.enabled = false;
    let seed_off: fn(&mut Seed) = |seed| seed.enabled = false;
    let collection_off: fn(&mut Collection) = |collection| collection.enabled = false;
    World {
        collections: there(one, collection("C1"), collection_off).into_iter().collect(),
        profiles: [
            there(shallow, profile("shallow", 1), profile_off),
            there(deep, profile("deep", 3), profile_off),
        ]
        .into_iter()
        .flatten()
        .collect(),
        seeds: [
            there(own, of_both("https://www.db.no/"), seed_off),
            there(other, of_both("https://www.db.no/a"), seed_off),
        ]
        .into_iter()
        .flatten()
        .collect(),
        ..World::default()
    }
}

fn entry_at(depth: u32) -> Queued {
    Queued { url: identity("https://www.db.no/a/b"), place: at_depth(depth), last_fetch: None, ..queued() }
}

/// The rules word for word.
fn expected([one, shallow, deep, own, other]: States, depth: u32) -> &'static str {
    let has_it = |state, limit| state != Deleted && depth <= limit;
    let in_scope = has_it(shallow, 1) || has_it(deep, 3);
    let active = shallow == Enabled && depth <= 1 || deep == Enabled && depth <= 3;
    // The other seed has the same profiles: it takes over if it is there and has the URL in scope.
    let seed = match own {
        Deleted if in_scope => other,
        own => own,
    };
    match (seed, one) {
        (Deleted, _) | (_, Deleted) => "remove",
        (Disabled, _) | (_, Disabled) => "postpone",
        _ if !in_scope => "remove",
        _ if !active => "postpone",
        _ => "fetch",
    }
}

fn before(states: States, depth: u32) -> &'static str {
    let scopes = world(states).scopes();
    let entry = entry_at(depth);
    let verdict = before_fetch(&scopes, &entry.entry(), now());
    match verdict.action {
        Action::Fetch => "fetch",
        Action::Postpone { due } => {
            assert!(due > now(), "{states:?}");
            "postpone"
        }
        Action::Remove => "remove",
    }
}

fn is_removed_after(states: States, depth: u32, outcome: Outcome) -> bool {
    let scopes = world(states).scopes();
    let entry = entry_at(depth);
    let (_, fate) = after_fetch(&scopes, &entry.entry(), Counters::default(), outcome, now());
    !matches!(fate, Fate::Stay { .. })
}

/// Whether a link found at `depth` removes the entry stored at `stored`, queued with `owner`.
fn is_removed_by_link(states: States, depth: u32, stored: u32, owner: &str) -> bool {
    let scopes = world(states).scopes();
    let (seed, owner, url) =
        (identity("https://www.db.no/"), identity(owner), identity("https://www.db.no/a/b"));
    let context = Context { collection: "C1", seed: &seed, place: at_depth(depth), hop: Hop::Link };
    let place = at_depth(stored);
    let queued = outlink::Queued { seed: &owner, place, due: now(), last_fetch: None, leased: false };
    matches!(outlink(&scopes, &context, &url, Some(&queued), now()).action, outlink::Action::Remove)
}

/// The same states with one thing that was enabled disabled.
fn with_one_disabled(states: States) -> impl Iterator<Item = States> {
    (0..states.len()).filter(move |&place| states[place] == Enabled).map(move |place| {
        let mut fewer = states;
        fewer[place] = Disabled;
        fewer
    })
}

#[test]
fn every_combination_has_the_verdict_of_the_rules() {
    let mut seen = [0; 3];
    for states in every_combination() {
        for depth in 0..=4 {
            let verdict = before(states, depth);
            assert_eq!(verdict, expected(states, depth), "{states:?} at depth {depth}");
            seen[["fetch", "postpone", "remove"].iter().position(|other| *other == verdict).unwrap()] += 1;
        }
    }
    assert!(seen.iter().all(|&count| count > 50), "every verdict is among them: {seen:?}");
    assert_eq!(seen.iter().sum::<u32>(), 243 * 5);
}

#[test]
fn disabling_anything_never_removes() {
    for states in every_combination() {
        for fewer in with_one_disabled(states) {
            for depth in 0..=4 {
                if before(states, depth) != "remove" {
                    assert_ne!(
                        before(fewer, depth),
                        "remove",
                        "{states:?} became {fewer:?} at depth {depth}"
                    );
                }
                for outcome in [Outcome::Success, Outcome::NotFound, Outcome::Failure] {
                    let was_removed = is_removed_after(states, depth, outcome);
                    assert!(
                        was_removed || !is_removed_after(fewer, depth, outcome),
                        "{states:?} became {fewer:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn disabling_anything_never_lets_a_link_remove() {
    for states in every_combination() {
        for fewer in with_one_disabled(states) {
            for (depth, stored) in [(0, 0), (0, 4), (2, 2), (2, 4), (4, 1), (4, 3), (4, 4)] {
                for owner in ["https://www.db.no/", "https://www.db.no/a"] {
                    let removed = is_removed_by_link(states, depth, stored, owner);
                    let now_removed = is_removed_by_link(fewer, depth, stored, owner);
                    assert!(
                        removed || !now_removed,
                        "{states:?} became {fewer:?}: {depth}, {stored}, {owner}"
                    );
                }
            }
        }
    }
}
