//! Whether calls are answered, as it is told to whoever looks after the server.
//!
//! The queue is asked now and then, since a server that is said not to be ready has no calls by which it could find out
//! that it is again.

use std::future::pending;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use forager_frontier::Result;
use tokio::spawn;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::limits::PATIENCE;
use crate::proto::url_frontier_server::SERVICE_NAME;
use crate::shared::Shared;

/// How often the queue is asked while it answers, and while it does not.
const WHILE_WELL: Duration = Duration::from_secs(3);
const WHILE_AWAY: Duration = Duration::from_secs(1);

/// Tells whether calls are answered.
pub(crate) struct Readiness {
    shared: Arc<Shared>,
    health: HealthReporter,
}

impl Readiness {
    pub(crate) fn new(shared: Arc<Shared>, health: HealthReporter) -> Self {
        Self { shared, health }
    }

    /// Has those who watch learn how it is.
    pub(crate) async fn tell(&self, is_ready: bool) {
        self.shared.metrics.is_ready.store(is_ready, Ordering::Relaxed);
        let status = if is_ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        self.health.set_service_status("", status).await;
        self.health.set_service_status(SERVICE_NAME, status).await;
    }

    /// Asks the queue, as long as it is let, and tells when it goes away and when it is back.
    pub(crate) async fn follow(&self) {
        let mut is_well = true;
        loop {
            sleep(if is_well { WHILE_WELL } else { WHILE_AWAY }).await;
            let problem = self.problem().await;
            if problem.is_none() == is_well {
                continue;
            }
            is_well = problem.is_none();
            let words = problem.unwrap_or_else(|| "the queue answers again".to_owned());
            (self.shared.options.complain)(&words);
            self.tell(is_well).await;
        }
    }

    /// Why the queue does not answer; none if it does.
    async fn problem(&self) -> Option<String> {
        match timeout(PATIENCE, self.ask()).await {
            Ok(Ok(())) => None,
            // The server ends by that, and says so itself.
            Ok(Err(error)) if self.shared.learn(&error) => pending().await,
            Ok(Err(error)) => Some(format!("not ready until the queue answers: {error}")),
            Err(_) => Some("not ready until the queue answers".to_owned()),
        }
    }

    /// Asks the queue on another thread, if there is one: one in a folder keeps the thread until it has answered, and
    /// whether the server is to stop is looked for on this one.
    async fn ask(&self) -> Result<()> {
        let frontier = self.shared.frontier.clone();
        let asked = AbortOnDropHandle::new(spawn(async move { frontier.catalog().await.map(drop) }));
        asked.await.unwrap_or_else(|failed| resume_unwind(failed.into_panic()))
    }
}
