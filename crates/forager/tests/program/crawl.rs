//! `forager crawl` on webs of our own: what is fetched, in which order, and what is said of it.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::web::{Field, each, page, plain_host};
use forager_site::{Answer, Asked, Host, Markup, Site, listing};
use serde_json::{Value, json};

const SHOP: &str = "shop.test";
const GAP: Duration = Duration::from_millis(50);

/// A home page with navigation and other links, of which some must not be followed.
fn shop() -> Host {
    let home = Markup::new("Shop")
        .nav([("/services", "Services"), ("/about", "About")])
        .links([("/blog/1", "One"), ("/blog/2", "Two"), ("/private/a", "Hidden"), ("/away", "Away")])
        .raw("<a href=\"http://other.test/\">A friend</a>");
    let sitemap = |asked: &forager_site::Asked<'_>| {
        Answer::xml(listing::sitemap([
            (asked.url(SHOP, "/unlinked"), None),
            (asked.url(SHOP, "/about"), None),
        ]))
    };
    Host::new(SHOP)
        .made("/robots.txt", |asked| {
            let sitemap = asked.url(SHOP, "/sitemap.xml");
            Answer::text(format!("User-agent: *\nDisallow: /private/\nSitemap: {sitemap}\n"))
        })
        .made("/sitemap.xml", sitemap)
        .page("/", Answer::html(home.finish()))
        .page("/services", page("Services", &["/services/deep"]))
        .page("/services/deep", page("Deep", &["/services/deeper"]))
        .page("/services/deeper", page("Deeper", &[]))
        .page("/about", page("About", &[]))
        .page("/blog/1", page("One", &[]))
        .page("/blog/2", page("Two", &[]))
        .page("/away", Answer::redirect(302, "http://other.test/gone"))
        .page("/unlinked", page("Unlinked", &[]))
        .page("/private/a", page("Hidden", &[]))
}

fn shop_site() -> Site {
    Site::new().host(shop()).host(Host::new("other.test").page("/", page("Other", &[])))
}

/// Where a path stands in the order of requests.
#[track_caller]
fn place(paths: &[String], path: &str) -> usize {
    paths.iter().position(|known| known == path).unwrap_or_else(|| panic!("{path} is not in {paths:?}"))
}

fn told(line: &Value) -> (Option<u64>, Option<&str>) {
    (line["status"].as_u64(), line["error"].as_str())
}

