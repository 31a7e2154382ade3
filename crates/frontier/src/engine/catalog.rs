//! Collections, profiles and seeds: changing them, and starting them.

use std::collections::BTreeSet;
use std::sync::Arc;

use forager_core::scope::Place;
use forager_core::scope::start::{self as scope, Action as ScopeAction};
use forager_core::sentinel::Risk;
use forager_core::url::{FetchUrl, Identity};

use super::discover::{classify, find, fresh};
use super::hosts::pace;
use super::notes::forget_texts;
use super::priority::{Sighting, prioritise};
use super::{NewEntry, Tx, settle};
use crate::catalog::{Catalog, Change, CollectionRow, Draft, Rows, Steering};
use crate::entry::{CollectionId, EntryId, How, Origin, Record, SeedId, Standing, State};
use crate::error::{Error, Result};
use crate::moment::Moment;
use crate::verbs::{Action, Link, Started, Target};

/// Makes all of the changes, or none.
pub(crate) fn configure<T: Tx>(tx: &mut T, changes: &[Change], now: Moment) -> Result<()> {
    if changes.is_empty() {
        return settle(tx, now);
    }
    let before = tx.catalog().clone();
    let mut draft = Draft::of(before.rows());
    for change in changes {
        draft.apply(change)?;
    }
    let rows = draft.finish();
    if rows == *before.rows() {
        return settle(tx, now); // clients say again what holds already whenever they begin
    }
    for row in &rows.collections {
        let before = before.collection_numbered(row.number);
        let is_other = before.is_some_and(|before| before.spec.kind != row.spec.kind);
        if is_other && tx.counts(row.number).iter().any(|count| *count > 0) {
            let problem = format!("collection {:?} has entries, and keeps its kind", row.spec.id);
            return Err(Error::Configuration(problem));
        }
    }
    replace(tx, rows)?;
    settle(tx, now)?;
    let after = tx.catalog().clone();
    for row in &before.rows().collections {
        if after.collection_numbered(row.number).is_none() {
            forget_turns(tx, row.number);
            forget_texts(tx, row)?;
            tx.clear_collection(row.number)?;
        }
    }
    if after.rows().overall.delay != before.rows().overall.delay {
        pace(tx);
    }
    Ok(())
}

/// Hosts that are shared need not remember when a collection that is gone had its turn.
fn forget_turns<T: Tx>(tx: &mut T, collection: CollectionId) {
    for id in tx.all_hosts() {
        if tx.host(id).turns.iter().any(|(known, _)| *known == collection) {
            let mut host = tx.host(id).clone();
            host.turns.retain(|(known, _)| *known != collection);
            tx.set_host(id, host);
        }
    }
}

/// Puts other rows in place.
pub(super) fn replace<T: Tx>(tx: &mut T, rows: Rows) -> Result<()> {
    let catalog = Catalog::new(rows, tx.settings())?;
    tx.set_catalog(Arc::new(catalog));
    Ok(())
}

/// Queues seeds, as if links to them had been found.
pub(crate) fn start<T: Tx>(tx: &mut T, targets: &[Target], now: Moment) -> Result<Vec<Started>> {
    for target in targets {
        check(tx.catalog(), target)?;
    }
    settle(tx, now)?;
    let mut answers = Vec::new();
    for target in targets {
        begin_harvest(tx, target)?;
        let catalog = tx.catalog().clone();
        let seed = if let Target::Seed(url) = target { Some(parse_seed(url)?) } else { None };
        let wanted = match (target, &seed) {
            (Target::Profile(id), _) => scope::Target::Profile(id),
            (Target::Collection(id), _) => scope::Target::Collection(id),
            (Target::Seed(url), None) => return Err(Error::not_found("seed", url)),
            (Target::Seed(_), Some(seed)) => scope::Target::Seed(seed),
        };
        let started = scope::start(catalog.scopes(), wanted, now.timestamp());
        for one in started.map_err(|error| Error::Configuration(error.to_string()))? {
            answers.push(start_one(tx, &catalog, &one, now)?);
        }
    }
    Ok(answers)
}

/// Refuses what cannot be started, before anything is.
fn check(catalog: &Catalog, target: &Target) -> Result<()> {
    let (kind, name, is_there) = match target {
        Target::Seed(url) => ("seed", url, catalog.seed_number(&parse_seed(url)?).is_some()),
        Target::Profile(id) => {
            ("profile", id, catalog.rows().profiles.iter().any(|profile| profile.id == *id))
        }
        Target::Collection(id) => ("collection", id, catalog.collection(id).is_some()),
    };
    let job = catalog.collection(name).filter(|_| kind == "collection").and_then(|row| row.spec.job);
    if job.is_some_and(|job| job.steering == Steering::Cancelled) {
        return Err(Error::Configuration(format!("job {name:?} is cancelled; start another one")));
    }
    if is_there { Ok(()) } else { Err(Error::not_found(kind, name)) }
}

fn parse_seed(url: &str) -> Result<Identity> {
    Identity::parse(url).map_err(|cause| Error::Configuration(cause.to_string()))
}

