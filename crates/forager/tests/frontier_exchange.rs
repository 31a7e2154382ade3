//! Taking a queue elsewhere, and looking after it.

#![allow(missing_docs, clippy::unwrap_used, reason = "the names say it, and a test that cannot go on fails")]

mod common;

use common::{NOW, Queue, run_command};
use serde_json::{Value, json};

/// A queue with a history, settings of a host, and entries in several states.
fn rich() -> Queue {
    let queue = Queue::with_links(&["a", "b", "c"]);
    let token = queue.good(&["lease"])[0]["token"].clone();
    queue
        .run(&["complete"], json!({"token": token, "status": 200, "fingerprint": "one"}).to_string())
        .good_rows();
    queue.good(&["host", "set", "paper.example", "--delay", "7s"]);
    queue.good(&["seed", "add", "https://gone.example/", "--profile", "daily"]);
    queue.good(&["seed", "start", "https://gone.example/"]);
    queue.good(&["seed", "remove", "https://gone.example/"]);
    queue
}

/// Entries without their numbers, which are those of one queue.
fn entries(queue: &Queue, args: &[&str]) -> Vec<Value> {
    let mut rows = queue.good(&[&["queue", "list"], args].concat());
    for row in &mut rows {
        row.as_object_mut().unwrap().shift_remove("id");
    }
    rows
}

#[test]
fn an_export_builds_the_same_collection_elsewhere() {
    let queue = rich();
    assert_eq!(queue.good(&["export", "news.jsonl"]), [json!({"collection": "news", "entries": 5})]);
    assert!(!queue.folder().join("news.jsonl.part").exists());
    let imported = queue.good(&["import", "news.jsonl", "--data", "copy"]);
    assert_eq!(imported.last().unwrap(), &json!({"added": 5, "present": 0, "bad": 0}), "{imported:?}");
    assert_eq!(entries(&queue, &["--data", "copy"]), entries(&queue, &[]));
    assert_eq!(queue.good(&["profile", "list", "--data", "copy"]), queue.good(&["profile", "list"]));
    let show = ["queue", "show", "https://paper.example/"];
    let (here, there) = (queue.good(&show), queue.good(&[&show[..], &["--data", "copy"]].concat()));
    assert_eq!(here[0]["record"], there[0]["record"]);
    let delay = |args: &[&str]| {
        queue.good(&[&["queue", "hosts", "paper.example"], args].concat())[0]["settings"]["delay"].clone()
    };
    assert_eq!((delay(&[]), delay(&["--data", "copy"])), (json!("7s"), json!("7s")));

    let again = queue.good(&["import", "news.jsonl", "--data", "copy"]);
    assert_eq!(again, [json!({"added": 0, "present": 5, "bad": 0})]);
    // What was exported is what an export of the copy gives, but for the numbers.
    let text = |args: &[&str]| queue.run(&[&["export"], args].concat(), "").stdout;
    assert_eq!(text(&[]).lines().count(), text(&["--data", "copy"]).lines().count());
}

#[test]
fn a_collection_can_be_taken_in_under_another_name() {
    let queue = rich();
    let export = queue.run(&["export", "--collection", "news"], "").stdout;
    let imported = queue.run(&["import", "--collection", "copy"], &export).good_rows();
    assert_eq!(
        imported[..3],
        [
            json!({"change": "added", "kind": "collection", "name": "copy"}),
            json!({"change": "added", "kind": "profile", "name": "copy-daily"}),
            json!({"change": "changed", "kind": "seed", "name": "https://paper.example/"}),
        ]
    );
    assert_eq!(queue.good(&["queue", "list", "--collection", "copy"]).len(), 5);
    queue.good(&["collection", "add", "other"]);
    let all = queue.run(&["export"], "").stdout;
    let ran = queue.run(&["import", "--collection", "x", "--data", "x"], &all);
    assert_eq!(ran.status, 2);
    assert!(
        ran.stderr.contains("this is a second collection, \"copy\"; leave --collection out"),
        "{}",
        ran.stderr
    );
    assert_eq!(queue.run(&["import", "--data", "whole"], &all).status, 0);
    assert_eq!(queue.good(&["collection", "list", "--data", "whole"]).len(), 3);
}

