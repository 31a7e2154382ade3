//! What is queued, as the queue says: where several processes work at it, none of them can count that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use forager_frontier::Frontier;
use forager_frontier::verbs::{JobState, Stats};
use jiff::Timestamp;

use crate::store;

/// For how long an answer is good.
const GOOD_FOR: Duration = Duration::from_secs(5);

/// How long the last answer may take.
const AT_THE_END: Duration = Duration::from_secs(1);

/// Asks how much is queued.
#[derive(Clone)]
pub(crate) struct Queued {
    frontier: Arc<dyn Frontier>,
    /// In this collection only.
    collection: Option<String>,
    asked: Option<Instant>,
}

impl Queued {
    pub(crate) fn new(frontier: Arc<dyn Frontier>, collection: Option<String>) -> Self {
        Self { frontier, collection, asked: None }
    }

    /// How much is queued, or under way somewhere, if it is time to ask. Whoever cannot be asked has nothing to tell.
    pub(crate) fn look(&mut self) -> Option<u64> {
        if self.asked.is_some_and(|asked| asked.elapsed() < GOOD_FOR) {
            return None;
        }
        let queued = store::glance(self.count());
        self.asked = Some(Instant::now());
        queued
    }

    /// The same once more, if there is an answer at once.
    pub(crate) async fn at_the_end(&self) -> Option<u64> {
        tokio::time::timeout(AT_THE_END, self.count()).await.ok()?.ok()
    }

    async fn count(&self) -> forager_frontier::Result<u64> {
        let crawled = crawled(&*self.frontier, self.collection.as_deref(), Timestamp::now()).await?;
        Ok(crawled.iter().map(|stats| stats.queued + stats.in_flight).sum())
    }
}

/// The collections that are crawled, all or one: not those that are disabled, nor those of jobs that are over, at their limit
/// or paused.
pub(crate) async fn crawled(
    frontier: &dyn Frontier,
    collection: Option<&str>,
    now: Timestamp,
) -> forager_frontier::Result<Vec<Stats>> {
    let (catalog, jobs) = (frontier.catalog().await?, frontier.jobs(now).await?);
    let rests = |id: &str| {
        let is_disabled = catalog.collection(id).is_some_and(|row| !row.spec.enabled);
        is_disabled || jobs.iter().any(|job| job.id == id && job.state != JobState::Running)
    };
    let stats = frontier.stats(collection, now).await?;
    Ok(stats.into_iter().filter(|stats| !rests(&stats.collection)).collect())
}
