//! The frontier in a PostgreSQL database, shared by many processes.
//!
//! The engine decides here as everywhere, over a [`View`](view::View): what a call looks at is read, the call runs, and
//! what it changed is written, all in one transaction. The row of a host is the lock of everything that belongs to it:
//! its queues, their entries and leases. Hosts are locked in the order of their numbers, except by claims, which
//! pass over those that are locked; so nobody ever waits in a circle. Calls that change collections, profiles
//! and seeds run alone.

mod flush;
mod load;
mod loaded;
mod migrate;
mod rows;
mod session;
mod view;
mod wants;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, PoolError, RecyclingMethod};
use tokio::sync::{Notify, watch};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Error as PgError};
use tokio_postgres_rustls::MakeRustlsConnect;

pub use migrate::{Applied, Migration};

use self::loaded::{Changes, Loaded};
use self::rows::{int, millis, queue_id};
use self::session::{Session, Statements};
use self::view::View;
use self::wants::{Numbered, Wants};
use super::Store;
use crate::catalog::{Catalog, Rows};
use crate::engine::{self, Wanted};
use crate::entry::{EntryId, HostId, QueueId};
use crate::error::{Error, Result};
use crate::moment::Moment;
use crate::settings::Settings;

/// How a database is used.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// The schema that everything lies in; nothing outside it is touched.
    pub schema: String,
    /// The most connections at a time, besides one that listens.
    pub connections: usize,
    /// How long a statement may take.
    pub statement_timeout: Duration,
    /// How long a call waits for a server that cannot be reached before it fails.
    pub patience: Duration,
    /// Whether statements are kept prepared at the server. A pooler that hands out connections for single
    /// transactions may not allow it.
    pub prepares: bool,
    /// Whether a connection listens for news from other processes; such a pooler does not allow that either.
    pub listens: bool,
    /// How many numbers a process sets aside for itself at a time.
    pub number_block: usize,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            schema: "forager".to_owned(),
            connections: 8,
            statement_timeout: Duration::from_secs(30),
            patience: Duration::from_secs(300),
            prepares: true,
            listens: true,
            number_block: 256,
        }
    }
}

/// A frontier in a database.
#[derive(Debug)]
pub struct Postgres {
    shared: Arc<Shared>,
    settings: Arc<Settings>,
    catalog: RwLock<Known>,
    latest: Mutex<Latest>,
    numbers: [Mutex<VecDeque<i64>>; Numbered::ALL.len()],
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

/// What background tasks need too.
#[derive(Debug)]
struct Shared {
    pool: Pool,
    config: tokio_postgres::Config,
    options: PostgresOptions,
    statements: Arc<Statements>,
    channel: String,
    bell: watch::Sender<u64>,
    news: Notify,
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

/// Why a call has to run again, or cannot.
#[derive(Debug)]
pub(super) enum Failure {
    /// The database says no, or says nothing.
    Database(PgError),
    /// There is no connection to be had.
    Pool(PoolError),
    /// What is there cannot be read.
    Damaged(String),
    /// The call changes hosts that it has not locked.
    NotLocked(BTreeSet<HostId>),
    /// The call changes what only one at a time may.
    NotAlone,
    /// Others hold all that could be claimed of this.
    OthersAreAtIt(Wanted),
    /// The connection was lost while a transaction was being committed, and it was not.
    Undone,
    /// The call itself failed.
    Call(Error),
}

impl From<PgError> for Failure {
    fn from(cause: PgError) -> Self {
        Self::Database(cause)
    }
}

/// How a call is to be run.
#[derive(Debug)]
pub(super) struct Call<'a> {
    settings: &'a Settings,
    catalog: &'a Catalog,
    /// The version of the catalog.
    version: i64,
    is_alone: bool,
    /// Whether the call is run again when others have left what they hold now.
    waits_for_others: bool,
    log_lock: i64,
}

impl Call<'_> {
    /// Whether more hosts can be waited for without waiting in a circle: all hosts are locked in the same order.
    fn can_lock(&self, loaded: &Loaded, hosts: &BTreeSet<HostId>) -> bool {
        let last = loaded.locked.iter().max();
        last.is_none_or(|last| hosts.first().is_none_or(|first| first > last))
    }
}

