//! The queue from end to end: what one command leaves behind, the next one finds.

use crate::common;
use crate::common::{NOW, Queue};
use serde_json::{Value, json};

const LATER: &str = "2024-06-15T08:10:00Z";
const NEXT_DAY: &str = "2024-06-16T08:20:00Z";

fn column(rows: &[Value], name: &str) -> Vec<Value> {
    rows.iter().map(|row| row[name].clone()).collect()
}

#[test]
fn a_page_goes_round_the_loop_and_its_change_is_in_the_log() {
    let queue = Queue::news();
    let started = queue.good(&["seed", "start", "https://paper.example/"]);
    assert_eq!(started[0]["action"], "added");
    let page = json!({"collection": "news", "source": "https://paper.example/", "links": [
        {"url": "https://paper.example/a", "inHeader": true},
        {"url": "https://PAPER.example:443/a#top"},
        {"url": "https://other.example/"},
        {"url": "mailto:x@y.example"},
    ]});
    let found = queue.run(&["discover"], page.to_string()).good_rows();
    assert_eq!(column(&found, "action"), ["added", "kept", "ignored", "invalid"]);
    assert_eq!(column(&found, "url")[1], "https://PAPER.example:443/a#top", "as it was given");

    let leased = queue.good(&["lease", "--max", "10"]);
    assert_eq!(column(&leased, "url"), ["https://paper.example/"]);
    let nothing = queue.good(&["lease"]);
    assert_eq!(nothing[0]["nothing"], "throttled", "{nothing:?}");
    assert!(nothing[0]["until"].as_str().unwrap() > NOW);

    let report = json!({"token": leased[0]["token"], "status": 200, "fingerprint": "one", "bytes": 1000});
    let completed = queue.run_at(LATER, &["complete"], report.to_string());
    assert_eq!(completed.status, 1, "the lease ran out after five minutes");
    let leased = queue.run_at(LATER, &["lease"], "").good_rows();
    assert_eq!(leased[0]["failures"], 1);
    for (day, fingerprint, changed) in [(LATER, "one", false), (NEXT_DAY, "two", true)] {
        let leased = match day {
            LATER => leased.clone(),
            _ => queue.run_at(day, &["lease", "--host", "paper.example"], "").good_rows(),
        };
        let report = json!({"token": leased[0]["token"], "status": 200, "fingerprint": fingerprint});
        let completed = queue.run_at(day, &["complete"], report.to_string()).good_rows();
        assert_eq!((&completed[0]["outcome"], &completed[0]["changed"]), (&json!("again"), &json!(changed)));
    }

    let events = queue.run_at(NEXT_DAY, &["events"], "").good_rows();
    assert_eq!(
        column(&events, "event"),
        [
            json!({"abandoned": {"times": 1, "from": "2024-06-15T08:00:00Z"}}),
            json!({"changed": {"from": "one", "to": "two", "difference": {"added": [], "removed": []}}})
        ]
    );
    let rest = queue.run_at(NEXT_DAY, &["events", "--from", "1"], "").good_rows();
    assert_eq!(rest, events[1..]);
    let shown = queue.run_at(NEXT_DAY, &["queue", "show", "https://paper.example"], "").good_rows();
    assert_eq!(shown[0]["record"]["fingerprint"], "two");
    assert_eq!(shown[0]["record"]["history"].as_array().unwrap().len(), 2);
}

#[test]
fn explain_speaks_of_any_url() {
    let queue = Queue::with_links(&["a"]);
    let cases = [
        ("https://paper.example/", "next at its host"),
        ("https://paper.example/a", "number 2 at its host"),
        ("https://paper.example/never", "never seen; it would be queued"),
        ("https://other.example/", "never seen; a link to it would be ignored"),
    ];
    for (url, verdict) in cases {
        let json = queue.good(&["explain", url, "--json"]);
        let told = json[0]["verdict"].as_str().unwrap().to_owned();
        assert!(told.starts_with(verdict), "{url}: {told}");
        let text = queue.run(&["explain", url, "--format", "table"], "");
        let lines: Vec<&str> = text.stdout.lines().collect();
        assert_eq!((lines[0], lines[1], lines[2]), (url, &*told, ""), "{url}");
        for label in ["collection  news", "scope ", "host ", "queue ", "priority ", "class ", "forms "] {
            assert!(lines.iter().any(|line| line.starts_with(&format!("  {label}"))), "{url}: {label}");
        }
    }
    for (text, problem) in [
        ("mailto:x@y.example", "\"mailto:x@y.example\" is not an http or https URL\n"),
        ("not a url", "\"not a url\" is not an absolute URL: "),
        ("", "\"\" is not an absolute URL: "),
    ] {
        for command in [["explain", text].as_slice(), &["queue", "show", text]] {
            let ran = queue.run(command, "");
            assert_eq!(ran.status, 2);
            assert!(ran.stderr.starts_with(&format!("forager: {problem}")), "{}", ran.stderr);
        }
    }
}

