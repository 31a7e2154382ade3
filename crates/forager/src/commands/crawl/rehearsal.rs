//! What a crawl would do, by the same configuration and the same checks, and without asking anybody.

use forager_core::url::FetchUrl;
use forager_crawl::NotFetched;
use forager_crawl::robots::{self, Word};
use forager_fetch::http::HttpConfig;
use forager_frontier::verbs::{PlanFilter, Planned, Stats};
use forager_frontier::{Frontier, Memory, Moment};
use jiff::Timestamp;
use serde::Serialize;

use super::{can_go_on, continued, last_of, name, new_job, queue_sitemaps, require_fit};
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

/// What is shown, and by what.
struct Rehearsal<'a> {
    args: &'a CrawlArgs,
    http: HttpConfig,
    product_token: String,
    now: Timestamp,
}

/// Shows what would be fetched first: of the job that the command would go on with, or else of one that is thrown away.
pub(super) fn show(args: &CrawlArgs) -> anyhow::Result<Outcome> {
    let config = crawling::configured(Config::load(&args.place.config)?, &args.fetch);
    let product_token = config.fetch.product_token();
    let urls = [&args.urls[..], &args.sitemap].concat();
    let Prepared { config, http, .. } = Prepared::new(config, &args.place, &args.fetch, &urls)?;
    let rehearsal = Rehearsal { args, http, product_token, now: Timestamp::now() };
    let memory = Memory::new(config.settings())?;
    let shown = if store::is_there(&args.place)? {
        let queue = runtime::wait(Queue::open(&args.place, &config))??;
        let frontier = queue.frontier();
        let shown = rehearsal.last_or_new(&*frontier, &memory);
        drop(frontier);
        runtime::wait(queue.close())??;
        shown?
    } else {
        rehearsal.new_job(&memory, &memory)?
    };
    let is_nothing = shown.pages == 0 && shown.left_out > 0;
    Ok(if is_nothing { Outcome::Forbidden } else { Outcome::Complete })
}

impl Rehearsal<'_> {
    fn last_or_new(&self, frontier: &dyn Frontier, memory: &Memory) -> anyhow::Result<Shown> {
        match self.last_job(frontier)? {
            Some(shown) => Ok(shown),
            None => self.new_job(memory, frontier),
        }
    }

    /// Shows how a new job would begin, by what the queue knows of robots.txt.
    fn new_job(&self, memory: &Memory, queue: &dyn Frontier) -> anyhow::Result<Shown> {
        let (args, now) = (self.args, self.now);
        let name = name(args)?;
        store::ask(memory.start_job(&new_job(args, name.clone())?, now))?;
        runtime::wait(queue_sitemaps(args, memory, &name, now))??;
        let left_out = left_out(&*store::ask(memory.catalog())?, &name, now)?;
        for start in &left_out {
            start.tell();
        }
        let most = args.limit.unwrap_or(u64::MAX);
        let shown = self.plan(memory, queue, (&name, most))?;
        Ok(Shown { left_out: shown.left_out + left_out.len(), ..shown })
    }

    /// Shows what is left of the last job, if the command would go on with it.
    fn last_job(&self, frontier: &dyn Frontier) -> anyhow::Result<Option<Shown>> {
        let (args, now) = (self.args, self.now);
        let jobs = store::ask(frontier.jobs(now))?;
        let (Some(job), _) = last_of(&jobs, &name(args)?) else { return Ok(None) };
        runtime::wait(require_fit(args, frontier, job))??;
        let continued = store::ask(continued(args, frontier, job, now))?;
        if !can_go_on(job, continued, now) {
            return Ok(None);
        }
        let Stats { queued, done, tally, .. } = &job.progress;
        let pages = counted(*queued, "page", "pages");
        output::tell(format_args!("it would go on with job {:?}: {pages} queued", job.id));
        let most = continued.limits.pages.map_or(u64::MAX, |pages| pages.saturating_sub(tally.fetches));
        let shown = self.plan(frontier, frontier, (&job.id, most))?;
        // What was had is not undone by pages that are not.
        Ok(Some(if *done > 0 { Shown { left_out: 0, ..shown } } else { shown }))
    }

    /// Shows so many pages of a collection that would be fetched, and names those that would not.
    fn plan(
        &self,
        frontier: &dyn Frontier,
        queue: &dyn Frontier,
        (collection, most): (&str, u64),
    ) -> anyhow::Result<Shown> {
        let filter =
            PlanFilter { collection: Some(collection.to_owned()), limit: PLANNED, ..PlanFilter::default() };
        let plan = store::ask(frontier.plan(&filter, self.now))?;
        let format = if self.args.json { Format::Jsonl } else { Format::Auto };
        let mut output = Output::new(format, &["at", "priority", "url", "waitsFor", "why"]);
        let mut shown = Shown::default();
        for planned in &plan {
            if shown.pages as u64 >= most {
                break;
            }
            if let Some(why) = self.obstacle(queue, &planned.url)? {
                output::complain(format_args!("{} is not fetched: {why}", planned.url));
                shown.left_out += 1;
                continue;
            }
            let explained = store::ask(frontier.explain(collection, None, &planned.url, self.now))?;
            let why = [explained.scope.rule].into_iter().chain(explained.priority.terms).collect();
            output.row(&Rehearsed { planned, why })?;
            shown.pages += 1;
        }
        output.flush()?;
        Ok(shown)
    }

    /// Why a page would not be fetched, as far as that is known without asking anybody: its address is refused, or the copy
    /// of its robots.txt that still counts forbids it.
    fn obstacle(&self, queue: &dyn Frontier, url: &str) -> anyhow::Result<Option<String>> {
        let Ok(url) = FetchUrl::parse(url) else { return Ok(None) };
        if let Some(refused) = self.http.refuses(url.host_key()) {
            return Ok(Some(refused.to_string()));
        }
        let word = runtime::wait(robots::known(queue, &url, &self.product_token))??;
        let counts = |word: &Word| word.expires > Moment::of(self.now) && !word.is_out_of_reach;
        let word = word.filter(|word| !word.allowed && counts(word));
        Ok(word.map(|Word { source, rule, expires, .. }| {
            format!("{}: {rule}; {source} counts until {expires}", NotFetched::Robots)
        }))
    }
}
