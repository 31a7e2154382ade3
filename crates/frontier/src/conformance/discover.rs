//! Links that were found: queued, merged with what is known, or turned away.

use forager_core::order::Order;
use forager_core::scope::Profile;
use forager_core::scope::extent::Kind as Scope;

use super::World;
use super::world::*;
use crate::catalog::Change;
use crate::entry::{How, State};
use crate::moment::Moment;
use crate::verbs::{Action, Action::*, Link, ListFilter, Page};

const HOME: &str = "https://a.example/";

async fn site(mut world: World) -> World {
    world.harvest("c", Order::Hierarchy, HOME).await;
    world.start_seed(HOME).await;
    world
}

pub async fn a_new_link_is_added_and_a_known_one_kept(world: World) {
    let mut world = site(world).await;
    assert_eq!(world.find("c", HOME, ["https://a.example/x"]).await, [Added]);
    assert_eq!(world.find("c", HOME, ["https://a.example/x"]).await, [Kept]);
    assert_eq!(world.stats("c").await.queued, 2);
}

pub async fn answers_come_in_the_order_of_the_links_and_pages(world: World) {
    let mut world = site(world).await;
    let pages = [
        page("c", HOME, ["https://a.example/1", "mailto:x", "https://b.example/"]),
        page("nowhere", HOME, ["https://a.example/1"]),
        page("c", HOME, ["https://a.example/1", "https://a.example/2"]),
    ];
    let answers = world.frontier().discover(&pages, world.now).await.unwrap();
    let actions: Vec<Action> = answers.iter().map(|answer| answer.action).collect();
    assert_eq!(actions, [Added, Invalid, Ignored, Ignored, Kept, Added]);
}

pub async fn a_host_that_has_its_fill_gets_no_more(mut world: World) {
    let few = |profile: &mut Profile| {
        profile.scope = Scope::Any;
        profile.traps.max_per_host = 2;
    };
    world.configure([planned("c"), profile("c", "c", few), seed(HOME, ["c"])]).await;
    world.start_seed(HOME).await;
    let urls = ["https://a.example/1", "https://a.example/2", "https://b.example/", "https://a.example/1"];
    let found = world.discover(page_of_seed("c", HOME, urls)).await;
    let actions: Vec<Action> = found.iter().map(|found| found.action).collect();
    assert_eq!(actions, [Added, Ignored, Added, Kept]);
    assert_eq!(&*found[1].rule, "trap: more than 2 URLs of one host");
}

pub async fn a_link_that_stands_twice_in_a_batch_is_one_entry(world: World) {
    let mut world = site(world).await;
    let twice = ["https://a.example/x", "HTTPS://A.EXAMPLE:443/x#part", "https://a.example/./x"];
    assert_eq!(world.find("c", HOME, twice).await, [Added, Kept, Kept]);
    let urls = world
        .list_urls(ListFilter { prefix: Some("https://a.example/x".into()), ..Default::default() })
        .await;
    assert_eq!(urls, ["https://a.example/x"]);
}

pub async fn of_links_that_stand_twice_in_a_batch_the_best_counts(world: World) {
    let mut world = site(world).await;
    let in_header = Link { in_header: true, ..link("https://a.example/x") };
    let links = vec![link("https://a.example/x"), in_header];
    let found = world.discover(Page { links, ..page("c", HOME, []) }).await;
    assert_eq!([found[0].action, found[1].action], [Added, Improved]);
    assert_eq!(world.priority("c", "https://a.example/x").await, 900);
}

pub async fn what_is_no_web_url_is_invalid_and_told_why(world: World) {
    let mut world = site(world).await;
    let long = format!("https://a.example/{}", "x".repeat(70_000));
    let cases = [
        ("", "not an absolute URL"),
        ("/relative", "not an absolute URL"),
        ("mailto:a@a.example", "not an http or https URL"),
        ("https://", "not an absolute URL"),
        (long.as_str(), "too long"),
    ];
    for (url, why) in cases {
        let found = world.discover(page("c", HOME, [url])).await;
        assert_eq!(found[0].action, Invalid, "{url}");
        assert!(found[0].rule.contains(why), "{url}: {}", found[0].rule);
    }
    assert_eq!(world.stats("c").await.queued, 1, "nothing but the seed");
}

pub async fn out_of_scope_is_ignored_and_the_rule_is_named(mut world: World) {
    let narrow = |profile: &mut forager_core::scope::Profile| {
        profile.depth = Some(1);
        profile.exclude = vec!["logout".into()];
    };
    world.configure([planned("c"), profile("p", "c", narrow), seed(HOME, ["p"])]).await;
    world.start_seed(HOME).await;
    let cases = [
        (HOME, "https://b.example/", Ignored, "not in scope domain"),
        (HOME, "https://a.example/logout", Ignored, "excluded by logout"),
        (HOME, "https://www.a.example/x", Added, "in scope (p: scope domain)"),
        (HOME, "https://a.example/1", Added, "in scope (p: scope domain)"),
        ("https://a.example/1", "https://a.example/2", Ignored, "deeper than 1"),
    ];
    for (source, url, action, why) in cases {
        let found = world.discover(page("c", source, [url])).await;
        assert_eq!(found[0].action, action, "{url}: {}", found[0].rule);
        assert!(found[0].rule.contains(why), "{url}: {}", found[0].rule);
    }
}

