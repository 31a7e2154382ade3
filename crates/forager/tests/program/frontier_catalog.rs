//! Collections, profiles and seeds: by command, by file, and in bulk.

use crate::common;
use crate::common::Queue;
use serde_json::{Value, json};

const CONFIG: &str = r#"
[[collections]]
id = "news"

[[profiles]]
id = "daily"
collection = "news"
every = "24h"

[[seeds]]
url = "https://paper.example/"
profiles = ["daily"]

[[seeds]]
url = "https://tabloid.example/"
profiles = ["daily"]
"#;

fn told(rows: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    rows.iter()
        .map(|row| format!("{} {} {}", text(&row["change"]), text(&row["kind"]), text(&row["name"])))
        .collect()
}

fn with_config(text: &str) -> Queue {
    let queue = Queue::nowhere();
    write_config(&queue, text);
    queue
}

fn write_config(queue: &Queue, text: &str) {
    std::fs::write(queue.folder().join("forager.toml"), text).unwrap();
}

#[test]
fn a_configuration_is_applied_and_followed() {
    let queue = with_config(CONFIG);
    let all = [
        "added collection news",
        "added profile daily",
        "added seed https://paper.example/",
        "added seed https://tabloid.example/",
    ];
    assert_eq!(told(&queue.good(&["apply", "--dry-run"])), all);
    assert!(!queue.folder().join("forager-data").exists());
    assert_eq!(told(&queue.good(&["apply"])), all, "a dry run changed nothing");
    assert_eq!(queue.good(&["apply"]), [Value::Null; 0]);

    let changed = CONFIG.replace("24h", "12h").replace("id = \"news\"\n", "id = \"news\"\nenabled = false\n");
    let (kept, _) = changed.split_once("\n[[seeds]]\nurl = \"https://tabloid").unwrap();
    write_config(&queue, kept);
    assert_eq!(told(&queue.good(&["apply"])), ["disabled collection news", "changed profile daily"]);
    assert_eq!(told(&queue.good(&["apply", "--prune"])), ["removed seed https://tabloid.example/"]);
    assert_eq!(queue.good(&["profile", "show", "daily"])[0]["every"], "12h");
    assert_eq!(queue.good(&["seed", "list"]).len(), 1);
}

#[test]
fn pruning_spares_jobs_and_asks_before_entries_go() {
    let queue = with_config(CONFIG);
    queue.good(&["apply"]);
    queue.good(&["job", "create", "--name", "once", "https://paper.example/", "https://shop.example/"]);
    assert_eq!(queue.good(&["apply"]), [Value::Null; 0], "the profile of the job is no difference");
    queue.good(&["collection", "start", "news"]);
    write_config(&queue, "");
    let ran = queue.run(&["apply", "--prune"], "");
    assert_eq!(
        ran.stderr,
        "forager: collection \"news\" has 2 entries, which would go with it; say --yes to remove it\n"
    );
    assert_eq!(ran.status, 2);
    assert_eq!(
        told(&queue.good(&["apply", "--prune", "--yes"])),
        [
            "changed seed https://paper.example/",
            "removed seed https://tabloid.example/",
            "removed profile daily",
            "removed collection news"
        ]
    );
    assert_eq!(queue.good(&["job", "show", "once"])[0]["progress"]["queued"], 2);
    let seeds = queue.good(&["seed", "list"]);
    assert!(seeds.iter().all(|seed| seed["profiles"] == json!(["once"])), "{seeds:?}");
}

