//! What is handed out, in which order, and what the rules of scope say just before.

use forager_core::order::Order;
use forager_core::scope::Profile;
use forager_core::scope::extent::Kind as Scope;

use super::World;
use super::world::*;
use crate::catalog::Change;
use crate::entry::State;
use crate::error::Error;
use crate::moment::Moment;
use crate::settings::Politeness;
use crate::verbs::{Event, LeaseRequest, ListFilter};

const HOME: &str = "https://a.example/";

async fn site(mut world: World, order: Order) -> World {
    world.harvest("c", order, HOME).await;
    world.start_seed(HOME).await;
    world
}

/// One collection that takes links to any host.
async fn hosts(mut world: World, order: Order) -> World {
    let anywhere = |profile: &mut Profile| (profile.scope, profile.order) = (Scope::Any, order);
    world.configure([planned("c"), profile("c", "c", anywhere), seed(HOME, ["c"])]).await;
    world
}

pub async fn an_entry_is_handed_out_with_all_a_worker_needs(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    let leased = world.lease_one().await;
    assert_eq!(
        (leased.collection.as_str(), leased.url.as_str(), leased.host.as_str()),
        ("c", HOME, "a.example")
    );
    assert_eq!((leased.seed.as_deref(), leased.depth, leased.priority), (Some(HOME), 0, thousandths(1000)));
    assert_eq!((leased.due, leased.until), (world.moment(), world.later("5m")));
    assert_eq!((leased.last_fetch, leased.fingerprint, leased.failures), (None, None, 0));
    assert_eq!(&*leased.rule, "7: in scope (c: scope domain)");
    let entry = world.the_entry("c", HOME).await;
    assert_eq!((entry.state, entry.leased_until), (State::Leased, Some(leased.until)));
    world.reopen();
    assert_eq!(world.the_entry("c", HOME).await, entry, "a lease survives a restart");
}

pub async fn what_was_learned_is_handed_out_too(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    world.fetch("print").await;
    let fetched = world.moment();
    world.pass("30 days");
    let leased = world.lease_one().await;
    assert_eq!((leased.last_fetch, leased.fingerprint.as_deref()), (Some(fetched), Some("print")));
}

pub async fn nothing_is_handed_out_twice(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    assert_eq!(world.lease(9).await.len(), 1);
    assert_eq!(world.lease(9).await, []);
    world.reopen();
    assert_eq!(world.lease(9).await, []);
}

pub async fn tokens_are_never_used_twice(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    let mut tokens = std::collections::BTreeSet::new();
    for _ in 0..5 {
        let leased = world.lease_one().await;
        assert!(tokens.insert(leased.token), "{}", leased.token);
        world.frontier().release(&[leased.token], world.now).await.unwrap();
        world.reopen();
    }
}

pub async fn inside_a_host_the_highest_priority_goes_first(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    world.find("c", HOME, ["https://a.example/1", "https://a.example/2"]).await;
    world.find("c", "https://a.example/1", ["https://a.example/1/1"]).await;
    world.find("c", HOME, ["https://a.example/3"]).await;
    let order = world.lease_urls(9).await;
    let want =
        [HOME, "https://a.example/1", "https://a.example/2", "https://a.example/3", "https://a.example/1/1"];
    assert_eq!(order, want, "of equal priority, the one that came first");
}

pub async fn arrival_breaks_ties_even_if_another_is_due_earlier(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    world.lease(1).await;
    world.find("c", HOME, ["https://a.example/1", "https://a.example/2"]).await;
    let leased = world.lease(2).await;
    // The second one is due again before the first.
    world.complete(ok(leased[1].token, "x")).await;
    world.pass("2m");
    world.complete(ok(leased[0].token, "x")).await;
    world.pass("30 days");
    assert_eq!(world.lease_urls(3).await[1..], ["https://a.example/1", "https://a.example/2"]);
}

pub async fn due_time_breaks_ties_where_the_order_says_so(world: World) {
    let mut world = site(world, Order::Risk).await;
    world.lease(1).await;
    world.find("c", HOME, ["https://a.example/1", "https://a.example/2"]).await;
    let leased = world.lease(2).await;
    world.complete(ok(leased[1].token, "x")).await;
    world.pass("2m");
    world.complete(ok(leased[0].token, "x")).await;
    world.pass("7h 59m"); // Both are due 8 h after their fetch; the seed has come back before.
    world.pass("2m");
    let urls = world.lease_urls(3).await;
    assert_eq!(urls, [HOME, "https://a.example/2", "https://a.example/1"]);
}

