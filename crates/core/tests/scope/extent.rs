//! Which URLs a profile covers, relative to a seed.

use forager_core::scope::before_fetch::{Rule, before_fetch};
use forager_core::scope::extent::{Kind, Traps};
use forager_core::scope::{Place, Profile};
use forager_core::url::FetchUrl;

use crate::common::now;
use crate::{Queued, World, at_depth, identity, queued, seed, world};

/// What a profile says about a URL found at a place; empty if it has the URL in scope.
fn outside(world: &World, url: &str, place: Place) -> String {
    let scopes = world.scopes();
    let entry = Queued {
        url: identity(url),
        place,
        seed: identity(&world.seeds[0].url),
        last_fetch: None,
        ..queued()
    };
    match before_fetch(&scopes, &entry.entry(), now()).rule {
        Rule::InScope { .. } => String::new(),
        Rule::OutOfScope { outside, .. } => outside.to_string(),
        other => panic!("{url}: {other}"),
    }
}

/// A world with one seed and one profile that is changed.
fn with(seed_url: &str, change: impl FnOnce(&mut Profile)) -> World {
    let mut world = World { seeds: vec![seed(seed_url, &["daily"])], ..world() };
    world.daily().depth = None;
    change(world.daily());
    world
}

#[test]
fn each_kind_covers_what_it_says() {
    use Kind::{Any, Domain, Host, Page, Prefix};
    let table = [
        // the seed, the kind, what it covers, what it does not
        (
            "https://db.no/a",
            Page,
            "https://db.no/a http://db.no/a https://db.no/a/ https://db.no:443/a https://db.no/a#b",
            "https://db.no/a/b https://db.no/a?b https://db.no/ https://db.no:81/a https://www.db.no/a",
        ),
        (
            "https://db.no/a?b",
            Page,
            "https://db.no/a?b https://db.no/a/?b",
            "https://db.no/a https://db.no/a?c",
        ),
        (
            "https://db.no/a",
            Prefix,
            "https://db.no/a http://db.no/a/ https://db.no/a/b https://db.no/a?b https://db.no/a//b",
            "https://db.no/ https://db.no/ab https://db.no/b/a https://www.db.no/a/b https://db.no:81/a/b",
        ),
        ("https://db.no/a/", Prefix, "https://db.no/a https://db.no/a/b", "https://db.no/ab"),
        ("https://db.no/a?b", Prefix, "https://db.no/a https://db.no/a/b?c", "https://db.no/b"),
        (
            "https://db.no/",
            Prefix,
            "https://db.no/ https://db.no/x http://db.no/?y",
            "https://x.db.no/ https://no/",
        ),
        (
            "https://db.no/a",
            Host,
            "https://db.no/ http://db.no/x",
            "https://www.db.no/ https://db.no:8443/ https://x.db.no/",
        ),
        (
            "https://db.no/a",
            Domain,
            "https://db.no/ http://www.db.no/x https://db.no:8443/",
            "https://x.db.no/ https://xdb.no/ https://www.www.db.no/",
        ),
        ("https://www.db.no/a", Domain, "https://db.no/ http://www.db.no/x", "https://x.db.no/ https://no/"),
        ("http://10.0.0.1/", Domain, "http://10.0.0.1/x http://10.1/x", "http://10.0.0.2/"),
        ("https://db.no/a", Any, "https://db.no/ http://vg.no/x http://[::1]/", ""),
    ];
    for (seed, kind, inside, outside_of) in table {
        let world = with(seed, |profile| profile.scope = kind);
        for url in inside.split_whitespace() {
            assert_eq!(outside(&world, url, at_depth(1)), "", "{url} is in scope {kind} of {seed}");
        }
        for url in outside_of.split_whitespace() {
            assert_eq!(outside(&world, url, at_depth(1)), format!("not in scope {kind}"), "{url} of {seed}");
        }
    }
}

