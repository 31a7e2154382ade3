//! `forager man`

use std::fs;
use std::io::{self, Write as _};

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::Outcome;
use crate::cli::{Cli, ManArgs};

pub(super) fn run(args: &ManArgs) -> anyhow::Result<Outcome> {
    let command = Cli::command();
    if let Some(dir) = &args.dir {
        let failed = || format!("cannot write the manual to {}", dir.display());
        fs::create_dir_all(dir).with_context(failed)?;
        clap_mangen::generate_to(command, dir).with_context(failed)?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        io::stdout().write_all(&page)?;
    }
    Ok(Outcome::Complete)
}
