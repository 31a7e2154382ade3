//! `forager collection`, `forager profile`, `forager seed`

use anyhow::bail;
use forager_core::scope::{Profile, Seed};
use forager_frontier::Frontier as _;
use forager_frontier::catalog::{Catalog, Change, CollectionRow, CollectionSpec, Kind, Rows};
use forager_frontier::verbs::{Stats, Tally, Target};
use serde::Serialize;

use super::seeds::{self, Stored};
use crate::Outcome;
use crate::cli::{CollectionCommand, ProfileAddArgs, ProfileCommand, SeedCommand, StoreArgs, UrlsArgs};
use crate::names::in_camel_case;
use crate::output::Output;
use crate::store::{self, Missing, Store};
use crate::words::counted;

const CHANGE_COLUMNS: &[&str] = &["change", "kind", "name"];
const COLLECTION_COLUMNS: &[&str] =
    &["id", "kind", "enabled", "profiles", "queued", "inFlight", "done", "failed", "hosts"];
const PROFILE_COLUMNS: &[&str] =
    &["id", "collection", "enabled", "order", "scope", "depth", "every", "length", "include", "exclude"];
const SEED_COLUMNS: &[&str] = &["url", "profiles", "enabled"];
const STARTED_COLUMNS: &[&str] = &["action", "collection", "url", "due", "rule"];

pub(super) fn collection(command: &CollectionCommand) -> anyhow::Result<Outcome> {
    match command {
        CollectionCommand::Add { names, plain, disabled, store } => {
            let kind = if *plain { Kind::Plain } else { Kind::Planned };
            let spec = |name| CollectionSpec { enabled: !disabled, ..CollectionSpec::new(name, kind) };
            seeds::check_once("collection", names, str::to_owned)?;
            let changes: Vec<Change> = names.iter().map(spec).map(Change::AddCollection).collect();
            store::rehearse(store, |memory, now| store::ask(memory.configure(&changes, now)))?;
            change(store, Missing::Create, |_| Ok(changes))
        }
        CollectionCommand::List(args) => show_collections(args, None),
        CollectionCommand::Show(args) => show_collections(&args.store, Some(&args.names)),
        CollectionCommand::Enable(args) => switch(&args.store, &args.names, true, Change::EnableCollection),
        CollectionCommand::Disable(args) => switch(&args.store, &args.names, false, Change::EnableCollection),
        CollectionCommand::Remove { names, yes } => {
            seeds::check_once("collection", &names.names, str::to_owned)?;
            change(&names.store, Missing::Refuse, |store| {
                let changes: Vec<Change> =
                    names.names.iter().cloned().map(Change::RemoveCollection).collect();
                ask_before_removing(store, &changes, *yes)?;
                Ok(changes)
            })
        }
        CollectionCommand::Start(args) => start(&args.store, &args.names, Target::Collection),
    }
}

pub(super) fn profile(command: &ProfileCommand) -> anyhow::Result<Outcome> {
    match command {
        ProfileCommand::Add(args) => change(&args.store, Missing::Refuse, |store| add_profile(store, args)),
        ProfileCommand::List(args) => show_profiles(args, None),
        ProfileCommand::Show(args) => show_profiles(&args.store, Some(&args.names)),
        ProfileCommand::Enable(args) => switch(&args.store, &args.names, true, Change::EnableProfile),
        ProfileCommand::Disable(args) => switch(&args.store, &args.names, false, Change::EnableProfile),
        ProfileCommand::Remove(args) => {
            seeds::check_once("profile", &args.names, str::to_owned)?;
            change(&args.store, Missing::Refuse, |_| {
                Ok(args.names.iter().cloned().map(Change::RemoveProfile).collect())
            })
        }
        ProfileCommand::Start(args) => start(&args.store, &args.names, Target::Profile),
    }
}

pub(super) fn seed(command: &SeedCommand) -> anyhow::Result<Outcome> {
    match command {
        SeedCommand::Add { urls, profile, disabled, store } => change(store, Missing::Refuse, |store| {
            let catalog = store::ask(store.frontier.catalog())?;
            check_profiles(&catalog, profile)?;
            seeds::check_new(&catalog, urls)?;
            let seed =
                |url: &String| Seed { url: url.clone(), profiles: profile.clone(), enabled: !disabled };
            Ok(urls.iter().map(seed).map(Change::AddSeed).collect())
        }),
        SeedCommand::Import(args) => seeds::import(args),
        SeedCommand::List(args) => show_seeds(args, None),
        SeedCommand::Show(args) => show_seeds(&args.store, Some(&args.names)),
        SeedCommand::Enable(args) => change_seeds(args, |url| Change::EnableSeed(url, true)),
        SeedCommand::Disable(args) => change_seeds(args, |url| Change::EnableSeed(url, false)),
        SeedCommand::Remove(args) => {
            seeds::check_once("seed", &args.names, seeds::key_of)?;
            change_seeds(args, Change::RemoveSeed)
        }
        SeedCommand::Start(args) => start(&args.store, &args.names, Target::Seed),
    }
}

