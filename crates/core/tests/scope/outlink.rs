//! What becomes of a link: the rows of the table, and the rules a to f for its owner.

use forager_core::scope::Place;
use forager_core::scope::outlink::{Action, Claim, Context, Hop, Queued, Verdict, outlink};
use forager_core::url::Identity;
use jiff::Timestamp;

use crate::common::{after, ago, now};
use crate::{World, at_depth, from_now, identity, world};

/// A link and the page it is on.
struct Found {
    collection: String,
    seed: Identity,
    place: Place,
    hop: Hop,
    url: Identity,
    queued: Option<Known>,
}

/// The entry that the link's URL already has.
struct Known {
    seed: Identity,
    place: Place,
    due: Timestamp,
    last_fetch: Option<Timestamp>,
    leased: bool,
}

/// A link on the seed page of [`world`] to a page of the same site that is not queued.
fn found() -> Found {
    Found {
        collection: "C1".to_owned(),
        seed: identity("https://www.db.no/"),
        place: at_depth(0),
        hop: Hop::Link,
        url: identity("https://www.db.no/a"),
        queued: None,
    }
}

/// An entry with this seed, at depth 2, due in so many hours, and never fetched.
fn known(seed: &str, due: &str) -> Known {
    Known { seed: identity(seed), place: at_depth(2), due: after(due), last_fetch: None, leased: false }
}

impl Found {
    /// What `outlink` decides, in words.
    fn judged_in(&self, world: &World) -> String {
        let scopes = world.scopes();
        let context =
            Context { collection: &self.collection, seed: &self.seed, place: self.place, hop: self.hop };
        let queued = self.queued.as_ref().map(|Known { seed, place, due, last_fetch, leased }| Queued {
            seed,
            place: *place,
            due: *due,
            last_fetch: *last_fetch,
            leased: *leased,
        });
        in_words(outlink(&scopes, &context, &self.url, queued.as_ref(), now()))
    }
}

fn in_words(Verdict { action, rule }: Verdict<'_>) -> String {
    let claimed = |Claim { seed, place, due }: Claim<'_>| {
        let hops =
            if place.hops_off_domain > 0 { format!("/{}", place.hops_off_domain) } else { String::new() };
        format!("{} {}{hops} {}", seed.without_scheme(), place.depth, from_now(due))
    };
    let action = match action {
        Action::Add { length: Some(length), claim } => format!("add {} times {length}", claimed(claim)),
        Action::Add { length: None, claim } => format!("add {}", claimed(claim)),
        Action::Merge(claim) => format!("merge {}", claimed(claim)),
        Action::Keep => "keep".to_owned(),
        Action::Remove => "remove".to_owned(),
        Action::Ignore => "ignore".to_owned(),
    };
    format!("{action}: {rule}")
}

type Change = fn(&mut World, &mut Found);

fn check(world: fn() -> World, table: &[(&str, Change, &str)]) {
    for (name, change, want) in table {
        let (mut world, mut found) = (world(), found());
        change(&mut world, &mut found);
        assert_eq!(found.judged_in(&world), *want, "{name}");
    }
}

const OWN: &str = "https://www.db.no/";

#[test]
fn a_link_in_scope_that_is_not_queued_is_added() {
    check(
        world,
        &[
            ("one deeper, due now", |_, _| {}, "add www.db.no/ 1 now: in scope (daily: scope domain)"),
            (
                "at the limit",
                |_, f| f.place.depth = 1,
                "add www.db.no/ 2 now: in scope (daily: scope domain)",
            ),
            (
                "the seed itself is a link like any other",
                |_, f| f.url = identity(OWN),
                "add www.db.no/ 1 now: in scope (daily: scope domain)",
            ),
            (
                "profile disabled: postponed",
                |w, _| w.daily().enabled = false,
                "add www.db.no/ 1 +24h: in scope, disabled (daily)",
            ),
            (
                "seed disabled: postponed",
                |w, _| w.seeds[0].enabled = false,
                "add www.db.no/ 1 +24h: in scope, disabled (daily)",
            ),
            (
                "collection disabled: postponed",
                |w, _| w.collections[0].enabled = false,
                "add www.db.no/ 1 +24h: in scope, disabled (daily)",
            ),
            (
                "one profile disabled, one active",
                |w, _| {
                    w.add_profile("p");
                    w.daily().enabled = false;
                },
                "add www.db.no/ 1 now: in scope (p: scope domain)",
            ),
            (
                "as often as the profile asks",
                |w, _| w.daily().length = Some(3),
                "add www.db.no/ 1 now times 3: in scope (daily: scope domain)",
            ),
            (
                "as often as the profile that asks most",
                |w, _| {
                    w.daily().length = Some(3);
                    w.add_profile("p").length = Some(5);
                },
                "add www.db.no/ 1 now times 5: in scope (daily: scope domain)",
            ),
            (
                "without end, if one profile asks for that",
                |w, _| {
                    w.daily().length = Some(3);
                    w.add_profile("p");
                },
                "add www.db.no/ 1 now: in scope (daily: scope domain)",
            ),
        ],
    );
}