#[test]
fn the_registrable_domain_is_an_option() {
    let table = [
        ("https://www.db.no/", "https://x.y.db.no/", true),
        ("https://x.db.no/", "https://db.no/", true),
        ("https://a.co.uk/", "https://b.co.uk/", false),
        ("https://x.a.co.uk/", "https://y.a.co.uk/", true),
        ("http://10.0.0.1/", "http://10.0.0.2/", false),
        ("http://10.0.0.1/", "http://10.0.0.1/x", true),
        ("http://localhost/", "http://localhost/x", true),
        ("http://a.localhost/", "http://b.localhost/", false),
    ];
    for (seed, url, together) in table {
        let mut world = with(seed, |_| {});
        world.options.registrable_domain = true;
        assert_eq!(outside(&world, url, at_depth(1)).is_empty(), together, "{url} and {seed}");
    }
}

/// How deep, how many hops off the domain, and what on it.
type Limits = (Option<u32>, u32, Kind);

#[test]
fn depth_and_hops_are_inclusive_limits() {
    let place = |depth, hops_off_domain| Place { depth, hops_off_domain };
    let (on, off) = ("https://db.no/x", "https://cnn.com/x");
    let table: [(&str, Limits, &str, Place, &str); 15] = [
        ("depth 0 is the seed page", (Some(0), 0, Kind::Domain), "https://db.no/", place(0, 0), ""),
        ("one deeper", (Some(0), 0, Kind::Domain), on, place(1, 0), "deeper than 0"),
        ("at the limit", (Some(2), 0, Kind::Domain), on, place(2, 0), ""),
        ("past the limit", (Some(2), 0, Kind::Domain), on, place(3, 0), "deeper than 2"),
        ("no limit", (None, 0, Kind::Domain), on, place(u32::MAX, 0), ""),
        ("depth before kind", (Some(0), 0, Kind::Domain), off, place(1, 1), "deeper than 0"),
        ("no hops", (None, 0, Kind::Domain), off, place(1, 1), "not in scope domain"),
        ("one hop of one", (None, 1, Kind::Domain), off, place(1, 1), ""),
        ("two hops of one", (None, 1, Kind::Domain), off, place(2, 2), "more than 1 hops off the domain"),
        ("two hops of two", (None, 2, Kind::Domain), off, place(2, 2), ""),
        (
            "hops do not widen a page on the domain",
            (None, 9, Kind::Page),
            on,
            place(1, 0),
            "not in scope page",
        ),
        ("hops widen a page off the domain", (None, 9, Kind::Page), off, place(1, 1), ""),
        (
            "hops do not widen a host to www",
            (None, 9, Kind::Host),
            "https://www.db.no/",
            place(1, 0),
            "not in scope host",
        ),
        ("any needs no hops", (None, 0, Kind::Any), off, place(5, 5), ""),
        ("hops within the depth", (Some(3), 9, Kind::Domain), off, place(4, 1), "deeper than 3"),
    ];
    for (name, (depth, hops_off_domain, scope), url, place, want) in table {
        let world = with("https://db.no/", |profile| {
            (profile.depth, profile.hops_off_domain, profile.scope) = (depth, hops_off_domain, scope);
        });
        assert_eq!(outside(&world, url, place), want, "{name}");
    }
}

