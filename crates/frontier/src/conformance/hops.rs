//! What leads no farther from the seed: redirects, and lists of pages.

use forager_core::order::Order;
use forager_core::scope::Profile;

use super::World;
use super::world::*;
use crate::catalog::Change;
use crate::entry::{How, State};
use crate::verbs::{Action::*, Discovery, Outcome, Page};

const HOME: &str = "https://a.example/";
const LIST: &str = "https://cdn.example/lists/pages.xml";

/// A site of which nothing deeper than 1 is wanted.
async fn shallow(world: World) -> World {
    with(world, |_| {}).await
}

async fn with(mut world: World, change: impl FnOnce(&mut Profile)) -> World {
    let shallow = |profile: &mut Profile| {
        profile.depth = Some(1);
        change(profile);
    };
    world.configure([planned("c"), profile("c", "c", shallow), seed(HOME, ["c"])]).await;
    world.start_seed(HOME).await;
    world
}

/// A link of a page, found in some way.
async fn found(world: &mut World, source: &str, how: How, url: &str) -> Discovery {
    let links = vec![link_as(how, url)];
    world.discover(Page { links, ..page("c", source, []) }).await.remove(0)
}

/// A site whose list of pages lies elsewhere, and is known.
async fn listed(world: World) -> World {
    let mut world = shallow(world).await;
    let answer = found(&mut world, HOME, How::Listing, LIST).await;
    assert_eq!((answer.action, &*answer.rule), (Added, "in scope (c: lists pages of the site)"));
    world
}

async fn lease_list(world: &mut World) -> crate::verbs::Leased {
    let leased = world.lease(9).await;
    leased.into_iter().find(|leased| leased.url == LIST).expect("the list is handed out")
}

pub async fn a_redirect_is_no_farther_from_the_seed(world: World) {
    let mut world = shallow(world).await;
    world.find("c", HOME, ["https://a.example/1"]).await;
    let cases = [
        (HOME, "https://a.example/home", 0),
        ("https://a.example/1", "https://a.example/one", 1),
        ("https://a.example/one", "https://a.example/uno", 1),
    ];
    for (source, url, depth) in cases {
        let answer = found(&mut world, source, How::Redirect, url).await;
        assert_eq!(answer.action, Added, "{url}: {}", answer.rule);
        let entry = world.the_entry("c", url).await;
        assert_eq!((entry.depth, entry.source.as_deref()), (depth, Some(source)), "{url}");
        assert_eq!(entry.record.origin.how, How::Redirect, "{url}");
    }
    let leased = world.lease(9).await;
    let hows: Vec<(How, u32)> = leased.iter().map(|leased| (leased.how, leased.depth)).collect();
    assert!(hows.contains(&(How::Redirect, 1)) && hows.contains(&(How::Seed, 0)), "{hows:?}");
}

pub async fn a_redirect_with_the_report_counts_as_any(world: World) {
    let mut world = shallow(world).await;
    world.find("c", HOME, ["https://a.example/1"]).await;
    let leased = world.lease(2).await;
    let moved = crate::verbs::Report {
        links: vec![link_as(How::Redirect, "https://www.a.example/1")],
        ..answered(leased[1].token, 301)
    };
    let done = world.complete(moved).await;
    assert_eq!((done.outcome, done.found[0].action), (Outcome::Again, Added));
    assert_eq!(world.the_entry("c", "https://www.a.example/1").await.depth, 1);
}

pub async fn scope_is_asked_of_a_redirect_as_of_a_link(world: World) {
    let mut world = with(world, |profile| profile.exclude = vec!["logout".into()]).await;
    world.find("c", HOME, ["https://a.example/1"]).await;
    let cases =
        [("https://b.example/", "not in scope domain"), ("https://a.example/logout", "excluded by logout")];
    for (url, why) in cases {
        let answer = found(&mut world, "https://a.example/1", How::Redirect, url).await;
        assert_eq!(answer.action, Ignored, "{url}");
        assert!(answer.rule.contains(why), "{url}: {}", answer.rule);
    }
}

pub async fn a_redirect_off_the_domain_is_a_hop(world: World) {
    let mut world = with(world, |profile| profile.hops_off_domain = 1).await;
    let answer = found(&mut world, HOME, How::Redirect, "https://b.example/").await;
    assert_eq!(answer.action, Added, "{}", answer.rule);
    let answer = found(&mut world, "https://b.example/", How::Redirect, "https://d.example/").await;
    assert_eq!(answer.action, Ignored, "{}", answer.rule);
    let answer = found(&mut world, "https://b.example/", How::Redirect, "https://a.example/x").await;
    assert_eq!(answer.action, Added, "and back: {}", answer.rule);
}