#[test]
fn a_link_counts_its_hops_off_the_domain() {
    fn far() -> World {
        let mut world = world();
        world.daily().hops_off_domain = 2;
        world.daily().depth = None;
        world
    }
    check(
        far,
        &[
            (
                "the first",
                |_, f| f.url = identity("https://cnn.com/"),
                "add www.db.no/ 1/1 now: in scope (daily: 1 hops off the domain)",
            ),
            (
                "the second",
                |_, f| {
                    f.url = identity("https://cnn.com/");
                    f.place = Place { depth: 4, hops_off_domain: 1 };
                },
                "add www.db.no/ 5/2 now: in scope (daily: 2 hops off the domain)",
            ),
            (
                "one too many",
                |_, f| {
                    f.url = identity("https://cnn.com/");
                    f.place = Place { depth: 4, hops_off_domain: 2 };
                },
                "ignore: out of scope (daily: more than 2 hops off the domain)",
            ),
            (
                "back on the domain they are forgotten",
                |_, f| f.place = Place { depth: 4, hops_off_domain: 2 },
                "add www.db.no/ 5 now: in scope (daily: scope domain)",
            ),
            (
                "www is on the domain",
                |_, f| f.url = identity("http://db.no/"),
                "add www.db.no/ 1 now: in scope (daily: scope domain)",
            ),
            (
                "a subdomain is off it",
                |_, f| f.url = identity("http://x.db.no/"),
                "add www.db.no/ 1/1 now: in scope (daily: 1 hops off the domain)",
            ),
            (
                "a subdomain is on it by registrable domain",
                |w, f| {
                    w.options.registrable_domain = true;
                    f.url = identity("http://x.db.no/");
                },
                "add www.db.no/ 1 now: in scope (daily: scope domain)",
            ),
            (
                "counts do not run over",
                |_, f| {
                    f.url = identity("https://cnn.com/");
                    f.place = Place { depth: u32::MAX, hops_off_domain: u32::MAX };
                },
                "ignore: out of scope (daily: more than 2 hops off the domain)",
            ),
        ],
    );
}

#[test]
fn a_link_in_scope_that_is_queued_with_its_seed_is_merged() {
    check(
        world,
        &[
            (
                "lower depth, earlier due",
                |_, f| f.queued = Some(known(OWN, "5h")),
                "merge www.db.no/ 1 now: in scope (daily: scope domain)",
            ),
            (
                "the seed under another spelling",
                |_, f| f.queued = Some(known("http://www.db.no", "5h")),
                "merge www.db.no/ 1 now: in scope (daily: scope domain)",
            ),
            (
                "found deeper: the stored depth stays",
                |_, f| {
                    f.place.depth = 1;
                    f.queued = Some(Known { place: at_depth(0), ..known(OWN, "5h") });
                },
                "merge www.db.no/ 0 now: in scope (daily: scope domain)",
            ),
            (
                "overdue stays overdue",
                |_, f| f.queued = Some(Known { due: ago("3h"), ..known(OWN, "5h") }),
                "merge www.db.no/ 1 -3h: in scope (daily: scope domain)",
            ),
            (
                "fetched two hours ago: not before its time",
                |_, f| f.queued = Some(Known { last_fetch: Some(ago("2h")), ..known(OWN, "30h") }),
                "merge www.db.no/ 1 +22h: in scope (daily: scope domain)",
            ),
            (
                "fetched two hours ago, and due before that already",
                |_, f| f.queued = Some(Known { last_fetch: Some(ago("2h")), ..known(OWN, "5h") }),
                "merge www.db.no/ 1 +5h: in scope (daily: scope domain)",
            ),
            (
                "fetched long ago: now",
                |_, f| f.queued = Some(Known { last_fetch: Some(ago("48h")), ..known(OWN, "5h") }),
                "merge www.db.no/ 1 now: in scope (daily: scope domain)",
            ),
            (
                "no interval: what is planned stays",
                |w, f| {
                    w.daily().every = None;
                    f.queued = Some(Known { last_fetch: Some(ago("48h")), ..known(OWN, "5h") });
                },
                "merge www.db.no/ 1 +5h: in scope (daily: scope domain)",
            ),
            (
                "leased: the owner is the same, so that it merges",
                |_, f| f.queued = Some(Known { leased: true, ..known(OWN, "5h") }),
                "merge www.db.no/ 1 now: in scope (daily: scope domain)",
            ),
            (
                "profile disabled, found no nearer",
                |w, f| {
                    w.daily().enabled = false;
                    f.queued = Some(Known { place: at_depth(1), ..known(OWN, "5h") });
                },
                "keep: in scope, disabled (daily)",
            ),
            (
                "profile disabled",
                |w, f| {
                    w.daily().enabled = false;
                    f.queued = Some(known(OWN, "5h"));
                },
                "merge www.db.no/ 1 +5h: in scope, disabled (daily)",
            ),
            (
                "seed disabled",
                |w, f| {
                    w.seeds[0].enabled = false;
                    f.queued = Some(known(OWN, "5h"));
                },
                "merge www.db.no/ 1 +5h: in scope, disabled (daily)",
            ),
            (
                "collection disabled",
                |w, f| {
                    w.collections[0].enabled = false;
                    f.queued = Some(known(OWN, "5h"));
                },
                "merge www.db.no/ 1 +5h: in scope, disabled (daily)",
            ),
        ],
    );
}

