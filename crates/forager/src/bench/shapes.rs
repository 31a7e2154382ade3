//! What a claim costs, whatever the queue in the database looks like.

use std::time::Instant;

use forager_core::time::Interval;
use forager_frontier::catalog::{Change, CollectionSpec, Kind};
use forager_frontier::verbs::{Item, LeaseRequest, Put, Word};
use forager_frontier::{Frontier, Moment, Postgres};
use jiff::Timestamp;

use super::figures::{Calls, Figures};
use super::postgres::{Clock, MOST_CLAIMS, Scratch, TICK};
use super::references;
use super::workload::mix;
use crate::progress;

const COLLECTION: &str = "shapes";
/// URLs in one call that puts them there.
const BATCH: u64 = 500;
/// What is not due is due after this time.
const LATER: u64 = 86_400_000;

/// What a queue may look like.
struct Shape {
    name: String,
    pending: u64,
    hosts: u64,
    /// How many of a thousand are due.
    due: u64,
    /// How many were claimed and put back before.
    churn: u64,
}

/// The shapes of queues with so many URLs. The first is what the others are measured by.
fn shapes(pending: u64) -> Vec<Shape> {
    let hosts = (pending / 40).max(1);
    let usual = || Shape { name: format!("{pending} at {hosts} hosts"), pending, hosts, due: 1000, churn: 0 };
    let (many, churn) = (pending * 5 / 2, pending * 5 / 4);
    vec![
        usual(),
        Shape { name: format!("{pending} at one host"), hosts: 1, ..usual() },
        Shape { name: format!("{many} at as many hosts"), pending: many, hosts: many, ..usual() },
        Shape { name: format!("{pending}, of which 1 % is due"), due: 10, ..usual() },
        Shape { name: format!("{pending}, after {churn} claims"), churn, ..usual() },
    ]
}

/// Measures claims of single URLs at each shape of so many. Says how many times as long the slowest takes as the first.
pub(super) async fn measure(scratch: &Scratch, pending: u64, figures: &mut Figures) -> anyhow::Result<f64> {
    let mut medians = Vec::new();
    for shape in shapes(pending) {
        progress::note(&format!("claims from {}", shape.name));
        let calls = shape.measure(scratch).await?;
        figures.rate(&format!("claim 1 of {}", shape.name), &calls);
        medians.push(calls.median());
    }
    let slowest = medians.iter().copied().fold(0.0, f64::max);
    Ok(slowest / medians.first().copied().unwrap_or_default().max(1e-9))
}

impl Shape {
    async fn measure(&self, scratch: &Scratch) -> anyhow::Result<Calls> {
        let store = scratch.another_store("shape", 1).await?;
        let clock = Clock::new(Timestamp::from_second(1_800_000_000)?);
        self.fill(&store, &clock).await?;
        references::analyze(scratch, "shape").await?;
        for _ in 0..self.churn / 10 {
            claim_and_put_back(&store, &clock, 10).await?;
        }
        let mut calls = Calls::default();
        for _ in 0..MOST_CLAIMS.min(self.pending / 100 + 1) {
            let (took, count) = claim_and_put_back(&store, &clock, 1).await?;
            calls.add(took, count);
        }
        scratch.drop_schema("shape").await?;
        Ok(calls)
    }

    async fn fill(&self, store: &Postgres, clock: &Clock) -> anyhow::Result<()> {
        let now = clock.tick(0);
        let added = Change::AddCollection(CollectionSpec::new(COLLECTION, Kind::Plain));
        // What was claimed and put back may be claimed again at once.
        let at_once = Change::SetPlainDelay(Interval::default());
        store.configure(&[added, at_once], now).await?;
        for from in (0..self.pending).step_by(usize::try_from(BATCH)?) {
            let items =
                (from..(from + BATCH).min(self.pending)).map(|number| self.item(number, Moment::of(now)));
            let put = Put { collection: COLLECTION.to_owned(), items: items.collect() };
            store.put(&[put], now).await?;
        }
        Ok(())
    }

    fn item(&self, number: u64, now: Moment) -> Item {
        let is_due = mix(number) % 1000 < self.due;
        let url = format!("https://www.site-{:06}.example/article-{number:010}.html", number % self.hosts);
        Item { url, word: Word::Due(if is_due { now } else { now.after_millis(LATER) }), ..Item::default() }
    }
}

/// A claim, and how long it took; what was claimed is due again at once, so that the queue stays as it is.
async fn claim_and_put_back(
    store: &Postgres,
    clock: &Clock,
    max: usize,
) -> anyhow::Result<(std::time::Duration, usize)> {
    let hold = Interval::hours(10);
    let request = LeaseRequest { max, per_host: max, hold, ..LeaseRequest::default() };
    let now = clock.tick(TICK);
    let started = Instant::now();
    let leased = store.lease(&request, now).await?.leased;
    let took = started.elapsed();
    anyhow::ensure!(!leased.is_empty(), "a claim found nothing, though something is due");
    let now = clock.tick(TICK);
    let count = leased.len();
    let back = leased.into_iter().map(|leased| Item {
        url: leased.url,
        key: Some(leased.host),
        word: Word::Due(Moment::of(now)),
        ..Item::default()
    });
    store.put(&[Put { collection: COLLECTION.to_owned(), items: back.collect() }], now).await?;
    Ok((took, count))
}
