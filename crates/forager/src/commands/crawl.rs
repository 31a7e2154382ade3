//! `forager crawl`

mod asked;
mod end;
mod rehearsal;
mod worked;

use std::collections::HashSet;
use std::path::Path;

use anyhow::bail;
use forager_core::url::{FetchUrl, IdentityOptions};
use forager_crawl::{Ended, Work};
use forager_frontier::catalog::{Change, Job, Limits, Steering};
use forager_frontier::entry::How;
use forager_frontier::verbs::{Action, Discovery, JobState, JobView, Link, NewJob, Page};
use forager_frontier::{Error, Frontier};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use crate::Outcome;
use crate::cli::CrawlArgs;
use crate::config::Config;
use crate::crawling::outlook::Outlook;
use crate::crawling::starts::left_out;
use crate::crawling::view::{Files, Starts, Summary, View};
use crate::crawling::{self, Crawl, Signals, StopsAt, recover, with_signals};
use crate::exit::Deserted;
use crate::journal::{self, Event, Level};
use crate::output::{self, Format, Output};
use crate::progress;
use crate::words::counted;
use end::End;

pub(super) fn run(args: &CrawlArgs) -> anyhow::Result<Outcome> {
    if args.dry_run {
        return rehearsal::show(args);
    }
    // A file that is new lacks nothing.
    let out = args.files.out.as_deref().filter(|path| path.is_file());
    let files = Files::open(&args.files)?;
    let crawled = with_signals(journal::stop_asked, async |signals| {
        let config = crawling::configured(Config::load(&args.place.config)?, &args.fetch);
        let traces = args.files.crawl_log.is_some();
        let urls = [&args.urls[..], &args.sitemap].concat();
        let crawl = Crawl::open(config, &args.place, &args.fetch, &urls, traces).await?;
        let crawled = crawl_job(args, &crawl, signals, files, out).await;
        crawl.close().await?;
        crawled
    })?;
    progress::finish();
    print(args, &crawled)?;
    crawled.end.tell(&crawled);
    Ok(crawled.end.outcome())
}

/// What came of a crawl.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Crawled {
    job: String,
    end: End,
    /// Pages that are still queued.
    left: u64,
    #[serde(flatten)]
    summary: Summary,
    /// What all processes that worked at the job have fetched, if this was not the only one: the summary is of the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    whole_job: Option<WholeJob>,
    /// The flags that name its queue.
    #[serde(skip)]
    place: String,
}

#[derive(Serialize)]
struct WholeJob {
    fetched: u64,
    bytes: u64,
}

async fn crawl_job(
    args: &CrawlArgs,
    crawl: &Crawl,
    signals: Signals,
    mut files: Files,
    out: Option<&Path>,
) -> anyhow::Result<Crawled> {
    let Entered { job, before } = enter(args, crawl).await?;
    let is_new = before.as_ref() != Some(&job.id);
    queue_sitemaps(args, &*crawl.frontier, &job.id, crawl.clock.now()).await?;
    if let (Some(path), Some(before)) = (out, before) {
        let is_over = before != job.id;
        files.make_up_for(&recover::missing(path, &*crawl.frontier, &before, is_over).await?)?;
    }
    let work = Work { collection: Some(job.id.clone()), until_done: true, until_idle: false };
    let outlook = Outlook::new(crawl.frontier.clone(), crawl.config.politeness, &job);
    let left_out = if is_new {
        left_out(&*crawl.frontier.catalog().await?, &job.id, crawl.clock.now())?
    } else {
        Vec::new()
    };
    files.leave_out(&left_out, crawl.clock.now())?;
    let mut view = View::new(files, (job.progress.queued, crawl.queued(Some(&job.id))), None, Some(outlook));
    for start in &left_out {
        // Where nothing else is left, they are named at the end.
        if job.progress.queued > 0 {
            start.tell();
        }
        view.leave_out(start);
    }
    let is_read = args.files.out.as_deref() == Some(Path::new("-"));
    let stop = signals.merged(StopsAt { reload: false, deserted: is_read });
    let (ended, view) = tokio::select! {
        done = crawl.crawler.run(work, stop, view) => done,
        failed = worked::keep_noting(crawl, &job.id) => return Err(failed),
    };
    let ended = ended?;
    worked::note(crawl, &job.id).await?;
    let is_deserted = view.is_deserted() || is_read && *signals.deserted.borrow();
    let summary = if is_deserted { view.leave() } else { view.finish(&signals.stop).await? };
    if is_deserted {
        output::complain(format_args!("{Deserted}"));
    }
    let jobs = crawl.frontier.jobs(crawl.clock.now()).await?;
    let Some(now) = jobs.iter().find(|known| known.id == job.id) else {
        bail!("the job {:?} is gone", job.id)
    };
    let starts = if job.progress.done == 0 { summary.starts() } else { Starts::Had };
    let is_refused =
        if starts == Starts::Had { summary.is_rest_refused() } else { starts == Starts::RateLimited };
    let end = match ended {
        // Whoever does not read to the end does not know what came of the rest.
        Ended::Stopped(stop) if is_deserted => End::Stopped(stop),
        ended => End::of(ended, now, starts, is_refused),
    };
    let (left, place, tally) = (now.progress.queued, args.place.flags(), now.progress.tally);
    let is_whole = is_new && (!crawl.is_shared() || tally.fetches <= summary.fetched);
    let whole_job = (!is_whole).then_some(WholeJob { fetched: tally.fetches, bytes: tally.bytes });
    Ok(Crawled { job: job.id, end, left, summary, whole_job, place })
}

