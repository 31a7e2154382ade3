//! A site, a clock, a queue in a folder, and crawlers of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use forager_core::scope::Profile;
use forager_core::scope::extent::{Kind, Traps};
use forager_core::time::Interval;
use forager_crawl::audit::{Audit, Auditor};
use forager_crawl::clock::Clock;
use forager_crawl::{CrawlConfig, Crawler, Ended, Found, PageLine, Stop, Watcher, Work};
use forager_fetch::address::AddressPolicy;
use forager_fetch::http::HttpConfig;
use forager_frontier::catalog::Limits;
use forager_frontier::settings::{Politeness, Retry};
use forager_frontier::verbs::NewJob;
use forager_frontier::{Embedded, Frontier, Options, Settings};
use forager_site::checks::{self, Rule, Violation};
use forager_site::{Log, Page, Running, Seen, Server, Site, demo, demo_site};
use futures_util::FutureExt;
use jiff::SignedDuration;
use tokio::sync::watch;

/// The job that crawls.
pub(crate) const JOB: &str = "demo";

/// The gap between two requests to a host. Always the same, so that a crawler that is a little too fast adds up.
pub(crate) const GAP: SignedDuration = SignedDuration::from_secs(2);

/// By how much a request may be late on a busy machine, on the clock on the wall.
const LATE: SignedDuration = SignedDuration::from_millis(500);

pub(crate) struct World {
    pub(crate) site: Site,
    pub(crate) running: Running,
    pub(crate) clock: Clock,
    pub(crate) settings: Settings,
    speed: u32,
    folder: tempfile::TempDir,
}

impl World {
    /// The demonstration web, seen by a clock that goes so many times as fast.
    pub(crate) async fn new(speed: u32) -> Self {
        Self::of(demo_site(1), speed).await
    }

