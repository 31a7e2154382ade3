//! Seeds are put into the queue as if links to them had been found.

use forager_core::order::Order;
use forager_core::scope::Profile;

use super::World;
use super::world::*;
use crate::catalog::Change;
use crate::entry::{How, State};
use crate::error::Error;
use crate::verbs::{Action::*, Started, Target};

const HOME: &str = "https://a.example/";

fn told(started: &[Started]) -> Vec<(&str, &str)> {
    started.iter().map(|started| (started.collection.as_str(), started.url.as_str())).collect()
}

pub async fn a_seed_starts_at_depth_0_and_is_due_now(mut world: World) {
    world.harvest("c", Order::Hierarchy, HOME).await;
    let started = world.start_seed("https://A.example").await;
    assert_eq!(told(&started), [("c", HOME)]);
    assert_eq!((started[0].action, started[0].due), (Added, Some(world.moment())));
    let entry = world.the_entry("c", HOME).await;
    assert_eq!((entry.depth, entry.due, entry.state), (0, world.moment(), State::Queued));
    assert_eq!((entry.seed.as_deref(), entry.record.origin.how), (Some(HOME), How::Seed));
    world.reopen();
    assert_eq!(world.the_entry("c", HOME).await, entry);
}

/// Two collections, three profiles, two seeds.
async fn several(world: &mut World) {
    world
        .configure([
            planned("c"),
            planned("d"),
            profile("c1", "c", |_| {}),
            profile("c2", "c", |_| {}),
            profile("d1", "d", |_| {}),
            seed(HOME, ["c1", "c2", "d1"]),
            seed("https://b.example/", ["c2"]),
        ])
        .await;
}

pub async fn a_target_names_what_is_started_where(world: World) {
    let (a, b) = (HOME, "https://b.example/");
    let cases: [(Target, Vec<(&str, &str)>); 6] = [
        (Target::Seed(a.into()), vec![("c", a), ("d", a)]),
        (Target::Seed(b.into()), vec![("c", b)]),
        (Target::Profile("c1".into()), vec![("c", a)]),
        (Target::Profile("c2".into()), vec![("c", a), ("c", b)]),
        (Target::Collection("c".into()), vec![("c", a), ("c", b)]),
        (Target::Collection("d".into()), vec![("d", a)]),
    ];
    for (target, want) in cases {
        let mut world = world.another();
        several(&mut world).await;
        let started = world.start(target.clone()).await;
        let mut told = told(&started);
        told.sort_unstable();
        assert_eq!(told, want, "{target:?}");
        assert!(started.iter().all(|started| started.action == Added), "{target:?}");
    }
}

pub async fn what_is_not_configured_cannot_be_started(mut world: World) {
    several(&mut world).await;
    let cases = [
        (Target::Seed("https://x.example/".into()), "there is no seed \"https://x.example/\""),
        (Target::Profile("x".into()), "there is no profile \"x\""),
        (Target::Collection("x".into()), "there is no collection \"x\""),
    ];
    for (target, want) in cases {
        // What stands before it in the call is not done either.
        let error =
            world.frontier().start(&[Target::Seed(HOME.into()), target], world.now).await.unwrap_err();
        assert_eq!(error.to_string(), want);
        assert_eq!(world.all("c").await, []);
    }
    let error = world.frontier().start(&[Target::Seed("::".into())], world.now).await.unwrap_err();
    assert!(matches!(error, Error::Configuration(_)), "{error}");
}

pub async fn starting_again_sets_depth_0_and_due_now_and_keeps_history(mut world: World) {
    let inside = "https://a.example/inside";
    world.configure([planned("c"), profile("p", "c", |_| {}), seed(HOME, ["p"]), seed(inside, ["p"])]).await;
    world.start_seed(HOME).await;
    world.find("c", HOME, [inside]).await;
    for leased in world.lease(9).await {
        world.complete(ok(leased.token, "x")).await;
    }
    world.pass("10m");
    let before = world.the_entry("c", inside).await;
    assert!(before.due > world.moment() && before.depth == 1);
    let started = world.start_seed(inside).await;
    assert_eq!((started[0].action, started[0].due), (Improved, Some(world.moment())));
    let after = world.the_entry("c", inside).await;
    assert_eq!((after.depth, after.due, after.seed.as_deref()), (0, world.moment(), Some(inside)));
    assert_eq!((after.record.history, after.record.scans), (before.record.history, 1));
    assert_eq!(after.record.origin, before.record.origin);
}

