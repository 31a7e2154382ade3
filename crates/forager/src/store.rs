//! The queue on disk: opened as a command asks, and closed in good order.

mod holder;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::bail;
use forager_core::time::Interval;
use forager_frontier::{Durability, Embedded, Error, Memory, Options};
use jiff::Timestamp;

use crate::cli::{QueuePlace, StoreArgs};
use crate::config::{self, Config};

/// How often it is tried whether another process has left the queue.
pub(crate) const TRY_EVERY: Duration = Duration::from_millis(20);

/// What to do where there is no queue yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Create,
    Refuse,
}

/// A queue that is open, and the time that counts as now.
pub(crate) struct Store {
    pub(crate) frontier: Embedded,
    pub(crate) now: Timestamp,
}

impl Store {
    /// Opens the queue.
    pub(crate) fn open(args: &StoreArgs, missing: Missing) -> anyhow::Result<Self> {
        let config = Config::load(&args.place.config)?;
        let path = folder(&args.place, &config);
        if missing == Missing::Refuse && is_nothing(&path) {
            bail!(
                "there is no queue in {}; start one with \"forager apply\" or \"forager collection add\", \
                 or choose another folder with --data",
                path.display()
            );
        }
        let frontier = open_patiently(&path, &config, args.place.lock_timeout)?;
        Ok(Self { frontier, now: args.now.get() })
    }

    /// Leaves the queue so that it opens quickly again.
    fn close(self) -> anyhow::Result<()> {
        Ok(self.frontier.close()?)
    }
}

/// Opens the queue, does `work` on it, and closes it whatever comes of that.
pub(crate) fn with<T>(
    args: &StoreArgs,
    missing: Missing,
    work: impl FnOnce(&Store) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    with_lazy(args, missing, |store| work(store.get()?))
}

/// As [`with`], but the queue is opened when it is first asked for. Whoever reads lines asks when
/// the first have come: the program that writes them may need the queue itself until then.
pub(crate) fn with_lazy<T>(
    args: &StoreArgs,
    missing: Missing,
    work: impl FnOnce(&mut Lazy<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut lazy = Lazy { args, missing, store: None };
    let done = work(&mut lazy);
    let closed = lazy.store.map_or(Ok(()), Store::close);
    let done = done?;
    closed.map(|()| done)
}

/// A queue that is opened when it is first asked for.
pub(crate) struct Lazy<'a> {
    args: &'a StoreArgs,
    missing: Missing,
    store: Option<Store>,
}

impl Lazy<'_> {
    /// The queue.
    pub(crate) fn get(&mut self) -> anyhow::Result<&Store> {
        match &mut self.store {
            Some(store) => Ok(store),
            closed @ None => Ok(closed.insert(Store::open(self.args, self.missing)?)),
        }
    }

    /// Tries a call that may fail for what it is asked. Where there is no queue yet it is tried on one in memory, so
    /// that a call that fails leaves no empty folder behind.
    pub(crate) fn rehearse(
        &self,
        call: impl FnOnce(&Memory, Timestamp) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match self.store {
            Some(_) => Ok(()),
            None => rehearse(self.args, call),
        }
    }
}

/// Tries a call on a queue in memory, where there is none on disk yet.
pub(crate) fn rehearse(
    args: &StoreArgs,
    call: impl FnOnce(&Memory, Timestamp) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if is_there(&args.place)? {
        return Ok(());
    }
    call(&Memory::new(Config::load(&args.place.config)?.settings())?, args.now.get())
}

/// Whether there is a queue, or something else where it would be.
pub(crate) fn is_there(place: &QueuePlace) -> anyhow::Result<bool> {
    Ok(!is_nothing(&folder(place, &Config::load(&place.config)?)))
}

/// Whether a call failed only because another process has the queue.
pub(crate) fn is_locked(error: &anyhow::Error) -> bool {
    error.is::<Busy>()
}

/// Whether a call failed for what it was asked, rather than for the state of the queue.
pub(crate) fn is_about_input(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref();
    matches!(cause, Some(Error::Configuration(_) | Error::NotFound { .. } | Error::Exists { .. }))
}

/// Whether there is nothing at all: no folder, or an empty one.
fn is_nothing(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut files) => files.next().is_none(),
        Err(cause) => cause.kind() == std::io::ErrorKind::NotFound,
    }
}

/// The folder that is meant: the flag or its variable, or what the configuration says.
pub(crate) fn folder(place: &QueuePlace, config: &Config) -> PathBuf {
    place.data.clone().unwrap_or_else(|| config.store.data.clone())
}

/// Another process has the queue, and kept it for as long as we were to wait.
#[derive(Debug)]
struct Busy {
    path: PathBuf,
    /// Who has it, where that is known.
    holder: Option<String>,
    waited: Interval,
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, holder, waited } = self;
        let holder = holder.as_deref().unwrap_or("another process");
        write!(
            f,
            "{} is in use by {holder}, and was for {waited}; stop it, wait for its end with a longer --lock-timeout, or \
             choose another folder with --data; what a crawl writes with --out, --crawl-log or --changes can be \
             read meanwhile",
            path.display()
        )
    }
}

impl std::error::Error for Busy {}

pub(crate) fn open_patiently(path: &Path, config: &Config, patience: Interval) -> anyhow::Result<Embedded> {
    let (started, longest) = (Instant::now(), Duration::from_secs_f64(patience.as_secs_f64()));
    loop {
        let durability = match config.store.durability {
            config::Durability::Process => Durability::Process,
            config::Durability::Fsync => Durability::Fsync,
        };
        let options = Options { durability, ..Options::default() };
        match Embedded::open(path, config.settings(), options) {
            Err(Error::Locked { .. }) if started.elapsed() < longest => std::thread::sleep(TRY_EVERY),
            Err(Error::Locked { path }) => {
                let holder = holder::holder(&path);
                return Err(Busy { path, holder, waited: patience }.into());
            }
            other => return Ok(other?),
        }
    }
}

/// The answer to a call.
pub(crate) fn ask<T>(call: impl Future<Output = forager_frontier::Result<T>>) -> anyhow::Result<T> {
    Ok(block_on(call)?)
}

/// Waits for the answer to a call, without a clock or a reactor: the embedded store needs neither.
pub(crate) fn block_on<F: Future>(call: F) -> F::Output {
    let mut call = std::pin::pin!(call);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(answer) = call.as_mut().poll(&mut context) {
            return answer;
        }
        std::thread::yield_now();
    }
}
