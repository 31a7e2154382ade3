//! Which of two seeds owns a URL that both have found.

use forager_core::scope::extent::Kind as Scope;

use super::World;
use super::world::*;
use crate::catalog::Change;
use crate::verbs::Action::*;

/// A collection with two seeds; the first one, `q`, has found `url` already. Then `s` finds it too.
struct Case {
    name: &'static str,
    q: &'static str,
    s: &'static str,
    url: &'static str,
    owner: &'static str,
    rule: &'static str,
}

async fn two_seeds(world: &mut World, q: &str, s: &str) {
    let everything = |profile: &mut forager_core::scope::Profile| profile.scope = Scope::Any;
    world.configure([planned("c"), profile("p", "c", everything), seed(q, ["p"]), seed(s, ["p"])]).await;
}

pub async fn of_two_seeds_the_rules_choose_one(world: World) {
    let cases = [
        Case {
            name: "a: the URL is the seed of the page",
            q: "https://q.example/",
            s: "https://s.example/x",
            url: "http://s.example/x/",
            owner: "https://s.example/x",
            rule: "owner a: equals the seed of the page",
        },
        Case {
            name: "b: the URL is the queued seed",
            q: "https://q.example/x",
            s: "https://q.example/",
            url: "https://q.example/x",
            owner: "https://q.example/x",
            rule: "owner b: equals the queued seed",
        },
        Case {
            name: "c: the longer prefix of the page",
            q: "https://a.example/",
            s: "https://a.example/news",
            url: "https://a.example/news/1",
            owner: "https://a.example/news",
            rule: "owner c: longest prefix",
        },
        Case {
            name: "c: the longer prefix of the queued one",
            q: "https://a.example/news",
            s: "https://a.example/",
            url: "https://a.example/news/1",
            owner: "https://a.example/news",
            rule: "owner c: longest prefix",
        },
        Case {
            name: "c: prefixes end where segments do",
            q: "https://a.example/ne",
            s: "https://a.example/",
            url: "https://a.example/news/1",
            owner: "https://a.example/",
            rule: "owner c: longest prefix",
        },
        Case {
            name: "d: on the domain of the page's seed only; both would fetch now, which keeps the queued one",
            q: "https://q.example/",
            s: "https://s.example/",
            url: "https://s.example/x",
            owner: "https://q.example/",
            rule: "owner c, d, e: earliest next fetch",
        },
        Case {
            name: "e: on the domain of the queued seed only",
            q: "https://q.example/",
            s: "https://s.example/",
            url: "https://q.example/x",
            owner: "https://q.example/",
            rule: "owner c, d, e: earliest next fetch",
        },
        Case {
            name: "f: on the domain of neither; ties keep the queued one",
            q: "https://q.example/",
            s: "https://s.example/",
            url: "https://other.example/x",
            owner: "https://q.example/",
            rule: "owner f: earliest next fetch",
        },
    ];
    for Case { name, q, s, url, owner, rule } in cases {
        let mut world = world.another();
        two_seeds(&mut world, q, s).await;
        assert_eq!(world.find_for("c", q, [url]).await, [Added], "{name}");
        let found = world.discover(page_of_seed("c", s, [url])).await;
        assert_eq!(&*found[0].rule, rule, "{name}");
        assert_eq!(found[0].action, if owner == s { Improved } else { Kept }, "{name}");
        assert_eq!(world.the_entry("c", url).await.seed.as_deref(), Some(owner), "{name}");
    }
}

pub async fn own_domain_lets_the_seed_on_the_domain_win(world: World) {
    for (url, owner, rule) in [
        ("https://s.example/x", "https://s.example/", "owner d: on the domain of the page's seed"),
        ("https://q.example/x", "https://q.example/", "owner e: on the domain of the queued seed"),
    ] {
        let mut world = world.another().with(|settings| settings.scope.own_domain = true);
        two_seeds(&mut world, "https://q.example/", "https://s.example/").await;
        world.find_for("c", "https://q.example/", [url]).await;
        let found = world.discover(page_of_seed("c", "https://s.example/", [url])).await;
        assert_eq!(&*found[0].rule, rule);
        assert_eq!(world.the_entry("c", url).await.seed.as_deref(), Some(owner));
    }
}

pub async fn the_seed_that_fetches_earlier_wins_what_is_on_neither_domain(mut world: World) {
    two_seeds(&mut world, "https://q.example/", "https://s.example/").await;
    world.configure([Change::EnableSeed("https://q.example/".into(), false)]).await;
    let url = "https://other.example/x";
    world.find_for("c", "https://q.example/", [url]).await;
    assert_eq!(world.the_entry("c", url).await.due, world.later("1h"), "its seed is disabled");
    let found = world.discover(page_of_seed("c", "https://s.example/", [url])).await;
    assert_eq!((found[0].action, &*found[0].rule), (Improved, "owner f: earliest next fetch"));
    let entry = world.the_entry("c", url).await;
    assert_eq!((entry.seed.as_deref(), entry.due), (Some("https://s.example/"), world.moment()));
}

