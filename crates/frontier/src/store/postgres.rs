//! The frontier in a `PostgreSQL` database, shared by many processes.
//!
//! The engine decides here as everywhere, over a [`View`]: what a call looks at is read, the call runs, and
//! what it changed is written, all in one transaction. The row of a host is the lock of everything that belongs to it:
//! its queues, their entries and leases. Hosts are locked in the order of their numbers, except by claims, which
//! pass over those that are locked; so nobody ever waits in a circle. Calls that change collections, profiles
//! and seeds run alone.

mod address;
mod check;
mod failure;
mod flush;
mod load;
mod loaded;
mod migrate;
mod numbers;
mod rows;
mod session;
mod shared;
mod view;
mod wake;
mod wants;

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use deadpool_postgres::PoolError;
use tokio::sync::watch;
use tokio_postgres::Error as PgError;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

pub use address::PostgresOptions;
pub use migrate::{Applied, Migration};

use self::address::tls;
use self::failure::{Failure, describe, is_about_tables, is_conflict, is_late, is_lost};
use self::loaded::{Changes, Loaded};
use self::numbers::{Numbered, Taken};
use self::session::{Session, Statement};
use self::shared::Shared;
use self::view::View;
use self::wants::Wants;
use super::Store;
use crate::catalog::{Catalog, Rows};
use crate::entry::HostId;
use crate::error::{Error, Result};
use crate::moment::Moment;
use crate::settings::Settings;

/// A frontier in a database.
#[derive(Debug)]
pub struct Postgres {
    shared: Arc<Shared>,
    settings: Arc<Settings>,
    catalog: RwLock<Known>,
    latest: Mutex<Latest>,
    numbers: [Mutex<VecDeque<i64>>; Numbered::ALL.len()],
    /// Whether numbers of a kind were taken before.
    has_taken: [AtomicBool; Numbered::ALL.len()],
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

/// The catalog as it was last read.
#[derive(Clone, Debug)]
struct Known {
    version: i64,
    catalog: Arc<Catalog>,
}

/// The time and the turn that were last given.
#[derive(Debug, Default)]
struct Latest {
    now: Moment,
    turn: u64,
}

/// How a call is to be run.
#[derive(Debug)]
pub(super) struct Call<'a> {
    settings: &'a Settings,
    catalog: &'a Catalog,
    is_alone: bool,
    /// Whether it begins by waiting for others.
    waits_for_others: bool,
    /// Whether it runs again when others are at what could be claimed.
    minds_others: bool,
    log_lock: i64,
}

/// What was learned by earlier tries of a call.
#[derive(Debug, Default)]
struct Attempt {
    locks: BTreeSet<HostId>,
    is_alone: bool,
    /// How often others were at what could be claimed.
    waits: u32,
    /// Failures in a row that time may mend.
    failures: u32,
    since: Option<std::time::Instant>,
}

/// What a call asks for that knows nothing yet, by the catalog that it was asked with.
struct First {
    wants: Wants,
    catalog: Arc<Catalog>,
}

/// How often a call that others get in the way of is tried again.
const MOST_TRIES: u32 = 50;

/// The schema of a database, for who sets it up.
#[derive(Debug)]
pub struct PostgresSchema {
    shared: Arc<Shared>,
}

impl PostgresSchema {
    /// Connects to a database, whatever there is in it.
    pub fn connect(url: &str, options: PostgresOptions) -> Result<Self> {
        Ok(Self { shared: Arc::new(Shared::new(url, options)?) })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared.options.schema
    }

    /// A connection for who looks at the database beside the store.
    pub async fn connection(&self) -> Result<tokio_postgres::Client> {
        let Shared { config, options, .. } = &*self.shared;
        let lost = |cause: PgError| Error::Database { problem: describe(&cause) };
        let (client, connection) = config.connect(tls(config, options)?).await.map_err(lost)?;
        // Ends with the client.
        tokio::spawn(connection);
        Ok(client)
    }

    /// The version that this program needs.
    pub fn newest() -> i32 {
        migrate::newest()
    }

    /// All steps that this program knows, in order.
    pub fn steps() -> &'static [Migration] {
        migrate::MIGRATIONS
    }

    /// The steps that it has taken.
    pub async fn applied(&self) -> Result<Vec<Applied>> {
        self.shared.applied().await
    }

    /// Brings it to a version; returns the steps that were taken.
    pub async fn migrate(&self, target: i32) -> Result<Vec<Migration>> {
        self.shared.migrate(target).await
    }
}