pub async fn the_source_page_gives_seed_depth_and_priority(world: World) {
    let mut world = site(world).await;
    world.find("c", HOME, ["https://a.example/1"]).await;
    // What the page says of itself does not count where it is an entry.
    let misled = Page {
        seed: Some("https://b.example/".into()),
        depth: 7,
        ..page("c", "https://a.example/1", ["https://a.example/2"])
    };
    world.discover(misled).await;
    let entry = world.the_entry("c", "https://a.example/2").await;
    assert_eq!((entry.seed.as_deref(), entry.depth, entry.priority.thousandths()), (Some(HOME), 2, 640));
    assert_eq!(entry.source.as_deref(), Some("https://a.example/1"));
    assert_eq!(entry.record.origin.how, How::Link);
}

pub async fn a_source_is_known_by_either_scheme_and_first_by_its_own(world: World) {
    let mut world = site(world).await;
    for (number, source) in
        ["http://a.example/", "a.example", "//A.example/", "HTTP://A.example:80/#top"].into_iter().enumerate()
    {
        let url = format!("https://a.example/{number}");
        assert_eq!(world.find("c", source, [url.as_str()]).await, [Added], "{source}");
        let entry = world.the_entry("c", &url).await;
        assert_eq!((entry.source.as_deref(), entry.depth), (Some(HOME), 1), "{source}");
        assert_eq!(entry.priority.thousandths(), 800, "{source}");
    }
    // A port that is written counts as it is.
    let elsewhere = ["http://a.example:443/", "https://a.example:80/", "a.example:8080/"];
    for source in elsewhere {
        assert_eq!(world.find("c", source, ["https://a.example/x"]).await, [Ignored], "{source}");
    }
    world.find("c", HOME, ["http://a.example/1"]).await;
    for source in ["http://a.example/1", "https://a.example/1"] {
        let url = format!("{source}/beneath");
        world.find("c", source, [url.as_str()]).await;
        assert_eq!(world.the_entry("c", &url).await.source.as_deref(), Some(source));
    }
}

pub async fn a_page_that_is_no_entry_says_its_seed_and_depth_itself(world: World) {
    let mut world = site(world).await;
    let stranger = Page {
        seed: Some(HOME.into()),
        depth: 4,
        ..page("c", "https://a.example/stranger", ["https://a.example/x"])
    };
    assert_eq!(world.discover(stranger).await[0].action, Added);
    let entry = world.the_entry("c", "https://a.example/x").await;
    assert_eq!((entry.seed.as_deref(), entry.depth, entry.source), (Some(HOME), 5, None));
    assert_eq!(entry.priority.thousandths(), 100, "a source that is not known hands nothing on");
}

pub async fn a_page_that_is_no_entry_and_names_no_seed_brings_nothing(world: World) {
    let mut world = site(world).await;
    let found = world.discover(page("c", "https://a.example/stranger", ["https://a.example/x"])).await;
    assert_eq!(found[0].action, Ignored);
    assert!(found[0].rule.contains("seed"), "{}", found[0].rule);
    assert_eq!(world.entry("c", "https://a.example/x").await, None);
}

pub async fn a_collection_that_is_not_there_takes_nothing(world: World) {
    let mut world = site(world).await;
    let found = world.discover(page("nowhere", HOME, ["https://a.example/x", "https://a.example/y"])).await;
    assert_eq!(found.iter().map(|found| found.action).collect::<Vec<_>>(), [Ignored, Ignored]);
    assert!(found[0].rule.contains("collection"), "{}", found[0].rule);
}

pub async fn a_new_entry_is_due_at_once_and_has_no_history(world: World) {
    let mut world = site(world).await;
    world.pass("90s");
    world.find("c", HOME, ["https://a.example/x"]).await;
    let entry = world.the_entry("c", "https://a.example/x").await;
    assert_eq!((entry.state, entry.due, entry.last_fetch), (State::Queued, world.moment(), None));
    assert_eq!((entry.record.origin.created, entry.record.history.len()), (world.moment(), 0));
    assert_eq!((entry.record.velocity, entry.record.scans), (0.5, 0));
}

