//! Where whoever waits does so: one runtime for the whole process, started when it is first needed.

use std::sync::OnceLock;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// Runs something to its end.
pub(crate) fn wait<F: Future>(work: F) -> anyhow::Result<F::Output> {
    Ok(runtime()?.block_on(work))
}

/// Runs something beside all else.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> anyhow::Result<JoinHandle<()>> {
    Ok(runtime()?.spawn(work))
}

fn runtime() -> anyhow::Result<&'static Runtime> {
    if RUNTIME.get().is_none() {
        let started = Builder::new_multi_thread().enable_all().build().context("cannot start to work")?;
        // Another thread may have been first, and then its own counts.
        let _ = RUNTIME.set(started);
    }
    RUNTIME.get().context("cannot start to work")
}
