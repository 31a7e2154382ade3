//! What is harvested: collections, profiles, seeds and jobs, as a store keeps them, and what holds for all of it.

use std::collections::{BTreeMap, HashMap};

use forager_core::order::Order;
use forager_core::scope::{Collection, Profile, Scopes, Seed};
use forager_core::select::Selector;
use forager_core::sentinel::classify::Classifier;
use forager_core::time::Interval;
use forager_core::url::Identity;
use serde::{Deserialize, Serialize};

use crate::entry::{CollectionId, SeedId};
use crate::error::{Error, Result};
use crate::host::Waits;
use crate::moment::Moment;
use crate::settings::Settings;

/// Who decides in a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Its profiles: URLs are canonicalised, scope and priorities apply, hosts are shared.
    #[default]
    Planned,
    /// Its clients: URLs and queue keys are kept as they come, and so are the dates; politeness is
    /// the collection's own. It has no profiles.
    Plain,
}

/// A collection as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CollectionSpec {
    /// Its name.
    pub id: String,
    /// Whether it is harvested; if not, its URLs wait.
    pub enabled: bool,
    /// Who decides in it.
    pub kind: Kind,
    /// Set if it is a job: a harvest that ends.
    pub job: Option<Job>,
}

impl CollectionSpec {
    /// An enabled collection without an end.
    pub fn new(id: impl Into<String>, kind: Kind) -> Self {
        Self { id: id.into(), enabled: true, kind, job: None }
    }
}

/// What makes a collection a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// When it was started.
    pub started: Moment,
    /// What a person did with it.
    pub steering: Steering,
    /// When it had nothing left to fetch, or reached a limit.
    pub finished: Option<Moment>,
    /// When it ends at the latest.
    pub limits: Limits,
    /// How long nobody worked at it since it was started, as far as that was told: this does not count for its limit of
    /// time.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub idle: Interval,
}

fn is_nothing(interval: &Interval) -> bool {
    *interval == Interval::default()
}

impl Job {
    /// When its time is over, if it has a limit of time.
    pub fn time_ends(&self) -> Option<Moment> {
        self.limits.time.map(|time| self.started.after(self.idle).after(time))
    }
}

/// What a person did with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Steering {
    /// It goes on.
    Running,
    /// It hands out nothing until it is resumed.
    Paused,
    /// It hands out nothing any more.
    Cancelled,
}

/// When a job ends, even if there is more to fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// After so many fetches.
    pub pages: Option<u64>,
    /// After so many bytes.
    pub bytes: Option<u64>,
    /// After so much time at work.
    pub time: Option<Interval>,
}

/// A collection as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionRow {
    /// Its number.
    pub number: CollectionId,
    /// How it was written.
    pub spec: CollectionSpec,
    /// How often something in it was started; see [`Standing::harvest`](crate::entry::Standing).
    pub harvest: u8,
}

/// A seed as it is kept. It stays, for entries that refer to it, when it is removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedRow {
    /// Its number.
    pub number: SeedId,
    /// How it was written.
    pub seed: Seed,
    /// Whether it was removed.
    pub is_gone: bool,
}

/// What holds for all queues, as clients have set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Overall {
    /// Whether anything is handed out.
    pub is_active: bool,
    /// How long queues of plain collections wait that have no delay of their own; a second if nobody has said.
    pub delay: Option<Interval>,
}

impl Default for Overall {
    fn default() -> Self {
        Self { is_active: true, delay: None }
    }
}

impl Overall {
    /// How long queues of plain collections wait.
    pub fn waits(&self) -> Waits {
        let delay = self.delay.unwrap_or(Interval::from_secs_f64(1.0));
        Waits { least: delay, most: delay }
    }
}

/// The rows of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// The collections that there are, in the order of their numbers.
    pub collections: Vec<CollectionRow>,
    /// The number of the next collection.
    pub next_collection: u32,
    /// The profiles, in the order they were added.
    pub profiles: Vec<Profile>,
    /// All seeds that ever were; each stands at its number.
    pub seeds: Vec<SeedRow>,
    /// What holds for all queues.
    pub overall: Overall,
}

