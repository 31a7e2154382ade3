//! Pages to start from that are never asked for, and rehearsals: both say what a crawl will not do.

use crate::web::{Field, Started, plain_host, wait_until};
use forager_site::Site;
use serde_json::json;

const HOST: &str = "a.test";

fn field() -> Field {
    Field::new(Site::new().host(plain_host(HOST, 1)))
}

#[test]
fn a_start_page_that_is_left_out_is_named_with_its_rule() {
    let table: [(&str, &str, &[&str], &str); 4] = [
        ("a calendar", "/events/2199/05", &[], "trap: calendar after"),
        ("a session", "/;jsessionid=0123456789ABCDEF0123456789ABCDEF", &[], "trap: session id"),
        ("excluded", "/", &["--exclude", ".*"], "excluded by"),
        ("another scheme", "/", &["--scheme", "https"], "scheme not allowed"),
    ];
    for (name, path, more, rule) in table {
        let field = field();
        let url = field.url(HOST, path);
        let rehearsed = field.run(&[&["crawl", &url, "--dry-run", "--json"], more].concat());
        assert_eq!((rehearsed.status, rehearsed.stdout.as_str()), (4, ""), "{name}: {rehearsed:?}");
        let files = ["--skipped", "skipped.jsonl", "--out", "pages.jsonl", "--json", "--quiet"];
        let ran = field.run(&[&["crawl", &url][..], &files, more].concat());
        assert_eq!(ran.status, 4, "{name}: {ran:?}");
        for told in [&rehearsed.stderr, &ran.stderr] {
            assert!(told.contains(&url) && told.contains(rule), "{name}: {told}");
        }
        let lines = field.lines("skipped.jsonl");
        assert_eq!((lines.len(), &lines[0]["url"]), (1, &url.as_str().into()), "{name}: {lines:?}");
        assert!(lines[0]["reason"].as_str().unwrap().contains(rule), "{name}: {lines:?}");
        assert!(field.seen().is_empty(), "{name}");
    }
}

