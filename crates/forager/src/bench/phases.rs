//! What is measured of the store, one after another.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forager_core::scope::extent::Kind as ScopeKind;
use forager_core::scope::{Profile, Seed};
use forager_core::time::Interval;
use forager_frontier::catalog::{Change, CollectionSpec, Kind};
use forager_frontier::verbs::{LeaseRequest, Leased, Link, Page, Report, Target};
use forager_frontier::{Embedded, Frontier};
use jiff::{SignedDuration, Timestamp};

use super::figures::{Calls, Figures};
use super::workload::{Workload, mix};
use crate::progress;
use crate::store::{ask, block_on};

const COLLECTION: &str = "bench";
const SEED: &str = "https://seed.example/";
/// Links in one call of discover.
const BATCH: usize = 500;
/// Links of one page.
const PAGE: usize = 50;
/// Entries in one call of lease or complete.
const LEASE: usize = 100;
/// The most calls of one kind; small workloads take fewer.
const MOST_CALLS: usize = 4000;
/// How far the clock of the benchmark goes on with each call: hosts wait for it, and not for us.
const TICK: SignedDuration = SignedDuration::from_millis(50);

/// A store that is being measured.
pub(crate) struct Bench {
    store: Arc<dyn Frontier>,
    is_remote: bool,
    workload: Workload,
    pub(crate) start: Timestamp,
}

impl Bench {
    /// Measures a store, whose answers take no time on the way unless it is remote.
    pub(crate) fn new(store: Arc<dyn Frontier>, is_remote: bool, workload: Workload) -> anyhow::Result<Self> {
        let start = Timestamp::from_second(1_800_000_000)?;
        let bench = Self { store, is_remote, workload, start };
        if bench.wait(bench.store.catalog())?.collection(COLLECTION).is_none() {
            bench.configure()?;
        }
        Ok(bench)
    }

    fn wait<T>(&self, call: impl Future<Output = forager_frontier::Result<T>>) -> anyhow::Result<T> {
        if self.is_remote { ask(call) } else { Ok(block_on(call)?) }
    }

    /// Begins at another time.
    pub(crate) fn from(self, start: Timestamp) -> Self {
        Self { start, ..self }
    }

    /// So many URLs, for what comes next.
    pub(crate) fn with_urls(self, urls: u64) -> Self {
        Self { workload: Workload::new(urls, self.workload.hosts), ..self }
    }

    fn configure(&self) -> anyhow::Result<()> {
        let mut profile = Profile::new("all", COLLECTION);
        profile.scope = ScopeKind::Any;
        profile.traps.max_per_host = 0; // the largest of so many hosts may be larger than any site
        let seed = Seed { url: SEED.to_owned(), profiles: vec!["all".to_owned()], enabled: true };
        let changes = [
            Change::AddCollection(CollectionSpec::new(COLLECTION, Kind::Planned)),
            Change::AddProfile(Box::new(profile)),
            Change::AddSeed(seed),
        ];
        self.wait(self.store.configure(&changes, self.start))?;
        Ok(())
    }

    /// Writes something, so that a kill has something to interrupt.
    pub(crate) fn touch(&self) -> anyhow::Result<()> {
        self.wait(self.store.start(&[Target::Seed(SEED.to_owned())], self.start))?;
        Ok(())
    }

    /// Pages with these URLs as links.
    fn pages(&self, urls: impl Iterator<Item = u64>) -> Vec<Page> {
        let links: Vec<Link> =
            urls.map(|index| Link { url: self.workload.url(index), ..Link::default() }).collect();
        let page = |links: &[Link]| Page {
            collection: COLLECTION.to_owned(),
            seed: Some(SEED.to_owned()),
            links: links.to_vec(),
            ..Page::default()
        };
        links.chunks(PAGE).map(page).collect()
    }

    fn discover(&self, urls: Vec<u64>, now: Timestamp, calls: &mut Calls) -> anyhow::Result<()> {
        let count = urls.len();
        let pages = self.pages(urls.into_iter());
        let started = Instant::now();
        self.wait(self.store.discover(&pages, now))?;
        calls.add(started.elapsed(), count);
        Ok(())
    }

    /// All URLs, one in ten of them again.
    pub(crate) fn discover_new(&self, figures: &mut Figures) -> anyhow::Result<()> {
        figures.rate("discover new, 500 a call", &self.discover_from(0)?);
        Ok(())
    }

    /// All URLs from one on, one in ten of them again.
    pub(crate) fn discover_from(&self, first: u64) -> anyhow::Result<Calls> {
        let mut calls = Calls::default();
        progress::count("discovering", self.workload.urls - first);
        for urls in self.workload.batches_from(first, BATCH) {
            progress::advance(urls.len() as u64);
            self.discover(urls, self.start, &mut calls)?;
        }
        Ok(calls)
    }

    /// URLs that are all known.
    pub(crate) fn discover_known(&self, figures: &mut Figures) -> anyhow::Result<()> {
        let mut calls = Calls::default();
        let total = MOST_CALLS.min(usize::try_from(self.workload.urls)? / BATCH + 1);
        for call in 0..total {
            let first = (call * BATCH) as u64;
            let urls = (first..first + BATCH as u64).map(|number| mix(!number) % self.workload.urls);
            self.discover(urls.collect(), self.start, &mut calls)?;
        }
        figures.rate("discover known, 500 a call", &calls);
        Ok(())
    }