#[test]
fn explain_says_nothing_that_does_not_hold_in_a_plain_collection() {
    let queue = Queue::nowhere();
    queue.good(&["collection", "add", "own", "--plain"]);
    let page = json!({"collection": "own", "links": [{"url": "no url", "key": "k"}]});
    queue.run(&["discover"], page.to_string()).good_rows();
    for url in ["no url", "never seen"] {
        let json = queue.good(&["explain", url]);
        assert_eq!((&json[0]["class"], &json[0]["priority"]["value"]), (&json!(null), &json!(null)), "{url}");
        let text = queue.run(&["explain", url, "--format", "table"], "").stdout;
        assert!(text.contains("  priority    order due\n"), "{text}");
        for label in ["class ", "changes ", "sorted as"] {
            assert!(!text.contains(label), "{url}: {label}: {text}");
        }
        assert!(text.contains(&format!("requested as {url}\n")), "{text}");
    }
}

#[test]
fn the_collection_must_be_named_where_there_are_several() {
    let queue = Queue::with_links(&["a"]);
    queue.good(&["collection", "add", "archive"]);
    for command in
        [["explain", "https://paper.example/a"].as_slice(), &["queue", "show", "https://paper.example/a"]]
    {
        let ran = queue.run(command, "");
        assert_eq!(ran.stderr, "forager: say which collection with --collection: news, archive\n");
        assert_eq!(ran.status, 2);
        let named = [command, &["--collection", "news"]].concat();
        assert_eq!(queue.good(&named).len(), 1);
    }
    let ran = queue.run(&["queue", "show", "https://paper.example/x", "--collection", "news"], "");
    assert!(ran.stderr.contains("is not in collection \"news\""), "{}", ran.stderr);
}

#[test]
fn listings_filter_and_go_on() {
    let queue = Queue::with_links(&["a/1", "a/2", "b/1"]);
    let urls = |args: &[&str]| {
        let rows = queue.good(&[&["queue", "list"], args].concat());
        column(&rows, "url")
            .iter()
            .map(|url| url.as_str().unwrap().replace("https://paper.example/", ""))
            .collect::<Vec<_>>()
    };
    assert_eq!(urls(&[]), ["", "a/1", "a/2", "b/1"]);
    assert_eq!(urls(&["--prefix", "https://paper.example/a"]), ["a/1", "a/2"]);
    assert_eq!(urls(&["--contains", "/1"]), ["a/1", "b/1"]);
    assert_eq!(urls(&["--limit", "2"]), ["", "a/1"]);
    assert_eq!(urls(&["--after", "1", "--limit", "1"]), ["a/2"]);
    assert_eq!(urls(&["--state", "leased"]), [""; 0]);
    assert_eq!(urls(&["--host", "paper.example", "--collection", "news", "--state", "queued"]).len(), 4);
    assert_eq!(queue.run(&["queue", "list", "--collection", "nowhere"], "").status, 2);
    let table = queue.run(&["queue", "list", "--format", "table"], "").stdout;
    assert_eq!(table.lines().count(), 5);
    assert!(table.starts_with("id  state   priority  due "), "{table}");
    let plan = queue.good(&["queue", "plan", "-n", "2"]);
    assert_eq!(column(&plan, "url"), ["https://paper.example/", "https://paper.example/a/1"]);
}

