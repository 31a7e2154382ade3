//! What clients say that plan by themselves.

use std::collections::BTreeSet;

use forager_core::order::Order;

use super::World;
use super::world::*;
use crate::catalog::Change;
use crate::entry::State;
use crate::host::{Gate, HostSettings, Setting};
use crate::moment::Moment;
use crate::verbs::{
    Action, Action::*, Event, HostChange, HostFilter, HostView, Item, LeaseRequest, ListFilter, Nothing,
    Purge, Purged, Put, Word,
};

async fn plain(mut world: World) -> World {
    world.configure([unplanned("p")]).await;
    world
}

fn item(url: &str, key: &str, word: Word) -> Item {
    Item { url: url.into(), key: Some(key.into()), word, ..Item::default() }
}

pub(super) async fn put(world: &mut World, collection: &str, items: &[Item]) -> Vec<Action> {
    let put = Put { collection: collection.into(), items: items.to_vec() };
    let told = world.frontier().put(&[put], world.now).await.unwrap();
    told.into_iter().map(|told| told.action).collect()
}

async fn queue(world: &mut World, key: &str) -> Option<HostView> {
    let filter =
        HostFilter { collection: Some("p".into()), key: Some(key.into()), limit: 9, ..HostFilter::default() };
    world.frontier().hosts(&filter, world.now).await.unwrap().pop()
}

async fn urls(world: &mut World, request: &LeaseRequest) -> Vec<String> {
    world.ask(request).await.leased.into_iter().map(|leased| leased.url).collect()
}

fn metadata(text: &str, item: Item) -> Item {
    Item { metadata: Some(text.into()), ..item }
}

pub async fn what_is_said_of_a_url_holds_whatever_was_before(world: World) {
    let mut world = plain(world).await;
    let (later, long_ago) = (world.later("1h"), Moment::from_second(10));
    // What there is before, what is said, what becomes of it, and how the entry stands.
    let cases: [(Option<Word>, Word, Action, State, Moment); 9] = [
        (None, Word::Found, Added, State::Queued, world.moment()),
        (None, Word::Due(later), Added, State::Queued, later),
        (None, Word::Done, Added, State::Done, world.moment()),
        (Some(Word::Due(later)), Word::Found, Kept, State::Queued, later),
        (Some(Word::Done), Word::Found, Kept, State::Done, world.moment()),
        (Some(Word::Found), Word::Due(long_ago), Improved, State::Queued, long_ago),
        (Some(Word::Done), Word::Due(later), Improved, State::Queued, later),
        (Some(Word::Due(later)), Word::Done, Improved, State::Done, world.moment()),
        (Some(Word::Done), Word::Done, Improved, State::Done, world.moment()),
    ];
    for (number, (before, word, action, ..)) in cases.iter().enumerate() {
        let url = number.to_string();
        if let Some(before) = before {
            put(&mut world, "p", &[metadata("before", item(&url, "k", *before))]).await;
        }
        assert_eq!(put(&mut world, "p", &[item(&url, "k", *word)]).await, [*action], "case {number}");
    }
    world.reopen();
    for (number, (before, word, _, state, due)) in cases.iter().enumerate() {
        let entry = world.the_entry("p", &number.to_string()).await;
        assert_eq!((entry.state, entry.due), (*state, *due), "case {number}");
        let stays = before.is_some() && *word == Word::Found;
        let metadata = stays.then(|| "before".into());
        assert_eq!(entry.record.origin.metadata, metadata, "case {number}: wholesale, or not at all");
    }
    let view = queue(&mut world, "k").await.unwrap();
    assert_eq!((view.queued, view.done, view.fetched), (5, 4, 4), "no entry counts twice");
    world.counts_equal_a_scan("p").await;
}