pub async fn hosts_take_turns(world: World) {
    let mut world = hosts(world, Order::Hierarchy).await;
    let urls = [
        "https://x.example/1",
        "https://x.example/2",
        "https://x.example/3",
        "https://y.example/1",
        "https://z.example/1",
        "https://z.example/2",
    ];
    world.find_for("c", HOME, urls).await;
    let mut order = Vec::new();
    for _ in 0..6 {
        order.extend(world.lease(1).await.into_iter().map(|leased| leased.host));
        world.reopen();
    }
    assert_eq!(order, ["x.example", "y.example", "z.example", "x.example", "z.example", "x.example"]);
}

pub async fn the_host_served_longest_ago_comes_first(world: World) {
    let mut world = hosts(world, Order::Hierarchy).await;
    world.find_for("c", HOME, ["https://x.example/1"]).await;
    world.find_for("c", HOME, ["https://y.example/1"]).await;
    assert_eq!(world.lease(2).await.len(), 2); // x, then y
    world.find_for("c", HOME, ["https://y.example/2", "https://x.example/2"]).await;
    assert_eq!(world.lease_urls(2).await, ["https://x.example/2", "https://y.example/2"]);
    world.find_for("c", HOME, ["https://x.example/3", "https://y.example/3", "https://new.example/1"]).await;
    let urls = world.lease_urls(3).await;
    assert_eq!(urls, ["https://new.example/1", "https://x.example/3", "https://y.example/3"]);
}

pub async fn a_call_hands_out_at_most_so_many_and_so_many_of_a_host(world: World) {
    let urls: Vec<String> =
        (0..12).map(|number| format!("https://h{}.example/{number}", number % 3)).collect();
    for (max, per_host, want) in
        [(12, 12, 12), (5, 12, 5), (12, 2, 6), (12, 1, 3), (2, 1, 2), (4, 3, 4), (0, 9, 0), (9, 0, 0)]
    {
        let mut world = hosts(world.another(), Order::Fifo).await;
        let links = urls.iter().map(String::as_str);
        world.discover(page_of_seed("c", HOME, links)).await;
        let leased = world.ask(&LeaseRequest { max, per_host, ..up_to(0) }).await.leased;
        assert_eq!(leased.len(), want, "max {max}, per host {per_host}");
        for host in ["h0.example", "h1.example", "h2.example"] {
            let of_host = leased.iter().filter(|leased| leased.host == host).count();
            assert!(of_host <= per_host, "{of_host} of {host}; max {max}, per host {per_host}");
        }
    }
}

pub async fn a_call_may_be_about_one_collection_or_one_host(world: World) {
    let mut world = hosts(world, Order::Fifo).await;
    let anywhere = |profile: &mut Profile| profile.scope = Scope::Any;
    world.configure([planned("d"), profile("d", "d", anywhere), seed("https://d.example/", ["d"])]).await;
    let urls = ["https://x.example/", "https://y.example/"];
    world.find_for("c", HOME, urls).await;
    world.find_for("d", "https://d.example/", urls).await;
    let cases = [
        (Some("c"), None, vec![("c", urls[0]), ("c", urls[1])]),
        (Some("d"), Some("y.example"), vec![("d", urls[1])]),
        (None, Some("x.example"), vec![("d", urls[0])]),
        (None, Some("nowhere.example"), vec![]),
    ];
    for (collection, host, want) in cases {
        let request = LeaseRequest {
            collection: collection.map(ToOwned::to_owned),
            host: host.map(ToOwned::to_owned),
            ..up_to(9)
        };
        let leased = world.ask(&request).await.leased;
        let told: Vec<(&str, &str)> =
            leased.iter().map(|leased| (leased.collection.as_str(), leased.url.as_str())).collect();
        assert_eq!(told, want, "{collection:?} {host:?}");
    }
}

pub async fn a_collection_that_is_not_there_is_an_error(mut world: World) {
    let request = LeaseRequest { collection: Some("nowhere".into()), ..up_to(1) };
    let error = world.frontier().lease(&request, world.now).await.unwrap_err();
    assert!(matches!(&error, Error::NotFound { kind: "collection", name } if name == "nowhere"), "{error}");
}

pub async fn collections_that_share_a_host_both_get_their_turn(world: World) {
    let mut world = hosts(world, Order::Fifo).await;
    let anywhere = |profile: &mut Profile| profile.scope = Scope::Any;
    world.configure([planned("d"), profile("d", "d", anywhere), seed("https://d.example/", ["d"])]).await;
    let urls: Vec<String> = (0..20).map(|number| format!("https://x.example/{number}")).collect();
    world.discover(page_of_seed("c", HOME, urls.iter().map(String::as_str))).await;
    world.discover(page_of_seed("d", "https://d.example/", urls.iter().map(String::as_str))).await;
    let mut of = std::collections::BTreeMap::new();
    for _ in 0..10 {
        *of.entry(world.lease_one().await.collection).or_insert(0) += 1;
    }
    assert!(
        of.get("c").is_some_and(|&count| count >= 3) && of.get("d").is_some_and(|&count| count >= 3),
        "{of:?}"
    );
}

