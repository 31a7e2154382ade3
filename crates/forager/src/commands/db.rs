//! `forager db`

use anyhow::{Context as _, bail};
use forager_frontier::PostgresSchema;
use serde::Serialize;

use super::upkeep;
use crate::Outcome;
use crate::cli::{DbCommand, DbDownArgs, StoreArgs};
use crate::config::Config;
use crate::output::Output;
use crate::store::{self, Place};
use crate::words::counted;

pub(super) fn run(command: &DbCommand) -> anyhow::Result<Outcome> {
    match command {
        DbCommand::Migrate(args) => migrate(&args.store, None),
        DbCommand::Status(args) => status(&args.store),
        DbCommand::Check(args) => {
            database(&args.store)?;
            upkeep::check(args)
        }
        DbCommand::Down(args) => down(args),
    }
}

/// A step that was taken just now.
#[derive(Serialize)]
struct Taken {
    version: i32,
    name: &'static str,
    did: &'static str,
}

/// A step, and whether the schema has taken it.
#[derive(Serialize)]
struct Step {
    schema: String,
    version: i32,
    name: String,
    state: &'static str,
    at: Option<String>,
}

/// Brings the schema to a version, or to the one that this program needs.
fn migrate(args: &StoreArgs, target: Option<i32>) -> anyhow::Result<Outcome> {
    let (schema, before, steps, is_gone, failed) = with_schema(args, async |schema| {
        let before = schema.applied().await?.last().map_or(0, |last| last.version);
        let was_there = schema.exists().await?;
        let mut steps = Vec::new();
        let failed = schema.migrate_into(target.unwrap_or(schema.newest()), &mut steps).await.err();
        let is_gone = failed.is_none() && was_there && !schema.exists().await?;
        Ok((schema.name().to_owned(), before, steps, is_gone, failed))
    })?;
    let mut output = Output::new(args.format(), &["version", "name", "did"]);
    for step in &steps {
        let did = if step.version > before { "up" } else { "down" };
        output.row(&Taken { version: step.version, name: step.name, did })?;
    }
    if is_gone {
        output.row(&Taken { version: 0, name: "schema", did: "removed" })?;
    }
    if let Some(cause) = failed {
        // Steps that were taken stay taken.
        output.flush()?;
        return Err(store::not_of_input(cause)).with_context(|| match database(args) {
            Ok((database, _)) => database.to_string(),
            Err(_) => schema,
        });
    }
    if steps.is_empty() && !is_gone && output.is_for_people() {
        output.text(&format!("nothing to do: the schema {schema:?} has version {before}"))?;
    }
    output.flush()?;
    Ok(Outcome::Complete)
}

fn status(args: &StoreArgs) -> anyhow::Result<Outcome> {
    let (name, applied, steps) = with_schema(args, async |schema| {
        Ok((schema.name().to_owned(), schema.applied().await?, schema.steps()))
    })?;
    let newest = steps.last().map_or(0, |last| last.version);
    let found = applied.last().map_or(0, |last| last.version);
    let mut output = Output::new(args.format(), &["schema", "version", "name", "state", "at"]);
    for step in applied {
        let state = if step.version > newest { "unknown" } else { "taken" };
        let (schema, at) = (name.clone(), Some(step.at));
        output.row(&Step { schema, version: step.version, name: step.name, state, at })?;
    }
    for step in steps.iter().filter(|step| step.version > found) {
        let (schema, name) = (name.clone(), step.name.to_owned());
        output.row(&Step { schema, version: step.version, name, state: "missing", at: None })?;
    }
    output.flush()?;
    Ok(if found == newest { Outcome::Complete } else { Outcome::SomeBad })
}

fn down(args: &DbDownArgs) -> anyhow::Result<Outcome> {
    let found = with_schema(&args.store, async |schema| {
        Ok(schema.applied().await?.last().map_or(0, |last| last.version))
    })?;
    if args.to > found {
        bail!("the schema has version {found}, which is below {}; \"forager db migrate\" goes up", args.to);
    }
    if args.to < found && !args.yes {
        match args.to {
            0 => bail!("this deletes the queue with all that is in it; say --yes to go on"),
            to => {
                let steps = counted(u64::try_from(found - to)?, "step", "steps");
                bail!("this takes back {steps}, with all that lies in their tables; say --yes to go on")
            }
        }
    }
    migrate(&args.store, Some(args.to))
}

/// The database that is meant; a folder is refused.
fn database(args: &StoreArgs) -> anyhow::Result<(store::Database, Config)> {
    let config = Config::load(&args.place.config)?;
    match Place::of(&args.place, &config)? {
        Place::Database(database) => Ok((database, config)),
        Place::Folder(path) => bail!(
            "{} is a folder, which needs none of this; name a database with --store postgres://user@host/name",
            path.display()
        ),
    }
}

/// Does something with the schema, whatever there is in it.
fn with_schema<T>(
    args: &StoreArgs,
    work: impl AsyncFnOnce(&PostgresSchema) -> forager_frontier::Result<T>,
) -> anyhow::Result<T> {
    let (database, config) = database(args)?;
    let done = crate::runtime::wait(async {
        let schema = PostgresSchema::connect(database.url.with_password(), config.store.postgres.options())?;
        // What is done then may take as long as it takes.
        store::told_if_late(&database, &config, schema.applied()).await?;
        work(&schema).await
    })?;
    done.map_err(store::not_of_input).with_context(|| database.to_string())
}
