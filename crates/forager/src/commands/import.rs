//! `forager import`

use anyhow::{Context as _, bail};
use forager_core::scope::{Profile, Seed};
use forager_core::url::Identity;
use forager_frontier::Frontier as _;
use forager_frontier::catalog::{Catalog, Change, CollectionSpec, Kind};
use forager_frontier::host::HostSettings;
use forager_frontier::verbs::{HostChange, HostFilter, Image};
use serde::Serialize;

use super::catalog::ChangeRow;
use super::export::{Header, HostHeader, VERSION};
use crate::Outcome;
use crate::batch::{Batches, Refused, for_each_batch};
use crate::cli::ImportArgs;
use crate::input::{Input, Line, Place};
use crate::names::in_snake_case;
use crate::output::Output;
use crate::record::{BadLine, parse, text};
use crate::store::{self, Missing, Store};

const BATCHES: Batches = Batches { size: 1000, eager: false };

enum Item {
    /// What follows belongs elsewhere if this is not understood, so nothing may follow then.
    Header(Place, Box<Result<Header, BadLine>>),
    Image(Box<Image>),
}

#[derive(Serialize)]
struct Imported {
    added: u64,
    present: u64,
    bad: u64,
}

pub(super) fn run(args: &ImportArgs) -> anyhow::Result<Outcome> {
    let input = Input::open(&args.files)?.with_progress();
    let mut output = Output::new(args.store.format(), &["change", "kind", "name"]);
    store::with_lazy(&args.store, Missing::Create, |lazy| {
        let mut import =
            Import { wanted: args.collection.as_deref(), from: None, into: None, added: 0, present: 0 };
        let is_header = |item: &Item| matches!(item, Item::Header(..));
        let summary = for_each_batch(input, &mut output, BATCHES, read, is_header, |items, output| {
            let store = lazy.get()?;
            match items {
                [Item::Header(place, header)] => match &**header {
                    Ok(header) => import.begin(store, header, output).with_context(|| place.to_string()),
                    Err(problem) => bail!("{place}: {problem}"),
                },
                _ => import.take(store, items),
            }
        })?;
        let imported = Imported { added: import.added, present: import.present, bad: summary.bad };
        tell(&imported, &mut output)?;
        Ok(summary.outcome())
    })
}

fn read(line: &Line<'_>) -> Result<Item, BadLine> {
    if text(line)?.starts_with("{\"forager\"") {
        return Ok(Item::Header(line.place(), Box::new(parse(line))));
    }
    parse(line).map(|image| Item::Image(Box::new(image)))
}

fn tell(imported: &Imported, output: &mut Output) -> anyhow::Result<()> {
    output.flush()?;
    if output.is_for_people() {
        let Imported { added, present, bad } = imported;
        output.text(&format!("{added} entries added, {present} were there already, {bad} lines were bad"))?;
    } else {
        output.row(imported)?;
    }
    output.flush()
}

/// An import under way.
struct Import<'a> {
    /// The name that the collection is to have here.
    wanted: Option<&'a str>,
    /// The name that the collection has in the file.
    from: Option<String>,
    /// The name that it has here.
    into: Option<String>,
    added: u64,
    present: u64,
}

impl Import<'_> {
    /// Makes what a collection needs, as far as it is not there.
    fn begin(&mut self, store: &Store, header: &Header, output: &mut Output) -> anyhow::Result<Refused> {
        if header.forager > VERSION {
            bail!("written by a newer version of Forager; import it with that version");
        }
        let from = &header.collection.id;
        if self.wanted.is_some() && self.from.as_ref().is_some_and(|earlier| earlier != from) {
            bail!("this is a second collection, {from:?}; leave --collection out to keep their names");
        }
        let id = self.wanted.unwrap_or(from).to_owned();
        let mut changes = foundation(&*store::ask(store.frontier.catalog())?, header, &id)?;
        store::ask(store.frontier.configure(&changes, store.now))?;
        let seeds = seeds(&*store::ask(store.frontier.catalog())?, &header.seeds, &id)?;
        store::ask(store.frontier.configure(&seeds, store.now))?;
        changes.extend(seeds);
        changes.iter().try_for_each(|change| output.row(&ChangeRow::from(change)))?;
        set_hosts(store, &header.hosts, (header.collection.kind == Kind::Plain).then_some(&id))?;
        (self.from, self.into) = (Some(from.clone()), Some(id));
        Ok(Vec::new())
    }

    fn take(&mut self, store: &Store, items: &[Item]) -> anyhow::Result<Refused> {
        let Some(id) = self.into.as_deref().or(self.wanted) else {
            bail!("an export begins with a line about its collection; name one with --collection");
        };
        let images = items.iter().filter_map(|item| match item {
            Item::Image(image) => Some((**image).clone()),
            Item::Header(..) => None,
        });
        let images: Vec<Image> = images.collect();
        let new = store::ask(store.frontier.import(id, &images, store.now))?;
        let added = new.iter().filter(|&&is_new| is_new).count() as u64;
        self.added += added;
        self.present += new.len() as u64 - added;
        Ok(Vec::new())
    }
}