pub async fn collections_that_wait_for_the_same_host_take_turns(world: World) {
    let world = world.with(|settings| settings.politeness = Politeness::default());
    let mut world = hosts(world, Order::Fifo).await;
    let anywhere = |profile: &mut Profile| profile.scope = Scope::Any;
    world.configure([planned("d"), profile("d", "d", anywhere), seed("https://d.example/", ["d"])]).await;
    let urls: Vec<String> = (0..20).map(|number| format!("https://x.example/{number}")).collect();
    for (collection, seed) in [("d", "https://d.example/"), ("c", HOME)] {
        world.discover(page_of_seed(collection, seed, urls.iter().map(String::as_str))).await;
    }
    let (mut order, request) = (String::new(), LeaseRequest { host: Some("x.example".into()), ..up_to(1) });
    for _ in 0..6 {
        let leased = world.frontier().lease(&request, world.now).await.unwrap().leased.remove(0);
        world.complete(answered(leased.token, 200)).await;
        order.push_str(&leased.collection);
        world.pass("10s");
    }
    assert!(["cdcdcd", "dcdcdc"].contains(&&*order), "{order}");
}

pub async fn every_tenth_is_the_oldest_due(world: World) {
    for (order, is_reserved) in
        [(Order::Risk, true), (Order::Score, true), (Order::Hierarchy, false), (Order::Fifo, false)]
    {
        let mut world = site(world.another(), order).await;
        // Old and unimportant, in the orders that know such a thing; then many that matter more.
        let old = Link::irrelevant("https://a.example/old");
        world.lease(1).await;
        world.discover(old).await;
        world.pass("1m");
        let urgent: Vec<String> =
            (0..40).map(|number| format!("https://a.example/zakon/{number:02}")).collect();
        world.discover(page("c", HOME, urgent.iter().map(String::as_str))).await;
        let mut found = None;
        for number in 2..=20 {
            let leased = world.lease_one().await;
            assert_eq!(leased.as_oldest, is_reserved && number % 10 == 0, "{order}: hand-out {number}");
            if leased.url.ends_with("old") {
                found = Some(number);
            }
            world.reopen();
        }
        if is_reserved {
            assert_eq!(found, Some(10), "{order}: the tenth that the host hands out");
        }
    }
}

struct Link;

impl Link {
    fn irrelevant(url: &str) -> crate::verbs::Page {
        let link = crate::verbs::Link { relevance: Some(0.0), ..link(url) };
        crate::verbs::Page { links: vec![link], ..page("c", HOME, []) }
    }
}

pub async fn the_reserved_share_can_be_chosen(world: World) {
    use forager_core::sentinel::manifest::Percent;
    for (percent, period) in [(0, usize::MAX), (10, 10), (25, 4), (50, 2), (100, 1)] {
        let reserved = crate::settings::Reserved(Percent::new(percent).unwrap());
        let mut world = world.another().with(|settings| settings.reserved = reserved);
        world.harvest("c", Order::Risk, HOME).await;
        let urls: Vec<String> = (0..30).map(|number| format!("https://a.example/{number}")).collect();
        world.discover(page_of_seed("c", HOME, urls.iter().map(String::as_str))).await;
        let leased = world.lease(20).await;
        let oldest: Vec<usize> = (1..=20).filter(|number| leased[number - 1].as_oldest).collect();
        let want: Vec<usize> = (1..=20).filter(|number| number % period == 0).collect();
        assert_eq!(oldest, want, "{percent} %");
    }
}

pub async fn what_is_not_due_is_not_handed_out(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    let due = world.fetch("x").await.due.unwrap();
    assert!(due > world.moment());
    world.pass_until(Moment::from_millisecond(due.millisecond() - 1));
    assert_eq!(world.lease(1).await, []);
    world.pass_until(due);
    assert_eq!(world.lease(1).await.len(), 1, "at the very instant");
}

pub async fn a_disabled_seed_or_profile_puts_its_entries_back(world: World) {
    for (disable, rule) in [
        (Change::EnableSeed(HOME.into(), false), "seed"),
        (Change::EnableProfile("c".into(), false), "profile"),
    ] {
        let mut world = site(world.another(), Order::Hierarchy).await;
        world.configure([disable]).await;
        assert_eq!(world.lease(1).await, [], "{rule}");
        let entry = world.the_entry("c", HOME).await;
        assert_eq!((entry.state, entry.due), (State::Queued, world.later("1h")), "{rule}");
    }
}

pub async fn a_disabled_collection_hands_out_nothing_and_loses_nothing(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    world.find("c", HOME, ["https://a.example/1"]).await;
    world.configure([Change::EnableCollection("c".into(), false)]).await;
    assert_eq!(world.lease(9).await, []);
    world.pass("3h");
    assert_eq!(world.lease(9).await, []);
    assert_eq!(world.stats("c").await.queued, 2);
    world.configure([Change::EnableCollection("c".into(), true)]).await;
    world.pass("1h"); // What was put back meanwhile comes back within the hour.
    assert_eq!(world.lease(9).await.len(), 2);
}

