//! Every example of `--help`, run as it is written.

use crate::common::{forager, session, session_in, steps_in};
use crate::server;

/// The commands that have a page of their own. They run one after another in one folder, so that an
/// example may build on those before.
const COMMANDS: [&str; 63] = [
    "score",
    "rank",
    "select",
    "classify",
    "reschedule",
    "manifest",
    "hierarchy",
    "scope",
    "url",
    "init",
    "apply",
    "collection add",
    "profile add",
    "seed add",
    "seed import",
    "seed list",
    "seed show",
    "seed enable",
    "seed disable",
    "seed remove",
    "profile list",
    "profile show",
    "profile disable",
    "profile enable",
    "profile remove",
    "collection disable",
    "collection enable",
    "collection start",
    "profile start",
    "seed start",
    "collection list",
    "collection show",
    "discover",
    "lease",
    "complete",
    "extend",
    "release",
    "explain",
    "queue list",
    "queue show",
    "queue plan",
    "queue hosts",
    "queue stats",
    "host set",
    "job create",
    "job list",
    "job show",
    "job pages",
    "job pause",
    "job resume",
    "job cancel",
    "events",
    "export",
    "import",
    "backup",
    "check",
    "collection remove",
    "config check",
    "config show",
    "completions",
    "man",
    "bench frontier",
    "bench urlfrontier",
];

/// The commands whose examples need a database, in which nothing is there yet.
const IN_DATABASE: [&str; 4] = ["db migrate", "db status", "db check", "db down"];

/// The commands whose examples need the web; `crawl.rs` runs them on a site of its own.
const FETCHING: [&str; 9] = ["demo", "crawl", "run", "watch", "pick", "audit", "robots", "sitemap", "links"];

/// The commands whose examples go on until they are stopped; `serve.rs` starts and stops them.
const LASTING: [&str; 1] = ["serve"];

fn help(command: &str) -> String {
    let output =
        forager().args(command.split(' ').filter(|part| !part.is_empty())).arg("--help").output().unwrap();
    assert!(output.status.success(), "{command}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn each_prints_what_help_says() {
    run_all(&COMMANDS, session);
}

#[test]
fn each_prints_what_help_says_in_a_database() {
    let schema = server::Schema::unmade();
    run_all(&IN_DATABASE, |step, folder| session_in(step, folder, &[("DATABASE_URL", &schema.url())]));
}

fn run_all(commands: &[&str], run: impl Fn(&str, &std::path::Path) -> String) {
    let folder = tempfile::tempdir().unwrap();
    for command in commands {
        let help = help(command);
        let (_, example) = help.split_once("Example:\n").expect("there is an example");
        let lines = example.trim_end().lines().map(|line| line.strip_prefix("  ").unwrap_or(line));
        let steps = steps_in(lines);
        assert!(steps.iter().any(|(step, _)| step.contains(&format!("forager {command}"))), "{command}");
        for (step, printed) in steps {
            assert_eq!(run(&step, folder.path()), printed, "{step}");
        }
    }
}

#[test]
fn no_command_is_left_out() {
    let mut left = subcommands("");
    let mut count = 0;
    while let Some(command) = left.pop() {
        match subcommands(&command) {
            below if below.is_empty() => {
                let is_listed =
                    [&COMMANDS[..], &IN_DATABASE, &FETCHING, &LASTING].concat().contains(&&*command);
                assert!(is_listed, "the example of {command} is not tested");
                assert!(help(&command).contains("Example:\n"), "{command} has an example");
                count += 1;
            }
            below => left.extend(below),
        }
    }
    assert_eq!(count, COMMANDS.len() + IN_DATABASE.len() + FETCHING.len() + LASTING.len());
}

/// The commands that the help of a command lists.
fn subcommands(command: &str) -> Vec<String> {
    let help = help(command);
    let Some((_, listed)) = help.split_once("Commands:\n") else { return Vec::new() };
    let listed = listed.lines().take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    names.map(|name| format!("{command} {name}").trim_start().to_owned()).collect()
}