#[test]
fn the_catalog_is_all_or_nothing_and_names_what_is_wrong() {
    let queue = Queue::news();
    let cases: [(&[&str], &str); 15] = [
        (&["collection", "add", "x", "x"], "collection \"x\" is given twice"),
        (&["profile", "remove", "daily", "daily"], "profile \"daily\" is given twice"),
        (
            &[
                "seed",
                "add",
                "https://x.example",
                "https://y.example/",
                "HTTP://X.example/",
                "--profile",
                "daily",
            ],
            "seed \"HTTP://X.example/\" is given twice: it is one with \"https://x.example\"",
        ),
        (
            &["seed", "add", "https://paper.example/", "--profile", "daily"],
            "seed \"https://paper.example/\" is there already\n",
        ),
        (
            &["seed", "add", "http://Paper.example", "--profile", "daily"],
            "seed \"http://Paper.example\" is there already, as \"https://paper.example/\"",
        ),
        (
            &["job", "create", "--name", "j", "https://x.example/", "https://x.example/"],
            "seed \"https://x.example/\" is given twice\n",
        ),
        (&["collection", "add", "archive", "news"], "collection \"news\" is there already"),
        (&["collection", "show", "archive"], "there is no collection \"archive\""),
        (&["collection", "start", "archive"], "there is no collection \"archive\""),
        (
            &["profile", "add", "p", "--collection", "archive"],
            "there is no collection \"archive\"; add it first with \"forager collection add\"",
        ),
        (&["profile", "add", "daily", "--collection", "news"], "profile \"daily\" is there already"),
        (
            &["profile", "add", "p", "--collection", "news", "--sort-query"],
            "profiles \"daily\" and \"p\" of collection \"news\" differ",
        ),
        (
            &["seed", "add", "https://x.example/", "--profile", "weekly"],
            "there is no profile \"weekly\"; add it first with \"forager profile add\"",
        ),
        (&["seed", "add", "x", "--profile", "daily"], "seed \"x\": \"x\" is not an absolute URL"),
        (&["seed", "remove", "https://x.example/"], "there is no seed \"https://x.example/\""),
    ];
    for (args, problem) in cases {
        let ran = queue.run(args, "");
        assert!(ran.stderr.starts_with(&format!("forager: {problem}")), "{args:?}: {}", ran.stderr);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{args:?}");
    }
    let ran = queue.run(&["profile", "add", "p", "--collection", "news", "--exclude", "("], "");
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""));
    assert!(
        ran.stderr.contains("invalid value '(' for '--exclude <REGEX>': unclosed group"),
        "{}",
        ran.stderr
    );
    assert_eq!(queue.good(&["collection", "list"]).len(), 1);
}

#[test]
fn seeds_go_by_the_names_that_they_were_given_first() {
    let queue = Queue::news();
    queue.good(&["seed", "add", "HTTPS://Tabloid.example", "--profile", "daily"]);
    for (verb, change) in [("disable", "disabled"), ("enable", "enabled")] {
        for name in ["https://tabloid.example/", "http://TABLOID.example", "HTTPS://Tabloid.example"] {
            let want = format!("{change} seed HTTPS://Tabloid.example");
            assert_eq!(told(&queue.good(&["seed", verb, name])), [want], "{name}");
        }
    }
    assert_eq!(queue.good(&["seed", "show", "http://tabloid.example"])[0]["url"], "HTTPS://Tabloid.example");
    assert_eq!(
        queue.good(&["seed", "start", "http://tabloid.example"])[0]["url"],
        "https://tabloid.example/"
    );
    assert_eq!(
        told(&queue.good(&["seed", "remove", "https://tabloid.example"])),
        ["removed seed HTTPS://Tabloid.example"]
    );
}

