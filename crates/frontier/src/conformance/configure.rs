//! Collections, profiles and seeds: added, changed, listed, removed; all of a call or nothing.

use forager_core::order::Order;
use forager_core::scope::Seed;

use super::World;
use super::world::*;
use crate::catalog::{Catalog, Change, CollectionSpec, Kind};
use crate::error::Error;
use crate::verbs::{ListFilter, Target};

/// What a catalog holds, as a few words for each thing.
fn words(catalog: &Catalog) -> Vec<String> {
    let rows = catalog.rows();
    let on = |enabled: bool| if enabled { "" } else { " off" };
    let collections = rows
        .collections
        .iter()
        .map(|row| format!("{:?} {}{}", row.spec.kind, row.spec.id, on(row.spec.enabled)));
    let profiles = rows
        .profiles
        .iter()
        .map(|profile| format!("profile {} of {}{}", profile.id, profile.collection, on(profile.enabled)));
    let seeds = rows.seeds.iter().filter(|row| !row.is_gone).map(|row| {
        format!("seed {} by {}{}", row.seed.url, row.seed.profiles.join(","), on(row.seed.enabled))
    });
    collections.chain(profiles).chain(seeds).collect()
}

async fn catalog(world: &mut World) -> Vec<String> {
    words(&world.frontier().catalog().await.unwrap())
}

pub async fn what_is_added_is_listed_in_order(mut world: World) {
    assert_eq!(catalog(&mut world).await, [""; 0]);
    let changes = [
        unplanned("z"),
        planned("a"),
        profile("p2", "a", |_| {}),
        profile("p1", "a", |profile| profile.order = Order::Risk),
        seed("https://b.example/", ["p2", "p1"]),
        seed("https://a.example/", []),
    ];
    world.configure(changes).await;
    let want = [
        "Plain z",
        "Planned a",
        "profile p2 of a",
        "profile p1 of a",
        "seed https://b.example/ by p2,p1",
        "seed https://a.example/ by ",
    ];
    assert_eq!(catalog(&mut world).await, want);
    world.reopen();
    assert_eq!(catalog(&mut world).await, want, "and after a restart");
}

pub async fn what_is_there_is_changed_enabled_and_disabled(mut world: World) {
    world.harvest("c", Order::Hierarchy, "https://a.example/").await;
    let off = |id: &str| CollectionSpec { enabled: false, ..CollectionSpec::new(id, Kind::Planned) };
    let other = Seed { profiles: vec!["c".into(), "later".into()], ..seed_value("http://A.example", []) };
    let steps = [
        (Change::SetCollection(off("c")), "Planned c off"),
        (Change::EnableCollection("c".into(), true), "Planned c"),
        (Change::EnableCollection("c".into(), false), "Planned c off"),
        (changed_profile("c", "d", |_| {}), "profile c of d"),
        (Change::EnableProfile("c".into(), false), "profile c of d off"),
        (Change::EnableProfile("c".into(), true), "profile c of d"),
        (Change::EnableSeed("https://a.example".into(), false), "seed https://a.example/ by c off"),
        (Change::EnableSeed("https://a.example/".into(), true), "seed https://a.example/ by c"),
    ];
    for (change, want) in steps {
        world.configure([change.clone()]).await;
        world.reopen();
        assert!(catalog(&mut world).await.iter().any(|line| line == want), "{change:?}: {want}");
    }
    let error = world.refuses([Change::SetSeed(other)]).await;
    assert!(matches!(error, Error::NotFound { kind: "seed", .. }), "the protocol counts: {error}");
}

pub async fn what_is_removed_is_gone(mut world: World) {
    world.harvest("c", Order::Hierarchy, "https://a.example/").await;
    world.configure([Change::RemoveSeed("https://a.example/".into())]).await;
    assert_eq!(catalog(&mut world).await, ["Planned c", "profile c of c"]);
    world.configure([Change::RemoveProfile("c".into()), Change::RemoveCollection("c".into())]).await;
    world.reopen();
    assert_eq!(catalog(&mut world).await, [""; 0]);
}

pub async fn errors_name_the_thing_at_fault(mut world: World) {
    world.harvest("c", Order::Hierarchy, "https://a.example/").await;
    let bad_pattern = profile("p", "c", |profile| profile.exclude = vec!["(".into()]);
    let other_identity = profile("p", "c", |profile| profile.sort_query = true);
    let cases: Vec<(Change, &str)> = vec![
        (planned("c"), "collection \"c\" is there already"),
        (unplanned(""), "\"\" is not a name for a collection"),
        (Change::SetCollection(CollectionSpec::new("x", Kind::Plain)), "there is no collection \"x\""),
        (Change::EnableCollection("x".into(), true), "there is no collection \"x\""),
        (Change::RemoveCollection("x".into()), "there is no collection \"x\""),
        (profile("c", "c", |_| {}), "profile \"c\" is there already"),
        (changed_profile("x", "c", |_| {}), "there is no profile \"x\""),
        (Change::EnableProfile("x".into(), true), "there is no profile \"x\""),
        (Change::RemoveProfile("x".into()), "there is no profile \"x\""),
        (seed("https://A.example:443", []), "seed \"https://A.example:443\" is there already"),
        (seed("not a url", []), "seed \"not a url\""),
        (Change::SetSeed(seed_value("https://x.example/", [])), "there is no seed \"https://x.example/\""),
        (Change::EnableSeed("https://x.example/".into(), true), "there is no seed \"https://x.example/\""),
        (Change::RemoveSeed("https://x.example/".into()), "there is no seed \"https://x.example/\""),
        (bad_pattern, "profile \"p\": exclude"),
        (other_identity, "profiles \"c\" and \"p\" of collection \"c\" differ in sort_query"),
    ];
    let before = catalog(&mut world).await;
    for (change, want) in cases {
        let error = world.refuses([change.clone()]).await.to_string();
        assert!(error.contains(want), "{change:?}: {error}");
        assert_eq!(catalog(&mut world).await, before, "{change:?}");
    }
}

