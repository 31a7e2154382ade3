//! `forager crawl`

use std::collections::HashSet;

use anyhow::bail;
use forager_core::url::{FetchUrl, IdentityOptions};
use forager_crawl::{Ended, Stop, Work};
use forager_frontier::catalog::Limits;
use forager_frontier::verbs::{JobState, JobView, NewJob, PlanFilter, Planned};
use forager_frontier::{Error, Frontier, Memory};
use serde::Serialize;

use crate::Outcome;
use crate::cli::CrawlArgs;
use crate::config::Config;
use crate::crawling::view::{Files, Summary, View};
use crate::crawling::{Crawl, Signals, with_signals};
use crate::output::{Format, Output};
use crate::store::Queue;
use crate::{progress, runtime, store};

pub(super) fn run(args: &CrawlArgs) -> anyhow::Result<Outcome> {
    if args.dry_run {
        return rehearse(args);
    }
    let files = Files::open(args.out.as_deref(), args.skipped.as_deref(), args.crawl_log.as_deref())?;
    let (ended, summary, limits_hit) = with_signals(async |signals| {
        let crawl = Crawl::open(&args.place, &args.fetch, &args.urls).await?;
        let ended = crawl_job(args, &crawl, signals, files).await;
        crawl.close().await?;
        ended
    })?;
    progress::finish();
    print(args, &summary)?;
    Ok(match (ended, limits_hit) {
        (Ended::Stopped(Stop::Now), _) => Outcome::Forced,
        (Ended::Stopped(_), _) => Outcome::Interrupted,
        (_, Some(limit)) => limit,
        (Ended::Done | Ended::Stuck, None) => Outcome::Complete,
    })
}

async fn crawl_job(
    args: &CrawlArgs,
    crawl: &Crawl,
    signals: Signals,
    files: Files,
) -> anyhow::Result<(Ended, Summary, Option<Outcome>)> {
    let job = enter(args, crawl).await?;
    let work = Work { collection: Some(job.id.clone()), until_done: true, until_idle: false };
    let mut view = View::new(files, job.progress.queued, None);
    let ended = crawl.crawler.run(&work, signals.stop, &mut view).await?;
    let jobs = crawl.frontier.jobs(crawl.clock.now()).await?;
    let limit = jobs.iter().find(|known| known.id == job.id).and_then(limit_hit);
    Ok((ended, view.finish()?, limit))
}

/// The limit that ended a job, if one did.
fn limit_hit(job: &JobView) -> Option<Outcome> {
    let Limits { bytes, time, .. } = job.job.limits;
    let has_more = job.progress.queued > 0;
    match job.job.finished {
        Some(_) if has_more && bytes.is_some_and(|bytes| job.progress.tally.bytes >= bytes) => {
            Some(Outcome::SizeLimit)
        }
        Some(finished) if has_more && time.is_some_and(|time| job.job.started.after(time) <= finished) => {
            Some(Outcome::TimeLimit)
        }
        _ => None,
    }
}

/// Goes on with the job of this command, or starts it. One that is over is not touched: the next one has a number.
async fn enter(args: &CrawlArgs, crawl: &Crawl) -> anyhow::Result<JobView> {
    match try_to_enter(args, crawl).await {
        // Another process has started it just now, and is joined.
        Err(error) if matches!(error.downcast_ref(), Some(Error::Exists { .. })) => {
            try_to_enter(args, crawl).await
        }
        entered => entered,
    }
}

async fn try_to_enter(args: &CrawlArgs, crawl: &Crawl) -> anyhow::Result<JobView> {
    let (frontier, now) = (&crawl.frontier, crawl.clock.now());
    let jobs = frontier.jobs(now).await?;
    let name = name(args)?;
    let mut number = 1;
    loop {
        let id = if number == 1 { name.clone() } else { format!("{name}-{number}") };
        match jobs.iter().find(|job| job.id == id) {
            None => {
                return Ok(frontier.start_job(&new_job(args, id)?, now).await?);
            }
            Some(job) if job.state == JobState::Paused => {
                bail!("the job {id:?} is paused; \"forager job resume {id}\" lets it go on")
            }
            Some(job) if job.state == JobState::Running => {
                crawl.reclaim(&id).await?;
                progress::note(&format!("going on with {id}: {} pages queued", job.progress.queued));
                return Ok(job.clone());
            }
            Some(_) => number += 1,
        }
    }
}

