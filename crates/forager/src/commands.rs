//! What each command does. Every one reads its lines, asks core, and prints what it said.

mod classify;
mod completions;
mod config;
mod hierarchy;
mod man;
mod manifest;
mod rank;
mod reschedule;
mod scope;
mod score;
mod select;
mod url;

use crate::Outcome;
use crate::cli::Command;

/// Runs a command.
pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Score(args) => score::run(&args),
        Command::Rank(args) => rank::run(&args),
        Command::Select(args) => select::run(&args),
        Command::Classify(args) => classify::run(&args),
        Command::Reschedule(args) => reschedule::run(&args),
        Command::Manifest(args) => manifest::run(&args),
        Command::Hierarchy(args) => hierarchy::run(&args),
        Command::Scope(args) => scope::run(&args),
        Command::Url(args) => url::run(&args),
        Command::Config(command) => config::run(&command),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}