#[test]
fn a_link_out_of_scope_removes_only_what_its_own_seed_queued_out_of_scope() {
    check(
        world,
        &[
            ("not queued: too deep", |_, f| f.place.depth = 2, "ignore: out of scope (daily: deeper than 2)"),
            (
                "not queued: off the domain",
                |_, f| f.url = identity("https://cnn.com/"),
                "ignore: out of scope (daily: not in scope domain)",
            ),
            (
                "queued with another seed",
                |w, f| {
                    w.add_seed("https://vg.no/");
                    f.place.depth = 2;
                    f.queued = Some(known("https://vg.no/", "5h"));
                },
                "ignore: out of scope (daily: deeper than 2)",
            ),
            (
                "queued with its seed, the stored depth in scope",
                |_, f| {
                    f.place.depth = 2;
                    f.queued = Some(known(OWN, "5h"));
                },
                "keep: stored depth in scope (daily)",
            ),
            (
                "queued with its seed, the stored depth out of scope too",
                |_, f| {
                    f.place.depth = 2;
                    f.queued = Some(Known { place: at_depth(3), ..known(OWN, "5h") });
                },
                "remove: out of scope (daily: deeper than 2)",
            ),
            (
                "the stored depth in scope of a disabled profile",
                |w, f| {
                    let deep = w.add_profile("deep");
                    (deep.enabled, deep.depth) = (false, Some(3));
                    f.place.depth = 3;
                    f.queued = Some(Known { place: at_depth(3), ..known(OWN, "5h") });
                },
                "keep: stored depth in scope (deep)",
            ),
            (
                "out of scope for another reason than depth",
                |w, f| {
                    w.daily().exclude.push("/a".into());
                    f.queued = Some(known(OWN, "5h"));
                },
                "remove: out of scope (daily: excluded by /a)",
            ),
            (
                "a disabled seed removes nothing that an enabled one would keep",
                |w, f| {
                    w.seeds[0].enabled = false;
                    f.place.depth = 2;
                    f.queued = Some(known(OWN, "5h"));
                },
                "keep: stored depth in scope (daily)",
            ),
        ],
    );
}

#[test]
fn a_link_of_something_deleted_adds_nothing() {
    check(
        world,
        &[
            ("collection gone", |w, _| w.collections.clear(), "ignore: collection gone"),
            (
                "collection gone, queued",
                |w, f| {
                    w.collections.clear();
                    f.queued = Some(known(OWN, "5h"));
                },
                "remove: collection gone",
            ),
            ("seed gone", |w, _| w.seeds.clear(), "ignore: seed gone"),
            (
                "seed gone, queued: rule 1 decides before the next fetch",
                |w, f| {
                    w.seeds.clear();
                    f.queued = Some(known(OWN, "5h"));
                },
                "keep: seed gone",
            ),
            ("profile gone", |w, _| w.profiles.clear(), "ignore: no profile of the seed has the collection"),
            (
                "profile gone, queued",
                |w, f| {
                    w.profiles.clear();
                    f.queued = Some(known(OWN, "5h"));
                },
                "remove: no profile of the seed has the collection",
            ),
            (
                "profile gone, queued with another seed",
                |w, f| {
                    w.profiles.clear();
                    w.add_seed("https://vg.no/");
                    f.queued = Some(known("https://vg.no/", "5h"));
                },
                "ignore: no profile of the seed has the collection",
            ),
        ],
    );
}

