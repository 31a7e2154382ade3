//! Every example of `--help`, run as it is written.

#![allow(missing_docs, clippy::unwrap_used, reason = "the names say it, and a test that cannot go on fails")]

mod common;

use std::path::Path;
use std::process::Command;

use common::forager;

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

/// The lines after `Example:`, split into commands and what each prints.
fn example(help: &str) -> Vec<(String, String)> {
    let (_, example) = help.split_once("Example:\n").expect("there is an example");
    let mut steps: Vec<(String, String)> = Vec::new();
    for line in example.lines().map(str::trim_start).filter(|line| !line.is_empty()) {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push((command.to_owned(), String::new()));
        } else {
            let (_, printed) = steps.last_mut().expect("the first line is a command");
            printed.push_str(line);
            printed.push('\n');
        }
    }
    steps
}

#[test]
fn each_prints_what_help_says() {
    let folder = tempfile::tempdir().unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_forager")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    for command in COMMANDS {
        let steps = example(&help(command));
        assert!(steps.iter().any(|(step, _)| step.contains(&format!("forager {command}"))), "{command}");
        for (step, printed) in steps {
            let mut shell = Command::new("sh");
            // Errors are part of what a user sees.
            shell.arg("-c").arg(format!("{{ {step}; }} 2>&1")).current_dir(&folder).env("PATH", &path);
            let output = shell.env_remove("FORAGER_CONFIG").output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), printed, "{step}");
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
