//! Measures the queue in a database, against what the same server does at best.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use forager_core::time::Interval;
use forager_frontier::verbs::{LeaseRequest, Leased};
use forager_frontier::{Frontier, Postgres, PostgresOptions, PostgresSchema, Settings};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tokio::task::JoinSet;

use super::figures::{self, Calls, Figures, rounded};
use super::phases::{Bench, reports};
use super::workload::Workload;
use super::{references, same_rows, shapes};
use crate::Outcome;
use crate::cli::BenchFrontierArgs;
use crate::config::DatabaseUrl;
use crate::output::Output;
use crate::{progress, runtime};

/// URLs in one claim.
pub(super) const CLAIM: usize = 10;
/// The most claims that are measured one after another; small sizes take fewer.
pub(super) const MOST_CLAIMS: u64 = 300;
/// How far the clock of the benchmark goes on with each call: hosts wait for it, and not for us.
pub(super) const TICK: i64 = 50;

/// How far a goal is met.
#[derive(Serialize)]
struct Goal {
    #[serde(rename = "goal")]
    what: String,
    measured: f64,
    wanted: &'static str,
    met: bool,
}

pub(super) fn run(args: &BenchFrontierArgs, url: &DatabaseUrl) -> anyhow::Result<Outcome> {
    let scratch = Scratch::new(url);
    let listening = runtime::spawn(scratch.clone().drop_when_interrupted())?;
    let measured = measure(args, &scratch);
    if scratch.is_interrupted.load(Ordering::Relaxed) {
        // Ends the process, when nothing is left behind.
        runtime::wait(listening)??;
        return Ok(Outcome::Interrupted);
    }
    listening.abort();
    // Whatever came of it, nothing is left behind.
    let dropped = runtime::wait(scratch.drop_all())?;
    let (figures, settings, goals) = measured?;
    dropped?;
    let mut output = Output::new(args.format, figures::COLUMNS);
    figures.rows().iter().try_for_each(|figure| output.row(figure))?;
    output.flush()?;
    let mut output = Output::new(args.format, &["setting", "value"]);
    settings.iter().try_for_each(|setting| output.row(setting))?;
    output.flush()?;
    let mut output = Output::new(args.format, &["goal", "measured", "wanted", "met"]);
    goals.iter().try_for_each(|goal| output.row(goal))?;
    output.flush()?;
    Ok(Outcome::Complete)
}

/// The schemas of a run, which go when it ends.
#[derive(Clone)]
pub(super) struct Scratch {
    url: String,
    name: String,
    is_interrupted: Arc<AtomicBool>,
}

impl Scratch {
    fn new(url: &DatabaseUrl) -> Self {
        let name = format!("forager_bench_{}", std::process::id());
        let url = url.with_password();
        let sign = if url.contains('?') { '&' } else { '?' };
        Self { url: format!("{url}{sign}application_name={name}"), name, is_interrupted: Arc::default() }
    }

    /// How the database is used by so many at a time.
    fn options(connections: usize) -> PostgresOptions {
        PostgresOptions { connections, ..PostgresOptions::default() }
    }

    fn url_of(&self, part: &str) -> String {
        // The last one counts.
        format!("{}&schema={}", self.url, self.schema(part))
    }

    /// The schema of the store, or that of the references.
    pub(super) fn schema(&self, part: &str) -> String {
        format!("{}_{part}", self.name)
    }

    async fn store(&self, settings: Settings, connections: usize) -> anyhow::Result<Arc<Postgres>> {
        let (url, options) = (self.url_of("store"), Self::options(connections));
        Ok(Arc::new(Postgres::connect(&url, settings, options).await?))
    }

    /// A store in a schema of its own.
    pub(super) async fn another_store(&self, part: &str, connections: usize) -> anyhow::Result<Postgres> {
        self.migrate(part).await?;
        let options = Self::options(connections);
        Ok(Postgres::connect(&self.url_of(part), Settings::default(), options).await?)
    }

    async fn migrate(&self, part: &str) -> anyhow::Result<()> {
        let schema = PostgresSchema::connect(&self.url_of(part), Self::options(1))?;
        schema.migrate(schema.newest()).await?;
        Ok(())
    }

    /// A connection beside the store, in the schema of the references.
    pub(super) async fn connection(&self) -> anyhow::Result<tokio_postgres::Client> {
        let schema = PostgresSchema::connect(&self.url_of("reference"), Self::options(1))?;
        let client = schema.connection().await?;
        let name = schema.name();
        let enter = format!("CREATE SCHEMA IF NOT EXISTS {name}; SET search_path TO {name}, pg_catalog");
        client.batch_execute(&enter).await.context("cannot make a schema")?;
        Ok(client)
    }

    async fn drop_all(&self) -> anyhow::Result<()> {
        for part in ["store", "reference", "shape"] {
            self.drop_schema(part).await?;
        }
        Ok(())
    }

    pub(super) async fn drop_schema(&self, part: &str) -> anyhow::Result<()> {
        let name = self.schema(part);
        let client = PostgresSchema::connect(&self.url_of(part), Self::options(1))?.connection().await?;
        let drop = format!("DROP SCHEMA IF EXISTS {name} CASCADE");
        client.batch_execute(&drop).await.with_context(|| format!("cannot drop the schema {name}"))
    }