pub async fn what_is_said_is_in_the_log_once_for_a_collection(world: World) {
    let mut world = plain(world).await;
    world.configure([unplanned("q")]).await;
    let later = world.later("10m");
    let of = |collection: &str, items: &[Item]| Put { collection: collection.into(), items: items.to_vec() };
    let calls = [
        vec![
            of("p", &[item("", "k", Word::Found), item("a", "k", Word::Found), item("b", "k", Word::Done)]),
            of("q", &[item("c", "k", Word::Due(later))]),
            of("p", &[item("a", "k", Word::Done), item("d", "k", Word::Found)]),
            of("nowhere", &[item("e", "k", Word::Found)]),
        ],
        vec![of("p", &[item("a", "k", Word::Found)])],
        vec![of("q", &[item("c", "k", Word::Done)])],
    ];
    for puts in &calls {
        world.frontier().put(puts, world.now).await.unwrap();
        world.reopen();
    }
    let events = world.events().await;
    let told: Vec<_> =
        events.iter().map(|row| (row.collection.as_str(), row.subject.as_str(), &row.event)).collect();
    let want = [
        ("p", "a", &Event::Put { added: 3, changed: 1, done: 2 }),
        ("q", "c", &Event::Put { added: 1, changed: 0, done: 0 }),
        ("q", "c", &Event::Put { added: 0, changed: 1, done: 1 }),
    ];
    assert_eq!(told, want, "what changes nothing is not told");
}

pub async fn a_word_ends_the_lease(world: World) {
    let mut world = plain(world).await;
    let found = ["a", "b", "c"].map(|url| item(url, "k", Word::Found));
    put(&mut world, "p", &found).await;
    let leased = world.lease(3).await;
    let later = world.later("10m");
    let said = [item("a", "k", Word::Done), item("b", "k", Word::Due(later)), item("c", "k", Word::Found)];
    assert_eq!(put(&mut world, "p", &said).await, [Improved, Improved, Kept]);
    world.reopen();
    assert_eq!(queue(&mut world, "k").await.unwrap().in_flight, 1, "that of what was only found stays");
    assert_eq!(world.the_entry("p", "b").await.last_fetch, Some(world.moment()));
    let done = world.complete(ok(leased[0].token, "x")).await;
    assert_eq!(done.outcome, crate::verbs::Outcome::Refused, "the lease is over");
    world.pass("10m");
    assert_eq!(urls(&mut world, &up_to(9)).await, ["c", "b"]);
}

pub async fn what_has_no_collection_or_key_is_told_so(world: World) {
    let mut world = plain(world).await;
    let long = "ü".repeat(256);
    let items = [
        Item { url: "https://x.example/a".into(), ..Item::default() },
        Item { url: "/path".into(), ..Item::default() },
        item("", "k", Word::Done),
        item("u", &long, Word::Found),
        item("u", &"ü".repeat(255), Word::Found),
        item("u\0", "k", Word::Found),
        item("u", "k\0", Word::Due(Moment::ZERO)),
    ];
    assert_eq!(
        put(&mut world, "p", &items).await,
        [Added, Invalid, Invalid, Invalid, Added, Invalid, Invalid]
    );
    assert_eq!(queue(&mut world, "k\0").await, None);
    let keyed = LeaseRequest { host: Some("k\0".into()), ..up_to(1) };
    assert_eq!(urls(&mut world, &keyed).await, [""; 0]);
    assert_eq!(world.frontier().remove("p", Some("k\0"), world.now).await.unwrap(), 0);
    assert_eq!(queue(&mut world, "x.example").await.unwrap().queued, 1);
    assert_eq!(put(&mut world, "nowhere", &items).await, [Ignored; 7]);
}

pub async fn a_lease_keeps_to_so_many_hosts_and_passes_over_busy_ones(world: World) {
    let mut world = plain(world).await;
    for key in ["a", "b", "c"] {
        let items = ["1", "2", "3"].map(|url| item(url, key, Word::Found));
        put(&mut world, "p", &items).await;
    }
    let two = LeaseRequest { hosts: 2, per_host: 2, ..up_to(9) };
    let leased = world.ask(&two).await.leased;
    let hosts: Vec<&str> = leased.iter().map(|leased| leased.host.as_str()).collect();
    assert_eq!(hosts, ["a", "a", "b", "b"]);
    world.pass("5s");
    let idle = LeaseRequest { busy_at: 2, per_host: 2, ..up_to(9) };
    let leased = world.ask(&idle).await.leased;
    assert!(leased.iter().all(|leased| leased.host == "c"), "a and b have two under way");
    assert_eq!(leased.len(), 2);
}