fn new_job(args: &CrawlArgs, id: String) -> anyhow::Result<NewJob> {
    let limits = Limits { pages: args.limit, bytes: args.bytes, time: args.duration };
    let profile = args.harvest.profile(&id, &id);
    Ok(NewJob { id, urls: absolute(&args.urls)?, profile, limits })
}

/// The URLs, each once, however often it is given.
fn absolute(urls: &[String]) -> anyhow::Result<Vec<String>> {
    let (mut known, mut distinct) = (HashSet::new(), Vec::new());
    for url in urls {
        let url = FetchUrl::parse_lenient(url)?;
        if known.insert(url.identity(&IdentityOptions::default())) {
            distinct.push(url.as_str().to_owned());
        }
    }
    Ok(distinct)
}

/// The name of the job of a command: the first host, and what tells it from other crawls of that host.
fn name(args: &CrawlArgs) -> anyhow::Result<String> {
    if let Some(name) = &args.name {
        return Ok(name.clone());
    }
    let urls = absolute(&args.urls)?;
    let host = FetchUrl::parse(&urls[0])?.host().to_owned();
    let profile = serde_json::to_string(&args.harvest.profile("", ""))?;
    let limits = format!("{:?} {:?} {:?}", args.limit, args.bytes, args.duration);
    let told_apart =
        forager_fetch::fingerprint::Fingerprint::of_bytes(format!("{urls:?} {profile} {limits}").as_bytes());
    Ok(format!("{host}-{}", &told_apart.exact[..6]))
}

/// Shows what would be fetched first: from the queue, if the crawl has begun, or else from one that is thrown away.
fn rehearse(args: &CrawlArgs) -> anyhow::Result<Outcome> {
    let config = Config::load(&args.place.config)?;
    let (name, now) = (name(args)?, jiff::Timestamp::now());
    if store::is_there(&args.place)? {
        let queue = runtime::wait(Queue::open(&args.place, &config))??;
        let frontier = queue.frontier();
        let jobs = store::ask(frontier.jobs(now))?;
        let has_begun = jobs.iter().any(|job| job.id == name && job.state == JobState::Running);
        if has_begun {
            show_plan(args, &*frontier, &name, now)?;
        }
        drop(frontier);
        runtime::wait(queue.close())??;
        if has_begun {
            return Ok(Outcome::Complete);
        }
    }
    let frontier = Memory::new(config.settings())?;
    store::ask(frontier.start_job(&new_job(args, name.clone())?, now))?;
    show_plan(args, &frontier, &name, now)?;
    Ok(Outcome::Complete)
}

/// How many pages a dry run shows.
const PLANNED: usize = 1000;

/// A page that would be fetched, and why then.
#[derive(Serialize)]
struct Rehearsed<'a> {
    #[serde(flatten)]
    planned: &'a Planned,
    why: Vec<String>,
}

fn show_plan(
    args: &CrawlArgs,
    frontier: &dyn Frontier,
    collection: &str,
    now: jiff::Timestamp,
) -> anyhow::Result<()> {
    let filter =
        PlanFilter { collection: Some(collection.to_owned()), limit: PLANNED, ..PlanFilter::default() };
    let plan = store::ask(frontier.plan(&filter, now))?;
    let format = if args.json { Format::Jsonl } else { Format::Auto };
    let mut output = Output::new(format, &["at", "priority", "url", "waitsFor", "why"]);
    for planned in &plan {
        let explained = store::ask(frontier.explain(collection, &planned.url, now))?;
        let why = [explained.scope.rule].into_iter().chain(explained.priority.terms).collect();
        output.row(&Rehearsed { planned, why })?;
    }
    output.flush()
}

fn print(args: &CrawlArgs, summary: &Summary) -> anyhow::Result<()> {
    if args.out.as_deref() == Some(std::path::Path::new("-")) {
        return Ok(()); // the lines are the output
    }
    let mut output = Output::new(if args.json { Format::Jsonl } else { Format::Table }, &[]);
    output.sheet(summary)?;
    output.flush()
}
