//! Looking at the queue: entries, lists, counts, the plan, the log.

use forager_core::order::Order;
use forager_core::scope::Profile;
use forager_core::scope::extent::Kind as Scope;

use super::World;
use super::world::*;
use crate::catalog::Change;
use crate::entry::State;
use crate::error::Error;
use crate::host::HostSettings;
use crate::moment::Moment;
use crate::verbs::{Event, LeaseRequest, ListFilter, PlanFilter, WaitsFor};

const HOME: &str = "https://a.example/";

async fn hosts(mut world: World) -> World {
    let anywhere = |profile: &mut Profile| profile.scope = Scope::Any;
    world.configure([planned("c"), profile("c", "c", anywhere), seed(HOME, ["c"])]).await;
    world
}

/// Entries in every state, in two collections.
async fn mixed(world: World) -> World {
    let mut world = hosts(world).await;
    let once = |profile: &mut Profile| profile.length = Some(1);
    world.configure([planned("d"), profile("d", "d", once), seed("https://d.example/", ["d"])]).await;
    world.find_for("c", HOME, ["https://a.example/1", "https://b.example/1", "https://a.example/2"]).await;
    world
        .find_for(
            "d",
            "https://d.example/",
            ["https://d.example/1", "https://d.example/2", "https://d.example/3"],
        )
        .await;
    let of_d = LeaseRequest { collection: Some("d".into()), ..up_to(2) };
    let leased = world.ask(&of_d).await.leased;
    world.complete(ok(leased[0].token, "x")).await;
    world.complete(answered(leased[1].token, 403)).await;
    let of_c = LeaseRequest { collection: Some("c".into()), ..up_to(1) };
    assert_eq!(world.ask(&of_c).await.leased.len(), 1);
    world
}

pub async fn an_entry_is_found_by_every_form_of_its_url(world: World) {
    let mut world = hosts(world).await;
    world.find_for("c", HOME, ["https://a.example/x?q=1"]).await;
    let entry = world.the_entry("c", "https://a.example/x?q=1").await;
    for form in
        ["https://A.example:443/x?q=1#top", "https://a.example/./x?q=1", "https://user@a.example/x?q=1"]
    {
        assert_eq!(world.entry("c", form).await.as_ref(), Some(&entry), "{form}");
    }
    assert_eq!(world.entry("c", "https://a.example/x?q=2").await, None);
    assert_eq!(world.entry("c", "http://a.example/x?q=1").await, None, "the protocol counts");
}

pub async fn asking_for_what_cannot_be_is_an_error(world: World) {
    let mut world = hosts(world).await;
    let error = world.frontier().entry("nowhere", None, HOME, world.now).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { kind: "collection", .. }), "{error}");
    let error = world.frontier().entry("c", None, "mailto:x", world.now).await.unwrap_err();
    assert!(error.to_string().contains("mailto:x"), "{error}");
    let filter = ListFilter { collection: Some("nowhere".into()), limit: 1, ..ListFilter::default() };
    assert!(world.frontier().list(&filter, world.now).await.is_err());
    let filter = PlanFilter { collection: Some("nowhere".into()), limit: 1, ..PlanFilter::default() };
    assert!(world.frontier().plan(&filter, world.now).await.is_err());
    assert!(world.frontier().stats(Some("nowhere"), world.now).await.is_err());
}

pub async fn a_list_shows_what_the_filter_asks_for(world: World) {
    let mut world = mixed(world).await;
    let filter = ListFilter::default;
    let cases: [(&str, ListFilter, &[&str]); 9] = [
        (
            "all",
            filter(),
            &["a.example/1", "b.example/1", "a.example/2", "d.example/1", "d.example/2", "d.example/3"],
        ),
        (
            "a collection",
            ListFilter { collection: Some("c".into()), ..filter() },
            &["a.example/1", "b.example/1", "a.example/2"],
        ),
        (
            "a host",
            ListFilter { host: Some("a.example".into()), ..filter() },
            &["a.example/1", "a.example/2"],
        ),
        (
            "queued",
            ListFilter { state: Some(State::Queued), ..filter() },
            &["b.example/1", "a.example/2", "d.example/3"],
        ),
        ("leased", ListFilter { state: Some(State::Leased), ..filter() }, &["a.example/1"]),
        ("done", ListFilter { state: Some(State::Done), ..filter() }, &["d.example/1"]),
        ("failed", ListFilter { state: Some(State::Failed), ..filter() }, &["d.example/2"]),
        (
            "a prefix",
            ListFilter { prefix: Some("https://d".into()), ..filter() },
            &["d.example/1", "d.example/2", "d.example/3"],
        ),
        (
            "several at once",
            ListFilter {
                contains: Some("/1".into()),
                collection: Some("c".into()),
                state: Some(State::Queued),
                ..filter()
            },
            &["b.example/1"],
        ),
    ];
    for reopened in [false, true] {
        for (name, filter, want) in &cases {
            let urls = world.list_urls(filter.clone()).await;
            let urls: Vec<&str> = urls.iter().map(|url| url.trim_start_matches("https://")).collect();
            assert_eq!(urls, *want, "{name}, after a restart: {reopened}");
        }
        world.reopen();
    }
}

