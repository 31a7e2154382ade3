//! A queue in PostgreSQL, on a real server: where it is, how it is set up, checked and taken elsewhere.

use crate::common;
use crate::common::{NOW, Queue, run_command};
use crate::server::Schema;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A schema with a history, settings of a host, and entries in several states.
fn rich() -> Schema {
    let schema = Schema::new();
    schema.good(&["collection", "add", "news"]);
    schema.good(&["profile", "add", "daily", "--collection", "news", "--depth", "2", "--every", "24h"]);
    schema.good(&["seed", "add", "https://paper.example/", "--profile", "daily"]);
    schema.good(&["collection", "start", "news"]);
    let links: Vec<Value> =
        ["a", "b", "c"].iter().map(|name| json!({"url": format!("https://paper.example/{name}")})).collect();
    let page = json!({"collection": "news", "source": "https://paper.example/", "links": links});
    schema.run(&["discover"], page.to_string()).good_rows();
    let token = schema.good(&["lease"])[0]["token"].clone();
    let report = json!({"token": token, "status": 200, "fingerprint": "one"});
    schema.run(&["complete"], report.to_string()).good_rows();
    schema.good(&["host", "set", "paper.example", "--delay", "7s"]);
    schema.good(&["seed", "add", "https://gone.example/", "--profile", "daily"]);
    schema.good(&["seed", "start", "https://gone.example/"]);
    schema.good(&["seed", "remove", "https://gone.example/"]);
    schema
}

type Variables<'a> = &'a [(&'a str, &'a str)];

