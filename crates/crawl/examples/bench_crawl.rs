//! Crawls the site of `bench_site` with the production code: `bench_crawl HOSTS PORT [AT_ONCE]`.
//!
//! The queue lies in a folder of its own that goes when the run ends, and survives what it would survive in
//! a real crawl. Prints one line of JSON: pages, seconds, pages per second, processor time and peak memory.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use forager_core::scope::Profile;
use forager_core::scope::extent::Kind;
use forager_core::time::Interval;
use forager_crawl::clock::Clock;
use forager_crawl::{CrawlConfig, Crawler, Ended, Found, PageLine, Stop, Watcher, Work};
use forager_fetch::address::AddressPolicy;
use forager_fetch::http::HttpConfig;
use forager_frontier::catalog::Limits;
use forager_frontier::verbs::NewJob;
use forager_frontier::{Embedded, Frontier, Options, Settings};
use jiff::Timestamp;
use tokio::sync::watch;

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const JOB: &str = "bench";
/// Two for each of a hundred hosts.
const AT_ONCE: usize = 200;
/// Of processor time, as Linux counts it in `/proc`.
const TICKS_A_SECOND: f64 = 100.0;

/// Counts pages, and those that are not as they should be.
#[derive(Default)]
struct Count {
    pages: u64,
    failures: u64,
}

impl Watcher for Count {
    fn page(&mut self, page: &PageLine, _: &[Found]) {
        self.pages += u64::from(page.status == Some(200));
        self.failures += u64::from(page.status != Some(200));
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let (hosts, port, at_once) = match numbers[..] {
        [hosts, port] => (hosts, port, AT_ONCE),
        [hosts, port, at_once] => (hosts, port, at_once),
        _ => anyhow::bail!("takes: hosts, port, and how many fetches at once"),
    };
    let folder = tempfile::tempdir()?;
    let mut settings = Settings::default();
    settings.politeness.delay = Interval::default();
    settings.politeness.max_delay = Interval::default();
    settings.politeness.in_flight = 2;
    forager_crawl::memory::use_small_pages();
    let frontier = Arc::new(Embedded::open(folder.path().join("queue"), settings, Options::for_crawl())?);
    let started = Instant::now();
    start(&*frontier, hosts, port).await?;
    let count = crawl(frontier.clone(), at_once).await?;
    drop(frontier);
    let seconds = started.elapsed().as_secs_f64();
    report(&count, seconds)
}

/// Queues the first page of each host; links may lead from any host to any other.
async fn start(frontier: &dyn Frontier, hosts: usize, port: usize) -> anyhow::Result<()> {
    let urls = (1..=hosts).map(|host| format!("http://127.0.0.{host}:{port}/")).collect();
    let mut profile = Profile::new(JOB, JOB);
    profile.scope = Kind::Any;
    let job = NewJob { id: JOB.to_owned(), urls, profile, limits: Limits::default() };
    frontier.start_job(&job, Timestamp::now()).await?;
    Ok(())
}

async fn crawl(frontier: Arc<Embedded>, at_once: usize) -> anyhow::Result<Count> {
    let http = HttpConfig {
        user_agent: "forager-bench/0.1 (+benchmark on loopback)".to_owned(),
        addresses: AddressPolicy::allowing(&["127.0.0.0/8".parse()?]),
        ..HttpConfig::default()
    };
    let config = CrawlConfig { at_once, ..CrawlConfig::default() };
    let crawler = Crawler::new(frontier, http, config, Clock::default())?;
    let work = Work { collection: Some(JOB.to_owned()), until_done: true, until_idle: false };
    let (_go_on, stop) = watch::channel(Stop::No);
    let (ended, count) = crawler.run(work, stop, Count::default()).await;
    let ended = ended?;
    anyhow::ensure!(ended == Ended::Done, "the crawl ended early: {ended:?}");
    Ok(count)
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn report(count: &Count, seconds: f64) -> anyhow::Result<()> {
    let line = serde_json::json!({
        "pages": count.pages,
        "failures": count.failures,
        "seconds": seconds,
        "pagesPerSecond": count.pages as f64 / seconds,
        "cpuSeconds": processor_time()?,
        "peakMemory": peak_memory()?,
    });
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}

/// Seconds that all threads of this process were busy, for itself and in the system.
fn processor_time() -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program comes second, in brackets, and may hold anything; user time is the 14th field.
    let fields = stat.rsplit_once(')').context("no name")?.1.split_whitespace().skip(11).take(2);
    let ticks: Vec<f64> = fields.map(str::parse).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / TICKS_A_SECOND)
}

/// The most memory that this process has had, in bytes.
fn peak_memory() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let kibibytes: u64 = line.split_whitespace().next().context("no VmHWM")?.parse()?;
    Ok(kibibytes * 1024)
}
