//! What an entry is worth, in every order.

use forager_core::order::Order;

use super::World;
use super::world::*;
use crate::entry::How;
use crate::moment::Moment;
use crate::verbs::{Action::*, Link, Page};

const HOME: &str = "https://a.example/";

async fn site(mut world: World, order: Order) -> World {
    world.harvest("c", order, HOME).await;
    world.start_seed(HOME).await;
    world
}

fn on_page(source: &str, link: Link) -> Page {
    Page { seed: Some(HOME.into()), links: vec![link], ..page("c", source, []) }
}

pub async fn hierarchy_goes_by_how_a_page_was_found(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    let find = |path: &str| link(&format!("https://a.example/{path}"));
    let stranger = "https://a.example/stranger";
    let cases = [
        ("header of the homepage", HOME, Link { in_header: true, ..find("header") }, 900),
        ("other link of the homepage", HOME, find("1"), 800),
        ("link of that page", "https://a.example/1", find("2"), 640),
        ("header of another page", "https://a.example/1", Link { in_header: true, ..find("3") }, 640),
        ("sitemap", HOME, Link { how: How::Sitemap, ..find("sitemap") }, 500),
        ("redirect", HOME, Link { how: How::Redirect, ..find("redirect") }, 800),
        ("in some other way", HOME, Link { how: How::Other, ..find("other") }, 100),
        ("source not known", stranger, find("stray"), 100),
        ("header of an unknown page", stranger, Link { in_header: true, ..find("stray2") }, 100),
        ("the homepage of the other protocol", HOME, link("http://a.example/"), 1000),
    ];
    for (name, source, link, want) in cases {
        let url = link.url.clone();
        assert_eq!(world.discover(on_page(source, link)).await[0].action, Added, "{name}");
        assert_eq!(world.priority("c", &url).await, want, "{name}");
    }
    assert_eq!(world.priority("c", HOME).await, 1000, "the homepage");
}

pub async fn a_source_on_another_domain_hands_nothing_on(mut world: World) {
    let anywhere = |profile: &mut forager_core::scope::Profile| profile.hops_off_domain = 2;
    world.configure([planned("c"), profile("p", "c", anywhere), seed(HOME, ["p"])]).await;
    world.start_seed(HOME).await;
    world.find("c", HOME, ["https://b.example/x", "https://www.a.example/y"]).await;
    assert_eq!(world.priority("c", "https://b.example/x").await, 100);
    assert_eq!(
        world.priority("c", "https://www.a.example/y").await,
        800,
        "with or without www is one domain"
    );
}

pub async fn the_chain_from_the_homepage_falls_to_the_least(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    let mut source = HOME.to_owned();
    for want in [800, 640, 512, 410, 328, 262, 210, 168, 134, 107, 100, 100] {
        let next = format!("{}x", if source == HOME { HOME } else { &source });
        world.find("c", &source, [&next]).await;
        assert_eq!(world.priority("c", &next).await, want, "{next}");
        source = next;
    }
}

pub async fn raising_a_page_does_not_lift_what_it_linked_before(world: World) {
    let mut world = site(world, Order::Hierarchy).await;
    let (page_url, child) = ("https://a.example/p", "https://a.example/p/child");
    world.discover(on_page("https://a.example/stranger", link(page_url))).await;
    world.find("c", page_url, [child]).await;
    assert_eq!(world.find("c", HOME, [page_url]).await, [Improved]);
    assert_eq!((world.priority("c", page_url).await, world.priority("c", child).await), (800, 100));
    assert_eq!(world.find("c", page_url, [child]).await, [Improved], "its links are seen again");
    assert_eq!(world.priority("c", child).await, 640);
}

