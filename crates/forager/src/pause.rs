//! Waiting that Ctrl-C ends in good order.

use std::time::Duration;

use anyhow::Context as _;
use forager_crawl::Stop;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::runtime;

/// Sleeps, and notices Ctrl-C from its making on. Whoever waits for a queue meanwhile notices it too.
pub(crate) struct Pauses {
    stop: watch::Receiver<Stop>,
}

impl Pauses {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let (sender, stop) = watch::channel(Stop::No);
        runtime::listen_for_stop(stop.clone());
        let aside = runtime::aside()?;
        let _here = aside.enter();
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for Ctrl-C")?;
        aside.spawn(async move {
            interrupt.recv().await;
            sender.send_replace(Stop::Drain);
        });
        Ok(Self { stop })
    }

    /// Sleeps this long; tells whether to go on.
    pub(crate) fn sleep(&mut self, length: Duration) -> bool {
        let asked = self.stop.wait_for(|asked| *asked != Stop::No);
        runtime::wait(async { tokio::time::timeout(length, asked).await.is_err() }).unwrap_or(false)
    }
}
