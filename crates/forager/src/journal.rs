//! What is told on standard error while a command works: lines for people, or a line of JSON for each thing that happened.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use forager_crawl::{NotFetched, PageLine, Stop};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use crate::crawling::counts::is_failed;
use crate::output::{harmless, sheet};
use crate::progress;

/// How what is told on standard error is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// A line that changes on a terminal, plain lines elsewhere
    #[default]
    Text,
    /// A line of JSON for each thing that happens
    Json,
}

/// How much something matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Level {
    /// As it should be.
    Info,
    /// Something is wrong, and the work goes on.
    Warn,
    /// The command fails.
    Error,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Event {
    /// Whatever has no name of its own.
    Message,
    /// A crawl begins.
    Started,
    /// How far it is.
    Progress,
    /// A page had its turn.
    Page,
    /// A page had its turn, and was not had.
    Error,
    /// A page has changed.
    Change,
    /// The command for changes has printed a line.
    Command,
    /// The configuration is read again.
    Reload,
    /// It was asked to stop, and finishes what is under way.
    Draining,
    /// It was asked to stop at once.
    Stopping,
    /// What came of it all, where standard output has something else.
    Summary,
    /// The command is over.
    Ended,
}

#[derive(Serialize)]
struct Line<'a, F> {
    ts: Timestamp,
    level: Level,
    event: Event,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(flatten)]
    fields: &'a F,
}

static IS_JSON: AtomicBool = AtomicBool::new(false);
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// From now on, what is told is written so.
pub(crate) fn write_as(format: LogFormat) {
    IS_JSON.store(format == LogFormat::Json, Ordering::Relaxed);
}

/// Whether programs are to read it.
pub(crate) fn is_json() -> bool {
    IS_JSON.load(Ordering::Relaxed)
}

/// From now on, only what is wrong is told.
pub(crate) fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Whether only what is wrong is told.
pub(crate) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Tells what happened: to people the message, if there is one; to programs the rest of it too.
pub(crate) fn tell(level: Level, event: Event, message: &str, fields: &impl Serialize) {
    if level == Level::Info && is_quiet() {
        return;
    }
    if is_json() {
        return write_json(&Line { ts: Timestamp::now(), level, event, message: &harmless(message), fields });
    }
    let lines = message.lines().map(|line| format!("forager: {}\n", harmless(line)));
    write(&lines.collect::<Vec<_>>().concat());
}

fn write_json(line: &impl Serialize) {
    // All that is told here can be written as JSON: plain values with names.
    write(&(serde_json::to_string(line).unwrap_or_default() + "\n"));
}

fn write(lines: &str) {
    // If even that is closed, nobody is left to tell.
    progress::aside(|| drop(io::stderr().write_all(lines.as_bytes())));
}

/// Tells what came of it all: as a thing that happened where all is JSON, or else as a line of JSON if that is wanted, or line
/// by line for people.
pub(crate) fn summary(thing: &impl Serialize, as_json: bool) -> anyhow::Result<()> {
    match (is_json(), as_json) {
        (true, _) => tell(Level::Info, Event::Summary, "", thing),
        (false, false) => tell(Level::Info, Event::Summary, &sheet(thing)?.join("\n"), &json!({})),
        (false, true) if is_quiet() => {}
        (false, true) => write_json(thing),
    }
    Ok(())
}

/// Tells that a stop was asked for.
pub(crate) fn stop_asked(stop: Stop) {
    match stop {
        Stop::No => {}
        Stop::Drain => tell(
            Level::Info,
            Event::Draining,
            "finishing what is under way; whoever asks once more stops it at once",
            &json!({}),
        ),
        Stop::Now => tell(Level::Info, Event::Stopping, "stopping at once", &json!({})),
    }
}

/// Tells programs what became of a page; people have a line for all of them together.
pub(crate) fn page(page: &PageLine) {
    if !is_json() {
        return;
    }
    let is_wrong = is_failed(page) && page.not_fetched != Some(NotFetched::Robots);
    let (level, event) = if is_wrong { (Level::Warn, Event::Error) } else { (Level::Info, Event::Page) };
    let PageLine { url, collection, status, not_fetched, error, redirect, .. } = page;
    let (bytes, took, outcome, due) = (page.wire_bytes, page.took, page.outcome, page.due);
    let fields = json!({
        "url": url, "collection": collection, "status": status, "notFetched": not_fetched, "error": error,
        "redirect": redirect, "bytes": bytes, "took": took, "changed": page.changed, "outcome": outcome, "due": due,
    });
    tell(level, event, "", &fields);
    if page.changed {
        let lines =
            page.difference.as_ref().map(|difference| (difference.added.len(), difference.removed.len()));
        let (added, removed) = lines.unwrap_or_default();
        let fields = json!({"url": url, "collection": collection, "added": added, "removed": removed});
        tell(Level::Info, Event::Change, "", &fields);
    }
}
