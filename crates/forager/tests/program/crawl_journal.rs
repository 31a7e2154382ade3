//! What the commands that crawl tell on standard error, as JSON for programs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common;
use crate::web::{CONTACT, Field, Started, page, wait_until};
use forager_site::{Answer, Asked, Host, Site};
use jiff::Timestamp;
use serde_json::Value;

const HOST: &str = "a.test";

/// A home page that says something else when a test wants it to, and leads to a page that is not there.
fn changing() -> (Arc<AtomicUsize>, Field) {
    let version = Arc::new(AtomicUsize::new(0));
    let said = version.clone();
    let host = Host::new(HOST).made("/", move |_: &Asked<'_>| {
        let number = said.load(Ordering::SeqCst);
        let text = format!("<main><p>Rule number {number} applies to all who come here.</p></main>");
        Answer::html(text + "<a href=\"/gone\">gone</a>")
    });
    (version, Field::new(Site::new().host(host.page("/gone", Answer::error(404)))))
}

/// Every line of standard error, which must be JSON with the fields that all have.
#[track_caller]
fn told(file: &Path) -> Vec<Value> {
    // The last line may be under way.
    let text = std::fs::read_to_string(file).unwrap();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")));
    let lines: Vec<Value> = lines.collect();
    for line in &lines {
        assert!(line["ts"].as_str().unwrap().parse::<Timestamp>().is_ok(), "{line}");
        assert!(matches!(line["level"].as_str(), Some("info" | "warn" | "error")), "{line}");
        assert!(line["event"].is_string(), "{line}");
    }
    lines
}

fn of<'l>(lines: &'l [Value], event: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

#[track_caller]
fn one<'l>(lines: &'l [Value], event: &str) -> &'l Value {
    let found = of(lines, event);
    assert_eq!(found.len(), 1, "{event} in {lines:#?}");
    found[0]
}

#[test]
fn a_run_tells_each_thing_that_happens() {
    let (version, field) = changing();
    let seed = field.url(HOST, "/");
    let harvest = |every: &str| {
        field.configure(&format!(
            "contact = {CONTACT:?}\nallow_addresses = [\"127.0.0.0/8\"]\n[[collections]]\nid = \"c\"\n[[profiles]]\n\
             id = \"p\"\ncollection = \"c\"\nscope = \"host\"\nevery = {every:?}\n[[seeds]]\nurl = {seed:?}\n\
             profiles = [\"p\"]\n"
        ));
    };
    harvest("1s");
    let file = field.file("told.jsonl");
    let running = Started::telling(&mut field.queue.command(&["run", "--log", "json"]), &file);
    let until = |what: &str, count: usize| wait_until(what, || of(&told(&file), what).len() >= count);
    until("page", 2);
    version.store(1, Ordering::SeqCst);
    until("change", 1);
    until("error", 1);
    std::fs::write(field.file("forager.toml"), "[nonsense\n").unwrap();
    running.signal("HUP");
    until("reload", 2);
    harvest("1s");
    until("started", 2);
    running.signal("TERM");
    let status = running.end().status;
    let lines = told(&file);

    let started = of(&lines, "started")[0];
    assert_eq!((&started["collections"][0], &started["queued"]), (&"c".into(), &1.into()), "{started}");
    let first = of(&lines, "page")[0];
    assert_eq!((&first["url"], &first["status"]), (&seed.as_str().into(), &200.into()), "{first}");
    assert_eq!(first["level"], "info");
    let gone = of(&lines, "error")[0];
    assert_eq!((&gone["url"], &gone["status"]), (&field.url(HOST, "/gone").into(), &404.into()), "{gone}");
    assert_eq!(gone["level"], "warn");
    let change = one(&lines, "change");
    assert_eq!((&change["url"], &change["added"], &change["removed"]), (&seed.into(), &1.into(), &1.into()));
    let reloads = of(&lines, "reload");
    assert_eq!((&reloads[0]["level"], &reloads[1]["level"]), (&"info".into(), &"warn".into()), "{reloads:?}");
    assert!(reloads[1]["message"].as_str().unwrap().contains("forager.toml"), "{}", reloads[1]);
    one(&lines, "draining");
    let done = of(&lines, "progress").iter().map(|line| line["done"].as_u64().unwrap()).max();
    assert!(done.unwrap() >= 3, "as it was when the configuration was read again: {lines:#?}");
    let ended = one(&lines, "ended");
    assert_eq!((&ended["status"], &lines.last().unwrap()["event"]), (&status.into(), &"ended".into()));
}

