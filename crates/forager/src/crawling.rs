//! What the commands that fetch have in common: settings, signals, and what is told meanwhile.

mod appended;
pub(crate) mod changes;
pub(crate) mod counts;
mod hook;
mod kind;
mod line;
pub(crate) mod log;
pub(crate) mod outlook;
pub(crate) mod queued;
pub(crate) mod recover;
mod signals;
pub(crate) mod starts;
pub(crate) mod teller;
pub(crate) mod view;

use std::sync::Arc;

use anyhow::bail;
use forager_core::time::Interval;
use forager_core::url::FetchUrl;
use forager_crawl::clock::Clock;
use forager_crawl::{CrawlConfig, Crawler, memory};
use forager_fetch::http::HttpConfig;
use forager_frontier::catalog::{Catalog, Change, Kind};
use forager_frontier::{Frontier, Options};

use self::queued::Queued;
pub(crate) use self::signals::{Signals, StopsAt, with_signals};
use crate::cli::{AskArgs, FetchArgs, QueuePlace};
use crate::config::Config;
use crate::output;
use crate::store::{Place, Queue};

/// How often to look again when others make the same changes.
const MOST_TRIES: u32 = 10;

/// A queue and someone to fetch from it.
pub(crate) struct Crawl {
    pub(crate) config: Config,
    queue: Queue,
    pub(crate) frontier: Arc<dyn Frontier>,
    pub(crate) crawler: Crawler,
    pub(crate) clock: Clock,
}

impl Crawl {
    /// Opens the queue for fetching. Whoever would be crawled must be able to learn by whom. `traces` says whether it is
    /// told how pages were come to.
    pub(crate) async fn open(
        config: Config,
        place: &QueuePlace,
        fetch: &FetchArgs,
        urls: &[String],
        traces: bool,
    ) -> anyhow::Result<Self> {
        let Prepared { config, http, is_shared } = Prepared::new(config, place, fetch, urls)?;
        memory::use_small_pages();
        let queue = Queue::open_as(place, &config, Options::for_crawl()).await?;
        let frontier = queue.frontier();
        let hold = if is_shared { config.store.postgres.hold } else { CrawlConfig::default().hold };
        let behaviour = CrawlConfig {
            hold,
            product_token: config.fetch.product_token(),
            at_once: config.fetch.at_once,
            traces,
            first_retry: config.retry.first,
        };
        let clock = Clock::default();
        let crawler = Crawler::new(frontier.clone(), http, behaviour, clock)?;
        let crawl = Self { config, queue, frontier, crawler, clock };
        match crawl.take_back().await {
            Ok(()) => Ok(crawl),
            Err(cause) => {
                crawl.close().await?;
                Err(cause)
            }
        }
    }

    /// Whether others may be at work in the queue meanwhile.
    pub(crate) fn is_shared(&self) -> bool {
        self.queue.is_shared()
    }

    /// What asks how much is queued of one collection, or of all, where this process cannot count it.
    pub(crate) fn queued(&self, collection: Option<&str>) -> Option<Queued> {
        self.is_shared().then(|| Queued::new(self.frontier.clone(), collection.map(str::to_owned)))
    }

    /// Leaves the queue so that it opens quickly again.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        drop((self.crawler, self.frontier));
        self.queue.close().await
    }

    /// Has the pages back that whoever crawled before took and never reported: of all collections, for a host is kept waiting by
    /// those of any. Where others may be at work, nobody can tell theirs from those of the dead: these run out by themselves.
    /// So do those of plain collections, which clients of a server hold, whether it runs or not.
    async fn take_back(&self) -> anyhow::Result<()> {
        if self.is_shared() {
            return Ok(());
        }
        let catalog = self.frontier.catalog().await?;
        for row in catalog.rows().collections.iter().filter(|row| row.spec.kind == Kind::Planned) {
            self.frontier.reclaim(&row.spec.id, self.clock.now()).await?;
        }
        Ok(())
    }

    /// Makes the changes that the catalog needs. Others may be making the same ones: whoever comes second looks again.
    pub(crate) async fn configure(
        &self,
        changes: impl Fn(&Catalog) -> anyhow::Result<Vec<Change>>,
    ) -> anyhow::Result<()> {
        for left in (0..MOST_TRIES).rev() {
            let changes = changes(&*self.frontier.catalog().await?)?;
            if changes.is_empty() {
                break;
            }
            match self.frontier.configure(&changes, self.clock.now()).await {
                Err(forager_frontier::Error::Exists { .. }) if left > 0 => {}
                made => return Ok(made?),
            }
        }
        Ok(())
    }
}

