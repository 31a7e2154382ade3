//! Leases that end without a report, or are held for longer.

use forager_core::sentinel::schedule::{Failure, next_try};
use forager_core::time::Interval;

use super::Tx;
use super::notes::forget_text;
use crate::catalog::{CollectionRow, Kind};
use crate::entry::{Lease, Standing, State, Token};
use crate::error::Result;
use crate::moment::Moment;
use crate::verbs::{Event, LeaseChange};

/// Takes back the leases that have run out. An entry that is taken and never reported too often is
/// treated as one that cannot be fetched: it may be what kills the workers.
pub(crate) fn settle<T: Tx>(tx: &mut T, now: Moment) -> Result<()> {
    let expired = tx.expired(now);
    if expired.is_empty() {
        return Ok(());
    }
    take_back(tx, expired, now)
}

/// Takes back all leases of a collection. Returns how many.
pub(crate) fn reclaim<T: Tx>(tx: &mut T, collection: &str, now: Moment) -> Result<u64> {
    settle(tx, now)?;
    let number = tx.catalog().require_collection(collection)?.number;
    let is_its = |tx: &T, lease: &Lease| {
        tx.standing(lease.entry).is_some_and(|standing| tx.queue_parts(standing.queue).0 == number)
    };
    let leases: Vec<Lease> =
        tx.expired(Moment::NEVER).into_iter().filter(|lease| is_its(tx, lease)).collect();
    let count = leases.len() as u64;
    for lease in &leases {
        wait_anew(tx, lease, now);
    }
    take_back(tx, leases, now)?;
    Ok(count)
}

/// Whoever held a page may have asked for it until just now, later than it was handed out: its host waits from now on.
fn wait_anew<T: Tx>(tx: &mut T, lease: &Lease, now: Moment) {
    let Some(standing) = tx.standing(lease.entry) else { return };
    let (_, id) = tx.queue_parts(standing.queue);
    let mut host = tx.host(id).clone();
    let wait = host.shortest_delay(tx.settings().politeness.waits());
    host.next_allowed = host.next_allowed.max(now.after_millis(wait));
    tx.set_host(id, host);
}

fn take_back<T: Tx>(tx: &mut T, leases: Vec<Lease>, now: Moment) -> Result<()> {
    let catalog = tx.catalog().clone();
    for lease in leases {
        tx.end_lease(lease.token);
        let Some(standing) = tx.standing(lease.entry) else { continue };
        let (number, _) = tx.queue_parts(standing.queue);
        if let Some(collection) = catalog.collection_numbered(number) {
            abandon(tx, collection, lease, standing, now)?;
        }
    }
    Ok(())
}

fn abandon<T: Tx>(
    tx: &mut T,
    collection: &CollectionRow,
    Lease { entry, from, .. }: Lease,
    mut standing: Standing,
    now: Moment,
) -> Result<()> {
    let settings = tx.settings().clone();
    let (url, mut record) = tx.load(entry)?;
    record.abandoned = record.abandoned.saturating_add(1);
    standing.state = State::Queued;
    tx.emit(now, &collection.spec.id, &url, Event::Abandoned { times: record.abandoned, from });
    // Clients of a plain collection have dates of their own.
    let is_planned = collection.spec.kind == Kind::Planned;
    let over = record.abandoned.checked_sub(settings.retry.abandoned);
    if let Some(over) = over.filter(|over| *over > 0 && is_planned) {
        if record.length.is_some() {
            standing.state = State::Failed;
            forget_text(tx, collection, &url, &record);
            let result = "abandoned by its workers".to_owned();
            tx.emit(now, &collection.spec.id, &url, Event::Failed { result });
        } else {
            let learned = (record.evidence().velocity, standing.risk);
            let next =
                next_try(Failure::Transient, over - 1, None, learned, &settings.sentinel, now.timestamp());
            standing.due = Moment::due(next.due, now);
            record.due_because = Some(format!("abandoned {} times in a row", record.abandoned));
        }
    }
    tx.set_standing(entry, standing);
    tx.set_record(entry, record);
    Ok(())
}

/// Holds leases for this long from now.
pub(crate) fn extend<T: Tx>(
    tx: &mut T,
    tokens: &[Token],
    hold: Interval,
    now: Moment,
) -> Result<Vec<LeaseChange>> {
    settle(tx, now)?;
    let until = now.after(hold);
    let mut answers = Vec::with_capacity(tokens.len());
    for &token in tokens {
        let lease = tx.lease(token);
        if let Some(lease) = lease {
            tx.grant(Lease { until, ..lease });
        }
        answers.push(LeaseChange { token, held: lease.is_some(), until: lease.map(|_| until) });
    }
    Ok(answers)
}

/// Gives entries back untouched.
pub(crate) fn release<T: Tx>(tx: &mut T, tokens: &[Token], now: Moment) -> Result<Vec<LeaseChange>> {
    settle(tx, now)?;
    let mut answers = Vec::with_capacity(tokens.len());
    for &token in tokens {
        let lease = tx.lease(token);
        let standing = lease.and_then(|lease| tx.standing(lease.entry));
        if let (Some(lease), Some(standing)) = (lease, standing) {
            tx.end_lease(token);
            tx.set_standing(lease.entry, Standing { state: State::Queued, ..standing });
        }
        answers.push(LeaseChange { token, held: lease.is_some(), until: None });
    }
    Ok(answers)
}