#[test]
fn flags_go_before_variables_and_these_before_the_configuration() {
    let (schema, other) = (Schema::new(), Schema::new());
    schema.good(&["collection", "add", "here"]);
    other.good(&["collection", "add", "there"]);
    let queue = Queue::nowhere();
    queue.good(&["collection", "add", "folder"]);
    let (here, there) = (schema.url(), other.url());
    std::fs::write(queue.folder().join("here.toml"), format!("[store]\nurl = {here:?}\n")).unwrap();
    let data = queue.folder().join("forager-data").display().to_string();
    let table: [(&str, &[&str], Variables<'_>, &str); 9] = [
        ("nothing but the default", &[], &[], "folder"),
        ("the configuration", &["--config", "here.toml"], &[], "here"),
        ("a variable that others share", &["--config", "here.toml"], &[("DATABASE_URL", &there)], "there"),
        ("one of another kind of database", &[], &[("DATABASE_URL", "mysql://a@b/c")], "folder"),
        ("our own before that", &[], &[("DATABASE_URL", &there), ("FORAGER_STORE", &here)], "here"),
        ("its key too", &[], &[("DATABASE_URL", &there), ("FORAGER_STORE__URL", &here)], "here"),
        ("a folder before that", &[], &[("DATABASE_URL", &there), ("FORAGER_DATA", &data)], "folder"),
        ("a flag", &["--store", &here], &[("FORAGER_STORE", &there), ("FORAGER_DATA", &data)], "here"),
        (
            "the other flag",
            &["--data", &data],
            &[("FORAGER_STORE", &there), ("DATABASE_URL", &there)],
            "folder",
        ),
    ];
    for (name, flags, variables, want) in table {
        let mut command = queue.command(&["collection", "list"]);
        command.args(flags).envs(variables.iter().copied());
        let rows = run_command(&mut command, "").good_rows();
        assert_eq!(rows[0]["id"], want, "{name}");
    }
}

#[test]
fn what_cannot_be_used_is_told_and_no_password_ever() {
    let (unmade, made) = (Schema::unmade(), Schema::new());
    let secret = |schema: &Schema| schema.url_of("forager:s3cret");
    let nowhere = "postgres://ann:s3cret@127.0.0.1:1/crawl".to_owned();
    let missing =
        made.url_of("forager:s3cret").replace("sslmode=disable", "sslmode=disable&sslrootcert=/nowhere");
    let with = |url: &str| url.to_owned();
    let table: [(&str, &[&str], String, &str); 8] = [
        (
            "two places",
            &["queue", "stats", "--data", "x"],
            secret(&made),
            "--data and --store name two queues",
        ),
        ("no address", &["queue", "stats"], with("s3cret"), "--store: not the address of a database such as"),
        (
            "nobody answers",
            &["queue", "stats"],
            nowhere,
            "postgres://ann:***@127.0.0.1:1/crawl (named by --store)",
        ),
        ("nothing there yet", &["queue", "stats"], secret(&unmade), "run `forager db migrate`"),
        (
            "a wrong parameter",
            &["queue", "stats"],
            format!("{}&listen=s3cret", made.url_of("forager")),
            "listen",
        ),
        ("a backup", &["backup", "copy"], secret(&made), "pg_dump"),
        ("a copy that is a folder", &["db", "status", "--data", "x"], secret(&made), "name two queues"),
        (
            "no authority",
            &["queue", "stats"],
            missing.replace("sslmode=disable", "sslmode=require"),
            "/nowhere",
        ),
    ];
    for (name, args, url, want) in table {
        let ran = run_command(common::forager().args(args).args(["--store", &url]), "");
        // Somebody may answer there another time.
        assert_eq!(ran.status, if name == "nobody answers" { 8 } else { 2 }, "{name}: {ran:?}");
        assert!(ran.stderr.contains(want), "{name}: {}", ran.stderr);
        let shown = name != "a wrong parameter" && format!("{}{}", ran.stdout, ran.stderr).contains("s3cret");
        assert!(!shown, "{name}: {}", ran.stderr);
    }
    let folder = TempDir::new().unwrap();
    let written = "postgres://ann:s3cret@127.0.0.1:1/crawl";
    std::fs::write(folder.path().join("forager.toml"), format!("[store]\nurl = \"{written}\"\n")).unwrap();
    let mut by_variable = common::forager();
    by_variable.env("DATABASE_URL", written);
    let mut by_file = common::forager();
    by_file.current_dir(folder.path());
    for (mut command, want) in
        [(by_variable, "(named by environment DATABASE_URL)"), (by_file, "(named by forager.toml:2)")]
    {
        let ran = run_command(command.args(["queue", "stats"]), "");
        assert!(ran.status == 8 && ran.stderr.contains(want), "{want}: {ran:?}");
        assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);
    }
    let url = secret(&made);
    for args in [&["config", "show"][..], &["queue", "stats", "--help"]] {
        let variables = [("DATABASE_URL", &url), ("FORAGER_STORE", &url), ("FORAGER_STORE__URL", &url)];
        let ran = run_command(common::forager().args(args).envs(variables), "");
        assert!(ran.status == 0 && !ran.stdout.contains("s3cret"), "{args:?}: {}", ran.stdout);
    }
    let crawl = ["crawl", "http://127.0.0.1:9/", "--store", "postgres://ann:s3cret@127.0.0.1:1/crawl"];
    let ran = run_command(common::forager().args(crawl), "");
    assert_eq!(ran.status, 8, "a store that cannot be reached may be there later: {ran:?}");
}

