//! `forager completions`

use std::io::{self, Write as _};

use clap::CommandFactory as _;

use crate::Outcome;
use crate::cli::{Cli, CompletionsArgs};

pub(super) fn run(args: &CompletionsArgs) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "forager", &mut script);
    io::stdout().write_all(&script)?;
    Ok(Outcome::Complete)
}
