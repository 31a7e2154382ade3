//! What a crawl would do, by the same configuration and the same checks, and without asking anybody.

use forager_core::url::FetchUrl;
use forager_fetch::http::HttpConfig;
use forager_frontier::verbs::{PlanFilter, Planned};
use forager_frontier::{Frontier, Memory};
use jiff::Timestamp;
use serde::Serialize;

use super::{can_go_on, continued, last_of, name, new_job, queue_sitemaps};
use crate::Outcome;
use crate::cli::CrawlArgs;
use crate::config::Config;
use crate::crawling::starts::left_out;
use crate::crawling::{self, Prepared};
use crate::output::{self, Format, Output};
use crate::store::Queue;
use crate::words::counted;
use crate::{runtime, store};

/// How many pages a dry run shows.
const PLANNED: usize = 1000;

/// A page that would be fetched, and why then.
#[derive(Serialize)]
struct Rehearsed<'a> {
    #[serde(flatten)]
    planned: &'a Planned,
    why: Vec<String>,
}

/// What was shown.
#[derive(Default)]
struct Shown {
    pages: usize,
    /// Pages that would not be fetched, each of which was named.
    left_out: usize,
}

/// Shows what would be fetched first: of the job that the command would go on with, or else of one that is thrown away.
pub(super) fn show(args: &CrawlArgs) -> anyhow::Result<Outcome> {
    let config = crawling::configured(Config::load(&args.place.config)?, &args.fetch);
    let urls = [&args.urls[..], &args.sitemap].concat();
    let Prepared { config, http, .. } = Prepared::new(config, &args.place, &args.fetch, &urls)?;
    let now = Timestamp::now();
    let mut shown = None;
    if store::is_there(&args.place)? {
        let queue = runtime::wait(Queue::open(&args.place, &config))??;
        let frontier = queue.frontier();
        let last = show_last(args, &*frontier, &http, now);
        drop(frontier);
        runtime::wait(queue.close())??;
        shown = last?;
    }
    let shown = match shown {
        Some(shown) => shown,
        None => show_new(args, &Memory::new(config.settings())?, &http, now)?,
    };
    let is_nothing = shown.pages == 0 && shown.left_out > 0;
    Ok(if is_nothing { Outcome::Forbidden } else { Outcome::Complete })
}

/// Shows how a new job would begin.
fn show_new(args: &CrawlArgs, frontier: &Memory, http: &HttpConfig, now: Timestamp) -> anyhow::Result<Shown> {
    let name = name(args)?;
    store::ask(frontier.start_job(&new_job(args, name.clone())?, now))?;
    runtime::wait(queue_sitemaps(args, frontier, &name, now))??;
    let left_out = left_out(&*store::ask(frontier.catalog())?, &name, now)?;
    for start in &left_out {
        start.tell();
    }
    let shown = show_plan(args, (frontier, http), (&name, usize::MAX), now)?;
    Ok(Shown { left_out: shown.left_out + left_out.len(), ..shown })
}

/// Shows what is left of the last job, if the command would go on with it.
fn show_last(
    args: &CrawlArgs,
    frontier: &dyn Frontier,
    http: &HttpConfig,
    now: Timestamp,
) -> anyhow::Result<Option<Shown>> {
    let jobs = store::ask(frontier.jobs(now))?;
    let (Some(job), _) = last_of(&jobs, &name(args)?) else { return Ok(None) };
    let continued = store::ask(continued(args, frontier, job, now))?;
    if !can_go_on(job, continued, now) {
        return Ok(None);
    }
    let pages = counted(job.progress.queued, "page", "pages");
    output::tell(format_args!("it would go on with job {:?}: {pages} queued", job.id));
    let left = continued.limits.pages.map(|pages| pages.saturating_sub(job.progress.tally.fetches));
    let most = left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
    show_plan(args, (frontier, http), (&job.id, most), now).map(Some)
}

fn show_plan(
    args: &CrawlArgs,
    (frontier, http): (&dyn Frontier, &HttpConfig),
    (collection, most): (&str, usize),
    now: Timestamp,
) -> anyhow::Result<Shown> {
    let limit = most.min(PLANNED);
    let filter = PlanFilter { collection: Some(collection.to_owned()), limit, ..PlanFilter::default() };
    let plan = store::ask(frontier.plan(&filter, now))?;
    let format = if args.json { Format::Jsonl } else { Format::Auto };
    let mut output = Output::new(format, &["at", "priority", "url", "waitsFor", "why"]);
    let mut shown = Shown::default();
    for planned in &plan {
        let host = FetchUrl::parse(&planned.url).map(|url| url.host_key().to_owned()).unwrap_or_default();
        if let Some(refused) = http.refuses(&host) {
            output::complain(format_args!("{} is not fetched: {refused}", planned.url));
            shown.left_out += 1;
            continue;
        }
        let explained = store::ask(frontier.explain(collection, None, &planned.url, now))?;
        let why = [explained.scope.rule].into_iter().chain(explained.priority.terms).collect();
        output.row(&Rehearsed { planned, why })?;
        shown.pages += 1;
    }
    output.flush()?;
    Ok(shown)
}
