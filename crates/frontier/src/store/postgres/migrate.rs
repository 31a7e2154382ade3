//! The schema: its versions, in order, up and down.

use tokio_postgres::types::Type;

use super::alone::Alone;
use super::call::Attempt;
use super::failure::{Failure, to_error, unfit};
use super::session::{Session, quoted};
use super::shared::Shared;
use crate::error::{Error, Result};

/// One step of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its number; they follow each other from 1 on.
    pub version: i32,
    /// What it is about.
    pub name: &'static str,
    up: &'static str,
    down: &'static str,
}

impl Migration {
    /// A step, with the statements that take it and those that take it back. They run with the schema as search path.
    pub const fn new(version: i32, name: &'static str, up: &'static str, down: &'static str) -> Self {
        Self { version, name, up, down }
    }
}

macro_rules! migration {
    ($version:literal, $number:literal, $name:literal) => {
        Migration::new(
            $version,
            $name,
            include_str!(concat!("migrations/", $number, "_", $name, ".up.sql")),
            include_str!(concat!("migrations/", $number, "_", $name, ".down.sql")),
        )
    };
}

/// All steps of this version of the program, in order.
pub(super) const MIGRATIONS: &[Migration] = &[
    migration!(1, "0001", "queue"),
    migration!(2, "0002", "rules"),
    migration!(3, "0003", "views"),
    migration!(4, "0004", "priorities"),
    migration!(5, "0005", "tasks"),
    migration!(6, "0006", "steering"),
    migration!(7, "0007", "line"),
    migration!(8, "0008", "seeds"),
    migration!(9, "0009", "names"),
    migration!(10, "0010", "overall"),
    migration!(11, "0011", "leases"),
    migration!(12, "0012", "lookups"),
    migration!(13, "0013", "sightings"),
    migration!(14, "0014", "sources"),
    migration!(15, "0015", "comments"),
];

/// The comment of a schema that we made, by which we know that we may take it away again.
const OUR_SCHEMA: &str = "The queue of Forager, made by `forager db migrate`";

/// A step that a database has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Its number.
    pub version: i32,
    /// What it is about.
    pub name: String,
    /// When, by the clock of the database: RFC 3339, in UTC.
    pub at: String,
}

impl Shared {
    /// Refuses a schema that this program does not know, or that is not there yet.
    pub(super) async fn ensure_migrated(&self) -> Result<()> {
        self.ensure_known(self.version().await?)
    }

    /// The last step that the schema has taken; 0 if none.
    pub(super) async fn version(&self) -> Result<i32> {
        Ok(self.applied().await?.last().map_or(0, |last| last.version))
    }

