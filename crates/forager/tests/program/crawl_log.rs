//! `--crawl-log`: the log that scripts for Heritrix read. And the log of fetches: what `forager audit` proves from it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::{lines, run_command};
use crate::web::{Field, TOLERANCE, page, plain_host};
use forager_site::{Answer, Host, Seen, Site, listing};
use serde_json::{Value, json};

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

/// The requests to a host, as its server saw them.
fn seen(field: &Field, host: &str) -> Vec<Seen> {
    field.seen().into_iter().filter(|seen| *seen.host == *host).collect()
}

/// The shortest time between two of them, in milliseconds.
fn shortest_gap(seen: &[Seen]) -> i128 {
    seen.windows(2).map(|pair| pair[1].arrived.duration_since(pair[0].arrived).as_millis()).min().unwrap()
}

#[test]
fn the_audit_shows_how_each_host_was_treated() {
    const RULES: &str = "# ours\nUser-agent: *\nCrawl-delay: 1\nDisallow: /2\n";
    let slow = Host::new("slow.test")
        .page("/", page("Home", &["/1", "/2"]).slow(Duration::from_secs(2)))
        .page("/1", page("One", &[]).slow(Duration::from_secs(2)))
        .page("/2", page("Two", &[]).slow(Duration::from_secs(2)));
    let asks = plain_host("asks.test", 3).robots(RULES);
    let field = Field::new(Site::new().host(slow).host(asks));
    field.set("delay = \"50ms\"\nmax_delay = \"50ms\"", "delay = \"400ms\"\nmax_delay = \"400ms\"");
    let command = ["crawl", &field.url("slow.test", "/"), &field.url("asks.test", "/"), "--json", "--quiet"];
    field.run(&command).good_rows();
    let rows = field.assert_audit();
    let allowed = [("asks.test", 1, 1000, json!(1000)), ("slow.test", 2, 400, json!(null))];
    for (row, (host, most, gap, asked)) in rows.iter().zip(allowed) {
        let seen = seen(&field, host);
        assert_eq!((&row["host"], &row["names"]), (&json!(host), &json!(["forager"])), "{row}");
        let limits = (&row["mostAllowed"], &row["gapDue"], &row["crawlDelay"]);
        assert_eq!(limits, (&json!(most), &json!(gap), &asked), "{row}");
        let at_once = seen.iter().map(|seen| seen.at_once).max().unwrap();
        assert_eq!((&row["mostInFlight"], at_once), (&json!(most), most), "{row}");
        // A busy machine takes its time, and a request may arrive later than it was sent.
        let apart = row["shortestGap"].as_u64().unwrap();
        let off = (i128::from(apart) - shortest_gap(&seen)).unsigned_abs();
        assert!(
            apart >= gap && off <= TOLERANCE.unsigned_abs().as_millis() * 4,
            "{apart} ms, {off} off: {row}"
        );
        let robots = seen.iter().filter(|seen| seen.path == "/robots.txt").count();
        assert_eq!(row["robotsRead"], json!(robots), "{row}");
    }
    let known = |row: &Value, answer: &str| {
        let robots = row["robots"].as_array().unwrap();
        assert_eq!((robots.len(), &robots[0]["answer"]), (1, &json!(answer)), "{row}");
        assert_eq!(
            (&robots[0]["askedAs"], &robots[0]["crawlDelay"]),
            (&json!("forager"), &row["crawlDelay"]),
            "{row}"
        );
        robots[0]["file"].as_str().map(str::to_owned)
    };
    let file = known(&rows[0], "200").unwrap();
    assert_eq!(known(&rows[1], "404"), None);
    // The evidence itself.
    let shown = field.run(&["audit", "--robots-text", &file]);
    assert_eq!((shown.status, shown.stdout.as_str()), (0, RULES), "{shown:?}");
    let none = field.run(&["audit", "--robots-text", "0123"]);
    assert_eq!((none.status, none.stdout.as_str()), (4, ""), "{none:?}");
}

#[test]
fn the_audit_names_what_was_not_as_agreed() {
    let host = plain_host(HOST, 3).robots("User-agent: *\nDisallow: /private/\n");
    let field = Field::new(Site::new().host(host));
    field.crawl(HOST, &[]).good_rows();
    let mut exported = field.run(&["export"]).rows();
    let at = |rows: &[Value], path: &str| {
        let url = field.url(HOST, path);
        rows.iter().position(|row| row["log"]["fetch"]["url"] == url.as_str()).unwrap()
    };
    // One page was fetched with another, and one was not the page that it was.
    let (one, two, three) = (at(&exported, "/1"), at(&exported, "/2"), at(&exported, "/3"));
    exported[two]["log"]["fetch"]["started"] = exported[one]["log"]["fetch"]["started"].clone();
    exported[three]["log"]["fetch"]["url"] = json!(field.url(HOST, "/private/3"));
    let import = &mut field.queue.command(&["import", "--data", "altered"]);
    assert_eq!(run_command(import, lines(&exported)).status, 0);

    let audit = field.run(&["audit", "--data", "altered", "--json"]);
    let rows = audit.rows();
    assert_eq!((audit.status, rows.len()), (1, 3), "{audit:?}");
    assert_eq!((&rows[0]["host"], &rows[0]["shortestGap"]), (&json!(HOST), &json!(0)), "{audit:?}");
    let told = [
        ("/2", format!("0 ms after {}, and 50 ms were due", field.url(HOST, "/1"))),
        ("/private/3", "robots.txt forbids it: line 2: Disallow: /private/".to_owned()),
    ];
    for (path, what) in told {
        let url = field.url(HOST, path);
        let row = rows.iter().find(|row| row["url"] == url.as_str()).unwrap_or_else(|| panic!("{audit:?}"));
        assert_eq!((&row["host"], &row["what"]), (&json!(HOST), &json!(what)), "{audit:?}");
        let said = format!("forager: {HOST}: {url} at {}: {what}\n", row["at"].as_str().unwrap());
        assert!(audit.stderr.contains(&said), "{said} is not in {audit:?}");
    }
    // A table has the hosts alone.
    let table = field.run(&["audit", "--data", "altered", "--format", "table"]);
    assert_eq!((table.status, table.stdout.lines().count()), (1, 2), "{table:?}");
}
