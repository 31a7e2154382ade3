//! What all calls share: the queue, the time, the figures, and whether the server is being stopped.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use forager_core::url::named_host_key;
use forager_frontier::catalog::{Change, CollectionSpec, Kind};
use forager_frontier::verbs::{Discovery, Put};
use forager_frontier::{Error, Frontier, Result};
use jiff::Timestamp;
use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Status;

use crate::limits::{LAST_ANSWER, MAX_COLLECTIONS};
use crate::metrics::Metrics;
use crate::serve::Options;
use crate::status;
use crate::unsent::Unsent;

/// What time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What the queue says of items of a collection that is not there.
const GONE: &str = "collection gone";

/// What is said of puts that were under way when the server had to end.
const NO_ANSWER: &str =
    "it gave no answer before the server had to end; what was being put fails, and may be put again";

/// How often who runs the server is told of calls that fail.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);

/// How often a collection is made again that others remove meanwhile.
const MOST_TRIES: u32 = 3;

/// What all calls share.
pub(crate) struct Shared {
    pub(crate) frontier: Arc<dyn Frontier>,
    clock: Clock,
    pub(crate) options: Options,
    pub(crate) metrics: Arc<Metrics>,
    /// Set when the server is being stopped.
    pub(crate) closing: CancellationToken,
    /// Set when clients have had their time to end, and are left.
    pub(crate) cut: CancellationToken,
    /// What goes on when its call has ended, and is waited for before the server ends.
    pub(crate) tasks: TaskTracker,
    /// What is handed out or listed and waits for its readers.
    pub(crate) unsent: Unsent,
    /// Bytes that have arrived and wait to be acknowledged, of all streams.
    pub(crate) unacked: AtomicUsize,
    /// When who runs the server was last told that the queue could not answer.
    complained: Mutex<Option<Instant>>,
    /// Set when a call has met a queue that this program cannot use any more: why.
    pub(crate) unfit: SetOnce<String>,
    /// Collections that were there when last looked at.
    known: RwLock<HashSet<String>>,
}

