//! Hosts: what is set for them, and how they stand.

use std::collections::BTreeMap;

use forager_core::time::Interval;

use super::{Tx, settle};
use crate::catalog::Kind;
use crate::entry::{CollectionId, HostId, Token};
use crate::error::{Error, Result};
use crate::host::Gate;
use crate::moment::Moment;
use crate::verbs::{HostChange, HostFilter, HostView, Visit};

/// Changes what is set for hosts.
pub(crate) fn set_hosts<T: Tx>(tx: &mut T, changes: &[HostChange], now: Moment) -> Result<Vec<HostView>> {
    let catalog = tx.catalog().clone();
    let mut owners = Vec::with_capacity(changes.len());
    for change in changes {
        owners.push(match &change.collection {
            None => None,
            Some(name) => match catalog.require_collection(name)? {
                row if row.spec.kind == Kind::Plain => Some(row.number),
                _ => {
                    let problem = format!("the hosts of {name:?} are shared with all planned collections");
                    return Err(Error::Configuration(format!("{problem}; name the host alone")));
                }
            },
        });
    }
    settle(tx, now)?;
    let mut touched = Vec::with_capacity(changes.len());
    for (change, owner) in changes.iter().zip(owners) {
        let id = tx.host_of(owner, &change.key);
        let mut host = tx.host(id).clone();
        host.settings = change.settings.clone();
        tx.set_host(id, host);
        touched.push(id);
    }
    let queued = queued_by_host(tx, None);
    Ok(touched.into_iter().map(|id| view(tx, id, &queued, now)).collect())
}

/// Asks a host for one fetch that is for no entry.
pub(crate) fn visit<T: Tx>(tx: &mut T, key: &str, hold: Interval, now: Moment) -> Result<Visit> {
    settle(tx, now)?;
    let id = tx.host_of(None, key);
    let (mut host, politeness) = (tx.host(id).clone(), tx.settings().politeness);
    if host.visitor.is_some_and(|(_, until)| until <= now) {
        host.visitor = None;
    }
    if let Some((_, until)) = host.visitor {
        return Ok(Visit::Closed(until, Gate::InFlight));
    }
    let opens = host.opens(tx.in_flight(id), &politeness, false);
    if let (false, Some(gate)) = (opens.is_open(now), opens.gate) {
        return Ok(Visit::Closed(opens.at, gate));
    }
    let token = tx.next_token();
    host.served += 1;
    host.next_allowed = now.after_millis(host.delay_millis(key, &politeness, false));
    host.visitor = Some((token, now.after(hold)));
    tx.set_host(id, host);
    Ok(Visit::Welcome(token))
}

/// Ends visits. One that is over already stays over.
pub(crate) fn leave<T: Tx>(tx: &mut T, tokens: &[(String, Token)], now: Moment) -> Result<()> {
    settle(tx, now)?;
    for (key, token) in tokens {
        let id = tx.host_of(None, key);
        let mut host = tx.host(id).clone();
        if host.visitor.is_some_and(|(visitor, _)| visitor == *token) {
            host.visitor = None;
            tx.set_host(id, host);
        }
    }
    Ok(())
}

/// Hosts in the order they became known.
pub(crate) fn hosts<T: Tx>(tx: &mut T, filter: &HostFilter, now: Moment) -> Result<Vec<HostView>> {
    settle(tx, now)?;
    let collection = match &filter.collection {
        Some(name) => Some(tx.catalog().require_collection(name)?.number),
        None => None,
    };
    let queued = queued_by_host(tx, collection);
    let is_wanted = |id: &HostId| {
        collection.is_none_or(|_| queued.contains_key(id))
            && filter.key.as_ref().is_none_or(|key| *key == tx.host_key(*id).0)
    };
    let wanted = tx.all_hosts().into_iter().filter(is_wanted);
    Ok(wanted.skip(filter.skip).take(filter.limit).map(|id| view(tx, id, &queued, now)).collect())
}

/// How many entries wait at each host that has any, all together or of one collection.
fn queued_by_host<T: Tx>(tx: &T, collection: Option<CollectionId>) -> BTreeMap<HostId, u64> {
    let mut queued = BTreeMap::new();
    for queue in tx.queues() {
        let (owner, host) = tx.queue_parts(queue);
        let counts = tx.queue_counts(queue);
        if counts.iter().all(|count| *count == 0) {
            continue;
        }
        if collection.is_none_or(|collection| collection == owner) {
            *queued.entry(host).or_default() += counts[0];
        }
    }
    queued
}

fn view<T: Tx>(tx: &T, id: HostId, queued: &BTreeMap<HostId, u64>, now: Moment) -> HostView {
    let (key, owner) = tx.host_key(id);
    let (host, in_flight) = (tx.host(id), tx.in_flight(id));
    let opens = host.opens(in_flight, &tx.settings().politeness, owner.is_some());
    let is_open = opens.is_open(now);
    let collection = owner.and_then(|owner| tx.catalog().collection_numbered(owner));
    HostView {
        host: key.to_owned(),
        collection: collection.map(|row| row.spec.id.clone()),
        queued: queued.get(&id).copied().unwrap_or_default(),
        in_flight: in_flight.count,
        fetched: host.fetched,
        failures: host.failures,
        opens: (!is_open && opens.at < Moment::NEVER).then_some(opens.at),
        gate: opens.gate.filter(|_| !is_open),
        sitemap_dates: host.sitemap_dates,
        settings: host.settings.clone(),
    }
}
