//! `forager demo`: a web of our own, crawled with the production code on a fast clock.

mod report;
mod watchers;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use forager_core::order::Order;
use forager_core::scope::extent::Kind as ScopeKind;
use forager_core::scope::{Profile, Seed};
use forager_core::sentinel::schedule::ScheduleConfig;
use forager_core::time::Interval;
use forager_crawl::clock::Clock;
use forager_crawl::{CrawlConfig, Crawler, Stop, Work};
use forager_fetch::address::AddressPolicy;
use forager_fetch::http::HttpConfig;
use forager_frontier::catalog::{Change, CollectionSpec, Kind, Limits};
use forager_frontier::settings::{Politeness, Retry};
use forager_frontier::verbs::{NewJob, Target};
use forager_frontier::{Embedded, Frontier, Options, Settings};
use forager_site::demo::{HOSTS, START};
use forager_site::{Running, Server, demo_site};
use tokio::sync::watch;

use crate::Outcome;
use crate::cli::DemoArgs;
use crate::crawling::with_signals;
use report::Report;
use watchers::{Catches, Order as Fetched};

/// How fast the clock goes while the sites are crawled, and while the office is watched.
const CRAWL_SPEED: u32 = 40;
const WATCH_SPEED: u32 = 20_000;

const CRAWL: &str = "crawl";
const WATCH: &str = "watch";

/// The clock, which changes its speed in between.
type Time = Arc<RwLock<Clock>>;

fn now(time: &Time) -> jiff::Timestamp {
    time.read().unwrap_or_else(PoisonError::into_inner).now()
}

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<Outcome> {
    let folder = tempfile::tempdir().context("cannot make a folder for the queue")?;
    let settings = settings();
    let frontier: Arc<Embedded> = Arc::new(Embedded::open(folder.path(), settings, Options::default())?);
    // Whoever stops it leaves no folder behind.
    with_signals(
        |_| {},
        async |mut signals| {
            tokio::select! {
                shown = Box::pin(show(args, &frontier)) => shown,
                _ = signals.stop.changed() => {
                    let _ = tokio::time::timeout(LETTING_GO, let_go(&frontier)).await;
                    Ok(Outcome::Interrupted)
                }
            }
        },
    )
}

/// How long what was under way may take to let go of the queue.
const LETTING_GO: Duration = Duration::from_secs(5);

/// Waits until nobody else has the queue: whoever lets go of it last writes to its folder, which must not be gone by then.
async fn let_go(frontier: &Arc<Embedded>) {
    while Arc::strong_count(frontier) > 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn settings() -> Settings {
    let second = |seconds: f64| Interval::from_secs_f64(seconds);
    Settings {
        sentinel: ScheduleConfig::sentinel(),
        politeness: Politeness { back_off: second(5.0), max_back_off: second(30.0), ..Politeness::default() },
        retry: Retry { first: second(5.0), longest: second(20.0), refused: 2, failed: 2, ..Retry::default() },
        ..Settings::default()
    }
}

async fn show(args: &DemoArgs, frontier: &Arc<Embedded>) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let time: Time = Arc::new(RwLock::new(Clock::faster(START, CRAWL_SPEED)));
    let of_server = time.clone();
    let site = demo_site(args.seed);
    let running = Server::start(site, move || now(&of_server)).await.context("cannot serve the sites")?;
    let mut report = Report::new();
    report.open(&running)?;

    let fetched = crawl(frontier, &running, &time).await?;
    report.order(&fetched, frontier).await?;

    let start = now(&time);
    *time.write().unwrap_or_else(PoisonError::into_inner) = Clock::faster(start, WATCH_SPEED);
    let end = Interval::hours(24 * args.days).after(start);
    let catches = watch_office(frontier, &running, &time, end).await?;
    report.changes(&demo_site(args.seed), &catches, (start, end))?;

    report.policies(&fetched)?;
    let is_clean = report.politeness(frontier, &running, start).await?;
    running.stop().await;
    report.close(began.elapsed())?;
    Ok(if is_clean { Outcome::Complete } else { Outcome::SomeBad })
}

fn crawler(frontier: &Arc<Embedded>, running: &Running, time: &Time) -> anyhow::Result<Crawler> {
    let http = HttpConfig {
        user_agent: format!("Forager/{} (demo)", env!("CARGO_PKG_VERSION")),
        addresses: AddressPolicy::allowing(&["127.0.0.0/8".parse()?]).anonymous(),
        overrides: running.overrides(),
        ..HttpConfig::default()
    };
    // An hour of the fast clock is a moment of ours, and a fetch takes its moments.
    let config = CrawlConfig { hold: Interval::hours(48), ..CrawlConfig::default() };
    let clock = *time.read().unwrap_or_else(PoisonError::into_inner);
    Ok(Crawler::new(frontier.clone(), http, config, clock)?)
}

/// Crawls all six sites once.
async fn crawl(frontier: &Arc<Embedded>, running: &Running, time: &Time) -> anyhow::Result<Fetched> {
    let mut profile = Profile::new(CRAWL, CRAWL);
    profile.scope = ScopeKind::Host;
    profile.depth = Some(6);
    let urls = HOSTS.iter().map(|host| running.url(host, "/")).collect();
    let limits = Limits { time: Some(Interval::hours(1)), ..Limits::default() };
    let job = NewJob { id: CRAWL.to_owned(), urls, profile, limits };
    frontier.start_job(&job, now(time)).await?;
    let work = Work { collection: Some(CRAWL.to_owned()), until_done: true, until_idle: false };
    let (_keep, stop) = watch::channel(Stop::No);
    let (ended, fetched) = crawler(frontier, running, time)?.run(work, stop, Fetched::default()).await;
    ended?;
    Ok(fetched)
}

/// Watches the office until `end`, by the sentinel's schedule.
async fn watch_office(
    frontier: &Arc<Embedded>,
    running: &Running,
    time: &Time,
    end: jiff::Timestamp,
) -> anyhow::Result<Catches> {
    let mut profile = Profile::new(WATCH, WATCH);
    (profile.scope, profile.order, profile.depth) = (ScopeKind::Host, Order::Risk, Some(2));
    profile.reading.sitemaps = false;
    let url = running.url("ured.demo", "/");
    let changes = [
        Change::AddCollection(CollectionSpec::new(WATCH, Kind::Planned)),
        Change::AddProfile(Box::new(profile)),
    ];
    frontier.configure(&changes, now(time)).await?;
    let seed = Seed { url: url.clone(), profiles: vec![CRAWL.to_owned(), WATCH.to_owned()], enabled: true };
    frontier.configure(&[Change::SetSeed(seed)], now(time)).await?;
    frontier.start(&[Target::Seed(url)], now(time)).await?;
    let work = Work { collection: Some(WATCH.to_owned()), ..Work::default() };
    let (sender, stop) = watch::channel(Stop::No);
    let clock = *time.read().unwrap_or_else(PoisonError::into_inner);
    let alarm = tokio::spawn(async move {
        clock.sleep_until(end).await;
        // Whoever would hear it has ended by itself.
        let _ = sender.send(Stop::Drain);
    });
    let (ended, catches) = crawler(frontier, running, time)?.run(work, stop, Catches::default()).await;
    alarm.abort();
    ended?;
    Ok(catches)
}