pub async fn what_is_out_of_scope_by_now_is_removed_and_told(world: World) {
    for (change, rule) in [
        (
            changed_profile("c", "c", |profile| profile.exclude = vec!["old".into()]),
            "6: out of scope (c: excluded by old)",
        ),
        (changed_profile("c", "elsewhere", |_| {}), "5: no profile of the seed has the collection"),
        (Change::RemoveProfile("c".into()), "5: no profile of the seed has the collection"),
        (Change::RemoveSeed(HOME.into()), "1: seed gone, no other covers the URL"),
    ] {
        let mut world = world.another();
        world.harvest("c", Order::Hierarchy, HOME).await;
        world.find_for("c", HOME, ["https://a.example/old"]).await;
        world.configure([change]).await;
        assert_eq!(world.lease(9).await, [], "{rule}");
        assert_eq!(world.all("c").await, [], "{rule}");
        let stats = world.stats("c").await;
        assert_eq!((stats.queued, stats.tally.skipped), (0, 1), "{rule}");
        let events = world.events().await;
        assert_eq!(events.len(), 1, "{rule}");
        assert_eq!(events[0].subject, "https://a.example/old", "{rule}");
        assert_eq!(events[0].event, Event::Removed { rule: rule.into() });
        assert_eq!(events[0].at, world.moment());
    }
}

pub async fn another_seed_takes_over_what_a_removed_one_left(mut world: World) {
    let anywhere = |profile: &mut Profile| profile.scope = Scope::Any;
    let (far, near) = ("https://b.example/", "https://a.example/news");
    world
        .configure([
            planned("c"),
            profile("p", "c", anywhere),
            seed(HOME, ["p"]),
            seed(far, ["p"]),
            seed(near, ["p"]),
        ])
        .await;
    world.find_for("c", HOME, ["https://a.example/news/1", "https://a.example/x"]).await;
    world.configure([Change::RemoveSeed(HOME.into())]).await;
    let leased = world.lease(9).await;
    assert_eq!(leased[0].seed.as_deref(), Some(near), "the longest prefix");
    assert_eq!(&*leased[0].rule, "1: taken over; 7: in scope (p: scope any)");
    assert_eq!(world.the_entry("c", "https://a.example/news/1").await.seed.as_deref(), Some(near));
}

pub async fn a_profile_that_became_slower_puts_its_entries_back(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    let every = |time: &str| changed_profile("c", "c", |profile| profile.every = Some(interval(time)));
    world.configure([every("1h")]).await;
    assert_eq!(world.fetch("x").await.due, Some(world.later("1h")));
    let fetched = world.now;
    world.configure([every("1 day")]).await;
    world.pass("1h");
    assert_eq!(world.lease(1).await, []);
    let due = Moment::of(interval("1 day").after(fetched));
    assert_eq!(world.the_entry("c", HOME).await.due, due);
    world.pass_until(due);
    assert_eq!(world.lease(1).await.len(), 1);
}

pub async fn what_is_postponed_makes_room_for_the_next(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    let other = "https://a.example/other/";
    world.configure([profile("q", "c", |_| {}), seed(other, ["q"])]).await;
    world.start_seed(other).await;
    world.configure([Change::EnableProfile("c".into(), false)]).await;
    assert_eq!(world.lease_urls(1).await, [other], "the homepage would be first, but waits");
    let waiting = ListFilter { state: Some(State::Queued), ..ListFilter::default() };
    assert_eq!(world.list_urls(waiting).await, [HOME]);
}

/// However many entries of a disabled seed stand before it.
pub async fn a_crowd_that_waits_does_not_hold_up_the_rest(world: World) {
    let mut world = site(world, Order::Fifo).await;
    world.lease(1).await;
    let urls: Vec<String> = (0..1200).map(|number| format!("https://a.example/{number}")).collect();
    world.discover(page("c", HOME, urls.iter().map(String::as_str))).await;
    let other = "https://a.example/other/";
    world.configure([profile("q", "c", |_| {}), seed(other, ["q"])]).await;
    world.start_seed(other).await;
    world.configure([Change::EnableProfile("c".into(), false)]).await;
    for _ in 0..3 {
        let answer = world.ask(&up_to(1)).await;
        if let Some(leased) = answer.leased.first() {
            assert_eq!(leased.url, other);
            return;
        }
        assert_eq!(
            answer.nothing,
            Some(crate::verbs::Nothing::NotDue { until: world.moment() }),
            "ask again at once"
        );
    }
    panic!("it never had its turn");
}
