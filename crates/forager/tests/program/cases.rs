//! The expected answers of core, through the binary: names, order and format are right too.

use crate::common::{NOW, cases, lines, list, run};
use serde_json::{Value, json};

/// Asserts that `got` has every field of `want`, with its value.
#[track_caller]
fn assert_fields(name: &Value, got: &Value, want: &Value) {
    for (field, want) in want.as_object().unwrap() {
        assert_eq!(&got[field], want, "{name}: {field} of {got}");
    }
}

fn field(cases: &[Value], name: &str) -> Vec<Value> {
    cases.iter().map(|case| case[name].clone()).collect()
}

#[test]
fn score() {
    let file = cases("score");
    let cases = list(&file, "cases");
    let rows = run(&["score", "--now", NOW], lines(&field(cases, "input"))).good_rows();
    assert_eq!(rows.len(), cases.len());
    for (case, row) in cases.iter().zip(&rows) {
        assert_fields(&case["name"], row, &case["expected"]);
    }
}

#[test]
fn score_refuses_what_is_invalid_and_goes_on() {
    let file = cases("score");
    let invalid = list(&file, "invalid");
    let good = json!({"url": "https://example.org/"});
    let mut input = field(invalid, "input");
    input.push(good);
    let ran = run(&["score", "--now", NOW], lines(&input));
    assert_eq!((ran.status, ran.rows().len()), (1, 1), "{ran:?}");
    let problems: Vec<&str> = ran.stderr.lines().collect();
    let fields =
        ["topicRelevance: 1.2", "hubDepth", "lastVisited: \"yesterday\"", "url: \"nonsense\"", "visits"];
    assert_eq!(problems.len(), invalid.len());
    for (index, (problem, field)) in problems.iter().zip(fields).enumerate() {
        let start = format!("forager: line {}: {field}", index + 1);
        assert!(problem.starts_with(&start), "{problem} should start with {start}");
    }
}

#[test]
fn rank() {
    let file = cases("score");
    let cases = list(&file, "cases");
    let rows = run(&["rank", "--now", NOW], lines(&field(cases, "input"))).good_rows();
    let mut expected = field(cases, "expected");
    expected.sort_by_key(|expected| std::cmp::Reverse(expected["score"].as_u64())); // stable, as the rules ask
    assert_eq!(field(&rows, "score"), field(&expected, "score"));
    assert_eq!(field(&rows, "url"), field(&expected, "url"));
    assert_eq!(field(&rows, "reasons"), field(&expected, "reasons"));
}

#[test]
fn select() {
    let file = cases("select");
    for case in list(&file, "cases") {
        let cap = case["page_cap"].to_string();
        let args = ["select", "--home", file["home"].as_str().unwrap(), "--page-cap", &cap];
        let rows = run(&args, lines(list(case, "links"))).good_rows();
        let expected = case["expected"].as_array().unwrap();
        assert_eq!(field(&rows, "url"), field(expected, "url"), "{}", case["name"]);
        for (row, want) in rows.iter().zip(expected) {
            assert_fields(&case["name"], row, want);
        }
    }
}

#[test]
fn classify() {
    let file = cases("sentinel");
    let cases = list(&file, "classify");
    let rows = run(&["classify"], lines(cases)).good_rows();
    assert_eq!(rows.len(), cases.len());
    for (case, row) in cases.iter().zip(&rows) {
        assert_fields(&case["url"], row, &case["expected"]);
    }
}

#[test]
fn reschedule() {
    let file = cases("sentinel");
    for case in list(&file, "velocity") {
        let scan = json!({
            "url": "https://x.hr/", "freshnessRisk": "MEDIUM", "contentChanged": case["changed"],
            "changeFrequency": case["current"], "scanCount": case["scanCount"],
        });
        let rows = run(&["reschedule", "--now", NOW], lines(&[scan])).good_rows();
        assert_eq!(rows[0]["changeFrequency"], case["expected"], "{case}");
        assert_eq!(rows[0]["scanCount"].as_u64().unwrap(), case["scanCount"].as_u64().unwrap() + 1);
    }
}

#[test]
fn intervals() {
    let file = cases("sentinel");
    for case in list(&file, "interval_without_jitter") {
        // A dead page at its first failure waits for the normal interval of its velocity.
        let scan = json!({
            "url": "https://x.hr/", "freshnessRisk": case["risk"], "changeFrequency": case["velocity"],
            "scanCount": 9, "status": 404, "failures": 0,
        });
        let rows = run(&["reschedule", "--now", NOW, "--jitter", "0"], lines(&[scan])).good_rows();
        assert_eq!(rows[0]["intervalHours"], case["expectedHours"], "{case}");
        assert_eq!(rows[0]["changeFrequency"], case["velocity"], "an error teaches nothing");
    }
}

#[test]
fn hierarchy() {
    let file = cases("hierarchy");
    for case in list(&file, "sequences") {
        let rows = run(&["hierarchy"], lines(list(case, "events"))).good_rows();
        assert_eq!(Value::from(field(&rows, "priority")), case["expected"], "{}", case["name"]);
    }
}

#[test]
fn scope() {
    let file = cases("scope");
    let now = file["now"].as_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("forager.toml");
    for kind in ["before_fetch", "outlink"] {
        for case in list(&file, kind) {
            std::fs::write(&config, toml::to_string(&case["config"]).unwrap()).unwrap();
            let question = match kind {
                "before_fetch" => json!({ "entry": camel_case(&case["entry"]) }),
                _ => json!({"context": case["context"], "url": case["url"], "queued": case["queued"]}),
            };
            let args = ["scope", "--config", config.to_str().unwrap(), "--now", now];
            let rows = run(&args, lines(&[question])).good_rows();
            assert_eq!(rows.len(), 1);
            assert_fields(&case["name"], &rows[0], &case["expected"]);
            assert_ne!(rows[0]["rule"], "", "{}", case["name"]);
        }
    }
}

/// The cases write `last_fetch`, as the configuration does; lines are in camelCase.
fn camel_case(entry: &Value) -> Value {
    let mut entry = entry.clone();
    let last_fetch = entry.as_object_mut().unwrap().remove("last_fetch").unwrap();
    entry["lastFetch"] = last_fetch;
    entry
}