/// Puts the sitemaps that were asked for into the queue, like those that robots.txt names: each as if it were found on
/// the page to start from whose host it is at, or else on the first. Those that are there already stay.
async fn queue_sitemaps(
    args: &CrawlArgs,
    frontier: &dyn Frontier,
    job: &str,
    now: Timestamp,
) -> anyhow::Result<()> {
    let starts = absolute(&args.urls)?;
    let host_of = |url: &str| FetchUrl::parse(url).map(|url| url.host_key().to_owned()).ok();
    let page = |url: String| {
        let start = starts.iter().find(|start| host_of(start) == host_of(&url)).unwrap_or(&starts[0]);
        let link = Link { url, how: How::Listing, ..Link::default() };
        let (source, seed) = (Some(start.clone()), Some(start.clone()));
        Page { collection: job.to_owned(), source, seed, depth: 0, links: vec![link] }
    };
    let sitemaps = absolute(&args.sitemap)?;
    let pages: Vec<Page> = sitemaps.iter().cloned().map(page).collect();
    let found = if pages.is_empty() { Vec::new() } else { frontier.discover(&pages, now).await? };
    for (url, Discovery { action, rule }) in sitemaps.iter().zip(found) {
        if matches!(action, Action::Ignored | Action::Invalid | Action::Removed) {
            output::complain(format_args!("the sitemap {url} is not read: {rule}"));
        }
    }
    Ok(())
}

/// The job of a command.
struct Entered {
    job: JobView,
    /// The last that was worked at before: the same, if it goes on.
    before: Option<String>,
}

async fn enter(args: &CrawlArgs, crawl: &Crawl) -> anyhow::Result<Entered> {
    match try_to_enter(args, crawl).await {
        // Another process has started it just now, and is joined.
        Err(error) if matches!(error.downcast_ref(), Some(Error::Exists { .. })) => {
            try_to_enter(args, crawl).await
        }
        entered => entered,
    }
}

/// Goes on with the last job of this command, or starts another one. One that ended at a limit goes on if the limit is
/// higher now, or gone; one that is over is not touched: the next one has a number.
async fn try_to_enter(args: &CrawlArgs, crawl: &Crawl) -> anyhow::Result<Entered> {
    let (frontier, now) = (&crawl.frontier, crawl.clock.now());
    let jobs = frontier.jobs(now).await?;
    let (last, id) = last_of(&jobs, &name(args)?);
    if let Some(job) = last {
        require_fit(args, &**frontier, job).await?;
    }
    let last = match last {
        Some(job) => Some((job, continued(args, &**frontier, job, now).await?)),
        None => None,
    };
    let job = match last {
        Some((job, continued)) if can_go_on(job, continued, now) => go_on(crawl, job, continued).await?,
        _ => {
            let job = frontier.start_job(&new_job(args, id)?, now).await?;
            asked::note(args, &**frontier, &job, now).await?;
            tell_started(&job, "crawling as");
            job
        }
    };
    Ok(Entered { job, before: last.map(|(job, _)| job.id.clone()) })
}