pub async fn a_list_goes_on_where_it_stopped(world: World) {
    let mut world = hosts(world).await;
    let urls: Vec<String> =
        (0..25).map(|number| format!("https://h{}.example/{number}", number % 4)).collect();
    world.discover(page_of_seed("c", HOME, urls.iter().map(String::as_str))).await;
    for (limit, contains) in [(1, None), (7, None), (25, None), (99, None), (3, Some("h1."))] {
        let mut filter = ListFilter { limit, contains: contains.map(Into::into), ..ListFilter::default() };
        let mut found = Vec::new();
        for _ in 0..=26 {
            let page = world.frontier().list(&filter, world.now).await.unwrap();
            assert!(page.entries.len() <= limit);
            found.extend(page.entries.into_iter().map(|entry| entry.url));
            filter.after = page.next;
            if filter.after.is_none() {
                break;
            }
        }
        assert_eq!(filter.after, None, "it ends");
        let wanted: Vec<&String> =
            urls.iter().filter(|url| contains.is_none_or(|part| url.contains(part))).collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), wanted, "limit {limit}, {contains:?}");
    }
    let none = world.frontier().list(&ListFilter::default(), world.now).await.unwrap();
    assert_eq!((none.entries.len(), none.next), (0, None), "a limit of nothing");
}

pub async fn counts_equal_a_scan_of_everything(world: World) {
    let mut world = mixed(world).await;
    for collection in ["c", "d"] {
        world.counts_equal_a_scan(collection).await;
        world.reopen();
        world.counts_equal_a_scan(collection).await;
    }
    let all = world.frontier().stats(None, world.now).await.unwrap();
    assert_eq!(all, [world.stats("c").await, world.stats("d").await]);
    let d = world.stats("d").await;
    assert_eq!([d.queued, d.in_flight, d.done, d.failed, d.hosts, d.tally.fetches], [1, 0, 1, 1, 1, 2]);
}

pub async fn looking_changes_nothing(world: World) {
    let mut world = mixed(world).await;
    let (before, events) = (world.list(ListFilter::default()).await, world.events().await);
    world.plan(9).await;
    world.explain("c", "https://b.example/1").await;
    world.explain("c", "https://never.example/").await;
    world.entry("c", "https://never.example/").await;
    world.frontier().jobs(world.now).await.unwrap();
    world.frontier().export("c", None, 9, world.now).await.unwrap();
    assert_eq!(world.list(ListFilter::default()).await, before);
    assert_eq!(world.events().await, events);
    world.counts_equal_a_scan("c").await;
}

pub async fn the_plan_is_what_is_handed_out_then(world: World) {
    let mut world = hosts(world.with(delay("10s"))).await;
    let urls: Vec<String> =
        (0..12).map(|number| format!("https://h{}.example/{number}", number % 5)).collect();
    world.discover(page_of_seed("c", HOME, urls.iter().map(String::as_str))).await;
    world
        .set_host("h1.example", HostSettings { delay: Some(interval("3s")), ..HostSettings::default() })
        .await;
    let until = world.later("25s");
    world
        .set_host("h2.example", HostSettings { blocked_until: Some(until), ..HostSettings::default() })
        .await;
    world.lease(2).await; // some hosts have had their turn already
    let plan = world.plan(20).await;
    assert_eq!(plan.len(), 10);
    for planned in plan {
        let at = planned.at.expect("nothing waits for a person");
        world.pass_until(at);
        let leased = world.lease_one().await;
        assert_eq!((leased.url, leased.host), (planned.url, planned.host), "at {at}");
        assert_eq!((leased.priority, leased.due), (planned.priority, planned.due));
        world.complete(ok(leased.token, "x")).await;
    }
}

