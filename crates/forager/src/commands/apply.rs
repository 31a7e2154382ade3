//! `forager apply`

use std::collections::{HashMap, HashSet};

use forager_core::scope::{Profile, Seed};
use forager_core::url::Identity;
use forager_frontier::catalog::{Change, CollectionSpec, Kind, Rows, SeedRow};

use super::catalog::{ask_before_removing, print_changes};
use crate::Outcome;
use crate::cli::ApplyArgs;
use crate::config::Config;
use crate::output;
use crate::store::{self, Missing};

pub(super) fn run(args: &ApplyArgs) -> anyhow::Result<Outcome> {
    let config = Config::load_required(&args.store.place.config)?;
    for warning in config.scopes()?.dangling() {
        output::complain(format_args!("warning: {warning}"));
    }
    if args.dry_run && !store::is_there(&args.store.place)? {
        print_changes(&args.store, &difference(&config, &Rows::default(), args.prune))?;
        return Ok(Outcome::Complete);
    }
    let changes = store::with(&args.store, Missing::Create, |store| {
        let catalog = store::ask(store.frontier.catalog())?;
        let changes = difference(&config, catalog.rows(), args.prune);
        if !args.dry_run {
            ask_before_removing(store, &changes, args.yes)?;
            store::ask(store.frontier.configure(&changes, store.now()))?;
        }
        Ok(changes)
    })?;
    print_changes(&args.store, &changes)?;
    Ok(Outcome::Complete)
}

/// The changes that make the queue as the configuration says. Jobs, and what belongs to them, are
/// none of its business.
pub(super) fn difference(config: &Config, rows: &Rows, prune: bool) -> Vec<Change> {
    let known = Known::of(rows);
    let mut changes = Vec::new();
    changes.extend(collections(config, rows));
    changes.extend(config.profiles.iter().filter_map(|profile| known.profile(profile)));
    changes.extend(config.seeds.iter().filter_map(|seed| known.seed(seed)));
    if prune {
        changes.extend(removals(config, rows, &known));
    }
    changes
}

fn collections<'a>(config: &'a Config, rows: &'a Rows) -> impl Iterator<Item = Change> + 'a {
    config.collections.iter().filter_map(|wanted| {
        let known = rows.collections.iter().find(|row| row.spec.id == wanted.id);
        match known {
            None => Some(Change::AddCollection(CollectionSpec {
                enabled: wanted.enabled,
                ..CollectionSpec::new(&wanted.id, Kind::Planned)
            })),
            Some(row) if row.spec.enabled != wanted.enabled => {
                Some(Change::EnableCollection(wanted.id.clone(), wanted.enabled))
            }
            Some(_) => None,
        }
    })
}

/// What the queue has, for looking up.
struct Known<'a> {
    profiles: HashMap<&'a str, &'a Profile>,
    seeds: HashMap<String, &'a SeedRow>,
    /// The profiles of jobs.
    of_jobs: HashSet<&'a str>,
}

impl<'a> Known<'a> {
    fn of(rows: &'a Rows) -> Self {
        let jobs: HashSet<&str> =
            rows.collections.iter().filter(|row| row.spec.job.is_some()).map(|row| &*row.spec.id).collect();
        let of_jobs = rows.profiles.iter().filter(|profile| jobs.contains(&*profile.collection));
        let live = rows.seeds.iter().filter(|row| !row.is_gone);
        Self {
            profiles: rows.profiles.iter().map(|profile| (&*profile.id, profile)).collect(),
            seeds: live.map(|row| (key(&row.seed.url), row)).collect(),
            of_jobs: of_jobs.map(|profile| &*profile.id).collect(),
        }
    }

    fn profile(&self, wanted: &Profile) -> Option<Change> {
        match self.profiles.get(&*wanted.id) {
            None => Some(Change::AddProfile(Box::new(wanted.clone()))),
            Some(known) if *known != wanted => Some(Change::SetProfile(Box::new(wanted.clone()))),
            Some(_) => None,
        }
    }

    fn seed(&self, wanted: &Seed) -> Option<Change> {
        let Some(known) = self.seeds.get(&key(&wanted.url)) else {
            return Some(Change::AddSeed(wanted.clone()));
        };
        let mut wanted = wanted.public();
        wanted.profiles.extend(self.job_profiles(known));
        (known.seed != wanted).then_some(Change::SetSeed(wanted))
    }

    fn job_profiles(&self, row: &SeedRow) -> impl Iterator<Item = String> {
        row.seed.profiles.iter().filter(|name| self.of_jobs.contains(&***name)).cloned()
    }
}

/// What is in the queue and not in the configuration.
fn removals(config: &Config, rows: &Rows, known: &Known<'_>) -> Vec<Change> {
    let seeds: HashSet<String> = config.seeds.iter().map(|seed| key(&seed.url)).collect();
    let mut changes = Vec::new();
    for row in rows.seeds.iter().filter(|row| !row.is_gone && !seeds.contains(&key(&row.seed.url))) {
        let kept: Vec<String> = known.job_profiles(row).collect();
        if kept.is_empty() {
            changes.push(Change::RemoveSeed(row.seed.url.clone()));
        } else if kept != row.seed.profiles {
            changes.push(Change::SetSeed(Seed { profiles: kept, ..row.seed.clone() }));
        }
    }
    let profiles = rows.profiles.iter().filter(|known_one| !known.of_jobs.contains(&*known_one.id));
    let gone = profiles.filter(|known| config.profiles.iter().all(|wanted| wanted.id != known.id));
    changes.extend(gone.map(|profile| Change::RemoveProfile(profile.id.clone())));
    let collections = rows.collections.iter().filter(|row| row.spec.job.is_none()).map(|row| &row.spec.id);
    let gone = collections.filter(|id| config.collections.iter().all(|wanted| wanted.id != **id));
    changes.extend(gone.map(|id| Change::RemoveCollection(id.clone())));
    changes
}

/// What a seed is told apart by.
fn key(url: &str) -> String {
    Identity::parse(url).map_or_else(|_| url.to_owned(), |url| url.as_str().to_owned())
}