pub async fn more_than_ten_redirects_in_a_row_are_too_many(world: World) {
    let mut world = shallow(world).await;
    let url = |number: u32| format!("https://a.example/r{number}");
    assert_eq!(found(&mut world, HOME, How::Redirect, &url(1)).await.action, Added);
    for number in 2..=10 {
        let answer = found(&mut world, &url(number - 1), How::Redirect, &url(number)).await;
        assert_eq!(answer.action, Added, "{number}: {}", answer.rule);
    }
    world.reopen();
    let answer = found(&mut world, &url(10), How::Redirect, &url(11)).await;
    assert_eq!((answer.action, &*answer.rule), (Ignored, "redirected too often"));
    assert_eq!(world.entry("c", &url(11)).await, None);
    // What leads there by another way is a page like any other, and so is what it links to.
    assert_eq!(found(&mut world, HOME, How::Link, &url(11)).await.action, Added);
    assert_eq!(found(&mut world, &url(11), How::Redirect, &url(12)).await.action, Added, "a row of its own");
}

pub async fn a_loop_of_redirects_ends_at_what_is_known(world: World) {
    let mut world = shallow(world).await;
    let [one, two] = ["https://a.example/1", "https://a.example/2"];
    assert_eq!(found(&mut world, HOME, How::Redirect, one).await.action, Added);
    assert_eq!(found(&mut world, one, How::Redirect, two).await.action, Added);
    for _ in 0..12 {
        assert_eq!(found(&mut world, two, How::Redirect, one).await.action, Kept);
        assert_eq!(found(&mut world, one, How::Redirect, two).await.action, Kept);
        assert_eq!(found(&mut world, one, How::Redirect, one).await.action, Kept, "to itself");
    }
    assert_eq!(world.stats("c").await.queued, 3);
}

pub async fn a_list_is_in_scope_wherever_it_lies(world: World) {
    let mut world = with(world, |profile| profile.exclude = vec!["xml".into()]).await;
    world.find("c", HOME, ["https://a.example/1"]).await;
    let cases = [
        (HOME, "https://a.example/sitemap.xml", 0),
        (HOME, LIST, 0),
        ("https://a.example/1", "https://a.example/1/sitemap.xml", 1),
        (LIST, "https://cdn.example/lists/more.xml", 0),
    ];
    for (source, url, depth) in cases {
        assert_eq!(found(&mut world, source, How::Link, url).await.action, Ignored, "{url}");
        let answer = found(&mut world, source, How::Listing, url).await;
        assert_eq!((answer.action, &*answer.rule), (Added, "in scope (c: lists pages of the site)"), "{url}");
        let entry = world.the_entry("c", url).await;
        assert_eq!((entry.depth, entry.seed.as_deref()), (depth, Some(HOME)), "{url}");
    }
}

pub async fn a_list_stays_in_scope_when_it_is_handed_out_and_fetched(world: World) {
    let mut world = listed(world).await;
    world.reopen();
    for content in ["one", "two"] {
        let leased = lease_list(&mut world).await;
        assert_eq!(leased.how, How::Listing);
        assert!(leased.rule.contains("lists pages of the site"), "{}", leased.rule);
        let done = world.complete(ok(leased.token, content)).await;
        assert_eq!(done.outcome, Outcome::Again, "{}", done.rule);
        world.pass_until(done.due.unwrap());
    }
    assert!(world.explain("c", LIST).await.scope.rule.contains("lists pages"));
}

pub async fn a_list_that_is_linked_to_stays_a_list(world: World) {
    let mut world = listed(world).await;
    assert_eq!(found(&mut world, HOME, How::Link, LIST).await.action, Kept);
    assert_eq!(world.the_entry("c", LIST).await.state, State::Queued);
    let leased = lease_list(&mut world).await;
    assert_eq!(found(&mut world, HOME, How::Link, LIST).await.action, Kept, "nor while a worker has it");
    assert_eq!(world.complete(ok(leased.token, "x")).await.outcome, Outcome::Again);
}

pub async fn what_a_list_names_is_judged_as_any_page(world: World) {
    let mut world = listed(world).await;
    let cases = [("https://a.example/x", Added), ("https://cdn.example/x", Ignored)];
    for (url, want) in cases {
        let answer = found(&mut world, LIST, How::Sitemap, url).await;
        assert_eq!(answer.action, want, "{url}: {}", answer.rule);
    }
    let entry = world.the_entry("c", "https://a.example/x").await;
    assert_eq!((entry.depth, entry.priority.thousandths()), (1, 500));
    assert_eq!((entry.source.as_deref(), entry.record.origin.how), (Some(LIST), How::Sitemap));
}

