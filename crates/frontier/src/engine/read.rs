//! Looking at the queue without changing it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::discover::{find_by, known_by};
use super::lease::{is_turn_of_oldest, seed_text, wake};
use super::{Tx, settle};
use crate::catalog::{Catalog, CollectionRow, Kind, Steering};
use crate::entry::{EntryId, QueueId, Standing, State};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::moment::Moment;
use crate::verbs::{EntryView, ListFilter, ListPage, PlanFilter, Planned, Stats, WaitsFor};

/// An entry, by its URL.
pub(crate) fn entry<T: Tx>(
    tx: &mut T,
    collection: &str,
    url: &str,
    now: Moment,
) -> Result<Option<EntryView>> {
    settle(tx, now)?;
    let catalog = tx.catalog().clone();
    let row = catalog.require_collection(collection)?;
    let (key, identity) =
        known_by(&catalog, row, url).map_err(|cause| Error::Configuration(cause.to_string()))?;
    match find_by(tx, row, &key, &identity)? {
        Some((_, entry)) => view(tx, &catalog, entry),
        None => Ok(None),
    }
}

/// An entry as it is shown; none if it was removed.
pub(super) fn view<T: Tx>(tx: &T, catalog: &Catalog, entry: EntryId) -> Result<Option<EntryView>> {
    let Some(standing) = tx.standing(entry) else { return Ok(None) };
    let (url, record) = tx.load(entry)?;
    let (collection, host) = tx.queue_parts(standing.queue);
    let source = match record.origin.source.filter(|source| tx.standing(*source).is_some()) {
        Some(source) => Some(tx.load(source)?.0),
        None => None,
    };
    Ok(Some(EntryView {
        id: entry,
        collection: collection_name(catalog, collection),
        url,
        host: tx.host_key(host).0.to_owned(),
        state: standing.state,
        priority: standing.priority,
        due: standing.due,
        seed: seed_text(catalog, &standing),
        depth: standing.place.depth,
        last_fetch: standing.last_fetch,
        risk: standing.risk,
        leased_until: tx.lease_of(entry).map(|lease| lease.until),
        source,
        record,
    }))
}

fn collection_name(catalog: &Catalog, number: crate::entry::CollectionId) -> String {
    catalog.collection_numbered(number).map(|row| row.spec.id.clone()).unwrap_or_default()
}

/// Entries in the order of arrival, a page at a time.
pub(crate) fn list<T: Tx>(tx: &mut T, filter: &ListFilter, now: Moment) -> Result<ListPage> {
    settle(tx, now)?;
    let catalog = tx.catalog().clone();
    let collection = match &filter.collection {
        Some(name) => Some(catalog.require_collection(name)?.number),
        None => None,
    };
    let is_wanted = |standing: &Standing| {
        let (owner, host) = tx.queue_parts(standing.queue);
        filter.state.is_none_or(|state| state == standing.state)
            && collection.is_none_or(|collection| collection == owner)
            && filter.host.as_ref().is_none_or(|key| *key == tx.host_key(host).0)
    };
    let has_text = |url: &str| {
        filter.prefix.as_ref().is_none_or(|prefix| url.starts_with(prefix.as_str()))
            && filter.contains.as_ref().is_none_or(|part| url.contains(part.as_str()))
    };
    let mut page = ListPage { entries: Vec::new(), next: None };
    let mut after = filter.after;
    while page.entries.len() < filter.limit {
        let wanted = filter.limit - page.entries.len();
        let found = tx.scan(after, wanted, &mut |_, standing| is_wanted(standing));
        for &entry in &found {
            if let Some(view) = view(tx, &catalog, entry)?.filter(|view| has_text(&view.url)) {
                page.entries.push(view);
            }
        }
        after = found.last().copied();
        if found.len() < wanted {
            return Ok(page);
        }
    }
    page.next = after.filter(|_| filter.limit > 0);
    Ok(page)
}

/// How many entries there are, by state.
pub(crate) fn stats<T: Tx>(tx: &mut T, collection: Option<&str>, now: Moment) -> Result<Vec<Stats>> {
    settle(tx, now)?;
    let catalog = tx.catalog().clone();
    match collection {
        Some(name) => Ok(vec![stats_of(tx, catalog.require_collection(name)?)]),
        None => Ok(catalog.rows().collections.iter().map(|row| stats_of(tx, row)).collect()),
    }
}

pub(super) fn stats_of<T: Tx>(tx: &T, row: &CollectionRow) -> Stats {
    let [queued, in_flight, done, failed] = tx.counts(row.number);
    let is_its = |queue: &QueueId| tx.queue_parts(*queue).0 == row.number;
    Stats {
        collection: row.spec.id.clone(),
        queued,
        in_flight,
        done,
        failed,
        hosts: tx.queues().iter().filter(|queue| is_its(queue)).count() as u64,
        tally: tx.tally(row.number),
    }
}

