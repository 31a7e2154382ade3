//! The queue, in a folder or a database: opened as a command asks, and closed in good order.

mod place;

mod holder;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use forager_core::time::Interval;
use forager_frontier::{Durability, Embedded, Error, Frontier, Memory, Options, Postgres, PostgresOptions};
use jiff::Timestamp;

use crate::cli::{QueueNow, QueuePlace, StoreArgs};
use crate::config::{self, Config};
use crate::exit::{NotBegun, Unanswered};
use crate::{output, runtime};
pub(crate) use place::{Database, Place};

/// How often it is tried whether another process has left the queue.
pub(crate) const TRY_EVERY: Duration = Duration::from_millis(20);

/// What to do where there is no queue yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Create,
    Refuse,
}

/// A queue that is open.
pub(crate) enum Queue {
    Folder(Arc<Embedded>),
    Database(Arc<Postgres>),
}

impl Queue {
    /// Opens the queue that is meant.
    pub(crate) async fn open(place: &QueuePlace, config: &Config) -> anyhow::Result<Self> {
        Self::open_as(place, config, Options::default()).await
    }

    /// Opens the queue that is meant, and uses its folder like this, if it has one. How durable it is the configuration says.
    pub(crate) async fn open_as(
        place: &QueuePlace,
        config: &Config,
        options: Options,
    ) -> anyhow::Result<Self> {
        match Place::of(place, config)? {
            Place::Folder(path) => {
                Ok(Self::Folder(Arc::new(open_patiently(&path, config, place.lock_timeout, options)?)))
            }
            Place::Database(database) => Ok(Self::Database(Arc::new(connect(&database, config).await?))),
        }
    }

    /// What all queues can do.
    pub(crate) fn frontier(&self) -> Arc<dyn Frontier> {
        match self {
            Self::Folder(frontier) => frontier.clone(),
            Self::Database(frontier) => frontier.clone(),
        }
    }

    /// Whether other processes may be at work on it too.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Database(_))
    }

    /// Leaves the queue so that it opens quickly again, and so that others know what was done.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        match self {
            Self::Folder(frontier) => match Arc::try_unwrap(frontier) {
                Ok(frontier) => Ok(frontier.close()?),
                Err(_) => Ok(()), // somebody still looks at it, and closes it by letting go
            },
            Self::Database(frontier) => {
                frontier.close().await;
                Ok(())
            }
        }
    }
}

/// A queue that is open, and the time that counts as now.
pub(crate) struct Store {
    pub(crate) queue: Queue,
    pub(crate) frontier: Arc<dyn Frontier>,
    now: QueueNow,
}

impl Store {
    /// Opens the queue.
    pub(crate) fn open(args: &StoreArgs, missing: Missing) -> anyhow::Result<Self> {
        let config = Config::load(&args.place.config)?;
        if let Place::Folder(path) = Place::of(&args.place, &config)?
            && missing == Missing::Refuse
            && is_nothing(&path)
        {
            bail!(
                "there is no queue in {}; start one with \"forager apply\" or \"forager collection add\", \
                 or choose another folder with --data",
                path.display()
            );
        }
        let queue = runtime::wait(Queue::open(&args.place, &config))??;
        Ok(Self { frontier: queue.frontier(), queue, now: args.now })
    }

    /// The time that counts as now. Unless the command names one it goes on: lines may be read for days.
    pub(crate) fn now(&self) -> Timestamp {
        self.now.get()
    }

    /// Leaves the queue.
    fn close(self) -> anyhow::Result<()> {
        drop(self.frontier);
        runtime::wait(self.queue.close())?
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

/// Whether there is a queue, or something else where it would be. In a database there is, or opening it says what is
/// missing.
pub(crate) fn is_there(place: &QueuePlace) -> anyhow::Result<bool> {
    Ok(match Place::of(place, &Config::load(&place.config)?)? {
        Place::Folder(path) => !is_nothing(&path),
        Place::Database(_) => true,
    })
}

/// Whether a call failed only because another process has the queue.
pub(crate) fn is_locked(error: &anyhow::Error) -> bool {
    error.is::<Busy>()
}

/// Whether a call failed only because a database cannot be used for now.
pub(crate) fn is_away(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| matches!(cause.downcast_ref(), Some(Error::Database { .. })))
}

/// Whether a call failed for what it was asked, rather than for the state of the queue.
pub(crate) fn is_about_input(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(Error::is_about_input)
}

/// Whether there is nothing at all: no folder, or an empty one.
fn is_nothing(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut files) => files.next().is_none(),
        Err(cause) => cause.kind() == std::io::ErrorKind::NotFound,
    }
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