/// What was learned by earlier tries of a call.
#[derive(Debug, Default)]
struct Attempt {
    locks: BTreeSet<HostId>,
    is_alone: bool,
    /// What others were at, and how often.
    awaited: Option<Wanted>,
    waits: u32,
    /// Failures in a row that time may mend.
    failures: u32,
    since: Option<std::time::Instant>,
}

/// How many queues are woken at a time.
const MOST_WOKEN: i64 = 500;

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

    /// The version that this program needs.
    pub fn newest() -> i32 {
        migrate::newest()
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
            tasks: Vec::new(),
            shared,
        };
        store.tasks = store.shared.start_tasks();
        Ok(store)
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
        }
    }

    /// Begins a transaction that sees the latest catalog, and alone if need be.
    async fn begin(&self, session: &mut Session, is_alone: bool) -> Result<Known, Failure> {
        const SHARED: &str = "SELECT pg_advisory_xact_lock_shared($1)";
        const ALONE: &str = "SELECT pg_advisory_xact_lock($1)";
        const VERSION: &str = "SELECT version FROM @catalog";
        session.begin(self.shared.options.statement_timeout).await?;
        let key = self.shared.lock_key("calls");
        let lock = if is_alone { ALONE } else { SHARED };
        let lock_param = [(&key as _, Type::INT8)];
        session.prepare(lock, &[Type::INT8]).await?;
        // One after the other at the server: the version is read when the lock is there.
        let (_, rows) = tokio::try_join!(session.query(lock, &lock_param), session.query(VERSION, &[]))?;
        let version: i64 = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
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
        let mut session = self.shared.session().await?;
        let result = self.attempt_in(&mut session, now, attempt, call).await;
        if result.is_err() {
            // The connection is as good as before, unless it is the connection that failed.
            let _ = session.roll_back().await;
        }
        result
    }

    async fn attempt_in<R: Send>(
        &self,
        session: &mut Session,
        now: Option<Moment>,
        attempt: &Attempt,
        call: &(impl Fn(&mut View, Moment) -> Result<R> + Send + Sync),
    ) -> Result<R, Failure> {
        let (now, turn) = self.advance(now);
        let mut numbers = Taken::new(&self.numbers);
        let mut first = self.view(now, turn, &self.known().catalog, Loaded::default(), &numbers);
        // What it would ask for is not looked at: only whether it depends on what is due by now.
        drop(call(&mut first, now));
        if first.take_wants().wake {
            self.wake(session, now).await?;
        }
        let known = self.begin(session, attempt.is_alone).await?;
        let how = Call {
            settings: &self.settings,
            catalog: &known.catalog,
            version: known.version,
            is_alone: attempt.is_alone,
            // What looks open to others, for their clocks are ahead, may not be open to this one.
            waits_for_others: !attempt.is_alone && attempt.waits < MOST_TRIES,
            log_lock: self.shared.lock_key("log"),
        };
        let mut loaded = Loaded { stepping: Some(Vec::new()), ..Loaded::default() };
        if let Some(wanted) = &attempt.awaited {
            load::wait_for_others(session, &mut loaded, wanted).await?;
        } else if !attempt.is_alone && !attempt.locks.is_empty() {
            load::lock(session, &mut loaded, &attempt.locks).await?;
        }
        loop {
            let mut view = self.view(now, turn, &known.catalog, loaded, &numbers);
            let result = call(&mut view, now);
            let wants = view.take_wants();
            if wants.is_empty() {
                return self.finish(session, &how, view, result, numbers).await;
            }
            loaded = view.loaded;
            if wants.are_only_numbers() {
                self.take_numbers(session, &mut numbers, &wants).await?;
            } else {
                load::load(
                    session,
                    &how,
                    &mut loaded,
                    Wants { numbers: Default::default(), wake: false, ..wants },
                )
                .await?;
            }
        }
    }

    /// Ends a call that has seen all it asked for.
    async fn finish<R>(
        &self,
        session: &mut Session,
        how: &Call<'_>,
        view: View,
        result: Result<R>,
        mut numbers: Taken<'_>,
    ) -> Result<R, Failure> {
        let result = result.map_err(Failure::Call)?;
        let has_read_logs = view.loaded.events.is_some() || view.loaded.fetches.is_some();
        if view.changes.are_none() && !has_read_logs {
            session.roll_back().await?;
            return Ok(result);
        }
        let written = flush::flush(session, how, &view, &BTreeSet::new()).await?;
        numbers.keep_unused(view.changes.used);
        if let Err(cause) = session.commit().await {
            if !is_lost(&cause) {
                return Err(cause.into());
            }
            // Room for the one that asks what became of it.
            session.close();
            if !self.is_committed(&written.transaction).await? {
                return Err(Failure::Undone);
            }
        }
        self.gave_turn(view.last_turn);
        if let Some(catalog) = view.changes.catalog {
            // It ran alone, so that nobody else has made this version.
            self.learn(Known { version: how.version + 1, catalog });
        }
        if written.is_news {
            self.shared.bell.send_modify(|count| *count += 1);
            self.shared.news.notify_one();
        }
        Ok(result)
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

    /// Sets aside the numbers that a call wants.
    async fn take_numbers(
        &self,
        session: &Session,
        taken: &mut Taken<'_>,
        wants: &Wants,
    ) -> Result<(), Failure> {
        const NUMBERS: &str = "SELECT nextval($1::text::regclass) FROM generate_series(1, $2)";
        for kind in Numbered::ALL {
            let mut missing = wants.numbers[kind as usize];
            if missing == 0 {
                continue;
            }
            missing -= taken.take(kind, missing);
            if missing == 0 {
                continue;
            }
            let count = i64::try_from(missing.max(self.shared.options.number_block)).unwrap_or(i64::MAX);
            let sequence = format!("{}.{}", session::quoted(&self.shared.options.schema), kind.sequence());
            let rows = session.query(NUMBERS, &[(&sequence, Type::TEXT), (&count, Type::INT8)]).await?;
            let mut numbers = Vec::new();
            for row in rows {
                numbers.push(row.try_get::<_, i64>(0)?);
            }
            taken.add(kind, numbers, missing);
        }
        Ok(())
    }

    /// Makes ready what is due by now, a batch of hosts at a time, so that claims find it by an index.
    async fn wake(&self, session: &mut Session, now: Moment) -> Result<(), Failure> {
        // The first one of an index, whatever the server believes of the table.
        const ANY: &str =
            "SELECT coalesce(min(q.wake_at) <= $1, false) FROM @queues q WHERE q.wake_at IS NOT NULL";
        let time = millis(now);
        let rows = session.query(ANY, &[(&time, Type::INT8)]).await?;
        let mut is_more: bool = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
        while is_more {
            is_more = self.wake_some(session, now).await?;
        }
        Ok(())
    }

    async fn wake_some(&self, session: &mut Session, now: Moment) -> Result<bool, Failure> {
        const WHICH: &str = "SELECT q.id, q.host FROM @queues q JOIN @hosts h ON h.id = q.host \
            WHERE q.wake_at <= $1 ORDER BY q.wake_at LIMIT $2 FOR UPDATE OF h SKIP LOCKED";
        const WAKE: &str = "UPDATE @entries e SET ready = true \
            WHERE e.queue = ANY($1) AND e.state = 0 AND NOT e.ready AND e.due <= $2";
        const STEPPING: &str = "SELECT e.id FROM @entries e \
            WHERE e.queue = ANY($1) AND e.state = 0 AND e.step IS NOT NULL AND e.step <= $2 ORDER BY e.id";
        let known = self.begin(session, false).await?;
        let (time, most) = (millis(now), MOST_WOKEN);
        let rows = session.query(WHICH, &[(&time, Type::INT8), (&most, Type::INT8)]).await?;
        let mut loaded = Loaded { stepping: Some(Vec::new()), ..Loaded::default() };
        let mut queues: BTreeSet<QueueId> = BTreeSet::new();
        for row in &rows {
            queues.insert(queue_id(row.try_get(0)?));
            loaded.locked.insert(rows::host_id(row.try_get(1)?));
        }
        if queues.is_empty() {
            session.roll_back().await?;
            return Ok(false);
        }
        let numbers: Vec<i32> = queues.iter().map(|queue| int(queue.0)).collect();
        let second = rows::second(now);
        session.execute(WAKE, &[(&numbers, Type::INT4_ARRAY), (&second, Type::INT8)]).await?;
        let mut wants = Wants::default();
        for row in session.query(STEPPING, &[(&numbers, Type::INT4_ARRAY), (&time, Type::INT8)]).await? {
            wants.entries.insert(rows::entry_id(row.try_get(0)?));
        }
        let stepping: Vec<EntryId> = wants.entries.iter().copied().collect();
        let how = Call {
            settings: &self.settings,
            catalog: &known.catalog,
            version: known.version,
            is_alone: false,
            waits_for_others: false,
            log_lock: self.shared.lock_key("log"),
        };
        let hosts = loaded.locked.iter().copied().collect();
        load::host_rows(session, &mut loaded, &hosts).await?;
        load::load(session, &how, &mut loaded, wants).await?;
        loaded.stepping = Some(stepping);
        let mut view = self.view(now, 0, &known.catalog, loaded, &Taken::new(&self.numbers));
        engine::wake(&mut view, now).map_err(Failure::Call)?;
        flush::flush(session, &how, &view, &queues).await?;
        session.commit().await?;
        Ok(rows.len() as i64 == MOST_WOKEN)
    }

    /// Decides whether a call is tried again.
    async fn retry(&self, attempt: &mut Attempt, failure: Failure) -> Result<()> {
        match failure {
            Failure::Call(error) => return Err(error),
            Failure::Damaged(problem) => return Err(Error::Database { problem }),
            Failure::NotLocked(hosts) => {
                attempt.locks.extend(hosts);
                attempt.awaited = None;
                return Ok(());
            }
            Failure::NotAlone => {
                attempt.is_alone = true;
                return Ok(());
            }
            Failure::OthersAreAtIt(wanted) => {
                attempt.awaited = Some(wanted);
                attempt.waits += 1;
                return Ok(());
            }
            Failure::Undone => return Ok(()),
            Failure::Database(cause) if is_conflict(&cause) && attempt.failures < MOST_TRIES => {
                attempt.failures += 1;
                return Ok(());
            }
            Failure::Database(cause) if is_lost(&cause) => {
                self.shared.pause(attempt, &describe(&cause)).await
            }
            Failure::Pool(PoolError::Backend(cause)) if is_lost(&cause) => {
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

/// Numbers that one call has set aside; what it does not use goes back.
struct Taken<'a> {
    pools: &'a [Mutex<VecDeque<i64>>; Numbered::ALL.len()],
    numbers: [Vec<i64>; Numbered::ALL.len()],
}

impl<'a> Taken<'a> {
    fn new(pools: &'a [Mutex<VecDeque<i64>>; Numbered::ALL.len()]) -> Self {
        Self { pools, numbers: Default::default() }
    }

    /// Takes up to so many from what this process has set aside; says how many.
    fn take(&mut self, kind: Numbered, count: usize) -> usize {
        let mut pool = self.pools[kind as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let count = count.min(pool.len());
        self.numbers[kind as usize].extend(pool.drain(..count));
        count
    }

    /// Takes so many of new numbers, and sets the others aside.
    fn add(&mut self, kind: Numbered, mut numbers: Vec<i64>, count: usize) {
        let others = numbers.split_off(count.min(numbers.len()));
        self.numbers[kind as usize].extend(numbers);
        self.pools[kind as usize].lock().unwrap_or_else(PoisonError::into_inner).extend(others);
    }

    /// Gives back all but the first ones, which are used now.
    fn keep_unused(&mut self, used: [usize; Numbered::ALL.len()]) {
        for (numbers, used) in self.numbers.iter_mut().zip(used) {
            numbers.drain(..used.min(numbers.len()));
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        for (pool, numbers) in self.pools.iter().zip(&mut self.numbers) {
            let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
            for number in numbers.drain(..).rev() {
                pool.push_front(number);
            }
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

impl Shared {
    fn new(url: &str, options: PostgresOptions) -> Result<Self> {
        let (config, options) = configure(url, options)?;
        let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config.clone(), tls(&config)?, manager);
        let pool = Pool::builder(manager).max_size(options.connections.max(1)).build();
        Ok(Self {
            statements: Arc::new(Statements::new(&options.schema)),
            channel: format!("{}_news", options.schema),
            pool: pool.map_err(|cause| Error::Configuration(cause.to_string()))?,
            config,
            options,
            bell: watch::Sender::new(0),
            news: Notify::new(),
        })
    }

    async fn session(&self) -> Result<Session, Failure> {
        let connection = self.pool.get().await.map_err(Failure::Pool)?;
        Ok(Session::new(connection, self.statements.clone(), self.options.prepares))
    }

    /// The number of a lock of this schema.
    fn lock_key(&self, what: &str) -> i64 {
        lock_key(&self.options.schema, what)
    }

    /// Waits a little longer each time for a server that cannot be reached, and gives up in the end.
    async fn pause(&self, attempt: &mut Attempt, problem: &str) -> Result<()> {
        let since = *attempt.since.get_or_insert_with(std::time::Instant::now);
        if since.elapsed() > self.options.patience {
            let waited = self.options.patience.as_secs();
            let problem = format!("it could not be reached for {waited} s: {problem}");
            return Err(Error::Database { problem });
        }
        attempt.failures += 1;
        let millis = 50_u64 << attempt.failures.min(6);
        let spread = rand::random_range(0..=millis / 2);
        tokio::time::sleep(Duration::from_millis(millis + spread)).await;
        Ok(())
    }

    /// What runs beside the calls: telling others of news, and hearing of theirs.
    fn start_tasks(self: &Arc<Self>) -> Vec<tokio::task::JoinHandle<()>> {
        let (teller, hearer) = (self.clone(), self.clone());
        vec![
            tokio::spawn(async move { teller.tell().await }),
            tokio::spawn(async move { hearer.hear().await }),
        ]
    }

    /// Tells other processes that there may be something to claim, but not more often than they can use it.
    async fn tell(&self) {
        const TELL: &str = "SELECT pg_notify($1, '')";
        loop {
            self.news.notified().await;
            if let Ok(session) = self.session().await {
                // Whoever does not hear of it looks by himself, a little later.
                let _ = session.query(TELL, &[(&self.channel, Type::TEXT)]).await;
            }
            tokio::time::sleep(TELL_EVERY).await;
        }
    }

    /// Rings whenever other processes have news, and now and then in case they could not say so.
    async fn hear(&self) {
        loop {
            if self.options.listens {
                // Comes back only when the connection is lost.
                let _ = self.listen().await;
            }
            let spread = Duration::from_millis(rand::random_range(0..1000));
            tokio::time::sleep(LOOK_EVERY + spread).await;
            self.bell.send_modify(|count| *count += 1);
        }
    }

    async fn listen(&self) -> Result<()> {
        let lost = |cause: PgError| Error::Database { problem: describe(&cause) };
        let (client, mut connection) = self.config.connect(tls(&self.config)?).await.map_err(lost)?;
        let (sender, mut messages) = tokio::sync::mpsc::channel(1);
        let driver = tokio::spawn(async move {
            let mut stream = std::pin::pin!(futures_util::stream::poll_fn(move |context| {
                connection.poll_message(context)
            }));
            while let Some(Ok(message)) = futures_util::StreamExt::next(&mut stream).await {
                if matches!(message, AsyncMessage::Notification(_)) {
                    // One that waits already says the same.
                    let _ = sender.try_send(());
                }
            }
        });
        let listening = client.batch_execute(&format!("LISTEN {}", session::quoted(&self.channel))).await;
        if listening.is_ok() {
            self.bell.send_modify(|count| *count += 1);
            while let Ok(Some(())) | Err(_) = tokio::time::timeout(LOOK_EVERY * 6, messages.recv()).await {
                self.bell.send_modify(|count| *count += 1);
            }
        }
        driver.abort();
        listening.map_err(lost)
    }
}

/// How often others are told of news at most.
const TELL_EVERY: Duration = Duration::from_millis(25);

/// How often those look by themselves who cannot be told.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The number of a lock, from a name.
fn lock_key(schema: &str, what: &str) -> i64 {
    let hash = xxhash_rust::xxh3::xxh3_64(format!("forager {schema} {what}").as_bytes());
    i64::from_ne_bytes(hash.to_ne_bytes())
}

/// Reads the address of a database; `schema`, `prepare` and `listen` in it are ours.
fn configure(url: &str, mut options: PostgresOptions) -> Result<(tokio_postgres::Config, PostgresOptions)> {
    let wrong = |cause: &dyn std::fmt::Display| {
        Error::Configuration(format!("the address of the database cannot be used: {cause}"))
    };
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let mut others = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("schema", schema)) => schema.clone_into(&mut options.schema),
            Some(("prepare", value)) => options.prepares = flag("prepare", value)?,
            Some(("listen", value)) => options.listens = flag("listen", value)?,
            Some(("connections", value)) => {
                options.connections =
                    value.parse().map_err(|cause| wrong(&format!("connections={value}: {cause}")))?;
            }
            _ => others.push(pair),
        }
    }
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        name.len() <= 48
            && bytes.next().is_some_and(|first| first.is_ascii_lowercase() || first == b'_')
            && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    if !is_name(&options.schema) {
        return Err(wrong(&format!(
            "schema {:?}: at most 48 small letters, digits and _, not beginning with a digit",
            options.schema
        )));
    }
    let url = if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) };
    let mut config: tokio_postgres::Config =
        url.parse().map_err(|cause: PgError| wrong(&describe(&cause)))?;
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(10));
    }
    if config.get_application_name().is_none() {
        config.application_name("forager");
    }
    Ok((config, options))
}

