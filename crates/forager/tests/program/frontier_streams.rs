//! Bad input, several processes, pipes that close, and work that waits.

use crate::common;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::{NOW, Queue, run_command};
use serde_json::json;

#[test]
fn bad_lines_are_named_and_the_others_go_on() {
    let queue = Queue::with_links(&[]);
    let good = json!({"collection": "news", "source": "https://paper.example/", "links": [{"url": "https://paper.example/a"}]});
    let cases = [
        ("nonsense", "line 2: not a JSON object: nonsense"),
        ("{}", "line 2: collection: missing"),
        (
            r#"{"collection":"nope","links":[{"url":"https://a.example/"}]}"#,
            "line 2: there is no collection \"nope\"",
        ),
        (r#"{"collection":"news","links":{}}"#, "line 2: links: not a list"),
        (
            r#"{"collection":"news","depth":"deep","links":[]}"#,
            "line 2: depth: invalid type: string \"deep\"",
        ),
    ];
    for (line, problem) in cases {
        let ran = queue.run(&["discover"], format!("{good}\n{line}\n{good}\n"));
        assert!(ran.stderr.starts_with(&format!("forager: {problem}")), "{line}: {}", ran.stderr);
        assert_eq!((ran.status, ran.rows().len()), (1, 2), "{line}");
    }
}

#[test]
fn a_bad_link_does_not_take_its_page_along() {
    let queue = Queue::with_links(&[]);
    let links = json!([
        {"url": "https://paper.example/a", "text": null, "inHeader": null},
        {"text": "x"},
        {"url": "https://paper.example/b", "how": "magic"},
        "https://paper.example/c",
        {"url": "::"},
        {"url": "https://paper.example/d", "metadata": {"a": 1}},
        {"url": "https://paper.example/e", "relevance": 7},
        {"url": "https://paper.example/f"},
    ]);
    let page = json!({"collection": "news", "source": "https://paper.example/", "links": links});
    let ran = queue.run(&["discover"], page.to_string());
    let want = [
        (json!("https://paper.example/a"), "added", "in scope"),
        (json!(null), "invalid", "links[1].url: missing"),
        (json!("https://paper.example/b"), "invalid", "links[2].how: unknown variant `magic`"),
        (json!(null), "invalid", "links[3]: not a JSON object: \"https://paper.example/c\""),
        (json!("::"), "invalid", "\"::\" is not an absolute URL"),
        (
            json!("https://paper.example/d"),
            "invalid",
            "links[5].metadata: invalid type: map, expected a string",
        ),
        (json!("https://paper.example/e"), "invalid", "links[6].relevance: 7 is not from 0 to 1"),
        (json!("https://paper.example/f"), "added", "in scope"),
    ];
    let rows = ran.rows();
    assert_eq!(rows.len(), want.len());
    for (row, (url, action, rule)) in rows.iter().zip(&want) {
        assert_eq!((&row["url"], row["action"].as_str()), (url, Some(*action)), "{row}");
        assert!(row["rule"].as_str().unwrap().starts_with(rule), "{row}");
    }
    let slips = want.iter().filter(|(_, _, rule)| rule.starts_with("links["));
    let told: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(told.len(), slips.clone().count(), "{told:?}");
    for (line, (_, _, rule)) in told.iter().zip(slips) {
        assert!(line.starts_with(&format!("forager: line 1: {rule}")), "{line}");
    }
    assert_eq!(ran.status, 1);
}

#[test]
fn answers_and_complaints_come_in_the_order_of_the_lines() {
    let queue = Queue::with_links(&["a"]);
    queue.good(&["host", "set", "paper.example", "--delay", "0s"]);
    queue.good(&["lease", "--max", "2", "--per-host", "2"]);
    let page = |path: &str| json!({"collection": "news", "source": "https://paper.example/", "links": [{"url": format!("https://paper.example/{path}")}]});
    let sessions = [
        (
            "discover",
            [
                page("b").to_string(),
                "x".to_owned(),
                json!({"collection": "nope"}).to_string(),
                page("c").to_string(),
            ],
            ["/b\"", "lines:2: not a JSON object", "lines:3: there is no collection", "/c\""],
        ),
        (
            "complete",
            [
                r#"{"token":1,"status":200}"#,
                r#"{"token":9,"status":200}"#,
                "{}",
                r#"{"token":2,"status":200}"#,
            ]
            .map(str::to_owned),
            [
                "\"token\":1",
                "lines:2: token: 9: there is no such lease",
                "lines:3: token: missing",
                "\"token\":2",
            ],
        ),
    ];
    for (command, lines, want) in sessions {
        std::fs::write(queue.folder().join("lines"), lines.join("\n")).unwrap();
        let told = common::session(&format!("forager {command} lines --now {NOW}"), queue.folder());
        let told: Vec<&str> = told.lines().collect();
        assert_eq!(told.len(), want.len(), "{told:?}");
        for (line, want) in told.iter().zip(want) {
            assert!(line.contains(want), "{told:?}");
        }
    }
}

#[test]
fn bad_reports_change_nothing() {
    let queue = Queue::with_links(&[]);
    let token = queue.good(&["lease"])[0]["token"].clone();
    let cases = [
        (json!({"status": 200}), "token: missing"),
        (json!({"token": 99, "status": 200}), "token: 99: there is no such lease, or it has run out"),
        (json!({"token": token}), "has neither a \"status\" nor an \"error\""),
        (json!({"token": token, "bytes": null, "status": null}), "has neither a \"status\" nor an \"error\""),
        (
            json!({"token": token, "status": 200, "error": "timeout"}),
            "has both a \"status\" and an \"error\"; an error is for a fetch without",
        ),
        (json!({"token": token, "status": 99}), "status: 99 is not a status of HTTP: at least 100"),
        (
            json!({"token": token, "status": 70000}),
            "status: invalid value: integer `70000`, expected a whole number, 0 to 65535",
        ),
        (json!({"token": token, "error": "tired"}), "error: unknown variant `tired`"),
        (
            json!({"token": token, "status": 200, "retryAfter": "soon"}),
            "retryAfter: \"soon\" is not a length of time",
        ),
    ];
    for (report, problem) in cases {
        let ran = queue.run(&["complete"], report.to_string());
        assert!(ran.stderr.starts_with(&format!("forager: line 1: {problem}")), "{report}: {}", ran.stderr);
        assert_eq!((ran.status, ran.stdout.as_str()), (1, ""), "{report}");
    }
    assert_eq!(queue.good(&["queue", "list", "--state", "leased"]).len(), 1);
}

#[test]
fn there_must_be_a_queue_to_look_into() {
    let queue = Queue::nowhere();
    let ran = queue.run(&["queue", "list", "--data", "nowhere"], "");
    let problem = "forager: there is no queue in nowhere; start one with \"forager apply\" or \"forager collection add\", \
                   or choose another folder with --data\n";
    assert_eq!((ran.status, ran.stderr.as_str()), (2, problem));
    assert!(!queue.folder().join("nowhere").exists());
    std::fs::write(queue.folder().join("file"), "x").unwrap();
    let ran = queue.run(&["collection", "add", "c", "--data", "file"], "");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.starts_with("forager: file: "), "{}", ran.stderr);
}

