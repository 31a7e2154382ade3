//! `forager watch`

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::bail;
use forager_core::order::Order;
use forager_core::scope::config::{ChangeBy, Reading};
use forager_core::scope::extent::Kind as ScopeKind;
use forager_core::scope::{Profile, Seed};
use forager_core::sentinel::schedule::Preset;
use forager_core::url::{FetchUrl, IdentityOptions};
use forager_crawl::{Ended, Found, PageLine, Stop, Watcher, Work};
use forager_frontier::catalog::{Catalog, Change, CollectionSpec, Kind, SeedRow};
use forager_frontier::verbs::{Outcome as PageOutcome, Target};
use forager_frontier::{Frontier as _, Memory};
use serde_json::json;

use crate::Outcome;
use crate::cli::WatchArgs;
use crate::config::Config;
use crate::crawling::changes::{Changes, Shown};
use crate::crawling::starts::{LeftOut, left_out};
use crate::crawling::teller::{AN_HOUR, Teller, Told};
use crate::crawling::{self, Crawl, Signals, StopsAt, with_signals};
use crate::exit::{Deserted, stopped_by};
use crate::journal::{self, Event, Level};
use crate::output;
use crate::words::{counted, named};

/// The collection that watched pages are in.
const COLLECTION: &str = "watch";

pub(super) fn run(args: &WatchArgs) -> anyhow::Result<Outcome> {
    let mut config = crawling::configured(Config::load(&args.place.config)?, &args.fetch);
    config.sentinel = config.sentinel.with(Preset::Sentinel);
    let ended = with_signals(journal::stop_asked, async |signals| {
        let crawl = Crawl::open(config, &args.place, &args.fetch, &args.urls, false).await?;
        let ended = watch(args, &crawl, signals).await;
        crawl.close().await?;
        ended
    })?;
    Ok(match ended {
        Ended::Stopped(Stop::Now) => Outcome::Forced,
        Ended::Stopped(_) => Outcome::Interrupted,
        // It waits for ever, so that it never is.
        Ended::Done | Ended::Stuck => Outcome::Complete,
    })
}

async fn watch(args: &WatchArgs, crawl: &Crawl, signals: Signals) -> anyhow::Result<Ended> {
    let urls = bring_in(args, crawl).await?;
    let earlier = earlier(&*crawl.frontier.catalog().await?, &urls);
    let shown = if args.json { Shown::Json(Box::new(std::io::stdout())) } else { Shown::Text };
    let changes = Changes::new(shown, args.on_change.as_deref());
    let pages = counted((urls.len() + earlier.len()) as u64, "page", "pages");
    let figures = json!({"collection": COLLECTION, "pages": urls.len() + earlier.len()});
    let message = format!("watching {pages}, in the collection {COLLECTION:?}");
    journal::tell(Level::Info, Event::Started, &message, &figures);
    tell_earlier(args, earlier);
    let last = Arc::new(Mutex::new(format!("watching {pages}")));
    let watched = Watched {
        changes: Some(changes),
        pages,
        last: last.clone(),
        redirects: HashMap::new(),
        trouble: None,
    };
    let _teller = Teller::start(AN_HOUR, move || Told {
        line: last.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        parts: None,
        figures: json!({}),
    });
    let work = Work { collection: Some(COLLECTION.to_owned()), ..Work::default() };
    let stop = signals.merged(StopsAt { reload: false, deserted: true });
    let (ended, mut watched) = crawl.crawler.run(work, stop, watched).await;
    let asked = signals.stop;
    if let Some(changes) = watched.changes.take() {
        changes.finish(&asked).await;
    }
    if let Some(trouble) = watched.trouble {
        return Err(stopped_by(anyhow::Error::new(trouble).context("cannot write the changes")));
    }
    if *signals.deserted.borrow() {
        return Err(Deserted.into());
    }
    Ok(if *asked.borrow() == Stop::Now { Ended::Stopped(Stop::Now) } else { ended? })
}

/// Puts the pages into the queue. What is watched already goes on, when it is due and with the options of this call.
async fn bring_in(args: &WatchArgs, crawl: &Crawl) -> anyhow::Result<Vec<FetchUrl>> {
    let (frontier, now) = (&crawl.frontier, crawl.clock.now());
    let mut urls = distinct(&args.urls)?;
    for out in out_of_scope(args, crawl, &urls).await? {
        out.tell();
        urls.retain(|url| url.as_str() != out.url);
    }
    if urls.is_empty() {
        bail!("there is nothing to watch");
    }
    crawl.configure(|catalog| Ok(missing(args, &urls, catalog))).await?;
    for url in &urls {
        if frontier.entry(COLLECTION, None, url.as_str(), now).await?.is_none() {
            frontier.start(&[Target::Seed(url.as_str().to_owned())], now).await?;
        }
    }
    Ok(urls)
}

/// The pages that the guards against traps keep out. They are not put into the queue, where they would stay.
async fn out_of_scope(args: &WatchArgs, crawl: &Crawl, urls: &[FetchUrl]) -> anyhow::Result<Vec<LeftOut>> {
    let (trial, now) = (Memory::new(crawl.config.settings())?, crawl.clock.now());
    let changes = missing(args, urls, &*trial.catalog().await?);
    trial.configure(&changes, now).await?;
    left_out(&*trial.catalog().await?, COLLECTION, now)
}

