//! The frontier in a `PostgreSQL` database, shared by many processes.
//!
//! The engine decides here as everywhere, over a [`View`]: what a call looks at is read, the call runs, and
//! what it changed is written, all in one transaction. The row of a host is the lock of everything that belongs to it:
//! its queues, their entries and leases. Hosts are locked in the order of their numbers, except by claims, which
//! pass over those that are locked; so nobody ever waits in a circle. Calls that change collections, profiles
//! and seeds run alone.

mod address;
mod alone;
mod call;
mod check;
mod failure;
mod flush;
mod load;
mod loaded;
mod migrate;
mod numbers;
mod receipts;
mod rows;
mod schema;
mod session;
mod shared;
mod view;
mod wake;
mod wants;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

pub use address::PostgresOptions;
pub use migrate::{Applied, Migration};
pub use schema::PostgresSchema;

use self::alone::Alone;
use self::call::Attempt;
use self::failure::Failure;
use self::loaded::{Changes, Loaded};
use self::numbers::{Numbered, Taken};
use self::receipts::Receipts;
use self::session::{Session, Statement};
use self::shared::Shared;
use self::view::View;
use self::wake::{ByItself, Upcoming, upcoming};
use super::Store;
use crate::catalog::{Catalog, Rows};
use crate::error::Result;
use crate::moment::Moment;
use crate::settings::Settings;

/// For how long a process that ends tries to tell others of what it did, and to tidy up.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long a statement may take of a call that runs alone, once it does.
const ALONE_TIMEOUT: Duration = Duration::from_hours(1);

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
    receipts: Receipts,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

/// The catalog as it was last read.
#[derive(Clone, Debug)]
struct Known {
    version: i64,
    catalog: Arc<Catalog>,
}

/// A transaction that has begun.
struct Begun {
    known: Known,
    upcoming: Upcoming,
    /// The answers to what was asked first.
    first: Vec<Vec<Row>>,
}

/// The time and the turn that were last given.
#[derive(Debug, Default)]
struct Latest {
    now: Moment,
    turn: u64,
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
            receipts: Receipts::default(),
            tasks: Vec::new(),
            shared,
        };
        store.tasks = store.shared.start_tasks();
        Ok(store)
    }

    /// Tells other processes of what they were not told yet, before this one ends, and tidies up.
    pub async fn close(&self) {
        let farewell = async {
            if self.shared.told.load(Ordering::Relaxed) < self.shared.heard.load(Ordering::Relaxed) {
                self.shared.tell_now().await;
            }
            self.clear_receipts().await
        };
        // A server that does not answer keeps nobody: others look by themselves, and tidy up, a little later.
        let _ = tokio::time::timeout(FAREWELL, farewell).await;
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
            line: None,
        }
    }

    /// Begins a transaction that sees the latest catalog, and alone if need be; what is asked first is asked in the same trip.
    async fn begin(
        &self,
        session: &mut Session,
        alone: Option<Alone>,
        by_itself: ByItself,
        first: Vec<Statement<'_>>,
    ) -> Result<Begun, Failure> {
        const SHARED: &str = "SELECT pg_advisory_xact_lock_shared($1)";
        const STATE: &str = concat!(
            "SELECT c.version, m.version, ",
            upcoming!(),
            " FROM @catalog c CROSS JOIN LATERAL (SELECT m.version FROM @migrations m ORDER BY m.version DESC LIMIT 1) m"
        );
        // One after the other at the server: all is read when the lock is there.
        let key = self.shared.lock_key("calls");
        let shared = || vec![Statement::new(SHARED).with(key, Type::INT8)];
        let lock = alone.map_or_else(shared, |alone| alone.lock(key));
        // Who is alone keeps all others, but what is done may be about all there is.
        let timeout = if alone.is_some() { ALONE_TIMEOUT } else { self.shared.options.statement_timeout };
        let before = lock.len();
        let asked = lock.into_iter().chain([by_itself.add_to(Statement::new(STATE))]).chain(first);
        let answers = session.begin(timeout, asked).await;
        let mut answers = answers.map_err(|why| match alone {
            Some(_) if why.is_about_lock() => Failure::NotYetAlone,
            _ => why,
        })?;
        let first = answers.split_off(before + 1);
        let state = answers.pop().unwrap_or_default();
        let (mut version, mut steps, mut upcoming): (i64, i32, Upcoming) = Default::default();
        for row in &state {
            (version, steps, upcoming) = (row.try_get(0)?, row.try_get(1)?, Upcoming::of(row)?);
        }
        // Another version of the program may have changed the tables meanwhile.
        self.shared.ensure_known(steps).map_err(Failure::Call)?;
        let known = self.known();
        let known =
            if known.version == version { known } else { self.read_catalog(session, version).await? };
        Ok(Begun { known, upcoming, first })
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
                2 => catalog.seeds.push(serde_json::from_str(&body).map_err(unreadable)?),
                _ => catalog.overall = serde_json::from_str(&body).map_err(unreadable)?,
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