/// What would be handed out next, and when, if every fetch took no time.
pub(crate) fn plan<T: Tx>(tx: &mut T, filter: &PlanFilter, now: Moment) -> Result<Vec<Planned>> {
    settle(tx, now)?;
    wake(tx, now)?;
    let catalog = tx.catalog().clone();
    if let Some(name) = &filter.collection {
        catalog.require_collection(name)?;
    }
    let mut planned = Vec::new();
    for (queue, entries) in waiting(tx, &catalog, filter) {
        let (number, _) = tx.queue_parts(queue);
        let Some(row) = catalog.collection_numbered(number) else { continue };
        simulate(tx, row, queue, entries, filter.limit, now, &mut planned);
    }
    planned.sort_by_key(|(order, _)| *order);
    planned.truncate(filter.limit);
    planned.into_iter().map(|(_, turn)| turn.shown(tx, &catalog)).collect()
}

/// The queued entries of each queue that the plan is about.
fn waiting<T: Tx>(
    tx: &T,
    catalog: &Catalog,
    filter: &PlanFilter,
) -> BTreeMap<QueueId, Vec<(EntryId, Standing)>> {
    let collection = filter.collection.as_deref().and_then(|name| catalog.collection(name));
    let mut queues: BTreeMap<QueueId, Vec<(EntryId, Standing)>> = BTreeMap::new();
    tx.scan(None, usize::MAX, &mut |entry, standing| {
        let (owner, host) = tx.queue_parts(standing.queue);
        if standing.state == State::Queued
            && collection.is_none_or(|row| row.number == owner)
            && filter.host.as_ref().is_none_or(|key| *key == tx.host_key(host).0)
        {
            queues.entry(standing.queue).or_default().push((entry, *standing));
        }
        false
    });
    queues
}

/// An entry and when it has its turn.
struct Turn {
    at: Option<Moment>,
    entry: EntryId,
    waits_for: Option<WaitsFor>,
}

impl Turn {
    fn shown<T: Tx>(self, tx: &T, catalog: &Catalog) -> Result<Planned> {
        let (url, _) = tx.load(self.entry)?;
        let standing = tx.standing(self.entry);
        let parts = standing.map(|standing| tx.queue_parts(standing.queue));
        Ok(Planned {
            at: self.at,
            collection: parts.map(|(number, _)| collection_name(catalog, number)).unwrap_or_default(),
            url,
            host: parts.map(|(_, host)| tx.host_key(host).0.to_owned()).unwrap_or_default(),
            priority: standing.map(|standing| standing.priority).unwrap_or_default(),
            due: standing.map(|standing| standing.due).unwrap_or_default(),
            waits_for: self.waits_for,
        })
    }
}

/// In the plan, hosts that open together go in the order of their turns.
type PlanOrder = (Moment, u64, QueueId, usize);

/// Lets a host hand out its entries one by one, as if each fetch took no time.
fn simulate<T: Tx>(
    tx: &T,
    row: &CollectionRow,
    queue: QueueId,
    mut entries: Vec<(EntryId, Standing)>,
    limit: usize,
    now: Moment,
    planned: &mut Vec<(PlanOrder, Turn)>,
) {
    let (_, host_id) = tx.queue_parts(queue);
    let (is_plain, settings) = (row.spec.kind == Kind::Plain, tx.settings());
    let mut host: Host = tx.host(host_id).clone();
    let is_held = !row.spec.enabled || row.spec.job.is_some_and(|job| job.steering != Steering::Running);
    let opens = host.opens(tx.in_flight(host_id), &settings.politeness, is_plain).at;
    let opens = if is_held { Moment::NEVER } else { opens };
    let mut free = opens.max(now);
    for place in 0..limit.min(entries.len()) {
        let reserved = !is_plain && is_turn_of_oldest(settings.reserved.0.get(), host.served);
        let Some(index) = first_of(&entries, free, reserved) else { break };
        let (entry, standing) = entries.swap_remove(index);
        let at = free.max(standing.due);
        let waits_for = match () {
            () if standing.due >= at && standing.due > now => Some(WaitsFor::Due),
            () if at <= now => None,
            () if place == 0 => Some(WaitsFor::Host),
            () => Some(WaitsFor::Others),
        };
        let turn = Turn { at: (at < Moment::NEVER).then_some(at), entry, waits_for };
        planned.push(((at, host.turn(row.number), queue, place), turn));
        host.served += 1;
        free = at.after_millis(host.delay_millis(tx.host_key(host_id).0, &settings.politeness, is_plain));
    }
}

/// The entry that a host hands out when it is free: the first of those due by then, or else the one due first.
fn first_of(entries: &[(EntryId, Standing)], free: Moment, reserved: bool) -> Option<usize> {
    let numbered = || entries.iter().enumerate();
    let due = || numbered().filter(|(_, (_, standing))| standing.due <= free);
    if reserved {
        let by_due = due().filter(|(_, (_, standing))| standing.by_due);
        if let Some((index, _)) = by_due.min_by_key(|(_, (id, standing))| (standing.due, *id)) {
            return Some(index);
        }
    }
    let first = due().min_by_key(|(_, (id, standing))| order_key(*id, standing));
    let next = || numbered().min_by_key(|(_, (id, standing))| (standing.due, order_key(*id, standing)));
    first.or_else(next).map(|(index, _)| index)
}

/// What a queue goes by.
pub(super) fn order_key(
    entry: EntryId,
    standing: &Standing,
) -> (Reverse<forager_core::hierarchy::Priority>, Option<Moment>, EntryId) {
    (Reverse(standing.priority), standing.by_due.then_some(standing.due), entry)
}
