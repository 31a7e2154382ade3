//! What happened to collections goes with them, between folders and databases: the logs of fetches and events.

use std::io::Write as _;
use std::process::Stdio;

use crate::common::{Ran, run_command};
use crate::server::Schema;
use crate::web::{Field, page, plain_host, wait_until};
use forager_site::{Answer, Host, Site};
use serde_json::{Value, json};

const FIRST: (&str, &str) = ("--data", "first");

fn run(field: &Field, args: &[&str], place: (&str, &str), input: &str) -> Ran {
    run_command(field.queue.command(args).args([place.0, place.1]), input)
}

#[track_caller]
fn good(field: &Field, args: &[&str], place: (&str, &str), input: &str) -> String {
    let ran = run(field, args, place, input);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{args:?}: {ran:?}");
    ran.stdout
}

/// What `audit` and `events` say.
#[track_caller]
fn history(field: &Field, place: (&str, &str)) -> (String, String) {
    (good(field, &["audit", "--json"], place, ""), good(field, &["events"], place, ""))
}

/// The collections that events are of, in the order of the log.
fn collections(events: &str) -> Vec<String> {
    let rows = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| row["collection"].as_str().unwrap().to_owned()).collect()
}

/// Two hosts that were crawled, each with a robots.txt, and two collections whose pages have changed by turns.
fn lived() -> Field {
    let robots = |path: &str| Answer::text(format!("User-agent: *\nDisallow: {path} \u{e9}\n"));
    let site = Site::new()
        .host(plain_host("a.test", 3).page("/robots.txt", robots("/secret")))
        .host(Host::new("b.test").page("/", page("Home", &["/gone"])).page("/robots.txt", robots("/b")));
    let field = Field::new(site);
    for host in ["a.test", "b.test"] {
        let ran = run(&field, &["crawl", &field.url(host, "/"), "--quiet"], FIRST, "");
        assert!([0, 1].contains(&ran.status), "{ran:?}");
    }
    for name in ["news", "sports"] {
        let seed = format!("https://{name}.example/");
        good(&field, &["collection", "add", name], FIRST, "");
        good(&field, &["profile", "add", name, "--collection", name, "--every", "24h"], FIRST, "");
        good(&field, &["seed", "add", &seed, "--profile", name], FIRST, "");
        good(&field, &["collection", "start", name, "--now", "2030-06-15T08:00:00Z"], FIRST, "");
    }
    for day in 16..20 {
        for name in ["sports", "news"] {
            let now = format!("2030-06-{day}T08:00:01Z");
            let leased = good(&field, &["lease", "--collection", name, "--now", &now], FIRST, "");
            let leased: Value = serde_json::from_str(&leased).unwrap();
            // More than fits on a line, once.
            let line = if day == 18 { "\u{1}\u{e9} \"x\"".repeat(60_000) } else { "new".to_owned() };
            let difference = json!({"added": [line], "removed": []});
            let report = json!({"token": leased["token"], "status": 200, "fingerprint": format!("{day}"), "difference": difference});
            good(&field, &["complete", "--now", &now], FIRST, &report.to_string());
        }
    }
    field
}

#[test]
fn audit_and_events_say_the_same_wherever_collections_go() {
    let field = lived();
    let there = history(&field, FIRST);
    let names = collections(&there.1);
    let changed: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| ["news", "sports"].contains(name)).collect();
    assert_eq!(changed, ["sports", "news", "sports", "news", "sports", "news"], "by turns");
    assert!(there.0.contains("\"a.test\"") && there.0.contains("\"robotsRead\":1"), "{}", there.0);

    let exported = good(&field, &["export"], FIRST, "");
    assert!(exported.lines().all(|line| line.len() < 1 << 20));
    assert!(exported.contains("{\"logPart\""), "one is on several lines");
    let schema = Schema::new();
    let url = schema.url();
    let database = ("--store", url.as_str());
    good(&field, &["import"], database, &exported);
    assert!(history(&field, database) == there, "in a database: {:?}", history(&field, database).0);
    let back = good(&field, &["export"], database, "");
    let second = ("--data", "second");
    good(&field, &["import"], second, &back);
    assert!(history(&field, second) == there, "and back in a folder");
    for place in [database, second] {
        good(&field, &["import"], place, &exported);
        assert!(history(&field, place) == there, "twice is the same as once");
    }
    // As it was before exports had any of it.
    let older: Vec<&str> = exported.lines().filter(|line| !line.starts_with("{\"log")).collect();
    good(&field, &["import"], ("--data", "older"), &older.join("\n"));
    assert_eq!(history(&field, ("--data", "older")), (String::new(), String::new()));
}

