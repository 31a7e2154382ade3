//! What clients say that plan by themselves.

use forager_core::url::{FetchUrl, Identity};

use super::discover::{Finds, find, take_in};
use super::{Tx, complete, jobs, plain, settle};
use crate::catalog::{Catalog, CollectionRow, Kind};
use crate::error::Result;
use crate::moment::Moment;
use crate::verbs::{Action, Completed, Discovery, Item, Link, Outcome, Put, Report, Word};

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
    jobs::note_ends(tx, now)?;
    Ok(answers)
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
    let known = find(tx, collection, &identity)?.filter(|_| item.word != Word::Found);
    let Some((_, entry)) = known else {
        return take_in_scope(tx, catalog, collection, (item, &identity), now);
    };
    let Some(lease) = tx.lease_of(entry) else {
        return Ok(answer(Action::Kept, "nobody was to fetch it now"));
    };
    let report = Report { token: lease.token.0, status: item.status.or(Some(200)), ..Report::default() };
    Ok(complete(tx, &[report], now)?.pop().map_or_else(|| answer(Action::Kept, "known"), told))
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
    let finds = Finds { collection, source, seed, depth: 0, links: &[link] };
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