pub async fn all_changes_of_a_call_are_made_or_none(mut world: World) {
    world.harvest("c", Order::Hierarchy, "https://a.example/").await;
    world.start_seed("https://a.example/").await;
    let before = (catalog(&mut world).await, world.all("c").await);
    let changes = [
        planned("d"),
        Change::EnableProfile("c".into(), false),
        Change::RemoveCollection("c".into()),
        Change::RemoveProfile("nowhere".into()),
    ];
    world.refuses(changes).await;
    world.reopen();
    assert_eq!((catalog(&mut world).await, world.all("c").await), before);
}

pub async fn changes_of_a_call_build_on_each_other(mut world: World) {
    let changes = [
        planned("c"),
        Change::EnableCollection("c".into(), false),
        Change::RemoveCollection("c".into()),
        unplanned("c"),
    ];
    world.configure(changes).await;
    assert_eq!(catalog(&mut world).await, ["Plain c"]);
}

pub async fn a_collection_that_is_removed_takes_its_entries_with_it(mut world: World) {
    world.harvest("c", Order::Hierarchy, "https://a.example/").await;
    world.configure([planned("d"), profile("d", "d", |_| {}), seed("https://b.example/", ["d"])]).await;
    world.start_seed("https://a.example/").await;
    world.start_seed("https://b.example/").await;
    let leased = world.lease(1).await;
    assert_eq!(leased[0].collection, "c");
    world.configure([Change::RemoveCollection("c".into())]).await;
    assert!(matches!(
        world.frontier().entry("c", None, "https://a.example/", world.now).await,
        Err(Error::NotFound { kind: "collection", .. }) | Ok(None)
    ));
    assert_eq!(world.list_urls(ListFilter::default()).await, ["https://b.example/"]);
    let late = world.complete(ok(leased[0].token, "x")).await;
    assert_eq!(late.outcome, crate::verbs::Outcome::Refused, "its leases are gone too");

    world.configure([planned("c")]).await;
    assert_eq!(world.stats("c").await, crate::verbs::Stats { collection: "c".into(), ..Default::default() });
    assert_eq!(world.start(Target::Collection("c".into())).await.len(), 1, "its profiles had stayed");
}

pub async fn a_seed_that_comes_back_owns_its_entries_again(mut world: World) {
    world.harvest("c", Order::Hierarchy, "https://a.example/").await;
    world.start_seed("https://a.example/").await;
    world.configure([Change::RemoveSeed("https://a.example/".into())]).await;
    world.configure([seed("https://a.example/", ["c"])]).await;
    let leased = world.lease_one().await;
    assert_eq!(leased.seed.as_deref(), Some("https://a.example/"));
    assert!(leased.rule.starts_with("7:"), "{}", leased.rule);
}

/// Its entries, and the politeness of its hosts, are of the kind that it was made with.
pub async fn a_collection_that_has_entries_keeps_its_kind(mut world: World) {
    world.harvest("c", Order::Hierarchy, "https://a.example/").await;
    world.start_seed("https://a.example/").await;
    let plain = Change::SetCollection(CollectionSpec::new("c", Kind::Plain));
    let error = world.refuses([Change::RemoveProfile("c".into()), plain]).await;
    assert!(error.to_string().contains("\"c\" has entries"), "{error}");
    assert_eq!(catalog(&mut world).await[0], "Planned c");
}

pub async fn a_plain_collection_has_no_profiles(mut world: World) {
    world.configure([unplanned("clients"), planned("c"), profile("p", "c", |_| {})]).await;
    world.configure([profile("orphan", "gone", |_| {})]).await;
    let before = catalog(&mut world).await;
    let plain = |id: &str| Change::SetCollection(CollectionSpec::new(id, Kind::Plain));
    let cases = [
        ("a new profile", vec![profile("d", "clients", |_| {})], "collection remove"),
        ("a profile of another", vec![changed_profile("p", "clients", |_| {})], "collection remove"),
        ("both at once", vec![unplanned("new"), profile("d", "new", |_| {})], "collection remove"),
        ("a collection with a profile", vec![plain("c")], "profile remove"),
        ("a collection that a profile waits for", vec![unplanned("gone")], "profile remove"),
    ];
    for (name, changes, remedy) in cases {
        let error = world.refuses(changes).await;
        assert!(matches!(error, Error::Configuration(_)), "{name}: {error}");
        assert!(error.to_string().contains(remedy), "{name}: {error}");
        assert_eq!(catalog(&mut world).await, before, "{name}");
    }
    let removed = Change::RemoveCollection("clients".into());
    world.configure([removed, planned("clients"), profile("d", "clients", |_| {}), planned("gone")]).await;
}

pub async fn a_call_without_changes_changes_nothing(mut world: World) {
    world.harvest("c", Order::Hierarchy, "https://a.example/").await;
    let before = catalog(&mut world).await;
    world.configure([]).await;
    assert_eq!(catalog(&mut world).await, before);
}
