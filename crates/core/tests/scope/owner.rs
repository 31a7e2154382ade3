//! Whose a link is that two seeds have in scope: the rules a to f, and who inherits from a seed
//! that is gone.

use forager_core::scope::ScopeOptions;
use forager_core::scope::before_fetch::before_fetch;
use forager_core::scope::extent::Kind;
use forager_core::scope::outlink::{Action, Claim, Context, Hop, Queued, Verdict, outlink};
use forager_core::time::Interval;

use crate::common::{after, ago, now};
use crate::{World, at_depth, identity, queued, seed, world};

/// Seeds on several domains and below one another, all with everything in scope.
fn seeds() -> World {
    let mut world = World { seeds: Vec::new(), ..world() };
    (world.daily().scope, world.daily().depth) = (Kind::Any, None);
    for url in ["db.no/", "db.no/a", "db.no/a/b", "db.no/a?q", "www.db.no/", "blog.db.no/", "vg.no/"] {
        world.add_seed(&format!("https://{url}"));
    }
    world
}

/// The seed of the page that has the link, or the one that the URL is queued with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    S,
    Q,
}

use Owner::{Q, S};

/// What is true, the URL, the seeds S and Q, when the entry is due, and who wins by which rule.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, Owner, &'static str);

/// The link stands on a page of S at depth 6; the entry was found at depth 2 from Q, and never fetched.
fn check(options: ScopeOptions, rows: &[Row]) {
    let scopes = World { options, ..seeds() }.scopes();
    for &(name, url, s, q, due, want, rule) in rows {
        let [url, s, q] = [url, s, q].map(|text| identity(&format!("https://{text}")));
        let context = Context { collection: "C1", seed: &s, place: at_depth(6), hop: Hop::Link };
        let entry = Queued { seed: &q, place: at_depth(2), due: after(due), last_fetch: None, leased: false };
        let verdict = outlink(&scopes, &context, &url, Some(&entry), now());
        let Action::Merge(claim) = verdict.action else { panic!("{name}: {verdict:?}") };
        let (owner, depth) = match want {
            S => (&s, 7),
            Q => (&q, 2),
        };
        assert_eq!(claim.seed, owner, "{name}: {}", verdict.rule);
        assert_eq!(claim.place.depth, depth, "{name}: the depth is that of the owner");
        assert_eq!(claim.due, after(due).min(now()), "{name}: the due time is the earliest");
        assert_eq!(verdict.rule.to_string(), format!("owner {rule}"), "{name}");
    }
}

const EQUALS_S: &str = "a: equals the seed of the page";
const EQUALS_Q: &str = "b: equals the queued seed";
const PREFIX: &str = "c: longest prefix";
const ON_DOMAIN: &str = "c, d, e: earliest next fetch";
const OFF_DOMAIN: &str = "f: earliest next fetch";

#[test]
fn a_and_b_the_seed_that_is_the_url_owns_it() {
    check(
        ScopeOptions::default(),
        &[
            ("S is the URL", "db.no/a", "db.no/a", "db.no/", "5h", S, EQUALS_S),
            (
                "fragment, port and slash do not count",
                "db.no:443/a/#x",
                "db.no/a",
                "db.no/",
                "5h",
                S,
                EQUALS_S,
            ),
            ("though Q is due earlier", "db.no/a", "db.no/a", "db.no/", "-5h", S, EQUALS_S),
            ("though Q is on the domain and S too", "db.no/a", "db.no/a", "db.no/a/b", "5h", S, EQUALS_S),
            ("the query counts", "db.no/a?q", "db.no/a?q", "db.no/a", "5h", S, EQUALS_S),
            ("Q is the URL", "db.no/a", "db.no/a/b", "db.no/a", "5h", Q, EQUALS_Q),
            ("though S is due earlier", "db.no/", "db.no/a", "db.no/", "5h", Q, EQUALS_Q),
            ("with another query it is not", "db.no/a?x", "db.no/", "db.no/a", "5h", Q, PREFIX),
        ],
    );
}

#[test]
fn c_on_the_domain_of_both_the_longest_prefix_owns_it() {
    check(
        ScopeOptions::default(),
        &[
            ("S is longer", "db.no/a/x", "db.no/a", "db.no/", "5h", S, PREFIX),
            ("though Q is due earlier", "db.no/a/x", "db.no/a", "db.no/", "-5h", S, PREFIX),
            ("Q is longer", "db.no/a/x", "db.no/", "db.no/a", "5h", Q, PREFIX),
            ("a longer S that is no prefix", "db.no/a/x", "db.no/a/b", "db.no/a", "5h", Q, PREFIX),
            ("a longer Q that is no prefix", "db.no/a/x", "db.no/a", "db.no/a/b", "-5h", S, PREFIX),
            ("a prefix ends at a segment", "db.no/abc", "db.no/", "db.no/a", "5h", S, PREFIX),
            ("only the very host can be a prefix", "www.db.no/x", "www.db.no/", "db.no/", "-5h", S, PREFIX),
            ("as long: the earliest", "db.no/a/x", "db.no/a?q", "db.no/a", "5h", S, ON_DOMAIN),
            ("as long, and a tie: Q", "db.no/a/x", "db.no/a?q", "db.no/a", "0s", Q, ON_DOMAIN),
            ("neither is one: the earliest", "db.no/x", "db.no/a", "db.no/a/b", "5h", S, ON_DOMAIN),
            ("neither is one, Q is due earlier", "db.no/x", "db.no/a", "db.no/a/b", "-5h", Q, ON_DOMAIN),
        ],
    );
}

