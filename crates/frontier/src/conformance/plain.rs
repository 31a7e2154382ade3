//! Plain collections: clients decide, and everything is kept as it came.

use super::World;
use super::world::*;
use crate::catalog::Change;
use crate::entry::State;
use crate::host::{Gate, HostSettings};
use crate::verbs::{
    Action, Action::*, HostChange, HostFilter, HostView, LeaseRequest, Leased, Link, Nothing, Outcome, Page,
};

async fn plain(mut world: World) -> World {
    world.configure([unplanned("p")]).await;
    world
}

async fn put(world: &mut World, links: Vec<Link>) -> Vec<Action> {
    let found = world.discover(Page { collection: "p".into(), links, ..Page::default() }).await;
    found.into_iter().map(|found| found.action).collect()
}

fn keyed(url: &str, key: &str) -> Link {
    Link { key: Some(key.to_owned()), ..link(url) }
}

fn told(leased: &[Leased]) -> Vec<(&str, &str)> {
    leased.iter().map(|leased| (leased.host.as_str(), leased.url.as_str())).collect()
}

async fn set(world: &mut World, key: &str, settings: HostSettings) -> HostView {
    let change =
        HostChange { key: key.into(), collection: Some("p".into()), sets: settings.all(), only_known: false };
    world.frontier().set_hosts(&[change], world.now).await.unwrap().remove(0).unwrap()
}

pub async fn urls_are_kept_byte_for_byte(world: World) {
    let mut world = plain(world).await;
    let odd = [
        "HTTP://Example.ORG:80/%7Ea/../b#frag",
        "no url at all",
        "https://example.org/ü?b=2&a=1",
        "https://example.org",
        "https://example.org/",
        " leading and trailing ",
        "tab\tand\u{1F980}",
    ];
    assert_eq!(put(&mut world, odd.map(|url| keyed(url, "k")).to_vec()).await, [Added; 7]);
    assert_eq!(put(&mut world, odd.map(|url| keyed(url, "k")).to_vec()).await, [Kept; 7]);
    world.reopen();
    assert_eq!(put(&mut world, odd.map(|url| keyed(url, "k")).to_vec()).await, [Kept; 7]);
    let leased = world.lease(9).await;
    let urls: Vec<&str> = leased.iter().map(|leased| leased.url.as_str()).collect();
    assert_eq!(urls, odd);
    assert!(leased.iter().all(|leased| leased.host == "k" && leased.seed.is_none()));
}

pub async fn the_queue_key_is_given_or_derived(world: World) {
    let mut world = plain(world).await;
    let cases = [
        ("https://Example.org:8080/a?b", "Example.org"),
        ("https://example.org?x=1", "example.org"),
        ("example.org/a", "example.org"),
        ("https://a&b/", "a"),
    ];
    for (url, key) in cases {
        put(&mut world, vec![link(url)]).await;
        let entry = world.the_entry("p", url).await;
        assert_eq!((entry.host.as_str(), entry.url.as_str()), (key, url));
    }
    assert_eq!(put(&mut world, vec![keyed("https://example.org/a", "other key")]).await, [Added]);
    assert_eq!(world.all("p").await.last().unwrap().host, "other key");
}

pub async fn a_url_is_one_entry_under_each_key(world: World) {
    let mut world = plain(world).await;
    let url = "https://example.org/";
    assert_eq!(
        put(&mut world, vec![keyed(url, "a"), keyed(url, "b"), keyed(url, "a")]).await,
        [Added, Added, Kept]
    );
    assert_eq!(world.stats("p").await.queued, 2);
}

pub async fn what_has_no_key_or_is_too_long_is_invalid(world: World) {
    let mut world = plain(world).await;
    let long_key = "k".repeat(300);
    let long_url = format!("https://example.org/{}", "x".repeat(70_000));
    let links =
        vec![link(""), link("://"), link("/path"), keyed("x", &long_key), link(&long_url), keyed("", "k")];
    assert_eq!(put(&mut world, links).await, [Invalid; 6]);
    assert_eq!(world.all("p").await, []);
}

