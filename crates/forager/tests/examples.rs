//! Every example of `--help`, run as it is written.

#![allow(missing_docs, clippy::unwrap_used, reason = "the names say it, and a test that cannot go on fails")]

mod common;

use common::{forager, session, steps_in};

/// The commands that have a page of their own.
const COMMANDS: [&str; 13] = [
    "score",
    "rank",
    "select",
    "classify",
    "reschedule",
    "manifest",
    "hierarchy",
    "scope",
    "url",
    "config check",
    "config show",
    "completions",
    "man",
];

fn help(command: &str) -> String {
    let output =
        forager().args(command.split(' ').filter(|part| !part.is_empty())).arg("--help").output().unwrap();
    assert!(output.status.success(), "{command}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn each_prints_what_help_says() {
    let folder = tempfile::tempdir().unwrap();
    for command in COMMANDS {
        let help = help(command);
        let (_, example) = help.split_once("Example:\n").expect("there is an example");
        let steps = steps_in(example.lines().map(str::trim_start).filter(|line| !line.is_empty()));
        assert!(steps.iter().any(|(step, _)| step.contains(&format!("forager {command}"))), "{command}");
        for (step, printed) in steps {
            assert_eq!(session(&step, folder.path()), printed, "{step}");
        }
    }
}

#[test]
fn no_command_is_left_out() {
    let listed = help("");
    let (_, listed) = listed.split_once("Commands:\n").unwrap();
    let listed =
        listed.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    for command in listed.filter(|command| *command != "help") {
        let tested = COMMANDS.iter().any(|tested| tested.split(' ').next() == Some(command));
        assert!(tested, "the example of {command} is not tested");
    }
}