#[test]
fn a_site_is_crawled_in_order_and_told_of_in_full() {
    let field = Field::new(shop_site());
    let more = ["--in-flight", "1", "--skipped", "skipped.jsonl", "--crawl-log", "crawl.log"];
    let ran = field.crawl(SHOP, &more);
    let summary = ran.good_rows().pop().unwrap();

    let first: Vec<String> = field.seen().into_iter().take(2).map(|seen| seen.path).collect();
    assert_eq!(first, ["/robots.txt", "/"]);
    let paths = field.paths(SHOP);
    for header in ["/services", "/about"] {
        for other in ["/blog/1", "/blog/2", "/away", "/services/deep", "/unlinked"] {
            assert!(place(&paths, header) < place(&paths, other), "{header}, {other}: {paths:?}");
        }
    }
    let want = [
        "/",
        "/about",
        "/away",
        "/blog/1",
        "/blog/2",
        "/services",
        "/services/deep",
        "/services/deeper",
        "/sitemap.xml",
        "/unlinked",
    ];
    assert_eq!(paths.iter().collect::<BTreeSet<_>>(), want.map(str::to_owned).iter().collect());
    assert_eq!(paths.len(), want.len(), "nothing is fetched twice: {paths:?}");
    assert_eq!(field.paths("other.test"), Vec::<String>::new(), "out of scope");
    let agent = field.seen()[0].user_agent.clone().unwrap();
    assert!(agent.starts_with("Forager/") && agent.ends_with("(+tests@forager.example)"), "{agent}");

    let outcomes = &summary["outcomes"];
    assert_eq!((&outcomes["200"], &outcomes["302"]), (&json!(9), &json!(1)), "{summary}");
    assert_eq!(outcomes["forbidden by robots.txt"], 1, "{summary}");
    let line = field.line(SHOP, "/services/deep");
    let of_line = ["status", "title", "type", "depth", "links", "added"].map(|key| line[key].clone());
    let html = "text/html; charset=utf-8";
    assert_eq!(of_line, [json!(200), json!("Deep"), json!(html), json!(2), json!(1), json!(1)], "{line}");
    assert!(line["bytes"].as_u64().unwrap() > 100 && line["robots"].is_string(), "{line}");
    assert_eq!(line["seed"], field.url(SHOP, "/").as_str());
    let hidden = field.line(SHOP, "/private/a");
    assert_eq!(told(&hidden), (None, Some("line 2: Disallow: /private/")), "{hidden}");

    let skipped = field.lines("skipped.jsonl");
    let find = |url: &str| skipped.iter().find(|line| line["url"] == url).unwrap_or_else(|| panic!("{url}"));
    assert_eq!(find("http://other.test/")["page"], field.url(SHOP, "/").as_str());
    assert_eq!(find("http://other.test/gone")["page"], field.url(SHOP, "/away").as_str());
    assert!(skipped.iter().all(|line| line["reason"].as_str().is_some_and(|why| !why.is_empty())));
    let counted: u64 =
        summary["skipped"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(counted, skipped.len() as u64);

    let log = std::fs::read_to_string(field.file("crawl.log")).unwrap();
    let deep = field.url(SHOP, "/services/deep");
    let entry = log.lines().find(|line| line.split_whitespace().nth(3) == Some(&deep)).unwrap();
    let fields: Vec<&str> = entry.split_whitespace().collect();
    assert_eq!((fields.len(), fields[1], fields[4], fields[6]), (12, "200", "LL", "text/html"), "{entry}");
    assert!(log.lines().any(|line| line.contains("-9998") && line.contains("/private/a")), "{log}");

    field.assert_polite(1, GAP);
    field.assert_audit();
}

#[test]
fn limits_and_scope_keep_a_crawl_small() {
    let table: [(&str, &[&str], i32, &[&str]); 5] = [
        ("depth 0", &["--depth", "0"], 0, &["/"]),
        (
            "depth 1",
            &["--depth", "1", "--sitemaps", "false"],
            0,
            &["/", "/about", "/away", "/blog/1", "/blog/2", "/services"],
        ),
        (
            "an expression",
            &["--include", "/services", "--sitemaps", "false"],
            0,
            &["/", "/services", "/services/deep", "/services/deeper"],
        ),
        ("a page", &["--scope", "page"], 0, &["/"]),
        ("bytes", &["--bytes", "10", "--in-flight", "1"], 14, &["/"]),
    ];
    for (name, more, status, want) in table {
        let field = Field::new(shop_site());
        let ran = field.crawl(SHOP, more);
        assert_eq!((ran.status, ran.stderr.as_str()), (status, ""), "{name}: {ran:?}");
        let mut paths = field.paths(SHOP);
        paths.sort();
        assert_eq!(paths, want, "{name}");
        field.assert_audit();
    }
}

#[test]
fn a_limit_of_pages_counts_fetches() {
    let field = Field::new(Site::new().host(plain_host("a.test", 10)));
    let summary = field.crawl("a.test", &["--limit", "4"]).good_rows().pop().unwrap();
    assert_eq!((summary["fetched"].as_u64(), field.paths("a.test").len()), (Some(4), 4));
    assert_eq!(field.lines("pages.jsonl").len(), 4);
}

#[test]
fn a_crawl_ends_when_its_time_is_over() {
    let field = Field::new(Site::new().host(plain_host("a.test", 200)));
    let ran = field.crawl("a.test", &["--time", "1s"]);
    assert_eq!(ran.status, 15, "{ran:?}");
    let fetched = field.paths("a.test").len();
    assert!((1..100).contains(&fetched), "{fetched} pages in a second, 50 ms apart");
}

#[test]
fn nobody_waits_for_a_slow_host_when_the_time_of_a_crawl_is_over() {
    let site = plain_host("a.test", 3).robots("User-agent: *\nCrawl-delay: 3600\n");
    let ran = Field::new(Site::new().host(site)).crawl("a.test", &["--time", "1s"]);
    assert_eq!(ran.status, 15, "{ran:?}");
}

#[test]
fn a_crawl_that_is_done_starts_anew() {
    let field = Field::new(Site::new().host(plain_host("a.test", 3)));
    for round in 1..=2 {
        assert_eq!(field.crawl("a.test", &[]).status, 0);
        assert_eq!(field.counts("a.test"), each(3, round));
    }
    // The rules for robots are known since the first time.
    assert_eq!(field.seen().iter().filter(|seen| seen.path == "/robots.txt").count(), 1);
}

#[test]
fn a_dry_run_shows_the_first_page_and_asks_for_nothing() {
    let field = Field::new(shop_site());
    let rows = field.run(&["crawl", &field.url(SHOP, "/"), "--dry-run", "--json"]).good_rows();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["url"], field.url(SHOP, "/").as_str());
    assert!(field.seen().is_empty());
}

#[test]
fn hosts_are_crawled_side_by_side() {
    let names = ["a.test", "b.test", "c.test"];
    let site = names.iter().fold(Site::new(), |site, name| site.host(plain_host(name, 6)));
    let field = Field::new(site);
    let urls = names.map(|name| field.url(name, "/"));
    // A page that is given twice is fetched once.
    let args = ["crawl", &urls[0], &urls[1], &urls[2], &urls[0], "--delay", "200ms", "--quiet"];
    let ran = field.run(&args);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{ran:?}");
    let told: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(told.contains(&vec!["fetched", "21"]) && told.contains(&vec!["outcomes.200", "21"]), "{ran:?}");
    for name in names {
        assert_eq!(field.counts(name), each(6, 1), "{name}");
    }
    let last_of_first = field.seen().iter().rposition(|seen| *seen.host == *"a.test").unwrap();
    let first_of_last = field.seen().iter().position(|seen| *seen.host == *"c.test").unwrap();
    assert!(first_of_last < last_of_first, "one waits for the other");
    field.assert_polite(2, Duration::from_millis(200));
    assert_eq!(field.assert_audit().len(), 3);
}

