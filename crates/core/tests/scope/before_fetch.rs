//! Rules 1 to 7, in their order.

use forager_core::duration::Interval;
use forager_core::scope::Place;
use forager_core::scope::before_fetch::{Action, Verdict, before_fetch};
use forager_core::scope::extent::Kind;

use crate::common::{ago, now};
use crate::{Queued, World, at_depth, collection, from_now, identity, queued, world};

/// A verdict in words, so that a table reads as the rules do.
fn in_words(verdict: Verdict<'_>) -> String {
    let action = match verdict.action {
        Action::Fetch => "fetch".to_owned(),
        Action::Postpone { due } => format!("back {}", from_now(due)),
        Action::Remove => "remove".to_owned(),
    };
    let heir = verdict.seed.filter(|_| verdict.taken_over).map(|seed| format!(" for {seed}"));
    format!("{action}{}: {}", heir.unwrap_or_default(), verdict.rule)
}

type Change = fn(&mut World, &mut Queued);

fn check(table: &[(&str, Change, &str)]) {
    for (name, change, want) in table {
        let (mut world, mut entry) = (world(), queued());
        change(&mut world, &mut entry);
        let scopes = world.scopes();
        assert_eq!(in_words(before_fetch(&scopes, &entry.entry(), now())), *want, "{name}");
    }
}

/// Deletes the seed of the entry.
fn without_its_seed(world: &mut World, entry: &mut Queued) {
    entry.seed = identity("https://deleted.no/");
    world.seeds.clear();
}

#[test]
fn an_entry_passes_seven_rules_in_their_order() {
    check(&[
        ("nothing against it", |_, _| {}, "fetch: 7: in scope (daily: scope domain)"),
        ("never fetched", |_, e| e.last_fetch = None, "fetch: 7: in scope (daily: scope domain)"),
        ("1: seed gone", |w, _| w.seeds.clear(), "remove: 1: seed gone, no other covers the URL"),
        (
            "1 before 2",
            |w, _| {
                w.seeds.clear();
                w.collections.clear();
            },
            "remove: 1: seed gone, no other covers the URL",
        ),
        ("2: collection gone", |w, _| w.collections.clear(), "remove: 2: collection gone"),
        (
            "2 before 3",
            |w, _| {
                w.collections.clear();
                w.seeds[0].enabled = false;
            },
            "remove: 2: collection gone",
        ),
        ("3: seed disabled", |w, _| w.seeds[0].enabled = false, "back +24h: 3: seed disabled"),
        (
            "3 before 4",
            |w, _| {
                w.seeds[0].enabled = false;
                w.collections[0].enabled = false;
            },
            "back +24h: 3: seed disabled",
        ),
        (
            "3 before 5",
            |w, _| {
                w.seeds[0].enabled = false;
                w.seeds[0].profiles.clear();
            },
            "back +1h: 3: seed disabled",
        ),
        (
            "3 before 6",
            |w, e| {
                w.seeds[0].enabled = false;
                e.place.depth = 9;
            },
            "back +24h: 3: seed disabled",
        ),
        (
            "4: collection disabled",
            |w, _| w.collections[0].enabled = false,
            "back +24h: 4: collection disabled",
        ),
        (
            "4 before 5",
            |w, _| {
                w.collections[0].enabled = false;
                w.profiles.clear();
            },
            "back +1h: 4: collection disabled",
        ),
        (
            "4 before 6",
            |w, e| {
                w.collections[0].enabled = false;
                e.place.depth = 9;
            },
            "back +24h: 4: collection disabled",
        ),
        (
            "5: no profiles",
            |w, _| w.seeds[0].profiles.clear(),
            "remove: 5: no profile of the seed has the collection",
        ),
        (
            "5: profile gone",
            |w, _| w.profiles.clear(),
            "remove: 5: no profile of the seed has the collection",
        ),
        (
            "5: profile of another collection",
            |w, _| {
                w.collections.push(collection("C2"));
                w.daily().collection = "C2".into();
            },
            "remove: 5: no profile of the seed has the collection",
        ),
        ("6: too deep", |_, e| e.place.depth = 3, "remove: 6: out of scope (daily: deeper than 2)"),
        (
            "6: too deep, profile disabled",
            |w, e| {
                w.daily().enabled = false;
                e.place.depth = 3;
            },
            "remove: 6: out of scope (daily: deeper than 2)",
        ),
        (
            "6: profile disabled",
            |w, _| w.daily().enabled = false,
            "back +24h: 6: only in scope of disabled profiles (daily)",
        ),
        ("6: too early", |_, e| e.last_fetch = Some(ago("2h")), "back +22h: 6: too early (daily: every 24h)"),
    ]);
}

