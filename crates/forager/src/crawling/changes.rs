//! Changes that a crawl finds: written down, printed, or handed to a command.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;

use forager_crawl::PageLine;
use forager_frontier::verbs::Difference;
use jiff::Timestamp;
use serde::Serialize;

use super::view::open;
use crate::output;
use crate::progress;

/// How changes are shown.
pub(crate) enum Shown {
    /// As lines of JSON.
    Json(Box<dyn Write + Send>),
    /// For people.
    Text,
    /// Not at all.
    Nowhere,
}

/// A change, as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Change<'a> {
    at: Timestamp,
    url: &'a str,
    collection: &'a str,
    title: Option<&'a str>,
    fingerprint: Option<&'a str>,
    /// Where it redirects to now, and where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect_before: Option<&'a str>,
    #[serde(flatten)]
    difference: Option<&'a Difference>,
}

/// How many changes wait for the command before the crawl waits for it too.
const MOST_WAITING: usize = 1000;

/// Where changes go.
pub(crate) struct Changes {
    shown: Shown,
    hook: Option<Hook>,
}

/// A command that is run for each change, one after another.
struct Hook {
    lines: mpsc::SyncSender<Vec<u8>>,
    runner: JoinHandle<()>,
}

impl Changes {
    pub(crate) fn new(shown: Shown, command: Option<&str>) -> Self {
        Self { shown, hook: command.map(Hook::new) }
    }

    /// Changes as lines of a file, and for a command.
    pub(crate) fn to_file(file: Option<&Path>, command: Option<&str>) -> anyhow::Result<Option<Self>> {
        if file.is_none() && command.is_none() {
            return Ok(None);
        }
        let shown = file.map(open).transpose()?.map_or(Shown::Nowhere, Shown::Json);
        Ok(Some(Self::new(shown, command)))
    }

    /// Tells of a change.
    pub(crate) fn tell(&mut self, page: &PageLine) -> io::Result<()> {
        let change = Change {
            at: page.at,
            url: &page.url,
            collection: &page.collection,
            title: page.title.as_deref(),
            fingerprint: page.fingerprint.as_deref(),
            redirect: page.redirect.as_deref(),
            redirect_before: page.redirect_before.as_deref(),
            difference: page.difference.as_ref(),
        };
        let mut line = serde_json::to_vec(&change)?;
        line.push(b'\n');
        if let Some(hook) = &self.hook {
            // A runner that is gone has said why.
            let _ = hook.lines.send(line.clone());
        }
        match &mut self.shown {
            Shown::Json(file) => {
                file.write_all(&line)?;
                file.flush()
            }
            Shown::Text => print(page),
            Shown::Nowhere => Ok(()),
        }
    }

    /// Waits for the command to have seen every change.
    pub(crate) fn finish(self) {
        if let Some(Hook { lines, runner }) = self.hook {
            drop(lines);
            // What went wrong there was told there.
            let _ = runner.join();
        }
    }
}

fn print(page: &PageLine) -> io::Result<()> {
    let mut lines = vec![format!("{} {}", page.at.strftime("%Y-%m-%d %H:%M:%S UTC"), page.url)];
    if let Some(Difference { added, removed }) = &page.difference {
        lines.extend(removed.iter().map(|line| format!("  - {}", output::harmless(line))));
        lines.extend(added.iter().map(|line| format!("  + {}", output::harmless(line))));
    }
    let mut written = Ok(());
    progress::aside(|| written = writeln!(io::stdout(), "{}", lines.join("\n")));
    written
}

impl Hook {
    fn new(command: &str) -> Self {
        let (lines, waiting) = mpsc::sync_channel::<Vec<u8>>(MOST_WAITING);
        let command = command.to_owned();
        let runner = std::thread::spawn(move || {
            for line in waiting {
                if let Err(cause) = run(&command, &line) {
                    output::complain(format_args!("{command:?} could not be run: {cause}"));
                }
            }
        });
        Self { lines, runner }
    }
}

fn run(command: &str, line: &[u8]) -> io::Result<()> {
    let mut child = Command::new("sh").args(["-c", command]).stdin(Stdio::piped()).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read what it is told has closed its end: that is its own business.
        let _ = input.write_all(line);
    }
    let status = child.wait()?;
    if !status.success() {
        output::complain(format_args!("{command:?} ended with {status}"));
    }
    Ok(())
}
