//! Forager on the command line: JSON Lines in, decisions with their reasons out, and a queue that remembers.

mod batch;
mod bench;
mod cli;
mod commands;
mod config;
mod crawling;
mod demo;
mod flat;
mod input;
mod journal;
mod names;
mod output;
mod pause;
mod progress;
mod record;
mod runtime;
mod store;
mod words;

use std::io;
use std::process::ExitCode;

use clap::Parser as _;
use serde_json::json;

use crate::cli::Cli;
use crate::journal::{Event, Level};

/// Links, records and answers are many and small, and of mixed ages: the allocator of the system takes a
/// fifth of the time of a lease.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How a run ended, where it did not fail as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Every line was good.
    Complete,
    /// Some lines were bad; each was reported, and the others were processed.
    SomeBad,
    /// Every page to start from failed.
    Failed,
    /// It was asked to stop, and did when what was under way was finished.
    Interrupted,
    /// It was asked to stop at once, and did.
    Forced,
    /// So many bytes as allowed were read.
    SizeLimit,
    /// As long as allowed was worked.
    TimeLimit,
}

impl Outcome {
    /// The exit status, as other crawlers have it.
    fn status(self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::SomeBad => 1,
            Self::Failed => 9,
            Self::Interrupted => 11,
            Self::Forced => 13,
            Self::SizeLimit => 14,
            Self::TimeLimit => 15,
        }
    }
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let is_lasting = command.is_lasting();
    if command.is_quiet() {
        journal::be_quiet();
    }
    journal::write_as(command.log_format());
    let ended = commands::run(command);
    progress::finish();
    match ended {
        Ok(outcome) => end(outcome.status(), Level::Info, ""),
        Err(error) if is_closed_pipe(&error) => end(0, Level::Info, ""),
        Err(error) => {
            let status = if is_lasting { status_of_failure(&error) } else { 2 };
            end(status, Level::Error, &format!("{error:#}"))
        }
    }
}

/// Tells that the command is over, and what went wrong.
fn end(status: u8, level: Level, message: &str) -> ExitCode {
    journal::tell(level, Event::Ended, message, &json!({"status": status}));
    ExitCode::from(status)
}

/// Whether to try again: 3 if the disk is full, 8 if the queue cannot be had, 4 if what was asked for is wrong.
/// Other crawlers tell these apart, and so do the scripts that start them.
fn status_of_failure(error: &anyhow::Error) -> u8 {
    use forager_frontier::Error;
    let of_crawl = |cause: &'_ (dyn std::error::Error + 'static)| match cause.downcast_ref() {
        Some(forager_crawl::Error::Queue(error)) => Some(error.is_about_input()),
        _ => cause.downcast_ref::<Error>().map(Error::is_about_input),
    };
    let of_queue = error.chain().find_map(of_crawl);
    let is_full = error.chain().any(|cause| cause.to_string().contains("No space left on device"));
    match of_queue {
        _ if is_full => 3,
        _ if store::is_locked(error) => 8,
        Some(false) => 8,
        Some(true) | None => 4,
    }
}

/// Whoever reads our output has seen enough: `forager rank … | head` is no error.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    })
}
