//! `forager run`

use std::collections::HashSet;
use std::path::Path;

use anyhow::bail;
use forager_core::scope::Seed;
use forager_crawl::{Ended, Stop, Work};
use forager_frontier::catalog::{Catalog, Change};
use forager_frontier::verbs::{Action, Started, Target};
use serde_json::json;

use super::apply;
use crate::Outcome;
use crate::cli::RunArgs;
use crate::config::Config;
use crate::crawling::changes::Changes;
use crate::crawling::queued::crawled;
use crate::crawling::starts::LeftOut;
use crate::crawling::view::{Files, View};
use crate::crawling::{self, Crawl, Signals, StopsAt, with_signals};
use crate::exit::{Deserted, stopped_by};
use crate::journal::{self, Event, Level};
use crate::words::{counted, named};
use crate::{output, store};

pub(super) fn run(args: &RunArgs) -> anyhow::Result<Outcome> {
    let ended =
        with_signals(journal::stop_asked, async |signals| Box::pin(run_until_told(args, signals)).await)?;
    Ok(match ended {
        Ended::Stopped(Stop::Now) => Outcome::Forced,
        Ended::Stuck => {
            output::complain(format_args!(
                "what is left waits for a person: hosts are blocked or at their limit (\"forager queue hosts\" names them), \
                 jobs are paused (\"forager job list\"), collections are disabled (\"forager collection list\"), or a \
                 client has stopped all handing out (SetActive)"
            ));
            Outcome::Stuck
        }
        Ended::Stopped(_) => Outcome::Interrupted,
        Ended::Done => Outcome::Complete,
    })
}

/// Works until it is told to stop; whenever it is told so, with the configuration read again.
async fn run_until_told(args: &RunArgs, mut signals: Signals) -> anyhow::Result<Ended> {
    let mut config = read(args)?;
    let (mut crawl, mut seeds) = open(args, config.clone()).await?;
    let mut has_begun = false;
    loop {
        let ended = crawl_all(args, &crawl, seeds, signals.clone(), has_begun).await;
        crawl.close().await?;
        let ended = ended?;
        if *signals.stop.borrow() != Stop::No || !matches!(ended, Ended::Stopped(_)) {
            return Ok(ended);
        }
        journal::tell(Level::Info, Event::Reload, "reading the configuration again", &json!({}));
        // Whoever asks while it is read asks for it to be read once more.
        signals.reload.mark_unchanged();
        has_begun = true;
        (crawl, seeds) = open_again(args, &mut config).await?;
    }
}

fn read(args: &RunArgs) -> anyhow::Result<Config> {
    let config = crawling::configured(Config::load(&args.place.config)?, &args.fetch);
    if config.seeds.is_empty() && !store::is_there(&args.place)? {
        bail!(
            "there is nothing to crawl; write a configuration with \"forager init\", or name one with --config"
        );
    }
    Ok(config)
}

/// Opens the queue, and brings in what the configuration says.
async fn open(args: &RunArgs, config: Config) -> anyhow::Result<(Crawl, Seeds)> {
    let urls: Vec<String> =
        config.seeds.iter().filter(|seed| seed.enabled).map(|seed| seed.url.clone()).collect();
    let crawl = Crawl::open(config, &args.place, &args.fetch, &urls, args.files.crawl_log.is_some()).await?;
    let entered = async {
        let seeds = bring_in(args, &crawl).await?;
        tell_rest(args, &crawl).await?;
        Ok(seeds)
    };
    match entered.await {
        Ok(seeds) => Ok((crawl, seeds)),
        Err(cause) => {
            crawl.close().await?;
            Err(cause)
        }
    }
}

/// Opens the queue with the configuration as it is now. One that is broken must not end what runs: it is told, and the
/// one before counts on.
async fn open_again(args: &RunArgs, config: &mut Config) -> anyhow::Result<(Crawl, Seeds)> {
    let opened = async {
        let new = read(args)?;
        Ok::<_, anyhow::Error>((open(args, new.clone()).await?, new))
    };
    match opened.await {
        Ok((opened, new)) => {
            *config = new;
            Ok(opened)
        }
        Err(cause) => {
            let message = format!("{cause:#}; going on with the configuration as it was before");
            journal::tell(Level::Warn, Event::Reload, &message, &json!({"kept": true}));
            open(args, config.clone()).await
        }
    }
}

const NO_COLLECTION: &str =
    "there is no collection to crawl: all are disabled, or jobs that are done, at their limit or paused";

