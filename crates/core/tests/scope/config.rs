//! Configurations: what is refused, what is allowed and reported.

use forager_core::scope::before_fetch::{Action, Entry, before_fetch};
use forager_core::scope::extent::Kind;
use forager_core::scope::start::{self, Target, start};
use forager_core::scope::{Profile, ScopeError, Scopes};
use forager_core::url::FetchUrl;

use crate::common::now;
use crate::{World, at_depth, collection, identity, seed, world};

#[test]
fn a_configuration_that_contradicts_itself_is_refused() {
    type Change = fn(&mut World);
    let table: [(&str, Change); 11] = [
        ("collection \"C1\" is there twice", |w| w.collections.push(collection("C1"))),
        ("profile \"daily\" is there twice", |w| w.profiles.push(Profile::new("daily", "C2"))),
        ("seed \"http://www.db.no/\" is there twice", |w| w.seeds.push(seed("http://www.db.no", &[]))),
        ("seed \"https://a.no/?sid=1\" is there twice", |w| {
            w.daily().strip_params.push("sid".into());
            w.seeds.extend(["https://a.no/?sid=1", "https://a.no/?sid=2"].map(|url| seed(url, &["daily"])));
        }),
        ("seed \"db.no\": ", |w| w.seeds.push(seed("db.no", &[]))),
        ("seed \"ftp://db.no/\": ", |w| w.seeds.push(seed("ftp://db.no/", &[]))),
        ("profile \"daily\": include: ", |w| w.daily().include.push("(".into())),
        ("profile \"daily\": exclude: ", |w| w.daily().exclude.push("(a{1000}){1000}".into())),
        ("profile \"daily\": scheme \"ftp\" cannot be crawled", |w| w.daily().schemes.push("ftp".into())),
        ("profiles \"daily\" and \"p\" of collection \"C1\" differ", |w| {
            w.add_profile("p").sort_query = true;
        }),
        ("profiles \"daily\" and \"p\" of collection \"C1\" differ", |w| {
            w.add_profile("p").strip_params.push("a".into());
        }),
    ];
    for (says, change) in table {
        let mut world = world();
        change(&mut world);
        let error: ScopeError =
            Scopes::new(&world.collections, &world.profiles, &world.seeds, world.options).unwrap_err();
        assert!(error.to_string().starts_with(says), "{says}: {error}");
    }
}

#[test]
fn names_that_refer_to_nothing_are_listed() {
    let mut world = world();
    assert!(world.scopes().dangling().is_empty());
    world.profiles.push(Profile::new("lost", "C9"));
    world.seeds.push(seed("https://vg.no/", &["daily", "gone", "daily"]));
    let listed: Vec<String> = world.scopes().dangling().iter().map(ToString::to_string).collect();
    let want = [
        "profile \"lost\" belongs to collection \"C9\", which is not configured",
        "seed \"https://vg.no/\" names profile \"gone\", which is not configured",
    ];
    assert_eq!(listed, want);
}

#[test]
fn an_entry_has_the_identity_that_its_collection_asks_for() {
    let mut world = world();
    world.daily().sort_query = true;
    world.daily().strip_params = vec!["sid".into()];
    world.profiles.push(Profile::new("plain", "C2"));
    let scopes = world.scopes();
    let url: FetchUrl = "https://db.no/?b=1&sid=2&a=3".parse().unwrap();
    let table = [
        ("C1", "https://db.no/?a=3&b=1"),
        ("C2", "https://db.no/?b=1&sid=2&a=3"),
        ("gone", "https://db.no/?b=1&sid=2&a=3"),
    ];
    for (collection, want) in table {
        assert_eq!(scopes.identity(collection, &url).as_str(), want, "{collection}");
    }
}

#[test]
fn what_a_profile_leaves_out_takes_its_default() {
    let written: Profile = serde_json::from_str(r#"{"id": "p", "collection": "C1"}"#).unwrap();
    assert_eq!(written, Profile::new("p", "C1"));
    for unknown in [
        r#"{"id": "p", "collection": "C1", "dept": 2}"#,
        r#"{"id": "p", "collection": "C1", "scope": "site"}"#,
    ] {
        assert!(serde_json::from_str::<Profile>(unknown).is_err(), "{unknown}");
    }
}

/// What the profile counts as one URL holds for the seed too: it is never out of its own scope.
#[test]
fn a_seed_is_compared_as_its_collection_counts_urls() {
    type Change = fn(&mut Profile);
    let table: [(&str, &str, Change); 4] = [
        ("stripped", "https://a.no/list?q=2", |p| p.strip_params = vec!["sid".into()]),
        ("sorted", "https://a.no/list?q=2&sid=1", |p| p.sort_query = true),
        ("stripped, and included as the seed", "https://a.no/list?q=2", |p| {
            (p.strip_params, p.include, p.scope) = (vec!["sid".into()], vec!["nothing".into()], Kind::Domain);
        }),
        ("as it is", "https://a.no/list?sid=1&q=2", |_| {}),
    ];
    for (name, counted, change) in table {
        let mut world = World { seeds: vec![seed("https://a.no/list?sid=1&q=2", &["daily"])], ..world() };
        world.daily().scope = Kind::Page;
        change(world.daily());
        let scopes = world.scopes();
        let known = identity("https://a.no/list?sid=1&q=2");
        let url = scopes.identity("C1", &known.as_str().parse().unwrap());
        assert_eq!(url.as_str(), counted, "{name}");
        let entry = Entry {
            collection: "C1",
            url: &url,
            seed: &known,
            place: at_depth(0),
            last_fetch: None,
            length: None,
            is_listing: false,
        };
        let verdict = before_fetch(&scopes, &entry, now());
        assert_eq!(verdict.action, Action::Fetch, "{name}: {verdict}");
        let started = start(&scopes, Target::Seed(&known), now()).unwrap();
        assert_eq!((started[0].url, started.len()), (&url, 1), "{name}");
        assert!(matches!(started[0].action, start::Action::Queue { .. }), "{name}");
    }
}

#[test]
fn a_seed_is_known_in_the_spelling_of_its_collection_too() {
    let mut world = World { seeds: vec![seed("https://a.no/?b=2&a=1", &["daily"])], ..world() };
    world.daily().sort_query = true;
    let scopes = world.scopes();
    let (url, known) = (identity("https://a.no/x"), identity("https://a.no/?b=2&a=1"));
    for spelling in ["https://a.no/?b=2&a=1", "https://a.no/?a=1&b=2"].map(identity) {
        let entry = Entry {
            collection: "C1",
            url: &url,
            seed: &spelling,
            place: at_depth(1),
            last_fetch: None,
            length: None,
            is_listing: false,
        };
        let verdict = before_fetch(&scopes, &entry, now());
        assert_eq!((verdict.action, verdict.seed, verdict.taken_over), (Action::Fetch, Some(&known), false));
    }
}

#[test]
fn the_order_of_stripped_parameters_does_not_count() {
    let mut world = world();
    world.daily().strip_params = vec!["a".into(), "b".into()];
    world.add_profile("p").strip_params = vec!["b".into(), "a".into(), "a".into()];
    world.scopes();
}