pub async fn a_disabled_seed_is_never_the_earliest(mut world: World) {
    two_seeds(&mut world, "https://q.example/", "https://s.example/").await;
    let url = "https://other.example/x";
    world.find_for("c", "https://q.example/", [url]).await;
    world.configure([Change::EnableSeed("https://s.example/".into(), false)]).await;
    assert_eq!(world.find_for("c", "https://s.example/", [url]).await, [Kept]);
    assert_eq!(world.the_entry("c", url).await.seed.as_deref(), Some("https://q.example/"));
}

pub async fn a_new_owner_brings_its_own_depth(mut world: World) {
    two_seeds(&mut world, "https://a.example/", "https://a.example/news").await;
    let url = "https://a.example/news/1";
    world.find_for("c", "https://a.example/", [url]).await;
    let far = crate::verbs::Page { depth: 6, ..page_of_seed("c", "https://a.example/news", [url]) };
    assert_eq!(world.discover(far).await[0].action, Improved);
    let entry = world.the_entry("c", url).await;
    assert_eq!((entry.seed.as_deref(), entry.depth), (Some("https://a.example/news"), 7));
}

pub async fn a_new_owner_brings_its_own_order(mut world: World) {
    use forager_core::order::Order;
    let ordered = |order| move |profile: &mut forager_core::scope::Profile| profile.order = order;
    world
        .configure([
            planned("c"),
            profile("plain", "c", ordered(Order::Fifo)),
            profile("urgent", "c", ordered(Order::Risk)),
            seed("https://a.example/", ["plain"]),
            seed("https://a.example/news", ["urgent"]),
        ])
        .await;
    let url = "https://a.example/news/1";
    world.find_for("c", "https://a.example/", [url]).await;
    assert_eq!(world.priority("c", url).await, 0, "order of arrival");
    world.find_for("c", "https://a.example/news", [url]).await;
    assert_eq!(world.priority("c", url).await, 750, "high risk");
}

pub async fn a_leased_entry_never_changes_its_owner(mut world: World) {
    two_seeds(&mut world, "https://a.example/", "https://a.example/news").await;
    let url = "https://a.example/news/1";
    world.find_for("c", "https://a.example/", [url]).await;
    let leased = world.lease_one().await;
    let found = world.discover(page_of_seed("c", "https://a.example/news", [url])).await;
    assert_eq!((found[0].action, &*found[0].rule), (Kept, "leased: the owner stays"));
    assert_eq!(world.the_entry("c", url).await.seed.as_deref(), Some("https://a.example/"));
    world.frontier().release(&[leased.token], world.now).await.unwrap();
    world.find_for("c", "https://a.example/news", [url]).await;
    assert_eq!(world.the_entry("c", url).await.seed.as_deref(), Some("https://a.example/news"), "free again");
}

pub async fn what_the_seed_of_the_page_does_not_cover_stays_with_its_owner(mut world: World) {
    let prefix = |profile: &mut forager_core::scope::Profile| profile.scope = Scope::Prefix;
    world
        .configure([
            planned("c"),
            profile("p", "c", prefix),
            seed("https://a.example/q", ["p"]),
            seed("https://a.example/s", ["p"]),
        ])
        .await;
    world.find_for("c", "https://a.example/q", ["https://a.example/q/1"]).await;
    assert_eq!(world.find_for("c", "https://a.example/s", ["https://a.example/q/1"]).await, [Ignored]);
    let entry = world.the_entry("c", "https://a.example/q/1").await;
    assert_eq!(entry.seed.as_deref(), Some("https://a.example/q"));
}

pub async fn what_a_seed_that_is_gone_left_goes_to_who_finds_it(mut world: World) {
    two_seeds(&mut world, "https://q.example/", "https://s.example/").await;
    world.find_for("c", "https://q.example/", ["https://q.example/x"]).await;
    world.configure([Change::RemoveSeed("https://q.example/".into())]).await;
    let found = world.discover(page_of_seed("c", "https://s.example/", ["https://q.example/x"])).await;
    assert_eq!((found[0].action, &*found[0].rule), (Improved, "owner the queued seed is gone"));
    assert_eq!(world.the_entry("c", "https://q.example/x").await.seed.as_deref(), Some("https://s.example/"));
}