#[test]
fn d_e_and_f_otherwise_the_earliest_next_fetch_owns_it() {
    check(
        ScopeOptions::default(),
        &[
            ("d: S is earlier", "db.no/x", "db.no/", "vg.no/", "5h", S, ON_DOMAIN),
            ("d: Q is earlier", "db.no/x", "db.no/", "vg.no/", "-5h", Q, ON_DOMAIN),
            ("d: a tie keeps Q", "db.no/x", "db.no/", "vg.no/", "0s", Q, ON_DOMAIN),
            ("e: S is earlier", "vg.no/x", "db.no/", "vg.no/", "5h", S, ON_DOMAIN),
            ("e: Q is earlier", "vg.no/x", "db.no/", "vg.no/", "-5h", Q, ON_DOMAIN),
            ("e: a tie keeps Q", "vg.no/x", "db.no/", "vg.no/", "0s", Q, ON_DOMAIN),
            ("f: S is earlier", "cnn.com/", "db.no/", "vg.no/", "1ns", S, OFF_DOMAIN),
            ("f: Q is earlier", "cnn.com/", "db.no/", "vg.no/", "-1ns", Q, OFF_DOMAIN),
            ("f: a tie keeps Q", "cnn.com/", "db.no/", "vg.no/", "0s", Q, OFF_DOMAIN),
            ("f: a subdomain is another domain", "x.db.no/", "db.no/", "blog.db.no/", "5h", S, OFF_DOMAIN),
        ],
    );
}

#[test]
fn own_domain_lets_the_seed_on_the_domain_win_d_and_e() {
    check(
        ScopeOptions { own_domain: true, ..ScopeOptions::default() },
        &[
            ("d", "db.no/x", "db.no/", "vg.no/", "-5h", S, "d: on the domain of the page's seed"),
            (
                "d, with www",
                "www.db.no/x",
                "db.no/",
                "vg.no/",
                "-5h",
                S,
                "d: on the domain of the page's seed",
            ),
            ("e", "vg.no/x", "db.no/", "vg.no/", "5h", Q, "e: on the domain of the queued seed"),
            ("a stays", "db.no/a", "db.no/a", "db.no/", "5h", S, EQUALS_S),
            ("b stays", "db.no/a", "db.no/", "db.no/a", "5h", Q, EQUALS_Q),
            ("c stays", "db.no/a/x", "db.no/", "db.no/a", "5h", Q, PREFIX),
            ("f stays", "cnn.com/", "db.no/", "vg.no/", "5h", S, OFF_DOMAIN),
        ],
    );
}

#[test]
fn registrable_domain_puts_subdomains_on_one_domain() {
    check(
        ScopeOptions { registrable_domain: true, ..ScopeOptions::default() },
        &[
            ("c: neither is a prefix", "x.db.no/", "db.no/", "blog.db.no/", "5h", S, ON_DOMAIN),
            ("c: a prefix needs the very host", "blog.db.no/x", "db.no/", "blog.db.no/", "5h", Q, PREFIX),
            ("d", "x.db.no/", "db.no/", "vg.no/", "5h", S, ON_DOMAIN),
            ("f: another domain is another domain", "cnn.no/", "db.no/", "vg.no/", "5h", S, OFF_DOMAIN),
        ],
    );
}

