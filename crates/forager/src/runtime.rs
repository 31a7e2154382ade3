//! Where whoever waits does so: one runtime for the whole process, started when it is first needed, and a small one for
//! what has to go on whatever becomes of that.

use std::sync::OnceLock;

use anyhow::Context as _;
use forager_crawl::Stop;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Whether the process was asked to stop, where somebody listens for that.
static STOP: OnceLock<watch::Receiver<Stop>> = OnceLock::new();

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// For what never takes long: a queue in a folder whose disk stalls may hold every thread of the other.
static ASIDE: OnceLock<Runtime> = OnceLock::new();

/// Runs something to its end.
pub(crate) fn wait<F: Future>(work: F) -> anyhow::Result<F::Output> {
    Ok(runtime()?.block_on(work))
}

/// Runs something beside all else.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> anyhow::Result<JoinHandle<()>> {
    Ok(runtime()?.spawn(work))
}

/// Has all who wait know when the process is asked to stop.
pub(crate) fn listen_for_stop(stop: watch::Receiver<Stop>) {
    // One command is run, and listens once.
    let _ = STOP.set(stop);
}

/// Waits until the process is asked to stop. Where nobody listens for that, it simply ends.
pub(crate) async fn stop_asked() {
    if let Some(mut stop) = STOP.get().cloned()
        && stop.wait_for(|asked| *asked != Stop::No).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

fn runtime() -> anyhow::Result<&'static Runtime> {
    // Two at least: what is told of a crawl may have to wait for who reads it, and fetches go on meanwhile.
    let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
    started(&RUNTIME, Builder::new_multi_thread().worker_threads(threads))
}

/// Where signals are heard, and whoever looks after the process.
pub(crate) fn aside() -> anyhow::Result<&'static Runtime> {
    started(&ASIDE, Builder::new_multi_thread().worker_threads(1))
}

fn started(one: &'static OnceLock<Runtime>, builder: &mut Builder) -> anyhow::Result<&'static Runtime> {
    if one.get().is_none() {
        let started = builder.enable_all().build().context("cannot start to work")?;
        // Another thread may have been first, and then its own counts.
        let _ = one.set(started);
    }
    one.get().context("cannot start to work")
}
