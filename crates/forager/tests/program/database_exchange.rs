//! Collections that move between folders and databases take with them what is kept beside their entries.

use std::collections::BTreeSet;

use crate::common::{Ran, run_command};
use crate::server::Schema;
use crate::web::{Field, page};
use forager_site::{Answer, Host, Site};
use serde_json::{Value, json};

const HOST: &str = "a.test";

fn run(field: &Field, args: &[&str], place: (&str, &str), input: &str) -> Ran {
    run_command(field.queue.command(args).args([place.0, place.1]), input)
}

/// The lines of an export that tell what is kept.
fn kept(field: &Field, place: (&str, &str)) -> BTreeSet<String> {
    let ran = run(field, &["export"], place, "");
    assert_eq!(ran.status, 0, "{ran:?}");
    ran.stdout.lines().filter(|line| line.starts_with("{\"kept\"")).map(str::to_owned).collect()
}

#[test]
fn texts_and_robots_go_with_their_collection() {
    let robots = "User-agent: *\nCrawl-delay: 0.01\nDisallow: /secret \u{e9}\n";
    let site = Site::new()
        .host(Host::new(HOST).page("/", page("Home", &[])).page("/robots.txt", Answer::text(robots)));
    let field = Field::new(site);
    let first = ("--data", "first");
    let home = field.url(HOST, "/");
    assert_eq!(run(&field, &["crawl", &home, "--quiet"], first, "").status, 0);
    let good = |args: &[&str], input: &str| run(&field, args, first, input).good_rows();
    good(&["collection", "add", "news"], "");
    good(&["profile", "add", "daily", "--collection", "news", "--every", "24h"], "");
    good(&["seed", "add", "https://paper.example/", "--profile", "daily"], "");
    good(&["collection", "start", "news"], "");
    let token = good(&["lease", "--collection", "news"], "")[0]["token"].clone();
    // More than fits on a line, as it is written there.
    let text = "\u{1}\u{e9}\n\u{1f600} \"quoted\" ".repeat(15_000);
    let report = json!({"token": token, "status": 200, "fingerprint": "one", "text": text});
    good(&["complete"], &report.to_string());

    let exported = run(&field, &["export"], first, "").stdout;
    let there = kept(&field, first);
    let lines: Vec<Value> = there.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    for what in ["text", "robots", "crawlDelays"] {
        assert!(lines.iter().any(|line| line["kept"][what].is_string()), "{what}: {lines:.500?}");
    }
    assert!(lines.iter().any(|line| line["more"] == true), "one is on several lines");
    assert!(there.iter().all(|line| line.len() < 1 << 20));

    let schema = Schema::new();
    let url = schema.url();
    let database = ("--store", url.as_str());
    let imported = run(&field, &["import"], database, &exported);
    assert_eq!(imported.status, 0, "{imported:?}");
    assert!(kept(&field, database) == there, "in the database");
    let back = run(&field, &["export"], database, "").stdout;
    assert_eq!(run(&field, &["import"], ("--data", "second"), &back).status, 0);
    assert!(kept(&field, ("--data", "second")) == there, "and back");

    // What is there stays: it may be newer.
    let older = there.iter().map(|line| line.replace("quoted", "older")).collect::<Vec<_>>().join("\n");
    let only = ["import", "--collection", "news"];
    assert_eq!(run(&field, &only, database, &older).status, 0);
    assert!(kept(&field, database) == there, "it is as it was");
    let bad = "{\"kept\":{\"robots\":\"no origin\"},\"value\":\"x\"}\n";
    assert_eq!(run(&field, &only, database, bad).status, 1, "a line that nobody wrote");
}