#[test]
fn every_flag_of_a_profile_is_kept() {
    let queue = Queue::news();
    let flags = "profile add all --collection news --scope prefix --depth 3 --hops-off-domain 1 --order risk --include /a --include /b \
                 --exclude /c --scheme https --max-url-length 100 --max-segments 5 --max-repeats 2 \
                 --max-sequences 1 --max-params 4 --guard-session-ids false --first-year 1950 --last-year 2030 --max-per-host 9 \
                 --sitemaps false --respect-nofollow --ignore-meta-robots --change exact --content main --every 1h --length 7 --disabled";
    queue.good(&flags.split_whitespace().collect::<Vec<_>>());
    let want = json!({
        "id": "all", "collection": "news", "enabled": false, "order": "risk", "scope": "prefix", "depth": 3, "hopsOffDomain": 1,
        "every": "1h", "length": 7, "include": ["/a", "/b"], "exclude": ["/c"], "schemes": ["https"], "maxUrlLength": 100,
        "traps": {"maxSegments": 5, "maxRepeats": 2, "maxSequences": 1, "maxParams": 4, "sessionIds": false, "firstYear": 1950, "lastYear": 2030, "maxPerHost": 9}, "sortQuery": false, "stripParams": [],
        "reading": {"sitemaps": false, "respectNofollow": true, "respectMetaRobots": false, "change": "exact", "content": "main"}
    });
    assert_eq!(queue.good(&["profile", "show", "all"]), [want]);
    let ran = queue.run(&["profile", "add", "all", "--collection", "news"], "");
    assert_eq!(ran.status, 2, "it is there already");
    assert_eq!(
        told(&queue.good(&["profile", "add", "all", "--collection", "news", "--replace"])),
        ["changed profile all"]
    );
    assert_eq!(queue.good(&["profile", "show", "all"])[0]["depth"], Value::Null);
}

#[test]
fn a_disabled_collection_waits() {
    let queue = Queue::with_links(&["a"]);
    assert_eq!(told(&queue.good(&["collection", "disable", "news"])), ["disabled collection news"]);
    assert!(queue.good(&["lease"])[0].get("nothing").is_some());
    queue.good(&["collection", "enable", "news"]);
    let ran = queue.run(&["collection", "remove", "news"], "");
    assert_eq!(
        ran.stderr,
        "forager: collection \"news\" has 2 entries, which would go with it; say --yes to remove it\n"
    );
    queue.good(&["collection", "remove", "news", "--yes"]);
    assert_eq!(queue.good(&["queue", "list"]).len(), 0);
}

#[test]
fn seeds_come_in_bulk_and_bad_lines_are_named() {
    let queue = Queue::news();
    let lines = "https://a.example/\nnonsense\nhttp://a.example\n{\"url\":\"https://b.example/\",\"enabled\":false}\n\
                 {\"url\":\"https://c.example/\",\"profiles\":[\"nope\"]}\nhttps://paper.example/\n{\"link\":1}\n";
    std::fs::write(queue.folder().join("seeds.txt"), lines).unwrap();
    let ran = queue.run(&["seed", "import", "seeds.txt", "--profile", "daily"], "");
    assert_eq!(ran.rows(), [json!({"added": 2, "present": 2, "bad": 3})]);
    assert_eq!(ran.status, 1);
    assert_eq!(
        ran.stderr.lines().collect::<Vec<_>>(),
        [
            "forager: seeds.txt:2: url: \"nonsense\" is not an absolute URL: write https:// or http:// before it",
            "forager: seeds.txt:5: profiles: there is no profile \"nope\"",
            "forager: seeds.txt:7: missing field `url`",
        ]
    );
    let seeds = queue.good(&["seed", "list"]);
    assert_eq!((seeds.len(), &seeds[2]["enabled"]), (3, &json!(false)));
    let ran = queue.run(&["seed", "import"], "https://d.example/\n");
    assert_eq!(ran.stderr, "forager: line 1: profiles: missing, and no --profile says which\n");
    let ran = queue.run(&["seed", "import", "--profile", "nope"], "https://d.example/\n");
    assert_eq!((ran.status, ran.rows().len()), (2, 0));
}

#[test]
fn a_seed_that_the_whole_batch_fails_for_is_found() {
    let queue = Queue::nowhere();
    queue.good(&["collection", "add", "shop"]);
    queue.good(&["profile", "add", "p", "--collection", "shop", "--strip-param", "sid"]);
    // Two URLs that are one in this collection: only the queue can tell.
    let mut lines: Vec<String> = (0..20).map(|n| format!("https://h{n}.example/")).collect();
    lines.insert(7, "https://x.example/?sid=1".to_owned());
    lines.insert(13, "https://x.example/?sid=2".to_owned());
    let ran = queue.run(&["seed", "import", "--profile", "p"], lines.join("\n"));
    assert_eq!(ran.rows(), [json!({"added": 21, "present": 0, "bad": 1})]);
    assert!(ran.stderr.starts_with("forager: line 14: seed \"https://x.example/"), "{}", ran.stderr);
}

