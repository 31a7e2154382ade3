//! The schema: its versions, in order, up and down.

use tokio_postgres::types::Type;

use super::failure::{Failure, to_error};
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

macro_rules! migration {
    ($version:literal, $name:literal) => {
        Migration {
            version: $version,
            name: $name,
            up: include_str!(concat!("migrations/000", $version, "_", $name, ".up.sql")),
            down: include_str!(concat!("migrations/000", $version, "_", $name, ".down.sql")),
        }
    };
}

/// All steps, in order.
pub(super) const MIGRATIONS: &[Migration] = &[migration!(1, "queue"), migration!(2, "tasks")];

/// A step that a database has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Its number.
    pub version: i32,
    /// What it is about.
    pub name: String,
    /// When, as the database says it.
    pub at: String,
}

impl Shared {
    /// Refuses a schema that this program does not know, or that is not there yet.
    pub(super) async fn ensure_migrated(&self) -> Result<()> {
        let schema = &self.options.schema;
        let applied = self.applied().await?;
        let (found, known) = (applied.last().map_or(0, |last| last.version), newest());
        match found.cmp(&known) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Less if found == 0 => Err(Error::Database {
                problem: format!("there is nothing in the schema {schema:?} yet; run `forager db migrate`"),
            }),
            std::cmp::Ordering::Less => Err(Error::Database {
                problem: format!(
                    "the schema {schema:?} has version {found}, and this program needs {known}; run `forager db migrate`"
                ),
            }),
            std::cmp::Ordering::Greater => Err(Error::Database {
                problem: format!(
                    "the schema {schema:?} was made by a newer version of Forager (version {found}, this one knows \
                     {known}); use that one"
                ),
            }),
        }
    }

    /// The steps that the database has taken.
    pub(super) async fn applied(&self) -> Result<Vec<Applied>> {
        const IS_THERE: &str = "SELECT to_regclass($1::text) IS NOT NULL";
        const APPLIED: &str = "SELECT version, name, at::text FROM @migrations ORDER BY version";
        let session = self.session().await.map_err(to_error)?;
        let table = format!("{}.migrations", quoted(&self.options.schema));
        let read = async {
            let rows = session.query(IS_THERE, &[(&table, Type::TEXT)]).await?;
            let is_there: bool = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
            if !is_there {
                return Ok(Vec::new());
            }
            let rows = session.query(APPLIED, &[]).await?;
            let applied = rows.iter().map(|row| {
                Ok(Applied { version: row.try_get(0)?, name: row.try_get(1)?, at: row.try_get(2)? })
            });
            applied.collect::<Result<Vec<_>, Failure>>()
        };
        read.await.map_err(to_error)
    }

    /// Takes all steps up to a version, forwards or backwards, each in a transaction of its own and by one process at
    /// a time. Returns those that it took.
    pub(super) async fn migrate(&self, target: i32) -> Result<Vec<Migration>> {
        let mut taken = Vec::new();
        loop {
            let mut session = self.session().await.map_err(to_error)?;
            match self.step(&mut session, target).await.map_err(to_error)? {
                Some(migration) => taken.push(migration),
                None => return Ok(taken),
            }
        }
    }

    async fn step(&self, session: &mut Session, target: i32) -> Result<Option<Migration>, Failure> {
        const ALONE: &str = "SELECT pg_advisory_xact_lock($1)";
        const PREPARE: &str = "CREATE SCHEMA IF NOT EXISTS %; \
            CREATE TABLE IF NOT EXISTS %.migrations (version integer PRIMARY KEY, name text NOT NULL, \
                at timestamptz NOT NULL DEFAULT now()); \
            COMMENT ON TABLE %.migrations IS 'The steps that this schema has taken'; \
            SET LOCAL search_path TO %, pg_catalog";
        const LAST: &str = "SELECT coalesce(max(version), 0) FROM @migrations";
        const DONE: &str = "INSERT INTO @migrations (version, name) VALUES ($1, $2)";
        const UNDONE: &str = "DELETE FROM @migrations WHERE version = $1";
        session.begin(std::time::Duration::from_hours(1), []).await?;
        for what in ["calls", "migrations"] {
            session.query(ALONE, &[(&self.lock_key(what), Type::INT8)]).await?;
        }
        session.run(&PREPARE.replace('%', &quoted(&self.options.schema))).await?;
        let rows = session.query(LAST, &[]).await?;
        let last: i32 = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
        if last > newest() {
            return Err(Failure::Damaged(format!(
                "the schema has version {last}, and this program knows {}; use the program that made it",
                newest()
            )));
        }
        let step = match last.cmp(&target) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Less => numbered(last + 1).map(|migration| (migration, true)),
            std::cmp::Ordering::Greater => numbered(last).map(|migration| (migration, false)),
        };
        let Some((migration, is_up)) = step else {
            session.commit().await?;
            return Ok(None);
        };
        session.run(if is_up { migration.up } else { migration.down }).await?;
        let version = (&migration.version as _, Type::INT4);
        if is_up {
            session.execute(DONE, &[version, (&migration.name, Type::TEXT)]).await?;
        } else {
            session.execute(UNDONE, &[version]).await?;
        }
        session.commit().await?;
        Ok(Some(*migration))
    }
}

/// The version that this program needs.
pub(super) fn newest() -> i32 {
    MIGRATIONS.last().map_or(0, |last| last.version)
}

fn numbered(version: i32) -> Option<&'static Migration> {
    MIGRATIONS.iter().find(|migration| migration.version == version)
}