pub async fn the_plan_keeps_the_share_of_the_oldest(world: World) {
    let mut world = hosts(world.with(delay("1s"))).await;
    world
        .configure([changed_profile("c", "c", |profile| {
            (profile.scope, profile.order) = (Scope::Any, Order::Risk);
        })])
        .await;
    world.find_for("c", HOME, ["https://a.example/archive/old"]).await;
    world.pass("10s");
    let urls: Vec<String> = (0..20).map(|number| format!("https://a.example/zakon/{number}")).collect();
    world.discover(page_of_seed("c", HOME, urls.iter().map(String::as_str))).await;
    for planned in world.plan(15).await {
        world.pass_until(planned.at.unwrap());
        let leased = world.lease_one().await;
        assert_eq!(leased.url, planned.url);
        world.complete(ok(leased.token, "x")).await;
    }
}

pub async fn the_plan_says_what_each_waits_for(world: World) {
    let mut world = hosts(world.with(delay("10s"))).await;
    world.find_for("c", HOME, ["https://a.example/1", "https://a.example/2"]).await;
    let start = world.moment();
    let told = |plan: Vec<crate::verbs::Planned>| -> Vec<(Option<Moment>, Option<WaitsFor>)> {
        plan.into_iter().map(|planned| (planned.at, planned.waits_for)).collect()
    };
    let later = world.later("10s");
    assert_eq!(told(world.plan(9).await), [(Some(start), None), (Some(later), Some(WaitsFor::Others))]);
    let leased = world.lease_one().await;
    assert_eq!(told(world.plan(9).await), [(Some(later), Some(WaitsFor::Host))]);
    let due = world.complete(ok(leased.token, "x")).await.due;
    assert_eq!(told(world.plan(9).await), [(Some(later), Some(WaitsFor::Host)), (due, Some(WaitsFor::Due))]);
    let never = HostSettings { blocked_until: Some(Moment::NEVER), ..HostSettings::default() };
    world.set_host("a.example", never).await;
    let plan = world.plan(9).await;
    assert!(!plan.is_empty() && plan.iter().all(|planned| planned.at.is_none()), "{plan:?}");
}

pub async fn the_plan_may_be_about_one_collection_or_host(world: World) {
    let mut world = mixed(world).await;
    let plan = |collection: Option<&str>, host: Option<&str>, limit| PlanFilter {
        collection: collection.map(Into::into),
        host: host.map(Into::into),
        limit,
    };
    for (filter, want) in [
        (plan(None, None, 9), 3),
        (plan(None, None, 2), 2),
        (plan(Some("c"), None, 9), 2),
        (plan(Some("d"), None, 9), 1),
        (plan(None, Some("b.example"), 9), 1),
        (plan(Some("d"), Some("b.example"), 9), 0),
        (plan(None, None, 0), 0),
    ] {
        let planned = world.frontier().plan(&filter, world.now).await.unwrap();
        assert_eq!(planned.len(), want, "{filter:?}");
    }
}

pub async fn the_plan_knows_what_is_stopped(world: World) {
    let mut world = hosts(world).await;
    world.find_for("c", HOME, ["https://a.example/1"]).await;
    world.configure([Change::EnableCollection("c".into(), false)]).await;
    let plan = world.plan(9).await;
    assert!(
        plan.iter().all(|planned| planned.at != Some(world.moment())),
        "nothing is handed out now: {plan:?}"
    );
}

pub async fn the_log_is_read_from_a_position_on(world: World) {
    let mut world = hosts(world).await;
    world.find_for("c", HOME, ["https://a.example/1"]).await;
    for content in ["a", "b", "c", "d"] {
        let due = world.the_entry("c", "https://a.example/1").await.due;
        world.pass_until(due.max(world.moment()));
        world.fetch(content).await;
    }
    world.reopen();
    let all = world.events().await;
    let positions: Vec<u64> = all.iter().map(|event| event.position).collect();
    assert_eq!(positions, [0, 1, 2]);
    assert!(matches!(&all[2].event, Event::Changed { to: Some(to), .. } if to == "d"));
    let frontier = world.frontier();
    assert_eq!(frontier.events(1, 99).await.unwrap(), all[1..]);
    assert_eq!(frontier.events(1, 1).await.unwrap(), all[1..2]);
    assert_eq!(frontier.events(3, 99).await.unwrap(), []);
    assert_eq!(frontier.events(0, 0).await.unwrap(), []);
}
