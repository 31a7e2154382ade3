//! What clients say that plan by themselves.

use std::collections::BTreeMap;

use forager_core::url::{FetchUrl, Identity};

use super::discover::{Finds, find, take_in};
use super::{Tx, complete, jobs, plain, settle};
use crate::catalog::{Catalog, CollectionRow, Kind};
use crate::entry::EntryId;
use crate::error::Result;
use crate::moment::Moment;
use crate::verbs::{Action, Completed, Discovery, Event, FetchError, Item, Link, Outcome, Put, Report, Word};

/// Why a report changes nothing.
const NOT_LEASED: &str = "nobody was to fetch it now";

/// Takes in what clients say of URLs; says for each what became of it.
pub(crate) fn put<T: Tx>(tx: &mut T, puts: &[Put], now: Moment) -> Result<Vec<Discovery>> {
    settle(tx, now)?;
    let catalog = tx.catalog().clone();
    let mut answers = Vec::with_capacity(puts.iter().map(|put| put.items.len()).sum());
    for put in puts {
        match catalog.collection(&put.collection) {
            None => answers.extend(put.items.iter().map(|_| answer(Action::Ignored, "collection gone"))),
            Some(row) if row.spec.kind == Kind::Plain => {
                plain::put(tx, row, &put.items, now, &mut answers)?;
            }
            Some(row) => {
                for item in &put.items {
                    answers.push(put_planned(tx, &catalog, row, item, now)?);
                }
            }
        }
    }
    note(tx, puts, &answers, now);
    jobs::note_ends(tx, now)?;
    Ok(answers)
}

/// Says in the log what was taken in. There is one event for a collection however many URLs come in a call: one for
/// each would take as much room as the entries themselves.
fn note<T: Tx>(tx: &mut T, puts: &[Put], answers: &[Discovery], now: Moment) {
    let mut heard: BTreeMap<&str, Heard<'_>> = BTreeMap::new();
    let mut answers = answers.iter();
    let catalog = tx.catalog().clone();
    for put in puts {
        let row = catalog.collection(&put.collection);
        let is_plain = row.is_some_and(|row| row.spec.kind == Kind::Plain);
        let mut taken = put
            .items
            .iter()
            .zip(answers.by_ref())
            .filter(|(_, answer)| matches!(answer.action, Action::Added | Action::Improved));
        let Some((item, answer)) = taken.next() else { continue };
        let of_collection = heard.entry(&put.collection).or_insert_with(|| Heard::first(&item.url));
        of_collection.count(item, answer, is_plain);
        taken.for_each(|(item, answer)| of_collection.count(item, answer, is_plain));
    }
    for (collection, Heard { url, added, changed, done }) in heard {
        tx.emit(now, collection, url, Event::Put { added, changed, done });
    }
}

/// What was taken in of a collection.
struct Heard<'a> {
    /// The first of the URLs.
    url: &'a str,
    added: u64,
    changed: u64,
    done: u64,
}

impl<'a> Heard<'a> {
    fn first(url: &'a str) -> Self {
        Self { url, added: 0, changed: 0, done: 0 }
    }

    fn count(&mut self, item: &Item, answer: &Discovery, is_plain: bool) {
        let count = if answer.action == Action::Added { &mut self.added } else { &mut self.changed };
        *count += 1;
        self.done += u64::from(item.word == Word::Done && is_plain);
    }
}

/// In a collection with profiles, those decide: what was found has to be in scope, and what has a date was fetched.
fn put_planned<T: Tx>(
    tx: &mut T,
    catalog: &Catalog,
    collection: &CollectionRow,
    item: &Item,
    now: Moment,
) -> Result<Discovery> {
    let identity = match FetchUrl::parse_lenient(&item.url) {
        Ok(url) => catalog.scopes().identity(&collection.spec.id, &url),
        Err(problem) => return Ok(answer(Action::Invalid, &problem.to_string())),
    };
    let known = find(tx, collection, &identity)?;
    match (item.word, known) {
        (Word::Found, _) | (Word::Due(_), None) => {
            take_in_scope(tx, catalog, collection, (item, &identity), now)
        }
        (Word::Done, None) => Ok(answer(Action::Kept, NOT_LEASED)),
        (Word::Due(_) | Word::Done, Some((_, entry))) => report(tx, item, entry, now),
    }
}

/// A client was through with an entry.
fn report<T: Tx>(tx: &mut T, item: &Item, entry: EntryId, now: Moment) -> Result<Discovery> {
    let Some(lease) = tx.lease_of(entry) else { return Ok(answer(Action::Kept, NOT_LEASED)) };
    let (status, error) = match item {
        Item { failed: true, .. } => (None, Some(FetchError::Network)),
        Item { status, .. } => (status.or(Some(200)), None),
    };
    let report = Report { token: lease.token.0, status, error, ..Report::default() };
    let told = complete(tx, &[report], now)?.pop().map_or_else(|| answer(Action::Kept, "known"), told);
    if told.action == Action::Improved && tx.standing(entry).is_some() {
        let (_, mut record) = tx.load(entry)?;
        record.origin.metadata = item.metadata.as_deref().map(Into::into);
        tx.set_record(entry, record);
    }
    Ok(told)
}

/// What was found goes through the rules of scope: as a link of the page that the client names, or of the seed that
/// has it in its scope.
fn take_in_scope<T: Tx>(
    tx: &mut T,
    catalog: &Catalog,
    collection: &CollectionRow,
    (item, identity): (&Item, &Identity),
    now: Moment,
) -> Result<Discovery> {
    let seed = catalog.scopes().covering_seed(&collection.spec.id, identity, now.timestamp());
    let link = Link { url: item.url.clone(), metadata: item.metadata.clone(), ..Link::default() };
    let (source, seed) = (item.source.as_deref(), seed.map(Identity::as_str));
    let finds = Finds { collection, source, entry: None, seed, depth: 0, links: &[link] };
    let mut answers = Vec::with_capacity(1);
    take_in(tx, catalog, finds, now, &mut answers)?;
    Ok(answers.pop().unwrap_or_else(|| answer(Action::Ignored, "out of scope")))
}

fn told(completed: Completed) -> Discovery {
    let is_refused = completed.outcome == Outcome::Refused;
    let action = if is_refused { Action::Kept } else { Action::Improved };
    Discovery { action, rule: completed.rule }
}

fn answer(action: Action, rule: &str) -> Discovery {
    Discovery { action, rule: rule.into() }
}