#[test]
fn patterns_schemes_length_and_traps_narrow_the_scope() {
    type Change = fn(&mut Profile);
    let table: [(&str, Change, &str, &str); 24] = [
        ("included", |p| p.include = vec!["/news/".into()], "https://db.no/news/1", ""),
        (
            "not included",
            |p| p.include = vec!["/news/".into()],
            "https://db.no/sport/1",
            "matches no include pattern",
        ),
        ("included by the second", |p| p.include = vec!["/a".into(), "/b".into()], "https://db.no/b", ""),
        ("the seed is always included", |p| p.include = vec!["/news/".into()], "http://db.no", ""),
        (
            "patterns see the whole address",
            |p| p.include = vec!["^https://db\\.no/x\\?y$".into()],
            "https://db.no/x?y",
            "",
        ),
        (
            "patterns see the canonical address",
            |p| p.include = vec!["/~a$".into()],
            "https://db.no/%7ea#b",
            "",
        ),
        ("excluded", |p| p.exclude = vec!["/x".into(), "/y".into()], "https://db.no/y", "excluded by /y"),
        ("not excluded", |p| p.exclude = vec!["/x".into()], "https://db.no/y", ""),
        ("the seed can be excluded", |p| p.exclude = vec!["/$".into()], "https://db.no/", "excluded by /$"),
        (
            "exclude before include",
            |p| {
                p.include = vec!["/x".into()];
                p.exclude = vec!["x".into()];
            },
            "https://db.no/x",
            "excluded by x",
        ),
        (
            "kind before patterns",
            |p| p.exclude = vec!["cnn".into()],
            "https://cnn.com/",
            "not in scope domain",
        ),
        ("one scheme only", |p| p.schemes = vec!["https".into()], "http://db.no/", "scheme not allowed"),
        ("that scheme", |p| p.schemes = vec!["https".into()], "https://db.no/", ""),
        ("no scheme at all", |p| p.schemes.clear(), "https://db.no/", "scheme not allowed"),
        ("as long as allowed", |p| p.max_url_length = 20, "https://db.no/123456", ""),
        ("a byte longer", |p| p.max_url_length = 20, "https://db.no/1234567", "URL longer than 20 bytes"),
        (
            "scheme before length",
            |p| {
                p.max_url_length = 1;
                p.schemes.clear();
            },
            "https://db.no/",
            "scheme not allowed",
        ),
        ("as many segments as allowed", |p| p.traps.max_segments = 3, "https://db.no/a/b/c/", ""),
        (
            "a segment more",
            |p| p.traps.max_segments = 3,
            "https://db.no/a/b/c/d",
            "trap: more than 3 path segments",
        ),
        ("empty segments do not count", |p| p.traps.max_segments = 3, "https://db.no//a//b//c//", ""),
        ("as many repeats as allowed", |p| p.traps.max_repeats = 2, "https://db.no/a/b/a/b", ""),
        (
            "a repeat more",
            |p| p.traps.max_repeats = 2,
            "https://db.no/a/b/a/b/a",
            "trap: a path segment more than 2 times",
        ),
        (
            "guards off",
            |p| p.traps = Traps { max_segments: 0, max_repeats: 0, ..p.traps },
            "https://db.no/a/a/a/a/a/a/a/a/a/a",
            "",
        ),
        (
            "patterns before traps",
            |p| {
                p.traps.max_segments = 1;
                p.exclude = vec!["b".into()];
            },
            "https://db.no/a/b",
            "excluded by b",
        ),
    ];
    for (name, change, url, want) in table {
        assert_eq!(outside(&with("https://db.no/", change), url, at_depth(1)), want, "{name}");
    }
}

#[test]
fn a_profile_guards_against_traps_unless_told_otherwise() {
    let world = with("https://db.no/", |_| {});
    let path = |segments| (0..segments).fold(String::new(), |path, number| format!("{path}/{number}"));
    let at = |path: &str| outside(&world, &format!("https://db.no{path}"), at_depth(1));
    assert_eq!(at(&path(32)), "");
    assert_eq!(at(&path(33)), "trap: more than 32 path segments");
    assert_eq!(at("/a/a/a"), "");
    assert_eq!(at("/a/a/a/a"), "trap: a path segment more than 3 times");
    assert_eq!(at(&format!("/{}", "a".repeat(8192 - 14))), "");
    assert_eq!(at(&format!("/{}", "a".repeat(8193 - 14))), "URL longer than 8192 bytes");
}