/// The pages that were watched before, and are still, though nobody names them now.
fn earlier(catalog: &Catalog, urls: &[FetchUrl]) -> Vec<String> {
    let identity = |url: &FetchUrl| url.identity(&IdentityOptions::default());
    let named: HashSet<_> = urls.iter().map(identity).filter_map(|url| catalog.seed_number(&url)).collect();
    let is_watched = |row: &&SeedRow| !row.is_gone && row.seed.profiles.iter().any(|name| name == COLLECTION);
    let rest = catalog.rows().seeds.iter().filter(is_watched).filter(|row| !named.contains(&row.number));
    rest.map(|row| row.seed.url.clone()).collect()
}

/// Names them: whoever watches one page may not think of those of last month.
fn tell_earlier(args: &WatchArgs, earlier: Vec<String>) {
    if earlier.is_empty() {
        return;
    }
    output::tell(format_args!(
        "watched since earlier, and from now on with the options given now: {}; \"forager seed remove{} URL\" ends that",
        named(earlier),
        args.place.flags()
    ));
}

/// The URLs, each once, however often it is given.
fn distinct(urls: &[String]) -> anyhow::Result<Vec<FetchUrl>> {
    let (mut known, mut distinct) = (HashSet::new(), Vec::new());
    for url in urls {
        let url = FetchUrl::parse_lenient(url)?;
        if known.insert(url.identity(&IdentityOptions::default())) {
            distinct.push(url);
        }
    }
    Ok(distinct)
}

/// What the catalog lacks for watching these.
fn missing(args: &WatchArgs, urls: &[FetchUrl], catalog: &Catalog) -> Vec<Change> {
    let mut changes = Vec::new();
    if catalog.collection(COLLECTION).is_none() {
        changes.push(Change::AddCollection(CollectionSpec::new(COLLECTION, Kind::Planned)));
    }
    let profile = profile(args);
    match catalog.rows().profiles.iter().find(|known| known.id == profile.id) {
        None => changes.push(Change::AddProfile(Box::new(profile))),
        Some(known) if *known != profile => changes.push(Change::SetProfile(Box::new(profile))),
        Some(_) => {}
    }
    for url in urls {
        let identity = url.identity(&IdentityOptions::default());
        let known = catalog.seed_number(&identity).and_then(|number| catalog.seed(number));
        match known.filter(|row| !row.is_gone) {
            None => changes.push(Change::AddSeed(Seed {
                url: url.as_str().to_owned(),
                profiles: vec![COLLECTION.to_owned()],
                enabled: true,
            })),
            Some(row) if row.seed.profiles.iter().all(|name| name != COLLECTION) => {
                let mut seed = row.seed.clone();
                seed.profiles.push(COLLECTION.to_owned());
                changes.push(Change::SetSeed(seed));
            }
            Some(_) => {}
        }
    }
    changes
}

fn profile(args: &WatchArgs) -> Profile {
    let mut profile = Profile::new(COLLECTION, COLLECTION);
    profile.scope = ScopeKind::Page;
    profile.order = Order::Risk;
    profile.every = args.every;
    profile.reading = Reading {
        change: if args.exact { ChangeBy::Exact } else { ChangeBy::Content },
        content: args.content.clone(),
        ..Reading::default()
    };
    profile
}

/// Prints what changes, and says when each page is looked at next.
struct Watched {
    changes: Option<Changes>,
    pages: String,
    /// What was done last, and what comes next.
    last: Arc<Mutex<String>>,
    /// Where pages redirect to, as far as that was told.
    redirects: HashMap<String, String>,
    /// Why changes cannot be written any more; nobody would see the next ones.
    trouble: Option<io::Error>,
}

impl Watched {
    /// Whether it was not told before that a page redirects there. There are as many as pages that are watched.
    fn is_news(&mut self, url: &str, target: &str) -> bool {
        self.redirects.insert(url.to_owned(), target.to_owned()).as_deref() != Some(target)
    }

    /// Tells what is wrong with a page.
    fn tell_people(&mut self, page: &PageLine) {
        if let Some(error) = &page.error {
            output::complain(format_args!("{}: {error}", page.url));
        } else if let Some(status) = page.status.filter(|status| *status >= 400) {
            output::complain(format_args!("{} answers {status}", page.url));
        } else if let Some(target) = page.redirect.as_ref().filter(|target| self.is_news(&page.url, target)) {
            output::complain(format_args!("{} redirects to {target}; watch that page instead", page.url));
        }
    }
}

impl Watcher for Watched {
    fn page(&mut self, page: &PageLine, _found: &[Found]) {
        if let Some(changes) = self.changes.as_mut().filter(|_| page.changed)
            && let Err(cause) = changes.tell(page)
        {
            self.trouble.get_or_insert(cause);
        }
        journal::page(page);
        if !journal::is_json() {
            self.tell_people(page);
        }
        let next = match (page.outcome, page.due) {
            (Some(PageOutcome::Again), Some(due)) => format!(", next look at {due}"),
            _ => String::new(),
        };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) =
            format!("watching {}; looked at {}{next}", self.pages, page.url);
    }

    fn has_enough(&self) -> bool {
        self.trouble.is_some()
    }
}
