//! Looking at the queue without changing it.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::discover::{find_by, find_text, known_by};
use super::hosts::{is_listed, waits};
use super::lease::{is_turn_of_oldest, seed_text, wake};
use super::{HostCounts, Tx, Within, settle};
use crate::catalog::{Catalog, CollectionRow, Kind, Steering};
use crate::entry::{CollectionId, EntryId, QueueId, Standing, State};
use crate::error::{Error, Result};
use crate::host::{Host, Opens, next_turn};
use crate::moment::Moment;
use crate::verbs::{EntryView, ListFilter, ListPage, PlanFilter, Planned, Stats, WaitsFor};

/// An entry, by its URL; in one queue, or wherever it is.
pub(crate) fn entry<T: Tx>(
    tx: &mut T,
    collection: &str,
    key: Option<&str>,
    url: &str,
    now: Moment,
) -> Result<Option<EntryView>> {
    settle(tx, now)?;
    let catalog = tx.catalog().clone();
    let row = catalog.require_collection(collection)?;
    let (derived, identity) =
        known_by(&catalog, row, url).map_err(|cause| Error::Configuration(cause.to_string()))?;
    let found = match key {
        Some(key) => find_by(tx, row, key, &identity)?,
        None => find_text(tx, row, &derived, &identity)?,
    };
    match found {
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
        priority: standing.effective(),
        worth: standing.priority,
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
    let queue =
        collection.zip(filter.host.as_deref()).map(|(collection, key)| tx.find_queue(collection, key));
    let within = match queue {
        Some(Some(queue)) => Within::Queue(queue),
        Some(None) => return Ok(ListPage { entries: Vec::new(), next: None }),
        None => collection.map_or(Within::Everything, Within::Collection),
    };
    let part = filter.contains.as_deref().map(|part| folded(part, filter.any_case));
    let is_wanted = |standing: &Standing| {
        let (_, host) = tx.queue_parts(standing.queue);
        filter.state.is_none_or(|state| state == standing.state)
            && filter.host.as_ref().is_none_or(|key| *key == tx.host_key(host).0)
    };
    let has_text = |url: &str| {
        filter.prefix.as_ref().is_none_or(|prefix| url.starts_with(prefix.as_str()))
            && part.as_ref().is_none_or(|part| folded(url, filter.any_case).contains(part.as_ref()))
    };
    let mut page = ListPage { entries: Vec::new(), next: None };
    let mut bytes = 0;
    let mut after = filter.after;
    while page.entries.len() < filter.limit {
        let wanted = filter.limit - page.entries.len();
        let found = tx.scan(within, after, wanted, &mut |_, standing| is_wanted(standing));
        for &entry in &found {
            let Some(view) = view(tx, &catalog, entry)? else { continue };
            // What is looked at in vain counts too: it has to be read all the same.
            bytes += size(&view);
            if has_text(&view.url) {
                page.entries.push(view);
            }
            if filter.bytes.is_some_and(|most| bytes >= most) {
                page.next = Some(entry);
                return Ok(page);
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

/// How many bytes a client gets to see of an entry, roughly.
fn size(view: &EntryView) -> usize {
    view.url.len() + view.record.origin.metadata.as_ref().map_or(0, |text| text.len())
}

/// A text as it is compared.
fn folded(text: &str, any_case: bool) -> Cow<'_, str> {
    if any_case { Cow::Owned(text.to_lowercase()) } else { Cow::Borrowed(text) }
}

/// How many entries there are, by state.
pub(crate) fn stats<T: Tx>(tx: &mut T, collection: Option<&str>, now: Moment) -> Result<Vec<Stats>> {
    settle(tx, now)?;
    let catalog = tx.catalog().clone();
    let rows: Vec<&CollectionRow> = match collection {
        Some(name) => vec![catalog.require_collection(name)?],
        None => catalog.rows().collections.iter().collect(),
    };
    let numbers: Vec<CollectionId> = rows.iter().map(|row| row.number).collect();
    let hosts = tx.hosts_of(&numbers);
    Ok(rows.into_iter().map(|row| stats_of(tx, row, &hosts)).collect())
}

/// Counts the hosts of collections by going through all queues once.
pub(super) fn counted_hosts<T: Tx>(tx: &T, collections: &[CollectionId]) -> HostCounts {
    let mut hosts: HostCounts = collections.iter().map(|collection| (*collection, [0, 0])).collect();
    for queue in tx.queues() {
        let Some([listed, active]) = hosts.get_mut(&tx.queue_parts(queue).0) else { continue };
        *listed += u64::from(is_listed(tx, queue));
        *active += u64::from(is_active(tx, queue));
    }
    hosts
}

/// Whether a queue has something to do.
fn is_active<T: Tx>(tx: &T, queue: QueueId) -> bool {
    tx.queue_counts(queue)[..2].iter().any(|count| *count > 0)
}

pub(super) fn stats_of<T: Tx>(tx: &T, row: &CollectionRow, hosts: &HostCounts) -> Stats {
    let [queued, in_flight, done, failed] = tx.counts(row.number);
    let [hosts, active_hosts] = hosts.get(&row.number).copied().unwrap_or_default();
    Stats {
        collection: row.spec.id.clone(),
        queued,
        in_flight,
        done,
        failed,
        hosts,
        active_hosts,
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
    let mut simulation = Simulation::of(tx, &catalog, waiting(tx, &catalog, filter), now);
    let mut planned = Vec::new();
    while planned.len() < filter.limit {
        let Some(turn) = simulation.next(tx) else { break };
        planned.push(turn.shown(tx, &catalog)?);
    }
    Ok(planned)
}

/// The queued entries of each queue that the plan is about.
fn waiting<T: Tx>(
    tx: &T,
    catalog: &Catalog,
    filter: &PlanFilter,
) -> BTreeMap<QueueId, Vec<(EntryId, Standing)>> {
    let collection = filter.collection.as_deref().and_then(|name| catalog.collection(name));
    let mut queues: BTreeMap<QueueId, Vec<(EntryId, Standing)>> = BTreeMap::new();
    let within = collection.map_or(Within::Everything, |row| Within::Collection(row.number));
    tx.scan(within, None, usize::MAX, &mut |entry, standing| {
        let (_, host) = tx.queue_parts(standing.queue);
        if standing.state == State::Queued
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
            priority: standing.map(|standing| standing.effective()).unwrap_or_default(),
            due: standing.map(|standing| standing.due).unwrap_or_default(),
            waits_for: self.waits_for,
        })
    }
}

/// The queues as they would hand out their entries, one by one, if each fetch took no time.
struct Simulation {
    /// When each queue has its next turn, and its place in line among those that have it together.
    turns: BTreeSet<(Moment, u64, QueueId)>,
    queues: BTreeMap<QueueId, Simulated>,
    now: Moment,
    last_turn: u64,
}

/// A queue in the plan.
struct Simulated {
    entries: Vec<(EntryId, Standing)>,
    host: Host,
    is_plain: bool,
    handed_out: u64,
}

impl Simulation {
    fn of<T: Tx>(
        tx: &T,
        catalog: &Catalog,
        waiting: BTreeMap<QueueId, Vec<(EntryId, Standing)>>,
        now: Moment,
    ) -> Self {
        let mut simulation = Self { turns: BTreeSet::new(), queues: BTreeMap::new(), now, last_turn: 0 };
        for (queue, entries) in waiting {
            let (number, host_id) = tx.queue_parts(queue);
            let Some(row) = catalog.collection_numbered(number) else { continue };
            let is_held = !catalog.rows().overall.is_active
                || !row.spec.enabled
                || row.spec.job.is_some_and(|job| job.steering != Steering::Running);
            let (host, is_plain) = (tx.host(host_id).clone(), row.spec.kind == Kind::Plain);
            let opens = host.opens(tx.in_flight(host_id), &tx.settings().politeness, is_plain);
            let free = if is_held { Moment::NEVER } else { opens.at.max(now) };
            simulation.last_turn = simulation.last_turn.max(host.turn(number));
            simulation.turns.insert((first_chance(&entries, free), host.place(number, opens, now), queue));
            simulation.queues.insert(queue, Simulated { entries, host, is_plain, handed_out: 0 });
        }
        simulation
    }

    /// The next hand-out.
    fn next<T: Tx>(&mut self, tx: &T) -> Option<Turn> {
        let (at, _, queue) = self.turns.pop_first()?;
        let state = self.queues.get_mut(&queue)?;
        let settings = tx.settings();
        let reserved = !state.is_plain && is_turn_of_oldest(settings.reserved.0.get(), state.host.served);
        let index = first_of(tx, &state.entries, at, reserved)?;
        let (entry, standing) = state.entries.swap_remove(index);
        let waits_for = match () {
            () if at <= self.now => None,
            () if standing.due >= at => Some(WaitsFor::Due),
            () if state.handed_out == 0 => Some(WaitsFor::Host),
            () => Some(WaitsFor::Others),
        };
        state.host.served += 1;
        state.handed_out += 1;
        if !state.entries.is_empty() {
            let (collection, host) = tx.queue_parts(queue);
            let key = tx.host_key(host).0;
            let delay = state.host.delay_millis(key, waits(tx, state.is_plain));
            let free = at.after_millis(delay);
            self.last_turn = next_turn(self.last_turn, at);
            state.host.take_turn(collection, self.last_turn);
            let place = state.host.place(collection, Opens { at: free, gate: None }, at);
            self.turns.insert((first_chance(&state.entries, free), place, queue));
        }
        Some(Turn { at: (at < Moment::NEVER).then_some(at), entry, waits_for })
    }
}

/// When a host that is free from then on has something to hand out.
fn first_chance(entries: &[(EntryId, Standing)], free: Moment) -> Moment {
    let first_due = entries.iter().map(|(_, standing)| standing.due).min();
    first_due.map_or(free, |due| due.max(free))
}

/// The entry that a host hands out at a time: of those due by then, the first.
fn first_of<T: Tx>(tx: &T, entries: &[(EntryId, Standing)], at: Moment, reserved: bool) -> Option<usize> {
    let due = || entries.iter().enumerate().filter(|(_, (_, standing))| standing.due <= at);
    let by_due = due().filter(|(_, (_, standing))| reserved && standing.by_due);
    let oldest = by_due.min_by_key(|(_, (id, standing))| (standing.due, *id));
    let first = || due().min_by_key(|(_, (id, standing))| order_key(tx, *id, standing));
    oldest.or_else(first).map(|(index, _)| index)
}

/// What a queue goes by: priority, then the due time or the time of arrival, then arrival.
pub(super) fn order_key<T: Tx>(
    tx: &T,
    entry: EntryId,
    standing: &Standing,
) -> (Reverse<forager_core::hierarchy::Priority>, bool, Option<Moment>, EntryId) {
    let time = if standing.by_due { Some(standing.due) } else { tx.arrived(entry) };
    (Reverse(standing.effective()), standing.by_due, time, entry)
}