/// A change, as it is printed.
#[derive(Serialize)]
pub(super) struct ChangeRow<'a> {
    change: &'static str,
    kind: &'static str,
    name: &'a str,
}

impl<'a> From<&'a Change> for ChangeRow<'a> {
    fn from(change: &'a Change) -> Self {
        let switched = |enabled: &bool| if *enabled { "enabled" } else { "disabled" };
        let (change, kind, name): (_, _, &str) = match change {
            Change::AddCollection(spec) => ("added", "collection", &spec.id),
            Change::SetCollection(spec) => ("changed", "collection", &spec.id),
            Change::EnableCollection(id, enabled) => (switched(enabled), "collection", id),
            Change::RemoveCollection(id) => ("removed", "collection", id),
            Change::AddProfile(profile) => ("added", "profile", &profile.id),
            Change::SetProfile(profile) => ("changed", "profile", &profile.id),
            Change::EnableProfile(id, enabled) => (switched(enabled), "profile", id),
            Change::RemoveProfile(id) => ("removed", "profile", id),
            Change::AddSeed(seed) => ("added", "seed", &seed.url),
            Change::SetSeed(seed) => ("changed", "seed", &seed.url),
            Change::EnableSeed(url, enabled) => (switched(enabled), "seed", url),
            Change::RemoveSeed(url) => ("removed", "seed", url),
            // No command makes these, only clients of the server.
            Change::SetActive(is_active) => (switched(is_active), "queue", "all"),
            Change::SetPlainDelay(_) => ("changed", "queue", "all"),
        };
        Self { change, kind, name }
    }
}

/// Prints changes.
pub(super) fn print_changes(args: &StoreArgs, changes: &[Change]) -> anyhow::Result<()> {
    let mut output = Output::new(args.format(), CHANGE_COLUMNS);
    changes.iter().try_for_each(|change| output.row(&ChangeRow::from(change)))?;
    if changes.is_empty() && output.is_for_people() {
        output.text("nothing to change")?;
    }
    output.flush()
}

/// Makes the changes that `decide` asks for, all or none, and prints them.
fn change(
    args: &StoreArgs,
    missing: Missing,
    decide: impl FnOnce(&Store) -> anyhow::Result<Vec<Change>>,
) -> anyhow::Result<Outcome> {
    let changes = store::with(args, missing, |store| {
        let changes = decide(store)?;
        store::ask(store.frontier.configure(&changes, store.now()))?;
        Ok(changes)
    })?;
    print_changes(args, &changes)?;
    Ok(Outcome::Complete)
}

fn switch(
    args: &StoreArgs,
    names: &[String],
    enabled: bool,
    make: impl Fn(String, bool) -> Change,
) -> anyhow::Result<Outcome> {
    change(args, Missing::Refuse, |_| Ok(names.iter().map(|name| make(name.clone(), enabled)).collect()))
}

/// Changes seeds, by the names that the queue has for them.
fn change_seeds(args: &UrlsArgs, make: impl Fn(String) -> Change) -> anyhow::Result<Outcome> {
    change(&args.store, Missing::Refuse, |store| {
        let catalog = store::ask(store.frontier.catalog())?;
        Ok(Stored::of(&catalog).urls(&args.names).into_iter().map(make).collect())
    })
}

fn start(args: &StoreArgs, names: &[String], target: impl Fn(String) -> Target) -> anyhow::Result<Outcome> {
    let targets: Vec<Target> = names.iter().cloned().map(target).collect();
    let started = store::with(args, Missing::Refuse, |store| {
        let catalog = store::ask(store.frontier.catalog())?;
        let seeds = Stored::of(&catalog);
        let stored = |target| match target {
            Target::Seed(url) => Target::Seed(seeds.url(&url).map(str::to_owned).unwrap_or(url)),
            other => other,
        };
        let targets: Vec<Target> = targets.into_iter().map(stored).collect();
        store::ask(store.frontier.start(&targets, store.now()))
    })?;
    let mut output = Output::new(args.format(), STARTED_COLUMNS);
    started.iter().try_for_each(|row| output.row(row))?;
    output.flush()?;
    Ok(Outcome::Complete)
}

/// Refuses to remove collections that have entries, unless told to.
pub(super) fn ask_before_removing(store: &Store, changes: &[Change], yes: bool) -> anyhow::Result<()> {
    for change in changes {
        let Change::RemoveCollection(id) = change else { continue };
        let entries: u64 = store::ask(store.frontier.stats(Some(id), store.now()))?.iter().map(entries).sum();
        if entries > 0 && !yes {
            let entries = counted(entries, "entry", "entries");
            bail!("collection {id:?} has {entries}, which would go with it; say --yes to remove it");
        }
    }
    Ok(())
}

