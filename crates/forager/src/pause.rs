//! Waiting that Ctrl-C ends in good order.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

/// Sleeps, and notices Ctrl-C from its making on.
pub(crate) struct Pauses {
    runtime: Runtime,
    interrupt: Pin<Box<dyn Future<Output = io::Result<()>>>>,
}

impl Pauses {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().context("cannot wait")?;
        let mut pauses = Self { runtime, interrupt: Box::pin(tokio::signal::ctrl_c()) };
        pauses.sleep(Duration::ZERO); // the signal is ours once it has been waited for
        Ok(pauses)
    }

    /// Sleeps this long; tells whether to go on.
    pub(crate) fn sleep(&mut self, length: Duration) -> bool {
        let interrupt = &mut self.interrupt;
        self.runtime.block_on(async { tokio::time::timeout(length, interrupt).await.is_err() })
    }
}
