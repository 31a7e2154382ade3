//! What becomes of an entry after its fetch.

use forager_core::scope::after_fetch::{Counters, Fate, Outcome, after_fetch};

use crate::common::{after, now};
use crate::{Queued, World, from_now, identity, queued, world};

fn in_words(fate: Fate<'_>) -> String {
    match fate {
        Fate::Stay { not_before: Some(time), rule, .. } => format!("stay {}: {rule}", from_now(time)),
        Fate::Stay { not_before: None, rule, .. } => format!("stay: {rule}"),
        Fate::Spent => "spent".to_owned(),
        Fate::Remove { rule } => format!("remove: {rule}"),
    }
}

#[test]
fn counters_follow_the_outcome() {
    let counted = |errors, not_found| Counters { errors, not_found };
    let (some, most) = (counted(4, 7), counted(u32::MAX, u32::MAX));
    let table = [
        ("success resets both", some, Outcome::Success, counted(0, 0)),
        ("not found resets errors", some, Outcome::NotFound, counted(0, 8)),
        ("a failure keeps what was not found", some, Outcome::Failure, counted(5, 7)),
        ("errors do not run over", most, Outcome::Failure, most),
        ("nor does what was not found", most, Outcome::NotFound, counted(0, u32::MAX)),
    ];
    for (name, counters, outcome, want) in table {
        assert_eq!(counters.after(outcome), want, "{name}");
        let scopes = world().scopes();
        let (after, _) = after_fetch(&scopes, &queued().entry(), counters, outcome, now());
        assert_eq!((after.counters, after.last_fetch), (want, now()), "{name}");
    }
}

#[test]
fn length_counts_down_and_the_last_fetch_ends_it() {
    let table = [
        ("unlimited", None, Outcome::Success, None, "stay +24h: 6: too early (daily: every 24h)"),
        ("two left", Some(2), Outcome::Success, Some(1), "stay +24h: 6: too early (daily: every 24h)"),
        ("the last", Some(1), Outcome::Success, Some(0), "spent"),
        ("not found counts too", Some(1), Outcome::NotFound, Some(0), "spent"),
        (
            "a failure is no harvest",
            Some(1),
            Outcome::Failure,
            Some(1),
            "stay +24h: 6: too early (daily: every 24h)",
        ),
        ("nothing left before", Some(0), Outcome::Success, Some(0), "spent"),
    ];
    for (name, length, outcome, left, fate) in table {
        for is_listing in [false, true] {
            let scopes = world().scopes();
            let entry = Queued { length, is_listing, ..queued() };
            let (after, got) = after_fetch(&scopes, &entry.entry(), Counters::default(), outcome, now());
            assert_eq!((after.length, in_words(got).as_str()), (left, fate), "{name}, a list: {is_listing}");
        }
    }
}

#[test]
fn a_fetched_entry_is_treated_as_a_link_to_itself() {
    type Change = fn(&mut World, &mut Queued);
    let table: [(&str, Change, &str); 14] = [
        ("in scope", |_, _| {}, "stay +24h: 6: too early (daily: every 24h)"),
        (
            "the fetch before does not count any more",
            |_, e| e.last_fetch = Some(after("99h")),
            "stay +24h: 6: too early (daily: every 24h)",
        ),
        (
            "no interval: the schedule alone decides",
            |w, _| w.daily().every = None,
            "stay: 7: in scope (daily: scope domain)",
        ),
        (
            "profile disabled meanwhile",
            |w, _| w.daily().enabled = false,
            "stay +24h: 6: only in scope of disabled profiles (daily)",
        ),
        ("seed disabled meanwhile", |w, _| w.seeds[0].enabled = false, "stay +24h: 3: seed disabled"),
        (
            "collection disabled meanwhile",
            |w, _| w.collections[0].enabled = false,
            "stay +24h: 4: collection disabled",
        ),
        (
            "profile gone meanwhile",
            |w, _| w.profiles.clear(),
            "remove: 5: no profile of the seed has the collection",
        ),
        ("collection gone meanwhile", |w, _| w.collections.clear(), "remove: 2: collection gone"),
        ("seed gone meanwhile", |w, _| w.seeds.clear(), "remove: 1: seed gone, no other covers the URL"),
        (
            "seed gone meanwhile, another has it",
            |w, e| {
                e.seed = identity("https://gone.no/");
                w.add_seed("https://www.db.no/b");
            },
            "stay +24h: 6: too early (daily: every 24h)",
        ),
        (
            "no longer in scope",
            |w, _| w.daily().depth = Some(0),
            "remove: 6: out of scope (daily: deeper than 0)",
        ),
        (
            "a list of pages, wherever it lies",
            |w, e| {
                w.daily().depth = Some(0);
                e.is_listing = true;
            },
            "stay +24h: 6: too early (daily: every 24h)",
        ),
        (
            "a list of pages, and no interval",
            |w, e| {
                (w.daily().depth, w.daily().every) = (Some(0), None);
                e.is_listing = true;
            },
            "stay: 7: in scope (daily: lists pages of the site)",
        ),
        (
            "a list of pages, and the profile gone",
            |w, e| {
                w.profiles.clear();
                e.is_listing = true;
            },
            "remove: 5: no profile of the seed has the collection",
        ),
    ];
    for (name, change, want) in table {
        let (mut world, mut entry) = (world(), queued());
        change(&mut world, &mut entry);
        for outcome in [Outcome::Success, Outcome::NotFound, Outcome::Failure] {
            let scopes = world.scopes();
            let (_, fate) = after_fetch(&scopes, &entry.entry(), Counters::default(), outcome, now());
            assert_eq!(in_words(fate), want, "{name} after {outcome:?}");
        }
    }
}

#[test]
fn the_seed_that_takes_over_is_named() {
    let (mut world, entry) = (world(), Queued { seed: identity("https://gone.no/"), ..queued() });
    world.add_seed("https://www.db.no/b");
    let scopes = world.scopes();
    let (_, fate) = after_fetch(&scopes, &entry.entry(), Counters::default(), Outcome::Success, now());
    let Fate::Stay { seed, .. } = fate else { panic!("{fate:?}") };
    assert_eq!(seed, &identity("https://www.db.no/"));
}