#[test]
fn init_writes_a_configuration_once() {
    let queue = Queue::nowhere();
    let run = |args: &[&str]| common::run_command(&mut queue.command(args), "");
    assert_eq!(run(&["init"]).status, 0);
    assert_eq!(run(&["config", "check"]).stdout, "forager.toml: 1 collection, 1 profile, 1 seed\n");
    std::fs::write(queue.folder().join("forager.toml"), "").unwrap();
    let ran = run(&["init"]);
    assert_eq!(
        (ran.status, ran.stderr.as_str()),
        (2, "forager: forager.toml is there already; take another name, or overwrite it with --force\n")
    );
    assert_eq!(run(&["init", "--force"]).status, 0);
    assert_eq!(told(&queue.good(&["apply"])).len(), 3);
    assert_eq!(queue.good(&["collection", "start", "site"])[0]["url"], "https://www.example.org/");
}

#[test]
fn a_host_is_set_by_the_name_that_the_queue_knows_it_by() {
    let queue = Queue::news();
    let set = queue.good(&["host", "set", "Paper.EXAMPLE", "--delay", "9s"]);
    assert_eq!(set[0]["host"], "paper.example");
    for wrong in ["no such host", "paper.example/a", "paper.example:80", ""] {
        let ran = queue.run(&["host", "set", wrong, "--block"], "");
        assert_eq!(ran.status, 2, "{wrong}");
        assert!(ran.stderr.contains("is not a host such as"), "{}", ran.stderr);
    }
}

#[test]
fn a_cancelled_job_is_not_started_again() {
    let queue = Queue::news();
    queue.good(&["job", "create", "--name", "once", "https://acme.example/"]);
    queue.good(&["job", "cancel", "once"]);
    let ran = queue.run(&["collection", "start", "once"], "");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("is cancelled; start another one"), "{}", ran.stderr);
}

#[test]
fn nothing_can_be_leased_of_nothing() {
    let queue = Queue::news();
    for flag in ["--max", "--per-host"] {
        let ran = queue.run(&["lease", flag, "0"], "");
        assert_eq!(ran.status, 2);
        assert!(ran.stderr.contains("not a whole number of at least 1"), "{}", ran.stderr);
    }
    for (flag, value, key, problem) in [
        ("--length", "0", "length = 0", "1"),
        ("--every", "0s", "every = \"0s\"", "is no interval; leave it out"),
    ] {
        let ran = queue.run(&["profile", "add", "p", "--collection", "news", flag, value], "");
        assert_eq!(ran.status, 2);
        assert!(
            ran.stderr.starts_with(&format!("error: invalid value '{value}' for '{flag}")),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains(problem), "{}", ran.stderr);
        write_config(&queue, &CONFIG.replace("every = \"24h\"", key));
        let ran = common::run_command(&mut queue.command(&["config", "check"]), "");
        let place = format!("forager: forager.toml:8: profiles[0].{}: ", &flag[2..]);
        assert!(ran.stderr.starts_with(&place) && ran.stderr.contains(problem), "{}", ran.stderr);
        std::fs::remove_file(queue.folder().join("forager.toml")).unwrap();
    }
}

#[test]
fn an_empty_folder_is_no_queue_to_look_into() {
    let queue = Queue::news();
    std::fs::create_dir(queue.folder().join("empty")).unwrap();
    let ran = queue.run(&["check", "--data", "empty"], "");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("there is no queue in empty"), "{}", ran.stderr);
    assert_eq!(std::fs::read_dir(queue.folder().join("empty")).unwrap().count(), 0);
}
