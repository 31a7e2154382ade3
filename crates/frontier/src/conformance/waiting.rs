//! When nothing can be handed out: why, and until when exactly.

use forager_core::order::Order;
use forager_core::scope::Profile;
use forager_core::scope::extent::Kind as Scope;

use super::World;
use super::world::*;
use crate::catalog::Change;
use crate::host::{Gate, HostSettings, Robots};
use crate::moment::Moment;
use crate::verbs::{LeaseRequest, Nothing};

const HOME: &str = "https://a.example/";

async fn hosts(mut world: World) -> World {
    let anywhere = |profile: &mut Profile| profile.scope = Scope::Any;
    world.configure([planned("c"), profile("c", "c", anywhere), seed(HOME, ["c"])]).await;
    world
}

/// Asks for one entry, of which there must be none, and says why.
async fn nothing(world: &mut World) -> Nothing {
    let answer = world.ask(&up_to(1)).await;
    assert_eq!(answer.leased, []);
    answer.nothing.expect("a reason")
}

/// One millisecond before the time nothing has changed; at that time something is handed out.
async fn opens_exactly_at(world: &mut World, until: Moment) {
    world.now = Moment::from_millisecond(until.millisecond() - 1).timestamp();
    let early = nothing(world).await;
    assert!(
        matches!(early, Nothing::NotDue { until: told } | Nothing::Throttled { until: told, .. } | Nothing::Blocked { until: Some(told) } if told == until),
        "just before: {early:?}, not {until}"
    );
    world.now = until.timestamp();
    let answer = world.ask(&up_to(1)).await;
    assert_eq!(answer.leased.len(), 1, "at {until}: {:?}", answer.nothing);
}

pub async fn an_answer_gives_entries_or_a_reason_but_not_both(world: World) {
    let mut world = hosts(world).await;
    let answer = world.ask(&up_to(1)).await;
    assert!(answer.leased.is_empty() && answer.nothing.is_some());
    world.find_for("c", HOME, [HOME]).await;
    let answer = world.ask(&up_to(1)).await;
    assert!(answer.leased.len() == 1 && answer.nothing.is_none());
}

pub async fn asking_for_nothing_never_says_to_wait_for_the_past(world: World) {
    let mut world = hosts(world).await;
    world.find_for("c", HOME, ["https://x.example/"]).await;
    for request in [up_to(0), LeaseRequest { per_host: 0, ..up_to(1) }] {
        let answer = world.ask(&request).await;
        assert_eq!(answer.leased, []);
        let until = match answer.nothing {
            Some(Nothing::NotDue { until } | Nothing::Throttled { until, .. }) => Some(until),
            Some(Nothing::Blocked { until }) => until,
            Some(Nothing::Empty) => panic!("there is something"),
            None => None,
        };
        assert!(until.is_none_or(|until| until >= world.moment()), "{until:?}");
    }
}

pub async fn empty_if_nothing_is_queued_or_under_way(world: World) {
    let mut world = world;
    assert_eq!(nothing(&mut world).await, Nothing::Empty, "no collection at all");
    let mut world = hosts(world.another()).await;
    assert_eq!(nothing(&mut world).await, Nothing::Empty, "an empty collection");
}

pub async fn empty_once_all_is_done(mut world: World) {
    let once = |profile: &mut Profile| profile.length = Some(1);
    world.configure([planned("c"), profile("c", "c", once), seed(HOME, ["c"])]).await;
    world.start_seed(HOME).await;
    world.fetch("x").await;
    assert_eq!(nothing(&mut world).await, Nothing::Empty);
}

pub async fn not_due_until_the_first_is(world: World) {
    let mut world = hosts(world).await;
    world.find_for("c", HOME, ["https://x.example/", "https://y.example/"]).await;
    let leased = world.lease(2).await;
    let due = world.complete(ok(leased[0].token, "x")).await.due.unwrap();
    world.pass("1m");
    world.complete(ok(leased[1].token, "x")).await;
    assert_eq!(nothing(&mut world).await, Nothing::NotDue { until: due });
    opens_exactly_at(&mut world, due).await;
}

pub async fn throttled_until_the_delay_is_over(world: World) {
    let mut world = hosts(world.with(delay("10s"))).await;
    world.find_for("c", HOME, ["https://x.example/1", "https://x.example/2"]).await;
    let token = world.lease_one().await.token;
    world.complete(ok(token, "x")).await;
    let until = world.later("10s");
    world.pass("4s");
    assert_eq!(nothing(&mut world).await, Nothing::Throttled { until, gate: Gate::Delay });
    opens_exactly_at(&mut world, until).await;
}

