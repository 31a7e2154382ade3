//! Whether calls are answered, as it is told to whoever looks after the server.
//!
//! The queue is asked now and then, since a server that is said not to be ready has no calls by which it could find out
//! that it is again. One in a folder keeps the thread that asks until it has answered, and where its disk stalls those of
//! all calls. So it is asked on a thread for that alone, with a clock that none of them holds up.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use forager_frontier::Error;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{sleep, timeout};
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

    /// Asks the queue, and tells when it goes away and when it is back, until what is returned is dropped.
    pub(crate) fn follow(self: &Arc<Self>) -> io::Result<Following> {
        let aside = Builder::new_multi_thread().worker_threads(1).enable_time().build()?;
        let (this, calls) = (self.clone(), Handle::current());
        let task = aside.spawn(async move { this.ask_on(calls).await });
        Ok(Following { aside: Some(aside), task })
    }

    async fn ask_on(&self, calls: Handle) {
        let (mut is_well, mut question) = (true, None);
        loop {
            sleep(if is_well { WHILE_WELL } else { WHILE_AWAY }).await;
            let problem = self.problem(&mut question, &calls).await;
            if problem.is_none() == is_well {
                continue;
            }
            is_well = problem.is_none();
            let words = problem.unwrap_or_else(|| "the queue answers again".to_owned());
            (self.shared.options.complain)(&words);
            self.tell(is_well).await;
        }
    }

    /// Why the queue does not answer; none if it does. A question that it has not answered yet is not asked again: each
    /// would keep a thread.
    async fn problem(&self, question: &mut Option<Question>, calls: &Handle) -> Option<String> {
        let asked = question.get_or_insert_with(|| self.ask(calls.clone()));
        let answer = timeout(PATIENCE, asked).await;
        if answer.is_ok() {
            *question = None;
        }
        match answer {
            Ok(Ok(Some(Ok(())))) => None,
            // The server ends by that, and says so itself.
            Ok(Ok(Some(Err(error)))) if self.shared.learn(&error) => pending().await,
            Ok(Ok(Some(Err(error)))) => Some(format!("not ready until the queue answers: {error}")),
            _ => Some("not ready until the queue answers".to_owned()),
        }
    }

    /// Asks the queue, which may need what the calls are answered with. One that is waited for lets itself be given up.
    fn ask(&self, calls: Handle) -> Question {
        let frontier = self.shared.frontier.clone();
        let asked =
            async move { timeout(PATIENCE, frontier.catalog()).await.ok().map(|told| told.map(drop)) };
        spawn_blocking(move || calls.block_on(asked))
    }
}

/// A question, and what the queue said, if it did so in time.
type Question = JoinHandle<Option<Result<(), Error>>>;

/// The thread that asks, as long as it is there.
pub(crate) struct Following {
    /// Always there until it is dropped.
    aside: Option<Runtime>,
    task: JoinHandle<()>,
}

impl Following {
    /// Ends it; then it tells nothing more.
    pub(crate) async fn end(mut self) {
        self.task.abort();
        // It ends because it is told to.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // A question that is never answered is not waited for.
        if let Some(aside) = self.aside.take() {
            aside.shutdown_background();
        }
    }
}
