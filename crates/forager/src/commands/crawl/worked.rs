//! When a job was last worked at: a limit of time counts work, and not the nights between.

use std::time::Duration;

use forager_core::time::Interval;
use forager_frontier::verbs::{JobView, Note};
use forager_frontier::{Frontier, Moment};
use jiff::Timestamp;

use crate::crawling::Crawl;

/// How often it is noted: a process that is killed is taken to have worked so much longer or shorter.
const EVERY: Duration = Duration::from_secs(5);

fn key(job: &str) -> String {
    format!("worked {job}")
}

/// Notes that a job is worked at now.
pub(super) async fn note(crawl: &Crawl, job: &str) -> anyhow::Result<()> {
    let now = crawl.clock.now();
    let value = Moment::of(now).millisecond().to_string().into_bytes();
    Ok(crawl.frontier.note(&[Note::Keep(key(job), Some(value))], now).await?)
}

/// Notes it from time to time, until that fails.
pub(super) async fn keep_noting(crawl: &Crawl, job: &str) -> anyhow::Error {
    loop {
        if let Err(cause) = note(crawl, job).await {
            return cause;
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// How long nobody has worked at a job altogether, if this command begins to now.
pub(super) async fn idle(
    frontier: &dyn Frontier,
    job: &JobView,
    now: Timestamp,
) -> forager_frontier::Result<Interval> {
    let noted = frontier.noted(&[key(&job.id)]).await?.pop().flatten();
    let last =
        noted.and_then(|value| String::from_utf8(value).ok()?.parse().ok()).map(Moment::from_millisecond);
    // One of the same name may have been there before.
    let Some(last) = last.map(|last| last.max(job.job.started)) else { return Ok(job.job.idle) };
    let since = now.duration_since(last.timestamp()).as_secs_f64();
    Ok(Interval::from_secs_f64(job.job.idle.as_secs_f64() + since.max(0.0)))
}