/// Counts a new harvest in every collection that something is started in, so that what an earlier
/// one is through with may be fetched again.
fn begin_harvest<T: Tx>(tx: &mut T, target: &Target) -> Result<()> {
    let catalog = tx.catalog().clone();
    let seed = match target {
        Target::Seed(url) => Some(parse_seed(url)?),
        Target::Profile(_) | Target::Collection(_) => None,
    };
    let of_seed = seed.and_then(|seed| catalog.seed_number(&seed)).and_then(|number| catalog.seed(number));
    let is_started = |profile: &&forager_core::scope::Profile| match target {
        Target::Seed(_) => of_seed.is_some_and(|row| row.seed.profiles.contains(&profile.id)),
        Target::Profile(id) => profile.id == *id,
        Target::Collection(id) => profile.collection == *id,
    };
    let profiles = catalog.rows().profiles.iter().filter(is_started);
    let collections: BTreeSet<&str> = profiles.map(|profile| profile.collection.as_str()).collect();
    let mut rows = catalog.rows().clone();
    for row in rows.collections.iter_mut().filter(|row| collections.contains(row.spec.id.as_str())) {
        row.harvest = row.harvest.wrapping_add(1);
    }
    replace(tx, rows)
}

fn start_one<T: Tx>(
    tx: &mut T,
    catalog: &Catalog,
    started: &scope::Started<'_>,
    now: Moment,
) -> Result<Started> {
    let answer = |action, due, rule: String| Started {
        collection: started.collection.to_owned(),
        url: started.url.to_string(),
        action,
        due,
        rule: rule.into(),
    };
    let ScopeAction::Queue { due, length } = started.action else {
        return Ok(answer(Action::Ignored, None, started.action.obstacle().unwrap_or_default()));
    };
    let due = Moment::due(due, now);
    let (Some(collection), Some(seed)) =
        (catalog.collection(started.collection), catalog.seed_number(started.seed))
    else {
        return Ok(answer(Action::Ignored, None, "collection gone".to_owned()));
    };
    let known = find(tx, collection, started.url)?.map(|(_, entry)| entry);
    let known = known.and_then(|entry| Some((entry, tx.standing(entry)?)));
    let seed_url = catalog.seed(seed).map(|row| row.seed.url.as_str()).unwrap_or_default();
    let fetch = FetchUrl::parse(seed_url).map_err(|cause| Error::Configuration(cause.to_string()))?;
    let place = Start { catalog, collection, seed, url: &fetch, identity: started.url, due, length, now };
    let action = match known {
        Some((entry, standing)) => place.again(tx, entry, standing)?,
        None => place.first(tx),
    };
    let rule = if due > now { "started, disabled: later" } else { "started" };
    Ok(answer(action, Some(due), rule.to_owned()))
}

/// A seed that is put into a collection.
struct Start<'a> {
    catalog: &'a Catalog,
    collection: &'a CollectionRow,
    seed: SeedId,
    url: &'a FetchUrl,
    identity: &'a Identity,
    due: Moment,
    length: Option<u32>,
    now: Moment,
}

impl Start<'_> {
    fn first<T: Tx>(&self, tx: &mut T) -> Action {
        let queue = tx.queue(self.collection.number, self.identity.host_key(), false);
        let created = Moment::from_second(self.now.second());
        let origin = Origin { created, how: How::Seed, ..Origin::default() };
        let mut record = Record::new(origin, self.length);
        let mut standing = fresh(queue, Some(self.seed), self.collection.harvest, self.due);
        (standing.risk, standing.is_hub) = classify(self.catalog, self.url, Risk::Low);
        self.prioritise(&mut standing, &mut record);
        let (identity, url) = (self.identity.as_str(), self.url.as_str());
        tx.insert(NewEntry { identity, url, standing, record });
        Action::Added
    }

    /// Sets depth 0 and due now on an entry that is there, and keeps its history.
    fn again<T: Tx>(&self, tx: &mut T, entry: EntryId, known: Standing) -> Result<Action> {
        let harvest = self.collection.harvest;
        if known.state == State::Leased {
            // Its owner stays while a worker has it.
            tx.set_standing(entry, Standing { harvest, ..known });
            return Ok(Action::Kept);
        }
        let (_, mut record) = tx.load(entry)?;
        let mut standing = Standing {
            seed: Some(self.seed),
            place: Place::default(),
            due: self.due,
            state: State::Queued,
            harvest,
            ..known
        };
        if matches!(known.state, State::Done | State::Failed) {
            (record.length, record.errors, record.abandoned) = (self.length, 0, 0);
        }
        self.prioritise(&mut standing, &mut record);
        tx.set_standing(entry, standing);
        tx.set_record(entry, record);
        Ok(if known.state == State::Queued { Action::Improved } else { Action::Added })
    }

    fn prioritise(&self, standing: &mut Standing, record: &mut Record) {
        let order = self.catalog.order(&self.collection.spec.id, Some(self.seed));
        let link = Link { how: How::Seed, ..Link::default() };
        let sighting = Sighting { url: self.url, identity: self.identity, link: &link, source: None };
        prioritise(self.catalog, order, standing, record, Some(sighting), self.now);
    }
}
