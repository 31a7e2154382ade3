//! `forager backup`, `forager check`

use anyhow::bail;
use serde::Serialize;

use crate::Outcome;
use crate::cli::{BackupArgs, CheckArgs};
use crate::output::Output;
use crate::store::{self, Missing, Queue};
use crate::words::counted;

pub(super) fn backup(args: &BackupArgs) -> anyhow::Result<Outcome> {
    store::with(&args.store, Missing::Refuse, |store| match &store.queue {
        Queue::Folder(folder) => Ok(folder.backup(&args.target)?),
        Queue::Database(_) => bail!(
            "a database is copied by its own means, such as \"pg_dump --schema NAME\"; \"forager export\" writes what a \
             folder or another database can take in"
        ),
    })?;
    Ok(Outcome::Complete)
}

pub(super) fn check(args: &CheckArgs) -> anyhow::Result<Outcome> {
    let checked = store::with(&args.store, Missing::Refuse, |store| match &store.queue {
        Queue::Folder(folder) => Ok(folder.audit()?),
        Queue::Database(database) => store::ask(database.check()),
    })?;
    let mut output = Output::new(args.store.format(), &["place", "problem"]);
    checked.findings.iter().try_for_each(|finding| output.row(finding))?;
    output.flush()?;
    let looked_at = LookedAt {
        entries: checked.entries,
        queues: checked.queues,
        hosts: checked.hosts,
        leases: checked.leases,
        findings: checked.findings.len(),
    };
    if output.is_for_people() {
        output.text(&looked_at.in_words())?;
    } else {
        output.row(&looked_at)?;
    }
    output.flush()?;
    Ok(if checked.findings.is_empty() { Outcome::Complete } else { Outcome::SomeBad })
}

/// What a check was about, and how many things it found wrong.
#[derive(Serialize)]
struct LookedAt {
    entries: u64,
    queues: u64,
    hosts: u64,
    leases: u64,
    findings: usize,
}

impl LookedAt {
    fn in_words(&self) -> String {
        let entries = counted(self.entries, "entry", "entries");
        let queues = counted(self.queues, "queue", "queues");
        let hosts = counted(self.hosts, "host", "hosts");
        let leases = counted(self.leases, "lease", "leases");
        let looked_at = format!("{entries}, {queues}, {hosts} and {leases}");
        if self.findings == 0 {
            return format!("nothing is wrong with {looked_at}");
        }
        let findings = counted(self.findings as u64, "thing is", "things are");
        format!("{findings} wrong with {looked_at}; restore a backup, or export and import")
    }
}