pub async fn the_date_of_the_client_rules(world: World) {
    let mut world = plain(world).await;
    let at = |time: &str| Some(world.later(time));
    let (soon, later) = (at("10m"), at("1h"));
    let links = vec![
        Link { due: later, ..keyed("later", "k") },
        Link { due: soon, ..keyed("soon", "k") },
        keyed("now", "k"),
        Link { due: Some(crate::moment::Moment::ZERO), ..keyed("long ago", "k") },
    ];
    put(&mut world, links).await;
    world.reopen();
    assert_eq!(told(&world.lease(9).await), [("k", "long ago"), ("k", "now")]);
    assert_eq!(world.all("p").await[0].due, later.unwrap());
    world.pass("10m");
    let leased = world.lease(9).await;
    // The leases of the first two have run out meanwhile; they were due before.
    assert_eq!(told(&leased), [("k", "long ago"), ("k", "now"), ("k", "soon")]);
}

pub async fn of_equal_dates_the_first_to_come_goes_first(world: World) {
    let mut world = plain(world).await;
    put(&mut world, vec![keyed("b", "k"), keyed("a", "k"), keyed("c", "k")]).await;
    assert_eq!(told(&world.lease(9).await), [("k", "b"), ("k", "a"), ("k", "c")]);
}

pub async fn queues_take_turns(world: World) {
    let mut world = plain(world).await;
    let urls = [("1", "a"), ("2", "a"), ("3", "b"), ("4", "c"), ("5", "c")];
    put(&mut world, urls.map(|(url, key)| keyed(url, key)).to_vec()).await;
    let each = LeaseRequest { max: 9, per_host: 1, ..up_to(9) };
    assert_eq!(told(&world.ask(&each).await.leased), [("a", "1"), ("b", "3"), ("c", "4")]);
    world.pass("1s");
    assert_eq!(told(&world.ask(&each).await.leased), [("a", "2"), ("c", "5")]);
}

pub async fn a_call_may_take_several_of_a_queue_and_then_it_waits(world: World) {
    let mut world = plain(world).await;
    put(&mut world, (0..5).map(|number| keyed(&number.to_string(), "k")).collect()).await;
    assert_eq!(world.lease(3).await.len(), 3, "the client paces them itself");
    let until = world.later("1s");
    assert_eq!(world.ask(&up_to(3)).await.nothing, Some(Nothing::Throttled { until, gate: Gate::Delay }));
    set(&mut world, "k", HostSettings { delay: Some(interval("0s")), ..HostSettings::default() }).await;
    world.pass("1s");
    assert_eq!(world.lease(1).await.len(), 1);
    assert_eq!(world.lease(1).await.len(), 1, "no delay for this queue");
}

pub async fn politeness_is_its_own(world: World) {
    use forager_core::order::Order;
    let mut world = plain(world.with(delay("1h"))).await;
    world.configure([unplanned("q")]).await;
    world.harvest("c", Order::Hierarchy, "https://x.example/").await;
    world.start_seed("https://x.example/").await;
    put(&mut world, vec![link("https://x.example/p")]).await;
    world.discover(page("q", "", ["https://x.example/q"])).await;
    let blocked =
        HostSettings { blocked_until: Some(crate::moment::Moment::NEVER), ..HostSettings::default() };
    let view = set(&mut world, "x.example", blocked).await;
    assert_eq!((view.host.as_str(), view.collection.as_deref()), ("x.example", Some("p")));
    world.reopen();
    let leased = world.lease(9).await;
    let mut collections: Vec<&str> = leased.iter().map(|leased| leased.collection.as_str()).collect();
    collections.sort_unstable();
    assert_eq!(collections, ["c", "q"], "only the queue of p is blocked");
}

pub async fn an_entry_that_was_reported_is_done(world: World) {
    let mut world = plain(world).await;
    put(&mut world, vec![keyed("u", "k")]).await;
    let leased = world.lease_one().await;
    let done = world.complete(ok(leased.token, "x")).await;
    assert_eq!((done.outcome, done.due), (Outcome::Done, None));
    world.reopen();
    let entry = world.all("p").await.remove(0);
    assert_eq!((entry.state, entry.last_fetch), (State::Done, Some(world.moment())));
    assert_eq!(put(&mut world, vec![keyed("u", "k")]).await, [Kept], "completed is known");
    world.pass("1 day");
    assert_eq!(world.lease(1).await, []);
    world.counts_equal_a_scan("p").await;
}