pub async fn a_delay_holds_for_the_last_hand_out_too(world: World) {
    let mut world = plain(world).await;
    put(&mut world, "p", &["1", "2", "3", "4"].map(|url| item(url, "k", Word::Found))).await;
    world.configure([Change::SetPlainDelay(interval("0s"))]).await;
    let one = up_to(1);
    assert_eq!(urls(&mut world, &one).await, ["1"]);
    assert_eq!(urls(&mut world, &one).await, ["2"], "no delay in general");
    let set = |setting| HostChange {
        key: "k".into(),
        collection: Some("p".into()),
        sets: vec![setting],
        only_known: true,
    };
    let slow = set(Setting::Delay(Some(interval("5m"))));
    world.frontier().set_hosts(&[slow], world.now).await.unwrap();
    world.reopen();
    assert_eq!(urls(&mut world, &one).await, [""; 0], "its own delay goes before the general one");
    world.pass("4m");
    let quick = set(Setting::Delay(Some(interval("1m"))));
    world.frontier().set_hosts(&[quick], world.now).await.unwrap();
    assert_eq!(urls(&mut world, &one).await, ["3"], "the wait is shorter at once");
    world.frontier().set_hosts(&[set(Setting::Delay(None))], world.now).await.unwrap();
    assert_eq!(urls(&mut world, &one).await, ["4"], "the general one again");
}

pub async fn another_general_delay_holds_for_the_last_hand_out_too(world: World) {
    let mut world = plain(world).await;
    put(&mut world, "p", &["1", "2", "3"].map(|url| item(url, "k", Word::Found))).await;
    put(&mut world, "p", &["1", "2"].map(|url| item(url, "own", Word::Found))).await;
    let change = HostChange {
        key: "own".into(),
        collection: Some("p".into()),
        sets: vec![Setting::Delay(Some(interval("10m")))],
        only_known: true,
    };
    world.frontier().set_hosts(&[change], world.now).await.unwrap();
    let one_of_each = LeaseRequest { per_host: 1, ..up_to(9) };
    let delay = |text: &str| Change::SetPlainDelay(interval(text));
    world.configure([delay("5m")]).await;
    assert_eq!(urls(&mut world, &one_of_each).await, ["1", "1"]);
    world.pass("2s");
    world.configure([delay("1s")]).await;
    world.reopen();
    assert_eq!(urls(&mut world, &one_of_each).await, ["2"], "its own delay stays");
    world.configure([delay("5m")]).await;
    world.pass("2s");
    assert_eq!(urls(&mut world, &one_of_each).await, [""; 0]);
}

pub async fn a_general_delay_is_for_whoever_hands_out_from_plain_collections(world: World) {
    let mut world = plain(world).await;
    world.configure([Change::SetPlainDelay(interval("5m"))]).await;
    world.reopen();
    put(&mut world, "p", &["1", "2"].map(|url| item(url, "k", Word::Found))).await;
    let leased = world.ask(&up_to(1)).await.leased;
    assert_eq!(leased[0].terms.least_gap, 5 * 60 * 1000, "who fetches it is told");
    let until = world.later("5m");
    let nothing = world.ask(&up_to(1)).await.nothing;
    assert_eq!(nothing, Some(Nothing::Throttled { until, gate: Gate::Delay }));
    let planned = world.plan(9).await;
    assert_eq!(planned.iter().map(|planned| planned.at).collect::<Vec<_>>(), [Some(until)]);
    let explanation = world.frontier().explain("p", None, "2", world.now).await.unwrap();
    assert_eq!(explanation.general_delay, Some(interval("5m")));
    // One that has a delay of its own, or profiles, goes by that.
    let own = HostChange {
        key: "k".into(),
        collection: Some("p".into()),
        sets: vec![Setting::Delay(Some(interval("1m")))],
        only_known: true,
    };
    world.frontier().set_hosts(&[own], world.now).await.unwrap();
    let explanation = world.frontier().explain("p", None, "2", world.now).await.unwrap();
    assert_eq!(explanation.general_delay, None);
    world.harvest("c", Order::Fifo, "https://c.example/").await;
    world.start_seed("https://c.example/").await;
    let leased = world.lease(1).await;
    assert!(leased[0].terms.least_gap < 5 * 60 * 1000, "{:?}", leased[0].terms);
}