#[test]
fn what_is_set_for_a_host_holds_until_it_is_taken_back() {
    let queue = Queue::with_links(&["a"]);
    let set = |args: &[&str]| {
        queue.good(&[&["host", "set", "paper.example"], args].concat())[0]["settings"].clone()
    };
    let nothing = || queue.good(&["lease"])[0]["nothing"].clone();
    assert_eq!(set(&["--delay", "10s", "--in-flight", "1"])["delay"], "10s");
    let both = set(&["--block-until", LATER]);
    assert_eq!((&both["delay"], &both["blockedUntil"]), (&json!("10s"), &json!(LATER)), "the rest stays");
    assert_eq!(nothing(), "throttled");
    set(&["--block"]);
    assert_eq!(nothing(), "blocked");
    let free = set(&["--unblock", "--delay", "default", "--in-flight", "default"]);
    assert_eq!(
        free,
        json!({"delay": null, "blockedUntil": null, "inFlight": null, "fetchLimit": null, "robots": null})
    );
    assert_eq!(
        set(&["--robots", "forbid"])["robots"],
        json!({"allowed": false, "expires": "2024-06-16T08:00:00Z"})
    );
    assert_eq!(nothing(), "throttled");
    set(&["--robots", "default", "--fetch-limit", "0"]);
    assert_eq!(nothing(), "blocked");
    set(&["--fetch-limit", "default"]);
    assert_eq!(queue.good(&["lease"])[0]["url"], "https://paper.example/");
    assert_eq!(queue.good(&["queue", "hosts", "paper.example"])[0]["inFlight"], 1);
}

#[test]
fn a_host_is_found_however_it_is_written() {
    let queue = Queue::with_links(&["a"]);
    queue.good(&["collection", "add", "own", "--plain"]);
    let page =
        json!({"collection": "own", "links": [{"url": "https://Mixed.example/", "key": "Mixed.example"}]});
    queue.run(&["discover"], page.to_string()).good_rows();
    let count = |args: &[&str]| {
        let rows = queue.good(args);
        rows.iter().filter(|row| row.get("nothing").is_none()).count()
    };
    for (host, entries) in
        [("paper.example", 2), ("Paper.EXAMPLE", 2), ("Mixed.example", 1), ("mixed.example", 0)]
    {
        assert_eq!(count(&["queue", "list", "--host", host]), entries, "{host}");
        assert_eq!(count(&["queue", "plan", "--host", host]), entries, "{host}");
        assert_eq!(count(&["queue", "hosts", host]), entries.min(1), "{host}");
    }
    for (host, collection, leases) in [
        ("MIXED.example", "own", 0),
        ("Mixed.example", "own", 1),
        ("PAPER.example", "news", 1),
        ("Paper.example", "own", 0),
    ] {
        assert_eq!(
            count(&["lease", "--host", host, "--collection", collection]),
            leases,
            "{host} of {collection}"
        );
    }
    let ran = queue.run(&["host", "set", "B\u{fc}cher.example", "--delay", "3s"], "");
    assert_eq!(ran.good_rows()[0]["host"], "xn--bcher-kva.example", "in the letters that are sent");
}

#[test]
fn a_host_that_nothing_opens_has_no_date_for_it() {
    let queue = Queue::with_links(&[]);
    let cases: [(&[&str], &str); 2] =
        [(&["--in-flight", "0"], "inFlight"), (&["--in-flight", "default", "--block"], "blocked")];
    for (flags, gate) in cases {
        let set = queue.good(&[&["host", "set", "paper.example"], flags].concat());
        assert_eq!((&set[0]["opens"], &set[0]["gate"]), (&json!(null), &json!(gate)));
        let text = queue.run(&["queue", "hosts", "--format", "table"], "").stdout;
        let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row[6..8], ["never", gate], "{text}");
    }
    let sheet = queue.run(&["host", "set", "paper.example", "--format", "table"], "").stdout;
    assert!(sheet.contains("settings.blockedUntil  never\n"), "{sheet}");
}