/// Collections, profiles and seeds, ready for verdicts.
#[derive(Debug)]
pub struct Catalog {
    rows: Rows,
    scopes: Scopes,
    classifier: Classifier,
    selector: Selector,
    /// The identities of the seeds, by their numbers.
    identities: Vec<Identity>,
    by_identity: BTreeMap<String, SeedId>,
    by_name: BTreeMap<String, usize>,
}

impl Catalog {
    /// Prepares the rows of a store.
    pub fn new(rows: Rows, settings: &Settings) -> Result<Self> {
        let collections: Vec<Collection> = rows
            .collections
            .iter()
            .map(|row| Collection { id: row.spec.id.clone(), enabled: row.spec.enabled })
            .collect();
        let seeds: Vec<Seed> =
            rows.seeds.iter().filter(|row| !row.is_gone).map(|row| row.seed.clone()).collect();
        let invalid = |error: &dyn std::fmt::Display| Error::Configuration(error.to_string());
        let scopes =
            Scopes::new(&collections, &rows.profiles, &seeds, settings.scope).map_err(|e| invalid(&e))?;
        let identities: Result<Vec<Identity>, _> =
            rows.seeds.iter().map(|row| Identity::parse(&row.seed.url)).collect();
        let identities = identities.map_err(|e| invalid(&e))?;
        let live = rows.seeds.iter().filter(|row| !row.is_gone);
        let by_identity =
            live.map(|row| (identities[row.number.0 as usize].as_str().to_owned(), row.number)).collect();
        let names = rows.collections.iter().enumerate();
        Ok(Self {
            by_name: names.map(|(index, row)| (row.spec.id.clone(), index)).collect(),
            classifier: Classifier::new(settings.classify.clone()).map_err(|e| invalid(&e))?,
            selector: Selector::new(settings.select.clone()).map_err(|e| invalid(&e))?,
            scopes,
            identities,
            by_identity,
            rows,
        })
    }

    /// The rows, as they are kept.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The rules of scope.
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// The classifier of pages.
    pub fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    /// The judge of service pages.
    pub fn selector(&self) -> &Selector {
        &self.selector
    }

    /// The collection of this name.
    pub fn collection(&self, name: &str) -> Option<&CollectionRow> {
        self.by_name.get(name).map(|&index| &self.rows.collections[index])
    }

    /// The collection of this name, or the error that there is none.
    pub fn require_collection(&self, name: &str) -> Result<&CollectionRow> {
        self.collection(name).ok_or_else(|| Error::not_found("collection", name))
    }

    /// The collection of this number.
    pub fn collection_numbered(&self, number: CollectionId) -> Option<&CollectionRow> {
        let rows = &self.rows.collections;
        rows.binary_search_by_key(&number, |row| row.number).ok().map(|index| &rows[index])
    }

    /// The identity of a seed, also of one that is gone.
    pub fn seed_identity(&self, number: SeedId) -> Option<&Identity> {
        self.identities.get(number.0 as usize)
    }

    /// The number of the seed that is known by `url`.
    pub fn seed_number(&self, url: &Identity) -> Option<SeedId> {
        self.by_identity.get(url.as_str()).copied()
    }

    /// The seed of this number, also one that is gone.
    pub fn seed(&self, number: SeedId) -> Option<&SeedRow> {
        self.rows.seeds.get(number.0 as usize)
    }

    /// How entries of `seed` in `collection` are ordered.
    pub fn order(&self, collection: &str, seed: Option<SeedId>) -> Order {
        match seed.and_then(|seed| self.seed_identity(seed)) {
            Some(seed) => self.scopes.order(collection, seed),
            None => Order::Fifo,
        }
    }
}

