//! What each command prints beyond the shared cases.

use crate::common;
use crate::common::{NOW, lines, run, run_command};
use serde_json::{Value, json};

fn column(rows: &[Value], name: &str) -> Vec<Value> {
    rows.iter().map(|row| row[name].clone()).collect()
}

#[test]
fn a_table_has_titles_and_one_row_a_record() {
    let input = lines(&[
        json!({"url": "https://example.org/a", "lastVisited": "2024-06-15T07:30:00Z"}),
        json!({"url": "https://example.org/b", "isHub": true}),
    ]);
    let ran = run(&["rank", "--now", NOW, "--format", "table"], input);
    let expected = "\
score  level  url                    reasons                                nextChange
83     very high  https://example.org/b  Not visited in 7+ days, Is a hub page  -
28     low        https://example.org/a  Recently visited (<1h)                 2024-06-15T08:30:00Z
";
    let squeezed = |text: &str| -> Vec<String> {
        text.lines()
            .map(|line| {
                line.split("  ").filter(|cell| !cell.is_empty()).map(str::trim).collect::<Vec<_>>().join("|")
            })
            .collect()
    };
    assert_eq!(squeezed(&ran.stdout), squeezed(expected));
    let starts: Vec<_> =
        ran.stdout.lines().map(|line| line.find("https").or(line.find("url")).unwrap()).collect();
    assert_eq!(starts, [starts[0]; 3], "columns stand below each other");
}

#[test]
fn select_takes_its_trade_from_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("bakery.toml");
    std::fs::write(
        &config,
        "[select]\nservice_prefixes = [\"/cakes\"]\nabsolute_terms = [\"wedding\"]\npage_cap = 1\n",
    )
    .unwrap();
    let links = lines(&[json!({"href": "/services"}), json!({"href": "/cakes/wedding"})]);
    let args =
        ["select", "--home", "https://bakery.example", "--config", config.to_str().unwrap(), "--dropped"];
    let rows = run(&args, links).good_rows();
    assert_eq!(rows[0]["url"], "https://bakery.example/cakes/wedding");
    assert_eq!((&rows[0]["score"], &rows[0]["matchedTerm"]), (&json!(100), &json!("wedding")));
    assert_eq!(rows[1], json!({"href": "/services", "dropped": "pageCap"}));
}

#[test]
fn select_names_the_filter_of_every_dropped_link() {
    let hrefs = [
        ("mailto:a@acme.com", "notWeb"),
        ("https://other.com/services", "otherHost"),
        ("/privacy", "disallowedPath"),
        ("/blog/1", "disallowedPath"),
        ("/#top", "homepage"),
        ("/locations/x", "serviceArea"),
        ("https://acme.com/services", "duplicate"),
    ];
    let mut links: Vec<Value> = hrefs.iter().map(|(href, _)| json!({ "href": href })).collect();
    links.insert(0, json!({"href": "/services"}));
    let rows =
        run(&["select", "--home", "https://acme.com", "--disallow", "/blog", "--dropped"], lines(&links))
            .good_rows();
    assert_eq!(rows.len(), 8);
    for (href, filter) in hrefs {
        assert!(rows.contains(&json!({"href": href, "dropped": filter})), "{href}: {rows:?}");
    }
}

#[test]
fn classify_takes_plain_urls_records_and_own_rows() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("own.toml");
    let rows =
        "[[classify.rows]]\npattern = \"/blog/\"\nnode = \"HUB\"\nrole = \"NEWS_FEED\"\nrisk = \"LOW\"\n";
    std::fs::write(&config, rows).unwrap();
    let input =
        "https://x.hr/blog/news\n{\"url\":\"https://x.hr/d.pdf\",\"parentRisk\":\"CRITICAL\"}\nnot a url\n";
    let ran = run(&["classify", "--config", config.to_str().unwrap()], input);
    assert_eq!(ran.status, 1);
    assert_eq!(
        ran.stderr,
        "forager: line 3: url: \"not a url\" is not an absolute URL: write https:// or http:// before it\n"
    );
    assert_eq!(column(&ran.rows(), "freshnessRisk"), ["LOW", "CRITICAL"]);
    assert_eq!(ran.rows()[0]["reasons"], json!(["own row: /blog/"]));
    assert_eq!(ran.rows()[1]["reasons"], json!(["asset: path ends in .pdf", "asset on a CRITICAL page"]));
}

