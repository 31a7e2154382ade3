//! `forager job`

use anyhow::anyhow;
use forager_core::hierarchy::{ClaimOrder, Priority};
use forager_core::top::Top;
use forager_core::url::FetchUrl;
use forager_frontier::Frontier as _;
use forager_frontier::catalog::{Catalog, Limits};
use forager_frontier::entry::{How, State};
use forager_frontier::verbs::{EntryView, JobView, ListFilter, NewJob, Stats, Steer};
use serde::Serialize;

use super::seeds;
use crate::Outcome;
use crate::cli::{JobArgs, JobCommand, JobCreateArgs, JobPagesArgs, StoreArgs};
use crate::output::Output;
use crate::store::{self, Missing, Store};

const COLUMNS: &[&str] = &[
    "id",
    "state",
    "order",
    "started",
    "progress.queued",
    "progress.inFlight",
    "progress.done",
    "progress.failed",
    "progress.skipped",
];

const PAGE_COLUMNS: &[&str] = &["rank", "priority", "state", "url", "depth", "how", "source"];

/// How many pages are read at a time.
const AT_A_TIME: usize = 1000;

pub(super) fn run(command: &JobCommand) -> anyhow::Result<Outcome> {
    match command {
        JobCommand::Create(args) => create(args),
        JobCommand::List(args) => {
            let jobs = jobs(args)?;
            let mut output = Output::new(args.format(), COLUMNS);
            jobs.iter().try_for_each(|job| output.row(job))?;
            output.flush()?;
            Ok(Outcome::Complete)
        }
        JobCommand::Show(args) => {
            let job = store::with(&args.store, Missing::Refuse, |store| find(store, &args.name))?;
            show(&args.store, &job)
        }
        JobCommand::Pages(args) => pages(args),
        JobCommand::Pause(args) => steer(args, Steer::Pause),
        JobCommand::Resume(args) => steer(args, Steer::Resume),
        JobCommand::Cancel(args) => steer(args, Steer::Cancel),
    }
}

fn create(args: &JobCreateArgs) -> anyhow::Result<Outcome> {
    seeds::check_once("seed", &args.urls, seeds::key_of)?;
    store::rehearse(&args.store, |memory, now| {
        let catalog = store::ask(memory.catalog())?;
        let job = new_job(args, &catalog)?;
        store::ask(memory.start_job(&job, now)).map(drop)
    })?;
    let view = store::with(&args.store, Missing::Create, |store| {
        let catalog = store::ask(store.frontier.catalog())?;
        let job = new_job(args, &catalog)?;
        store::ask(store.frontier.start_job(&job, store.now()))
    })?;
    show(&args.store, &view)
}

fn new_job(args: &JobCreateArgs, catalog: &Catalog) -> anyhow::Result<NewJob> {
    let id = match &args.name {
        Some(name) => name.clone(),
        None => free_name(FetchUrl::parse(&args.urls[0])?.host(), catalog),
    };
    Ok(NewJob {
        urls: args.urls.clone(),
        profile: args.harvest.profile(&id, &id),
        limits: Limits { pages: args.pages, bytes: args.bytes, time: args.duration },
        id,
    })
}

/// The name, or the first one with a number that no collection and no profile has.
fn free_name(name: &str, catalog: &Catalog) -> String {
    let is_free = |name: &String| {
        let is_profile = catalog.rows().profiles.iter().any(|profile| profile.id == *name);
        !is_profile && catalog.collection(name).is_none()
    };
    let numbered = (2_u32..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

/// A page of a job.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ranked {
    rank: u64,
    priority: Priority,
    state: State,
    url: String,
    depth: u32,
    how: How,
    source: Option<String>,
}

impl Ranked {
    fn of(entry: EntryView, total_pages: u64) -> Self {
        Self {
            rank: entry.worth.rank(total_pages),
            priority: entry.priority,
            state: entry.state,
            url: entry.url,
            depth: entry.depth,
            how: entry.record.origin.how,
            source: entry.source,
        }
    }
}

fn pages(args: &JobPagesArgs) -> anyhow::Result<Outcome> {
    let mut best = Top::new(args.limit.unwrap_or(usize::MAX));
    store::with(&args.store, Missing::Refuse, |store| {
        let Stats { queued, in_flight, done, failed, .. } = find(store, &args.name)?.progress;
        let (total, now) = (queued + in_flight + done + failed, store.now());
        let mut filter =
            ListFilter { collection: Some(args.name.clone()), limit: AT_A_TIME, ..ListFilter::default() };
        loop {
            let listed = store::ask(store.frontier.list(&filter, now))?;
            for entry in listed.entries {
                let created = entry.record.origin.created;
                let place = ClaimOrder::new(entry.worth, created, u64::from(entry.id.0));
                if best.would_keep(&place) {
                    best.push(place, Ranked::of(entry, total));
                }
            }
            filter.after = listed.next;
            if filter.after.is_none() {
                return Ok(());
            }
        }
    })?;
    let mut output = Output::new(args.store.format(), PAGE_COLUMNS);
    best.into_sorted().iter().try_for_each(|(_, page)| output.row(page))?;
    output.flush()?;
    Ok(Outcome::Complete)
}

fn find(store: &Store, name: &str) -> anyhow::Result<JobView> {
    let jobs = store::ask(store.frontier.jobs(store.now()))?;
    jobs.into_iter().find(|job| job.id == name).ok_or_else(|| anyhow!("there is no job {name:?}"))
}

fn jobs(args: &StoreArgs) -> anyhow::Result<Vec<JobView>> {
    store::with(args, Missing::Refuse, |store| store::ask(store.frontier.jobs(store.now())))
}

fn steer(args: &JobArgs, steer: Steer) -> anyhow::Result<Outcome> {
    let view = store::with(&args.store, Missing::Refuse, |store| {
        store::ask(store.frontier.steer_job(&args.name, steer, store.now()))
    })?;
    show(&args.store, &view)
}

fn show(args: &StoreArgs, job: &JobView) -> anyhow::Result<Outcome> {
    let mut output = Output::new(args.format(), &[]);
    output.sheet(job)?;
    output.flush()?;
    Ok(Outcome::Complete)
}
