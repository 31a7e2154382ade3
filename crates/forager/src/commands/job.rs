//! `forager job`

use anyhow::bail;
use forager_frontier::Frontier as _;
use forager_frontier::catalog::Limits;
use forager_frontier::verbs::{JobView, NewJob, Steer};

use super::seeds;
use crate::Outcome;
use crate::cli::{JobArgs, JobCommand, JobStartArgs, StoreArgs};
use crate::output::Output;
use crate::store::{self, Missing};

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

pub(super) fn run(command: &JobCommand) -> anyhow::Result<Outcome> {
    match command {
        JobCommand::Start(args) => start(args),
        JobCommand::List(args) => {
            let jobs = jobs(args)?;
            let mut output = Output::new(args.format(), COLUMNS);
            jobs.iter().try_for_each(|job| output.row(job))?;
            output.flush()?;
            Ok(Outcome::Complete)
        }
        JobCommand::Show(args) => match jobs(&args.store)?.iter().find(|job| job.id == args.name) {
            Some(job) => show(&args.store, job),
            None => bail!("there is no job {:?}", args.name),
        },
        JobCommand::Pause(args) => steer(args, Steer::Pause),
        JobCommand::Resume(args) => steer(args, Steer::Resume),
        JobCommand::Cancel(args) => steer(args, Steer::Cancel),
    }
}

fn start(args: &JobStartArgs) -> anyhow::Result<Outcome> {
    let job = NewJob {
        id: args.name.clone(),
        urls: args.urls.clone(),
        profile: args.harvest.profile(&args.name, &args.name),
        limits: Limits { pages: args.pages, bytes: args.bytes, time: args.duration },
    };
    seeds::check_once("seed", &args.urls, seeds::key_of)?;
    store::rehearse(&args.store, |memory, now| store::ask(memory.start_job(&job, now)).map(drop))?;
    let view = store::with(&args.store, Missing::Create, |store| {
        store::ask(store.frontier.start_job(&job, store.now))
    })?;
    show(&args.store, &view)
}

fn jobs(args: &StoreArgs) -> anyhow::Result<Vec<JobView>> {
    store::with(args, Missing::Refuse, |store| store::ask(store.frontier.jobs(store.now)))
}

fn steer(args: &JobArgs, steer: Steer) -> anyhow::Result<Outcome> {
    let view = store::with(&args.store, Missing::Refuse, |store| {
        store::ask(store.frontier.steer_job(&args.name, steer, store.now))
    })?;
    show(&args.store, &view)
}

fn show(args: &StoreArgs, job: &JobView) -> anyhow::Result<Outcome> {
    let mut output = Output::new(args.format(), &[]);
    output.sheet(job)?;
    output.flush()?;
    Ok(Outcome::Complete)
}
