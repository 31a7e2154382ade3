//! Runs the real binary, as a user would.

#![allow(dead_code, reason = "each test file takes what it needs")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The moment that most tests take for now.
pub(crate) const NOW: &str = "2024-06-15T08:00:00Z";

/// Variables that say where things are outside, and are none of a test's business.
const OUTSIDE: [&str; 7] = [
    "FORAGER_CONFIG",
    "FORAGER_DATA",
    "FORAGER_STORE",
    "FORAGER_TEST_POSTGRES",
    "FORAGER_TOKEN",
    "FORAGER_TOKEN_FILE",
    "DATABASE_URL",
];

/// What a run printed, and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) status: i32,
}

impl Ran {
    /// Standard output as JSON Lines.
    #[track_caller]
    pub(crate) fn rows(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        self.stdout.lines().map(parse).collect()
    }

    /// Standard output as JSON Lines of a run that must have gone well.
    #[track_caller]
    pub(crate) fn good_rows(&self) -> Vec<Value> {
        assert_eq!((self.status, self.stderr.as_str()), (0, ""), "{self:?}");
        self.rows()
    }

    /// The same of a run that was stopped, and of which nothing else is to be said.
    #[track_caller]
    pub(crate) fn interrupted_rows(&self) -> Vec<Value> {
        assert_eq!((self.status, self.stderr.as_str()), (11, ""), "{self:?}");
        self.rows()
    }
}

/// The binary, in an empty environment of its own.
pub(crate) fn forager() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forager"));
    for variable in OUTSIDE {
        command.env_remove(variable);
    }
    command.current_dir(env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Runs a command with this standard input.
pub(crate) fn run(args: &[&str], input: impl AsRef<[u8]>) -> Ran {
    run_command(forager().args(args), input)
}

/// Runs a prepared command with this standard input.
pub(crate) fn run_command(command: &mut Command, input: impl AsRef<[u8]>) -> Ran {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.as_ref().to_vec();
    // From a thread of its own: a child that writes while we write would block us both.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input); // a command that fails early reads nothing
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Ran {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        status: output.status.code().unwrap(),
    }
}

/// JSON Lines of these values.
pub(crate) fn lines(values: &[Value]) -> String {
    let lines: Vec<String> = values.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The expected answers that core is tested with.
pub(crate) fn cases(policy: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../core/tests/cases/{policy}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The elements of a JSON list, of which there must be some.
#[track_caller]
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let list = value[key].as_array().unwrap_or_else(|| panic!("no list {key}"));
    assert!(!list.is_empty(), "{key} is empty");
    list
}

/// Commands of the shell, each with what it prints.
pub(crate) type Steps = Vec<(String, String)>;

/// Splits a session into the lines after a `$` and what follows each.
pub(crate) fn steps_in<'a>(lines: impl Iterator<Item = &'a str>) -> Steps {
    let mut steps = Steps::new();
    for line in lines {
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

/// The sessions of a document: its blocks of kind `console`.
pub(crate) fn sessions_in(document: &str) -> Steps {
    let blocks = document.split("```console\n").skip(1);
    blocks.flat_map(|block| steps_in(block.split("```").next().unwrap_or_default().lines())).collect()
}

/// What a command of the shell prints, errors included, in this folder.
pub(crate) fn session(step: &str, folder: &Path) -> String {
    session_in(step, folder, &[])
}

/// The same, with these variables.
pub(crate) fn session_in(step: &str, folder: &Path, variables: &[(&str, &str)]) -> String {
    let binaries = Path::new(env!("CARGO_BIN_EXE_forager")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let step = step.replace("cargo run --release --quiet --", "forager");
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{{ {step}; }} 2>&1")).current_dir(folder).env("PATH", path);
    for variable in OUTSIDE {
        shell.env_remove(variable);
    }
    let output = shell.envs(variables.iter().copied()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// A queue in a folder of its own, for the real binary to work on.
pub(crate) struct Queue {
    folder: tempfile::TempDir,
}

impl Queue {
    /// An empty folder.
    pub(crate) fn nowhere() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A queue with a collection `news`, its profile `daily` and the seed `https://paper.example/`.
    pub(crate) fn news() -> Self {
        let queue = Self::nowhere();
        queue.good(&["collection", "add", "news"]);
        queue.good(&["profile", "add", "daily", "--collection", "news", "--depth", "2", "--every", "24h"]);
        queue.good(&["seed", "add", "https://paper.example/", "--profile", "daily"]);
        queue
    }

    /// As [`Queue::news`], started, with links to `/a` and so on found on its home page.
    pub(crate) fn with_links(names: &[&str]) -> Self {
        let queue = Self::news();
        queue.good(&["collection", "start", "news"]);
        let links: Vec<Value> = names
            .iter()
            .map(|name| serde_json::json!({"url": format!("https://paper.example/{name}")}))
            .collect();
        let page =
            serde_json::json!({"collection": "news", "source": "https://paper.example/", "links": links});
        assert_eq!(queue.run(&["discover"], page.to_string()).good_rows().len(), names.len());
        queue
    }

    /// The folder, beside the queue.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The program, about to work on this queue.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = forager();
        command.args(args).current_dir(self.folder.path());
        command
    }

    /// The same, as a shell starts it after a command of its own.
    pub(crate) fn after(&self, first: &str, args: &[&str]) -> Command {
        let program = self.command(args);
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{first} && exec \"$@\""), "sh"]).arg(program.get_program());
        shell.args(program.get_args()).current_dir(self.folder.path());
        for (name, _) in program.get_envs() {
            shell.env_remove(name); // none is set
        }
        shell
    }

    /// Runs a command at [`NOW`].
    pub(crate) fn run(&self, args: &[&str], input: impl AsRef<[u8]>) -> Ran {
        run_command(self.command(args).args(["--now", NOW]), input)
    }

    /// Runs a command at another time.
    pub(crate) fn run_at(&self, now: &str, args: &[&str], input: impl AsRef<[u8]>) -> Ran {
        run_command(self.command(args).args(["--now", now]), input)
    }

    /// The rows of a command without input that must go well.
    #[track_caller]
    pub(crate) fn good(&self, args: &[&str]) -> Vec<Value> {
        self.run(args, "").good_rows()
    }
}