    /// Waits for Ctrl-C or SIGTERM, ends what the run is doing, and leaves nothing behind.
    async fn drop_when_interrupted(self) {
        let terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
        let Ok(mut terminate) = terminate else { return };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        self.is_interrupted.store(true, Ordering::Relaxed);
        progress::finish();
        if let Err(error) = self.end_and_drop().await {
            crate::output::complain(format_args!("{error:#}"));
        }
        std::process::exit(i32::from(Outcome::Interrupted.status()));
    }

    async fn end_and_drop(&self) -> anyhow::Result<()> {
        const END: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
            WHERE application_name = $1 AND pid <> pg_backend_pid()";
        let client = PostgresSchema::connect(&self.url_of("store"), Self::options(1))?.connection().await?;
        client.query(END, &[&self.name]).await?;
        drop(client);
        self.drop_all().await
    }
}

type Measured = (Figures, Vec<references::Setting>, Vec<Goal>);

fn measure(args: &BenchFrontierArgs, scratch: &Scratch) -> anyhow::Result<Measured> {
    let mut sizes = args.pending.clone();
    sizes.sort_unstable();
    let mut figures = Figures::default();
    let settings = runtime::wait(references::settings(scratch))??;
    let first = Workload::new(sizes.first().copied().unwrap_or_default(), args.hosts);
    progress::note("writing the floor: bare rows");
    let floor = runtime::wait(references::bare_insert(scratch, first))??;
    figures.floor("floor: INSERT ON CONFLICT of bare URLs, batches of 500", floor.per_second());
    runtime::wait(scratch.migrate("store"))??;
    let store = runtime::wait(scratch.store(Settings::default(), args.workers))??;
    let bench = Bench::new(store.clone(), true, first)?;
    let clock = Clock::new(bench.start);
    let (bench, filled) = fill(scratch, &*store, bench, &clock, &sizes, &mut figures)?;
    let (cycles, minimal) = side_by_side(args, scratch, &clock, &mut figures)?;
    progress::note("the acquisition query of a plan in one view");
    let viewed = runtime::wait(references::acquisition_query(scratch, first.urls))??;
    figures.rate(&format!("acquisition query on a view, {} pending", first.urls), &viewed);
    let bench = bench.from(clock.tick(60_000));
    bench.discover_known(&mut figures)?;
    bench.lease_and_complete(&mut figures)?;
    bench.mixed(&mut figures)?;
    let slowest = runtime::wait(shapes::measure(scratch, first.urls, &mut figures))??;
    let goals = vec![
        at_most("claim latency at the most pending, against the least", filled.growth(), 1.5, "at most 1.5"),
        at_most("claim latency at the slowest shape, against the first", slowest, 1.5, "at most 1.5"),
        at_least(
            "claim and complete, side by side, against the minimal queue",
            cycles.per_second() / minimal.per_second(),
            0.6,
            "at least 0.6",
        ),
        at_least(
            "claims at the least pending, against the acquisition query",
            filled.claims.first().map_or(0.0, Calls::per_second) / viewed.per_second(),
            100.0,
            "at least 100",
        ),
        at_least(
            "discover, batches of 500, against INSERT ON CONFLICT of the same rows",
            filled.discovered / filled.same_rows,
            0.5,
            "at least 0.5",
        ),
    ];
    Ok((figures, settings, goals))
}

/// What filling the store has told.
#[derive(Default)]
struct Filled {
    /// URLs a second, up to the first size.
    discovered: f64,
    /// The same rows a second, as bare ones.
    same_rows: f64,
    /// Claims at each size.
    claims: Vec<Calls>,
}

impl Filled {
    /// How many times as long claims take at the last size as at the first.
    fn growth(&self) -> f64 {
        let median = |calls: Option<&Calls>| calls.map_or(0.0, Calls::median);
        median(self.claims.last()) / median(self.claims.first()).max(1e-9)
    }
}

/// Fills the store to one size after another, and claims from it at each.
fn fill(
    scratch: &Scratch,
    store: &dyn Frontier,
    mut bench: Bench,
    clock: &Clock,
    sizes: &[u64],
    figures: &mut Figures,
) -> anyhow::Result<(Bench, Filled)> {
    let (mut filled, mut before) = (Filled::default(), 0);
    for &size in sizes {
        bench = bench.with_urls(size);
        let calls = bench.discover_from(before)?;
        figures.rate(&format!("discover new up to {size}, 500 a call"), &calls);
        if before == 0 {
            filled.discovered = calls.per_second();
            progress::note("writing the same rows by a bare statement");
            let same = runtime::wait(same_rows::insert(scratch))??;
            figures.rate("INSERT ON CONFLICT of the same rows, batches of 500", &same);
            filled.same_rows = same.per_second();
        }
        before = size;
        runtime::wait(references::analyze(scratch, "store"))??;
        let calls = runtime::wait(claim(store, clock, CLAIM, size))??;
        figures.rate(&format!("claim {CLAIM} of {size} pending"), &calls);
        filled.claims.push(calls);
    }
    figures.size("disk, tables and indexes", runtime::wait(references::size(scratch, "store"))??, before);
    let one = runtime::wait(claim(store, clock, 1, before))??;
    figures.rate(&format!("claim 1 of {before} pending"), &one);
    Ok((bench, filled))
}