#[test]
fn a_queue_of_a_newer_version_is_left_alone() {
    let queue = Queue::news();
    let database = fjall::Database::builder(queue.folder().join("forager-data")).open().unwrap();
    let meta = database.keyspace("meta", fjall::KeyspaceCreateOptions::default).unwrap();
    meta.insert("format", [99]).unwrap();
    drop((meta, database));
    let ran = queue.run(&["queue", "stats"], "");
    assert_eq!(ran.status, 2);
    let problem =
        "forager: forager-data was written by a newer version of Forager (format 99, this one knows ";
    assert!(ran.stderr.starts_with(problem), "{}", ran.stderr);
}

#[test]
#[cfg(target_os = "linux")]
fn a_folder_that_cannot_be_written_is_named() {
    let queue = Queue::news();
    // Nobody can make a folder there, whatever the permissions: not even root.
    let ran = queue.run(&["collection", "add", "c", "--data", "/sys/forager-data"], "");
    assert!(ran.stderr.starts_with("forager: /sys/forager-data: "), "{}", ran.stderr);
    assert_eq!(ran.status, 2);
}

#[test]
fn the_folder_is_that_of_the_flag_the_variable_or_the_file() {
    let queue = Queue::nowhere();
    std::fs::write(
        queue.folder().join("forager.toml"),
        "[store]\ndata = \"by-file\"\ndurability = \"fsync\"\n",
    )
    .unwrap();
    let add = ["collection", "add", "c", "--now", NOW];
    assert_eq!(run_command(&mut queue.command(&add), "").status, 0);
    assert_eq!(run_command(queue.command(&add).env("FORAGER_DATA", "by-variable"), "").status, 0);
    assert_eq!(
        run_command(queue.command(&add).env("FORAGER_DATA", "by-variable").args(["--data", "by-flag"]), "")
            .status,
        0
    );
    for name in ["by-file", "by-variable", "by-flag"] {
        assert!(queue.folder().join(name).is_dir(), "{name}");
    }
}