#[test]
fn reschedule_repeats_itself_with_a_seed_and_only_with_one() {
    let scan = json!({"url": "https://x.hr/", "changeFrequency": 0.5, "scanCount": 9, "contentChanged": true, "freshnessRisk": "LOW"});
    let input = lines(&vec![scan; 50]);
    let once = run(&["reschedule", "--now", NOW, "--seed", "7"], &input);
    assert_eq!(once, run(&["reschedule", "--now", NOW, "--seed", "7"], &input));
    assert_ne!(once, run(&["reschedule", "--now", NOW, "--seed", "8"], &input));
    assert_ne!(run(&["reschedule", "--now", NOW], &input), run(&["reschedule", "--now", NOW], &input));
    // 4 h / (0.65 × 0.5) is 12.3 h; jitter moves it by a tenth.
    let hours: Vec<f64> =
        column(&once.good_rows(), "intervalHours").iter().map(|hours| hours.as_f64().unwrap()).collect();
    assert!(hours.iter().all(|hours| (11.07..=13.54).contains(hours)), "{hours:?}");
    assert!(hours.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 0.1), "{hours:?}");
}

#[test]
fn reschedule_backs_off_from_errors_and_learns_nothing_from_them() {
    let known = json!({"url": "https://x.hr/", "changeFrequency": 0.1, "scanCount": 9, "freshnessRisk": "HIGH", "lastChangedAt": "2024-01-01T00:00:00Z"});
    let cases = [
        ("server error", json!({"status": 503, "failures": 0}), 1.0),
        ("again", json!({"status": 503, "failures": 3}), 8.0),
        ("for ever", json!({"status": "timeout", "failures": 4_000_000_000_u32}), 720.0),
        ("no connection", json!({"status": "network"}), 1.0),
        ("asked to wait", json!({"status": 429, "retryAfter": 36000}), 10.0),
        ("asked to wait for a century", json!({"status": 429, "retryAfter": 1e18}), 720.0),
        ("gone", json!({"status": 404, "failures": 0}), 20.0),
        ("still gone", json!({"status": 410, "failures": 2}), 80.0),
    ];
    for (name, error, hours) in cases {
        let mut scan = known.clone();
        scan.as_object_mut().unwrap().extend(error.as_object().unwrap().clone());
        let rows = run(&["reschedule", "--now", NOW], lines(&[scan])).good_rows();
        assert_eq!(rows[0]["intervalHours"], hours, "{name}");
        for field in ["changeFrequency", "scanCount", "lastChangedAt"] {
            assert_eq!(rows[0][field], known[field], "{name}: {field}");
        }
    }
}

#[test]
fn the_sentinel_preset_never_waits_longer_for_critical_pages_than_promised() {
    let scan = json!({"url": "https://x.hr/", "changeFrequency": 0.01, "scanCount": 9, "contentChanged": false, "freshnessRisk": "CRITICAL"});
    let rows =
        run(&["reschedule", "--now", NOW, "--preset", "sentinel"], lines(&vec![scan; 200])).good_rows();
    assert!(rows.iter().all(|row| row["intervalHours"].as_f64().unwrap() <= 4.0));
}

#[test]
fn what_reschedule_needs_is_asked_for() {
    let cases = [
        (json!({}), "contentChanged: missing, and no status says that the scan failed"),
        (json!({"status": 200}), "contentChanged: missing, and no status says that the scan failed"),
        (json!({"status": "later"}), "status: \"later\" is not an HTTP status, \"timeout\" or \"network\""),
        (json!({"status": 99999}), "status: 99999 is not an HTTP status, \"timeout\" or \"network\""),
        (json!({"status": 503, "retryAfter": -1}), "retryAfter: -1 is not a number of seconds"),
        (
            json!({"contentChanged": true, "changeFrequency": 1.5}),
            "changeFrequency: 1.5 is not a number from 0 to 1",
        ),
        (json!({"contentChanged": true, "freshnessRisk": "high"}), "freshnessRisk: unknown variant `high`"),
    ];
    for (fields, problem) in cases {
        let mut scan =
            json!({"url": "https://x.hr/", "changeFrequency": 0.5, "scanCount": 1, "freshnessRisk": "LOW"});
        scan.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let ran = run(&["reschedule", "--now", NOW], lines(&[scan]));
        assert!(ran.stderr.starts_with(&format!("forager: line 1: {problem}")), "{}", ran.stderr);
        assert_eq!((ran.status, ran.stdout.as_str()), (1, ""));
    }
}