/// The collection and the profiles that are missing.
fn foundation(catalog: &Catalog, header: &Header, id: &str) -> anyhow::Result<Vec<Change>> {
    let mut changes = Vec::new();
    match catalog.collection(id) {
        None => {
            let spec = CollectionSpec { id: id.to_owned(), ..header.collection.clone() };
            changes.push(Change::AddCollection(spec));
        }
        Some(row) if row.spec.kind != header.collection.kind => {
            bail!(
                "collection {id:?} is there already, and is of another kind; choose another name with --collection"
            );
        }
        Some(_) => {}
    }
    for profile in &header.profiles {
        let mut profile: Profile =
            serde_json::from_value(in_snake_case(profile.clone())).context("cannot read a profile")?;
        profile.id = name_here(catalog, &profile.id, id);
        id.clone_into(&mut profile.collection);
        if catalog.rows().profiles.iter().all(|known| known.id != profile.id) {
            changes.push(Change::AddProfile(Box::new(profile)));
        }
    }
    Ok(changes)
}

/// The name of a profile here: its own, unless a profile of another collection has it.
fn name_here(catalog: &Catalog, name: &str, collection: &str) -> String {
    let known = catalog.rows().profiles.iter().find(|profile| profile.id == name);
    match known {
        Some(profile) if profile.collection != collection => format!("{collection}-{name}"),
        _ => name.to_owned(),
    }
}

/// The seeds that are missing, or lack a profile.
fn seeds(catalog: &Catalog, seeds: &[Seed], collection: &str) -> anyhow::Result<Vec<Change>> {
    let mut changes = Vec::new();
    for seed in seeds {
        let profiles = seed.profiles.iter().map(|name| name_here(catalog, name, collection));
        let number = catalog.seed_number(&Identity::parse(&seed.url)?);
        let Some(known) = number.and_then(|number| catalog.seed(number)) else {
            changes.push(Change::AddSeed(Seed { profiles: profiles.collect(), ..seed.clone() }));
            continue;
        };
        let lacking: Vec<String> = profiles.filter(|name| !known.seed.profiles.contains(name)).collect();
        if !lacking.is_empty() {
            let mut seed = known.seed.clone();
            seed.profiles.extend(lacking);
            changes.push(Change::SetSeed(seed));
        }
    }
    Ok(changes)
}

/// Sets hosts as they were set, except those that have settings here.
fn set_hosts(store: &Store, hosts: &[HostHeader], plain: Option<&String>) -> anyhow::Result<()> {
    let mut changes = Vec::new();
    for HostHeader { host, settings } in hosts {
        let filter =
            HostFilter { collection: plain.cloned(), key: Some(host.clone()), skip: 0, limit: usize::MAX };
        let known = store::ask(store.frontier.hosts(&filter, store.now))?;
        let is_it = |view: &&forager_frontier::verbs::HostView| view.collection.as_ref() == plain;
        if known.iter().find(is_it).is_none_or(|view| view.settings == HostSettings::default()) {
            changes.push(HostChange {
                key: host.clone(),
                collection: plain.cloned(),
                settings: settings.clone(),
            });
        }
    }
    if changes.is_empty() {
        return Ok(());
    }
    store::ask(store.frontier.set_hosts(&changes, store.now))?;
    Ok(())
}
