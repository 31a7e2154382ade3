//! Rules 1 to 7, in their order.

use forager_core::scope::Place;
use forager_core::scope::before_fetch::{Action, Verdict, before_fetch};
use forager_core::scope::extent::Kind;
use forager_core::time::Interval;

use crate::common::{after, ago, now};
use crate::{Queued, World, from_now, identity, queued, world};

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

/// What stops an entry, in the order of the rules: what has to happen, and what then becomes of it.
const STOPS: [(Change, &str); 8] = [
    (|w, _| w.seeds.clear(), "remove: 1: seed gone, no other covers the URL"),
    (|w, _| w.collections.clear(), "remove: 2: collection gone"),
    (|w, _| w.seeds.iter_mut().for_each(|seed| seed.enabled = false), "back +24h: 3: seed disabled"),
    (
        |w, _| w.collections.iter_mut().for_each(|one| one.enabled = false),
        "back +24h: 4: collection disabled",
    ),
    (|w, _| w.profiles.clear(), "remove: 5: no profile of the seed has the collection"),
    (|_, e| e.place.depth = 3, "remove: 6: out of scope (daily: deeper than 2)"),
    (
        |w, _| w.profiles.iter_mut().for_each(|profile| profile.enabled = false),
        "back +24h: 6: only in scope of disabled profiles (daily)",
    ),
    (|_, e| e.last_fetch = Some(ago("2h")), "back +22h: 6: too early (daily: every 24h)"),
];

#[test]
fn an_entry_passes_seven_rules() {
    check(&[("nothing against it", |_, _| {}, "fetch: 7: in scope (daily: scope domain)")]);
    check(&[("never fetched", |_, e| e.last_fetch = None, "fetch: 7: in scope (daily: scope domain)")]);
    for (change, want) in STOPS {
        check(&[("one thing against it", change, want)]);
    }
    check(&[
        ("5: no profiles", |w, _| w.seeds[0].profiles.clear(), STOPS[4].1),
        ("5: only profiles of another collection", |w, _| w.daily().collection = "C2".into(), STOPS[4].1),
    ]);
}

#[test]
fn of_several_rules_against_an_entry_the_first_decides() {
    for among in 1..1_u32 << STOPS.len() {
        let (mut world, mut entry) = (world(), queued());
        let mut against =
            STOPS.iter().enumerate().filter(|(index, _)| among >> index & 1 == 1).map(|(_, stop)| stop);
        against.clone().for_each(|(change, _)| change(&mut world, &mut entry));
        let scopes = world.scopes();
        let verdict = before_fetch(&scopes, &entry.entry(), now());
        // How much later depends on which profiles are left; the rule does not.
        let (_, first) = against.next().unwrap();
        let (_, rule) = first.split_once(": ").unwrap();
        assert_eq!(verdict.rule.to_string(), rule, "{among:#b}");
        assert_eq!(verdict.action == Action::Remove, first.starts_with("remove"), "{among:#b}");
    }
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
            |_, e| e.last_fetch = Some(after("1h")),
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

#[test]
fn a_list_of_pages_is_in_scope_wherever_it_lies() {
    // What scope has against a page. The rest counts for a list too.
    let far_off: Change = |w, e| {
        w.daily().exclude = vec!["pages.xml".into()];
        (e.url, e.place) = (identity("https://cdn.no/pages.xml"), Place { depth: 9, hops_off_domain: 9 });
    };
    for (index, (change, want)) in STOPS.into_iter().enumerate() {
        let is_out_of_scope = index == 5;
        let (mut world, mut entry) = (world(), queued());
        far_off(&mut world, &mut entry);
        entry.is_listing = true;
        change(&mut world, &mut entry);
        let scopes = world.scopes();
        let want = if is_out_of_scope { "fetch: 7: in scope (daily: lists pages of the site)" } else { want };
        assert_eq!(in_words(before_fetch(&scopes, &entry.entry(), now())), want, "{want}");
        entry.is_listing = false;
        let is_page_fetched = before_fetch(&scopes, &entry.entry(), now()).action == Action::Fetch;
        assert!(!is_page_fetched, "a page is not in scope there: {want}");
    }
}

#[test]
fn any_seed_may_take_over_a_list_of_pages() {
    check(&[(
        "on another domain",
        |_, e| {
            (e.seed, e.is_listing) = (identity("https://gone.no/"), true);
            e.url = identity("https://cdn.no/pages.xml");
        },
        "fetch for https://www.db.no/: 7: in scope (daily: lists pages of the site)",
    )]);
}
