//! What all calls share: the queue, the time, the figures, and whether the server is being stopped.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use forager_core::url::named_host_key;
use forager_frontier::catalog::{Change, CollectionSpec, Kind};
use forager_frontier::verbs::{Action, Discovery, Item, Put};
use forager_frontier::{Error, Frontier, Result};
use jiff::Timestamp;
use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Status;

use crate::budget::Budget;
use crate::limits::{LAST_ANSWER, MAX_ARRIVING_BYTES, MAX_COLLECTIONS, MAX_UNSENT_BYTES};
use crate::metrics::Metrics;
use crate::proto::ack_message::Status as Ack;
use crate::serve::Options;
use crate::status;

/// What time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What the queue says of items of a collection that is not there.
const GONE: &str = "collection gone";

/// What is said of puts that were under way when the server had to end.
const NO_ANSWER: &str =
    "it gave no answer before the server had to end; what was being put fails, and may be put again";

/// What is said to whoever asks for more than there is room for beside what others have not read.
const UNREAD: &str = "too much waits for other readers; ask again when they have read it, or ask for less";

/// The same, beside large messages that have begun to arrive.
const UNFINISHED: &str =
    "too many large messages arrive at a time; send it again when others have come, or send less in one";

/// How often who runs the server is told of calls that fail.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);

/// How often a collection is made again that others remove meanwhile.
const MOST_TRIES: u32 = 3;

/// Why a queue cannot be served any more.
#[derive(Clone, Debug)]
pub(crate) enum Lost {
    /// It has become one that this program cannot use.
    Unfit(String),
    /// It takes nothing more in until it is opened again.
    Stopped(String),
}

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
    pub(crate) unsent: Budget,
    /// What has arrived of messages that are not whole yet, and the room that they take.
    pub(crate) arriving: Budget,
    /// Bytes that have arrived and wait to be acknowledged, of all streams.
    pub(crate) unacked: AtomicUsize,
    /// When who runs the server was last told that the queue could not answer.
    complained: Mutex<Option<Instant>>,
    /// Set when a call has met a queue that cannot be used any more: why.
    pub(crate) lost: SetOnce<Lost>,
    /// Whether there were as many collections as may be, when one more was to be made.
    is_full: AtomicBool,
    /// Collections that were there when last looked at. Others may have removed them since.
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
            unsent: Budget::new(MAX_UNSENT_BYTES, UNREAD),
            arriving: Budget::new(MAX_ARRIVING_BYTES, UNFINISHED),
            unacked: AtomicUsize::new(0),
            complained: Mutex::default(),
            lost: SetOnce::new(),
            is_full: AtomicBool::new(false),
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

    /// Whether an error means that the queue cannot be served any more, such as one whose schema was changed, or whose
    /// disk is full. The first such error ends the server.
    pub(crate) fn learn(&self, error: &Error) -> bool {
        let lost = match error {
            Error::Unfit { .. } => Lost::Unfit(error.to_string()),
            Error::Stopped { .. } => Lost::Stopped(error.to_string()),
            _ => return false,
        };
        // Before the caller has its answer, so that whoever looks then does not see a server that is well.
        self.metrics.is_ready.store(false, Ordering::Relaxed);
        // Those that come later say nothing new.
        let _ = self.lost.set(lost);
        true
    }

    /// Takes in what clients say of URLs, as long as there is time. When the server is stopped, it does not wait for a
    /// queue that does not answer: what it was asked then fails, and may be put again.
    pub(crate) async fn put_in_time(&self, puts: &[Put]) -> Result<Vec<Ack>> {
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
    async fn put(&self, puts: &[Put]) -> Result<Vec<Ack>> {
        for put in puts {
            self.is_there(put).await?;
        }
        let told = self.frontier.put(puts, self.now()).await?;
        let mut acks: Vec<Ack> = told.iter().map(ack).collect();
        for (put, range) in gone(puts, &told) {
            // Somebody removed it since we looked, or there are too many, or nothing can be kept of what it would have.
            match self.put_again(put).await? {
                Some(again) => drop(acks.splice(range, again.iter().map(ack))),
                None => refuse(put, &mut acks[range]),
            }
        }
        Ok(acks)
    }

    /// Puts once more what is of a collection that was removed meanwhile; none if it is not made again, or not for
    /// long. Others may have found out before and made it again, and others may be removing it still.
    async fn put_again(&self, put: &Put) -> Result<Option<Vec<Discovery>>> {
        let puts = std::slice::from_ref(put);
        for _ in 0..MOST_TRIES {
            self.forget(&put.collection);
            if !self.is_there(put).await? {
                break;
            }
            let again = self.frontier.put(puts, self.now()).await?;
            if gone(puts, &again).is_empty() {
                return Ok(Some(again));
            }
        }
        Ok(None)
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

    /// Whether the collection of a put is there, by now. None is made for what cannot be kept anyway.
    async fn is_there(&self, put: &Put) -> Result<bool> {
        let name = &put.collection;
        Ok(self.is_known(name)
            || (put.items.iter().any(Item::can_be_kept) && self.make_collection(name).await?))
    }

    /// Makes a collection, unless there are too many. Who runs the server is told then, for clients can do nothing about it.
    async fn make_collection(&self, name: &str) -> Result<bool> {
        let catalog = self.frontier.catalog().await?;
        if catalog.collection(name).is_none() {
            if catalog.rows().collections.len() >= MAX_COLLECTIONS {
                if !self.is_full.swap(true, Ordering::Relaxed) {
                    (self.options.complain)(&format_args!(
                        "there are {MAX_COLLECTIONS} collections, as many as there may be: what clients put into others \
                         fails; remove some with \"forager collection remove\""
                    ));
                }
                return Ok(false);
            }
            self.is_full.store(false, Ordering::Relaxed);
            let has_profiles = catalog.rows().profiles.iter().any(|profile| profile.collection == name);
            let kind = if has_profiles { Kind::Planned } else { Kind::Plain };
            let change = Change::AddCollection(CollectionSpec::new(name, kind));
            match self.frontier.configure(&[change], self.now()).await {
                Ok(()) | Err(Error::Exists { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.remember(name);
        Ok(true)
    }

    fn is_known(&self, name: &str) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// Remembers that a collection is there. What others have removed is forgotten with all the rest, when there are
    /// more names than there can be collections.
    fn remember(&self, name: &str) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_COLLECTIONS {
            known.clear();
        }
        known.insert(name.to_owned());
    }

    /// A collection may not be there any more.
    pub(crate) fn forget(&self, name: &str) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

/// Says that what could be kept fails, for there is no collection to keep it in: it may be put again.
fn refuse(put: &Put, acks: &mut [Ack]) {
    for (item, ack) in put.items.iter().zip(acks) {
        if item.can_be_kept() {
            *ack = Ack::Fail;
        }
    }
}

/// What a client is told of an item.
fn ack(told: &Discovery) -> Ack {
    match told.action {
        Action::Added | Action::Improved => Ack::Ok,
        Action::Kept | Action::Removed | Action::Ignored | Action::Invalid => Ack::Skipped,
    }
}

/// The puts whose collections are not there, with the places of their answers.
fn gone<'a>(puts: &'a [Put], told: &[Discovery]) -> Vec<(&'a Put, Range<usize>)> {
    let mut from = 0;
    let placed = puts.iter().map(|put| {
        let range = from..from + put.items.len();
        from = range.end;
        (put, range)
    });
    let is_gone = |range: &Range<usize>| told.get(range.start).is_some_and(|told| &*told.rule == GONE);
    placed.filter(|(put, range)| !put.items.is_empty() && is_gone(range)).collect()
}
