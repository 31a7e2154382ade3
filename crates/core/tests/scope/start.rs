//! What starting a seed, a profile or a collection queues.

use forager_core::scope::Profile;
use forager_core::scope::start::{Action, StartError, Target, start};
use forager_core::time::Interval;

use crate::common::now;
use crate::{World, collection, from_now, identity, seed, world};

/// Two collections, a profile of each, one seed with both and one with the first only.
fn harvest() -> World {
    let mut world = world();
    world.collections.push(collection("C2"));
    world.profiles.push(Profile { length: Some(3), ..Profile::new("once", "C2") });
    world.seeds[0].profiles.push("once".to_owned());
    world.seeds.push(seed("https://vg.no/", &["daily"]));
    world
}

fn started(world: &World, target: Target<'_>) -> Vec<String> {
    let scopes = world.scopes();
    let started = start(&scopes, target, now()).unwrap();
    let line = |start: forager_core::scope::start::Started<'_>| {
        let action = match start.action {
            Action::Queue { due, length: Some(length) } => format!("{} times {length}", from_now(due)),
            Action::Queue { due, length: None } => from_now(due),
            Action::OutOfScope { profile, outside } => format!("out of scope ({profile}: {outside})"),
            Action::CollectionGone => "collection gone".to_owned(),
        };
        format!("{} {} {action}", start.collection, start.seed.host())
    };
    started.into_iter().map(line).collect()
}

#[test]
fn a_start_queues_each_seed_once_in_each_collection_that_is_meant() {
    let db = identity("https://www.db.no/");
    let spelled_otherwise = identity("http://www.db.no:80");
    let table: [(&str, Target<'_>, &[&str]); 6] = [
        (
            "a seed: the collections of all its profiles",
            Target::Seed(&db),
            &["C1 www.db.no now", "C2 www.db.no now times 3"],
        ),
        (
            "a seed under another spelling",
            Target::Seed(&spelled_otherwise),
            &["C1 www.db.no now", "C2 www.db.no now times 3"],
        ),
        (
            "a profile: all its seeds, in its collection",
            Target::Profile("daily"),
            &["C1 vg.no now", "C1 www.db.no now"],
        ),
        ("a profile of one seed", Target::Profile("once"), &["C2 www.db.no now times 3"]),
        (
            "a collection: all profiles that have it",
            Target::Collection("C1"),
            &["C1 vg.no now", "C1 www.db.no now"],
        ),
        ("the other collection", Target::Collection("C2"), &["C2 www.db.no now times 3"]),
    ];
    for (name, target, want) in table {
        assert_eq!(started(&harvest(), target), want, "{name}");
    }
}

#[test]
fn what_is_disabled_is_queued_for_later_and_what_is_gone_is_not() {
    type Change = fn(&mut World);
    let table: [(&str, Change, &[&str]); 11] = [
        ("seed disabled", |w| w.seeds[0].enabled = false, &["C1 www.db.no +24h", "C2 www.db.no +1h times 3"]),
        (
            "profile disabled",
            |w| w.daily().enabled = false,
            &["C1 www.db.no +24h", "C2 www.db.no now times 3"],
        ),
        (
            "collection disabled",
            |w| w.collections[0].enabled = false,
            &["C1 www.db.no +24h", "C2 www.db.no now times 3"],
        ),
        (
            "collection gone",
            |w| drop(w.collections.remove(0)),
            &["C1 www.db.no collection gone", "C2 www.db.no now times 3"],
        ),
        ("profile gone", |w| drop(w.profiles.remove(0)), &["C2 www.db.no now times 3"]),
        ("no profiles at all", |w| w.profiles.clear(), &[]),
        (
            "excluded by its own profile",
            |w| w.daily().exclude.push("db".into()),
            &["C1 www.db.no out of scope (daily: excluded by db)", "C2 www.db.no now times 3"],
        ),
        (
            "a depth of none but the seed",
            |w| w.daily().depth = Some(0),
            &["C1 www.db.no now", "C2 www.db.no now times 3"],
        ),
        (
            "two profiles of one collection queue it once",
            |w| {
                w.add_profile("more");
            },
            &["C1 www.db.no now", "C2 www.db.no now times 3"],
        ),
        (
            "one of them disabled",
            |w| {
                w.daily().enabled = false;
                w.add_profile("more").length = Some(9);
            },
            &["C1 www.db.no now", "C2 www.db.no now times 3"],
        ),
        (
            "later is the shortest interval of both",
            |w| {
                w.add_profile("more").every = Some(Interval::hours(2));
                w.seeds[0].enabled = false;
            },
            &["C1 www.db.no +2h", "C2 www.db.no +1h times 3"],
        ),
    ];
    let db = identity("https://www.db.no/");
    for (name, change, want) in table {
        let mut world = harvest();
        change(&mut world);
        assert_eq!(started(&world, Target::Seed(&db)), want, "{name}");
    }
}

#[test]
fn a_profile_is_started_in_its_own_context_alone() {
    let mut world = harvest();
    let disabled = world.add_profile("weekly");
    (disabled.enabled, disabled.every, disabled.length) = (false, Some(Interval::hours(168)), Some(1));
    assert_eq!(started(&world, Target::Profile("weekly")), ["C1 www.db.no +168h times 1"]);
    assert_eq!(started(&world, Target::Collection("C1")), ["C1 vg.no now", "C1 www.db.no now"]);
}

#[test]
fn what_is_not_configured_cannot_be_started() {
    let scopes = harvest().scopes();
    let gone = identity("https://gone.no/");
    let table = [
        (Target::Seed(&gone), StartError::Seed("https://gone.no/".to_owned())),
        (Target::Profile("gone"), StartError::Profile("gone".to_owned())),
        (Target::Collection("gone"), StartError::Collection("gone".to_owned())),
    ];
    for (target, want) in table {
        assert_eq!(start(&scopes, target, now()), Err(want));
    }
}