#[test]
fn scope_is_asked_of_all_profiles_of_the_collection() {
    check(&[
        (
            "in scope of the second only",
            |w, e| {
                w.add_profile("deep");
                e.place.depth = 9;
            },
            "fetch: 7: in scope (deep: scope domain)",
        ),
        (
            "the reason of the first, where none has it",
            |w, e| {
                w.add_profile("page").scope = Kind::Page;
                e.place.depth = 9;
            },
            "remove: 6: out of scope (daily: deeper than 2)",
        ),
        (
            "in scope of one that is disabled, out of the active one",
            |w, e| {
                w.add_profile("deep").enabled = false;
                e.place.depth = 9;
            },
            "back +24h: 6: only in scope of disabled profiles (deep)",
        ),
        (
            "one disabled, one active",
            |w, _| {
                w.daily().enabled = false;
                w.add_profile("deep");
            },
            "fetch: 7: in scope (deep: scope domain)",
        ),
        (
            "a profile of another collection does not help",
            |w, e| {
                w.add_profile("deep").collection = "C2".into();
                e.place.depth = 9;
            },
            "remove: 6: out of scope (daily: deeper than 2)",
        ),
        (
            "one link off the domain, where that is allowed",
            |w, e| {
                w.daily().hops_off_domain = 1;
                e.url = identity("https://cnn.com/x");
                e.place = Place { depth: 1, hops_off_domain: 1 };
            },
            "fetch: 7: in scope (daily: 1 hops off the domain)",
        ),
    ]);
}

#[test]
fn too_early_is_before_the_shortest_interval_of_an_active_profile() {
    let hours = Interval::hours;
    assert_eq!(hours(24), "24h".parse().unwrap());
    check(&[
        ("exactly then", |_, e| e.last_fetch = Some(ago("24h")), "fetch: 7: in scope (daily: scope domain)"),
        (
            "1 ns before",
            |_, e| e.last_fetch = Some(ago("23h 59m 59s 999ms 999us 999ns")),
            "back +1ns: 6: too early (daily: every 24h)",
        ),
        ("fetched just now", |_, e| e.last_fetch = Some(now()), "back +24h: 6: too early (daily: every 24h)"),
        (
            "fetched in the future",
            |_, e| e.last_fetch = Some(ago("-1h")),
            "back +25h: 6: too early (daily: every 24h)",
        ),
        (
            "no interval",
            |w, e| {
                w.daily().every = None;
                e.last_fetch = Some(now());
            },
            "fetch: 7: in scope (daily: scope domain)",
        ),
        (
            "the shorter of two",
            |w, e| {
                w.add_profile("often").every = Some(Interval::hours(6));
                e.last_fetch = Some(ago("2h"));
            },
            "back +4h: 6: too early (often: every 6h)",
        ),
        (
            "a disabled one does not count",
            |w, e| {
                let often = w.add_profile("often");
                often.every = Some(Interval::hours(1));
                often.enabled = false;
                e.last_fetch = Some(ago("2h"));
            },
            "back +22h: 6: too early (daily: every 24h)",
        ),
        (
            "one that does not have the URL in scope does not count",
            |w, e| {
                let often = w.add_profile("often");
                often.every = Some(Interval::hours(1));
                often.depth = Some(0);
                e.last_fetch = Some(ago("2h"));
            },
            "back +22h: 6: too early (daily: every 24h)",
        ),
        (
            "one of another collection does not count",
            |w, e| {
                let often = w.add_profile("often");
                often.every = Some(Interval::hours(1));
                often.collection = "C2".into();
                e.last_fetch = Some(ago("2h"));
            },
            "back +22h: 6: too early (daily: every 24h)",
        ),
    ]);
}

#[test]
fn later_is_the_shortest_interval_and_at_least_an_hour() {
    check(&[
        (
            "no interval: an hour",
            |w, _| {
                w.daily().every = None;
                w.daily().enabled = false;
            },
            "back +1h: 6: only in scope of disabled profiles (daily)",
        ),
        (
            "shorter than an hour: an hour",
            |w, _| {
                w.daily().every = Some("10m".parse().unwrap());
                w.daily().enabled = false;
            },
            "back +1h: 6: only in scope of disabled profiles (daily)",
        ),
        (
            "the shortest of several, disabled ones too",
            |w, _| {
                let often = w.add_profile("often");
                often.every = Some(Interval::hours(6));
                often.enabled = false;
                w.collections[0].enabled = false;
            },
            "back +6h: 4: collection disabled",
        ),
        (
            "the least is a setting",
            |w, _| {
                w.options.postpone_at_least = Interval::hours(30);
                w.seeds[0].enabled = false;
            },
            "back +30h: 3: seed disabled",
        ),
        (
            "a shorter least lets the interval rule",
            |w, _| {
                w.options.postpone_at_least = Interval::default();
                w.daily().every = Some("10m".parse().unwrap());
                w.seeds[0].enabled = false;
            },
            "back +10m: 3: seed disabled",
        ),
    ]);
}