#[test]
fn steps_that_were_taken_are_told_also_if_a_later_one_fails() {
    let schema = Schema::new();
    schema.good(&["db", "down", "--to", "5", "--yes"]);
    schema.sql(
        "CREATE FUNCTION job_seed_at(job text, host text, path text) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    );
    let ran = schema.run(&["db", "migrate"], "");
    assert!(ran.status != 0 && ran.stderr.contains("job_seed_at"), "{ran:?}");
    let steps: Vec<_> = ran.rows().iter().map(|row| (row["version"].clone(), row["did"].clone())).collect();
    assert_eq!(steps, [(6.into(), "up".into()), (7.into(), "up".into())]);
}

#[test]
fn a_schema_goes_up_and_down_and_says_where_it_is() {
    let schema = Schema::unmade();
    let steps = |state: &str| {
        let rows = schema.run(&["db", "status"], "").rows();
        assert!(!rows.is_empty() && rows.iter().all(|row| row["state"] == state), "{state}: {rows:?}");
        rows.len()
    };
    let count = steps("missing");
    assert_eq!(schema.run(&["db", "status"], "").status, 1);
    // Ten at once: one of them does it, the others wait.
    let all: Vec<_> = (0..10).map(|_| schema.command(&["db", "migrate"])).collect();
    let running: Vec<_> = all
        .into_iter()
        .map(|mut one| std::thread::spawn(move || run_command(&mut one, "").good_rows().len()))
        .collect();
    let taken: usize = running.into_iter().map(|one| one.join().unwrap()).sum();
    assert_eq!((taken, steps("taken")), (count, count));
    assert_eq!(schema.run(&["db", "status"], "").status, 0);
    schema.good(&["collection", "add", "news"]);
    let ran = schema.run(&["db", "down"], "");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("deletes the queue") && ran.stderr.contains("--yes"), "{}", ran.stderr);
    assert_eq!(schema.good(&["collection", "list"]).len(), 1, "nothing was done");
    let down = schema.good(&["db", "down", "--yes"]);
    assert_eq!(down.len(), count + 1);
    assert_eq!(down[count], json!({"version": 0, "name": "schema", "did": "removed"}));
    assert_eq!(schema.good(&["db", "down", "--yes"]), Vec::<Value>::new(), "there is nothing left");
    assert_eq!(steps("missing"), count);
    assert_eq!(schema.good(&["db", "migrate"]).len(), count);
    assert_eq!(schema.good(&["collection", "list"]), Vec::<Value>::new());
}