/// The last job of a name, of which all but the first have numbers; and the name of the next one.
fn last_of<'j>(jobs: &'j [JobView], name: &str) -> (Option<&'j JobView>, String) {
    let (mut id, mut last) = (name.to_owned(), None);
    for number in 2.. {
        let Some(job) = jobs.iter().find(|job| job.id == id) else { break };
        last = Some(job);
        id = format!("{name}-{number}");
    }
    (last, id)
}

/// Refuses a command for which the job of its name is not there: one that is not done is what it was started for, and one
/// that is paused waits for whoever paused it, whatever its limit.
async fn require_fit(args: &CrawlArgs, frontier: &dyn Frontier, job: &JobView) -> anyhow::Result<()> {
    if !is_open(job) {
        return Ok(());
    }
    asked::require_same(args, frontier, job).await?;
    if job.job.steering == Steering::Paused {
        let (id, place) = (&job.id, args.place.flags());
        bail!("the job {id:?} is paused; \"forager job resume {id}{place}\" lets it go on")
    }
    Ok(())
}

/// Whether a job has something left to do: it goes on, is paused, or stopped at a limit.
fn is_open(job: &JobView) -> bool {
    match job.state {
        JobState::Running | JobState::Paused | JobState::Limited => true,
        JobState::Finished | JobState::Cancelled => false,
    }
}

/// Whether a job has something left to do within these limits.
fn can_go_on(job: &JobView, continued: Job, now: Timestamp) -> bool {
    let tally = job.progress.tally;
    let Limits { pages, bytes, .. } = continued.limits;
    let is_within = pages.is_none_or(|pages| pages > tally.fetches)
        && bytes.is_none_or(|bytes| bytes > tally.bytes)
        && continued.time_ends().is_none_or(|end| end.timestamp() > now);
    job.state == JobState::Running || (job.state == JobState::Limited && is_within)
}

/// A job as this command goes on with it: within its limits, and without counting the time since it was last worked at.
async fn continued(
    args: &CrawlArgs,
    frontier: &dyn Frontier,
    job: &JobView,
    now: Timestamp,
) -> forager_frontier::Result<Job> {
    let idle = worked::idle(frontier, job, now).await?;
    Ok(Job { limits: limits(args), idle, ..job.job })
}

/// Goes on with a job, within the limits of this command.
async fn go_on(crawl: &Crawl, job: &JobView, continued: Job) -> anyhow::Result<JobView> {
    let (frontier, now) = (&crawl.frontier, crawl.clock.now());
    if job.job != continued {
        let catalog = frontier.catalog().await?;
        let mut spec = catalog.require_collection(&job.id)?.spec.clone();
        spec.job = Some(continued);
        frontier.configure(&[Change::SetCollection(spec)], now).await?;
    }
    let jobs = frontier.jobs(now).await?;
    let Some(job) = jobs.into_iter().find(|known| known.id == job.id) else {
        bail!("the job {:?} is gone", job.id)
    };
    tell_started(&job, "going on with");
    Ok(job)
}

fn tell_started(job: &JobView, how: &str) {
    let (id, queued) = (&job.id, job.progress.queued);
    let pages = counted(queued, "page", "pages");
    let message = format!("{how} job {id:?}, which is the name of its collection too: {pages} queued");
    journal::tell(Level::Info, Event::Started, &message, &json!({"job": id, "queued": queued}));
}

fn limits(args: &CrawlArgs) -> Limits {
    Limits { pages: args.limit, bytes: args.bytes, time: args.duration }
}

fn new_job(args: &CrawlArgs, id: String) -> anyhow::Result<NewJob> {
    let profile = args.harvest.profile(&id, &id);
    Ok(NewJob { id, urls: absolute(&args.urls)?, profile, limits: limits(args) })
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
    let sitemaps = match &absolute(&args.sitemap)?[..] {
        [] => String::new(),
        some => format!(" {some:?}"),
    };
    let told_apart =
        forager_fetch::fingerprint::Fingerprint::of_bytes(format!("{urls:?} {profile}{sitemaps}").as_bytes());
    Ok(format!("{host}-{}", &told_apart.exact[..6]))
}

fn print(args: &CrawlArgs, crawled: &Crawled) -> anyhow::Result<()> {
    if args.files.out.as_deref() == Some(Path::new("-")) {
        return journal::summary(crawled, args.json); // the lines are the output
    }
    let mut output = Output::new(if args.json { Format::Jsonl } else { Format::Table }, &[]);
    output.sheet(crawled)?;
    output.flush()
}