pub async fn a_lease_keeps_to_so_many_bytes(world: World) {
    let mut world = plain(world).await;
    let large = "m".repeat(100);
    put(&mut world, "p", &["1", "2", "3", "4"].map(|url| metadata(&large, item(url, "k", Word::Found))))
        .await;
    let some = LeaseRequest { bytes: 150, ..up_to(9) };
    assert_eq!(urls(&mut world, &some).await, ["1", "2"], "the one that goes over it is the last");
}

pub async fn what_is_set_leaves_the_rest_and_makes_no_queue(world: World) {
    let mut world = plain(world).await;
    put(&mut world, "p", &[item("u", "k", Word::Found)]).await;
    let change = |key: &str, sets: Vec<Setting>| HostChange {
        key: key.into(),
        collection: Some("p".into()),
        sets,
        only_known: true,
    };
    let until = world.later("1h");
    let changes = [
        change("k", vec![Setting::BlockedUntil(Some(until))]),
        change("nobody", vec![Setting::FetchLimit(Some(1))]),
        change("k", vec![Setting::FetchLimit(Some(7))]),
    ];
    let views = world.frontier().set_hosts(&changes, world.now).await.unwrap();
    assert_eq!(views.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
    world.reopen();
    assert_eq!(queue(&mut world, "nobody").await, None);
    let settings = queue(&mut world, "k").await.unwrap().settings;
    let both = HostSettings { blocked_until: Some(until), fetch_limit: Some(7), ..HostSettings::default() };
    assert_eq!(settings, both);
    assert_eq!(world.lease(1).await, []);
}

pub async fn a_limit_goes_by_what_is_done(world: World) {
    let mut world = plain(world).await;
    put(&mut world, "p", &["1", "2", "3"].map(|url| item(url, "k", Word::Found))).await;
    let change = HostChange {
        key: "k".into(),
        collection: Some("p".into()),
        sets: vec![Setting::FetchLimit(Some(1))],
        only_known: true,
    };
    world.frontier().set_hosts(&[change], world.now).await.unwrap();
    put(&mut world, "p", &[item("1", "k", Word::Done)]).await;
    assert_eq!(world.lease(9).await, []);
    let due = Word::Due(world.moment());
    put(&mut world, "p", &[item("1", "k", due)]).await;
    assert_eq!(world.lease(9).await.len(), 3, "it is to be fetched again, so that it does not count");
}

pub async fn what_is_under_way_counts_for_no_limit_of_clients(world: World) {
    let mut world = plain(world).await;
    let urls = ["1", "2", "3", "4"];
    put(&mut world, "p", &urls.map(|url| item(url, "k", Word::Found))).await;
    let change = HostChange {
        key: "k".into(),
        collection: Some("p".into()),
        sets: vec![Setting::FetchLimit(Some(2))],
        only_known: true,
    };
    world.frontier().set_hosts(&[change], world.now).await.unwrap();
    world.reopen();
    assert_eq!(world.lease(4).await.len(), 4, "none is done");
}

pub async fn a_page_of_a_listing_keeps_to_so_many_bytes(world: World) {
    let mut world = plain(world).await;
    let large = "m".repeat(100);
    put(&mut world, "p", &["1", "2", "3"].map(|url| metadata(&large, item(url, "k", Word::Found)))).await;
    for (contains, want) in [(None, [vec!["1", "2"], vec!["3"]]), (Some("3"), [vec![], vec!["3"]])] {
        let contains = contains.map(str::to_owned);
        let mut filter = ListFilter { bytes: Some(150), limit: 9, contains, ..ListFilter::default() };
        let mut pages = Vec::new();
        loop {
            let page = world.frontier().list(&filter, world.now).await.unwrap();
            pages.push(page.entries.into_iter().map(|entry| entry.url).collect::<Vec<_>>());
            let Some(next) = page.next else { break };
            filter.after = Some(next);
        }
        assert_eq!(pages, want, "the one that goes over it is the last; {:?}", filter.contains);
    }
}

pub async fn what_clients_have_stopped_waits_and_is_explained(world: World) {
    let mut world = plain(world).await;
    put(&mut world, "p", &[item("https://k/", "k", Word::Found)]).await;
    world.harvest("c", Order::Fifo, "https://c.example/").await;
    world.start_seed("https://c.example/").await;
    for (is_active, verdict) in [(false, "queued; not handed out now"), (true, "next at its host")] {
        world.configure([Change::SetActive(is_active)]).await;
        world.reopen();
        for (collection, url) in [("p", "https://k/"), ("c", "https://c.example/")] {
            let explanation = world.frontier().explain(collection, None, url, world.now).await.unwrap();
            assert_eq!(explanation.verdict, verdict, "{collection}, active: {is_active}");
            let is_named = explanation.would_need.iter().any(|need| need.contains("SetActive"));
            assert_eq!(is_named, !is_active, "{:?}", explanation.would_need);
        }
        let planned = world.plan(9).await;
        assert!(planned.iter().all(|planned| planned.at.is_some() == is_active), "{planned:?}");
        let answer = world.ask(&up_to(9)).await;
        assert_eq!(answer.leased.len(), if is_active { 2 } else { 0 });
        let nothing = (!is_active).then_some(Nothing::Blocked { until: None });
        assert_eq!(answer.nothing, nothing, "it waits for somebody");
    }
}

pub async fn only_active_hosts_are_listed_on_request(world: World) {
    let mut world = plain(world).await;
    let items = [("a", Word::Found), ("b", Word::Done), ("c", Word::Found), ("d", Word::Found)];
    put(&mut world, "p", &items.map(|(key, word)| item("u", key, word))).await;
    let block = HostChange {
        key: "c".into(),
        collection: Some("p".into()),
        sets: vec![Setting::BlockedUntil(Some(Moment::NEVER))],
        only_known: true,
    };
    world.frontier().set_hosts(&[block], world.now).await.unwrap();
    let only_d = LeaseRequest { host: Some("d".into()), ..up_to(1) };
    world.ask(&only_d).await;
    let filter = |is_active, skip| HostFilter {
        collection: Some("p".into()),
        is_active,
        skip,
        limit: 9,
        ..HostFilter::default()
    };
    for (is_active, skip, expected) in
        [(false, 0, vec!["a", "b", "c", "d"]), (true, 0, vec!["a", "d"]), (true, 1, vec!["d"])]
    {
        let views = world.frontier().hosts(&filter(is_active, skip), world.now).await.unwrap();
        let hosts: Vec<&str> = views.iter().map(|view| view.host.as_str()).collect();
        assert_eq!(hosts, expected, "active {is_active}, from {skip} on");
    }
    let stats = world.stats("p").await;
    assert_eq!((stats.hosts, stats.active_hosts), (4, 3), "one that is blocked has something that waits");
}

pub async fn a_queue_that_is_removed_leaves_nothing(world: World) {
    let mut world = plain(world).await;
    put(&mut world, "p", &["1", "2"].map(|url| item(url, "k", Word::Found))).await;
    put(&mut world, "p", &[item("1", "other", Word::Found), item("3", "k", Word::Done)]).await;
    world.lease(1).await;
    assert_eq!(world.frontier().remove("p", Some("k"), world.now).await.unwrap(), 3);
    assert_eq!(world.frontier().remove("p", Some("k"), world.now).await.unwrap(), 0);
    world.reopen();
    assert_eq!(queue(&mut world, "k").await, None);
    assert_eq!(world.stats("p").await.hosts, 1, "the other queue stays");
    assert_eq!(put(&mut world, "p", &[item("1", "k", Word::Found)]).await, [Added]);
    let of_k = LeaseRequest { host: Some("k".into()), ..up_to(9) };
    assert_eq!(urls(&mut world, &of_k).await, ["1"], "neither delay nor lease is left");
    world.counts_equal_a_scan("p").await;
}

pub async fn a_collection_is_removed_with_all_it_has(world: World) {
    let mut world = plain(world).await;
    put(&mut world, "p", &[item("1", "k", Word::Found), item("2", "l", Word::Done)]).await;
    assert_eq!(world.frontier().remove("p", None, world.now).await.unwrap(), 2);
    assert_eq!(world.frontier().remove("p", None, world.now).await.unwrap(), 0);
    assert!(world.frontier().catalog().await.unwrap().collection("p").is_none());
    world.harvest("c", Order::Hierarchy, "https://x.example/").await;
    world.start_seed("https://x.example/").await;
    assert_eq!(world.frontier().remove("c", None, world.now).await.unwrap(), 1);
    world.reopen();
    assert!(world.frontier().catalog().await.unwrap().collection("c").is_some(), "its profiles stay");
    assert_eq!(world.stats("c").await.queued, 0);
}

pub async fn what_a_client_says_is_done_counts_as_done_and_not_as_fetched(world: World) {
    let mut world = plain(world).await;
    let url = "https://k/";
    put(&mut world, "p", &[item(url, "k", Word::Done)]).await;
    let told = world.explain("p", url).await;
    assert_eq!(told.verdict, "done, as a client has said");
    assert_eq!(told.would_need, ["a client has to say when it is to be handed out again"]);
    let due = Word::Due(world.moment());
    put(&mut world, "p", &[item(url, "k", due)]).await;
    assert_eq!(urls(&mut world, &up_to(1)).await, [url], "and then it is");
}

pub async fn what_was_set_for_a_shared_host_goes_with_its_last_queue(world: World) {
    let (mut world, key) = (world.with(delay("10s")), "x.example");
    for (collection, seed) in [("c", "https://x.example/"), ("d", "https://x.example/d")] {
        world.harvest(collection, Order::Fifo, seed).await;
        world.start_seed(seed).await;
    }
    let of_d = LeaseRequest { collection: Some("d".into()), ..up_to(1) };
    assert_eq!(urls(&mut world, &of_d).await, ["https://x.example/d"]);
    let open = world.later("10s");
    let by_us = HostSettings { in_flight: Some(3), ..HostSettings::default() };
    let (block, limit) = (Some(Moment::NEVER), Some(1));
    let all = HostSettings {
        delay: Some(interval("15m")),
        blocked_until: block,
        fetch_limit: limit,
        ..by_us.clone()
    };
    world.set_host(key, all.clone()).await;
    assert_eq!(world.frontier().remove("c", Some(key), world.now).await.unwrap(), 1);
    world.reopen();
    assert_eq!(world.host(key).await.settings, all, "the other collection has a queue there");
    assert_eq!(world.frontier().remove("d", None, world.now).await.unwrap(), 1);
    world.reopen();
    let host = world.host(key).await;
    assert_eq!(host.settings, by_us, "what clients cannot set stays");
    assert_eq!(
        (host.opens, host.gate),
        (Some(open), Some(Gate::Delay)),
        "it waits as others do, and no less"
    );
    world.start_seed("https://x.example/").await;
    assert_eq!(world.lease(1).await, []);
    world.pass("10s");
    assert_eq!(world.lease(1).await.len(), 1);
}

pub async fn a_collection_steers_only_hosts_that_it_has_a_queue_at(world: World) {
    let mut world = world;
    for (collection, seed) in [("c", "https://x.example/"), ("d", "https://y.example/")] {
        world.harvest(collection, Order::Fifo, seed).await;
        world.start_seed(seed).await;
    }
    let by_c = |key: &str| HostChange {
        key: key.into(),
        collection: Some("c".into()),
        sets: vec![Setting::FetchLimit(Some(7))],
        only_known: true,
    };
    let both = [by_c("y.example"), by_c("x.example")];
    let views = world.frontier().set_hosts(&both, world.now).await.unwrap();
    assert_eq!(views.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
    world.reopen();
    for (key, limit) in [("x.example", Some(7)), ("y.example", None)] {
        assert_eq!(world.host(key).await.settings.fetch_limit, limit, "{key}");
    }
    let (before, also) = (Moment::NEVER, BTreeSet::new());
    let purge = Purge { collection: "c".into(), key: None, before, also, after: None, limit: 9 };
    assert_eq!(world.frontier().purge(&purge, world.now).await.unwrap().removed, 1);
    let views = world.frontier().set_hosts(&[by_c("x.example")], world.now).await.unwrap();
    assert_eq!(views, [None], "it has nothing there any more");
    let everybody = HostChange { only_known: false, ..by_c("x.example") };
    assert!(world.frontier().set_hosts(&[everybody], world.now).await.is_err(), "the host is not its own");
}

pub async fn a_purge_takes_what_is_old_and_leaves_the_queue(world: World) {
    let mut world = plain(world).await;
    put(&mut world, "p", &[item("old", "k", Word::Found), item("old too", "l", Word::Done)]).await;
    world.pass("1 day");
    put(&mut world, "p", &[item("new", "k", Word::Done), item("old", "k", Word::Done)]).await;
    let purge = |key: Option<&str>, before, limit, after| Purge {
        collection: "p".into(),
        key: key.map(str::to_owned),
        before,
        also: BTreeSet::new(),
        after,
        limit,
    };
    let now = world.moment();
    let run =
        async |world: &mut World, purge: Purge| world.frontier().purge(&purge, world.now).await.unwrap();
    assert_eq!(run(&mut world, purge(Some("m"), now, 9, None)).await, Purged::default());
    let first = run(&mut world, purge(None, now, 1, None)).await;
    assert_eq!((first.removed, first.next.is_some()), (1, true));
    let rest = run(&mut world, purge(None, now, 9, first.next)).await;
    assert_eq!(rest, Purged { removed: 1, next: None });
    world.reopen();
    let view = queue(&mut world, "k").await.unwrap();
    assert_eq!((view.queued, view.done, view.fetched), (0, 1, 1));
    assert_eq!(queue(&mut world, "l").await.unwrap().done, 0, "an empty queue stays");
    assert_eq!(world.stats("p").await.hosts, 2);
}

pub async fn a_purge_takes_what_is_named_however_young_and_nothing_made_since(world: World) {
    let mut world = plain(world).await;
    let urls = ["1", "2", "3"].map(|url| item(url, "k", Word::Found));
    put(&mut world, "p", &urls).await;
    let of_p = || ListFilter { collection: Some("p".into()), ..ListFilter::default() };
    let there = world.list(of_p()).await.iter().map(|entry| entry.id).collect();
    let (before, key) = (world.moment(), Some("k".into()));
    let mut purge = Purge { collection: "p".into(), key, before, also: there, after: None, limit: 2 };
    let first = world.frontier().purge(&purge, world.now).await.unwrap();
    assert_eq!((first.removed, first.next.is_some()), (2, true));
    assert_eq!(put(&mut world, "p", &urls).await, [Added, Added, Kept], "those are new again");
    (purge.after, purge.limit) = (first.next, 9);
    assert_eq!(world.frontier().purge(&purge, world.now).await.unwrap(), Purged { removed: 1, next: None });
    let left: Vec<String> = world.list(of_p()).await.into_iter().map(|entry| entry.url).collect();
    assert_eq!(left, ["1", "2"]);
    world.counts_equal_a_scan("p").await;
}

pub async fn an_entry_is_found_in_one_queue(world: World) {
    let mut world = plain(world).await;
    let url = "https://x.example/";
    put(&mut world, "p", &[item(url, "a", Word::Found), item(url, "b", Word::Done)]).await;
    for (key, state) in [("a", Some(State::Queued)), ("b", Some(State::Done)), ("c", None)] {
        let entry = world.frontier().entry("p", Some(key), url, world.now).await.unwrap();
        assert_eq!(entry.map(|entry| entry.state), state, "{key}");
        let told = world.frontier().explain("p", Some(key), url, world.now).await.unwrap();
        assert_eq!((told.forms.host.as_str(), told.entry.map(|entry| entry.state)), (key, state));
        assert_eq!(told.other_keys, [""; 0], "{key}: it was named");
    }
    put(&mut world, "p", &[item(url, "x.example", Word::Found)]).await;
    let told = world.explain("p", url).await;
    assert_eq!(told.forms.host, "x.example", "the key that it has by itself goes before others");
    assert_eq!(told.other_keys, ["a", "b"]);
    assert_eq!(world.explain("p", "never.example").await.other_keys, [""; 0]);
}

pub async fn letters_may_be_the_same_in_a_search(world: World) {
    let mut world = plain(world).await;
    put(&mut world, "p", &["Straße/A", "strasse/b", "STRAẞE/c"].map(|url| item(url, "k", Word::Found))).await;
    for (any_case, expected) in [(false, 1), (true, 2)] {
        let filter = ListFilter { contains: Some("Straße".into()), any_case, ..ListFilter::default() };
        assert_eq!(world.list(filter).await.len(), expected, "any case: {any_case}");
    }
    let of_key = ListFilter { collection: Some("p".into()), host: Some("l".into()), ..ListFilter::default() };
    assert_eq!(world.list(of_key).await, []);
}