#[test]
fn traps_and_what_only_looks_like_one() {
    let many = |count: usize| (0..count).fold("/x?".to_owned(), |query, n| format!("{query}&a{n}=1"));
    let (as_many, too_many) = (many(32), many(33));
    let table = [
        (
            "two segments three times in a row",
            "/a/b/a/b/a/b",
            "trap: the same path segments more than 2 times in a row",
        ),
        ("after others", "/x/y/a/b/a/b/a/b", "trap: the same path segments more than 2 times in a row"),
        (
            "with a beginning after them",
            "/a/b/c/a/b/c/a/b/c/d",
            "trap: the same path segments more than 2 times in a row",
        ),
        ("twice", "/a/b/a/b", ""),
        ("twice and a half", "/a/b/a/b/a", ""),
        ("not in a row", "/a/b/x/a/b/y/a/b", ""),
        ("one segment alone", "/a/a/a/b/b/b", ""),
        ("as many parameters as allowed", &as_many, ""),
        ("a parameter more", &too_many, "trap: more than 32 query parameters"),
        ("Java", "/a;jsessionid=0A1B2C3D4E", "trap: session id jsessionid"),
        ("Java within the path", "/a;jsessionid=0A1B2C3D4E.node1/b?c=d", "trap: session id jsessionid"),
        ("PHP", "/a?b=c&PHPSESSID=q8v2h1r4", "trap: session id phpsessid"),
        ("old ASP", "/a?ASPSESSIONIDQQTRBC=ABCDEFGHIJ", "trap: session id aspsessionid"),
        ("ASP.NET", "/(S(lit3py55t21z5v55vlm25s55))/a.aspx", "trap: session id (S(…))"),
        ("a random value", "/a?sid=9f86d081884c7d659a2feaa0c55ad015", "trap: session id sid"),
        ("a UUID", "/a?session_id=6f1c2b9e-8d3a-4c5b-9e7f-0a1b2c3d4e5f", "trap: session id session_id"),
        ("a number", "/a?sid=1234", ""),
        ("words", "/a?session=breakfast-at-the-conference-2024", ""),
        ("a name that only ends alike", "/a?resid=9f86d081884c7d659a2feaa0c55ad015", ""),
        ("no value", "/a?PHPSESSID", ""),
        ("other parameters in a path", "/a;version=2/b", ""),
        ("brackets", "/wiki/Mercury_(planet)", ""),
        ("a calendar to the year 7749", "/calendar/7749/05", "trap: calendar after 2100"),
        ("its last year", "/calendar/2100/12", ""),
        ("a year more", "/calendar/2101/1", "trap: calendar after 2100"),
        ("before all dates", "/events/month/1899-12", "trap: calendar before 1900"),
        ("its first year", "/events/month/1900-01", ""),
        ("with a day", "/kalendar/2150-01-31", "trap: calendar after 2100"),
        ("written in one", "/agenda/21500131", "trap: calendar after 2100"),
        ("a parameter", "/x?year=2150&month=5", "trap: calendar after 2100"),
        ("a date as a parameter", "/x?tribe-bar-date=2150-05-01", "trap: calendar after 2100"),
        ("a path of a whole date", "/2200/01/02/", "trap: calendar after 2100"),
        ("with a title", "/blog/2101/12/31/happy-new-year", "trap: calendar after 2100"),
        ("a paper of long ago", "/1850/01/02/", ""),
        ("a short word", "/cal/2200/01", "trap: calendar after 2100"),
        ("a short name for a year", "/x?y=2200", "trap: calendar after 2100"),
        ("and for a date", "/x?d=22000102", "trap: calendar after 2100"),
        ("with dashes", "/x?dt=2200-01-02", "trap: calendar after 2100"),
        ("the year last", "/x?date=02.01.2200", "trap: calendar after 2100"),
        ("the month first", "/x?date=12/31/2200", "trap: calendar after 2100"),
        ("with slashes that are escaped", "/x?day=31%2F12%2F2200", "trap: calendar after 2100"),
        ("a date of these days", "/2026/01/02/", ""),
        ("numbers of articles", "/9134/01/02/", ""),
        ("numbers and a month alone", "/2200/01/", ""),
        ("a number that is no date", "/2200/01/32/", ""),
        ("a number of eight digits", "/x?id=22000102", ""),
        ("one that is no date", "/x?d=22001302", ""),
        ("one without such a day", "/x?d=22000141", ""),
        ("a number of four digits", "/x?p=2200", ""),
        ("no year", "/x?y=9134", ""),
        ("a place", "/map?x=120&y=2200", ""),
        ("a version", "/x?date=1.2.2200.5", ""),
        ("no month among them", "/x?date=31.31.2200", ""),
        ("a moment as a parameter", "/x?date=2150-05-01T10:00", "trap: calendar after 2100"),
        ("the number of an event", "/events/7749", ""),
        ("the number of an event as a parameter", "/events?id=7749", ""),
        ("a price list", "/products/7749/05", ""),
        ("no month", "/calendar/7749/13", ""),
        ("news of a day", "/2024/06/15/title", ""),
        ("an archive", "/newspapers/1850/05/12", ""),
        ("a word within another", "/yesterday/7749/05", ""),
        ("letters of several bytes", "/calendar/é7749/05?date=é2&sid=éééééééé", ""),
    ];
    let world = with("https://db.no/", |p| (p.traps.first_year, p.traps.last_year) = (1900, 2100));
    let off = with("https://db.no/", |p| {
        p.traps = Traps {
            max_segments: 0,
            max_repeats: 0,
            max_sequences: 0,
            max_params: 0,
            max_per_host: 0,
            session_ids: false,
            first_year: 0,
            last_year: 0,
        };
    });
    for (name, path, want) in table {
        let url = format!("https://db.no{path}");
        assert_eq!(outside(&world, &url, at_depth(1)), want, "{name}");
        assert_eq!(outside(&off, &url, at_depth(1)), "", "{name}, with the guards off");
    }
}