#[test]
fn the_best_other_seed_takes_over_from_one_that_is_gone() {
    check(&[
        (
            "on the same domain",
            |w, e| {
                without_its_seed(w, e);
                w.add_seed("https://www.db.no/b");
            },
            "fetch for https://www.db.no/b: 7: in scope (daily: scope domain)",
        ),
        (
            "not one whose scope lacks the URL",
            |w, e| {
                without_its_seed(w, e);
                w.add_seed("https://www.vg.no/");
            },
            "remove: 1: seed gone, no other covers the URL",
        ),
        (
            "not one that would find it too deep",
            |w, e| {
                without_its_seed(w, e);
                w.add_seed("https://www.db.no/b");
                e.place = at_depth(3);
            },
            "remove: 1: seed gone, no other covers the URL",
        ),
        (
            "not one of another collection",
            |w, e| {
                without_its_seed(w, e);
                w.add_seed("https://www.db.no/b");
                w.daily().collection = "C2".into();
            },
            "remove: 1: seed gone, no other covers the URL",
        ),
        (
            "one that equals the URL before a prefix of it",
            |w, e| {
                without_its_seed(w, e);
                w.add_seed("https://www.db.no/");
                w.add_seed("http://www.db.no/a/");
            },
            "fetch for http://www.db.no/a/: 7: in scope (daily: scope domain)",
        ),
        (
            "the longest prefix",
            |w, e| {
                without_its_seed(w, e);
                for seed in [
                    "https://www.db.no/a",
                    "https://www.db.no/a/b",
                    "https://www.db.no/",
                    "https://www.db.no/a/b/cc",
                ] {
                    w.add_seed(seed);
                }
                e.url = identity("https://www.db.no/a/b/c");
            },
            "fetch for https://www.db.no/a/b: 7: in scope (daily: scope domain)",
        ),
        (
            "an active one before a disabled one, if neither is a prefix",
            |w, e| {
                without_its_seed(w, e);
                w.add_seed("https://www.db.no/b").enabled = false;
                w.add_seed("https://www.db.no/c");
            },
            "fetch for https://www.db.no/c: 7: in scope (daily: scope domain)",
        ),
        (
            "a disabled one rather than none: rule 3 puts the entry back",
            |w, e| {
                without_its_seed(w, e);
                w.add_seed("https://www.db.no/b").enabled = false;
            },
            "back +24h for https://www.db.no/b: 3: seed disabled",
        ),
        (
            "one with a disabled profile rather than none",
            |w, e| {
                without_its_seed(w, e);
                w.add_seed("https://www.db.no/b");
                w.daily().enabled = false;
            },
            "back +24h for https://www.db.no/b: 6: only in scope of disabled profiles (daily)",
        ),
        (
            "the most frequent one, if nothing else tells them apart",
            |w, e| {
                let often = w.add_profile("often");
                often.every = Some(Interval::hours(1));
                without_its_seed(w, e);
                w.add_seed("https://www.db.no/b");
                w.add_seed("https://www.db.no/c").profiles = vec!["often".into()];
            },
            "fetch for https://www.db.no/c: 7: in scope (often: scope domain)",
        ),
        (
            "the first in order, if nothing tells them apart",
            |w, e| {
                without_its_seed(w, e);
                w.add_seed("https://www.db.no/c");
                w.add_seed("https://www.db.no/b");
            },
            "fetch for https://www.db.no/b: 7: in scope (daily: scope domain)",
        ),
        (
            "even so the collection must be there",
            |w, e| {
                without_its_seed(w, e);
                w.add_seed("https://www.db.no/b");
                w.collections.clear();
            },
            "remove for https://www.db.no/b: 2: collection gone",
        ),
    ]);
}

#[test]
fn a_seed_is_known_under_each_spelling_of_its_address() {
    for spelling in
        ["https://www.db.no", "http://www.db.no/", "http://WWW.DB.NO:80/#a", "https://me@www.db.no:443"]
    {
        let entry = Queued { seed: identity(spelling), ..queued() };
        let scopes = world().scopes();
        let verdict = before_fetch(&scopes, &entry.entry(), now());
        assert_eq!(verdict.action, Action::Fetch, "{spelling}");
        assert!(!verdict.taken_over, "{spelling}");
    }
    for other in ["https://db.no/", "https://www.db.no/?", "https://www.db.no:8443/", "https://www.db.no//"] {
        let entry = Queued { seed: identity(other), ..queued() };
        let scopes = world().scopes();
        assert!(before_fetch(&scopes, &entry.entry(), now()).taken_over, "{other} is another seed");
    }
}