/// What a crawl goes by, once it is known that it may begin.
pub(crate) struct Prepared {
    pub(crate) config: Config,
    pub(crate) http: HttpConfig,
    /// Whether others may crawl from the same queue.
    is_shared: bool,
}

impl Prepared {
    /// Refuses what must not begin. A rehearsal asks this too, so that it shows what would be.
    pub(crate) fn new(
        config: Config,
        place: &QueuePlace,
        fetch: &FetchArgs,
        urls: &[String],
    ) -> anyhow::Result<Self> {
        check_urls(urls)?;
        require_contact(&config, urls.iter().map(String::as_str))?;
        let http = config.fetch.http(fetch.ask.allow_private)?;
        let is_shared = matches!(Place::of(place, &config)?, Place::Database(_));
        let config = if is_shared { considerate(config) } else { config };
        Ok(Self { config, http, is_shared })
    }
}

/// The configuration for a queue that others crawl from too. When a request was sent is known to others only when it is
/// reported; so that they can keep their distance, the next one waits for that.
fn considerate(mut config: Config) -> Config {
    if config.politeness.delay > Interval::default() {
        config.politeness.in_flight = config.politeness.in_flight.min(1);
    }
    config
}

/// The configuration with what the flags of a crawl say.
pub(crate) fn configured(config: Config, flags: &FetchArgs) -> Config {
    let mut config = asking(config, &flags.ask);
    config.fetch.at_once = flags.at_once.unwrap_or(config.fetch.at_once);
    config.politeness.in_flight = flags.in_flight.unwrap_or(config.politeness.in_flight);
    config
}

/// The configuration with what the flags say of who asks, and how.
pub(crate) fn asking(mut config: Config, flags: &AskArgs) -> Config {
    if flags.contact.is_some() {
        config.fetch.contact.clone_from(&flags.contact);
    }
    if let Some(delay) = flags.delay {
        (config.politeness.delay, config.politeness.max_delay) = (delay, delay);
    }
    config
}

/// Refuses what cannot be asked for at all, and says what is taken otherwise than it is written.
pub(crate) fn check_urls(urls: &[String]) -> anyhow::Result<()> {
    for text in urls {
        let url = FetchUrl::parse_lenient(text)?;
        if FetchUrl::parse(text).is_err() {
            output::tell(format_args!(
                "{text:?} is taken as {url}; write https:// before it if that is meant"
            ));
        }
    }
    Ok(())
}

/// Refuses to start with strangers without saying who asks. Those who are met on the way are not asked either: the client
/// connects to nobody but loopback then.
pub(crate) fn require_contact<'u>(
    config: &Config,
    mut urls: impl Iterator<Item = &'u str>,
) -> anyhow::Result<()> {
    if config.fetch.has_contact() {
        return Ok(());
    }
    let is_strange = |text: &&str| FetchUrl::parse_lenient(text).is_ok_and(|url| !is_loopback(url.host()));
    let Some(stranger) = urls.find(is_strange) else { return Ok(()) };
    bail!(
        "nobody would know who crawls {stranger}; give a web page or an address for mail with --contact, or set \
         `contact` of [fetch] in the configuration"
    )
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
