//! Jobs: collections that end.

use forager_core::scope::Seed;
use forager_core::time::Interval;
use forager_core::url::Identity;

use super::catalog::{replace, start};
use super::lease::remaining;
use super::read::stats_of;
use super::{HostCounts, Tx, settle};
use crate::catalog::{Catalog, Change, CollectionRow, CollectionSpec, Draft, Job, Kind, Steering};
use crate::entry::CollectionId;
use crate::error::{Error, Result};
use crate::moment::Moment;
use crate::verbs::{Event, JobState, JobView, NewJob, Steer, Target};

/// Starts a job: a collection, a profile and seeds of its own.
pub(crate) fn start_job<T: Tx>(tx: &mut T, job: &NewJob, now: Moment) -> Result<JobView> {
    if job.urls.is_empty() {
        return Err(Error::Configuration(format!("job {:?} has no URL to start from", job.id)));
    }
    let mut draft = Draft::of(tx.catalog().rows());
    let (limits, idle) = (job.limits, Interval::default());
    let state = Job { started: now, steering: Steering::Running, finished: None, limits, idle };
    let spec = CollectionSpec { job: Some(state), ..CollectionSpec::new(&job.id, Kind::Planned) };
    let mut profile = job.profile.clone();
    (profile.id, profile.collection) = (job.id.clone(), job.id.clone());
    profile.length = profile.length.or(Some(1));
    draft.apply(&Change::AddCollection(spec))?;
    draft.apply(&Change::AddProfile(Box::new(profile)))?;
    for url in &job.urls {
        draft.apply(&seed_of(tx.catalog(), &job.id, url)?)?;
    }
    replace(tx, draft.finish())?;
    start(tx, &[Target::Collection(job.id.clone())], now)?;
    note_ends(tx, now)?; // its limits, or its scope, may leave nothing to fetch
    view_of(tx, &job.id, now)
}

/// A seed that is there already is harvested under one more profile.
fn seed_of(catalog: &Catalog, job: &str, url: &str) -> Result<Change> {
    let identity = Identity::parse(url).map_err(|cause| Error::Configuration(cause.to_string()))?;
    let known = catalog.seed_number(&identity).and_then(|number| catalog.seed(number));
    Ok(match known {
        Some(row) if !row.seed.enabled => {
            let problem = format!("seed {url:?} is disabled, so that the job would wait; enable it first");
            return Err(Error::Configuration(problem));
        }
        Some(row) => {
            let mut seed = row.seed.clone();
            seed.profiles.push(job.to_owned());
            Change::SetSeed(seed)
        }
        None => Change::AddSeed(Seed { url: url.to_owned(), profiles: vec![job.to_owned()], enabled: true }),
    })
}

/// Pauses, resumes or cancels a job.
pub(crate) fn steer_job<T: Tx>(tx: &mut T, id: &str, steer: Steer, now: Moment) -> Result<JobView> {
    let mut spec = require_job(tx.catalog(), id)?.spec.clone();
    settle(tx, now)?;
    if let Some(job) = &mut spec.job {
        if job.steering == Steering::Cancelled {
            return Err(Error::Configuration(format!("job {id:?} is cancelled; start another one")));
        }
        job.steering = match steer {
            Steer::Pause => Steering::Paused,
            Steer::Resume => Steering::Running,
            Steer::Cancel => Steering::Cancelled,
        };
    }
    let mut draft = Draft::of(tx.catalog().rows());
    draft.apply(&Change::SetCollection(spec))?;
    replace(tx, draft.finish())?;
    note_ends(tx, now)?;
    view_of(tx, id, now)
}

/// All jobs and how far they are.
pub(crate) fn jobs<T: Tx>(tx: &mut T, now: Moment) -> Result<Vec<JobView>> {
    settle(tx, now)?;
    note_ends(tx, now)?;
    let catalog = tx.catalog().clone();
    let jobs = catalog.rows().collections.iter().filter_map(|row| Some((row, row.spec.job?)));
    let jobs: Vec<(&CollectionRow, Job)> = jobs.collect();
    let numbers: Vec<CollectionId> = jobs.iter().map(|(row, _)| row.number).collect();
    let hosts = tx.hosts_of(&numbers);
    Ok(jobs.into_iter().map(|job| view(tx, &catalog, job, &hosts, now)).collect())
}

fn require_job<'c>(catalog: &'c Catalog, id: &str) -> Result<&'c CollectionRow> {
    let row = catalog.collection(id).filter(|row| row.spec.job.is_some());
    row.ok_or_else(|| Error::not_found("job", id))
}

fn view_of<T: Tx>(tx: &T, id: &str, now: Moment) -> Result<JobView> {
    let catalog = tx.catalog().clone();
    let row = require_job(&catalog, id)?;
    let job = row.spec.job.ok_or_else(|| Error::not_found("job", id))?;
    Ok(view(tx, &catalog, (row, job), &tx.hosts_of(&[row.number]), now))
}

fn view<T: Tx>(
    tx: &T,
    catalog: &Catalog,
    (row, job): (&CollectionRow, Job),
    hosts: &HostCounts,
    now: Moment,
) -> JobView {
    let profile = catalog.rows().profiles.iter().find(|profile| profile.collection == row.spec.id);
    JobView {
        id: row.spec.id.clone(),
        state: state(tx, row, job, now),
        order: profile.map(|profile| profile.order).unwrap_or_default(),
        job,
        progress: stats_of(tx, row, hosts),
    }
}

fn state<T: Tx>(tx: &T, row: &CollectionRow, job: Job, now: Moment) -> JobState {
    match job.steering {
        Steering::Cancelled => JobState::Cancelled,
        _ if is_finished(tx, row, now) && tx.counts(row.number)[0] > 0 => JobState::Limited,
        _ if is_finished(tx, row, now) => JobState::Finished,
        Steering::Paused => JobState::Paused,
        Steering::Running => JobState::Running,
    }
}

/// Whether nothing is under way and nothing more is handed out.
fn is_finished<T: Tx>(tx: &T, row: &CollectionRow, now: Moment) -> bool {
    let [queued, in_flight, ..] = tx.counts(row.number);
    in_flight == 0 && (queued == 0 || remaining(tx, row, now) == 0)
}

/// Says so in the log when a job has ended, however that came about. What a page links to has to be
/// discovered before the page is completed, or the job looks finished in between.
pub(super) fn note_ends<T: Tx>(tx: &mut T, now: Moment) -> Result<()> {
    let catalog = tx.catalog().clone();
    let is_news = |row: &&CollectionRow| {
        let job = row.spec.job.filter(|job| job.steering != Steering::Cancelled);
        job.is_some_and(|job| job.finished.is_some() != is_finished(tx, row, now))
    };
    let news: Vec<&CollectionRow> = catalog.rows().collections.iter().filter(is_news).collect();
    if news.is_empty() {
        return Ok(());
    }
    let mut draft = Draft::of(catalog.rows());
    for row in news {
        let mut spec = row.spec.clone();
        if let Some(job) = &mut spec.job {
            job.finished = if job.finished.is_none() { Some(now) } else { None };
            if job.finished.is_some() {
                tx.emit(now, &spec.id, &spec.id, Event::Finished);
            }
        }
        draft.apply(&Change::SetCollection(spec))?;
    }
    replace(tx, draft.finish())
}
