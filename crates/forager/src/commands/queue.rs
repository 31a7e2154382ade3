//! `forager queue`

use anyhow::bail;
use forager_frontier::catalog::Kind;
use forager_frontier::entry::EntryId;
use forager_frontier::verbs::{EntryView, HostFilter, ListFilter, PlanFilter};

use super::host::{shown, wanted_key};
use crate::Outcome;
use crate::cli::{EntryArgs, QueueCommand, QueueHostsArgs, QueueListArgs, QueuePlanArgs};
use crate::output::{self, Output};
use crate::store::{self, Missing, Store};

const LIST_COLUMNS: &[&str] =
    &["id", "state", "priority", "due", "collection", "url", "depth", "risk", "lastFetch"];
const PLAN_COLUMNS: &[&str] = &["at", "waitsFor", "priority", "collection", "url", "due"];
const HOST_COLUMNS: &[&str] = &[
    "host",
    "collection",
    "queued",
    "inFlight",
    "fetched",
    "failures",
    "opens",
    "gate",
    "settings.delay",
    "crawlDelay",
];
const STATS_COLUMNS: &[&str] = &[
    "collection",
    "queued",
    "inFlight",
    "done",
    "failed",
    "skipped",
    "hosts",
    "fetches",
    "changes",
    "bytes",
];

/// How many are read at a time.
const PAGE: usize = 1000;

/// How many hosts are read at a time: each call looks through all of them.
pub(super) const HOST_PAGE: usize = 50_000;

pub(super) fn run(command: &QueueCommand) -> anyhow::Result<Outcome> {
    match command {
        QueueCommand::List(args) => list(args),
        QueueCommand::Show(args) => show(args),
        QueueCommand::Plan(args) => plan(args),
        QueueCommand::Hosts(args) => hosts(args),
        QueueCommand::Stats { collection, store } => {
            let stats = store::with(store, Missing::Refuse, |store| {
                store::ask(store.frontier.stats(collection.as_deref(), store.now()))
            })?;
            let mut output = Output::new(store.format(), STATS_COLUMNS);
            stats.iter().try_for_each(|row| output.row(row))?;
            output.flush()?;
            Ok(Outcome::Complete)
        }
    }
}

fn list(args: &QueueListArgs) -> anyhow::Result<Outcome> {
    let mut output = Output::new(args.store.format(), LIST_COLUMNS);
    let mut left = args.limit.unwrap_or(usize::MAX);
    let mut filter = ListFilter {
        collection: args.collection.clone(),
        state: args.state,
        prefix: args.prefix.clone(),
        contains: args.contains.clone(),
        after: args.after.map(EntryId),
        ..ListFilter::default()
    };
    store::with(&args.store, Missing::Refuse, |store| {
        filter.host = wanted_key(store, args.host.as_deref(), args.collection.as_deref())?;
        let now = store.now();
        while left > 0 {
            filter.limit = left.min(PAGE);
            let page = store::ask(store.frontier.list(&filter, now))?;
            for entry in &page.entries {
                output.row(&brief(entry)?)?;
            }
            left -= page.entries.len().min(left);
            if page.next.is_none() {
                break;
            }
            filter.after = page.next;
        }
        output.flush()?;
        Ok(Outcome::Complete)
    })
}

/// An entry without what only `show` tells.
fn brief(entry: &EntryView) -> anyhow::Result<serde_json::Value> {
    let mut row = serde_json::to_value(entry)?;
    if let Some(row) = row.as_object_mut() {
        row.remove("record");
    }
    Ok(row)
}

fn show(args: &EntryArgs) -> anyhow::Result<Outcome> {
    let entry = store::with(&args.store, Missing::Refuse, |store| {
        let collection = collection_or_only(store, args.collection.as_deref())?;
        let key = wanted_key(store, args.key.as_deref(), Some(&collection))?;
        if key.is_none() {
            tell_others(store, &collection, &args.url)?;
        }
        match store::ask(store.frontier.entry(&collection, key.as_deref(), &args.url, store.now()))? {
            Some(entry) => Ok(entry),
            None => bail!(
                "{:?} is not in collection {collection:?}; \"forager explain\" says what would become of it",
                args.url
            ),
        }
    })?;
    let mut output = Output::new(args.store.format(), &[]);
    output.sheet(&entry)?;
    output.flush()?;
    Ok(Outcome::Complete)
}

/// Says which other queues have the same URL, so that nobody takes one record for all there is.
fn tell_others(store: &Store, collection: &str, url: &str) -> anyhow::Result<()> {
    let catalog = store::ask(store.frontier.catalog())?;
    if catalog.require_collection(collection)?.spec.kind == Kind::Planned {
        return Ok(()); // where a URL is in one queue, that of its host
    }
    let keys = store::ask(store.frontier.explain(collection, None, url, store.now()))?.other_keys;
    if !keys.is_empty() {
        output::tell(format_args!(
            "the same URL is in other queues too; name one with --key: {}",
            keys.join(", ")
        ));
    }
    Ok(())
}

/// The collection that is named, or the only one there is.
pub(super) fn collection_or_only(store: &Store, name: Option<&str>) -> anyhow::Result<String> {
    if let Some(name) = name {
        return Ok(name.to_owned());
    }
    let catalog = store::ask(store.frontier.catalog())?;
    match &*catalog.rows().collections {
        [] => bail!("there is no collection; add one with \"forager collection add\""),
        [only] => Ok(only.spec.id.clone()),
        several => {
            let names: Vec<&str> = several.iter().map(|row| &*row.spec.id).collect();
            bail!("say which collection with --collection: {}", names.join(", "))
        }
    }
}

fn plan(args: &QueuePlanArgs) -> anyhow::Result<Outcome> {
    let planned = store::with(&args.store, Missing::Refuse, |store| {
        let collection = args.collection.clone();
        let host = wanted_key(store, args.host.as_deref(), collection.as_deref())?;
        let filter = PlanFilter { collection, host, limit: args.limit };
        store::ask(store.frontier.plan(&filter, store.now()))
    })?;
    let mut output = Output::new(args.store.format(), PLAN_COLUMNS);
    planned.iter().try_for_each(|row| output.row(row))?;
    output.flush()?;
    Ok(Outcome::Complete)
}

fn hosts(args: &QueueHostsArgs) -> anyhow::Result<Outcome> {
    let mut output = Output::new(args.store.format(), HOST_COLUMNS);
    let mut left = args.limit.unwrap_or(usize::MAX);
    let mut filter = HostFilter { collection: args.collection.clone(), ..HostFilter::default() };
    let is_for_people = output.is_for_people();
    store::with(&args.store, Missing::Refuse, |store| {
        filter.key = wanted_key(store, args.host.as_deref(), args.collection.as_deref())?;
        let now = store.now();
        while left > 0 {
            filter.limit = left.min(HOST_PAGE);
            let page = store::ask(store.frontier.hosts(&filter, now))?;
            page.iter().try_for_each(|host| output.row(&shown(host, is_for_people)?))?;
            left -= page.len().min(left);
            filter.skip += page.len();
            if page.len() < filter.limit {
                break;
            }
        }
        output.flush()?;
        Ok(Outcome::Complete)
    })
}