    /// Rounds of leases and of reports, as many at a time as hosts can have under way.
    pub(crate) fn lease_and_complete(&self, figures: &mut Figures) -> anyhow::Result<()> {
        let (mut leases, mut reports) = (Calls::default(), Calls::default());
        let mut now = self.start;
        let round = (usize::try_from(self.workload.hosts)? / LEASE / 4).clamp(1, 250);
        let total = MOST_CALLS.min(usize::try_from(self.workload.urls)? / LEASE / 4 + 1);
        progress::count("leasing", total as u64);
        for _ in 0..total.div_ceil(round) {
            let mut held = Vec::new();
            for _ in 0..round {
                now += TICK;
                held.extend(self.lease(&mut now, &mut leases)?);
                progress::advance(1);
            }
            for batch in held.chunks(LEASE) {
                now += TICK;
                self.complete(batch, now, &mut reports)?;
            }
        }
        figures.rate("lease, 100 a call", &leases);
        figures.rate("complete, 100 a call", &reports);
        Ok(())
    }

    /// Leases that give something; when hosts have to be waited for, the clock goes on.
    fn lease(&self, now: &mut Timestamp, calls: &mut Calls) -> anyhow::Result<Vec<Leased>> {
        let hold = Interval::hours(1);
        let request = LeaseRequest { max: LEASE, per_host: 1, hold, ..LeaseRequest::default() };
        let started = Instant::now();
        let answer = self.wait(self.store.lease(&request, *now))?;
        let time = started.elapsed();
        if answer.leased.len() < LEASE {
            *now += SignedDuration::from_secs(5);
        }
        if !answer.leased.is_empty() {
            calls.add(time, answer.leased.len());
        }
        Ok(answer.leased)
    }

    fn complete(&self, leased: &[Leased], now: Timestamp, calls: &mut Calls) -> anyhow::Result<()> {
        let reports = reports(leased);
        let started = Instant::now();
        self.wait(self.store.complete(&reports, now))?;
        calls.add(started.elapsed(), reports.len());
        Ok(())
    }

    /// A crawl: 100 pages leased, five new and five known links of each discovered, 100 reported.
    pub(crate) fn mixed(&self, figures: &mut Figures) -> anyhow::Result<()> {
        let mut calls = Calls::default();
        let mut unused = Calls::default();
        let mut now = self.start + SignedDuration::from_hours(1);
        let mut new = self.workload.urls;
        for _ in 0..=(MOST_CALLS.min(usize::try_from(self.workload.urls)? / LEASE / 8 + 1) / 4) {
            now += TICK * 4;
            let started = Instant::now();
            let leased = self.lease(&mut now, &mut unused)?;
            let links = (leased.len() * 5) as u64;
            let known = (0..links).map(|link| mix(new + link) % self.workload.urls);
            let urls: Vec<u64> = (new..new + links).chain(known).collect();
            new += links;
            let pages = self.pages(urls.into_iter());
            self.wait(self.store.discover(&pages, now))?;
            self.complete(&leased, now, &mut unused)?;
            calls.add(started.elapsed(), leased.len());
        }
        figures.rate("mixed: lease, 10 links a page, complete; pages", &calls);
        Ok(())
    }
}

/// What is reported of pages.
pub(super) fn reports(leased: &[Leased]) -> Vec<Report> {
    let report = |leased: &Leased| Report {
        token: leased.token.0,
        status: Some(200),
        fingerprint: Some(format!("{:016x}", mix(leased.token.0))),
        bytes: 20_000,
        ..Report::default()
    };
    leased.iter().map(report).collect()
}

/// Whether a million hosts with nothing due slow down the lease from a hundred that have something.
pub(crate) fn few_ready_hosts(folder: &Path, hosts: u64, figures: &mut Figures) -> anyhow::Result<()> {
    for (what, idle) in [("lease, 100 hosts, all ready", 0), ("lease, 100 of many hosts ready", hosts * 10)] {
        let path = folder.join(format!("ready-{idle}"));
        let store = super::open(&path)?;
        let start = Timestamp::from_second(1_800_000_000)?;
        let collection = CollectionSpec::new(COLLECTION, Kind::Plain);
        block_on(store.configure(&[Change::AddCollection(collection)], start))?;
        fill(&store, idle, start)?;
        let mut calls = Calls::default();
        for second in 2..2002 {
            let now = start + Duration::from_secs(second * 2);
            let request = LeaseRequest { max: 10, per_host: 1, ..LeaseRequest::default() };
            let started = Instant::now();
            let answer = block_on(store.lease(&request, now))?;
            calls.add(started.elapsed(), answer.leased.len());
        }
        figures.rate(what, &calls);
        drop(store);
        std::fs::remove_dir_all(&path)?;
    }
    Ok(())
}

/// A hundred hosts with much to do, and `idle` ones with nothing before next year.
fn fill(store: &Embedded, idle: u64, start: Timestamp) -> anyhow::Result<()> {
    let later = forager_frontier::Moment::of(start + SignedDuration::from_hours(24 * 365));
    let link =
        |host: String, path: u64, due| Link { url: format!("https://{host}/{path}"), due, ..Link::default() };
    let busy = (0..30_000).map(|number| link(format!("busy-{}.example", number % 100), number, None));
    let quiet = (0..idle).map(|number| link(format!("idle-{number}.example"), 0, Some(later)));
    let mut links = busy.chain(quiet);
    progress::count("filling", idle + 30_000);
    loop {
        let batch: Vec<Link> = links.by_ref().take(5000).collect();
        if batch.is_empty() {
            return Ok(());
        }
        progress::advance(batch.len() as u64);
        let page = Page { collection: COLLECTION.to_owned(), links: batch, ..Page::default() };
        block_on(store.discover(&[page], start))?;
    }
}