#[test]
fn the_other_pages_are_crawled_all_the_same() {
    let field = field();
    let (good, bad) = (field.url(HOST, "/"), field.url(HOST, "/events/2199/05"));
    let ran = field.run(&["crawl", &good, &bad, "--json", "--skipped", "skipped.jsonl", "--quiet"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stderr.contains(&format!("{bad} is not fetched: out of scope")), "{ran:?}");
    assert_eq!(field.lines("skipped.jsonl").len(), 1);
    assert_eq!(field.paths(HOST), ["/", "/1"]);
}

#[test]
fn watch_and_run_name_such_pages_too() {
    let field = field();
    let (good, bad) =
        (field.url(HOST, "/"), field.url(HOST, "/;jsessionid=0123456789ABCDEF0123456789ABCDEF"));
    let ran = field.run(&["watch", &bad]);
    assert_eq!(ran.status, 4, "{ran:?}");
    assert!(ran.stderr.contains(&format!("{bad} is not fetched: out of scope")), "{ran:?}");
    let told = field.file("told");
    let watch = Started::telling(&mut field.queue.command(&["watch", &good, &bad]), &told);
    field.wait_for(HOST, 1);
    watch.signal("TERM");
    watch.end();
    let told = std::fs::read_to_string(told).unwrap();
    assert!(told.contains(&format!("{bad} is not fetched: out of scope")), "{told}");
    assert!(told.contains("watching 1 page,"), "{told}");

    let field = self::field();
    let bad = field.url(HOST, "/events/2199/05");
    let text = std::fs::read_to_string(field.file("forager.toml")).unwrap();
    let collection = "[[collections]]\nid = \"c\"\n[[profiles]]\nid = \"p\"\ncollection = \"c\"\n";
    let seed = |url: &str| format!("[[seeds]]\nurl = {url:?}\nprofiles = [\"p\"]\n");
    let write = |seeds: &str| {
        std::fs::write(field.file("forager.toml"), format!("{text}\n{collection}{seeds}")).unwrap();
    };
    let good = field.url(HOST, "/");
    for (name, seeds, status) in [("alone", seed(&bad), 4), ("with another", seed(&bad) + &seed(&good), 0)] {
        write(&seeds);
        let ran = field.run(&["run", "--until-idle", "--skipped", name]);
        assert_eq!(ran.status, status, "{name}: {ran:?}");
        assert!(ran.stderr.contains(&format!("{bad} is not fetched: out of scope")), "{name}: {ran:?}");
        let lines = field.lines(name);
        let line = &lines[0];
        assert_eq!(
            (lines.len(), &line["url"], &line["seedUrl"]),
            (1, &line["seedUrl"], &json!(bad)),
            "{name}"
        );
        assert!(line["rule"].as_str().unwrap().contains("trap: calendar"), "{name}: {line}");
    }
    wait_until("the page", || !field.paths(HOST).is_empty());
}

/// Such names may stand there, for deleting a profile leaves them behind.
#[test]
fn a_run_names_profiles_and_collections_that_are_not_there() {
    let table = [
        ("pp", "c", "names profile \"pp\", which is not configured"),
        ("p", "cc", "profile \"p\" belongs to collection \"cc\", which is not configured"),
    ];
    for (profile, collection, want) in table {
        let field = field();
        let text = std::fs::read_to_string(field.file("forager.toml")).unwrap();
        let harvest = format!(
            "[[collections]]\nid = \"c\"\n[[profiles]]\nid = \"p\"\ncollection = {collection:?}\n[[seeds]]\nurl = \
             {:?}\nprofiles = [{profile:?}]\n",
            field.url(HOST, "/")
        );
        std::fs::write(field.file("forager.toml"), format!("{text}\n{harvest}")).unwrap();
        for more in [&["--until-idle"][..], &[], &["--collection", "c"]] {
            let ran = field.run(&[&["run"], more].concat());
            assert_eq!(ran.status, 4, "{want}: {ran:?}");
            assert!(ran.stderr.contains(want), "{ran:?}");
            assert!(ran.stderr.contains("there is nothing to crawl: no seed is in the scope"), "{ran:?}");
        }
        // What is there is crawled all the same.
        let other = format!(
            "[[collections]]\nid = \"d\"\n[[profiles]]\nid = \"q\"\ncollection = \"d\"\nlength = 1\n[[seeds]]\nurl = \
             {:?}\nprofiles = [\"q\"]\n",
            field.url(HOST, "/1")
        );
        std::fs::write(field.file("forager.toml"), format!("{text}\n{harvest}{other}")).unwrap();
        let ran = field.run(&["run", "--until-idle"]);
        assert!(ran.status == 0 && ran.stderr.contains(want), "{ran:?}");
        assert!(field.paths(HOST).contains(&"/1".to_owned()), "{ran:?}");
    }
}

/// A job that is at its limit stays there. One that was stopped is in the same queue, and is finished. What is disabled
/// waits.
#[test]
fn run_names_what_it_crawls_and_nothing_else() {
    let field = Field::new(Site::new().host(plain_host(HOST, 3)).host(plain_host("b.test", 1)));
    let (start, other) = (field.url(HOST, "/"), field.url("b.test", "/"));
    assert_eq!(field.run(&["crawl", &start, "--name", "limited", "--limit", "1", "--quiet"]).status, 0);
    let ran = field.run(&["run", "--until-idle"]);
    let told = "forager: there is no collection to crawl: all are disabled, or jobs that are done, at their limit or paused";
    assert!(ran.status == 0 && ran.stderr.starts_with(&format!("{told}\n")), "{ran:?}");
    // To wait would be in vain, for nobody else can have the folder meanwhile.
    let ran = field.run(&["run", "--data", "forager-data"]);
    let hint = " (\"forager collection list --data forager-data\" and \"forager job list --data forager-data\" show them); \
                \"forager crawl\" with a higher --limit goes on";
    assert!(ran.status == 4 && ran.stderr.starts_with(&format!("{told}{hint}")), "{ran:?}");

    assert_eq!(field.run(&["job", "create", &other, "--name", "begun"]).status, 0);
    assert_eq!(field.run(&["job", "pause", "begun"]).status, 0);
    let ran = field.run(&["run", "--until-idle"]);
    assert!(ran.status == 17 && ran.stderr.contains("jobs are paused"), "{ran:?}");
    assert_eq!(field.run(&["job", "resume", "begun"]).status, 0);
    // One that is disabled has a page, and nobody says that it is crawled.
    let waiting = field.url(HOST, "/1");
    let text = std::fs::read_to_string(field.file("forager.toml")).unwrap();
    let off =
        "[[collections]]\nid = \"off\"\nenabled = false\n[[profiles]]\nid = \"off\"\ncollection = \"off\"\n";
    let seed = format!("[[seeds]]\nurl = {waiting:?}\nprofiles = [\"off\"]\n");
    std::fs::write(field.file("forager.toml"), format!("{text}\n{off}{seed}")).unwrap();
    let ran = field.run(&["run", "--until-idle"]);
    assert!(ran.stderr.contains("crawling the collections begun: 1 page queued\n"), "{ran:?}");
    assert_eq!((field.paths(HOST).len(), field.paths("b.test").len()), (1, 2), "{ran:?}");
}

#[test]
fn a_rehearsal_goes_by_what_the_crawl_would() {
    let field = Field::strict(Site::new().host(plain_host(HOST, 1)));
    let rehearse =
        |url: &str, more: &[&str]| field.run(&[&["crawl", url, "--dry-run", "--json"], more].concat());
    let contact = ["--contact", "tests@forager.example"];
    let table: [(&str, String, &[&str], i32, &str); 4] = [
        ("a stranger", "http://www.example.org/".to_owned(), &[], 4, "--contact"),
        ("a private address", "http://10.0.0.1/".to_owned(), &contact, 4, "10.0.0.1 may not be connected to"),
        ("a name that leads there", field.url(HOST, "/"), &contact, 4, "a.test may not be connected to"),
        ("allowed", field.url(HOST, "/"), &[contact[0], contact[1], "--allow-private"], 0, ""),
    ];
    for (name, url, more, status, told) in table {
        let ran = rehearse(&url, more);
        assert_eq!(ran.status, status, "{name}: {ran:?}");
        assert!(ran.stderr.contains(told), "{name}: {ran:?}");
        assert_eq!(ran.stdout.is_empty(), status != 0, "{name}: {ran:?}");
    }
    assert!(field.seen().is_empty());
}

#[test]
fn a_rehearsal_keeps_the_delay_of_its_flags() {
    let field = field();
    let (first, second) = (field.url(HOST, "/"), field.url(HOST, "/1"));
    let ran = field.run(&["crawl", &first, &second, "--dry-run", "--json", "--delay", "60s"]);
    let at: Vec<jiff::Timestamp> =
        ran.good_rows().iter().map(|row| row["at"].as_str().unwrap().parse().unwrap()).collect();
    assert!((at[1] - at[0]).get_seconds().abs() >= 59, "{at:?}");
}
