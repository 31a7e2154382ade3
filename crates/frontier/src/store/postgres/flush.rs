//! Writing what a call changed, in a constant number of statements.

mod catalog;
mod change;
mod entries;
mod numbers;
mod queues;
mod records;
mod shifts;

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use self::change::Change;
use self::queues::Refreshed;
use super::call::Call;
use super::failure::Failure;
use super::loaded::EntryRow;
use super::receipts::Receipt;
use super::session::Session;
use super::view::View;
use crate::engine::Tx as _;
use crate::entry::{EntryId, HostId, QueueId};

/// Writes what the call changed, works out anew what hangs on it, and commits.
///
/// The order is the same for all calls, and rows of one table are taken in one order too: so nobody waits in a circle.
/// Says whether somebody who waits may find something earlier than he thought.
pub(super) async fn flush(
    session: &mut Session,
    view: &View,
    woken: &BTreeSet<QueueId>,
    receipt: Option<&Receipt<'_>>,
) -> Result<bool, Failure> {
    let changes = &view.changes;
    let mut statements = Vec::new();
    if let Some(catalog) = &changes.catalog {
        statements.extend(catalog::set_catalog(&view.catalog, catalog)?);
    }
    statements.extend(queues::new_hosts(view)?);
    let shifts = shifts::shifts(view);
    statements.extend(queues::new_queues(view, &shifts));
    statements.extend(entries::remove_entries(changes));
    statements.extend(entries::new_entries(view)?);
    // Notes before counters, as in all calls: whoever waits for one of these holds nothing that others wait for before them.
    statements.extend(records::notes(changes));
    statements.extend(records::logs(changes)?);
    let mut refreshed = Refreshed::of(view, &shifts, &queues_to_refresh(view, woken), woken);
    let is_any_earlier = refreshed.is_any_earlier;
    let change = Change::of(view, &shifts, std::mem::take(&mut refreshed.known))?;
    statements.extend(change.write(view, receipt));
    let refresh = queues::refresh(view, refreshed);
    let refreshed = refresh.as_ref().map(|_| statements.len());
    statements.extend(refresh);
    statements.extend(records::clear(changes));
    statements.extend(queues::forget(changes));
    let answers = session.run_all(&statements).await?;
    // Apart: by now the receipt is written, so that whoever looks for it waits for what becomes of this.
    let committed = session.commit().await;
    committed.map_err(|why| if why.is_loss() { Failure::Unheard(Box::new(why)) } else { why })?;
    let is_queued = |queue: &QueueId| shifts.get(queue).is_some_and(|shift| shift.counts[0] > 0);
    let mut is_news = is_any_earlier || changes.catalog.is_some() || changes.new_queues.keys().any(is_queued);
    if let Some(refreshed) = refreshed.and_then(|place| answers.get(place)) {
        is_news |= queues::is_any_earlier(view, refreshed)?;
    }
    Ok(is_news)
}

/// The hosts whose rows or entries are changed.
fn touched(view: &View) -> BTreeSet<HostId> {
    let changes = &view.changes;
    let mut touched: BTreeSet<HostId> = changes.hosts.keys().copied().collect();
    touched.extend(changes.new_queues.values().map(|queue| queue.host));
    touched.extend(changes.forgotten.values().map(|(host, _)| *host));
    touched.extend(touched_queues(view).into_iter().map(|queue| view.queue_parts(queue).1));
    touched
}

/// The queues whose entries are changed.
fn touched_queues(view: &View) -> FxHashSet<QueueId> {
    let mut queues = FxHashSet::default();
    for (entry, row) in &view.changes.entries {
        queues.extend(row.as_ref().map(|row| row.standing.queue));
        queues.extend(before(view, *entry).map(|row| row.standing.queue));
    }
    queues
}

fn before(view: &View, entry: EntryId) -> Option<&EntryRow> {
    view.loaded.entries.get(&entry)?.as_ref()
}

/// The hosts that would be changed while somebody else may be changing them.
pub(super) fn unlocked(call: &Call<'_>, view: &View) -> Result<BTreeSet<HostId>, Failure> {
    if call.is_alone {
        return Ok(BTreeSet::new());
    }
    if view.changes.catalog.is_some() || !view.changes.cleared.is_empty() {
        return Err(Failure::NotAlone);
    }
    let mut open = touched(view);
    open.retain(|host| !view.loaded.locked.contains(host) && !view.changes.new_hosts.contains(host));
    Ok(open)
}

/// The queues for which something is worked out anew: those of all hosts that are touched, if they were there before.
fn queues_to_refresh(view: &View, woken: &BTreeSet<QueueId>) -> BTreeSet<QueueId> {
    let hosts = touched(view);
    let read = view.loaded.queues.iter().filter(|(_, row)| hosts.contains(&row.host));
    read.map(|(queue, _)| *queue).chain(woken.iter().copied()).collect()
}