pub async fn metadata_is_kept_as_it_was_given(world: World) {
    let mut world = site(world).await;
    let metadata = "{\"a\": [1,  2], \"ü\": \"\\u0000\"}";
    let links = vec![Link { metadata: Some(metadata.into()), ..link("https://a.example/x") }];
    world.discover(Page { links, ..page("c", HOME, []) }).await;
    world.reopen();
    let entry = world.the_entry("c", "https://a.example/x").await;
    assert_eq!(entry.record.origin.metadata.as_deref(), Some(metadata));
    let leased = world.lease(2).await;
    assert_eq!(leased[1].metadata.as_deref(), Some(metadata));
}

pub async fn a_rediscovery_only_improves(world: World) {
    let mut world = site(world).await;
    world.find("c", HOME, ["https://a.example/1"]).await;
    world.find("c", "https://a.example/1", ["https://a.example/2"]).await;
    world.find("c", "https://a.example/2", ["https://a.example/x"]).await;
    let first = world.the_entry("c", "https://a.example/x").await;
    assert_eq!((first.depth, first.priority.thousandths()), (3, 512));

    world.pass("1h");
    assert_eq!(world.find("c", "https://a.example/1", ["https://a.example/x"]).await, [Improved], "nearer");
    let second = world.the_entry("c", "https://a.example/x").await;
    assert_eq!((second.depth, second.priority.thousandths()), (2, 640));
    assert_eq!(second.due, first.due, "due no later than it was");
    assert_eq!(second.record.origin, first.record.origin, "how it was first found never changes");

    assert_eq!(world.find("c", "https://a.example/2", ["https://a.example/x"]).await, [Kept], "farther");
    assert_eq!(world.the_entry("c", "https://a.example/x").await, second);
}

pub async fn a_sitemap_raises_the_priority_and_leaves_the_depth(world: World) {
    let mut world = site(world).await;
    let stranger =
        Page { seed: Some(HOME.into()), ..page("c", "https://a.example/stranger", ["https://a.example/x"]) };
    world.discover(stranger.clone()).await;
    let links = vec![Link { how: How::Sitemap, ..link("https://a.example/x") }];
    let deep = Page { links, depth: 8, ..stranger };
    assert_eq!(world.discover(deep).await[0].action, Improved);
    let entry = world.the_entry("c", "https://a.example/x").await;
    assert_eq!((entry.depth, entry.priority.thousandths()), (1, 500));
}

pub async fn a_rediscovery_never_touches_what_was_learned(world: World) {
    let mut world = site(world).await;
    let every = changed_profile("c", "c", |profile| profile.every = Some(interval("1h")));
    world.configure([every]).await;
    world.fetch("one").await;
    let learned = world.the_entry("c", HOME).await;
    world.pass("10m");
    world.find("c", HOME, [HOME]).await;
    let entry = world.the_entry("c", HOME).await;
    assert_eq!((&entry.record, entry.last_fetch), (&learned.record, learned.last_fetch));
    assert!(
        entry.due >= Moment::of(interval("50m").after(world.now)),
        "not before its hour is over: {}",
        entry.due
    );
}

/// Of the last fetch the second is kept, which began before it.
pub async fn a_rediscovery_brings_nothing_forward_within_its_second(world: World) {
    let mut world = site(world).await;
    let every = changed_profile("c", "c", |profile| profile.every = Some(interval("1h")));
    world.configure([every]).await;
    world.pass("600ms");
    let due = world.fetch("content").await.due.unwrap();
    assert!(due >= world.later("1h"), "{due}");
    world.pass("1m");
    world.find_for("c", HOME, [HOME]).await;
    assert_eq!(world.the_entry("c", HOME).await.due, due);
}

pub async fn found_out_of_scope_but_stored_in_scope_is_kept(mut world: World) {
    let shallow = |profile: &mut forager_core::scope::Profile| profile.depth = Some(2);
    world.configure([planned("c"), profile("p", "c", shallow), seed(HOME, ["p"])]).await;
    world.start_seed(HOME).await;
    world.find("c", HOME, ["https://a.example/1"]).await;
    world.find("c", "https://a.example/1", ["https://a.example/2"]).await;
    let found = world.discover(page("c", "https://a.example/2", ["https://a.example/1"])).await;
    assert_eq!((found[0].action, &*found[0].rule), (Kept, "stored depth in scope (p)"));
}

pub async fn found_and_stored_out_of_scope_is_removed(mut world: World) {
    let depth = |limit| move |profile: &mut forager_core::scope::Profile| profile.depth = Some(limit);
    world.configure([planned("c"), profile("p", "c", depth(3)), seed(HOME, ["p"])]).await;
    world.start_seed(HOME).await;
    world.find("c", HOME, ["https://a.example/1"]).await;
    world.find("c", "https://a.example/1", ["https://a.example/2"]).await;
    world.configure([changed_profile("p", "c", depth(1))]).await;
    assert_eq!(world.find("c", "https://a.example/1", ["https://a.example/2"]).await, [Removed]);
    assert_eq!(world.entry("c", "https://a.example/2").await, None);
    assert_eq!(world.stats("c").await.tally.skipped, 1);
    world.counts_equal_a_scan("c").await;
}