#[test]
fn the_years_of_a_calendar_are_counted_from_the_present() {
    let year = i16::try_from(now().to_string()[..4].parse::<u16>().unwrap()).unwrap();
    // The bounds; what is just within them and just beyond, counted from the present year.
    let table = [
        ("by default", (-30, 2), [-30, 2], [-31, 3]),
        ("as far as is counted", (-999, 999), [-999, 999], [-1000, 1000]),
        ("years in full", (year - 5, year + 5), [-5, 5], [-6, 6]),
        ("both ahead", (1, 3), [1, 3], [0, 4]),
    ];
    for (name, (first, last), within, beyond) in table {
        let world = with("https://db.no/", |p| (p.traps.first_year, p.traps.last_year) = (first, last));
        let page = |offset: i16| format!("https://db.no/calendar/{:04}/05", year + offset);
        for offset in within {
            assert_eq!(outside(&world, &page(offset), at_depth(1)), "", "{name}: {offset}");
        }
        let bounds = within.map(|offset| year + offset);
        let want = format!("trap: calendar before {}", bounds[0]);
        assert_eq!(outside(&world, &page(beyond[0]), at_depth(1)), want, "{name}");
        let want = format!("trap: calendar after {}", bounds[1]);
        assert_eq!(outside(&world, &page(beyond[1]), at_depth(1)), want, "{name}");
    }
    let usual = Traps::default();
    assert_eq!((usual.first_year, usual.last_year, usual.max_per_host), (-30, 2, 100_000));
}

#[test]
fn a_session_id_that_is_stripped_is_none() {
    let mut world = with("https://db.no/", |p| p.strip_params = vec!["sid".into()]);
    let found = FetchUrl::parse("https://db.no/a?sid=9f86d081884c7d659a2feaa0c55ad015").unwrap();
    let url = world.scopes().identity(&world.daily().collection.clone(), &found);
    assert_eq!(outside(&world, url.as_str(), at_depth(1)), "");
}
