//! Forager on the command line: JSON Lines in, decisions with their reasons out, and a queue that remembers.

mod batch;
mod bench;
mod cli;
mod commands;
mod config;
mod flat;
mod input;
mod names;
mod output;
mod pause;
mod progress;
mod record;
mod store;
mod words;

use std::io;
use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::Cli;

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
}

fn main() -> ExitCode {
    let ended = commands::run(Cli::parse().command);
    progress::finish();
    match ended {
        Ok(Outcome::Complete) => ExitCode::SUCCESS,
        Ok(Outcome::SomeBad) => ExitCode::from(1),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(format_args!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Whoever reads our output has seen enough: `forager rank … | head` is no error.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    })
}