pub async fn fifo_has_no_priorities(world: World) {
    let mut world = site(world, Order::Fifo).await;
    world.find("c", HOME, ["https://a.example/2", "https://a.example/1"]).await;
    world.discover(on_page(HOME, Link { in_header: true, ..link("https://a.example/0") })).await;
    assert_eq!(world.priority("c", "https://a.example/0").await, 0);
    // What they are worth is kept all the same, for people and for the pages that they link to.
    world.find("c", "https://a.example/1", ["https://a.example/deep"]).await;
    let worths = [
        (HOME, 1000),
        ("https://a.example/0", 900),
        ("https://a.example/1", 800),
        ("https://a.example/deep", 640),
    ];
    for (url, want) in worths {
        assert_eq!(world.the_entry("c", url).await.worth.thousandths(), want, "{url}");
    }
    let header = Link { in_header: true, ..link("https://a.example/1") };
    assert_eq!(world.discover(on_page(HOME, header)).await[0].action, Improved);
    world.reopen();
    assert_eq!(
        world.the_entry("c", "https://a.example/1").await.worth.thousandths(),
        900,
        "only ever raised"
    );
    let order = world.lease_urls(9).await;
    let deep = "https://a.example/deep";
    assert_eq!(order, [HOME, "https://a.example/2", "https://a.example/1", "https://a.example/0", deep]);
}

pub async fn linked_adds_a_little_for_each_further_page(world: World) {
    let mut world = site(world, Order::Linked).await;
    let x = "https://a.example/x";
    world.find("c", HOME, ["https://a.example/1", "https://a.example/2", x]).await;
    assert_eq!(world.priority("c", x).await, 800, "one page links to it");
    assert_eq!(world.find("c", HOME, [x]).await, [Kept], "the same page once more");
    assert_eq!(world.find("c", "https://a.example/1", [x]).await, [Improved]);
    assert_eq!(world.find("c", "https://a.example/2", [x]).await, [Improved]);
    assert_eq!(world.find("c", "https://a.example/2", [x]).await, [Kept]);
    assert_eq!(world.priority("c", x).await, 802);
    world.find("c", x, ["https://a.example/child"]).await;
    assert_eq!(
        world.priority("c", "https://a.example/child").await,
        640,
        "0.8 of what its best link gave it"
    );
}

pub async fn linked_stays_below_the_homepage(world: World) {
    let mut world = site(world, Order::Linked).await;
    let x = "https://a.example/x";
    let header = Link { in_header: true, ..link(x) };
    world.discover(on_page(HOME, header)).await;
    let pages: Vec<Page> =
        (0..120).map(|number| on_page(&format!("https://a.example/p{number}"), link(x))).collect();
    let found = world.frontier().discover(&pages, world.now).await.unwrap();
    assert_eq!(found[98].action, Improved);
    assert_eq!(world.priority("c", x).await, 999);
    assert_eq!(world.priority("c", HOME).await, 1000);
}

pub async fn risk_goes_by_what_the_address_says(world: World) {
    let mut world = site(world, Order::Risk).await;
    let cases = [
        ("https://a.example/archive/1", 250),
        ("https://a.example/x", 500),
        ("https://a.example/news/1", 750),
        ("https://a.example/zakon/1", 1000),
    ];
    for (url, want) in cases {
        world.find("c", HOME, [url]).await;
        assert_eq!(world.priority("c", url).await, want, "{url}");
    }
    let order = world.lease_urls(9).await;
    assert_eq!(order[..3], ["https://a.example/zakon/1", "https://a.example/news/1", HOME]);
}

pub async fn a_file_on_a_critical_page_is_critical(world: World) {
    let mut world = site(world, Order::Risk).await;
    let (law, file) = ("https://a.example/zakon/1", "https://a.example/f.pdf");
    world.find("c", HOME, [law, file]).await;
    assert_eq!(world.priority("c", file).await, 500);
    assert_eq!(world.find("c", law, [file]).await, [Improved]);
    assert_eq!(world.priority("c", file).await, 1000);
    world.find("c", law, ["https://a.example/page"]).await;
    assert_eq!(world.priority("c", "https://a.example/page").await, 500, "a page is not a file");
}

pub async fn services_goes_by_address_and_words(world: World) {
    let mut world = site(world, Order::Services).await;
    let find = |path: &str| link(&format!("https://a.example/{path}"));
    let cases = [
        ("A and an absolute term", find("services/installation"), 1000),
        ("B", find("inspection"), 850),
        ("A", find("services/x"), 800),
        ("C", find("about/team"), 750),
        ("U", find("fire"), 600),
        ("T by its text", Link { text: "Our Services".into(), ..find("t1") }, 500),
        ("T by its title", Link { title: "maintenance".into(), ..find("t2") }, 500),
        ("D", find("other"), 0),
    ];
    for (name, link, want) in cases {
        let url = link.url.clone();
        world.discover(on_page(HOME, link)).await;
        assert_eq!(world.priority("c", &url).await, want, "{name}");
    }
    let better = Link { text: "services".into(), ..find("other") };
    assert_eq!(world.discover(on_page(HOME, better)).await[0].action, Improved, "other words, seen later");
    assert_eq!(world.priority("c", "https://a.example/other").await, 500);
}

