//! `forager config`

use std::io::{self, Write as _};

use crate::Outcome;
use crate::cli::ConfigCommand;
use crate::config::Loaded;
use crate::output;
use crate::words::counted;

/// Values longer than this push their origin to the right.
const WIDEST: usize = 40;

pub(super) fn run(command: &ConfigCommand) -> anyhow::Result<Outcome> {
    match command {
        ConfigCommand::Check { config } => check(&Loaded::read(config)?),
        ConfigCommand::Show { config } => show(&Loaded::read(config)?),
    }
}

fn check(loaded: &Loaded) -> anyhow::Result<Outcome> {
    for warning in loaded.config.scopes()?.dangling() {
        output::complain(format_args!("warning: {warning}"));
    }
    let config = &loaded.config;
    let collections = counted(config.collections.len() as u64, "collection", "collections");
    let profiles = counted(config.profiles.len() as u64, "profile", "profiles");
    let seeds = counted(config.seeds.len() as u64, "seed", "seeds");
    writeln!(io::stdout(), "{}: {collections}, {profiles}, {seeds}", loaded.name())?;
    Ok(Outcome::Complete)
}

fn show(loaded: &Loaded) -> anyhow::Result<Outcome> {
    let values = loaded.values()?;
    let width = values.iter().map(|value| value.assignment.chars().count()).max().unwrap_or_default();
    let width = width.min(WIDEST);
    let mut out = io::stdout().lock();
    for value in values {
        writeln!(out, "{:width$}    # {}", value.assignment, value.origin)?;
    }
    Ok(Outcome::Complete)
}