/// How many entries a collection has, in whatever state.
pub(super) fn entries(stats: &Stats) -> u64 {
    stats.queued + stats.in_flight + stats.done + stats.failed
}

fn add_profile(store: &Store, args: &ProfileAddArgs) -> anyhow::Result<Vec<Change>> {
    let catalog = store::ask(store.frontier.catalog())?;
    if catalog.collection(&args.collection).is_none() {
        let name = &args.collection;
        bail!("there is no collection {name:?}; add it first with \"forager collection add\"");
    }
    let mut profile = args.harvest.profile(&args.name, &args.collection);
    (profile.every, profile.length, profile.enabled) = (args.every, args.length, !args.disabled);
    let profile = Box::new(profile);
    let is_there = catalog.rows().profiles.iter().any(|known| known.id == args.name);
    Ok(vec![if is_there && args.replace { Change::SetProfile(profile) } else { Change::AddProfile(profile) }])
}

/// Refuses names of profiles that are not there: they are most often slips.
pub(super) fn check_profiles(catalog: &Catalog, names: &[String]) -> anyhow::Result<()> {
    let known = |name: &String| catalog.rows().profiles.iter().any(|profile| profile.id == *name);
    match names.iter().find(|name| !known(name)) {
        Some(name) => bail!("there is no profile {name:?}; add it first with \"forager profile add\""),
        None => Ok(()),
    }
}

/// A collection, as it is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CollectionView<'a> {
    id: &'a str,
    kind: Kind,
    is_job: bool,
    enabled: bool,
    profiles: Vec<&'a str>,
    queued: u64,
    in_flight: u64,
    done: u64,
    failed: u64,
    hosts: u64,
    #[serde(flatten)]
    tally: Tally,
}

impl<'a> CollectionView<'a> {
    fn new(row: &'a CollectionRow, rows: &'a Rows, stats: &[Stats]) -> Self {
        let spec = &row.spec;
        let counted = stats.iter().find(|stats| stats.collection == spec.id).cloned().unwrap_or_default();
        let own = rows.profiles.iter().filter(|profile| profile.collection == spec.id);
        Self {
            id: &spec.id,
            kind: spec.kind,
            is_job: spec.job.is_some(),
            enabled: spec.enabled,
            profiles: own.map(|profile| &*profile.id).collect(),
            queued: counted.queued,
            in_flight: counted.in_flight,
            done: counted.done,
            failed: counted.failed,
            hosts: counted.hosts,
            tally: counted.tally,
        }
    }
}

/// Prints the things of these names, or all if none are named: one row each, or all fields of each.
fn show<T: Serialize>(
    args: &StoreArgs,
    columns: &'static [&'static str],
    kind: &'static str,
    names: Option<&[String]>,
    things: &[T],
    is_named: impl Fn(&T, &str) -> bool,
) -> anyhow::Result<Outcome> {
    let mut output = Output::new(args.format(), columns);
    let Some(names) = names else {
        things.iter().try_for_each(|thing| output.row(thing))?;
        output.flush()?;
        return Ok(Outcome::Complete);
    };
    for name in names {
        let Some(thing) = things.iter().find(|thing| is_named(thing, name)) else {
            bail!("there is no {kind} {name:?}");
        };
        output.sheet(thing)?;
    }
    output.flush()?;
    Ok(Outcome::Complete)
}

fn show_collections(args: &StoreArgs, names: Option<&[String]>) -> anyhow::Result<Outcome> {
    let (catalog, stats) = store::with(args, Missing::Refuse, |store| {
        Ok((store::ask(store.frontier.catalog())?, store::ask(store.frontier.stats(None, store.now()))?))
    })?;
    let rows = catalog.rows();
    let views: Vec<_> = rows.collections.iter().map(|row| CollectionView::new(row, rows, &stats)).collect();
    show(args, COLLECTION_COLUMNS, "collection", names, &views, |view, name| view.id == name)
}

fn show_profiles(args: &StoreArgs, names: Option<&[String]>) -> anyhow::Result<Outcome> {
    let catalog = store::with(args, Missing::Refuse, |store| store::ask(store.frontier.catalog()))?;
    let view = |profile: &Profile| Ok(in_camel_case(serde_json::to_value(profile)?));
    let views: anyhow::Result<Vec<_>> = catalog.rows().profiles.iter().map(view).collect();
    show(args, PROFILE_COLUMNS, "profile", names, &views?, |view, name| view["id"] == name)
}

fn show_seeds(args: &StoreArgs, names: Option<&[String]>) -> anyhow::Result<Outcome> {
    let catalog = store::with(args, Missing::Refuse, |store| store::ask(store.frontier.catalog()))?;
    let live = catalog.rows().seeds.iter().filter(|row| !row.is_gone);
    let seeds: Vec<&Seed> = live.map(|row| &row.seed).collect();
    let names = names.map(|names| Stored::of(&catalog).urls(names));
    show(args, SEED_COLUMNS, "seed", names.as_deref(), &seeds, |seed, name| seed.url == name)
}