impl Postgres {
    /// Connects to a database whose schema is up to date.
    pub async fn connect(url: &str, settings: Settings, options: PostgresOptions) -> Result<Self> {
        let shared = Arc::new(Shared::new(url, options)?);
        shared.ensure_migrated().await?;
        let catalog = Arc::new(Catalog::new(Rows::default(), &settings)?);
        let mut store = Self {
            settings: Arc::new(settings),
            catalog: RwLock::new(Known { version: -1, catalog }),
            latest: Mutex::default(),
            numbers: Default::default(),
            has_taken: Default::default(),
            tasks: Vec::new(),
            shared,
        };
        store.tasks = store.shared.start_tasks();
        Ok(store)
    }

    /// Tells other processes of what they were not told yet, before this one ends.
    pub async fn close(&self) {
        if self.shared.told.load(Ordering::Relaxed) < self.shared.heard.load(Ordering::Relaxed) {
            self.shared.tell_now().await;
        }
    }

    /// The time that counts for a call, and a turn later than all before.
    fn advance(&self, now: Option<Moment>) -> (Moment, u64) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.now = now.map_or(latest.now, |now| latest.now.advanced(now));
        (latest.now, latest.turn)
    }

    fn gave_turn(&self, turn: u64) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.turn = latest.turn.max(turn);
    }

    fn known(&self) -> Known {
        self.catalog.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn view(
        &self,
        now: Moment,
        turn: u64,
        catalog: &Arc<Catalog>,
        loaded: Loaded,
        numbers: &Taken<'_>,
    ) -> View {
        View {
            settings: self.settings.clone(),
            catalog: catalog.clone(),
            now,
            loaded,
            changes: Changes::default(),
            wants: Mutex::default(),
            numbers: numbers.numbers.clone(),
            last_turn: turn,
            has_given_turns: false,
        }
    }

    /// Begins a transaction that sees the latest catalog, and alone if need be.
    async fn begin(&self, session: &mut Session, is_alone: bool) -> Result<Known, Failure> {
        const SHARED: &str = "SELECT pg_advisory_xact_lock_shared($1)";
        const ALONE: &str = "SELECT pg_advisory_xact_lock($1)";
        const VERSION: &str = "SELECT version FROM @catalog";
        let lock = if is_alone { ALONE } else { SHARED };
        // One after the other at the server: the version is read when the lock is there.
        let statements =
            [Statement::new(lock).with(self.shared.lock_key("calls"), Type::INT8), Statement::new(VERSION)];
        let answers = session.begin(self.shared.options.statement_timeout, statements).await?;
        let version = answers.last().and_then(|rows| rows.first());
        let version: i64 = version.map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
        let known = self.known();
        if known.version == version { Ok(known) } else { self.read_catalog(session, version).await }
    }

    async fn read_catalog(&self, session: &Session, version: i64) -> Result<Known, Failure> {
        const ROWS: &str = "SELECT kind, body::text FROM @catalog_rows ORDER BY kind, number";
        const NEXT: &str = "SELECT next_collection FROM @catalog";
        let (rows, next) = tokio::try_join!(session.query(ROWS, &[]), session.query(NEXT, &[]))?;
        let mut catalog = Rows::default();
        for row in next {
            catalog.next_collection = u32::try_from(row.try_get::<_, i32>(0)?).unwrap_or_default();
        }
        let unreadable =
            |cause: serde_json::Error| Failure::Damaged(format!("the catalog cannot be read: {cause}"));
        for row in rows {
            let (kind, body): (i16, String) = (row.try_get(0)?, row.try_get(1)?);
            match kind {
                0 => catalog.collections.push(serde_json::from_str(&body).map_err(unreadable)?),
                1 => catalog.profiles.push(serde_json::from_str(&body).map_err(unreadable)?),
                _ => catalog.seeds.push(serde_json::from_str(&body).map_err(unreadable)?),
            }
        }
        let catalog = Arc::new(Catalog::new(catalog, &self.settings).map_err(Failure::Call)?);
        Ok(self.learn(Known { version, catalog }))
    }

    fn learn(&self, known: Known) -> Known {
        let mut latest = self.catalog.write().unwrap_or_else(PoisonError::into_inner);
        if known.version > latest.version {
            *latest = known.clone();
        }
        known
    }

    /// One try of a call.
    async fn attempt<R: Send>(
        &self,
        now: Option<Moment>,
        attempt: &Attempt,
        call: &(impl Fn(&mut View, Moment) -> Result<R> + Send + Sync),
    ) -> Result<R, Failure> {
        let (now, turn) = self.advance(now);
        let mut session = self.shared.session().await?;
        let mut numbers = Taken::new(&self.numbers);
        let first = self.first_wants((now, turn), call, &numbers);
        if first.wants.wake {
            self.wake(&mut session, now).await?;
        }
        let run = self.run(&mut session, (now, turn), attempt, call, (first, &mut numbers)).await;
        let (view, result) = match run {
            Ok(run) => run,
            Err(failure) => {
                if !failure.is_loss() {
                    session.roll_back().await?;
                }
                return Err(failure);
            }
        };
        let has_read_logs = view.loaded.events.is_some() || view.loaded.fetches.is_some();
        if view.changes.are_none() && !has_read_logs {
            session.roll_back().await?;
            return Ok(result);
        }
        let written = match flush::flush(&session, &view, &BTreeSet::new()).await {
            Ok(written) => written,
            Err(failure) => {
                if !failure.is_loss() {
                    session.roll_back().await?;
                }
                return Err(failure);
            }
        };
        numbers.keep_unused(view.changes.used);
        self.commit(session, &written).await?;
        self.gave_turn(view.last_turn);
        if written.is_news || view.changes.queues_something() {
            self.shared.bell.send_modify(|count| *count += 1);
        }
        if written.is_news {
            self.shared.heard.fetch_add(1, Ordering::Relaxed);
            self.shared.news.notify_one();
        }
        Ok(result)
    }

    /// What a call asks for that knows nothing yet.
    fn first_wants<R>(
        &self,
        (now, turn): (Moment, u64),
        call: &impl Fn(&mut View, Moment) -> Result<R>,
        numbers: &Taken<'_>,
    ) -> First {
        let catalog = self.known().catalog;
        let mut view = self.view(now, turn, &catalog, Loaded::default(), numbers);
        drop(call(&mut view, now));
        First { wants: view.take_wants(), catalog }
    }

    /// Runs a call until it has seen all it asked for, and may change all it changes.
    async fn run<R>(
        &self,
        session: &mut Session,
        (now, turn): (Moment, u64),
        attempt: &Attempt,
        call: &(impl Fn(&mut View, Moment) -> Result<R> + Send + Sync),
        (first, numbers): (First, &mut Taken<'_>),
    ) -> Result<(View, R), Failure> {
        let known = self.begin(session, attempt.is_alone).await?;
        let how = Call {
            settings: &self.settings,
            catalog: &known.catalog,
            is_alone: attempt.is_alone,
            waits_for_others: attempt.waits > 0,
            // Not for ever: what others have opened, whose clocks are ahead, may not be open to this one.
            minds_others: !attempt.is_alone && attempt.waits < MOST_TRIES,
            log_lock: self.shared.lock_key("log"),
        };
        let mut loaded = Loaded { stepping: Some(Vec::new()), ..Loaded::default() };
        if !attempt.is_alone && !attempt.locks.is_empty() {
            load::lock(session, &mut loaded, &attempt.locks).await?;
        }
        if Arc::ptr_eq(&first.catalog, &known.catalog) {
            self.load(session, &how, &mut loaded, first.wants, numbers).await?;
        }
        loop {
            let mut view = self.view(now, turn, &known.catalog, loaded, numbers);
            let result = call(&mut view, now);
            let wants = view.take_wants();
            if wants.is_empty() {
                let result = result.map_err(Failure::Call)?;
                let unlocked = flush::unlocked(&how, &view)?;
                if unlocked.is_empty() {
                    return Ok((view, result));
                }
                loaded = self.lock_and_look_again(session, &how, view.loaded, unlocked).await?;
                continue;
            }
            loaded = view.loaded;
            if wants.are_only_numbers() {
                self.take_numbers(session, numbers, wants.numbers).await?;
            } else {
                self.load(session, &how, &mut loaded, wants, numbers).await?;
            }
        }
    }

    /// Reads what is wanted, and sets aside the numbers that will be needed with it.
    async fn load(
        &self,
        session: &Session,
        how: &Call<'_>,
        loaded: &mut Loaded,
        wants: Wants,
        numbers: &mut Taken<'_>,
    ) -> Result<(), Failure> {
        let wants = Wants { numbers: Default::default(), wake: false, ..wants };
        if wants.is_empty() {
            return Ok(());
        }
        let needed = load::load(session, how, loaded, wants).await?;
        if self.shared.options.number_block > 1 {
            self.take_numbers(session, numbers, numbers.missing(needed)).await?;
        }
        Ok(())
    }

    /// Locks hosts that turned out to be changed, and reads again what was read while they were not.
    async fn lock_and_look_again(
        &self,
        session: &Session,
        how: &Call<'_>,
        read: Loaded,
        hosts: BTreeSet<HostId>,
    ) -> Result<Loaded, Failure> {
        if !read.can_lock(&hosts) {
            return Err(Failure::NotLocked(read.locked.into_iter().chain(hosts).collect()));
        }
        let mut loaded = Loaded { locked: read.locked, stepping: read.stepping, ..Loaded::default() };
        load::lock(session, &mut loaded, &hosts).await?;
        load::load(session, how, &mut loaded, read.asked).await?;
        Ok(loaded)
    }

    /// Commits; when the connection is lost meanwhile, finds out what came of it.
    async fn commit(&self, mut session: Session, written: &flush::Written) -> Result<(), Failure> {
        match session.commit().await {
            Ok(()) => Ok(()),
            Err(cause) if is_lost(&cause) => {
                // Others wait for a connection for the same reason.
                drop(session);
                if self.is_committed(&written.transaction).await? { Ok(()) } else { Err(Failure::Unsure) }
            }
            Err(cause) => Err(cause.into()),
        }
    }

    /// Whether a transaction whose end was not heard of was committed.
    async fn is_committed(&self, transaction: &str) -> Result<bool, Failure> {
        let mut attempt = Attempt::default();
        loop {
            let problem = match self.fate(transaction).await {
                Ok(Some(is_committed)) => return Ok(is_committed),
                Ok(None) => "it is still being committed".to_owned(),
                Err(Failure::Database(cause) | Failure::Pool(PoolError::Backend(cause)))
                    if is_lost(&cause) =>
                {
                    describe(&cause)
                }
                Err(failure) => return Err(failure),
            };
            let problem = format!("whether a change was made is not known: {problem}");
            self.shared.pause(&mut attempt, &problem).await.map_err(Failure::Call)?;
        }
    }

    /// Whether a transaction was committed; none if it is not through.
    async fn fate(&self, transaction: &str) -> Result<Option<bool>, Failure> {
        const FATE: &str = "SELECT pg_xact_status($1::text::xid8)";
        let session = self.shared.session().await?;
        let rows = match session.query(FATE, &[(&transaction, Type::TEXT)]).await {
            // A server that took over knows nothing of a transaction that never reached it.
            Err(cause) if cause.code() == Some(&SqlState::INVALID_PARAMETER_VALUE) => return Ok(Some(false)),
            rows => rows?,
        };
        let fate: Option<String> = rows.first().map(|row| row.try_get(0)).transpose()?.flatten();
        Ok(match fate.as_deref() {
            Some("in progress") => None,
            fate => Some(fate == Some("committed")),
        })
    }

    /// Decides whether a call is tried again.
    async fn retry(&self, attempt: &mut Attempt, failure: Failure) -> Result<()> {
        match failure {
            Failure::Call(error) => Err(error),
            Failure::Damaged(problem) => Err(Error::Database { problem }),
            Failure::NotLocked(hosts) => {
                attempt.locks.extend(hosts);
                Ok(())
            }
            Failure::NotAlone => {
                attempt.is_alone = true;
                Ok(())
            }
            Failure::OthersAreAtIt => {
                attempt.waits += 1;
                Ok(())
            }
            Failure::Unsure => Ok(()),
            Failure::Database(cause) if is_conflict(&cause) && attempt.failures < MOST_TRIES => {
                attempt.failures += 1;
                Ok(())
            }
            Failure::Database(cause) | Failure::Pool(PoolError::Backend(cause)) if is_lost(&cause) => {
                self.shared.pause(attempt, &describe(&cause)).await
            }
            Failure::Database(cause) if is_late(&cause) => {
                self.shared.pause(attempt, &describe(&cause)).await
            }
            Failure::Database(cause) => {
                if is_about_tables(&cause) {
                    // Another version of the program may have changed them meanwhile.
                    self.shared.ensure_migrated().await?;
                }
                Err(Error::Database { problem: describe(&cause) })
            }
            Failure::Pool(cause) => Err(Error::Database { problem: cause.to_string() }),
        }
    }
}

impl Store for Postgres {
    type Tx = View;

    async fn transact<R: Send>(
        &self,
        now: Option<Moment>,
        call: impl Fn(&mut View, Moment) -> Result<R> + Send + Sync,
    ) -> Result<R> {
        let mut attempt = Attempt::default();
        loop {
            match self.attempt(now, &attempt, &call).await {
                Ok(result) => return Ok(result),
                Err(failure) => self.retry(&mut attempt, failure).await?,
            }
        }
    }

    fn bell(&self) -> watch::Receiver<u64> {
        self.shared.bell.subscribe()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}
