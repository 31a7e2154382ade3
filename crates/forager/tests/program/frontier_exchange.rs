//! Taking a queue elsewhere, and looking after it.

use crate::common::{NOW, Queue, run_command};
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
    assert_eq!(ran.status, 1, "the first one was taken in");
    let passed = all.lines().skip_while(|line| !line.contains("\"copy\"")).count();
    assert_eq!(ran.rows().last(), Some(&json!({"added": 5, "present": 0, "bad": passed})));
    let told: Vec<&str> = ran.stderr.lines().map(|line| line.split_once(": ").unwrap().1).collect();
    let problem = |line: usize, id: &str| {
        format!(
            "line {line}: this is a second collection, {id:?}; leave --collection out to keep their names; what belongs to it is passed over"
        )
    };
    let first = all.lines().count() - passed;
    assert_eq!(told, [problem(first + 1, "copy"), problem(first + passed, "other")]);
    assert_eq!(queue.good(&["queue", "list", "--data", "x"]).len(), 5);
    assert_eq!(queue.run(&["import", "--data", "whole"], &all).status, 0);
    assert_eq!(queue.good(&["collection", "list", "--data", "whole"]).len(), 3);
}

#[test]
fn what_is_no_export_is_refused() {
    let queue = rich();
    let export = queue.run(&["export"], "").stdout;
    let (header, rest) = export.split_once('\n').unwrap();
    let images = &rest[rest.find("{\"id\"").unwrap()..];
    let newer = "written by a newer version of Forager (export format 2, this one knows 1); \
                 import it with that version, or a later one";
    let exclude = header.replace("\"exclude\":[]", "\"exclude\":[\"(\"]");
    let cases: [(&str, &[&str], String, &str); 10] = [
        (
            "no header",
            &[],
            images.to_owned(),
            "an export begins with a line about its collection; name one with",
        ),
        (
            "no header, and no collection",
            &["--collection", "x"],
            images.to_owned(),
            "an export begins with a line about its collection, and there is no collection \"x\"",
        ),
        ("newer", &[], header.replace("\"forager\":1", "\"forager\":2"), &format!("line 1: {newer}\n")),
        (
            "newer, and quite different",
            &[],
            r#"{"forager":2,"what":[]}"#.to_owned(),
            &format!("line 1: {newer}\n"),
        ),
        ("in another order", &[], r#"{"what":[], "forager":2}"#.to_owned(), &format!("line 1: {newer}\n")),
        (
            "a field is missing",
            &[],
            header.replace("\"kind\"", "\"kin\""),
            "line 1: collection: missing field `kind`",
        ),
        (
            "a pattern is bad",
            &[],
            format!("{exclude}\n{images}"),
            "line 1: profile \"daily\": exclude: regex",
        ),
        ("a profile is none", &[], header.replace("\"depth\":2", "\"depth\":-2"), "line 1: profiles: "),
        (
            "a seed is none",
            &[],
            header.replace("\"https:", "\"what:"),
            "line 1: seeds: \"what://paper.example/\" is",
        ),
        ("no file", &["nowhere"], String::new(), "cannot read nowhere"),
    ];
    for (name, args, input, problem) in cases {
        let ran = queue.run(&[&["import", "--data", "new"], args].concat(), input);
        assert!(ran.stderr.starts_with(&format!("forager: {problem}")), "{name}: {}", ran.stderr);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{name}");
        assert!(!queue.folder().join("new").exists(), "{name}: nothing was done, so nothing is left behind");
    }
    let bad = export.replacen("\"priority\":", "\"prior\":", 1);
    let ran = queue.run(&["import", "--data", "d"], bad);
    assert_eq!((ran.status, ran.rows().last()), (1, Some(&json!({"added": 4, "present": 0, "bad": 1}))));
    assert!(ran.stderr.starts_with("forager: line 3: missing field `priority`"), "{}", ran.stderr);
    assert_eq!(
        queue.run(&["export", "--collection", "nope"], "").stderr,
        "forager: there is no collection \"nope\"\n"
    );
}

#[test]
fn entries_of_a_collection_that_is_refused_go_nowhere() {
    let queue = rich();
    let export = queue.run(&["export"], "").stdout;
    let other = export
        .replace("\"id\":\"news\"", "\"id\":\"other\"")
        .replace("\"collection\":\"news\"", "\"collection\":\"other\"");
    for (name, from, to, problem) in [
        ("not understood", "\"kind\"", "\"kin\"", "collection: missing field `kind`"),
        (
            "no use",
            "\"exclude\":[]",
            "\"exclude\":[\"(\"]",
            "profile \"other-daily\": exclude: regex parse error",
        ),
        ("newer", "\"forager\":1", "\"forager\":2", "written by a newer version of Forager"),
    ] {
        let both = format!("{export}{}", other.replace(from, to));
        let ran = queue.run(&["import", "--data", name], both);
        assert!(ran.stderr.starts_with(&format!("forager: line 8: {problem}")), "{name}: {}", ran.stderr);
        let told = &ran.stderr.lines().last().unwrap();
        assert!(told.ends_with("; what belongs to it is passed over"), "{name}: {told}");
        assert_eq!(ran.status, 1, "{name}");
        assert_eq!(ran.rows().last().unwrap()["added"], 5, "{name}");
        assert_eq!(queue.good(&["collection", "list", "--data", name]).len(), 1, "{name}");
    }
}

#[test]
fn a_job_that_cannot_start_makes_no_queue() {
    let queue = Queue::nowhere();
    let cases: [&[&str]; 3] = [
        &["job", "create", "--name", "j", "nonsense"],
        &["job", "create", "--name", "j", "https://a.example/", "--include", "("],
        &["collection", "add", "a", "a"],
    ];
    for args in cases {
        assert_eq!(queue.run(args, "").status, 2, "{args:?}");
        assert!(!queue.folder().join("forager-data").exists(), "{args:?}");
    }
}

#[test]
fn an_export_that_fails_leaves_nothing_behind() {
    let queue = rich();
    assert_eq!(queue.run(&["export", "--collection", "nope", "out.jsonl"], "").status, 2);
    let files = std::fs::read_dir(queue.folder()).unwrap().map(|file| file.unwrap().file_name());
    assert_eq!(files.collect::<Vec<_>>(), ["forager-data"]);
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
fn lines_about_a_collection_are_as_long_as_an_import_reads() {
    let queue = Queue::news();
    let long = "x".repeat(4000);
    let seeds: Vec<String> = (0..400).map(|n| format!("https://h{n}.example/{long}")).collect();
    queue.run(&["seed", "import", "--profile", "daily"], seeds.join("\n")).good_rows();
    queue.good(&["collection", "start", "news"]);
    for live in [true, false] {
        if !live {
            // Seeds that were removed stand before the entries that are still their own.
            let gone = [&["seed", "remove"], &*seeds.iter().map(String::as_str).collect::<Vec<_>>()].concat();
            queue.good(&gone);
        }
        let export = queue.run(&["export"], "").stdout;
        let longest = export.lines().map(str::len).max().unwrap();
        assert!(longest < 1 << 20, "{longest}");
        let imported = queue.run(&["import", "--data", &format!("copy-{live}")], export).good_rows();
        assert_eq!(imported.last(), Some(&json!({"added": 401, "present": 0, "bad": 0})));
    }
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
#[cfg(target_os = "linux")]
fn a_copy_that_cannot_be_written_says_what_to_do() {
    let queue = rich();
    std::fs::write(queue.folder().join("file"), "x").unwrap();
    let remedy = "; make room there, or choose another folder for the copy\n";
    for (target, cause) in [("/proc/copy", "No such file or directory"), ("file/copy", "Not a directory")] {
        let ran = queue.run(&["backup", target], "");
        assert_eq!(ran.status, 2, "{target}");
        assert!(
            ran.stderr.starts_with(&format!("forager: {target}: cannot be written: {cause}")),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.ends_with(remedy), "{}", ran.stderr);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_folder_that_cannot_be_made_or_is_none_of_ours_says_what_to_do() {
    let queue = Queue::nowhere();
    std::fs::create_dir(queue.folder().join("photos")).unwrap();
    std::fs::write(queue.folder().join("photos/beach.jpg"), "x").unwrap();
    for (folder, problem) in [
        (
            "/proc/queue",
            "cannot be made: No such file or directory (os error 2); mend that, or choose another folder with --data\n",
        ),
        (
            "photos",
            "is not empty, and holds beach.jpg rather than a queue; choose another folder with --data\n",
        ),
    ] {
        let ran = queue.run(&["collection", "add", "c", "--data", folder], "");
        assert_eq!((ran.status, ran.stderr), (2, format!("forager: {folder}: {problem}")));
    }
}

#[test]
fn a_copy_inside_of_the_queue_is_refused() {
    let queue = rich();
    let ran = queue.run(&["backup", "forager-data/copy"], "");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("lies inside of what is to be copied"), "{}", ran.stderr);
    assert!(!queue.folder().join("forager-data/copy").exists());
}