impl Shared {
    pub(crate) fn new(frontier: Arc<dyn Frontier>, clock: Clock, options: Options) -> Self {
        Self {
            frontier,
            clock,
            options,
            metrics: Arc::default(),
            closing: CancellationToken::new(),
            cut: CancellationToken::new(),
            tasks: TaskTracker::new(),
            unsent: Unsent::default(),
            unacked: AtomicUsize::new(0),
            complained: Mutex::default(),
            unfit: SetOnce::new(),
            known: RwLock::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The status of a call that the queue could not answer.
    pub(crate) fn status(&self, error: &Error) -> Status {
        self.learn(error);
        status::of(error)
    }

    /// The answer of the queue, where nothing there of this name is the same as nothing in it.
    pub(crate) fn or_none<T>(&self, answer: Result<T>) -> std::result::Result<Option<T>, Status> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.status(&error)),
        }
    }

    /// The queue could not answer. Who runs the server is told, but not for each of thousands of calls.
    pub(crate) fn failed(&self, error: &Error) {
        self.metrics.failed();
        if self.learn(error) {
            return; // the server ends by it, and says so then
        }
        let mut last = self.complained.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= COMPLAIN_EVERY) {
            *last = Some(Instant::now());
            (self.options.complain)(error);
        }
    }

    /// Whether an error means that the queue cannot be served any more, such as one whose schema was changed. The
    /// first such error ends the server.
    fn learn(&self, error: &Error) -> bool {
        let is_unfit = matches!(error, Error::Unfit { .. });
        if is_unfit {
            // Before the caller has its answer, so that whoever looks then does not see a server that is well.
            self.metrics.is_ready.store(false, Ordering::Relaxed);
            // Those that come later say nothing new.
            let _ = self.unfit.set(error.to_string());
        }
        is_unfit
    }

    /// Takes in what clients say of URLs, as long as there is time. When the server is stopped, it does not wait for a
    /// queue that does not answer: what it was asked then fails, and may be put again.
    pub(crate) async fn put_in_time(&self, puts: &[Put]) -> Result<Vec<Discovery>> {
        let no_more_time = async {
            self.closing.cancelled().await;
            tokio::time::sleep(LAST_ANSWER).await;
        };
        tokio::select! {
            told = self.put(puts) => told,
            () = no_more_time => Err(Error::Database { problem: NO_ANSWER.to_owned() }),
        }
    }

    /// Takes in what clients say of URLs. Collections that are not there yet are made: plain ones, in which the
    /// clients decide, unless there are profiles for them.
    async fn put(&self, puts: &[Put]) -> Result<Vec<Discovery>> {
        self.make_collections(puts).await?;
        let mut told = self.frontier.put(puts, self.now()).await?;
        for _ in 0..MOST_TRIES {
            let gone = self.forget_gone(puts, &told);
            if gone.is_empty() {
                break;
            }
            // Somebody removed them since we looked.
            for (put, range) in gone {
                self.make_collections(std::slice::from_ref(put)).await?;
                let again = self.frontier.put(std::slice::from_ref(put), self.now()).await?;
                told.splice(range, again);
            }
        }
        Ok(told)
    }

    /// Whether a collection is plain: its hosts are then its own.
    pub(crate) async fn is_plain(&self, collection: &str) -> Result<bool> {
        let catalog = self.frontier.catalog().await?;
        Ok(catalog.collection(collection).is_none_or(|row| row.spec.kind == Kind::Plain))
    }

    /// The queue that a client means by a key. Where profiles decide it is a host, however that is written.
    pub(crate) async fn queue_key(
        &self,
        collection: &str,
        key: String,
    ) -> std::result::Result<String, Status> {
        let Some(host) = named_host_key(&key).filter(|host| *host != key) else { return Ok(key) };
        let is_plain = self.is_plain(collection).await.map_err(|error| self.status(&error))?;
        Ok(if is_plain { key } else { host })
    }

    async fn make_collections(&self, puts: &[Put]) -> Result<()> {
        for put in puts {
            if !self.is_known(&put.collection) {
                self.make_collection(&put.collection).await?;
            }
        }
        Ok(())
    }

    async fn make_collection(&self, name: &str) -> Result<()> {
        let catalog = self.frontier.catalog().await?;
        if catalog.collection(name).is_none() {
            if catalog.rows().collections.len() >= MAX_COLLECTIONS {
                return Ok(()); // not known, so that the queue turns its items away
            }
            let has_profiles = catalog.rows().profiles.iter().any(|profile| profile.collection == name);
            let kind = if has_profiles { Kind::Planned } else { Kind::Plain };
            let change = Change::AddCollection(CollectionSpec::new(name, kind));
            match self.frontier.configure(&[change], self.now()).await {
                Ok(()) | Err(Error::Exists { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        Ok(())
    }

    fn is_known(&self, name: &str) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// The puts whose collections were thought to be there and are not, with the places of their answers.
    fn forget_gone<'a>(&self, puts: &'a [Put], told: &[Discovery]) -> Vec<(&'a Put, std::ops::Range<usize>)> {
        let mut from = 0;
        let placed = puts.iter().map(|put| {
            let range = from..from + put.items.len();
            from = range.end;
            (put, range)
        });
        let is_gone = |range: &std::ops::Range<usize>| {
            told.get(range.clone()).is_some_and(|told| told.first().is_some_and(|told| &*told.rule == GONE))
        };
        let mut gone: Vec<_> = placed.filter(|(_, range)| is_gone(range)).collect();
        if !gone.is_empty() {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            gone.retain(|(put, _)| known.contains(&put.collection));
            known.retain(|name| gone.iter().all(|(put, _)| put.collection != *name));
        }
        gone
    }
}