#[test]
fn a_manifest_reserves_places_for_the_oldest() {
    let item = |url: &str, risk: &str, due: &str| json!({"url": format!("https://x.hr/{url}"), "freshnessRisk": risk, "nextScanDue": due});
    let mut items: Vec<Value> = (0..20)
        .map(|n| item(&format!("c{n:02}"), "CRITICAL", &format!("2024-06-15T07:{n:02}:00Z")))
        .collect();
    items.push(item("starving", "LOW", "2023-01-01T00:00:00Z"));
    items.push(item("not-due", "CRITICAL", "2024-06-15T08:00:01Z"));
    let rows = run(&["manifest", "--now", NOW, "--limit", "10"], lines(&items)).good_rows();
    assert_eq!(rows.len(), 10);
    assert_eq!(rows[9]["url"], "https://x.hr/starving");
    assert_eq!(column(&rows, "why")[8..], ["risk", "oldest due"]);
    assert_eq!(rows[0]["url"], "https://x.hr/c00");
}

#[test]
fn hierarchy_has_modes_and_a_rank_for_people() {
    let events = lines(&[
        json!({"url": "https://acme.com/", "sourceType": "manual"}),
        json!({"url": "https://acme.com/a", "sourceType": "link", "source": "https://acme.com/"}),
        json!({"url": "https://acme.com/b", "sourceType": "link", "source": "https://acme.com/"}),
        json!({"url": "https://acme.com/a", "sourceType": "link", "source": "https://acme.com/b"}),
    ]);
    let cases = [
        ("hierarchy", [json!(1.0), json!(0.8), json!(0.8), json!(0.8)], [1700, 1360, 1360, 1360]),
        ("linked", [json!(1.0), json!(0.8), json!(0.8), json!(0.801)], [1700, 1360, 1360, 1362]),
        ("fifo", [json!(0.0), json!(0.0), json!(0.0), json!(0.0)], [0, 0, 0, 0]),
    ];
    for (mode, priorities, ranks) in cases {
        let rows = run(&["hierarchy", "--mode", mode, "--total-pages", "1700"], &events).good_rows();
        assert_eq!(column(&rows, "priority"), priorities, "{mode}");
        assert_eq!(column(&rows, "rank"), ranks.map(Value::from), "{mode}");
    }
    let rows = run(&["hierarchy"], &events).good_rows();
    assert_eq!(column(&rows, "rank"), [1, 2, 2, 2].map(Value::from), "of the pages seen so far");
}

#[test]
fn scope_says_which_question_it_did_not_understand() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("forager.toml"), "[[collections]]\nid = \"c\"\n").unwrap();
    let input = "{}\n{\"url\":\"https://a.example/\"}\n{\"entry\":{\"collection\":\"c\",\"url\":\"x\",\"seed\":\"https://a.example/\"}}\n";
    // The file is found by its name, without --config.
    let ran = run_command(common::forager().args(["scope"]).current_dir(&folder), input);
    let problems: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(
        problems[..2],
        [
            "forager: line 1: has neither an \"entry\" nor a \"context\" with a \"url\"",
            "forager: line 2: has neither an \"entry\" nor a \"context\" with a \"url\""
        ]
    );
    assert_eq!(
        problems[2],
        "forager: line 3: entry.url: \"x\" is not an absolute URL: write https:// or http:// before it"
    );
    assert_eq!(ran.status, 1);
}

#[test]
fn url_reads_arguments_or_lines() {
    let expected = run(&["url", "https://example.org/%7ea", "http://[::1]:8080"], "").good_rows();
    assert_eq!(column(&expected, "identity"), ["https://example.org/~a", "http://[::1]:8080/"]);
    assert_eq!(column(&expected, "host"), ["example.org", "[::1]"]);
    assert_eq!(column(&expected, "registrableDomain"), [json!("example.org"), Value::Null]);
    assert_eq!(run(&["url"], "https://example.org/%7ea\nhttp://[::1]:8080\n").good_rows(), expected);
    let ran = run(&["url", "nowhere", "https://example.org/"], "");
    assert_eq!((ran.status, ran.rows().len()), (1, 1));
    assert!(ran.stderr.contains("\"nowhere\""), "{}", ran.stderr);
}

#[test]
fn completions_and_manual_come_from_the_same_definitions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(&["completions", shell], "").stdout;
        assert!(["reschedule", "min-score"].iter().all(|word| script.contains(word)), "{shell}");
    }
    assert!(run(&["man"], "").stdout.starts_with(".ie"));
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(&["man", "--dir", folder.path().to_str().unwrap()], "").status, 0);
    let page = std::fs::read_to_string(folder.path().join("forager-rank.1")).unwrap();
    assert!(page.contains("min\\-score"), "{page}");
}