#[test]
fn a_time_that_the_queue_cannot_keep_is_refused() {
    let queue = Queue::news();
    let cases = [
        (
            "1969-12-31T23:59:59Z",
            "the queue keeps times from 1970-01-01T00:00:00Z on and before 2106-02-07T06:28:15Z",
        ),
        ("-001000-01-01T00:00:00Z", "the queue keeps times from"),
        ("2106-02-07T06:28:15Z", "the queue keeps times from"),
        ("9999-12-30T00:00:00Z", "the queue keeps times from"),
        ("9999-12-31T23:59:59Z", "the queue keeps times from"),
        ("2024-13-01T00:00:00Z", "not a time such as 2024-06-15T08:00:00Z"),
        ("tomorrow", "not a time such as 2024-06-15T08:00:00Z"),
    ];
    for (time, problem) in cases {
        for command in [
            ["lease", "--now"].as_slice(),
            &["queue", "stats", "--now"],
            &["host", "set", "a.example", "--block-until"],
        ] {
            let ran = common::run_command(queue.command(command).arg(time), "");
            let flag = command.last().unwrap();
            let want = format!("error: invalid value '{time}' for '{flag} <TIME>': {problem}");
            if time.starts_with('-') && *flag != "--now" {
                continue; // taken for a flag
            }
            assert!(ran.stderr.starts_with(&want), "{command:?}: {}", ran.stderr);
            assert_eq!(ran.status, 2, "{command:?}");
        }
    }
    for time in ["1970-01-01T00:00:00Z", "2106-02-07T06:28:14Z"] {
        assert_eq!(queue.run_at(time, &["queue", "stats"], "").good_rows().len(), 1);
    }
}

#[test]
fn a_job_ends_and_can_be_steered() {
    let queue = Queue::nowhere();
    let started = queue.good(&[
        "job",
        "create",
        "--name",
        "site",
        "https://site.example/",
        "--order",
        "fifo",
        "--pages",
        "1",
    ]);
    assert_eq!((&started[0]["state"], &started[0]["order"]), (&json!("running"), &json!("fifo")));
    let state = |verb: &str| queue.good(&["job", verb, "site"])[0]["state"].clone();
    assert_eq!(state("pause"), "paused");
    assert_eq!(queue.good(&["lease"])[0]["nothing"], "blocked");
    assert_eq!(state("resume"), "running");
    let token = queue.good(&["lease"])[0]["token"].clone();
    queue.run(&["complete"], json!({"token": token, "status": 200}).to_string()).good_rows();
    assert_eq!(state("show"), "finished");
    assert_eq!(queue.good(&["job", "list"]).len(), 1);
    let ran = queue.run(&["job", "show", "other"], "");
    assert_eq!((ran.status, ran.stderr.as_str()), (2, "forager: there is no job \"other\"\n"));
    let ran = queue.run(&["job", "create", "--name", "site", "https://site.example/"], "");
    assert_eq!(ran.status, 2, "{}", ran.stderr);
}

#[test]
fn a_job_that_may_fetch_nothing_has_ended_when_it_starts() {
    let queue = Queue::nowhere();
    let started = queue.good(&["job", "create", "--name", "none", "https://site.example/", "--pages", "0"]);
    assert_eq!((&started[0]["state"], &started[0]["finished"]), (&json!("limited"), &json!(NOW)));
    assert_eq!(column(&queue.good(&["events"]), "event"), ["finished"]);
}

#[test]
fn one_of_a_thing_is_not_many() {
    let queue = Queue::with_links(&["a"]);
    let text = |args: &[&str]| queue.run(&[args, &["--format", "table"]].concat(), "").stdout;
    assert_eq!(text(&["check"]), "nothing is wrong with 2 entries, 1 queue, 1 host and 0 leases\n");
    assert!(
        text(&["explain", "https://paper.example/a"])
            .contains("  needs       another one of its host goes before it\n")
    );
    queue.good(&["lease"]);
    assert!(text(&["explain", "https://paper.example/"]).contains("; 1 waits at its host\n"));
    assert!(
        text(&["explain", "https://paper.example/a"])
            .contains("  queue       the only one that waits at its host\n")
    );
    queue.good(&["export", "out.jsonl"]);
    let imported = queue.run(&["import", "out.jsonl", "--data", "copy", "--format", "table"], "").stdout;
    assert!(imported.ends_with("\n2 entries added, 0 were there already, 0 lines were bad\n"), "{imported}");
}

#[test]
fn leases_are_extended_and_given_back() {
    let queue = Queue::with_links(&[]);
    let token = queue.good(&["lease"])[0]["token"].to_string();
    assert_eq!(queue.good(&["extend", &token, "--hold", "1h"])[0]["until"], "2024-06-15T09:00:00Z");
    assert_eq!(queue.good(&["release", &token])[0]["held"], true);
    let ran = queue.run(&["release", &token, "77"], "");
    assert_eq!(ran.status, 1);
    assert_eq!(column(&ran.rows(), "held"), [false, false]);
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);
}