/// Workers at the store, and as many at a minimal queue.
fn side_by_side(
    args: &BenchFrontierArgs,
    scratch: &Scratch,
    clock: &Clock,
    figures: &mut Figures,
) -> anyhow::Result<(Calls, Calls)> {
    let (count, length) = (args.workers, Duration::from_secs_f64(args.time.as_secs_f64()));
    progress::note("workers that claim and complete");
    let cycles = runtime::wait(workers(scratch, count, length, clock, true))??;
    figures.rate(&format!("{count} workers, claim {CLAIM} and complete"), &cycles);
    progress::note("workers that need not be polite");
    let impolite = runtime::wait(workers(scratch, count, length, clock, false))??;
    figures
        .rate(&format!("{count} workers, claim {CLAIM} of a host without pauses, and complete"), &impolite);
    progress::note("workers at a minimal queue");
    let minimal = runtime::wait(references::minimal_queue(scratch, count, length))??;
    figures.rate(&format!("minimal queue: {count} workers, claim {CLAIM} and complete"), &minimal);
    Ok((cycles, minimal))
}

fn at_most(what: &str, measured: f64, limit: f64, wanted: &'static str) -> Goal {
    Goal { what: what.to_owned(), measured: rounded(measured, 100.0), wanted, met: measured <= limit }
}

fn at_least(what: &str, measured: f64, limit: f64, wanted: &'static str) -> Goal {
    Goal { what: what.to_owned(), measured: rounded(measured, 100.0), wanted, met: measured >= limit }
}

/// The clock of the benchmark, which goes on with each call.
#[derive(Clone)]
pub(super) struct Clock {
    start: Timestamp,
    millis: Arc<AtomicI64>,
}

impl Clock {
    pub(super) fn new(start: Timestamp) -> Self {
        Self { start, millis: Arc::default() }
    }

    pub(super) fn tick(&self, millis: i64) -> Timestamp {
        let millis = self.millis.fetch_add(millis, Ordering::Relaxed) + millis;
        self.start + SignedDuration::from_millis(millis)
    }
}

/// Claims that give something; when hosts have to be waited for, the clock goes on.
async fn lease(
    store: &dyn Frontier,
    clock: &Clock,
    (max, per_host): (usize, usize),
    calls: &mut Calls,
) -> anyhow::Result<Vec<Leased>> {
    let request = LeaseRequest { max, per_host, hold: Interval::hours(10), ..LeaseRequest::default() };
    let now = clock.tick(TICK);
    let started = Instant::now();
    let answer = store.lease(&request, now).await?;
    let time = started.elapsed();
    if answer.leased.len() < max {
        clock.tick(5000);
    }
    if !answer.leased.is_empty() {
        calls.add(time, answer.leased.len());
    }
    Ok(answer.leased)
}

/// Claims one after another; what was claimed is reported in between, which does not count.
async fn claim(store: &dyn Frontier, clock: &Clock, max: usize, pending: u64) -> anyhow::Result<Calls> {
    let mut calls = Calls::default();
    for _ in 0..MOST_CLAIMS.min(pending / 100 + 1) {
        let leased = lease(store, clock, (max, 1), &mut calls).await?;
        store.complete(&reports(&leased), clock.tick(TICK)).await?;
    }
    Ok(calls)
}

/// Hosts that may be asked as often as one likes.
fn impolite() -> Settings {
    let mut settings = Settings::default();
    settings.politeness.delay = Interval::from_secs_f64(0.0);
    settings.politeness.max_delay = Interval::from_secs_f64(0.0);
    settings.politeness.in_flight = 10_000;
    settings
}

/// Workers with connections of their own, as processes would have.
async fn workers(
    scratch: &Scratch,
    count: usize,
    length: Duration,
    clock: &Clock,
    are_polite: bool,
) -> anyhow::Result<Calls> {
    let mut stores = Vec::new();
    let (settings, per_host) = if are_polite { (Settings::default(), 1) } else { (impolite(), CLAIM) };
    for _ in 0..count {
        stores.push(scratch.store(settings.clone(), 2).await?);
    }
    let (mut workers, started) = (JoinSet::new(), Instant::now());
    for store in stores {
        let clock = clock.clone();
        workers.spawn(async move {
            let (mut calls, mut ignored) = (Calls::default(), Calls::default());
            while started.elapsed() < length {
                let cycle = Instant::now();
                let leased = lease(&*store, &clock, (CLAIM, per_host), &mut ignored).await?;
                store.complete(&reports(&leased), clock.tick(TICK)).await?;
                calls.add(cycle.elapsed(), leased.len());
            }
            anyhow::Ok(calls)
        });
    }
    let done = workers.join_all().await.into_iter().collect::<anyhow::Result<Vec<Calls>>>()?;
    Ok(Calls::side_by_side(done, started.elapsed()))
}