/// A change of the catalog. Adding what is there and changing what is not are errors.
#[derive(Clone, Debug)]
pub enum Change {
    /// A new collection.
    AddCollection(CollectionSpec),
    /// Another state of a collection.
    SetCollection(CollectionSpec),
    /// Whether a collection is harvested.
    EnableCollection(String, bool),
    /// A collection goes, with all its entries. Its profiles stay.
    RemoveCollection(String),
    /// A new profile.
    AddProfile(Box<Profile>),
    /// Another state of a profile.
    SetProfile(Box<Profile>),
    /// Whether a profile is harvested.
    EnableProfile(String, bool),
    /// A profile goes; entries may be out of scope when they are next touched.
    RemoveProfile(String),
    /// A new seed.
    AddSeed(Seed),
    /// Another state of a seed.
    SetSeed(Seed),
    /// Whether a seed is harvested.
    EnableSeed(String, bool),
    /// A seed goes; another one may take over its entries when they are next touched.
    RemoveSeed(String),
    /// Whether anything is handed out at all, of whatever collection and to whomever.
    SetActive(bool),
    /// How long queues of plain collections wait that have no delay of their own, also after what they last handed out.
    SetPlainDelay(Interval),
}

/// Rows that are being changed. Seeds are found by their identities, which are worked out once.
pub(crate) struct Draft {
    rows: Rows,
    seeds: HashMap<Identity, usize>,
}

impl Draft {
    /// Begins to change rows.
    pub(crate) fn of(rows: &Rows) -> Self {
        let numbered = rows.seeds.iter().enumerate();
        let seeds = numbered.filter_map(|(index, row)| Some((Identity::parse(&row.seed.url).ok()?, index)));
        Self { seeds: seeds.collect(), rows: rows.clone() }
    }

    /// The rows as they are now.
    pub(crate) fn finish(self) -> Rows {
        self.rows
    }

    /// Makes a change.
    pub(crate) fn apply(&mut self, change: &Change) -> Result<()> {
        match change {
            Change::AddCollection(spec) => self.add_collection(spec),
            Change::SetCollection(spec) => {
                self.collection_mut(&spec.id)?.spec = spec.clone();
                self.check_plain(spec)
            }
            Change::EnableCollection(id, enabled) => {
                self.collection_mut(id)?.spec.enabled = *enabled;
                Ok(())
            }
            Change::RemoveCollection(id) => {
                let is_job = self.collection_mut(id)?.spec.job.is_some();
                self.rows.collections.retain(|row| row.spec.id != *id);
                if is_job {
                    self.remove_profile_of_job(id);
                }
                Ok(())
            }
            Change::AddProfile(profile) => {
                if self.rows.profiles.iter().any(|known| known.id == profile.id) {
                    return Err(Error::exists("profile", &profile.id));
                }
                self.check_planned(profile)?;
                self.rows.profiles.push((**profile).clone());
                Ok(())
            }
            Change::SetProfile(profile) => {
                self.check_planned(profile)?;
                *self.profile_mut(&profile.id)? = (**profile).clone();
                Ok(())
            }
            Change::EnableProfile(id, enabled) => {
                self.profile_mut(id)?.enabled = *enabled;
                Ok(())
            }
            Change::RemoveProfile(id) => {
                self.profile_mut(id)?;
                self.rows.profiles.retain(|profile| profile.id != *id);
                Ok(())
            }
            Change::AddSeed(seed) => self.add_seed(seed),
            Change::SetSeed(seed) => {
                self.seed_mut(&seed.url)?.seed = seed.public();
                Ok(())
            }
            Change::EnableSeed(url, enabled) => {
                self.seed_mut(url)?.seed.enabled = *enabled;
                Ok(())
            }
            Change::RemoveSeed(url) => {
                self.seed_mut(url)?.is_gone = true;
                Ok(())
            }
            Change::SetActive(is_active) => {
                self.rows.overall.is_active = *is_active;
                Ok(())
            }
            Change::SetPlainDelay(delay) => {
                self.rows.overall.delay = Some(*delay);
                Ok(())
            }
        }
    }

