//! `--crawl-log`: the log that scripts for Heritrix read.

use std::collections::BTreeMap;

use crate::web::{Field, page, plain_host};
use forager_site::{Answer, Host, Site, listing};

const HOST: &str = "a.test";

fn field() -> Field {
    let sitemap = |asked: &forager_site::Asked<'_>| {
        Answer::xml(listing::sitemap([(asked.url(HOST, "/listed"), None), (asked.url(HOST, "/1"), None)]))
    };
    let host = Host::new(HOST)
        .page("/robots.txt", Answer::redirect(302, "/rules.txt"))
        .made("/rules.txt", |asked: &forager_site::Asked<'_>| {
            Answer::text(format!("Sitemap: {}\n", asked.url(HOST, "/old-map.xml")))
        })
        .page("/old-map.xml", Answer::redirect(301, "/sitemap.xml"))
        .made("/sitemap.xml", sitemap)
        .page("/", page("Home", &["/1", "/moved"]))
        .page("/1", page("One", &["/2"]))
        .page("/2", page("Two", &[]))
        .page("/moved", Answer::redirect(302, "/target"))
        .page("/target", page("Target", &["/behind"]))
        .page("/behind", page("Behind", &[]))
        .page("/listed", page("Listed", &["/on-listed"]))
        .page("/on-listed", page("On it", &[]));
    Field::new(Site::new().host(host))
}

/// The hops and the page before, by path.
fn trails(field: &Field) -> BTreeMap<String, (String, String)> {
    let log = std::fs::read_to_string(field.file("crawl.log")).unwrap();
    let base = field.url(HOST, "");
    let mut trails = BTreeMap::new();
    for line in log.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(fields.len(), 12, "{line}");
        let (worker, path) = (fields[7], fields[3].strip_prefix(&base).unwrap());
        assert!(worker.len() == 4 && matches!(worker, "#001" | "#002" | "#003"), "{line}");
        let via = fields[5].strip_prefix(&base).unwrap_or(fields[5]).to_owned();
        let before = trails.insert(path.to_owned(), (fields[4].to_owned(), via));
        assert!(before.is_none(), "{line}");
    }
    trails
}

#[test]
fn each_line_says_how_the_page_was_come_to_also_after_a_restart() {
    let want = [
        ("/robots.txt", "P", "/"),
        ("/rules.txt", "PR", "/robots.txt"),
        ("/", "-", "-"),
        ("/1", "L", "/"),
        ("/2", "LL", "/1"),
        ("/moved", "L", "/"),
        ("/target", "LR", "/moved"),
        ("/behind", "LRL", "/target"),
        ("/old-map.xml", "M", "/"),
        ("/sitemap.xml", "MM", "/old-map.xml"),
        ("/listed", "MMM", "/sitemap.xml"),
        ("/on-listed", "MMML", "/listed"),
    ];
    let want = want.map(|(path, hops, via)| (path.to_owned(), (hops.to_owned(), via.to_owned())));
    let want: BTreeMap<_, _> = want.into_iter().collect();
    for stops in [false, true] {
        let field = field();
        if stops {
            // What went before is known from the queue alone.
            for limit in ["1", "3", "5"] {
                field.crawl(HOST, &["--crawl-log", "crawl.log", "--limit", limit, "--at-once", "3"]);
            }
        }
        let ran = field.crawl(HOST, &["--crawl-log", "crawl.log", "--at-once", "3"]);
        assert_eq!(ran.status, 0, "{ran:?}");
        assert_eq!(trails(&field), want, "in pieces: {stops}");
    }
}

#[test]
fn a_crawl_that_never_ends_writes_down_the_same() {
    let host = plain_host(HOST, 3).page("/", page("Home", &["/1", "http://elsewhere.test/"]));
    let field = Field::new(Site::new().host(host));
    let text = std::fs::read_to_string(field.file("forager.toml")).unwrap();
    let seed = field.url(HOST, "/");
    let harvest = format!(
        "[[collections]]\nid = \"c\"\n[[profiles]]\nid = \"p\"\ncollection = \"c\"\nscope = \"host\"\n\
         [[seeds]]\nurl = {seed:?}\nprofiles = [\"p\"]\n"
    );
    std::fs::write(field.file("forager.toml"), text + &harvest).unwrap();
    let files = ["--crawl-log", "crawl.log", "--skipped", "skipped.jsonl"];
    let ran = field.run(&[&["run", "--until-idle", "--quiet"][..], &files].concat());
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{ran:?}");
    let trails = trails(&field);
    assert_eq!(trails.get("/1"), Some(&("L".to_owned(), "/".to_owned())), "{trails:?}");
    let skipped = std::fs::read_to_string(field.file("skipped.jsonl")).unwrap();
    assert!(skipped.contains("elsewhere.test") && skipped.contains("not in scope host"), "{skipped}");
}