fn open_patiently(
    path: &Path,
    config: &Config,
    patience: Interval,
    options: Options,
) -> anyhow::Result<Embedded> {
    let (started, longest) = (Instant::now(), Duration::from_secs_f64(patience.as_secs_f64()));
    let durability = match config.store.durability {
        config::Durability::Process => Durability::Process,
        config::Durability::Fsync => Durability::Fsync,
    };
    let options = Options { durability, ..options };
    loop {
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

/// Whether this process has been in a database: it is there, then, and is waited for if it does not answer.
static WAS_THERE: AtomicBool = AtomicBool::new(false);

async fn connect(database: &Database, config: &Config) -> anyhow::Result<Postgres> {
    let options =
        PostgresOptions { is_known: WAS_THERE.load(Ordering::Relaxed), ..config.store.postgres.options() };
    let connecting = Postgres::connect(database.url.with_password(), config.settings(), options);
    let connected = tokio::select! {
        connected = told_if_late(database, config, Box::pin(connecting)) => connected,
        () = runtime::stop_asked() => return Err(NotBegun.into()),
    };
    WAS_THERE.fetch_or(connected.is_ok(), Ordering::Relaxed);
    connected.map_err(not_of_input).with_context(|| database.to_string())
}

/// Waits for an answer of a database, and tells of it if that takes long.
pub(crate) async fn told_if_late<T>(
    database: &Database,
    config: &Config,
    answer: impl Future<Output = T>,
) -> T {
    let mut answer = std::pin::pin!(answer);
    if let Ok(answer) = tokio::time::timeout(TELL_AFTER, &mut answer).await {
        return answer;
    }
    let patience = config.store.postgres.patience;
    output::complain(format_args!(
        "{database}: it does not answer yet; one that is about to be there is waited for, for up to {patience}"
    ));
    answer.await
}

/// After how long it is told that a database is waited for.
const TELL_AFTER: Duration = Duration::from_secs(2);

/// An error of opening, which is never about a line that is read.
pub(crate) fn not_of_input(error: Error) -> anyhow::Error {
    match error {
        Error::Configuration(problem) => anyhow::anyhow!(problem),
        other => other.into(),
    }
}

/// The answer to a call. Where Ctrl-C is to end waiting, it ends the wait for one that does not come.
pub(crate) fn ask<T>(call: impl Future<Output = forager_frontier::Result<T>>) -> anyhow::Result<T> {
    let stopped = async {
        runtime::stop_asked().await;
        tokio::time::sleep(GRACE).await;
    };
    runtime::wait(async {
        tokio::select! {
            answer = call => Ok(answer?),
            () = stopped => Err(Unanswered.into()),
        }
    })?
}

/// The answer to a call, if it is there soon: for what is told of a queue that others wait for anyway.
pub(crate) fn glance<T>(call: impl Future<Output = forager_frontier::Result<T>>) -> Option<T> {
    // The limit needs the runtime, and begins there.
    runtime::wait(async { tokio::time::timeout(GLANCE, call).await }).ok()?.ok()?.ok()
}

/// How long that may take.
const GLANCE: Duration = Duration::from_secs(2);

/// How long an answer that is on its way may take when Ctrl-C was pressed.
const GRACE: Duration = Duration::from_secs(2);

/// Whether a call failed only because whoever waited for its answer pressed Ctrl-C.
pub(crate) fn is_stopped(error: &anyhow::Error) -> bool {
    error.is::<Unanswered>() || error.is::<NotBegun>()
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
