//! Hosts: what is set for them, and how they stand.

use std::collections::BTreeMap;

use forager_core::time::Interval;

use super::{Counts, Tx, settle};
use crate::catalog::{Catalog, CollectionRow, Kind};
use crate::entry::{CollectionId, HostId, QueueId, Token};
use crate::error::{Error, Result};
use crate::host::{Gate, Host, HostSettings, Setting, Waits};
use crate::moment::Moment;
use crate::verbs::{HostChange, HostFilter, HostView, Visit};

/// Changes what is set for hosts.
pub(crate) fn set_hosts<T: Tx>(
    tx: &mut T,
    changes: &[HostChange],
    now: Moment,
) -> Result<Vec<Option<HostView>>> {
    let catalog = tx.catalog().clone();
    let mut meant = Vec::with_capacity(changes.len());
    for change in changes {
        meant.push(who_is_meant(&catalog, change)?);
    }
    settle(tx, now)?;
    let mut touched = Vec::with_capacity(changes.len());
    for (change, Meant { owner, asker }) in changes.iter().zip(meant) {
        let is_known = !change.only_known || is_known(tx, asker, &change.key);
        touched.push(is_known.then(|| set_host(tx, change, owner)));
    }
    let shown = |id| view(tx, id, counts_at(tx, id), now);
    Ok(touched.into_iter().map(|id| id.map(shown)).collect())
}

/// Whose host a change is about.
struct Meant {
    /// The plain collection that it belongs to; none if it is shared.
    owner: Option<CollectionId>,
    /// The collection that wants it changed; none if somebody does who answers for all.
    asker: Option<CollectionId>,
}

fn who_is_meant(catalog: &Catalog, change: &HostChange) -> Result<Meant> {
    let Some(name) = &change.collection else { return Ok(Meant { owner: None, asker: None }) };
    let row = catalog.require_collection(name)?;
    match row.spec.kind {
        Kind::Plain => Ok(Meant { owner: Some(row.number), asker: Some(row.number) }),
        Kind::Planned if change.only_known => Ok(Meant { owner: None, asker: Some(row.number) }),
        Kind::Planned => {
            let problem = format!("the hosts of {name:?} are shared with all planned collections");
            Err(Error::Configuration(format!("{problem}; name the host alone")))
        }
    }
}

/// Whether a host has a queue: of who asks, so that a collection steers no host that it has nothing at.
fn is_known<T: Tx>(tx: &T, asker: Option<CollectionId>, key: &str) -> bool {
    match asker {
        Some(asker) => tx.find_queue(asker, key).is_some_and(|queue| is_listed(tx, queue)),
        None => queues_of(tx, None, key).next().is_some(),
    }
}

/// What clients have set for a shared host goes with the last queue there: block, limit and delay. What was learned of it
/// stays, and so does the wait after the last fetch, as long as it is in general: removing a queue hurries nobody.
pub(super) fn forget_settings<T: Tx>(tx: &mut T, id: HostId) {
    let (key, owner) = tx.host_key(id);
    let is_used = queues_of(tx, owner, key).any(|queue| is_listed(tx, queue));
    if is_used || owner.is_some() {
        return;
    }
    let (mut host, general) = (tx.host(id).clone(), waits(tx, false));
    let delay = host.shortest_delay(general);
    let settings = HostSettings { delay: None, blocked_until: None, fetch_limit: None, ..host.settings };
    if settings == host.settings {
        return;
    }
    host.settings = settings;
    if host.served > 0 {
        let last = Moment::from_millisecond(host.next_allowed.millisecond().saturating_sub(delay));
        host.next_allowed = last.after_millis(host.shortest_delay(general));
    }
    tx.set_host(id, host);
}

fn set_host<T: Tx>(tx: &mut T, change: &HostChange, owner: Option<CollectionId>) -> HostId {
    let id = tx.host_of(owner, &change.key);
    let mut host = tx.host(id).clone();
    for setting in &change.sets {
        host.settings.set(*setting);
        let is_plain = owner.is_some();
        if let (Setting::Delay(delay), true) = (setting, host.served > 0)
            && (is_plain || delay.is_some())
        {
            let next_allowed = after_last(&host, waits(tx, is_plain));
            // A host that is shared may wait for more than that, such as for a request that was sent late.
            let least = if is_plain { Moment::ZERO } else { host.next_allowed };
            host.next_allowed = next_allowed.max(least);
        }
    }
    tx.set_host(id, host);
    id
}

/// How long hosts wait that have no delay of their own.
pub(super) fn waits<T: Tx>(tx: &T, is_plain: bool) -> Waits {
    if is_plain { tx.catalog().rows().overall.waits() } else { tx.settings().politeness.waits() }
}

/// When the delay is over after what a host last handed out: clients find out from that how long to wait.
fn after_last(host: &Host, general: Waits) -> Moment {
    host.served_at.after_millis(host.shortest_delay(general))
}

