//! Taking away what a client wants no more: queues, collections, and what has had its time.

use super::{Tx, Within, configure, hosts, notes, plain, settle};
use crate::catalog::{Change, CollectionRow, Kind};
use crate::entry::{EntryId, QueueId};
use crate::error::Result;
use crate::moment::Moment;
use crate::verbs::{Purge, Purged};

/// Removes a queue, or all of a collection. Returns how many entries there were.
pub(crate) fn remove<T: Tx>(tx: &mut T, collection: &str, key: Option<&str>, now: Moment) -> Result<u64> {
    settle(tx, now)?;
    let catalog = tx.catalog().clone();
    let Some(row) = catalog.collection(collection) else { return Ok(0) };
    match key {
        Some(key) => match tx.find_queue(row.number, key) {
            Some(queue) => remove_queue(tx, row, queue),
            None => Ok(0),
        },
        None if row.spec.kind == Kind::Plain => {
            let count = tx.counts(row.number).iter().sum();
            configure(tx, &[Change::RemoveCollection(collection.to_owned())], now)?;
            Ok(count)
        }
        None => remove_queues(tx, row),
    }
}

/// Empties a collection with profiles, which stay, and so does the collection.
fn remove_queues<T: Tx>(tx: &mut T, row: &CollectionRow) -> Result<u64> {
    let mut removed = 0;
    for queue in tx.queues() {
        if tx.queue_parts(queue).0 == row.number {
            removed += remove_queue(tx, row, queue)?;
        }
    }
    Ok(removed)
}

fn remove_queue<T: Tx>(tx: &mut T, row: &CollectionRow, queue: QueueId) -> Result<u64> {
    let entries = tx.scan(Within::Queue(queue), None, usize::MAX, &mut |_, _| true);
    for entry in &entries {
        forget(tx, row, *entry)?;
    }
    let (_, host) = tx.queue_parts(queue);
    tx.forget_queue(queue);
    if row.spec.kind == Kind::Planned {
        hosts::forget_settings(tx, host);
    }
    Ok(entries.len() as u64)
}

fn forget<T: Tx>(tx: &mut T, row: &CollectionRow, entry: EntryId) -> Result<()> {
    // What pages say is kept of planned collections only.
    if row.spec.kind == Kind::Planned {
        let (url, record) = tx.load(entry)?;
        notes::forget_text(tx, row, &url, &record);
    }
    tx.remove(entry);
    Ok(())
}

/// Removes entries that were created before a moment, or are named.
pub(crate) fn purge<T: Tx>(tx: &mut T, purge: &Purge, now: Moment) -> Result<Purged> {
    settle(tx, now)?;
    let catalog = tx.catalog().clone();
    let Some(row) = catalog.collection(&purge.collection) else { return Ok(Purged::default()) };
    let within = match &purge.key {
        None => Within::Collection(row.number),
        Some(key) => match tx.find_queue(row.number, key) {
            Some(queue) => Within::Queue(queue),
            None => return Ok(Purged::default()),
        },
    };
    let entries = tx.scan(within, purge.after, purge.limit, &mut |_, _| true);
    let mut removed = 0;
    for &entry in &entries {
        let (_, record) = tx.load(entry)?;
        if record.origin.created < purge.before || purge.also.contains(&entry) {
            if let Some(standing) = tx.standing(entry).filter(|_| row.spec.kind == Kind::Plain) {
                plain::count_out(tx, &standing);
            }
            forget(tx, row, entry)?;
            removed += 1;
        }
    }
    let is_end = entries.len() < purge.limit;
    Ok(Purged { removed, next: entries.last().copied().filter(|_| !is_end) })
}