/// Crawls what there is. Where there is nothing at the start, and nobody else could add anything, to wait would be in vain.
/// Whoever has begun waits all the same: for what the configuration has when it is read once more.
async fn crawl_all(
    args: &RunArgs,
    crawl: &Crawl,
    seeds: Seeds,
    signals: Signals,
    has_begun: bool,
) -> anyhow::Result<Ended> {
    let mut files = Files::open(&args.files)?;
    files.leave_out(&seeds.left_out, crawl.clock.now())?;
    let only = args.collection.as_deref();
    let stats = crawled(&*crawl.frontier, only, crawl.clock.now()).await?;
    let has_pages = stats.iter().any(|stats| stats.queued + stats.in_flight > 0);
    if seeds.are_in_vain && !has_pages && !has_begun {
        bail!("there is nothing to crawl: no seed is in the scope of a profile that has a collection");
    }
    if stats.is_empty() && !has_begun && !args.until_idle && !crawl.is_shared() {
        bail!(
            "{NO_COLLECTION} (\"forager collection list{place}\" and \"forager job list{place}\" show them); \"forager \
             crawl\" with a higher --limit goes on with one that is at its limit",
            place = args.place.flags()
        );
    }
    let changes = Changes::to_file(args.changes.as_deref(), args.on_change.as_deref())?;
    let queued = stats.iter().map(|stats| stats.queued).sum();
    let names: Vec<&str> = stats.iter().map(|stats| &*stats.collection).collect();
    let pages = counted(queued, "page", "pages");
    let message = match &names[..] {
        [] => NO_COLLECTION.to_owned(),
        names => format!("crawling the collections {}: {pages} queued", names.join(", ")),
    };
    journal::tell(Level::Info, Event::Started, &message, &json!({"collections": names, "queued": queued}));
    let view = View::new(files, (queued, crawl.queued(only)), changes, None);
    let work = Work {
        collection: args.collection.clone(),
        until_done: args.until_idle,
        until_idle: args.until_idle,
    };
    let is_read = [&args.files.out, &args.changes].into_iter().flatten().any(|path| path == Path::new("-"));
    let stop = signals.merged(StopsAt { reload: true, deserted: is_read });
    let (ended, view) = crawl.crawler.run(work, stop, view).await;
    let asked = signals.stop;
    view.finish(&asked).await.map_err(stopped_by)?;
    if is_read && *signals.deserted.borrow() {
        return Err(Deserted.into());
    }
    Ok(if *asked.borrow() == Stop::Now { Ended::Stopped(Stop::Now) } else { ended? })
}

/// What became of the seeds.
struct Seeds {
    /// Those that their own scope keeps out.
    left_out: Vec<LeftOut>,
    /// Whether there are some, and none of them leads anywhere.
    are_in_vain: bool,
}

/// Brings what the configuration says into the queue, and starts the seeds that were never queued.
async fn bring_in(args: &RunArgs, crawl: &Crawl) -> anyhow::Result<Seeds> {
    let (frontier, now) = (&crawl.frontier, crawl.clock.now());
    crawl.configure(|catalog| Ok(apply::difference(&crawl.config, catalog.rows(), false))).await?;
    let catalog = frontier.catalog().await?;
    for dangling in catalog.scopes().dangling() {
        output::complain(format_args!("{dangling}"));
    }
    let only = args.collection.as_deref();
    crawling::require_contact(&crawl.config, seeds_of(&catalog, only))?;
    let (mut left_out, mut lost) = (Vec::new(), HashSet::new());
    for row in catalog.rows().seeds.iter().filter(|row| !row.is_gone) {
        let mut is_new = false;
        for collection in collections_of(&catalog, &row.seed) {
            is_new |= frontier.entry(collection, None, &row.seed.url, now).await?.is_none();
        }
        if is_new {
            let started = frontier.start(&[Target::Seed(row.seed.url.clone())], now).await?;
            let is_out = |started: &&Started| started.action == Action::Ignored;
            for out in started.iter().filter(is_out) {
                left_out.push(LeftOut { url: row.seed.url.clone(), rule: out.rule.to_string() });
            }
            if started.iter().all(|started| is_out(&started)) {
                lost.insert(row.seed.url.as_str());
            }
        }
    }
    let is_astray = enabled_seeds(&catalog).any(|seed| collections_of(&catalog, seed).next().is_none());
    let has_seeds = is_astray || seeds_of(&catalog, only).next().is_some();
    let are_in_vain = has_seeds && seeds_of(&catalog, only).all(|url| lost.contains(url));
    left_out.iter().for_each(LeftOut::tell);
    Ok(Seeds { left_out, are_in_vain })
}

fn enabled_seeds(catalog: &Catalog) -> impl Iterator<Item = &Seed> {
    let rows = catalog.rows().seeds.iter();
    rows.filter(|row| !row.is_gone && row.seed.enabled).map(|row| &row.seed)
}

/// Where the profiles of a seed lead, as far as they and their collections are there.
fn collections_of<'c>(catalog: &'c Catalog, seed: &'c Seed) -> impl Iterator<Item = &'c str> {
    let profiles = catalog.rows().profiles.iter().filter(|profile| seed.profiles.contains(&profile.id));
    profiles
        .map(|profile| profile.collection.as_str())
        .filter(|collection| catalog.collection(collection).is_some())
}

/// The seeds that are crawled, of all collections or of one.
fn seeds_of<'c>(catalog: &'c Catalog, only: Option<&'c str>) -> impl Iterator<Item = &'c str> {
    let is_wanted = move |collection: &str| only.is_none_or(|only| collection == only);
    enabled_seeds(catalog)
        .filter(move |seed| collections_of(catalog, seed).any(is_wanted))
        .map(|seed| seed.url.as_str())
}

/// Names what only the queue has: whoever takes a seed out of the configuration may think that it is not crawled any more.
async fn tell_rest(args: &RunArgs, crawl: &Crawl) -> anyhow::Result<()> {
    let Config { collections, profiles, seeds, .. } = &crawl.config;
    if collections.is_empty() && profiles.is_empty() && seeds.is_empty() {
        return Ok(()); // whoever has no configuration goes by the queue
    }
    let catalog = crawl.frontier.catalog().await?;
    let rest = apply::difference(&crawl.config, catalog.rows(), true).into_iter();
    let rest = rest.filter_map(|change| match change {
        Change::RemoveSeed(url) => Some(format!("seed {url}")),
        Change::RemoveProfile(id) => Some(format!("profile {id}")),
        Change::RemoveCollection(id) => Some(format!("collection {id}")),
        _ => None,
    });
    let rest: Vec<String> = rest.collect();
    if rest.is_empty() {
        return Ok(());
    }
    output::tell(format_args!(
        "not in the configuration, and crawled all the same as long as the queue has them: {}; \"forager apply \
         --prune{}\" removes them",
        named(rest),
        args.place.flags()
    ));
    Ok(())
}