    fn add_collection(&mut self, spec: &CollectionSpec) -> Result<()> {
        if spec.id.is_empty() || spec.id.chars().any(char::is_control) {
            return Err(Error::Configuration(format!("{:?} is not a name for a collection", spec.id)));
        }
        if self.rows.collections.iter().any(|row| row.spec.id == spec.id) {
            return Err(Error::exists("collection", &spec.id));
        }
        self.check_plain(spec)?;
        let number = CollectionId(self.rows.next_collection);
        self.rows.next_collection += 1;
        self.rows.collections.push(CollectionRow { number, spec: spec.clone(), harvest: 0 });
        Ok(())
    }

    /// A profile would have no say in a plain collection, and nobody would learn of it.
    fn check_planned(&self, profile: &Profile) -> Result<()> {
        let id = &profile.collection;
        let is_its = |row: &CollectionRow| row.spec.id == *id && row.spec.kind == Kind::Plain;
        if !self.rows.collections.iter().any(is_its) {
            return Ok(());
        }
        Err(Error::Configuration(format!(
            "collection {id:?} is plain: its clients decide, and profile {:?} cannot; remove it with \
             \"forager collection remove --yes\", which takes what its clients put, or choose another name",
            profile.id
        )))
    }

    /// Nor does a collection become plain that has a profile.
    fn check_plain(&self, spec: &CollectionSpec) -> Result<()> {
        let of_it = self.rows.profiles.iter().find(|profile| profile.collection == spec.id);
        let Some(profile) = of_it.filter(|_| spec.kind == Kind::Plain) else { return Ok(()) };
        Err(Error::Configuration(format!(
            "collection {:?} has profile {:?}, and cannot be plain; remove that with \"forager profile remove\", \
             or choose another name",
            spec.id, profile.id
        )))
    }

    /// A job takes along the profile that was made for it, and the seeds that had no other.
    fn remove_profile_of_job(&mut self, id: &str) {
        self.rows.profiles.retain(|profile| profile.id != id || profile.collection != id);
        for row in self.rows.seeds.iter_mut().filter(|row| row.seed.profiles.iter().any(|name| name == id)) {
            row.seed.profiles.retain(|name| name != id);
            row.is_gone |= row.seed.profiles.is_empty();
        }
    }

    fn add_seed(&mut self, seed: &Seed) -> Result<()> {
        let url = parse_seed(&seed.url)?;
        if let Some(&index) = self.seeds.get(&url) {
            let row = &mut self.rows.seeds[index];
            if !row.is_gone {
                return Err(Error::exists("seed", &seed.url));
            }
            // The number of a seed that comes back is its old one: its entries are its own again.
            (row.seed, row.is_gone) = (seed.public(), false);
            return Ok(());
        }
        let index = self.rows.seeds.len();
        let number = SeedId(u32::try_from(index).unwrap_or(u32::MAX));
        self.rows.seeds.push(SeedRow { number, seed: seed.public(), is_gone: false });
        self.seeds.insert(url, index);
        Ok(())
    }

    fn collection_mut(&mut self, id: &str) -> Result<&mut CollectionRow> {
        let found = self.rows.collections.iter_mut().find(|row| row.spec.id == id);
        found.ok_or_else(|| Error::not_found("collection", id))
    }

    fn profile_mut(&mut self, id: &str) -> Result<&mut Profile> {
        let found = self.rows.profiles.iter_mut().find(|profile| profile.id == id);
        found.ok_or_else(|| Error::not_found("profile", id))
    }

    fn seed_mut(&mut self, url: &str) -> Result<&mut SeedRow> {
        let index = self.seeds.get(&parse_seed(url)?);
        let row = index.map(|&index| &mut self.rows.seeds[index]).filter(|row| !row.is_gone);
        row.ok_or_else(|| Error::not_found("seed", url))
    }
}

fn parse_seed(url: &str) -> Result<Identity> {
    Identity::parse(url).map_err(|cause| Error::Configuration(format!("seed {url:?}: {cause}")))
}