fn flag(name: &str, value: &str) -> Result<bool> {
    match value {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => {
            Err(Error::Configuration(format!("{name}={value} in the address of the database: true or false")))
        }
    }
}

/// How connections are made secret: by certificates that are known to everybody, unless the address says `disable`.
fn tls(config: &tokio_postgres::Config) -> Result<MakeRustlsConnect> {
    let mut roots = rustls::RootCertStore::empty();
    if config.get_ssl_mode() != SslMode::Disable {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|cause| Error::Configuration(cause.to_string()))?;
    Ok(MakeRustlsConnect::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// Whether the server cannot be reached, or ended the connection.
fn is_lost(cause: &PgError) -> bool {
    let Some(code) = cause.code() else {
        // What is no answer of the server is a broken connection, unless it is a mistake of ours.
        return cause.is_closed()
            || std::error::Error::source(cause).is_some_and(|source| source.is::<std::io::Error>());
    };
    // A server that has no room will have some again; one that ended a transaction for its idleness takes another.
    let is_temporary =
        [SqlState::TOO_MANY_CONNECTIONS, SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT].contains(code);
    is_temporary || code.code().starts_with("08") || code.code().starts_with("57P")
}

/// Whether the tables are not those that this program knows.
fn is_about_tables(cause: &PgError) -> bool {
    cause.code().is_some_and(|code| {
        [
            SqlState::UNDEFINED_TABLE,
            SqlState::UNDEFINED_COLUMN,
            SqlState::INVALID_SCHEMA_NAME,
            SqlState::FEATURE_NOT_SUPPORTED,
        ]
        .contains(code)
    })
}

/// Whether others got in the way, so that it may work the next time.
fn is_conflict(cause: &PgError) -> bool {
    cause.code().is_some_and(|code| {
        [
            SqlState::UNIQUE_VIOLATION,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::LOCK_NOT_AVAILABLE,
        ]
        .contains(code)
    })
}

/// What a database says, in one line.
fn describe(cause: &PgError) -> String {
    match cause.as_db_error() {
        Some(said) => match said.detail() {
            Some(detail) => format!("{} ({detail})", said.message()),
            None => said.message().to_owned(),
        },
        None => match std::error::Error::source(cause) {
            Some(source) => format!("{cause}: {source}"),
            None => cause.to_string(),
        },
    }
}