    /// Another web.
    pub(crate) async fn of(site: Site, speed: u32) -> Self {
        let clock = Clock::faster(demo::START, speed);
        let running = Server::start(site.clone(), move || clock.now()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        Self { site, running, clock, settings: settings(), speed, folder }
    }

    /// The queue, as it is in the folder.
    pub(crate) fn open(&self) -> Arc<Embedded> {
        Arc::new(Embedded::open(self.folder.path(), self.settings.clone(), Options::default()).unwrap())
    }

    /// A crawler that knows where the hosts are.
    pub(crate) fn crawler(&self, frontier: Arc<Embedded>) -> Crawler {
        let http = HttpConfig {
            user_agent: "Forager/0.1 (+https://forager.example)".to_owned(),
            addresses: AddressPolicy::allowing(&["127.0.0.0/8".parse().unwrap()]),
            overrides: self.running.overrides(),
            ..HttpConfig::default()
        };
        // Fetches take their time on the wall, and pages are held by the clock that goes faster.
        let hold = Interval::from_secs_f64(600.0 * f64::from(self.speed));
        let config = CrawlConfig { hold, ..CrawlConfig::default() };
        Crawler::new(frontier, http, config, self.clock).unwrap()
    }

    /// Starts a job that fetches every page of these hosts once.
    pub(crate) async fn start_job(&self, frontier: &Embedded, hosts: &[&str]) {
        let urls = hosts.iter().map(|host| self.running.url(host, "/")).collect();
        let mut profile = Profile::new(JOB, JOB);
        profile.scope = Kind::Host;
        // The calendar is good for the years that somebody may want.
        profile.traps = Traps { first_year: 2026, last_year: 2026, ..Traps::default() };
        let job = NewJob { id: JOB.to_owned(), urls, profile, limits: Limits::default() };
        frontier.start_job(&job, self.clock.now()).await.unwrap();
    }

    /// What each request should have been like, judged by what the server saw.
    pub(crate) fn impolite(&self, seen: &[Seen]) -> Vec<Violation> {
        let tolerance = LATE * i32::try_from(self.speed).unwrap();
        checks::politeness(seen, |host| match host {
            "slow.demo" => Rule { limit: 1, gap: demo::CRAWL_DELAY, tolerance },
            _ => Rule { limit: 2, gap: GAP, tolerance },
        })
    }

    /// How often each page of these hosts is to be requested: once, if it is described and not forbidden.
    pub(crate) fn wanted(&self, hosts: &[&str]) -> BTreeMap<String, usize> {
        let hosts = self.site.hosts().iter().filter(|host| hosts.contains(&host.name()));
        let pages = hosts.flat_map(|host| host.pages().map(move |page: (&str, &Page)| (host.name(), page.0)));
        pages
            .filter(|(host, path)| !is_forbidden(host, path))
            .map(|(host, path)| (format!("{host}{path}"), 1))
            .collect()
    }

    /// Where an address of a host leads, without scheme and port.
    pub(crate) fn short(&self, url: &str) -> String {
        url.replacen("http://", "", 1).replacen(&format!(":{}", self.running.port()), "", 1)
    }
}

pub(crate) fn is_forbidden(host: &str, path: &str) -> bool {
    demo::FORBIDDEN.iter().any(|(name, prefix)| *name == host && path.starts_with(prefix))
}

/// How often each page was requested.
pub(crate) fn counted(seen: &[Seen]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for seen in seen {
        *counts.entry(format!("{}{}", seen.host, seen.path)).or_default() += 1;
    }
    counts
}

/// The pages that were not requested as often as they should have been.
pub(crate) fn differences(counts: &BTreeMap<String, usize>, wanted: &BTreeMap<String, usize>) -> Vec<String> {
    let pages: BTreeSet<&String> = counts.keys().chain(wanted.keys()).collect();
    let times = |page: &String| {
        [counts, wanted].map(|counts: &BTreeMap<String, usize>| counts.get(page).copied().unwrap_or_default())
    };
    let told = |page: &String| {
        let [were, should_be] = times(page);
        (were != should_be).then(|| format!("{page}: {were} and not {should_be} requests"))
    };
    pages.into_iter().filter_map(told).collect()
}

fn settings() -> Settings {
    let seconds = |seconds: i32| Interval::from_secs_f64(f64::from(seconds));
    let gap = Interval::from_secs_f64(GAP.as_secs_f64());
    Settings {
        politeness: Politeness { delay: gap, max_delay: gap, back_off: seconds(5), ..Politeness::default() },
        retry: Retry { failed: 2, first: seconds(10), ..Retry::default() },
        ..Settings::default()
    }
}

/// Proves politeness once more, from the log that the crawler itself has kept.
pub(crate) async fn audit(frontier: &Embedded) -> Audit {
    let files = |key: &str| frontier.noted(&[key.to_owned()]).now_or_never()?.ok()?.pop()?;
    let name = CrawlConfig::default().product_token;
    let mut auditor = Auditor::new(&name, &files);
    frontier.fetches(0, 100_000).await.unwrap().into_iter().for_each(|row| auditor.fetch(row));
    auditor.finish()
}

/// Remembers what it was told, and stops the crawl after so many pages.
pub(crate) struct Recorder {
    pub(crate) lines: Vec<PageLine>,
    pub(crate) found: Vec<Found>,
    stop: watch::Sender<Stop>,
    stop_after: usize,
    /// Holds up the crawl before it stops, until the server has answered all that is under way.
    lingers: Option<Log>,
}

impl Recorder {
    pub(crate) fn new(stop_after: usize) -> Self {
        let stop = watch::Sender::new(Stop::No);
        Self { lines: Vec::new(), found: Vec::new(), stop, stop_after, lingers: None }
    }

    pub(crate) fn lingering(self, log: &Log) -> Self {
        Self { lingers: Some(log.clone()), ..self }
    }

    /// Crawls until all is done, or as many pages as wanted were fetched.
    pub(crate) async fn watch(self, crawler: &Crawler) -> (Ended, Self) {
        let (stop, work) = (self.stop.subscribe(), Work { until_done: true, ..Work::default() });
        let (ended, recorder) = crawler.run(work, stop, self).await;
        (ended.unwrap(), recorder)
    }
}

impl Watcher for Recorder {
    fn page(&mut self, page: &PageLine, found: &[Found]) {
        self.lines.push(page.clone());
        self.found.extend_from_slice(found);
        if self.lines.len() >= self.stop_after {
            let _ = self.stop.send(Stop::Now);
            self.lingers.iter().for_each(linger);
        }
    }
}

/// Waits until every request was answered, and for as long as it takes to read the answers.
fn linger(log: &Log) {
    while log.snapshot().iter().any(|seen| seen.ended.is_none()) {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_secs(1));
}
