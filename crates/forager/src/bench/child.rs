//! The parts that run in a process of their own.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, bail};

use super::workload::Workload;
use crate::Outcome;
use crate::cli::BenchPart;
use crate::output::{Format, Output};

/// What the raw engine writes at once.
const BATCH: usize = 500;

/// Runs a part in this process, which was started for it.
pub(crate) fn run_part(part: BenchPart, folder: &Path, workload: Workload) -> anyhow::Result<Outcome> {
    match part {
        BenchPart::Floor => say(&floor(folder, workload)?.to_string())?,
        BenchPart::Hold => {
            let store = Arc::new(super::open(&folder.join("store"))?);
            let bench = super::phases::Bench::new(store, false, workload)?;
            bench.touch()?;
            say("open")?;
            // Until the parent kills us.
            std::thread::sleep(std::time::Duration::from_mins(10));
        }
    }
    Ok(Outcome::Complete)
}

/// Tells the parent something.
fn say(line: &str) -> anyhow::Result<()> {
    let mut output = Output::new(Format::Jsonl, &[]);
    output.text(line)?;
    output.flush()
}

/// URLs a second that the raw engine writes as bare keys, without looking anything up.
fn floor(folder: &Path, workload: Workload) -> anyhow::Result<f64> {
    let path = folder.join("floor");
    let database = fjall::Database::builder(&path).open().context("cannot open the floor")?;
    let keys = database.keyspace("urls", fjall::KeyspaceCreateOptions::default)?;
    let mut written = 0;
    let mut busy = std::time::Duration::ZERO;
    for found in workload.batches_from(0, BATCH) {
        let urls: Vec<String> = found.into_iter().map(|index| workload.url(index)).collect();
        written += urls.len();
        let started = Instant::now();
        let mut batch = database.batch();
        for url in urls {
            batch.insert(&keys, url.as_bytes(), []);
        }
        batch.commit()?;
        busy += started.elapsed();
    }
    drop((keys, database));
    std::fs::remove_dir_all(&path)?;
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    Ok(written as f64 / busy.as_secs_f64())
}

/// Starts a part, and returns what it printed.
pub(crate) fn ask(part: BenchPart, folder: &Path, workload: Workload) -> anyhow::Result<String> {
    let output = command(part, folder, workload)?.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("a part of the benchmark failed");
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Has another process open the store and write to it, and kills that process.
pub(crate) fn open_and_kill(folder: &Path, workload: Workload) -> anyhow::Result<()> {
    let mut child = command(BenchPart::Hold, folder, workload)?.stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().context("the child has no output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    child.kill()?;
    child.wait()?;
    if line.trim() != "open" {
        bail!("the process that was to be killed failed before");
    }
    Ok(())
}

fn command(part: BenchPart, folder: &Path, workload: Workload) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "frontier", "--part", part.as_str(), "--dir"]).arg(folder);
    command.args(["--urls", &workload.urls.to_string(), "--hosts", &workload.hosts.to_string()]);
    Ok(command)
}