#[test]
fn what_is_no_export_is_refused() {
    let queue = rich();
    let export = queue.run(&["export"], "").stdout;
    let (header, images) = export.split_once('\n').unwrap();
    let ran = queue.run(&["import", "--data", "a"], images);
    assert_eq!(
        ran.stderr,
        "forager: an export begins with a line about its collection; name one with --collection\n"
    );
    let ran = queue.run(&["import", "--data", "b"], header.replace("\"forager\":1", "\"forager\":2"));
    assert_eq!(
        ran.stderr,
        "forager: line 1: written by a newer version of Forager; import it with that version\n"
    );
    let ran =
        queue.run(&["import", "--data", "c"], format!("{}\n{images}", header.replace("\"kind\"", "\"kin\"")));
    assert!(ran.stderr.starts_with("forager: line 1: "), "{}", ran.stderr);
    assert_eq!(ran.status, 2, "nothing may follow a line about a collection that is not understood");
    let bad = export.replacen("\"priority\":", "\"prior\":", 1);
    let ran = queue.run(&["import", "--data", "d"], bad);
    assert_eq!((ran.status, ran.rows().last()), (1, Some(&json!({"added": 4, "present": 0, "bad": 1}))));
    assert!(ran.stderr.starts_with("forager: line 2: missing field `priority`"), "{}", ran.stderr);
    assert_eq!(
        queue.run(&["export", "--collection", "nope"], "").stderr,
        "forager: there is no collection \"nope\"\n"
    );
}

#[test]
fn a_backup_is_a_queue_and_a_sound_queue_has_no_findings() {
    let queue = rich();
    let saved = queue.run(&["backup", "saved"], "");
    assert_eq!((saved.status, saved.stderr.as_str()), (0, ""));
    assert_eq!(queue.good(&["queue", "list", "--data", "saved"]), queue.good(&["queue", "list"]));
    for data in ["forager-data", "saved"] {
        let checked = queue.good(&["check", "--data", data]);
        assert_eq!((&checked[0]["findings"], &checked[0]["entries"]), (&json!(0), &json!(5)), "{data}");
    }
    // What happens afterwards is only in one of them.
    queue.good(&["collection", "remove", "news", "--yes"]);
    assert_eq!(queue.good(&["collection", "list", "--data", "saved"]).len(), 1);
    let ran = queue.run(&["backup", "saved"], "");
    assert_eq!(ran.status, 2, "it does not write over what is there");
}

#[test]
fn many_seeds_and_hosts_are_told_in_several_lines() {
    let queue = Queue::news();
    let seeds: Vec<String> = (0..1500).map(|n| format!("https://h{n}.example/")).collect();
    queue.run(&["seed", "import", "--profile", "daily"], seeds.join("\n")).good_rows();
    let export = queue.run(&["export"], "").stdout;
    assert_eq!(export.lines().filter(|line| line.starts_with("{\"forager\"")).count(), 2);
    let imported =
        run_command(queue.command(&["import", "--data", "copy", "--now", NOW]).env("NO_COLOR", "1"), export)
            .good_rows();
    assert_eq!(imported.iter().filter(|row| row["kind"] == "seed").count(), 1501);
}

#[test]
fn an_export_goes_where_it_is_told_and_nowhere_else() {
    let queue = rich();
    let folder = queue.folder();
    std::fs::write(folder.join("out.jsonl.part"), "precious").unwrap();
    queue.good(&["export", "out.jsonl"]);
    assert_eq!(std::fs::read_to_string(folder.join("out.jsonl.part")).unwrap(), "precious");
    let exported = std::fs::read_to_string(folder.join("out.jsonl")).unwrap();

    std::fs::write(folder.join("real.jsonl"), "old").unwrap();
    std::os::unix::fs::symlink("real.jsonl", folder.join("link.jsonl")).unwrap();
    queue.good(&["export", "link.jsonl"]);
    assert!(folder.join("link.jsonl").is_symlink());
    assert_eq!(std::fs::read_to_string(folder.join("real.jsonl")).unwrap(), exported);

    let made = std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap();
    assert!(made.success());
    let pipe = folder.join("pipe");
    let reader = std::thread::spawn(move || std::fs::read_to_string(pipe).unwrap());
    queue.good(&["export", "pipe"]);
    assert_eq!(reader.join().unwrap(), exported);
}

#[test]
fn a_copy_inside_of_the_queue_is_refused() {
    let queue = rich();
    let ran = queue.run(&["backup", "forager-data/copy"], "");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("lies inside of what is to be copied"), "{}", ran.stderr);
    assert!(!queue.folder().join("forager-data/copy").exists());
}