/// A `discover` that has answered a line and waits for more, so that it has the queue.
fn holder(queue: &Queue) -> Child {
    let mut child = stream(queue, &["discover", "--now", NOW]);
    find(&mut child, "https://paper.example/x");
    child
}

fn stream(queue: &Queue, args: &[&str]) -> Child {
    queue.command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Has `discover` add a page, and waits for its answer.
fn find(child: &mut Child, url: &str) {
    let page = json!({"collection": "news", "source": "https://paper.example/", "links": [{"url": url}]});
    writeln!(child.stdin.as_mut().unwrap(), "{page}").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("added"), "{line}");
}

#[test]
fn the_time_goes_on_while_lines_are_waited_for() {
    let queue = Queue::with_links(&[]);
    let mut child = stream(&queue, &["discover"]);
    find(&mut child, "https://paper.example/early");
    std::thread::sleep(Duration::from_secs(2));
    find(&mut child, "https://paper.example/late");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let created = |path: &str| {
        let url = format!("https://paper.example/{path}");
        let shown = queue.good(&["queue", "show", &url]);
        shown[0]["record"]["origin"]["created"].as_str().unwrap().to_owned()
    };
    assert!(created("early") < created("late"), "{} {}", created("early"), created("late"));
}

#[test]
fn a_second_process_is_told_to_wait_and_soon_gets_its_turn() {
    let queue = Queue::with_links(&[]);
    let mut child = holder(&queue);
    let ran = queue.run(&["queue", "stats"], "");
    assert_eq!(ran.status, 8);
    let start = format!("forager: forager-data is in use by process {} (", child.id());
    assert!(ran.stderr.starts_with(&start), "{}", ran.stderr);
    assert!(ran.stderr.contains("forager discover --now "), "{}", ran.stderr);
    let advice = "), and was for 2s; stop it, wait for its end with a longer --lock-timeout, or choose \
                  another folder with --data";
    assert!(ran.stderr.contains(advice), "{}", ran.stderr);
    let ran = queue.run(&["queue", "stats", "--lock-timeout", "0s"], "");
    assert!(ran.stderr.contains(", and was for 0s"), "{}", ran.stderr);
    // One that ends in time is waited for.
    let leave = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(2500));
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    });
    assert_eq!(queue.good(&["queue", "stats", "--lock-timeout", "2 minutes"])[0]["queued"], 2);
    leave.join().unwrap();
}

#[test]
fn what_was_answered_survives_a_kill() {
    let queue = Queue::with_links(&[]);
    let mut child = holder(&queue);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(queue.good(&["queue", "list"]).len(), 2);
    assert_eq!(queue.good(&["check"])[0]["findings"], 0);
}