pub async fn throttled_until_the_first_of_several_hosts_opens(world: World) {
    let mut world = hosts(world.with(delay("10s"))).await;
    let urls = ["https://x.example/1", "https://x.example/2", "https://y.example/1", "https://y.example/2"];
    world.find_for("c", HOME, urls).await;
    world.lease(1).await;
    let until = world.later("10s");
    world.pass("3s");
    assert_eq!(world.lease_urls(1).await, ["https://y.example/1"], "another host is not held up");
    assert_eq!(nothing(&mut world).await, Nothing::Throttled { until, gate: Gate::Delay });
    opens_exactly_at(&mut world, until).await;
}

pub async fn throttled_by_each_gate_of_a_host(world: World) {
    let until = world.later("1h");
    let shut = |expires| Some(Robots { allowed: false, expires });
    for (gate, settings) in [
        (Gate::Blocked, HostSettings { blocked_until: Some(until), ..Default::default() }),
        (Gate::Robots, HostSettings { robots: shut(until), ..Default::default() }),
    ] {
        let mut world = hosts(world.another()).await;
        world.find_for("c", HOME, ["https://x.example/"]).await;
        world.set_host("x.example", settings).await;
        assert_eq!(nothing(&mut world).await, Nothing::Throttled { until, gate });
        opens_exactly_at(&mut world, until).await;
    }
}

pub async fn the_gate_that_opens_last_counts(world: World) {
    let mut world = hosts(world.with(delay("10s"))).await;
    world.find_for("c", HOME, ["https://x.example/1", "https://x.example/2"]).await;
    world.lease(1).await;
    let until = world.later("1m");
    world.set_host("x.example", HostSettings { blocked_until: Some(until), ..Default::default() }).await;
    assert_eq!(nothing(&mut world).await, Nothing::Throttled { until, gate: Gate::Blocked });
    opens_exactly_at(&mut world, until).await;
}

pub async fn blocked_for_good_if_only_a_person_can_change_it(world: World) {
    let never = Some(Moment::NEVER);
    for settings in [
        HostSettings { blocked_until: never, ..Default::default() },
        HostSettings { fetch_limit: Some(0), ..Default::default() },
        HostSettings {
            robots: Some(Robots { allowed: false, expires: Moment::NEVER }),
            ..Default::default()
        },
        HostSettings { in_flight: Some(0), ..Default::default() },
    ] {
        let mut world = hosts(world.another()).await;
        world.find_for("c", HOME, ["https://x.example/"]).await;
        world.set_host("x.example", settings.clone()).await;
        assert_eq!(nothing(&mut world).await, Nothing::Blocked { until: None }, "{settings:?}");
        world.set_host("x.example", HostSettings::default()).await;
        assert_eq!(world.lease(1).await.len(), 1, "and a person did: {settings:?}");
    }
}

pub async fn blocked_while_workers_have_all_there_is(world: World) {
    let mut world = hosts(world).await;
    world.find_for("c", HOME, ["https://x.example/"]).await;
    let leased = world.lease_one().await;
    assert_eq!(nothing(&mut world).await, Nothing::Blocked { until: Some(leased.until) });
    opens_exactly_at(&mut world, leased.until).await;
}

pub async fn blocked_while_as_many_are_in_flight_as_may_be(world: World) {
    let mut world = hosts(world.with(|settings| settings.politeness.in_flight = 2)).await;
    world.find_for("c", HOME, ["https://x.example/1", "https://x.example/2", "https://x.example/3"]).await;
    let short = LeaseRequest { hold: interval("1m"), ..up_to(1) };
    let first = world.ask(&short).await.leased.remove(0);
    assert_eq!(world.lease(9).await.len(), 1, "two at a time");
    assert_eq!(nothing(&mut world).await, Nothing::Blocked { until: Some(first.until) });
    world.complete(ok(first.token, "x")).await;
    assert_eq!(world.lease_urls(9).await, ["https://x.example/3"], "one has ended");
}

pub async fn blocked_while_all_that_waits_is_disabled_or_paused(world: World) {
    let mut world = hosts(world).await;
    world.find_for("c", HOME, ["https://x.example/"]).await;
    world.configure([Change::EnableCollection("c".into(), false)]).await;
    let told = nothing(&mut world).await;
    assert!(matches!(told, Nothing::Blocked { until: None } | Nothing::NotDue { .. }), "{told:?}");
}