#[test]
fn what_belongs_to_others_stays_behind() {
    let field = lived();
    let exported = good(&field, &["export", "--collection", "news"], FIRST, "");
    good(&field, &["import"], ("--data", "news"), &exported);
    let (audit, events) = history(&field, ("--data", "news"));
    assert_eq!((audit.as_str(), collections(&events)), ("", vec!["news".to_owned(); 3]));

    // A job that was crawled, with the robots.txt of its host, which is nobody's.
    let jobs = good(&field, &["job", "list"], FIRST, "");
    let job = jobs.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone());
    let job = job.map(|id| id.as_str().unwrap().to_owned()).find(|id| id.contains("a.test")).unwrap();
    let exported = good(&field, &["export", "--collection", &job], FIRST, "");
    let schema = Schema::new();
    let url = schema.url();
    let database = ("--store", url.as_str());
    good(&field, &["import"], database, &exported);
    let of_all = history(&field, FIRST).0;
    let own: Vec<&str> = of_all.lines().filter(|line| line.contains("\"a.test\"")).collect();
    assert_eq!(history(&field, database).0.lines().collect::<Vec<_>>(), own);

    // Of a file with several, one is taken in, and what is nobody's.
    let all = good(&field, &["export"], FIRST, "");
    let ran = run(&field, &["import", "--collection", "x"], ("--data", "x"), &all);
    assert_eq!(ran.status, 1, "{ran:?}");
    let (_, events) = history(&field, ("--data", "x"));
    assert!(collections(&events).iter().all(|name| name == "x"), "{events:.500}");
}

#[test]
fn a_copy_under_another_name_has_not_fetched_anything_once_more() {
    let field = lived();
    let exported = good(&field, &["export", "--collection", "news"], FIRST, "");
    let before = history(&field, FIRST);
    good(&field, &["import", "--collection", "copy"], FIRST, &exported);
    assert!(history(&field, FIRST) == before, "beside what it is a copy of");
    good(&field, &["import", "--collection", "copy"], ("--data", "copy"), &exported);
    assert_eq!(collections(&history(&field, ("--data", "copy")).1), ["copy"; 3]);
}

#[test]
fn evidence_that_nobody_wrote_is_refused() {
    let field = lived();
    let exported = good(&field, &["export"], FIRST, "");
    let is_evidence = |line: &&str| line.contains("{\"kept\":{\"evidence\"");
    let line = exported.lines().find(is_evidence).unwrap();
    assert!(line.contains("Disallow"), "{line}");
    for bad in [line.replacen("Disallow", "Allow", 1), line.replacen("robots.txt ", "urlfrontier ", 1)] {
        let ran = run(&field, &["import"], ("--data", "bad"), &exported.replacen(line, &bad, 1));
        assert_eq!(ran.status, 1, "{ran:?}");
        assert!(ran.stderr.contains("nothing like this is ever kept"), "{}", ran.stderr);
    }
    for (alone, problem) in [(line, "begins with a line"), ("{\"log\":{}}", "forager: ")] {
        let ran = run(&field, &["import"], ("--data", "none"), alone);
        assert!(ran.status != 0 && ran.stderr.contains(problem), "{alone}: {ran:?}");
    }
}

/// An export with many fetches of a collection.
fn many(field: &Field, count: usize) -> String {
    good(field, &["collection", "add", "c"], FIRST, "");
    let mut exported = good(field, &["export"], FIRST, "");
    for number in 0..count {
        let second = format!("2024-06-15T{:02}:{:02}:{:02}Z", number / 3600, number / 60 % 60, number % 60);
        let row = json!({"log": {"fetch": {"position": number, "started": second, "ended": second, "collection": "c", "host": "h.example",
            "url": format!("https://h.example/{}", number % 7), "result": "200", "bytes": number, "robots": "", "leastGap": 0,
            "mostInFlight": 1, "backOffUntil": null}}});
        exported.extend([row.to_string(), "\n".to_owned()]);
    }
    exported
}

/// The requests of the log, in its order, as an export has them.
fn fetches(field: &Field, place: (&str, &str)) -> Vec<Value> {
    let exported = good(field, &["export"], place, "");
    let rows = exported.lines().filter(|line| line.starts_with("{\"log\""));
    rows.map(|line| serde_json::from_str::<Value>(line).unwrap()["log"]["fetch"].clone()).collect()
}

#[test]
fn an_import_that_was_killed_can_be_repeated() {
    const ROWS: usize = 2500;
    let field = Field::new(Site::new());
    let whole = many(&field, ROWS);
    let part: String = whole.lines().take(1800).flat_map(|line| [line, "\n"]).collect();
    let schema = Schema::new();
    let url = schema.url();
    let mut command = field.queue.command(&["import", "--store", &url]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(part.as_bytes()).unwrap();
    let written = || schema.sql("SELECT count(*) FROM fetches")[0][0].parse::<usize>().unwrap();
    wait_until("a part of the log", || written() > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    assert!((1..ROWS).contains(&written()), "{} of {ROWS}", written());

    // In a folder, one whose input has ended early.
    let folder = ("--data", "second");
    good(&field, &["import"], folder, &part);
    for place in [("--store", url.as_str()), folder] {
        good(&field, &["import"], place, &whole);
        let fetches = fetches(&field, place);
        assert_eq!(fetches.len(), ROWS, "none is missing, and none there twice");
        for (number, row) in fetches.iter().enumerate() {
            assert_eq!((&row["position"], &row["bytes"]), (&json!(number), &json!(number)), "in order");
        }
    }
}
