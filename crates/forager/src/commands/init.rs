//! `forager init`

use std::fs::OpenOptions;
use std::io::{self, Write as _};

use anyhow::{Context as _, bail};

use crate::Outcome;
use crate::cli::InitArgs;

const TEMPLATE: &str = include_str!("init.toml");

pub(super) fn run(args: &InitArgs) -> anyhow::Result<Outcome> {
    let path = args.file.display();
    let mut options = OpenOptions::new();
    options.write(true);
    if args.force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let mut file = match options.open(&args.file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            bail!("{path} is there already; take another name, or overwrite it with --force")
        }
        other => other.with_context(|| format!("cannot write {path}"))?,
    };
    file.write_all(TEMPLATE.as_bytes()).with_context(|| format!("cannot write {path}"))?;
    writeln!(io::stdout(), "{path}: written; change it, then run \"forager apply --config {path}\"")?;
    Ok(Outcome::Complete)
}
