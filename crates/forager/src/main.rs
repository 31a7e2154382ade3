//! Forager on the command line: JSON Lines in, decisions with their reasons out, and a queue that remembers.

mod batch;
mod bench;
mod cli;
mod commands;
mod config;
mod crawling;
mod demo;
mod exit;
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

use std::process::ExitCode;

use clap::Parser as _;
use serde_json::json;

use crate::cli::Cli;
use crate::exit::{Outcome, is_closed_pipe, status_of_failure};
use crate::journal::{Event, Level};

/// Links, records and answers are many and small, and of mixed ages: the allocator of the system takes a
/// fifth of the time of a lease.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let has_statuses = command.has_statuses();
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
            // That a queue cannot be had passes, whatever was asked of it.
            let is_told = has_statuses || store::is_locked(&error) || store::is_away(&error);
            let status = if is_told { status_of_failure(&error) } else { 2 };
            end(status, Level::Error, &format!("{error:#}"))
        }
    }
}

/// Tells that the command is over, and what went wrong.
fn end(status: u8, level: Level, message: &str) -> ExitCode {
    journal::tell(level, Event::Ended, message, &json!({"status": status}));
    ExitCode::from(status)
}
