//! Measures the queue on this machine, against the raw engine writing the same URLs as bare keys; or in a database, against what
//! that does at best. A server is measured from outside, against one that only acknowledges.
//!
//! What holds memory of its own, the floor and the kill, runs in a child process, so that the peak
//! of this one is that of the store.

mod child;
mod figures;
mod phases;
mod postgres;
mod references;
mod same_rows;
mod shapes;
mod urlfrontier;
mod workload;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, bail};
use forager_frontier::{Embedded, Settings};

use crate::Outcome;
use crate::cli::{BenchFrontierArgs, BenchPart};
use crate::output::Output;
use crate::progress;
use figures::{Figures, folder_bytes, peak_memory};
use phases::Bench;
pub(crate) use urlfrontier::run as urlfrontier;
use workload::Workload;

/// How much room a run needs for each URL: the store, and the floor beside it.
const BYTES_PER_URL: u64 = 400;

/// The floor is measured on so many URLs at most: more only make it wait for the disk.
const MOST_OF_FLOOR: u64 = 10_000_000;

/// Runs the benchmark, or one part of it that a child process has been started for.
pub(crate) fn run(args: &BenchFrontierArgs) -> anyhow::Result<Outcome> {
    let workload = Workload::new(args.urls, args.hosts);
    if let Some(part) = args.part {
        let folder = args.dir.as_deref().context("a part needs the folder of its run")?;
        return child::run_part(part, folder, workload);
    }
    if let Some(url) = &args.store {
        return postgres::run(args, url);
    }
    let folder = RunFolder::make(args)?;
    let figures = measure(folder.path(), workload)?;
    let mut output = Output::new(args.format, figures::COLUMNS);
    for figure in figures.rows() {
        output.row(figure)?;
    }
    output.flush()?;
    Ok(Outcome::Complete)
}

fn measure(folder: &Path, workload: Workload) -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    progress::note("writing the floor: bare keys");
    let sample = Workload::new(workload.urls.min(MOST_OF_FLOOR), workload.hosts);
    let floor: f64 = child::ask(BenchPart::Floor, folder, sample)?.trim().parse()?;
    figures.floor("floor: bare keys, batches of 500", floor);
    let store = folder.join("store");
    let opened = Arc::new(open(&store)?);
    let bench = Bench::new(opened.clone(), false, workload)?;
    bench.discover_new(&mut figures)?;
    bench.discover_known(&mut figures)?;
    bench.lease_and_complete(&mut figures)?;
    bench.mixed(&mut figures)?;
    figures.size("peak memory", peak_memory()?, workload.urls);
    drop(bench);
    let (closing, opening) = reopen(opened, &store)?;
    figures.seconds("clean stop", closing);
    figures.seconds("reopen after a clean stop", opening);
    figures.size("disk, all files", folder_bytes(&store)?, workload.urls);
    progress::note("killing a process that has the store open");
    child::open_and_kill(folder, workload)?;
    let started = Instant::now();
    drop(open(&store)?);
    figures.seconds("reopen after a kill", started.elapsed().as_secs_f64());
    phases::few_ready_hosts(folder, workload.hosts, &mut figures)?;
    Ok(figures)
}

/// Closes the store and opens it again; tells how long both took.
fn reopen(opened: Arc<Embedded>, store: &Path) -> anyhow::Result<(f64, f64)> {
    let started = Instant::now();
    Arc::into_inner(opened).context("the store is still in use")?.close()?;
    let closing = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let again = open(store)?;
    let opening = started.elapsed().as_secs_f64();
    again.close()?;
    Ok((closing, opening))
}

fn open(store: &Path) -> anyhow::Result<Embedded> {
    Ok(Embedded::open(store, Settings::default(), forager_frontier::store::Options::default())?)
}

/// The folder of a run, which goes when the run ends.
struct RunFolder {
    path: PathBuf,
    keep: bool,
}

impl RunFolder {
    fn make(args: &BenchFrontierArgs) -> anyhow::Result<Self> {
        let parent = args.dir.clone().unwrap_or_else(std::env::temp_dir);
        let path = parent.join(format!("forager-bench-{}", std::process::id()));
        if path.exists() {
            bail!("{} is there already; remove it first", path.display());
        }
        std::fs::create_dir_all(&path)
            .with_context(|| format!("cannot make the folder {}", path.display()))?;
        let needed = args.urls.saturating_mul(BYTES_PER_URL) >> 20;
        progress::note(&format!("needs about {needed} MiB in {}", path.display()));
        Ok(Self { path, keep: args.keep })
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if !self.keep {
            // What cannot be removed is left for its owner to see.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