pub async fn what_is_due_soon_ends_a_longer_throttle(world: World) {
    let mut world = hosts(world.with(delay("1h"))).await;
    world.find_for("c", HOME, ["https://x.example/1", "https://x.example/2"]).await;
    world.lease(1).await; // x is shut for an hour
    world.set_host("y.example", HostSettings::default()).await;
    world.configure([Change::EnableSeed(HOME.into(), false)]).await;
    world.pass("1s");
    world.find_for("c", HOME, ["https://y.example/"]).await; // due in an hour and a second, but x opens before
    let told = nothing(&mut world).await;
    let Nothing::Throttled { until, gate: Gate::Delay } = told else { panic!("{told:?}") };
    assert!(until <= world.later("3599s"), "{until}");
}

/// Waking any earlier would only wait again.
pub async fn what_is_due_at_a_host_that_opens_later_waits_for_the_host(world: World) {
    let mut world = hosts(world).await;
    world.find_for("c", HOME, ["https://x.example/"]).await;
    let due = world.fetch("x").await.due.unwrap();
    let opens = due.after(interval("2h"));
    world.set_host("x.example", HostSettings { blocked_until: Some(opens), ..Default::default() }).await;
    let told = nothing(&mut world).await;
    let (Nothing::NotDue { until } | Nothing::Throttled { until, .. }) = told else { panic!("{told:?}") };
    assert_eq!(until, opens, "due at {due}, but shut until {opens}");
}

pub async fn a_filter_asks_about_its_own_collection_and_host_only(world: World) {
    let mut world = hosts(world.with(delay("10s"))).await;
    world.configure([planned("d"), profile("d", "d", |_| {}), seed("https://d.example/", ["d"])]).await;
    world.find_for("c", HOME, ["https://x.example/1", "https://x.example/2", "https://y.example/1"]).await;
    world.lease(1).await;
    let until = world.later("10s");
    let of = |collection: &str, host: Option<&str>| LeaseRequest {
        collection: Some(collection.into()),
        host: host.map(ToOwned::to_owned),
        ..up_to(1)
    };
    assert_eq!(world.ask(&of("d", None)).await.nothing, Some(Nothing::Empty));
    assert_eq!(world.ask(&of("c", Some("z.example"))).await.nothing, Some(Nothing::Empty));
    let throttled = Nothing::Throttled { until, gate: Gate::Delay };
    assert_eq!(world.ask(&of("c", Some("x.example"))).await.nothing, Some(throttled));
    assert_eq!(world.ask(&of("c", Some("y.example"))).await.leased.len(), 1);
}

/// Whoever waits is woken by whatever may give it something to do.
pub async fn the_bell_rings_when_something_arrives(mut world: World) {
    world.harvest("c", Order::Hierarchy, HOME).await;
    let mut bell = world.frontier().arrivals();
    bell.borrow_and_update();

    world.start_seed(HOME).await;
    assert!(bell.has_changed().unwrap(), "a seed was started");
    bell.borrow_and_update();
    world.find("c", HOME, ["https://a.example/x"]).await;
    assert!(bell.has_changed().unwrap(), "a link was added");
    let leased = world.lease(2).await;
    bell.borrow_and_update();
    world.complete(ok(leased[0].token, "x")).await;
    assert!(bell.has_changed().unwrap(), "a place in flight came free");
    bell.borrow_and_update();
    world.frontier().release(&[leased[1].token], world.now).await.unwrap();
    assert!(bell.has_changed().unwrap(), "an entry was given back");
    let never = HostSettings { blocked_until: Some(Moment::NEVER), ..HostSettings::default() };
    world.set_host("a.example", never).await;
    bell.borrow_and_update();
    world.set_host("a.example", HostSettings::default()).await;
    assert!(bell.has_changed().unwrap(), "a host was opened");
    world.configure([Change::EnableCollection("c".into(), false)]).await;
    bell.borrow_and_update();
    world.configure([Change::EnableCollection("c".into(), true)]).await;
    assert!(bell.has_changed().unwrap(), "a collection was enabled");
}

pub async fn the_bell_is_heard_by_one_who_waits(mut world: World) {
    world.harvest("c", Order::Hierarchy, HOME).await;
    let mut bell = world.frontier().arrivals();
    bell.borrow_and_update();
    let frontier = world.frontier();
    let now = world.now;
    let arrives = tokio::spawn(async move {
        let target = crate::verbs::Target::Seed(HOME.to_owned());
        frontier.start(&[target], now).await.unwrap();
    });
    bell.changed().await.unwrap();
    arrives.await.unwrap();
    assert_eq!(world.lease(1).await.len(), 1);
}
