//! What clients say of URLs of collections with profiles, which decide.

use forager_core::order::Order;

use super::World;
use super::clients::put;
use super::world::*;
use crate::entry::State;
use crate::host::Setting;
use crate::moment::Moment;
use crate::verbs::{Action, Action::*, HostChange, HostFilter, Item, Word};

const HOME: &str = "https://x.example/";
const PAGE: &str = "https://x.example/a";

/// A collection `c` whose seed is queued.
async fn planned(mut world: World) -> World {
    world.harvest("c", Order::Hierarchy, HOME).await;
    world.start_seed(HOME).await;
    world
}

fn said(url: &str, word: Word) -> Item {
    Item { url: url.into(), word, ..Item::default() }
}

pub async fn profiles_decide_where_there_are_any(world: World) {
    let mut world = world;
    world.harvest("c", Order::Hierarchy, "https://x.example/").await;
    world.start_seed("https://x.example/").await;
    let found = |url: &str, source: Option<&str>| Item {
        url: url.into(),
        source: source.map(str::to_owned),
        metadata: Some("{}".into()),
        ..Item::default()
    };
    let items = [
        found("https://x.example/a", None),
        found("HTTPS://X.example/a#b", None),
        found("https://elsewhere.example/", None),
        found("mailto:x", None),
        found("https://x.example/b", Some("https://x.example/a")),
    ];
    assert_eq!(put(&mut world, "c", &items).await, [Added, Kept, Ignored, Invalid, Added]);
    assert_eq!(world.the_entry("c", "https://x.example/a").await.depth, 1);
    assert_eq!(world.the_entry("c", "https://x.example/b").await.depth, 2);
    let leased = world.lease_one().await;
    assert_eq!(leased.url, "https://x.example/");
    let fetched =
        |url: &str| Item { url: url.into(), word: Word::Done, status: Some(200), ..Item::default() };
    let said = [fetched("https://x.example/"), fetched("https://x.example/a")];
    assert_eq!(put(&mut world, "c", &said).await, [Improved, Kept], "only what was handed out was fetched");
    assert_eq!(world.the_entry("c", "https://x.example/").await.last_fetch, Some(world.moment()));
}

pub async fn what_nobody_was_to_fetch_is_not_reported(world: World) {
    let mut world = planned(world).await;
    let later = Word::Due(world.later("1h"));
    // What is said of a URL that is not there, what becomes of it, and of the entry.
    let cases: [(&str, Word, Action, Option<State>); 3] = [
        ("https://x.example/done", Word::Done, Kept, None),
        ("https://x.example/later", later, Added, Some(State::Queued)),
        ("https://elsewhere.example/", later, Ignored, None),
    ];
    for (url, word, action, state) in cases {
        assert_eq!(put(&mut world, "c", &[said(url, word)]).await, [action], "{url}");
        world.reopen();
        let entry = world.frontier().entry("c", None, url, world.now).await.unwrap();
        assert_eq!(entry.map(|entry| entry.state), state, "{url}");
    }
    assert_eq!(put(&mut world, "c", &[said(HOME, Word::Done)]).await, [Kept], "it is there, and not leased");
}

pub async fn what_failed_is_no_success(world: World) {
    let mut world = planned(world).await;
    // What the client says, and what is in the history.
    let cases = [
        (None, false, "200"),
        (Some(404), false, "404"),
        (None, true, "network"),
        (Some(200), true, "network"),
    ];
    for (status, failed, result) in cases {
        world.pass("400 days");
        assert_eq!(world.lease_one().await.url, HOME, "{result}");
        let report = Item { status, failed, ..said(HOME, Word::Due(Moment::ZERO)) };
        assert_eq!(put(&mut world, "c", &[report]).await, [Improved], "{result}");
        world.reopen();
        let history = world.the_entry("c", HOME).await.record.history;
        assert_eq!(history.last().map(|visit| visit.result.as_str()), Some(result));
    }
}

pub async fn what_comes_with_a_report_takes_the_place_of_what_there_was(world: World) {
    let mut world = planned(world).await;
    for after in [Some("one"), Some("two"), None] {
        world.pass("400 days");
        world.lease_one().await;
        let report = Item { metadata: after.map(str::to_owned), ..said(HOME, Word::Done) };
        assert_eq!(put(&mut world, "c", &[report]).await, [Improved]);
        world.reopen();
        assert_eq!(world.the_entry("c", HOME).await.record.origin.metadata.as_deref(), after);
    }
}

pub async fn a_delay_holds_for_the_last_hand_out_of_a_shared_host(world: World) {
    let mut world = planned(world).await;
    put(&mut world, "c", &[said(PAGE, Word::Found)]).await;
    world.lease_one().await;
    let set = |delay| HostChange {
        key: "x.example".into(),
        collection: None,
        sets: vec![Setting::Delay(delay)],
        only_known: true,
    };
    let opens = async |world: &mut World, delay| {
        world.frontier().set_hosts(&[set(delay)], world.now).await.unwrap();
        world.reopen();
        world.host("x.example").await.learned.next_allowed
    };
    let in_an_hour = world.later("1h");
    assert_eq!(opens(&mut world, Some(interval("1h"))).await, in_an_hour);
    assert_eq!(opens(&mut world, Some(interval("1s"))).await, in_an_hour, "nobody hurries a shared host");
    assert_eq!(opens(&mut world, None).await, in_an_hour);
}

pub async fn what_is_under_way_is_counted_for_its_collection(world: World) {
    let mut world = planned(world).await;
    world.harvest("d", Order::Hierarchy, "https://x.example/d").await;
    world.start_seed("https://x.example/d").await;
    let leased = world.lease_one().await;
    let other = if leased.collection == "c" { "d" } else { "c" };
    for (collection, want) in [(leased.collection.as_str(), (0, 1)), (other, (1, 0))] {
        let filter = HostFilter { collection: Some(collection.into()), limit: 9, ..HostFilter::default() };
        let view = world.frontier().hosts(&filter, world.now).await.unwrap().remove(0);
        assert_eq!((view.queued, view.leased), want, "{collection}");
        assert_eq!(view.in_flight, 1, "of its host");
    }
}
