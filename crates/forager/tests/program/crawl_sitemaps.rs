//! Sitemaps and feeds that a crawl is told of: with `--sitemap`, or as the page to start from.

use crate::web::{Field, page};
use forager_site::{Answer, Asked, Host, Site, listing};
use serde_json::json;

const HOST: &str = "a.test";
const OTHER: &str = "other.test";

fn urls(asked: &Asked<'_>) -> Vec<String> {
    let own = ["/one", "/two", "/private"].map(|path| asked.url(HOST, path));
    own.into_iter().chain([asked.url(OTHER, "/away")]).collect()
}

fn map(asked: &Asked<'_>) -> String {
    listing::sitemap(urls(asked).into_iter().map(|url| (url, None)))
}

fn rss(asked: &Asked<'_>) -> String {
    let items =
        urls(asked).into_iter().map(|url| format!("<item><title>News</title><link>{url}</link></item>"));
    format!("<rss version=\"2.0\"><channel><title>News</title>{}</channel></rss>", items.collect::<String>())
}

fn atom(asked: &Asked<'_>) -> String {
    let entries = urls(asked).into_iter().map(|url| format!("<entry><link href=\"{url}\"/></entry>"));
    format!("<feed xmlns=\"http://www.w3.org/2005/Atom\">{}</feed>", entries.collect::<String>())
}

/// A site whose pages nothing leads to but lists, which robots.txt does not name.
fn field() -> Field {
    let host = Host::new(HOST)
        .robots("User-agent: *\nDisallow: /private\n")
        .page("/", page("Home", &[]))
        .page("/one", page("One", &[]))
        .page("/two", page("Two", &[]))
        .page("/private", page("Private", &[]))
        .made("/map.xml", |asked: &Asked<'_>| Answer::xml(map(asked)))
        .made("/index.xml", |asked: &Asked<'_>| {
            Answer::xml(listing::index([(asked.url(HOST, "/map.xml"), None)]))
        })
        .made("/map.txt", |asked: &Asked<'_>| Answer::text(urls(asked).join("\n")))
        .made("/map.xml.gz", |asked: &Asked<'_>| Answer::new("application/gzip", listing::gzip(&map(asked))))
        .made("/feed.rss", |asked: &Asked<'_>| Answer::new("application/rss+xml", rss(asked)))
        .made("/feed.atom", |asked: &Asked<'_>| Answer::new("application/atom+xml", atom(asked)))
        .page("/moved", Answer::redirect(301, "/map.xml"))
        .page("/prose.txt", Answer::text("Read this first:\nhttp://a.test/one\nand then the rest.\n"));
    Field::new(Site::new().host(host).host(Host::new(OTHER).page("/away", page("Away", &[]))))
}

const LISTS: [&str; 7] =
    ["/map.xml", "/index.xml", "/map.txt", "/map.xml.gz", "/feed.rss", "/feed.atom", "/moved"];

/// Requires that all that is listed was fetched once, if it may be.
#[track_caller]
fn assert_fetched(field: &Field, name: &str, skipped: &str) {
    let counts = field.counts(HOST);
    for path in ["/one", "/two"] {
        assert_eq!(counts.get(path), Some(&1), "{name}: {counts:?}");
    }
    assert_eq!(counts.get("/private"), None, "{name}: robots.txt forbids it");
    assert!(field.paths(OTHER).is_empty(), "{name}: it is out of scope");
    assert_eq!(field.line(HOST, "/private")["notFetched"], "robots", "{name}");
    let away = field.url(OTHER, "/away");
    assert!(field.lines(skipped).iter().any(|line| line["url"] == away.as_str()), "{name}");
    field.assert_audit();
}

#[test]
fn a_sitemap_is_read_on_request() {
    for list in LISTS {
        let field = field();
        let more = ["--sitemap", &field.url(HOST, list), "--skipped", "skipped.jsonl"];
        field.crawl(HOST, &more).good_rows();
        assert_fetched(&field, list, "skipped.jsonl");
        assert_eq!(field.counts(HOST).get("/"), Some(&1), "{list}");
    }
}

#[test]
fn a_page_to_start_from_may_be_one() {
    for list in LISTS {
        let field = field();
        let start = field.url(HOST, list);
        let command =
            ["crawl", &start, "--out", "pages.jsonl", "--json", "--quiet", "--skipped", "skipped.jsonl"];
        field.run(&command).good_rows();
        assert_fetched(&field, list, "skipped.jsonl");
    }
    // A text is not one because it has a URL in it, and a page alone leads nowhere.
    for (list, scope) in [("/prose.txt", "host"), ("/map.xml", "page")] {
        let field = field();
        field.run(&["crawl", &field.url(HOST, list), "--scope", scope, "--json", "--quiet"]).good_rows();
        assert_eq!(field.paths(HOST), [list]);
    }
}

#[test]
fn several_are_read_and_a_resumed_crawl_reads_none_twice() {
    let field = field();
    let (one, other) = (field.url(HOST, "/map.txt"), field.url(HOST, "/feed.rss"));
    let more = ["--sitemap", &one, "--sitemap", &other, "--sitemap", &one];
    field.crawl(HOST, &[&more[..], &["--limit", "1"]].concat());
    let ran = field.crawl(HOST, &more);
    assert_eq!(ran.status, 0, "{ran:?}");
    let counts = field.counts(HOST);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    assert_eq!(counts.len(), 5, "{counts:?}");
    // What would be fetched has them too, and asks nobody.
    let before = field.seen().len();
    let ran = field.run(&["crawl", &field.url(HOST, "/"), "--sitemap", &one, "--dry-run", "--json"]);
    let planned: Vec<_> = ran.rows().iter().map(|row| row["url"].clone()).collect();
    assert!(planned.contains(&json!(one)), "{ran:?}");
    assert_eq!(field.seen().len(), before);
}

#[test]
fn one_at_an_address_that_is_refused_is_not_asked_for() {
    let field = Field::strict(Site::new().host(Host::new(HOST).page("/", page("Home", &[]))));
    let ran =
        field.run(&["crawl", "http://localhost:1/", "--sitemap", &field.url(HOST, "/map.xml"), "--quiet"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (4, ""), "a stranger needs a contact: {ran:?}");
    field.configure("contact = \"tests@forager.example\"\n");
    let command = ["crawl", &field.url(HOST, "/"), "--sitemap", &field.url(HOST, "/map.xml"), "--quiet"];
    let ran = field.run(&command);
    assert_eq!(ran.status, 4, "{ran:?}");
    assert!(field.seen().is_empty());
}