/// What becomes of a link to a page off both domains, on a page of `db.no` and queued with
/// `holder`, due in five hours; `change` changes the world and the entry.
fn off_domain(holder: &str, change: impl FnOnce(&mut World, &mut Queued<'_>)) -> String {
    let (s, q) = (identity("https://db.no/"), identity(holder));
    let mut entry =
        Queued { seed: &q, place: at_depth(2), due: after("5h"), last_fetch: None, leased: false };
    let mut world = seeds();
    change(&mut world, &mut entry);
    let context = Context { collection: "C1", seed: &s, place: at_depth(6), hop: Hop::Link };
    let scopes = world.scopes();
    let Verdict { action, rule } =
        outlink(&scopes, &context, &identity("https://cnn.com/"), Some(&entry), now());
    match action {
        Action::Merge(Claim { seed, due, .. }) => format!("{} {}: {rule}", seed.host(), crate::from_now(due)),
        other => format!("{other:?}: {rule}"),
    }
}

#[test]
fn the_next_fetch_of_a_seed_goes_by_its_interval() {
    let two_hours_ago = |entry: &mut Queued<'_>| entry.last_fetch = Some(ago("2h"));
    let daily = off_domain("https://vg.no/", |_, entry| two_hours_ago(entry));
    assert_eq!(daily, "vg.no +5h: owner f: earliest next fetch", "every 24 h: in 22 h, after what is queued");
    let often = off_domain("https://vg.no/", |world, entry| {
        two_hours_ago(entry);
        world.daily().every = Some(Interval::hours(4));
    });
    assert_eq!(often, "db.no +2h: owner f: earliest next fetch", "every 4 h: in 2 h, before it");
    let disabled = off_domain("https://vg.no/", |world, _| world.seeds[0].enabled = false);
    assert_eq!(disabled, "vg.no +5h: owner f: earliest next fetch", "a disabled seed would wait a day");
}

#[test]
fn a_lease_keeps_its_owner_and_a_seed_that_is_gone_does_not() {
    let leased = off_domain("https://vg.no/", |_, entry| entry.leased = true);
    assert_eq!(leased, "Keep: leased: the owner stays");
    let gone = off_domain("https://gone.no/", |_, entry| entry.due = ago("1h"));
    assert_eq!(gone, "db.no -1h: owner the queued seed is gone");
}

#[test]
fn the_best_other_seed_takes_over_from_one_that_is_gone() {
    // The seeds of the collection, `-` before a disabled one and `!` before a frequent one; who takes over.
    let table = [
        ("on the same domain", "db.no/x", "db.no/x", 1),
        ("under www", "www.db.no/x", "www.db.no/x", 1),
        ("whose scope has the URL", "vg.no/ db.no/x", "db.no/x", 1),
        ("none has it", "vg.no/", "", 1),
        ("none has it so deep", "db.no/x", "", 3),
        ("one that equals the URL, however it is spelled", "db.no/ db.no/a db.no/a/b/c/", "db.no/a/b/c/", 1),
        ("one that equals it, though disabled", "db.no/a -db.no/a/b/c", "db.no/a/b/c", 1),
        ("the longest prefix", "db.no/ db.no/a/b db.no/a db.no/a/b/cc", "db.no/a/b", 1),
        ("the longest prefix, though disabled", "db.no/a -db.no/a/b", "db.no/a/b", 1),
        ("a prefix before a frequent one", "db.no/a !db.no/x", "db.no/a", 1),
        ("an active one, if neither is a prefix", "-db.no/x db.no/y", "db.no/y", 1),
        ("the most frequent one, if both are active", "db.no/x !db.no/y", "db.no/y", 1),
        ("the first in order, if nothing tells them apart", "db.no/y db.no/x", "db.no/x", 1),
        ("a disabled one rather than none", "-db.no/x", "db.no/x", 1),
    ];
    for (name, seeds, want, depth) in table {
        let mut world = world();
        world.add_profile("often").every = Some(Interval::hours(1));
        world.seeds = seeds.split(' ').map(marked).collect();
        let mut entry = queued();
        (entry.url, entry.seed) = (identity("https://db.no/a/b/c"), identity("https://gone.no/"));
        entry.place = at_depth(depth);
        let scopes = world.scopes();
        let verdict = before_fetch(&scopes, &entry.entry(), now());
        let heir = verdict.seed.map_or("", |seed| seed.without_scheme());
        assert_eq!(heir, want, "{name}");
        assert_eq!(verdict.taken_over, !want.is_empty(), "{name}");
    }
}

fn marked(text: &str) -> forager_core::scope::Seed {
    let url = format!("https://{}", text.trim_start_matches(['-', '!']));
    let mut seed = seed(&url, if text.starts_with('!') { &["often"] } else { &["daily"] });
    seed.enabled = !text.starts_with('-');
    seed
}

#[test]
fn a_disabled_seed_is_never_the_earliest() {
    let mut world = seeds();
    world.daily().every = None;
    world.seeds[0].enabled = false;
    let scopes = world.scopes();
    let [s, q, url] = ["https://db.no/", "https://vg.no/", "https://cnn.com/x"].map(identity);
    let context = Context { collection: "C1", seed: &s, place: at_depth(0), hop: Hop::Link };
    let entry = Queued { seed: &q, place: at_depth(1), due: after("24h"), last_fetch: None, leased: false };
    let verdict = outlink(&scopes, &context, &url, Some(&entry), now());
    // It would be put back for an hour only, and then again and again: the active one keeps what it has.
    let Action::Merge(claim) = verdict.action else { panic!("{verdict:?}") };
    assert_eq!((claim.seed, claim.due), (&q, after("24h")));
}