#[test]
fn a_schema_of_a_newer_version_is_left_alone() {
    let schema = rich();
    schema.sql("INSERT INTO migrations (version, name) VALUES (9999, 'later')");
    for args in [&["queue", "stats"][..], &["lease"], &["db", "migrate"], &["db", "down", "--yes"]] {
        let ran = schema.run(args, "");
        assert_eq!(ran.status, 2, "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("9999"), "{args:?}: {}", ran.stderr);
    }
    let rows = schema.run(&["db", "status"], "").rows();
    assert_eq!(
        (&rows.last().unwrap()["state"], &rows.last().unwrap()["version"]),
        (&json!("unknown"), &json!(9999))
    );
}

#[test]
fn times_are_in_utc_whatever_the_settings_of_a_role_are() {
    let schema = Schema::new();
    let url = format!("{}&options=-c%20DateStyle%3DGerman%20-c%20TimeZone%3DAsia/Tokyo", schema.url());
    let status = run_command(common::forager().args(["db", "status", "--store", &url]), "").good_rows();
    let second =
        |row: &Value| row["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_second().to_string();
    let told: Vec<_> = status.iter().map(|row| vec![second(row)]).collect();
    assert_eq!(told, schema.sql("SELECT floor(extract(epoch FROM at)) FROM migrations ORDER BY version"));
    assert!(status.iter().all(|row| row["at"].as_str().unwrap().ends_with('Z')), "{status:?}");
}

#[test]
fn a_check_finds_what_is_wrong_and_nothing_else() {
    let schema = rich();
    let later = ["lease", "--host", "paper.example", "--now", "2024-06-15T09:00:00Z"];
    assert_eq!(run_command(&mut schema.command(&later), "").good_rows().len(), 1);
    let summary = schema.good(&["check"]).pop().unwrap();
    assert_eq!((&summary["entries"], &summary["findings"]), (&json!(5), &json!(0)), "{summary}");
    assert_eq!(schema.good(&["db", "check"]).pop().unwrap(), summary);
    let table = [
        ("an entry in no queue", "UPDATE entries SET queue = 9999 WHERE state = 1", "it is in no queue"),
        (
            "ready, though done",
            "UPDATE entries SET ready = true WHERE state <> 0",
            "it is ready without being queued",
        ),
        ("no lease", "UPDATE entries SET token = NULL WHERE state = 1", "it is leased without a lease"),
        ("another order", "UPDATE entries SET tie = 7", "another time than its own"),
        ("two orders", "UPDATE entries SET best = 7", "though arrival alone counts"),
        ("no such seed", "UPDATE entries SET seed = 99", "its seed is not there"),
        ("a token of nobody", "UPDATE entries SET token = 99999 WHERE state = 1", "was never given out"),
        ("another text", "UPDATE entries SET url = url || 'x'", "it is known by another text"),
        ("no record", "UPDATE entries SET record = '{\"a\":1}'", "it cannot be read"),
        ("more tries", "UPDATE entries SET tries = tries + 1", "it counts other tries"),
        ("no host", "UPDATE queues SET host = 9999 WHERE leased > 0", "it has no host"),
        ("no collection", "UPDATE queues SET collection = 99", "it belongs to no collection"),
        (
            "a queue counts wrong",
            "UPDATE queues SET queued = queued + 1",
            "it counts other entries than it has",
        ),
        ("never woken", "UPDATE queues SET wake_at = NULL", "it does not know when it has"),
        ("woken too late", "UPDATE queues SET wake_at = wake_at + 5", "it does not know when it has"),
        ("not in line", "UPDATE queues SET place = NULL", "it does not know when it has"),
        ("in line and asleep", "UPDATE queues SET opens = 7", "it does not know when it has"),
        ("open too early", "UPDATE queues SET place = place - 9, wake_at = NULL", "than its host opens at"),
        ("late", "UPDATE queues SET place = place + 9 WHERE leased = 0", "than its host opens at"),
        ("a host of nobody", "UPDATE hosts SET owner = 99", "it belongs to a collection that is not there"),
        ("a host in pieces", "UPDATE hosts SET state = '7'", "it cannot be read"),
        (
            "a collection counts wrong",
            "UPDATE counters SET done = done + 1",
            "it counts other entries than it has",
        ),
        ("less than nothing", "UPDATE counters SET bytes = -1", "less than nothing is counted"),
        (
            "counted twice over",
            "UPDATE catalog SET next_collection = 0",
            "its number is to be given out once more",
        ),
        ("a note elsewhere", "INSERT INTO notes VALUES ('x', 'y', 'z')", "it is kept under another key"),
    ];
    let tables = ["entries", "queues", "hosts", "counters", "catalog", "notes"];
    for table in tables {
        schema.sql(&format!("CREATE TABLE kept_{table} AS TABLE {table}"));
    }
    for (name, damage, want) in table {
        schema.sql(damage);
        let ran = schema.run(&["check"], "");
        let problems: Vec<String> = ran.rows().iter().map(|row| row["problem"].to_string()).collect();
        assert_eq!(ran.status, 1, "{name}: {ran:?}");
        assert!(problems.iter().any(|problem| problem.contains(want)), "{name}: {problems:?}");
        for table in tables {
            schema.sql(&format!("TRUNCATE {table}; INSERT INTO {table} TABLE kept_{table}"));
        }
        assert_eq!(schema.good(&["check"]).pop().unwrap(), summary, "after {name}");
    }
    // Who looks too early looks in vain, once.
    schema.sql("UPDATE queues SET wake_at = 0, place = place - 9, opens = opens - 9");
    assert_eq!(schema.good(&["check"]).pop().unwrap(), summary, "looked at early");
}

#[test]
fn a_check_takes_what_sql_did_for_what_it_is() {
    let schema = Schema::new();
    schema.good(&["job", "create", "https://shop.example/", "--name", "shop"]);
    schema.good(&["job", "create", "https://news.example/", "--name", "news"]);
    let page = "INSERT INTO pages (domain_id, path) SELECT domain_id, '/a' FROM jobs";
    let task = "INSERT INTO tasks (job_id, page_id) SELECT j.id, p.id FROM pages p JOIN jobs j USING (domain_id) WHERE p.job_id IS NULL";
    let steps: [(&str, &[&str], u64); 6] = [
        ("pages without a task", &[page], 2),
        ("tasks are added", &[task], 4),
        ("pages are raised", &["UPDATE pages SET priority_score = 0.9"], 4),
        // In another second than the others were added.
        ("some are deleted", &["SELECT pg_sleep(1.1)", "DELETE FROM tasks WHERE path = '/'"], 2),
        ("the last of a job is deleted", &["DELETE FROM tasks WHERE job_id = 'shop'"], 1),
        ("all are deleted", &["DELETE FROM tasks"], 0),
    ];
    for (name, statements, entries) in steps {
        for statement in statements {
            schema.sql(statement);
        }
        let summary = schema.good(&["db", "check"]).pop().unwrap();
        assert_eq!((&summary["entries"], &summary["findings"]), (&json!(entries), &json!(0)), "{name}");
    }
    schema.good(&["lease"]);
    assert_eq!(schema.good(&["db", "check"]).pop().unwrap()["findings"], 0);
}

/// What a command says of a job is what SQL shows of it.
#[test]
fn a_job_is_steered_as_in_a_folder() {
    for mode in ["hierarchy", "fifo", "linked"] {
        let schema = Schema::new();
        schema.good(&["job", "create", "https://shop.example/", "--name", "shop", "--mode", mode]);
        assert_eq!(schema.sql("SELECT prioritization_mode FROM jobs"), [[mode]]);
        for (command, state) in
            [("show", "running"), ("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")]
        {
            assert_eq!(schema.good(&["job", command, "shop"])[0]["state"], state, "{mode}: {command}");
            assert_eq!(schema.good(&["job", "list"])[0]["state"], state, "{mode}: {command}");
            assert_eq!(schema.sql("SELECT status FROM jobs"), [[state]], "{mode}: {command}");
            match state {
                "paused" => assert_eq!(schema.good(&["lease"])[0]["nothing"], "blocked", "{mode}"),
                "running" if command == "resume" => {
                    assert_eq!(schema.good(&["lease"])[0]["url"], "https://shop.example/", "{mode}");
                }
                _ => {}
            }
        }
    }
}

/// An export without the numbers of entries, which are those of one queue.
fn exported(text: &str) -> Vec<Value> {
    let mut rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for row in &mut rows {
        row.as_object_mut().unwrap().shift_remove("id");
    }
    rows
}

#[test]
fn a_queue_moves_between_a_folder_and_a_database_with_nothing_lost() {
    let first = rich();
    let plain = json!({"collection": "own", "links": [{"url": "one", "key": "a"}, {"url": "two", "key": "b", "due": NOW}]});
    first.good(&["collection", "add", "own", "--plain"]);
    first.run(&["discover"], plain.to_string()).good_rows();
    first.good(&["job", "create", "https://shop.example/", "--name", "shop", "--pages", "7"]);
    let export = first.run(&["export"], "").stdout;
    assert!(exported(&export).len() >= 9, "{export}");
    assert!(export.contains(r#""served":1"#), "a host was asked, which is known elsewhere too: {export}");
    let (folder, second) = (Queue::nowhere(), Schema::new());
    let imported = |rows: Vec<Value>| rows.last().unwrap().clone();
    let into_folder = imported(folder.run(&["import"], &export).good_rows());
    let from_folder = folder.run(&["export"], "").stdout;
    assert_eq!(exported(&from_folder), exported(&export), "database to folder");
    let into_second = imported(second.run(&["import"], &from_folder).good_rows());
    assert_eq!(into_folder, into_second);
    assert_eq!(exported(&second.run(&["export"], "").stdout), exported(&export), "folder to database");
    let again = imported(second.run(&["import"], &export).good_rows());
    assert_eq!((&again["added"], &again["present"]), (&json!(0), &into_second["added"]), "it is all there");
    assert_eq!(second.good(&["check"]).pop().unwrap()["findings"], 0);
    assert_eq!(folder.good(&["check"]).pop().unwrap()["findings"], 0);
    // What comes next is the same in both; where it comes from, a host was asked just now.
    let next = |rows: Vec<Value>| -> Vec<Value> { rows.iter().map(|row| row["url"].clone()).collect() };
    let what_comes = ["queue", "plan", "--limit", "20"];
    assert_eq!(next(second.good(&what_comes)), next(folder.good(&what_comes)));
}

/// Several processes number what they find side by side, so that a page may come before the one it was found on: right
/// before it, or further away than an import reads at a time.
/// What was fetched is numbered when it is read, which is a write: who may not write learns of it before anything is told.
#[test]
fn an_export_that_may_not_write_says_nothing_before_it_fails() {
    let schema = rich();
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("forager.toml"), "[store.postgres]\npatience = \"1s\"\n").unwrap();
    let read_only = format!("{}&options=-c%20default_transaction_read_only%3Don", schema.url());
    for args in [&["export", "file"][..], &["export"]] {
        let mut command = schema.command(args);
        let ran = run_command(command.env("DATABASE_URL", &read_only).current_dir(folder.path()), "");
        assert_eq!((ran.status, &*ran.stdout), (8, ""), "{ran:?}");
        assert!(ran.stderr.contains("read-only transaction"), "{ran:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no file but the configuration");
}

#[test]
fn an_entry_that_comes_before_its_source_knows_it_in_the_end() {
    let first = rich();
    let links: Vec<Value> =
        (0..1200).map(|number| json!({"url": format!("https://paper.example/{number}")})).collect();
    let page = json!({"collection": "news", "source": "https://paper.example/a", "links": links});
    first.run(&["discover"], page.to_string()).good_rows();
    let export = first.run(&["export"], "").stdout;
    let sorted = |text: &str| {
        let mut rows = exported(text);
        rows.sort_by_key(|row| row["url"].to_string());
        rows
    };
    let expected = sorted(&export);
    assert!(expected.iter().filter(|row| row["source"] == "https://paper.example/a").count() == 1200);
    let (headers, entries): (Vec<&str>, Vec<&str>) =
        export.lines().partition(|line| line.starts_with("{\"forager\""));
    let backwards: Vec<&str> = headers.into_iter().chain(entries.into_iter().rev()).collect();
    let backwards = backwards.join("\n");
    let (folder, second) = (Queue::nowhere(), Schema::new());
    folder.run(&["import"], &backwards).good_rows();
    assert_same(&sorted(&folder.run(&["export"], "").stdout), &expected, "into a folder");
    second.run(&["import"], &backwards).good_rows();
    assert_same(&sorted(&second.run(&["export"], "").stdout), &expected, "into a database");
}

/// The first row that differs says enough.
#[track_caller]
fn assert_same(rows: &[Value], expected: &[Value], name: &str) {
    assert_eq!(rows.len(), expected.len(), "{name}");
    let differs = rows.iter().zip(expected).find(|(row, expected)| row != expected);
    assert_eq!(differs, None, "{name}");
}

fn schemas_of_benchmarks(schema: &Schema, process: u32) -> usize {
    let named = format!("SELECT 1 FROM pg_namespace WHERE nspname LIKE 'forager\\_bench\\_{process}\\_%'");
    schema.sql(&named).len()
}

#[test]
fn a_benchmark_tells_its_goals_and_leaves_nothing_behind() {
    let schema = Schema::unmade();
    let url = schema.url();
    let sizes = ["--pending", "2000,4000", "--hosts", "1000", "--workers", "2", "--time", "500ms"];
    let mut command = common::forager();
    command.args(["bench", "frontier", "--store", &url]).args(sizes).stdout(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    let process = child.id();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rate =
        |what: &str| rows.iter().find(|row| row["what"] == what).unwrap_or_else(|| panic!("{what}: {text}"));
    for what in [
        "claim 10 of 2000 pending",
        "claim 10 of 4000 pending",
        "minimal queue: 2 workers, claim 10 and complete",
        "2 workers, claim 10 of a host without pauses, and complete",
        "claim 1 of 2000 at 50 hosts",
        "claim 1 of 5000 at as many hosts",
        "claim 1 of 2000, after 2500 claims",
    ] {
        assert!(rate(what)["perSecond"].as_u64().unwrap() > 0, "{what}: {text}");
    }
    assert!(rows.iter().any(|row| row["setting"] == "fsync"), "{text}");
    let goals: Vec<&Value> = rows.iter().filter(|row| row["goal"].is_string()).collect();
    assert_eq!(goals.len(), 5, "{text}");
    // How much it is depends on the build and the machine; here it may be next to nothing.
    assert!(goals.iter().all(|goal| goal["measured"].is_number()), "{text}");
    assert_eq!(schemas_of_benchmarks(&schema, process), 0);
}

#[test]
fn a_benchmark_that_is_interrupted_leaves_nothing_behind() {
    let schema = Schema::unmade();
    let url = schema.url();
    let mut command = common::forager();
    command.args(["bench", "frontier", "--store", &url, "--pending", "1000000"]);
    let mut child =
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let began = std::time::Instant::now();
    while schemas_of_benchmarks(&schema, child.id()) == 0 {
        assert!(began.elapsed().as_secs() < 60, "it never began");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let signal = std::process::Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
    assert!(signal.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(11));
    assert_eq!(schemas_of_benchmarks(&schema, child.id()), 0);
}

#[test]
fn the_queries_of_the_document_work() {
    let schema = rich();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/postgres.md");
    let document = std::fs::read_to_string(path).unwrap();
    let block = document.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    let queries: Vec<&str> = block.split(";\n").filter(|query| !query.trim().is_empty()).collect();
    assert_eq!(queries.len(), 7, "{queries:?}");
    let answers: Vec<Vec<Vec<String>>> = queries.iter().map(|query| schema.sql(query)).collect();
    assert_eq!(answers[0], [["news", "5", "0", "0", "0"]], "what each collection has");
    assert_eq!(answers[1], [["2024-06-15 08:00:00+00"]], "how late the queue is: nobody came to one host");
    assert_eq!(answers[2], [["2", "0", "0"]], "queues that can be claimed");
    assert_eq!(answers[3], [["0", "0"]], "leases");
    assert!(!answers[6].is_empty(), "who is connected");
    // A page that is due again after a day, at which nobody has looked since.
    let schema = Schema::new();
    schema.good(&["collection", "add", "news"]);
    schema.good(&["profile", "add", "daily", "--collection", "news", "--every", "24h"]);
    schema.good(&["seed", "add", "https://paper.example/", "--profile", "daily"]);
    schema.good(&["collection", "start", "news"]);
    let report = json!({"token": schema.good(&["lease"])[0]["token"], "status": 200});
    schema.run(&["complete"], report.to_string()).good_rows();
    assert_eq!(schema.sql("SELECT count(*) FROM entries WHERE ready"), [["0"]], "it was not due then");
    assert_eq!(schema.sql(queries[1]), [["2024-06-16 08:00:00+00"]], "a day later");
    assert_eq!(schema.sql(queries[2]), [["1", "0", "0"]]);
    // What was stopped is not late, and nobody can claim it.
    let late = || [schema.sql(queries[1]), schema.sql(queries[2])];
    let nothing = [vec![vec![String::new()]], vec![vec!["0".to_owned(); 3]]];
    schema.good(&["collection", "disable", "news"]);
    assert_eq!(late(), nothing, "disabled");
    schema.good(&["job", "create", "https://shop.example/", "--name", "shop"]);
    assert_eq!(late()[1], [["1", "0", "0"]], "a job that runs");
    schema.good(&["job", "pause", "shop"]);
    assert_eq!(late(), nothing, "paused");
    schema.good(&["job", "cancel", "shop"]);
    assert_eq!(late(), nothing, "cancelled");
}