#[test]
fn a_crawl_stops_when_what_it_finds_cannot_be_written() {
    for file in ["--out", "--crawl-log"] {
        let field = Field::new(Site::new().host(plain_host("a.test", 20)));
        let ran = field.run(&["crawl", &field.url("a.test", "/"), file, "/dev/full", "--quiet"]);
        assert_eq!((ran.status, ran.stdout.as_str()), (3, ""), "{file}: {ran:?}");
        assert!(ran.stderr.contains("cannot write what was fetched: No space left"), "{file}: {ran:?}");
        assert!(
            field.paths("a.test").len() < 10,
            "{file}: what is fetched now is lost: {:?}",
            field.paths("a.test")
        );
    }
}

#[test]
fn lines_may_go_to_standard_output() {
    let field = Field::new(Site::new().host(plain_host("a.test", 2)));
    let rows = field.run(&["crawl", &field.url("a.test", "/"), "--out", "-", "--quiet"]).good_rows();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row["status"] == 200));
}

#[test]
fn what_cannot_be_crawled_is_named() {
    let field = Field::strict(Site::new());
    let table = [("ftp://a.test/", "is not an http or https URL"), ("a b", "is not an absolute URL")];
    for (url, problem) in table {
        for command in ["crawl", "watch", "links"] {
            let ran = field.run(&[command, url]);
            assert_eq!((ran.status, ran.stdout.as_str()), (4, ""), "{command} {url}: {ran:?}");
            assert!(ran.stderr.contains(problem) && ran.stderr.contains(url), "{command} {url}: {ran:?}");
        }
    }
}

/// Pages of every kind: a way that leads far down, and a sitemap that names a page nothing leads to.
fn town() -> Field {
    const TOWN: &str = "town.test";
    let sitemap = |asked: &Asked<'_>| Answer::xml(listing::sitemap([(asked.url(TOWN, "/listed"), None)]));
    let home = Markup::new("Town").links([
        ("/archive/1", "Old"),
        ("/way/1", "Way"),
        ("/services/alarms", "Alarms"),
        ("/news/1", "News"),
        ("/zakoni/1", "Laws"),
    ]);
    let host = Host::new(TOWN)
        .made("/robots.txt", |asked| Answer::text(format!("Sitemap: {}\n", asked.url(TOWN, "/map.xml"))))
        .made("/map.xml", sitemap)
        .page("/", Answer::html(home.nav([("/nav", "Nav")]).finish()))
        .page("/nav", page("Nav", &["/news/1"]))
        .page("/archive/1", page("Old", &[]))
        .page("/way/1", page("1", &["/way/2"]))
        .page("/way/2", page("2", &["/way/3"]))
        .page("/way/3", page("3", &["/way/4"]))
        .page("/way/4", page("4", &[]))
        .page("/services/alarms", page("Alarms", &["/news/1"]))
        .page("/news/1", page("News", &[]))
        .page("/zakoni/1", page("Laws", &[]))
        .page("/listed", page("Listed", &[]));
    let field = Field::new(Site::new().host(host));
    // One at a time, so that each page is chosen when all that was found before is known.
    field.set("[politeness]\n", "[politeness]\nin_flight = 1\n");
    field
}

#[test]
fn each_order_has_pages_in_its_own() {
    let table = [
        (
            "fifo",
            "/ /nav /archive/1 /way/1 /services/alarms /news/1 /zakoni/1 /map.xml /way/2 /listed /way/3 /way/4",
        ),
        // The sitemap is worth what it lists: less than what is three links away, and more than what is four.
        (
            "hierarchy",
            "/ /nav /archive/1 /way/1 /services/alarms /news/1 /zakoni/1 /way/2 /way/3 /map.xml /listed /way/4",
        ),
        // Two pages lead to the news by then.
        (
            "linked",
            "/ /nav /news/1 /archive/1 /way/1 /services/alarms /zakoni/1 /way/2 /way/3 /map.xml /listed /way/4",
        ),
        // Hubs first.
        (
            "score",
            "/ /archive/1 /news/1 /nav /way/1 /services/alarms /zakoni/1 /map.xml /way/2 /listed /way/3 /way/4",
        ),
        // The archive is the least urgent, and has its turn as the one that is due longest: one in ten is.
        (
            "risk",
            "/ /zakoni/1 /news/1 /nav /way/1 /services/alarms /map.xml /way/2 /archive/1 /listed /way/3 /way/4",
        ),
        (
            "services",
            "/ /services/alarms /nav /archive/1 /way/1 /news/1 /zakoni/1 /map.xml /way/2 /listed /way/3 /way/4",
        ),
    ];
    for (order, want) in table {
        let field = town();
        field.crawl("town.test", &["--order", order, "--delay", "0s"]).good_rows();
        assert_eq!(field.paths("town.test").join(" "), want, "{order}");
        field.assert_audit();
    }
}