#[test]
fn a_watch_tells_of_every_look() {
    let (version, field) = changing();
    let (file, seed, gone) = (field.file("told.jsonl"), field.url(HOST, "/"), field.url(HOST, "/gone"));
    let command = ["watch", &seed, &gone, "--every", "1s", "--log", "json", "--json"];
    let watching = Started::telling(&mut field.queue.command(&command), &file);
    wait_until("a look", || of(&told(&file), "page").len() == 1);
    version.store(1, Ordering::SeqCst);
    wait_until("a change", || !of(&told(&file), "change").is_empty());
    wait_until("an error", || !of(&told(&file), "error").is_empty());
    watching.signal("INT");
    let ran = watching.end();
    let lines = told(&file);
    assert_eq!(one(&lines, "started")["pages"], 2);
    assert!(of(&lines, "page").iter().all(|line| line["url"] == seed.as_str()), "{lines:?}");
    assert!(of(&lines, "error").iter().all(|line| line["url"] == gone.as_str()), "{lines:?}");
    assert_eq!((one(&lines, "ended")["status"].as_i64(), ran.rows().len()), (Some(ran.status.into()), 1));
    assert!(!of(&lines, "draining").is_empty());
}

#[test]
fn a_crawl_tells_how_it_failed() {
    let field = Field::new(Site::new().host(Host::new(HOST).page("/", page("Home", &[]))));
    let table = [
        ("done", vec![], 0, "info"),
        (
            "a file where the queue should be",
            vec!["--lock-timeout", "0s", "--data", "forager.toml"],
            4,
            "error",
        ),
    ];
    for (name, more, status, level) in table {
        let (file, seed) = (field.file("told.jsonl"), field.url(HOST, "/"));
        let command = [&["crawl", &seed, "--log", "json"], &more[..]].concat();
        let ran = Started::telling(&mut field.queue.command(&command), &file).end();
        let lines = told(&file);
        let ended = one(&lines, "ended");
        assert_eq!(
            (ran.status, &ended["status"], &ended["level"]),
            (status, &status.into(), &level.into()),
            "{name}"
        );
        assert_eq!(ended["message"].is_string(), level == "error", "{name}: {ended}");
    }
    // Only what is wrong.
    let file = field.file("told.jsonl");
    let command = ["crawl", &field.url(HOST, "/"), "--log", "json", "--quiet"];
    assert_eq!(Started::telling(&mut field.queue.command(&command), &file).end().status, 0);
    assert_eq!(told(&file), Vec::<Value>::new());
}

/// What the command leaves running holds its output open, and prints nothing.
const HOOK: &str = "echo said; printf '%05000d\\n' 0; echo complained >&2; sleep 600 & echo $! >> running";

/// Lets a page change twice that is watched with a command for changes. Returns what was printed.
fn watched_with_hook(more: &[&str], file: &str) -> (common::Ran, String) {
    let (version, field) = changing();
    let (file, seed) = (field.file(file), field.url(HOST, "/"));
    let command = [&["watch", &seed, "--every", "1s", "--json", "--on-change", HOOK], more].concat();
    let watching = Started::telling(&mut field.queue.command(&command), &file);
    let running = || std::fs::read_to_string(field.file("running")).unwrap_or_default();
    field.wait_for(HOST, 1);
    for number in 1..=2 {
        version.store(number, Ordering::SeqCst);
        wait_until("the command to be run", || running().lines().count() == number);
    }
    watching.signal("INT");
    let ran = watching.end();
    let ended = std::process::Command::new("kill").args(running().lines()).status();
    assert!(ended.unwrap().success());
    assert_eq!(ran.rows().len(), 2, "nothing but the changes: {ran:?}");
    (ran, std::fs::read_to_string(file).unwrap())
}

#[test]
fn what_a_command_for_changes_prints_is_told_on_standard_error() {
    let (ran, text) = watched_with_hook(&[], "told");
    assert_eq!((ran.status, text.matches("\nsaid\n").count()), (11, 2), "{text}");
    assert_eq!(text.matches("\ncomplained\n").count(), 2, "{text}");
    let (_, text) = watched_with_hook(&["--quiet"], "told");
    assert_eq!(text, "complained\n".repeat(2));
}

#[test]
fn what_a_command_for_changes_prints_is_json_for_programs() {
    let (_, text) = watched_with_hook(&["--log", "json"], "told.jsonl");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let printed = of(&lines, "command");
    let count = |level: &str, stream: &str, text: &str| {
        let is_it =
            |line: &&&Value| line["level"] == level && line["stream"] == stream && line["message"] == text;
        printed.iter().filter(is_it).count()
    };
    assert_eq!(printed.len(), 6, "{text}");
    assert_eq!(count("info", "stdout", "said"), 2, "{text}");
    assert_eq!(count("info", "stdout", &("0".repeat(4096) + "[…]")), 2, "{text}");
    assert_eq!(count("warn", "stderr", "complained"), 2, "{text}");
}