pub async fn a_disabled_seed_is_started_for_later(world: World) {
    for disable in [
        Change::EnableSeed(HOME.into(), false),
        Change::EnableProfile("c".into(), false),
        Change::EnableCollection("c".into(), false),
    ] {
        let mut world = world.another();
        world.harvest("c", Order::Hierarchy, HOME).await;
        let slow = changed_profile("c", "c", |profile| profile.every = Some(interval("3h")));
        world.configure([slow, disable.clone()]).await;
        let started = world.start_seed(HOME).await;
        assert_eq!(started[0].due, Some(world.later("3h")), "{disable:?}");
        assert_eq!(world.the_entry("c", HOME).await.due, world.later("3h"), "{disable:?}");
        assert_eq!(world.lease(1).await, [], "{disable:?}");
    }
}

pub async fn a_seed_out_of_its_own_scope_is_not_queued(mut world: World) {
    let strict = |profile: &mut Profile| profile.schemes = vec!["http".into()];
    world.configure([planned("c"), profile("p", "c", strict), seed(HOME, ["p"])]).await;
    let started = world.start_seed(HOME).await;
    assert_eq!((started[0].action, started[0].due), (Ignored, None));
    assert!(started[0].rule.contains("scheme"), "{}", started[0].rule);
    assert_eq!(world.all("c").await, []);
}

pub async fn a_collection_that_is_gone_takes_no_seeds(mut world: World) {
    world.harvest("c", Order::Hierarchy, HOME).await;
    world.configure([Change::RemoveCollection("c".into())]).await;
    let started = world.start_seed(HOME).await;
    assert_eq!((started[0].action, &*started[0].rule), (Ignored, "collection gone"));
}

pub async fn a_new_harvest_fetches_again_what_an_earlier_one_is_through_with(mut world: World) {
    let once = |profile: &mut Profile| profile.length = Some(1);
    world.configure([planned("c"), profile("p", "c", once), seed(HOME, ["p"])]).await;
    world.start_seed(HOME).await;
    world.find("c", HOME, ["https://a.example/x"]).await;
    for leased in world.lease(9).await {
        world.complete(ok(leased.token, "x")).await;
    }
    assert_eq!(world.stats("c").await.done, 2);
    world.pass("1h");
    assert_eq!(world.start_seed(HOME).await[0].action, Added);
    assert_eq!(world.stats("c").await.done, 1, "what it links to comes back when it is found again");
    assert_eq!(world.find("c", HOME, ["https://a.example/x"]).await, [Added]);
    let again = world.the_entry("c", "https://a.example/x").await;
    assert_eq!((again.state, again.due, again.record.history.len()), (State::Queued, world.moment(), 1));
    assert_eq!(world.lease(9).await.len(), 2);
    world.counts_equal_a_scan("c").await;
}

pub async fn starting_what_a_worker_has_leaves_its_lease_and_its_owner(mut world: World) {
    let inside = "https://a.example/inside";
    world.configure([planned("c"), profile("p", "c", |_| {}), seed(HOME, ["p"]), seed(inside, ["p"])]).await;
    world.find_for("c", HOME, [inside]).await;
    let leased = world.lease_one().await;
    world.start_seed(inside).await;
    let entry = world.the_entry("c", inside).await;
    assert_eq!((entry.state, entry.leased_until), (State::Leased, Some(leased.until)));
    assert_eq!(entry.seed.as_deref(), Some(HOME), "a leased entry never changes its owner");
    assert_ne!(world.complete(ok(leased.token, "x")).await.outcome, crate::verbs::Outcome::Refused);
}
