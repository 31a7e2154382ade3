//! What comes next in queues, and what they wait for.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::super::call::Call;
use super::super::failure::Failure;
use super::super::loaded::{Elsewhere, Head, Loaded};
use super::super::rows::{self, askable, host_id, int, moment_of_millis, queue_id, standing, text};
use super::super::session::Session;
use super::super::wants::Wants;
use super::{host_rows, owner, queue_numbers};
use crate::engine::{Outlook, Wanted};
use crate::entry::{HostId, QueueId};
use crate::host::{InFlight, Opens, moment_of};
use crate::moment::Moment;

/// The first entries of queues that are ready, so many of each.
macro_rules! first_ready {
    ($queues:literal, $count:literal) => {
        concat!(
            "SELECT ",
            standing!(),
            ", ",
            text!(),
            " FROM unnest(",
            $queues,
            ") w (queue) CROSS JOIN LATERAL (SELECT * FROM @entries r WHERE r.queue = w.queue \
              AND r.ready ORDER BY r.priority DESC, r.tie, r.id LIMIT ",
            $count,
            ") e ORDER BY e.queue, e.priority DESC, e.tie, e.id"
        )
    };
}

pub(super) use first_ready;

/// The first entries of queues.
pub(super) async fn heads(session: &Session, loaded: &mut Loaded, wants: &Wants) -> Result<(), Failure> {
    let most = wants.ready.values().copied().max().unwrap_or_default();
    let queues: Vec<QueueId> = wants.ready.keys().copied().collect();
    ready(session, loaded, &queues, most).await?;
    let most = wants.oldest.values().copied().max().unwrap_or_default();
    let queues: Vec<QueueId> = wants.oldest.keys().copied().collect();
    oldest(session, loaded, &queues, most).await
}

async fn ready(
    session: &Session,
    loaded: &mut Loaded,
    queues: &[QueueId],
    count: usize,
) -> Result<(), Failure> {
    const READY: &str = first_ready!("$1::int4[]", "$2");
    if queues.is_empty() {
        return Ok(());
    }
    let (numbers, limit) = (queue_numbers(queues), i64::try_from(count).unwrap_or(i64::MAX));
    let rows = session.query(READY, &[(&numbers, Type::INT4_ARRAY), (&limit, Type::INT8)]).await?;
    take_ready(loaded, queues, count, &rows)
}

/// Takes in the first entries of queues that are ready.
pub(super) fn take_ready(
    loaded: &mut Loaded,
    queues: &[QueueId],
    count: usize,
    rows: &[Row],
) -> Result<(), Failure> {
    let heads = head_rows(loaded, queues, count, rows)?;
    loaded.ready.extend(heads);
    Ok(())
}

async fn oldest(
    session: &Session,
    loaded: &mut Loaded,
    queues: &[QueueId],
    count: usize,
) -> Result<(), Failure> {
    const OLDEST: &str = concat!(
        "SELECT ",
        standing!(),
        ", ",
        text!(),
        " FROM unnest($1::int4[]) w (queue) CROSS JOIN LATERAL (SELECT * FROM @entries r WHERE r.queue = w.queue \
          AND r.ready AND r.tie >= 0 ORDER BY r.due, r.id LIMIT $2) e ORDER BY e.queue, e.due, e.id"
    );
    if queues.is_empty() {
        return Ok(());
    }
    let (numbers, limit) = (queue_numbers(queues), i64::try_from(count).unwrap_or(i64::MAX));
    let rows = session.query(OLDEST, &[(&numbers, Type::INT4_ARRAY), (&limit, Type::INT8)]).await?;
    let heads = head_rows(loaded, queues, count, &rows)?;
    loaded.oldest.extend(heads);
    Ok(())
}

fn head_rows(
    loaded: &mut Loaded,
    queues: &[QueueId],
    count: usize,
    rows: &[Row],
) -> Result<FxHashMap<QueueId, Head>, Failure> {
    let mut heads: FxHashMap<QueueId, Head> = queues.iter().map(|queue| (*queue, Head::default())).collect();
    for row in rows {
        let (id, row) = rows::entry(row, true)?;
        heads.entry(row.standing.queue).or_default().entries.push(id);
        loaded.entries.insert(id, Some(row));
    }
    for head in heads.values_mut() {
        head.is_all = head.entries.len() < count;
    }
    Ok(heads)
}