#[test]
fn commands_work_in_a_pipeline() {
    let queue = Queue::with_links(&["a", "b"]);
    queue.good(&["host", "set", "paper.example", "--delay", "0s", "--in-flight", "9"]);
    let fetch = r#"sed -n 's/^{"token":\([0-9]*\),.*/{"token":\1,"status":200}/p'"#;
    let line =
        format!("forager lease --max 9 --per-host 9 --now {NOW} | {fetch} | forager complete --now {NOW}");
    let completed = common::session(&line, queue.folder());
    assert_eq!(completed.lines().count(), 3, "{completed}");
    assert!(completed.lines().all(|line| line.contains("\"outcome\":\"again\"")), "{completed}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let queue = Queue::news();
    queue.good(&["collection", "start", "news"]);
    let links: Vec<_> =
        (0..5000).map(|n| json!({"url": format!("https://paper.example/a/long/enough/path/{n}")})).collect();
    let page = json!({"collection": "news", "source": "https://paper.example/", "links": links});
    assert_eq!(queue.run(&["discover"], page.to_string()).good_rows().len(), 5000);
    for command in ["queue list", "export", "queue list --format table"] {
        let line = format!("{{ forager {command} --now {NOW}; echo \"status $?\" >&2; }} | head -1 | wc -l");
        assert_eq!(
            common::session(&line, queue.folder()).split_whitespace().collect::<String>().len(),
            "status01".len(),
            "{command}"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_nobody_sees_of_a_lease_is_given_back() {
    let queue = Queue::with_links(&["a", "b"]);
    queue.good(&["host", "set", "paper.example", "--delay", "0s", "--in-flight", "9"]);
    let lease = |output: Stdio, format: &str| {
        let mut command =
            queue.command(&["lease", "--max", "9", "--per-host", "9", "--now", NOW, "--format", format]);
        let output = command.stdout(output).stderr(Stdio::piped()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let closed = || std::io::pipe().unwrap().1; // its reader is gone at once
    let no_space = "forager: 3 leases given back unseen: cannot write the output: No space left on device (os error 28)\n";
    for format in ["jsonl", "table"] {
        assert_eq!(lease(full().into(), format), (Some(2), no_space.to_owned()), "{format}");
        assert_eq!(lease(closed().into(), format), (Some(0), String::new()), "{format}");
        assert_eq!(queue.good(&["queue", "list", "--state", "leased"]).len(), 0, "{format}");
    }
    assert_eq!(queue.good(&["lease", "--max", "9", "--per-host", "9"]).len(), 3);
}

#[test]
fn a_lease_waits_for_the_time_it_was_told() {
    let queue = Queue::nowhere();
    let run = |args: &[&str]| run_command(&mut queue.command(args), "");
    run(&["job", "create", "--name", "site", "https://site.example/", "--scope", "any"]).good_rows();
    let page = json!({"collection": "site", "source": "https://site.example/", "links": [{"url": "https://site.example/a"}]});
    run_command(&mut queue.command(&["discover"]), page.to_string()).good_rows();
    run(&["host", "set", "site.example", "--delay", "1s"]).good_rows();
    assert_eq!(run(&["lease", "--wait"]).good_rows()[0]["url"], "https://site.example/");
    let at_once = run(&["lease", "--wait", "--timeout", "0s"]).good_rows();
    assert_eq!(at_once[0]["nothing"], "throttled");
    let began = Instant::now();
    assert_eq!(run(&["lease", "--wait", "--timeout", "30s"]).good_rows()[0]["url"], "https://site.example/a");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let nothing = run(&["lease", "--wait", "--collection", "site", "--timeout", "1s"]).good_rows();
    assert_eq!(nothing[0]["nothing"], "blocked", "leases are under way");
}

#[test]
#[cfg(unix)]
fn events_are_followed_while_others_work_until_ctrl_c() {
    let queue = Queue::nowhere();
    queue.good(&["job", "create", "--name", "once", "https://a.example/", "https://b.example/"]);
    let mut follower =
        Running(queue.command(&["events", "--follow", "--now", NOW]).stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(follower.0.stdout.take().unwrap()).lines();
    for (lease, want) in [["failed"].as_slice(), &["failed", "finished"]].iter().enumerate() {
        let token = queue.good(&["lease"])[0]["token"].clone();
        queue.run(&["complete"], json!({"token": token, "status": 403}).to_string()).good_rows();
        for event in *want {
            let row = lines.next().unwrap().unwrap();
            assert!(row.contains(event), "after {lease}: {row}");
        }
    }
    let interrupt = std::process::Command::new("kill").args(["-INT", &follower.0.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    assert!(follower.0.wait().unwrap().success());
    assert!(lines.next().is_none());
}

/// A process that is ended with the test, even if that fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