    /// Refuses a schema that has taken other steps than this program knows, and says why.
    pub(super) fn ensure_known(&self, found: i32) -> Result<()> {
        let (schema, known) = (&self.options.schema, self.options.newest());
        match found.cmp(&known) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Less if found == 0 => {
                Err(unfit(format!("there is nothing in the schema {schema:?} yet; run `forager db migrate`")))
            }
            std::cmp::Ordering::Less => Err(unfit(format!(
                "the schema {schema:?} has version {found}, and this program needs {known}; run `forager db migrate`"
            ))),
            std::cmp::Ordering::Greater => Err(self.is_newer(found)),
        }
    }

    /// What is told to a program that is older than the schema.
    fn is_newer(&self, found: i32) -> Error {
        let (schema, known) = (&self.options.schema, self.options.newest());
        unfit(format!(
            "the schema {schema:?} was made by a newer version of Forager (version {found}, this one knows {known}); \
             use that one"
        ))
    }

    /// The steps that the database has taken. A server that is about to be there is waited for.
    pub(super) async fn applied(&self) -> Result<Vec<Applied>> {
        let mut attempt = Attempt::default();
        loop {
            match self.read_applied().await {
                Ok(applied) => return Ok(applied),
                Err(failure) => self.wait_out(&mut attempt, failure).await?,
            }
        }
    }

    async fn read_applied(&self) -> Result<Vec<Applied>, Failure> {
        // Not as text: that hangs on the settings of the role.
        const APPLIED: &str = "SELECT version, name, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') \
            FROM @migrations ORDER BY version";
        let mut session = self.session().await?;
        session.begin(self.options.statement_timeout, []).await?;
        let rows =
            if self.is_there(&session).await?.1 { session.query(APPLIED, &[]).await? } else { Vec::new() };
        session.roll_back().await?;
        let applied = rows
            .iter()
            .map(|row| Ok(Applied { version: row.try_get(0)?, name: row.try_get(1)?, at: row.try_get(2)? }));
        applied.collect()
    }

    /// Takes all steps up to a version, forwards or backwards, each in a transaction of its own and by one process at
    /// a time. Each that it took is added to `taken`, also if a later one fails.
    pub(super) async fn migrate(&self, target: i32, taken: &mut Vec<Migration>) -> Result<()> {
        let mut attempt = Attempt::default();
        loop {
            let mut session = self.session_in_time(&mut attempt).await?;
            match self.step(&mut session, target, attempt.alone.next()).await {
                Ok(Some(migration)) => taken.push(migration),
                Ok(None) => return Ok(()),
                Err(Failure::NotYetAlone) => {
                    drop(session);
                    self.let_others_through(&mut attempt).await?;
                }
                Err(failure) => return Err(to_error(failure)),
            }
        }
    }

    async fn step(
        &self,
        session: &mut Session,
        target: i32,
        alone: Alone,
    ) -> Result<Option<Migration>, Failure> {
        const ALONE: &str = "SELECT pg_advisory_xact_lock($1)";
        const LAST: &str = "SELECT coalesce(max(version), 0) FROM @migrations";
        const DONE: &str = "INSERT INTO @migrations (version, name) VALUES ($1, $2)";
        const UNDONE: &str = "DELETE FROM @migrations WHERE version = $1";
        let begun =
            session.begin(std::time::Duration::from_hours(1), alone.lock(self.lock_key("calls"))).await;
        begun.map_err(|why| if why.is_about_lock() { Failure::NotYetAlone } else { why })?;
        session.query(ALONE, &[(&self.lock_key("migrations"), Type::INT8)]).await?;
        let (has_schema, has_table) = self.is_there(session).await?;
        if target == 0 && !has_table {
            session.roll_back().await?;
            return Ok(None);
        }
        if !has_table {
            ensure_holds_every_text(session).await?;
        }
        self.prepare(session, has_schema, has_table).await?;
        let rows = session.query(LAST, &[]).await?;
        let last: i32 = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
        if last > self.options.newest() {
            return Err(Failure::Call(self.is_newer(last)));
        }
        let step = match last.cmp(&target) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Less => self.numbered(last + 1).map(|migration| (migration, true)),
            std::cmp::Ordering::Greater => self.numbered(last).map(|migration| (migration, false)),
        };
        if let Some((migration, is_up)) = step {
            session.run(if is_up { migration.up } else { migration.down }).await?;
            let version = (&migration.version as _, Type::INT4);
            if is_up {
                session.execute(DONE, &[version, (&migration.name, Type::TEXT)]).await?;
            } else {
                session.execute(UNDONE, &[version]).await?;
            }
        } else if target == 0 {
            self.clear_away(session).await?;
        }
        session.commit().await?;
        Ok(step.map(|(migration, _)| *migration))
    }

    /// Whether there is such a schema, and the table of steps in it.
    async fn is_there(&self, session: &Session) -> Result<(bool, bool), Failure> {
        // From the tables themselves: what a connection remembers of names is old when it has waited for a lock.
        const IS_THERE: &str = "SELECT EXISTS (SELECT 1 FROM pg_namespace n WHERE n.nspname = $1), EXISTS \
            (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                WHERE n.nspname = $1 AND c.relname = 'migrations')";
        let rows = session.query(IS_THERE, &[(&self.options.schema, Type::TEXT)]).await?;
        let Some(row) = rows.first() else { return Ok((false, false)) };
        Ok((row.try_get(0)?, row.try_get(1)?))
    }

    /// Makes what every step needs, and has names mean what lies in the schema. Who owns a schema need not be
    /// allowed to make one.
    async fn prepare(&self, session: &Session, has_schema: bool, has_table: bool) -> Result<(), Failure> {
        const SCHEMA: &str = "CREATE SCHEMA %; COMMENT ON SCHEMA % IS '!'; ";
        const TABLE: &str = "CREATE TABLE %.migrations (version integer PRIMARY KEY, name text NOT NULL, \
                at timestamptz NOT NULL DEFAULT now()); \
            COMMENT ON TABLE %.migrations IS 'The steps that this schema has taken'; \
            COMMENT ON COLUMN %.migrations.version IS 'Its number'; \
            COMMENT ON COLUMN %.migrations.name IS 'What it is about'; \
            COMMENT ON COLUMN %.migrations.at IS 'When it was taken'; \
            COMMENT ON INDEX %.migrations_pkey IS 'A step by its number'; ";
        const PATH: &str = "SET LOCAL search_path TO %, pg_catalog";
        let schema = if has_schema { String::new() } else { SCHEMA.replace('!', OUR_SCHEMA) };
        let table = if has_table { "" } else { TABLE };
        let all = [&schema, table, PATH].concat().replace('%', &quoted(&self.options.schema));
        session.run(&all).await
    }

    /// Takes away what is left when all steps were taken back: the table of steps, and the schema if it was made by us and
    /// nobody else has put anything into it.
    async fn clear_away(&self, session: &Session) -> Result<(), Failure> {
        const IS_OURS: &str = "SELECT coalesce(obj_description(n.oid, 'pg_namespace') = $2, false) AND NOT EXISTS \
                (SELECT 1 FROM pg_depend d WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid) \
            FROM pg_namespace n WHERE n.nspname = $1";
        let schema = quoted(&self.options.schema);
        session.run(&format!("DROP TABLE {schema}.migrations")).await?;
        let params = [(&self.options.schema as _, Type::TEXT), (&OUR_SCHEMA as _, Type::TEXT)];
        let rows = session.query(IS_OURS, &params).await?;
        if rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default() {
            session.run(&format!("DROP SCHEMA {schema}")).await?;
        }
        Ok(())
    }

    fn numbered(&self, version: i32) -> Option<&'static Migration> {
        self.options.steps.iter().find(|migration| migration.version == version)
    }

    /// Whether there is such a schema, with something in it or not.
    pub(super) async fn has_schema(&self) -> Result<bool> {
        let session = self.session_in_time(&mut Attempt::default()).await?;
        Ok(self.is_there(&session).await.map_err(to_error)?.0)
    }
}

/// Refuses a database that cannot keep every text that pages and addresses have.
async fn ensure_holds_every_text(session: &Session) -> Result<(), Failure> {
    const ENCODING: &str = "SELECT current_setting('server_encoding')";
    let rows = session.query(ENCODING, &[]).await?;
    let encoding: String = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    if encoding == "UTF8" {
        return Ok(());
    }
    Err(Failure::Call(unfit(format!(
        "its encoding is {encoding}, and only UTF8 can keep every text; make another one with \
         CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
    ))))
}
