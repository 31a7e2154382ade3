//! What an import changes before it takes in entries.

use std::collections::{HashMap, HashSet};
use std::fmt;

use forager_core::scope::{Profile, Seed};
use forager_core::url::Identity;
use forager_frontier::catalog::{Catalog, Change, CollectionSpec};
use serde_json::Value;

use crate::commands::export::Header;
use crate::input::Place;
use crate::names::in_snake_case;
use crate::record::BadLine;

/// What is wrong with lines about a collection, and with which of them, where that is known.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) place: Option<Place>,
    pub(super) problem: BadLine,
}

impl Failure {
    /// A problem that only shows when all of them are put to use.
    pub(super) fn of_all(problem: &anyhow::Error) -> Self {
        Self { place: None, problem: BadLine::whole(format_args!("{problem:#}")) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for Failure {}

/// The changes that make a collection of this name, its profiles and its seeds, as far as they are not there.
pub(super) fn changes(
    catalog: &Catalog,
    headers: &[(Place, Header)],
    id: &str,
) -> Result<Vec<Change>, Failure> {
    let profiles = catalog.rows().profiles.iter();
    let owners = profiles.map(|profile| (&*profile.id, &*profile.collection)).collect();
    let mut draft = Draft {
        catalog,
        id,
        owners,
        added: HashSet::new(),
        seeds: HashMap::new(),
        changes: collection(catalog, headers, id)?,
    };
    for (place, header) in headers {
        let failed = |problem| Failure { place: Some(place.clone()), problem };
        header.profiles.iter().try_for_each(|profile| draft.profile(profile)).map_err(failed)?;
        header.seeds.iter().try_for_each(|seed| draft.seed(seed)).map_err(failed)?;
    }
    Ok(draft.changes)
}

fn collection(catalog: &Catalog, headers: &[(Place, Header)], id: &str) -> Result<Vec<Change>, Failure> {
    let mut kind = catalog.collection(id).map(|row| row.spec.kind);
    let is_there = kind.is_some();
    for (place, header) in headers {
        if *kind.get_or_insert(header.collection.kind) != header.collection.kind {
            let problem = format!("collection {id:?} is there already, and is of another kind");
            let problem = BadLine::whole(format_args!("{problem}; choose another name with --collection"));
            return Err(Failure { place: Some(place.clone()), problem });
        }
    }
    let first = headers.first().filter(|_| !is_there);
    let spec = first.map(|(_, header)| CollectionSpec { id: id.to_owned(), ..header.collection.clone() });
    Ok(spec.map(Change::AddCollection).into_iter().collect())
}

/// Changes that are being put together.
struct Draft<'a> {
    catalog: &'a Catalog,
    id: &'a str,
    /// The collections that the profiles here belong to.
    owners: HashMap<&'a str, &'a str>,
    /// The profiles to be added.
    added: HashSet<String>,
    /// Where seeds stand among the changes.
    seeds: HashMap<Identity, usize>,
    changes: Vec<Change>,
}

impl Draft<'_> {
    fn profile(&mut self, profile: &Value) -> Result<(), BadLine> {
        let mut profile: Profile = serde_json::from_value(in_snake_case(profile.clone()))
            .map_err(|error| BadLine::field("profiles", error))?;
        profile.id = self.name_here(&profile.id);
        self.id.clone_into(&mut profile.collection);
        if !self.owners.contains_key(&*profile.id) && self.added.insert(profile.id.clone()) {
            self.changes.push(Change::AddProfile(Box::new(profile)));
        }
        Ok(())
    }

    /// The name of a profile here: its own, unless a profile of another collection has it.
    fn name_here(&self, name: &str) -> String {
        match self.owners.get(name) {
            Some(owner) if *owner != self.id => format!("{}-{name}", self.id),
            _ => name.to_owned(),
        }
    }

    /// Adds a seed that is missing, or the profiles that it lacks.
    fn seed(&mut self, seed: &Seed) -> Result<(), BadLine> {
        let profiles: Vec<String> = seed.profiles.iter().map(|name| self.name_here(name)).collect();
        let url = Identity::parse(&seed.url).map_err(|error| BadLine::field("seeds", error))?;
        if let Some(Change::AddSeed(known) | Change::SetSeed(known)) =
            self.seeds.get(&url).and_then(|&index| self.changes.get_mut(index))
        {
            add_profiles(known, profiles);
            return Ok(());
        }
        let known = self.catalog.seed_number(&url).and_then(|number| self.catalog.seed(number));
        let change = match known {
            None => Change::AddSeed(Seed { profiles, ..seed.clone() }),
            Some(row) => {
                let mut seed = row.seed.clone();
                if !add_profiles(&mut seed, profiles) {
                    return Ok(());
                }
                Change::SetSeed(seed)
            }
        };
        self.seeds.insert(url, self.changes.len());
        self.changes.push(change);
        Ok(())
    }
}

/// Gives a seed the profiles that it lacks; says whether it lacked any.
fn add_profiles(seed: &mut Seed, profiles: Vec<String>) -> bool {
    let before = seed.profiles.len();
    for name in profiles {
        if !seed.profiles.contains(&name) {
            seed.profiles.push(name);
        }
    }
    seed.profiles.len() > before
}
