//! Input that is bad, slow, long or endless; output that nobody reads.

use crate::common;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

use crate::common::{NOW, forager, run, run_command};

const GOOD: &str = r#"{"url":"https://example.org/"}"#;

fn score(input: impl AsRef<[u8]>) -> common::Ran {
    run(&["score", "--now", NOW], input)
}

#[test]
fn a_bad_line_is_named_and_the_others_go_on() {
    let cases: [(&str, &str, &[u8]); 12] = [
        ("not JSON", "line 2: not a JSON object: nonsense", b"nonsense"),
        (
            "cut off",
            "line 2: not JSON: EOF while parsing an object at column 18 of {\"url\":\"http://a/\"",
            br#"{"url":"http://a/""#,
        ),
        ("a list", "line 2: not a JSON object: [\"https://example.org/\"]", br#"["https://example.org/"]"#),
        (
            "two values",
            "line 2: something follows the JSON object in {\"url\":\"http://a/\"} 1",
            br#"{"url":"http://a/"} 1"#,
        ),
        ("no URL", "line 2: missing field `url`", b"{}"),
        (
            "relative",
            "line 2: url: \"/a\" is not an absolute URL: write https:// or http:// before it",
            br#"{"url":"/a"}"#,
        ),
        ("scheme", "line 2: url: \"ftp://a/\" is not an http or https URL", br#"{"url":"ftp://a/"}"#),
        (
            "number",
            "line 2: hubDepth: invalid value: integer `-1`, expected a whole number, 0 or more",
            br#"{"url":"http://a/","hubDepth":-1}"#,
        ),
        (
            "time",
            "line 2: lastVisited: \"2024-13-01T00:00:00Z\" is not a time such as \"2024-06-15T08:00:00Z\"",
            br#"{"url":"http://a/","lastVisited":"2024-13-01T00:00:00Z"}"#,
        ),
        (
            "beyond every number",
            "line 2: hubDepth: not JSON: number out of range at column 35 of {\"url\":\"http://a/\",\"hubDepth\":1e400}",
            br#"{"url":"http://a/","hubDepth":1e400}"#,
        ),
        (
            "type",
            "line 2: isHub: invalid type: string \"yes\", expected a boolean",
            br#"{"url":"http://a/","isHub":"yes"}"#,
        ),
        ("bytes", "line 2: not UTF-8", b"{\"url\":\"http://a/\xff\"}"),
    ];
    for (name, problem, line) in cases {
        let input = [GOOD.as_bytes(), b"\n", line, b"\n", GOOD.as_bytes()].concat();
        let ran = score(input);
        assert_eq!(ran.stderr, format!("forager: {problem}\n"), "{name}");
        assert_eq!((ran.status, ran.rows().len()), (1, 2), "{name}");
    }
}

#[test]
fn what_other_programs_write_is_read() {
    let cases: [(&str, &[u8]); 6] = [
        ("no line break at the end", GOOD.as_bytes()),
        ("line breaks of two characters", &[GOOD.as_bytes(), b"\r\n"].concat()),
        ("a byte-order mark", &[b"\xef\xbb\xbf", GOOD.as_bytes()].concat()),
        ("empty lines", &[b"\n\n \n", GOOD.as_bytes(), b"\n\n"].concat()),
        ("fields that we do not know", br#"{"url":"https://example.org/","title":"x"}"#),
        (
            "null for what is not known",
            br#"{"url":"https://example.org/","lastVisited":null,"hubDepth":null}"#,
        ),
    ];
    for (name, input) in cases {
        assert_eq!(score(input).good_rows().len(), 1, "{name}");
    }
    assert_eq!(score("").good_rows().len(), 0, "nothing at all");
}

#[test]
fn a_line_of_many_megabytes_is_refused_and_the_next_is_read() {
    let long = format!(r#"{{"url":"https://example.org/{}"}}"#, "a".repeat(5_000_000));
    let ran = score(format!("{GOOD}\n{long}\n{GOOD}\n"));
    assert_eq!(ran.stderr, "forager: line 2: longer than 1048576 bytes\n");
    assert_eq!((ran.status, ran.rows().len()), (1, 2));
}

#[test]
fn what_stands_beyond_the_limit_of_a_line_is_never_overlooked() {
    let spaces = format!("{GOOD}{}junk", " ".repeat(2 << 20));
    let accents = format!("{{\"url\":\"https://example.org/\",\"x\":\"{}\"}}", "é".repeat(1 << 20));
    for line in [spaces, accents] {
        let ran = score(format!("{line}\n{GOOD}\n"));
        assert_eq!(ran.stderr, "forager: line 1: longer than 1048576 bytes\n");
        assert_eq!((ran.status, ran.rows().len()), (1, 1));
    }
}

#[test]
fn a_line_as_long_as_allowed_is_read_with_either_line_break() {
    let start = r#"{"url":"https://example.org/","x":""#;
    for (more, is_read) in [(0, true), (1, false)] {
        let line = format!("{start}{}\"}}", "a".repeat((1 << 20) - start.len() - 2 + more));
        for line_break in ["", "\n", "\r\n"] {
            let ran = score(format!("{line}{line_break}"));
            assert_eq!(ran.rows().len(), usize::from(is_read), "{more} {line_break:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_long_value_is_told_in_short() {
    let ran = score(format!(r#"{{"url":"http://a.example/","lastVisited":"{}"}}"#, "z".repeat(5_000)));
    assert!(
        ran.stderr.starts_with("forager: line 1: lastVisited: \"zzz") && ran.stderr.len() < 400,
        "{}",
        ran.stderr
    );
}

#[test]
#[cfg(unix)]
fn a_named_pipe_is_read_once_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for _ in 0..10 {
        let (path, lines) = (pipe.clone(), format!("{GOOD}\n").repeat(2_000));
        let writer = std::thread::spawn(move || std::fs::write(path, lines).unwrap());
        let ran = run(&["score", "--now", NOW, pipe.to_str().unwrap()], "");
        writer.join().unwrap();
        assert_eq!(ran.good_rows().len(), 2_000);
    }
}

#[test]
fn null_is_the_same_as_missing_in_every_command() {
    let cases: [(&[&str], &str); 4] = [
        (&["select", "--home", "https://a.example"], r#"{"href":"/services","text":null,"title":null}"#),
        (&["hierarchy"], r#"{"url":"https://a.example/","sourceType":"x","source":null,"inHeader":null}"#),
        (
            &["reschedule", "--now", NOW],
            r#"{"url":"https://a.example/","changeFrequency":0.5,"scanCount":1,"freshnessRisk":"LOW","status":503,"failures":null,"retryAfter":null}"#,
        ),
        (&["classify"], r#"{"url":"https://a.example/","contentType":null,"parentRisk":null}"#),
    ];
    for (args, line) in cases {
        assert_eq!(run(args, line).good_rows().len(), 1, "{args:?}");
    }
}

#[test]
fn lines_are_counted_in_each_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.jsonl"), format!("{GOOD}\nbad\n{GOOD}")).unwrap();
    std::fs::write(folder.path().join("b.jsonl"), "worse\n").unwrap();
    for command in ["score", "rank"] {
        let mut command_line = forager();
        command_line.current_dir(&folder).args([command, "a.jsonl", "-", "b.jsonl"]);
        let ran = run_command(&mut command_line, GOOD);
        let mut problems: Vec<&str> = ran.stderr.lines().collect();
        problems.sort_unstable(); // rank reads with several threads
        let expected =
            ["forager: a.jsonl:2: not a JSON object: bad", "forager: b.jsonl:1: not a JSON object: worse"];
        assert_eq!(problems, expected, "{command}");
        assert_eq!((ran.status, ran.rows().len()), (1, 3), "{command}");
    }
}

#[test]
fn a_bad_flag_or_file_ends_with_2_before_anything_is_printed() {
    std::fs::create_dir_all(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("folder")).unwrap();
    let cases: [(&[&str], &str); 11] = [
        (&["score", "--now", "yesterday"], "yesterday"),
        (&["score", "-", "folder"], "cannot read folder: is a directory"),
        (&["reschedule", "--preset", "sentinel", "--config", "missing.toml"], "missing.toml"),
        (&["score", "missing.jsonl"], "cannot read missing.jsonl"),
        (&["score", "-", "missing.jsonl"], "cannot read missing.jsonl"),
        (&["rank", "--min-score", "101"], "101"),
        (&["rank", "--topp", "3"], "--top"),
        (&["reschedule", "--jitter", "1"], "less than 1"),
        (&["select", "--home", "nowhere"], "nowhere"),
        (&["hierarchy", "--mode", "lifo"], "lifo"),
        (&["scope"], "--config"),
    ];
    for (args, named) in cases {
        let ran = run(args, GOOD);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(named), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    for command in ["score", "rank"] {
        let mut child = start(&[command, "--now", NOW]);
        drop(child.stdout.take());
        let mut stdin = child.stdin.take().unwrap();
        for _ in 0..10_000 {
            if writeln!(stdin, "{GOOD}").is_err() {
                break;
            }
        }
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_told() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut child =
        forager().args(["score"]).stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{GOOD}").unwrap();
    let output = child.wait_with_output().unwrap();
    let problem = String::from_utf8(output.stderr).unwrap();
    assert!(problem.starts_with("forager: cannot write the output: No space left"), "{problem}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn an_answer_does_not_wait_for_the_next_question() {
    let mut child = start(&["score", "--now", NOW]);
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        writeln!(stdin, "{GOOD}").unwrap();
        assert!(answers.next().unwrap().unwrap().contains("\"score\":73"));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

/// Lines that differ, about 200 bytes each, with the fields of every command that streams.
fn signals(count: usize) -> String {
    let mut lines = String::new();
    for index in 0..count {
        let day = index % 28 + 1;
        let url = format!("https://news{}.example.org/section/{index}", index % 97);
        let (depth, risk) = (index % 7, ["LOW", "MEDIUM", "HIGH", "CRITICAL"][index % 4]);
        let time = format!("2024-05-{day:02}T00:00:00Z");
        writeln!(
            lines,
            r#"{{"url":"{url}","lastVisited":"{time}","hubDepth":{depth},"freshnessRisk":"{risk}","nextScanDue":"{time}"}}"#
        )
        .unwrap();
    }
    lines
}

#[test]
#[cfg(target_os = "linux")]
fn memory_stays_flat_however_long_the_stream() {
    for command in [&["rank", "--top", "100"][..], &["score"], &["manifest", "--limit", "100"]] {
        let mut child = start(command);
        let mut answers = child.stdout.take().unwrap();
        // Somebody must read the answers, or the child would wait for us.
        let reader = std::thread::spawn(move || std::io::copy(&mut answers, &mut std::io::sink()).unwrap());
        let mut stdin = child.stdin.take().unwrap();
        let lines = signals(10_000);
        let mut peaks = Vec::new();
        for round in 0..12 {
            stdin.write_all(lines.as_bytes()).unwrap();
            if round == 1 || round == 11 {
                peaks.push(peak_kilobytes(child.id()));
            }
        }
        drop(stdin);
        assert!(child.wait().unwrap().success(), "{command:?}: every line is good");
        assert!(reader.join().unwrap() > 0, "{command:?}: and some are answered");
        // Ten rounds are 20 MB of input; a program that kept its lines would grow by more.
        assert!(peaks[1] < peaks[0] + 8_000, "{command:?}: {peaks:?}");
    }
}

#[cfg(target_os = "linux")]
fn peak_kilobytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn the_best_of_many_are_those_of_a_full_sort() {
    let input = signals(5_000);
    let all = run(&["rank", "--now", NOW], &input).good_rows();
    let top = run(&["rank", "--now", NOW, "--top", "100"], &input).good_rows();
    assert_eq!(all.len(), 5_000);
    assert_eq!(top, all[..100]);
    let high = run(&["rank", "--now", NOW, "--min-score", "70"], &input).good_rows();
    let expected: Vec<_> = all.into_iter().filter(|row| row["score"].as_u64() >= Some(70)).collect();
    assert!(!expected.is_empty());
    assert_eq!(high, expected);
}

#[test]
fn a_table_cannot_steer_the_terminal() {
    let input = "{\"href\":\"/\\u001b[2Jx\",\"text\":\"services\"}";
    let ran = run(
        &["select", "--home", "https://acme.com", "--page-cap", "0", "--dropped", "--format", "table"],
        input,
    );
    assert_eq!(ran.status, 0);
    assert!(ran.stdout.contains("[2Jx") && !ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
    let ran = score("\u{1b}[2J");
    assert!(ran.stderr.contains("[2J") && !ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
}

fn start(args: &[&str]) -> Child {
    let mut command = forager();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}