pub async fn what_a_worker_has_is_never_removed_under_it(mut world: World) {
    let depth = |limit| move |profile: &mut forager_core::scope::Profile| profile.depth = Some(limit);
    world.configure([planned("c"), profile("p", "c", depth(3)), seed(HOME, ["p"])]).await;
    world.start_seed(HOME).await;
    world.find("c", HOME, ["https://a.example/1"]).await;
    let leased = world.lease(2).await;
    world.configure([changed_profile("p", "c", depth(0))]).await;
    assert_eq!(world.find("c", HOME, ["https://a.example/1"]).await, [Kept]);
    assert_eq!(world.the_entry("c", "https://a.example/1").await.state, State::Leased);
    let done = world.complete(ok(leased[1].token, "x")).await;
    assert_eq!(done.outcome, crate::verbs::Outcome::Removed, "decided when it is reported");
}

pub async fn in_scope_of_disabled_profiles_only_is_added_for_later(world: World) {
    for disable in [
        Change::EnableProfile("c".into(), false),
        Change::EnableSeed(HOME.into(), false),
        Change::EnableCollection("c".into(), false),
    ] {
        let mut world = world.another();
        world.harvest("c", Order::Hierarchy, HOME).await;
        world.start_seed(HOME).await;
        world.configure([disable.clone()]).await;
        assert_eq!(world.find("c", HOME, ["https://a.example/x"]).await, [Added], "{disable:?}");
        assert_eq!(world.the_entry("c", "https://a.example/x").await.due, world.later("1h"), "{disable:?}");
    }
}

pub async fn what_was_fetched_as_often_as_asked_is_kept_out(mut world: World) {
    let once = |profile: &mut forager_core::scope::Profile| profile.length = Some(1);
    world.configure([planned("c"), profile("p", "c", once), seed(HOME, ["p"])]).await;
    world.start_seed(HOME).await;
    world.fetch("x").await;
    assert_eq!(world.the_entry("c", HOME).await.state, State::Done);
    assert_eq!(world.find_for("c", HOME, [HOME]).await, [Kept]);
    assert_eq!(world.the_entry("c", HOME).await.state, State::Done);
}

pub async fn a_url_is_one_entry_in_each_collection(world: World) {
    let mut world = site(world).await;
    world.configure([planned("d"), profile("q", "d", |_| {}), seed("https://a.example/d/", ["q"])]).await;
    world.start_seed("https://a.example/d/").await;
    world.find("c", HOME, ["https://a.example/d/x"]).await;
    assert_eq!(world.find("d", "https://a.example/d/", ["https://a.example/d/x"]).await, [Added]);
    assert_eq!(world.the_entry("c", "https://a.example/d/x").await.seed.as_deref(), Some(HOME));
    assert_eq!(
        world.the_entry("d", "https://a.example/d/x").await.seed.as_deref(),
        Some("https://a.example/d/")
    );
}

pub async fn profiles_say_which_urls_are_one(mut world: World) {
    let loose = |profile: &mut forager_core::scope::Profile| {
        profile.sort_query = true;
        profile.strip_params = vec!["utm_*".into()];
        profile.scope = Scope::Host;
    };
    world.configure([planned("c"), profile("p", "c", loose), seed(HOME, ["p"])]).await;
    world.start_seed(HOME).await;
    let urls = [
        "https://a.example/x?b=2&a=1&utm_source=m",
        "https://a.example/x?a=1&b=2",
        "https://a.example/x?a=1",
    ];
    assert_eq!(world.find("c", HOME, urls).await, [Added, Kept, Added]);
    let entry = world.the_entry("c", "https://a.example/x?utm_medium=z&b=2&a=1").await;
    assert_eq!(entry.url, urls[0], "what is requested is what was found first");
}

pub async fn a_call_without_links_changes_nothing(world: World) {
    let mut world = site(world).await;
    let before = world.all("c").await;
    assert_eq!(world.frontier().discover(&[], world.now).await.unwrap(), []);
    assert_eq!(world.find("c", HOME, []).await, []);
    assert_eq!(world.all("c").await, before);
}

pub async fn discoveries_survive_a_restart(world: World) {
    let mut world = site(world).await;
    world.find("c", HOME, ["https://a.example/1", "https://b.example/", "https://a.example/2"]).await;
    let before = world.all("c").await;
    world.reopen();
    assert_eq!(world.all("c").await, before);
    assert_eq!(world.find("c", HOME, ["https://a.example/1", "https://a.example/3"]).await, [Kept, Added]);
    world.counts_equal_a_scan("c").await;
}
