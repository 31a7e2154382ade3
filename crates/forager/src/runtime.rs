//! Where whoever waits does so: one runtime for the whole process, started when it is first needed.

use std::sync::OnceLock;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

/// Runs something to its end.
pub(crate) fn wait<F: Future>(work: F) -> anyhow::Result<F::Output> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = match RUNTIME.get() {
        Some(runtime) => runtime,
        None => {
            let started = Builder::new_multi_thread().enable_all().build().context("cannot start to work")?;
            RUNTIME.get_or_init(|| started)
        }
    };
    Ok(runtime.block_on(work))
}
