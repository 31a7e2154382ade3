//! `forager backup`, `forager check`

use crate::Outcome;
use crate::cli::{BackupArgs, CheckArgs};
use crate::output::Output;
use crate::store::{self, Missing, Upkeep as _};

pub(super) fn backup(args: &BackupArgs) -> anyhow::Result<Outcome> {
    store::with(&args.store, Missing::Refuse, |store| Ok(store.frontier.backup(&args.target)?))?;
    Ok(Outcome::Complete)
}

pub(super) fn check(args: &CheckArgs) -> anyhow::Result<Outcome> {
    let findings = store::with(&args.store, Missing::Refuse, |store| Ok(store.frontier.check()?))?;
    let mut output = Output::new(args.store.format(), &["problem"]);
    findings.iter().try_for_each(|finding| output.row(finding))?;
    output.flush()?;
    Ok(if findings.is_empty() { Outcome::Complete } else { Outcome::SomeBad })
}