pub async fn an_entry_that_was_lost_comes_back(world: World) {
    let mut world = plain(world).await;
    put(&mut world, vec![keyed("u", "k")]).await;
    let due = world.all("p").await[0].due;
    for _ in 0..9 {
        let leased = world.lease_one().await;
        world.pass_until(leased.until);
    }
    let entry = world.all("p").await.remove(0);
    assert_eq!((entry.state, entry.due), (State::Queued, due), "however often: the date is the client's");
}

pub async fn limits_hold_for_each_queue(world: World) {
    let mut world = plain(world).await;
    put(&mut world, (0..9).map(|number| keyed(&number.to_string(), "k")).collect()).await;
    set(&mut world, "k", HostSettings { in_flight: Some(2), ..HostSettings::default() }).await;
    assert_eq!(world.lease(9).await.len(), 2, "an in-flight limit is no matter of pace");
    world.pass("1s");
    assert_eq!(world.lease(9).await, []);
}

pub async fn a_collection_that_is_removed_leaves_nothing(world: World) {
    let mut world = plain(world).await;
    put(&mut world, vec![keyed("u", "k"), keyed("v", "k")]).await;
    set(&mut world, "k", HostSettings { delay: Some(interval("1h")), ..HostSettings::default() }).await;
    world.lease(1).await;
    world.configure([Change::RemoveCollection("p".into())]).await;
    world.reopen();
    let all = HostFilter { limit: 9, ..HostFilter::default() };
    assert_eq!(world.frontier().hosts(&all, world.now).await.unwrap(), []);
    assert_eq!(world.ask(&up_to(9)).await.nothing, Some(Nothing::Empty));

    let mut world = plain(world).await; // the same name once more
    assert_eq!(world.stats("p").await, crate::verbs::Stats { collection: "p".into(), ..Default::default() });
    assert_eq!(put(&mut world, vec![keyed("u", "k")]).await, [Added]);
    assert_eq!(world.lease(9).await.len(), 1, "neither delay nor lease is left");
}

pub async fn the_same_key_in_two_collections_is_two_queues(world: World) {
    let mut world = plain(world).await;
    world.configure([unplanned("q")]).await;
    put(&mut world, vec![keyed("u", "k")]).await;
    world.discover(Page { collection: "q".into(), links: vec![keyed("u", "k")], ..Page::default() }).await;
    assert_eq!(world.lease(9).await.len(), 2);
    world.configure([Change::RemoveCollection("p".into())]).await;
    assert_eq!(world.stats("q").await.in_flight, 1, "the other one stays");
}

pub async fn an_entry_is_found_by_its_url_whatever_its_key(world: World) {
    let mut world = plain(world).await;
    put(&mut world, vec![keyed("https://example.org/", "other key")]).await;
    assert_eq!(world.the_entry("p", "https://example.org/").await.host, "other key");
    assert_eq!(world.explain("p", "https://example.org/").await.forms.host, "other key");
}

pub async fn any_text_can_be_explained(world: World) {
    let mut world = plain(world).await;
    put(&mut world, vec![link("no/url")]).await;
    let known = world.explain("p", "no/url").await;
    assert_eq!((known.forms.identity.as_str(), known.scope.action.as_str()), ("no/url", "fetch"));
    let stranger = world.explain("p", "never.example").await;
    assert_eq!(stranger.entry, None);
    assert_eq!((stranger.forms.fetch.as_str(), stranger.forms.surt.as_str()), ("never.example", ""));
    assert_eq!(stranger.would_need, ["a client has to put it into the queue"]);
    for told in [known, stranger] {
        assert_eq!(
            (told.class, told.evidence, told.scope.depth),
            (None, None, None),
            "none of it decides here"
        );
        assert_eq!((told.priority.order.as_str(), told.priority.value), ("due", None));
        assert_eq!(told.priority.terms, ["the one due first goes first; of equals, the one that came first"]);
    }
    let leased = world.lease_one().await;
    world.complete(ok(leased.token, "x")).await;
    let through = world.explain("p", "no/url").await;
    assert_eq!((through.verdict.as_str(), through.evidence), ("fetched", None));
    assert_eq!(through.would_need, ["a client has to say when it is to be handed out again"]);
}