pub async fn score_is_that_of_news(world: World) {
    let mut world = site(world, Order::Score).await;
    let find = |path: &str| link(&format!("https://a.example/{path}"));
    // 50, 15 for never visited, relevance × 15 (0.5 if unknown: 8), 10 for a hub, −5 if deep.
    let cases = [
        ("nothing known", find("x"), 730),
        ("relevant", Link { relevance: Some(1.0), ..find("y") }, 800),
        ("irrelevant", Link { relevance: Some(0.0), ..find("z") }, 650),
        ("a hub", find("news/"), 830),
        ("a share that is none counts as unknown", Link { relevance: Some(7.0), ..find("nan") }, 730),
    ];
    for (name, link, want) in cases {
        let url = link.url.clone();
        world.discover(on_page(HOME, link)).await;
        assert_eq!(world.priority("c", &url).await, want, "{name}");
    }
    let deep = Page { depth: 3, ..on_page("https://a.example/stranger", find("deep")) };
    world.discover(deep).await;
    assert_eq!(world.priority("c", "https://a.example/deep").await, 680, "more than three links away");
    assert_eq!(world.find("c", HOME, ["https://a.example/deep"]).await, [Improved]);
    assert_eq!(world.priority("c", "https://a.example/deep").await, 730, "nearer than was thought");
}

/// A score is a step function of time: entries move when it steps, and only then.
pub async fn a_score_moves_exactly_when_it_steps(world: World) {
    let mut world = site(world, Order::Score).await;
    world.fetch("one").await; // Visited at `began`; 50 − 30 + 8 from now on.
    let began = world.now;
    let at = |time: &str| Moment::of(interval(time).after(began)).timestamp();
    let steps = [
        ("0s", 280),
        ("3599s", 280),
        ("1h", 480),
        ("86399s", 480),
        ("24h", 580),
        ("168h", 580),
        // Strictly more than a week; entries move at whole seconds.
        ("604801s", 730),
        ("2000h", 730),
    ];
    for (time, want) in steps {
        world.now = at(time);
        // Asking for nothing wakes what is to be woken.
        world.ask(&up_to(0)).await;
        assert_eq!(world.priority("c", HOME).await, want, "{time} after the visit");
        world.reopen();
    }
}

pub async fn a_score_steps_when_a_change_is_a_day_old(world: World) {
    let mut world = site(world, Order::Score).await;
    let every = changed_profile("c", "c", |profile| {
        profile.order = Order::Score;
        profile.every = Some(interval("1h"));
    });
    world.configure([every]).await;
    world.fetch("one").await;
    world.pass("6h");
    let due = world.the_entry("c", HOME).await.due;
    world.pass_until(due.max(world.moment()));
    assert!(world.fetch("two").await.changed);
    let changed = world.now;
    for (time, want) in [("0s", 480), ("1h", 680), ("86399s", 680), ("24h", 580)] {
        world.now = interval(time).after(changed);
        world.ask(&up_to(0)).await;
        assert_eq!(world.priority("c", HOME).await, want, "{time} after the change");
    }
}

pub async fn a_step_of_the_score_changes_who_goes_first(world: World) {
    let mut world = site(world, Order::Score).await;
    // Both were visited, one an hour before the other; both are due again after the same time.
    let (early, late) = ("https://a.example/early", "https://a.example/late");
    world.find("c", HOME, [early, late]).await;
    let leased = world.lease(3).await;
    let token = |url: &str| leased.iter().find(|leased| leased.url == url).unwrap().token;
    world.complete(ok(token(HOME), "x")).await;
    world.complete(ok(token(early), "x")).await;
    world.pass("120s");
    world.complete(ok(token(late), "x")).await;
    let due = world.the_entry("c", late).await.due;
    world.pass_until(due);
    world.ask(&up_to(0)).await;
    let score = |entry: crate::verbs::EntryView| entry.priority.thousandths();
    let (first, second) = (score(world.the_entry("c", early).await), score(world.the_entry("c", late).await));
    assert!(first >= second, "{first} {second}");
}