/// The farthest that the profile allows, and a page off the domain.
const FAR: u32 = 2;
const ELSEWHERE: &str = "https://cdn.no/x";

#[test]
fn a_redirect_is_no_farther_from_the_seed() {
    check(
        world,
        &[
            (
                "from the seed",
                |_, f| f.hop = Hop::Redirect,
                "add www.db.no/ 0 now: in scope (daily: scope domain)",
            ),
            (
                "from the farthest that is wanted",
                |_, f| (f.hop, f.place.depth) = (Hop::Redirect, FAR),
                "add www.db.no/ 2 now: in scope (daily: scope domain)",
            ),
            (
                "where a link is one too many",
                |_, f| f.place.depth = FAR,
                "ignore: out of scope (daily: deeper than 2)",
            ),
            (
                "from farther than that",
                |_, f| (f.hop, f.place.depth) = (Hop::Redirect, FAR + 1),
                "ignore: out of scope (daily: deeper than 2)",
            ),
            (
                "off the domain",
                |_, f| (f.hop, f.url) = (Hop::Redirect, identity(ELSEWHERE)),
                "ignore: out of scope (daily: not in scope domain)",
            ),
            (
                "off the domain, which is a hop",
                |w, f| {
                    w.daily().hops_off_domain = 1;
                    (f.hop, f.url) = (Hop::Redirect, identity(ELSEWHERE));
                },
                "add www.db.no/ 0/1 now: in scope (daily: 1 hops off the domain)",
            ),
            (
                "from there to elsewhere, which is another",
                |w, f| {
                    w.daily().hops_off_domain = 1;
                    f.place.hops_off_domain = 1;
                    (f.hop, f.url) = (Hop::Redirect, identity(ELSEWHERE));
                },
                "ignore: out of scope (daily: more than 1 hops off the domain)",
            ),
            (
                "nearer than it is queued",
                |_, f| (f.hop, f.queued) = (Hop::Redirect, Some(known(OWN, "5h"))),
                "merge www.db.no/ 0 now: in scope (daily: scope domain)",
            ),
            (
                "excluded",
                |w, f| {
                    w.daily().exclude = vec!["db.no/a".into()];
                    f.hop = Hop::Redirect;
                },
                "ignore: out of scope (daily: excluded by db.no/a)",
            ),
        ],
    );
}

#[test]
fn a_list_of_pages_is_in_scope_wherever_it_lies() {
    check(
        world,
        &[
            (
                "on the domain",
                |_, f| f.hop = Hop::Listing,
                "add www.db.no/ 0 now: in scope (daily: lists pages of the site)",
            ),
            (
                "off the domain",
                |_, f| (f.hop, f.url) = (Hop::Listing, identity(ELSEWHERE)),
                "add www.db.no/ 0/1 now: in scope (daily: lists pages of the site)",
            ),
            (
                "deeper than any page",
                |_, f| (f.hop, f.place.depth) = (Hop::Listing, FAR + 7),
                "add www.db.no/ 9 now: in scope (daily: lists pages of the site)",
            ),
            (
                "excluded",
                |w, f| {
                    w.daily().exclude = vec!["db.no/a".into()];
                    f.hop = Hop::Listing;
                },
                "add www.db.no/ 0 now: in scope (daily: lists pages of the site)",
            ),
            (
                "as often as the profile asks",
                |w, f| {
                    w.daily().length = Some(3);
                    f.hop = Hop::Listing;
                },
                "add www.db.no/ 0 now times 3: in scope (daily: lists pages of the site)",
            ),
            (
                "profile disabled: postponed",
                |w, f| {
                    w.daily().enabled = false;
                    f.hop = Hop::Listing;
                },
                "add www.db.no/ 0 +24h: in scope, disabled (daily)",
            ),
            (
                "profile gone",
                |w, f| {
                    w.profiles.clear();
                    f.hop = Hop::Listing;
                },
                "ignore: no profile of the seed has the collection",
            ),
            (
                "seed gone",
                |w, f| {
                    w.seeds.clear();
                    f.hop = Hop::Listing;
                },
                "ignore: seed gone",
            ),
            (
                "a page that is queued",
                |_, f| (f.hop, f.queued) = (Hop::Listing, Some(known(OWN, "5h"))),
                "merge www.db.no/ 0 now: in scope (daily: lists pages of the site)",
            ),
        ],
    );
}