/// Or a server could keep a crawler busy for ever with lists alone.
pub async fn lists_of_lists_end(world: World) {
    let mut world = shallow(world).await;
    let url = |number: u32| format!("https://cdn.example/{number}.xml");
    assert_eq!(found(&mut world, HOME, How::Listing, &url(1)).await.action, Added);
    for number in 2..=10 {
        assert_eq!(found(&mut world, &url(number - 1), How::Listing, &url(number)).await.action, Added);
    }
    let answer = found(&mut world, &url(10), How::Listing, &url(11)).await;
    assert_eq!((answer.action, &*answer.rule), (Ignored, "a list of lists of lists, too often"));
}

pub async fn a_list_is_fetched_as_often_as_a_page(world: World) {
    let mut world = with(world, |profile| profile.length = Some(2)).await;
    found(&mut world, HOME, How::Listing, LIST).await;
    for (left, outcome) in [(1, Outcome::Again), (0, Outcome::Done)] {
        let leased = lease_list(&mut world).await;
        let done = world.complete(ok(leased.token, "x")).await;
        assert_eq!(done.outcome, outcome);
        assert_eq!(world.the_entry("c", LIST).await.record.length, Some(left));
        world.pass("1000 days");
    }
    assert_eq!(found(&mut world, HOME, How::Listing, LIST).await.action, Kept);
}

pub async fn a_list_waits_for_what_is_disabled(world: World) {
    for disable in [
        Change::EnableSeed(HOME.into(), false),
        Change::EnableProfile("c".into(), false),
        Change::EnableCollection("c".into(), false),
    ] {
        let mut world = listed(world.another()).await;
        let leased = lease_list(&mut world).await;
        world.configure([disable.clone()]).await;
        let done = world.complete(ok(leased.token, "x")).await;
        assert_eq!(done.outcome, Outcome::Again, "{disable:?}");
        assert!(done.due >= Some(world.later("1h")), "{disable:?}: {:?}", done.due);
        world.pass_until(done.due.unwrap());
        assert_eq!(world.lease(9).await, [], "{disable:?}");
        assert_eq!(world.the_entry("c", LIST).await.state, State::Queued, "{disable:?}");
    }
}

pub async fn a_list_goes_with_its_seed_profile_or_collection(world: World) {
    for remove in [Change::RemoveSeed(HOME.into()), Change::RemoveProfile("c".into())] {
        let mut world = listed(world.another()).await;
        world.configure([remove.clone()]).await;
        assert_eq!(world.lease(9).await, [], "{remove:?}");
        assert_eq!(world.entry("c", LIST).await, None, "{remove:?}");

        let mut world = listed(world.another()).await;
        let leased = lease_list(&mut world).await;
        world.configure([remove.clone()]).await;
        assert_eq!(world.complete(ok(leased.token, "x")).await.outcome, Outcome::Removed, "{remove:?}");
    }
    let mut world = listed(world).await;
    world.configure([Change::RemoveCollection("c".into())]).await;
    assert_eq!(world.lease(9).await, []);
}

pub async fn another_seed_takes_over_a_list(world: World) {
    let mut world = listed(world).await;
    world.configure([seed("https://b.example/", ["c"])]).await;
    world.configure([Change::RemoveSeed(HOME.into())]).await;
    let leased = lease_list(&mut world).await;
    assert_eq!(leased.seed.as_deref(), Some("https://b.example/"));
}

/// In the order `hierarchy`; the others have rules of their own.
pub async fn a_redirect_inherits_as_a_link_and_a_list_is_worth_what_it_lists(mut world: World) {
    world.harvest("c", Order::Hierarchy, HOME).await;
    world.start_seed(HOME).await;
    found(&mut world, HOME, How::Redirect, "https://a.example/x").await;
    found(&mut world, HOME, How::Listing, LIST).await;
    found(&mut world, LIST, How::Listing, "https://cdn.example/part.xml").await;
    found(&mut world, LIST, How::Sitemap, "https://a.example/y").await;
    assert_eq!(world.priority("c", "https://a.example/x").await, 800);
    for url in [LIST, "https://cdn.example/part.xml", "https://a.example/y"] {
        assert_eq!(world.priority("c", url).await, 500, "{url}");
    }
}