/// Has the queues of plain collections that have no delay of their own wait as long as is set for all of them.
pub(super) fn pace<T: Tx>(tx: &mut T) {
    for id in tx.all_hosts() {
        let is_plain = tx.host_key(id).1.is_some();
        let host = tx.host(id);
        if !is_plain || host.settings.delay.is_some() || host.served == 0 {
            continue;
        }
        let next_allowed = after_last(host, waits(tx, true));
        let host = Host { next_allowed, ..host.clone() };
        tx.set_host(id, host);
    }
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
    host.next_allowed = now.after_millis(host.delay_millis(key, politeness.waits()));
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
    let counts = counts_by_host(tx, collection, filter.key.as_deref());
    let ids = if collection.is_some() { counts.keys().copied().collect() } else { tx.all_hosts() };
    let has_key = |id: &HostId| filter.key.as_ref().is_none_or(|key| *key == tx.host_key(*id).0);
    let counts_of = |id: &HostId| counts.get(id).copied().unwrap_or_default();
    let is_wanted =
        |id: &HostId| has_key(id) && (!filter.is_active || is_active(tx, *id, counts_of(id), now));
    let wanted = ids.into_iter().filter(is_wanted).skip(filter.skip).take(filter.limit);
    Ok(wanted.map(|id| view(tx, id, counts_of(&id), now)).collect())
}

/// Whether a host is not blocked, and has entries that wait or are under way.
fn is_active<T: Tx>(tx: &T, id: HostId, [queued, leased, ..]: Counts, now: Moment) -> bool {
    let is_blocked = tx.host(id).settings.blocked_until.is_some_and(|until| until > now);
    !is_blocked && (queued > 0 || leased > 0)
}

/// The queues of a key: that of the plain collection that owns the host, or those of all that share it.
fn queues_of<T: Tx>(tx: &T, owner: Option<CollectionId>, key: &str) -> impl Iterator<Item = QueueId> {
    let catalog = tx.catalog().clone();
    let rows = catalog.rows().collections.iter();
    let is_its = |row: &&CollectionRow| match owner {
        Some(owner) => row.number == owner,
        None => row.spec.kind == Kind::Planned,
    };
    let queues: Vec<QueueId> = rows.filter(is_its).filter_map(|row| tx.find_queue(row.number, key)).collect();
    queues.into_iter()
}

/// The entries of a host by state.
fn counts_at<T: Tx>(tx: &T, id: HostId) -> Counts {
    let (key, owner) = tx.host_key(id);
    queues_of(tx, owner, key).fold(Counts::default(), |sum, queue| added(sum, tx.queue_counts(queue)))
}

/// The entries of each host by state, all together or of one collection; a host that has none is left out, unless it
/// is that of a queue which a client has made.
fn counts_by_host<T: Tx>(
    tx: &T,
    collection: Option<CollectionId>,
    key: Option<&str>,
) -> BTreeMap<HostId, Counts> {
    let queues = match (collection, key) {
        (Some(collection), Some(key)) => tx.find_queue(collection, key).into_iter().collect(),
        _ => tx.queues(),
    };
    let mut sums = BTreeMap::new();
    for queue in queues {
        let (owner, host) = tx.queue_parts(queue);
        if collection.is_none_or(|collection| collection == owner) && is_listed(tx, queue) {
            let sum = sums.entry(host).or_default();
            *sum = added(*sum, tx.queue_counts(queue));
        }
    }
    sums
}

/// Whether a queue is one for those who look at it: it has entries, or a client has made it.
pub(super) fn is_listed<T: Tx>(tx: &T, queue: QueueId) -> bool {
    let (_, host) = tx.queue_parts(queue);
    tx.host_key(host).1.is_some() || tx.queue_counts(queue).iter().any(|count| *count > 0)
}

fn added(mut sum: Counts, more: Counts) -> Counts {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
    sum
}

fn view<T: Tx>(tx: &T, id: HostId, [queued, leased, done, failed]: Counts, now: Moment) -> HostView {
    let (key, owner) = tx.host_key(id);
    let (host, in_flight) = (tx.host(id), tx.in_flight(id));
    let opens = host.opens(in_flight, &tx.settings().politeness, owner.is_some());
    let is_open = opens.is_open(now);
    let collection = owner.and_then(|owner| tx.catalog().collection_numbered(owner));
    HostView {
        host: key.to_owned(),
        collection: collection.map(|row| row.spec.id.clone()),
        queued,
        leased,
        done: done + failed,
        in_flight: in_flight.count,
        fetched: host.fetched,
        failures: host.failures,
        opens: (!is_open && opens.at < Moment::NEVER).then_some(opens.at),
        gate: opens.gate.filter(|_| !is_open),
        sitemap_dates: host.sitemap_dates,
        crawl_delay: host.crawl_delay,
        is_slow: host.is_slow(),
        settings: host.settings.clone(),
        learned: host.learned(),
    }
}
