//! What comes next in queues, and what they wait for.

use std::collections::{BTreeSet, HashMap};

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::super::Call;
use super::super::failure::Failure;
use super::super::loaded::{Elsewhere, Head, Loaded};
use super::super::rows::{self, host_id, int, moment_of_millis, queue_id, standing, text};
use super::super::session::Session;
use super::super::wants::Wants;
use super::{host_rows, owner, queue_numbers};
use crate::engine::{Outlook, Wanted};
use crate::entry::{HostId, QueueId};
use crate::host::{InFlight, Opens};
use crate::moment::Moment;

/// The first entries of queues.
pub(super) async fn heads(session: &Session, loaded: &mut Loaded, wants: &Wants) -> Result<(), Failure> {
    let most = wants.ready.values().copied().max().unwrap_or_default();
    let queues: Vec<QueueId> = wants.ready.keys().copied().collect();
    ready(session, loaded, &queues, most).await?;
    let most = wants.oldest.values().copied().max().unwrap_or_default();
    let queues: Vec<QueueId> = wants.oldest.keys().copied().collect();
    oldest(session, loaded, &queues, most).await
}

pub(super) async fn ready(
    session: &Session,
    loaded: &mut Loaded,
    queues: &[QueueId],
    count: usize,
) -> Result<(), Failure> {
    const READY: &str = concat!(
        "SELECT ",
        standing!(),
        ", ",
        text!(),
        " FROM unnest($1::int4[]) w (queue) CROSS JOIN LATERAL (SELECT * FROM @entries r WHERE r.queue = w.queue \
          AND r.ready ORDER BY r.priority DESC, r.tie, r.id LIMIT $2) e \
          ORDER BY e.queue, e.priority DESC, e.tie, e.id"
    );
    if queues.is_empty() {
        return Ok(());
    }
    let (numbers, limit) = (queue_numbers(queues), i64::try_from(count).unwrap_or(i64::MAX));
    let rows = session.query(READY, &[(&numbers, Type::INT4_ARRAY), (&limit, Type::INT8)]).await?;
    let heads = head_rows(loaded, queues, count, &rows)?;
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
) -> Result<HashMap<QueueId, Head>, Failure> {
    let mut heads: HashMap<QueueId, Head> = queues.iter().map(|queue| (*queue, Head::default())).collect();
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

/// What the queues of some collections wait for. In one statement, so that a queue that changes meanwhile is not missed:
/// whether something can be claimed that was not, the host that opens first, and what is due and runs out first.
macro_rules! look {
    ($key:literal) => {
        concat!(
            "SELECT EXISTS (SELECT 1 FROM @queues q JOIN @hosts h ON h.id = q.host WHERE q.claimable \
                AND q.collection = ANY($1) AND q.id <> ALL($2)",
            $key,
            "), o.id, o.host, (SELECT q.at FROM @queues q JOIN @hosts h ON h.id = q.host \
                WHERE q.collection = ANY($1) AND NOT q.ready AND NOT q.claimable AND q.at IS NOT NULL \
                AND q.id <> ALL($2)",
            $key,
            " ORDER BY q.at LIMIT 1), (SELECT e.leased_until FROM @entries e JOIN @queues q ON q.id = e.queue \
                JOIN @hosts h ON h.id = q.host WHERE e.state = 1 AND q.collection = ANY($1) AND q.id <> ALL($2)",
            $key,
            " ORDER BY e.leased_until LIMIT 1) FROM (SELECT 1) x LEFT JOIN LATERAL (SELECT q.id, q.host FROM @queues q \
                JOIN @hosts h ON h.id = q.host WHERE q.collection = ANY($1) AND q.ready AND NOT q.claimable \
                AND q.at IS NOT NULL AND q.id <> ALL($2)",
            $key,
            " ORDER BY q.at, q.id LIMIT 1) o ON true"
        )
    };
}

/// What the queues wait for that this call does not hold.
pub(super) async fn outlook(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    wanted: &Wanted,
    without: &BTreeSet<QueueId>,
) -> Result<(), Failure> {
    let collections: Vec<i32> = wanted.collections.iter().map(|collection| int(collection.0)).collect();
    let held = queue_numbers(without);
    let [all, held] = [(&collections as _, Type::INT4_ARRAY), (&held as _, Type::INT4_ARRAY)];
    let rows = match &wanted.key {
        Some(key) => session.query(look!(" AND h.key = $3"), &[all, held, (key, Type::TEXT)]).await?,
        None => session.query(look!(""), &[all, held]).await?,
    };
    let Some(row) = rows.first() else { return Ok(()) };
    if row.try_get(0)? && call.minds_others {
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
        outlook.first_open = Some(opens(call, loaded, queue, host));
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
