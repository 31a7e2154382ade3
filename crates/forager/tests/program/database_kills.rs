//! Workers that are killed while the server is at what they asked of it: in the middle of a claim, and of a report.

use crate::common;
use std::io::Write as _;
use std::process::Stdio;

use crate::server::Schema;
use crate::web::wait_until;
use serde_json::{Value, json};

/// A minute after [`common::NOW`], and much later.
const SOON: &str = "2024-06-15T08:01:00Z";
const LATER: &str = "2024-06-15T09:00:00Z";

/// A queue with a page and three links.
fn queue() -> Schema {
    let schema = Schema::new();
    schema.good(&["collection", "add", "news"]);
    schema.good(&["profile", "add", "daily", "--collection", "news", "--every", "24h"]);
    schema.good(&["seed", "add", "https://paper.example/", "--profile", "daily"]);
    schema.good(&["collection", "start", "news"]);
    let links = ["a", "b", "c"].map(|name| json!({"url": format!("https://paper.example/{name}")}));
    let page = json!({"collection": "news", "source": "https://paper.example/", "links": links});
    assert_eq!(schema.run(&["discover"], page.to_string()).good_rows().len(), 3);
    schema
}

/// Starts a command, and kills it when the server is in the middle of writing what it asked for.
fn kill_amid(schema: &Schema, args: &[&str], input: &str) {
    let name = &schema.name;
    let slow = |seconds: u32| {
        format!(
            "CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep({seconds}); RETURN NULL; END'"
        )
    };
    schema.sql(&slow(2));
    schema.sql("CREATE TRIGGER slow AFTER UPDATE ON entries FOR EACH STATEMENT EXECUTE FUNCTION slow()");
    let at_it = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'forager' AND query LIKE '%{name}%' AND wait_event = 'PgSleep'"
    );
    let mut command = schema.command(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    wait_until("the server to be at it", || schema.sql(&at_it) == [["1"]]);
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"", "it was told nothing");
    wait_until("the server to be through with it", || schema.sql(&at_it) == [["0"]]);
    // That waits for whoever still has the table.
    schema.sql("DROP TRIGGER slow ON entries; DROP FUNCTION slow()");
}

fn good(schema: &Schema, args: &[&str], input: &str) -> Vec<Value> {
    common::run_command(&mut schema.command(args), input).good_rows()
}

/// What is counted is what there is.
fn assert_sound(schema: &Schema, waiting: u64) {
    let stats = good(schema, &["queue", "stats", "--now", LATER], "").remove(0);
    assert_eq!((&stats["queued"], &stats["inFlight"]), (&json!(waiting), &json!(0)), "{stats}");
    schema.good(&["db", "check"]);
}

#[test]
fn a_claim_in_the_middle_of_which_a_worker_is_killed_keeps_nothing() {
    let schema = queue();
    kill_amid(&schema, &["lease", "--now", SOON], "");
    // Nobody waits for the end of a lease that was never given.
    let leased = good(&schema, &["lease", "--now", SOON], "");
    assert_eq!((leased.len(), &leased[0]["url"]), (1, &json!("https://paper.example/")), "{leased:?}");
    let report = json!({"token": leased[0]["token"], "status": 200, "fingerprint": "one"});
    let told = good(&schema, &["complete", "--now", SOON], &report.to_string());
    assert_eq!(told[0]["outcome"], "again");
    assert_sound(&schema, 4);
}

#[test]
fn a_report_in_the_middle_of_which_a_worker_is_killed_is_taken_in_once() {
    let schema = queue();
    let leased = good(&schema, &["lease", "--now", SOON], "").remove(0);
    let report =
        json!({"token": leased["token"], "status": 200, "fingerprint": "one", "links": [{"url": "https://paper.example/d"}]})
            .to_string();
    kill_amid(&schema, &["complete", "--now", SOON], &report);
    // Nothing of it was done, so that the lease still holds: who hands it in again is answered as if it were the first time.
    let told = good(&schema, &["complete", "--now", SOON], &report).remove(0);
    assert_eq!((&told["outcome"], &told["found"][0]["action"]), (&json!("again"), &json!("added")), "{told}");
    assert_sound(&schema, 5);
    let stats = good(&schema, &["queue", "stats", "--now", LATER], "").remove(0);
    assert_eq!(stats["fetches"], 1, "{stats}");
    let shown = good(&schema, &["queue", "show", "https://paper.example/", "--now", LATER], "").remove(0);
    assert_eq!(shown["record"]["scans"], 1, "{shown}");
}