/// What the queues wait for that this call does not hold.
pub(super) async fn outlook(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    wanted: &Wanted,
    without: &BTreeSet<QueueId>,
) -> Result<(), Failure> {
    // In one statement, so that a queue that changes meanwhile is not missed: the first in line, which can be claimed or
    // opens first, and what is due and runs out first. Each collection is asked for its first one by an index, however
    // many there are.
    const LOOK: &str = "SELECT o.place, o.id, o.host, \
        (SELECT min(d.opens) FROM unnest($1::int4[]) c (collection) CROSS JOIN LATERAL (SELECT q.opens FROM @queues q \
            WHERE q.collection = c.collection AND q.opens IS NOT NULL AND q.id <> ALL($2) ORDER BY q.opens LIMIT 1) d), \
        (SELECT e.leased_until FROM @entries e JOIN @queues q ON q.id = e.queue \
            WHERE e.leased_until IS NOT NULL AND q.collection = ANY($1) AND q.id <> ALL($2) ORDER BY e.leased_until LIMIT 1) \
        FROM (SELECT 1) x LEFT JOIN LATERAL (SELECT r.* FROM unnest($1::int4[]) c (collection) \
            CROSS JOIN LATERAL (SELECT q.id, q.host, q.place FROM @queues q \
                WHERE q.collection = c.collection AND q.place IS NOT NULL AND q.id <> ALL($2) \
                ORDER BY q.place, q.id LIMIT 1) r ORDER BY r.place, r.id LIMIT 1) o ON true";
    const LOOK_AT_KEY: &str = "WITH k AS MATERIALIZED (SELECT q.* FROM @hosts h JOIN @queues q ON q.host = h.id \
            WHERE h.key = $3 AND q.collection = ANY($1) AND q.id <> ALL($2)) \
        SELECT o.place, o.id, o.host, (SELECT min(k.opens) FROM k), \
            (SELECT min(e.leased_until) FROM k JOIN @entries e ON e.queue = k.id AND e.state = 1) \
        FROM (SELECT 1) x LEFT JOIN LATERAL (SELECT k.id, k.host, k.place FROM k \
            WHERE k.place IS NOT NULL ORDER BY k.place, k.id LIMIT 1) o ON true";
    let collections: Vec<i32> = wanted.collections.iter().map(|collection| int(collection.0)).collect();
    let held = queue_numbers(without);
    let [all, held] = [(&collections as _, Type::INT4_ARRAY), (&held as _, Type::INT4_ARRAY)];
    let rows = match &wanted.key {
        Some(key) => session.query(LOOK_AT_KEY, &[all, held, (&askable(key), Type::TEXT)]).await?,
        None => session.query(LOOK, &[all, held]).await?,
    };
    let Some(row) = rows.first() else { return Ok(()) };
    let place = row.try_get::<_, Option<i64>>(0)?.unwrap_or_default();
    if place < call.open_before && row.try_get::<_, Option<i32>>(1)?.is_some() && call.minds_others {
        // What can be claimed and was not is held by others; nobody is told to wait for something else meanwhile.
        return Err(Failure::OthersAreAtIt);
    }
    let mut outlook = Outlook::default();
    let mut first_open = None;
    if let (Some(queue), Some(host)) = (row.try_get(1)?, row.try_get(2)?) {
        let (queue, host) = (queue_id(queue), host_id(host));
        if !loaded.hosts.contains_key(&host) {
            host_rows(session, loaded, &BTreeSet::from([host])).await?;
        }
        first_open = Some(queue);
        // By its place too: one whose clock, or whose settings, are others may have given it that.
        let Opens { at, gate } = opens(call, loaded, queue, host);
        let by_place = moment_of(u64::try_from(place).unwrap_or_default());
        outlook.first_open = Some(Opens { at: at.max(by_place), gate });
    }
    outlook.first_due = row.try_get::<_, Option<i64>>(3)?.map(moment_of_millis);
    outlook.first_expiry = row.try_get::<_, Option<i64>>(4)?.map(moment_of_millis);
    let (wanted, without) = (wanted.clone(), without.clone());
    loaded.outlook = Some(Elsewhere { wanted, without, outlook, first_open });
    Ok(())
}

/// When a queue opens, by what was read.
fn opens(call: &Call<'_>, loaded: &Loaded, queue: QueueId, host: HostId) -> Opens {
    let never = Opens { at: Moment::NEVER, gate: None };
    let (Some(row), Some(state)) = (loaded.queues.get(&queue), loaded.hosts.get(&host)) else { return never };
    let ends = loaded.leased.get(&host).into_iter().flatten().map(|(.., until)| *until);
    let in_flight =
        InFlight { count: u32::try_from(ends.clone().count()).unwrap_or(u32::MAX), first_expiry: ends.min() };
    let is_plain = owner(call, row.collection).is_some();
    state.state.opens(in_flight, &call.settings.politeness, is_plain)
}
