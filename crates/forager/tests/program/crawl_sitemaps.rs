//! Sitemaps and feeds that a crawl is told of: with `--sitemap`, or as the page to start from.

use std::io::{Read as _, Write as _};

use crate::web::raw::Raw;
use crate::web::{ANOTHER_WISH, Field, Started, each, page, plain_host, wait_until};
use forager_site::{Answer, Asked, Host, Site, listing};
use http::header::CONTENT_ENCODING;
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

/// Who is named by a robots.txt, and what leads there.
fn named_sitemaps(asked: &Asked<'_>, paths: &[&str]) -> Answer {
    let names = paths.iter().map(|path| format!("Sitemap: {}\n", asked.url(HOST, path)));
    Answer::text(names.collect::<Vec<_>>().concat())
}

/// Otherwise an index leads a crawl to any host, whatever its scope.
#[test]
fn a_list_leads_to_lists_of_its_own_host_or_to_those_that_are_vouched_for() {
    let victim = |name: &str| Host::new(name).page("/map.xml", page("None of yours", &[]));
    let index = |asked: &Asked<'_>| {
        let near = [("a.test", "/near.xml"), ("www.a.test", "/www.xml"), ("a.test", "/moves-on.xml")];
        let far = [("victim.test", "/map.xml?1"), ("victim.test", "/map.xml?2"), ("friend.test", "/map.xml")];
        let urls = near.into_iter().chain(far).map(|(host, path)| (asked.url(host, path), None));
        Answer::xml(listing::index(urls))
    };
    let list = |path: &'static str| {
        move |asked: &Asked<'_>| Answer::xml(listing::sitemap([(asked.url(HOST, path), None)]))
    };
    let moved =
        |path: &'static str| move |asked: &Asked<'_>| Answer::redirect(302, &asked.url("moved.test", path));
    let host = Host::new(HOST)
        .made("/robots.txt", |asked| named_sitemaps(asked, &["/index.xml", "/moved.xml"]))
        .page("/", page("Home", &[]))
        .made("/index.xml", index)
        .made("/near.xml", list("/one"))
        .made("/moved.xml", moved("/named.xml"))
        .made("/moves-on.xml", moved("/unnamed.xml"))
        .page("/one", page("One", &[]))
        .page("/two", page("Two", &[]))
        .page("/three", page("Three", &[]));
    let site = Site::new()
        .host(host)
        .host(Host::new("www.a.test").made("/www.xml", list("/two")))
        .host(Host::new("moved.test").made("/named.xml", list("/three")))
        .host(victim("victim.test"))
        .host(victim("friend.test").made("/robots.txt", |asked| {
            Answer::text(format!("Sitemap: {}\n", asked.url(HOST, "/index.xml")))
        }));
    let field = Field::new(site);
    // Its robots.txt is known only where it was asked for once.
    field.run(&["crawl", &field.url("friend.test", "/"), "--limit", "1", "--quiet"]);
    let ran = field.crawl(HOST, &["--scope", "host", "--skipped", "skipped.jsonl"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    for path in ["/one", "/two", "/three"] {
        assert_eq!(field.counts(HOST).get(path), Some(&1), "{path}");
    }
    assert!(field.seen().iter().all(|seen| *seen.host != *"victim.test"), "{:?}", field.seen());
    assert_eq!(field.paths("moved.test"), ["/named.xml"], "what robots.txt names may be moved anywhere");
    assert!(field.paths("friend.test").contains(&"/map.xml".to_owned()), "it vouches for the index");
    let skipped = field.lines("skipped.jsonl");
    for (host, path) in
        [("victim.test", "/map.xml?1"), ("victim.test", "/map.xml?2"), ("moved.test", "/unnamed.xml")]
    {
        let url = field.url(host, path);
        let told = skipped.iter().find(|line| line["url"] == url.as_str());
        let rule = told.map_or("", |line| line["rule"].as_str().unwrap());
        assert!(
            rule.starts_with("a sitemap may lead to sitemaps of its own host only"),
            "{url}: {skipped:?}"
        );
    }
    field.assert_audit();
}

/// Whatever robots.txt names, and however long that takes.
#[test]
fn lists_that_never_end_leave_room_for_pages() {
    const LISTS: usize = 12;
    const PAGES: usize = 10;
    let endless: Vec<Raw> = (0..LISTS)
        .map(|number| {
            Raw::new(&format!("127.0.0.{}", 100 + number), |_, stream| {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n\r\n<urlset>")?;
                stream.write_all(" ".repeat(1_000_000).as_bytes())?;
                stream.read(&mut [0]).map(drop)
            })
        })
        .collect();
    let names = endless.iter().map(|list| format!("Sitemap: {}\n", list.url("/map.xml")));
    let host = plain_host(HOST, PAGES).page("/robots.txt", Answer::text(names.collect::<String>()));
    let field = Field::new(Site::new().host(host));
    field.set("[fetch]\n", "[fetch]\nat_once = 8\nmax_bytes = 1000\ntimeout = \"1h\"\n");
    let crawl = Started::new(&mut field.crawl_command(HOST, &[]));
    field.wait_for(HOST, PAGES + 1);
    assert_eq!(field.counts(HOST), each(PAGES, 1));
    let asked = || endless.iter().filter(|list| list.asked().contains(&"/map.xml".to_owned())).count();
    wait_until("lists to be asked for", || asked() == 2);
    for _ in 0..2 {
        crawl.signal("INT");
        std::thread::sleep(ANOTHER_WISH);
    }
    assert_eq!(crawl.end().status, 13);
    assert_eq!(asked(), 2, "a quarter of all fetches, and no more");
}

/// However many there are at once, and however well they are packed.
#[cfg(target_os = "linux")]
#[test]
fn few_large_sitemaps_are_in_memory_at_a_time() {
    const LISTS: u8 = 12;
    const MOST_KIB: u64 = 200 * 1024;
    let words = (0..24_000_u32).map(|number| format!("{:08x}{:248}", number.wrapping_mul(2_654_435_761), ""));
    let words = words.collect::<Vec<_>>().concat();
    let text = format!("<urlset><!-- {words}{words}{words}{words} --></urlset>");
    assert!(u64::from(LISTS) * text.len() as u64 > 1024 * MOST_KIB, "all of them together are too much");
    let packed = listing::gzip(&text);
    let robots = move |asked: &Asked<'_>| {
        let names = (0..LISTS).map(|number| asked.url(&format!("{number}.test"), "/map.xml"));
        Answer::text(names.map(|url| format!("Sitemap: {url}\n")).collect::<Vec<_>>().concat())
    };
    let site = Site::new().host(Host::new(HOST).made("/robots.txt", robots).page("/", page("Home", &[])));
    let site = (0..LISTS).fold(site, |site, number| {
        let list = Answer::xml(packed.clone()).header(CONTENT_ENCODING, "gzip");
        site.host(Host::new(format!("{number}.test")).page("/map.xml", list))
    });
    let field = Field::new(site);
    field.set("[fetch]\n", "[fetch]\nmax_bytes = 1000000\n");
    let crawl = Started::new(&mut field.crawl_command(HOST, &[]));
    let (mut most, status) = (0, format!("/proc/{}/status", crawl.id()));
    // One that has ended has no memory any more.
    while let Some(now) = std::fs::read_to_string(&status).ok().and_then(|status| peak(&status)) {
        most = now;
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    crawl.end().good_rows();
    assert!((1..MOST_KIB).contains(&most), "{most} KiB");
    for number in 0..LISTS {
        let line = field.line(&format!("{number}.test"), "/map.xml");
        assert_eq!((&line["status"], &line["bytes"]), (&json!(200), &json!(text.len())), "{line}");
        assert_eq!(line["problems"], json!(null), "{line}");
    }
}

/// The most memory that a process had, in KiB.
#[cfg(target_os = "linux")]
fn peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
