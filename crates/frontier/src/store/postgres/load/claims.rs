//! Claiming hosts and their leases.

use std::collections::{BTreeSet, HashSet};

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::super::call::Call;
use super::super::failure::Failure;
use super::super::loaded::{Claims, EntryRow, Loaded};
use super::super::rows::{self, askable, host_id, int, millis, queue_id, standing, text};
use super::super::session::{Session, Statement};
use super::super::wants::Wants;
use super::heads::ready;
use crate::engine::Wanted;
use crate::entry::{HostId, Lease, QueueId};
use crate::moment::Moment;

/// How many leases that ran out one call takes back.
const MOST_EXPIRED: i64 = 1000;

/// Of how many collections each is asked for its first queues.
const MOST_ASKED: usize = 100;

/// How many entries of a host that is claimed are read at first.
const MOST_READY: usize = 16;

/// Leases that ran out, of hosts that nobody else is at: who is will take them back.
pub(super) async fn expired(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    until: Moment,
    hosts: &mut BTreeSet<HostId>,
) -> Result<(), Failure> {
    const WHICH: &str = "SELECT DISTINCT x.host FROM (\
            SELECT q.host FROM @entries e JOIN @queues q ON q.id = e.queue \
            WHERE e.state = 1 AND e.leased_until <= $1 ORDER BY e.leased_until LIMIT $2) x";
    const LOCK: &str = "SELECT h.id FROM @hosts h WHERE h.id = ANY($1) ORDER BY h.id FOR UPDATE SKIP LOCKED";
    const LEASES: &str = concat!(
        "SELECT ",
        standing!(),
        ", ",
        text!(),
        " FROM @entries e JOIN @queues q ON q.id = e.queue \
          WHERE e.state = 1 AND e.leased_until <= $1 AND q.host = ANY($2)"
    );
    let most = if until == Moment::NEVER { i64::MAX } else { MOST_EXPIRED };
    let time = millis(until);
    let rows = session.query(WHICH, &[(&time, Type::INT8), (&most, Type::INT8)]).await?;
    let mut numbers: Vec<i32> = Vec::new();
    for row in rows {
        numbers.push(row.try_get(0)?);
    }
    loaded.expired = Some(Vec::new());
    if numbers.is_empty() {
        return Ok(());
    }
    if !call.is_alone {
        let locked = session.query(LOCK, &[(&numbers, Type::INT4_ARRAY)]).await?;
        numbers.clear();
        for row in locked {
            numbers.push(row.try_get(0)?);
        }
    }
    let rows = session.query(LEASES, &[(&time, Type::INT8), (&numbers, Type::INT4_ARRAY)]).await?;
    let mut leases: Vec<Lease> = Vec::new();
    for row in &rows {
        let (id, row) = rows::entry(row, true)?;
        leases.extend(row.lease);
        loaded.entries.insert(id, Some(row));
    }
    loaded.expired = Some(leases);
    loaded.locked.extend(numbers.iter().map(|host| host_id(*host)));
    hosts.extend(numbers.into_iter().map(host_id));
    Ok(())
}

/// Queues that can be claimed, by their places in line; their hosts are locked. `$1` is the place after all of them.
macro_rules! claim {
    ($from:expr, $which:literal, $limit:literal, $how:literal) => {
        concat!(
            "SELECT q.id, q.host, q.place FROM ",
            $from,
            "@queues q JOIN @hosts h ON h.id = q.host WHERE q.place < $1",
            $which,
            " ORDER BY q.place, q.id LIMIT ",
            $limit,
            " FOR UPDATE OF h",
            $how
        )
    };
}

/// The first queues of some collections, which may have few of those that there are.
macro_rules! first_of_some {
    ($depth:literal) => {
        concat!(
            "unnest($2::int4[]) c (collection) CROSS JOIN LATERAL (SELECT f.id FROM @queues f \
                WHERE f.place < $1 AND f.collection = c.collection ORDER BY f.place, f.id LIMIT ",
            $depth,
            ") f CROSS JOIN "
        )
    };
}

/// Claims queues in the order of the line, passing over those that others are at.
pub(super) async fn claim(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    wanted: &Wanted,
    count: usize,
    hosts: &mut BTreeSet<HostId>,
) -> Result<(), Failure> {
    let collections: Vec<i32> = wanted.collections.iter().map(|collection| int(collection.0)).collect();
    if call.waits_for_others && loaded.locked.is_empty() {
        wait(session, call.open_before, &collections, wanted.key.as_deref()).await?;
    }
    let rows = claimable(session, call, &collections, wanted.key.as_deref(), count).await?;
    let mut claims = Claims { asked: count, last: None, is_all: rows.len() < count };
    let mut queues = BTreeSet::new();
    for row in &rows {
        let (queue, host) = (queue_id(row.try_get(0)?), host_id(row.try_get(1)?));
        let place = u64::try_from(row.try_get::<_, i64>(2)?).unwrap_or_default();
        claims.last = claims.last.max(Some((place, queue)));
        loaded.locked.insert(host);
        // What was read of it before may be old.
        forget(loaded, host);
        hosts.insert(host);
        queues.insert(queue);
    }
    loaded.claims = Some(claims);
    ready(session, loaded, &queues.into_iter().collect::<Vec<_>>(), wanted.per_host.clamp(1, MOST_READY))
        .await
}

/// The queues to claim. Each case has a statement of its own, for one with a condition that may not apply goes through
/// all there is.
async fn claimable(
    session: &Session,
    call: &Call<'_>,
    collections: &[i32],
    key: Option<&str>,
    count: usize,
) -> Result<Vec<Row>, Failure> {
    const OF_KEY: &str = claim!("", " AND q.collection = ANY($2) AND h.key = $4", "$3", " SKIP LOCKED");
    const OF_ONE: &str = claim!("", " AND q.collection = $2", "$3", " SKIP LOCKED");
    const OF_MANY: &str = claim!("", " AND q.collection = ANY($2)", "$3", " SKIP LOCKED");
    const OF_ALL: &str = claim!("", "", "$2", " SKIP LOCKED");
    let limit = i64::try_from(count).unwrap_or(i64::MAX);
    let [open, limit] = [(&call.open_before as _, Type::INT8), (&limit as _, Type::INT8)];
    let are_all = collections.len() == call.catalog.rows().collections.len();
    // So many that asking each takes longer than to step over what others have.
    let are_many = collections.len() > MOST_ASKED;
    Ok(match (collections, key) {
        ([], _) => Vec::new(),
        (_, Some(key)) => {
            let (all, key) = ((&collections as _, Type::INT4_ARRAY), askable(key));
            session.query(OF_KEY, &[open, all, limit, (&key, Type::TEXT)]).await?
        }
        ([only], None) => session.query(OF_ONE, &[open, (only, Type::INT4), limit]).await?,
        (_, None) if are_all => session.query(OF_ALL, &[open, limit]).await?,
        (_, None) if are_many => {
            session.query(OF_MANY, &[open, (&collections, Type::INT4_ARRAY), limit]).await?
        }
        (_, None) => of_some(session, call.open_before, collections, count).await?,
    })
}

/// The queues to claim of some collections: the first of each, and more of them where others are at those.
async fn of_some(
    session: &Session,
    open_before: i64,
    collections: &[i32],
    count: usize,
) -> Result<Vec<Row>, Failure> {
    const OF_SOME: &str = claim!(first_of_some!("$4"), " AND q.id = f.id", "$3", " SKIP LOCKED");
    const ARE_MORE: &str = "SELECT 1 FROM unnest($2::int4[]) c (collection) CROSS JOIN LATERAL (\
        SELECT 1 FROM @queues q WHERE q.place < $1 AND q.collection = c.collection \
        ORDER BY q.place, q.id OFFSET $3 LIMIT 1) m LIMIT 1";
    let limit = i64::try_from(count).unwrap_or(i64::MAX);
    let [open, most] = [(&open_before as _, Type::INT8), (&limit as _, Type::INT8)];
    let all = (&collections as _, Type::INT4_ARRAY);
    let mut depth = limit;
    loop {
        let so_many = (&depth as _, Type::INT8);
        let wanted = [open.clone(), all.clone(), most.clone(), so_many.clone()];
        let rows = session.query(OF_SOME, &wanted).await?;
        if rows.len() >= count
            || session.query(ARE_MORE, &[open.clone(), all.clone(), so_many]).await?.is_empty()
        {
            return Ok(rows);
        }
        depth = depth.saturating_mul(8);
    }
}

/// Waits until one of those is through who hold what can be claimed; nothing is held meanwhile that they could be
/// waiting for.
async fn wait(
    session: &Session,
    open_before: i64,
    collections: &[i32],
    key: Option<&str>,
) -> Result<(), Failure> {
    const OF_KEY: &str = claim!("", " AND q.collection = ANY($2) AND h.key = $3", "1", "");
    const OF_SOME: &str = claim!(first_of_some!("1"), " AND q.id = f.id", "1", "");
    let [open, all] = [(&open_before as _, Type::INT8), (&collections as _, Type::INT4_ARRAY)];
    match key {
        Some(key) => session.query(OF_KEY, &[open, all, (&askable(key), Type::TEXT)]).await?,
        None => session.query(OF_SOME, &[open, all]).await?,
    };
    Ok(())
}

/// Forgets what was read of a host, so that it is read again.
pub(super) fn forget(loaded: &mut Loaded, host: HostId) {
    if loaded.hosts.remove(&host).is_none() {
        return;
    }
    let queues: HashSet<QueueId> = loaded.queues_of.remove(&host).into_iter().flatten().collect();
    loaded.queues.retain(|queue, _| !queues.contains(queue));
    let is_its =
        |row: &Option<EntryRow>| row.as_ref().is_some_and(|row| queues.contains(&row.standing.queue));
    loaded.entries.retain(|_, row| !is_its(row));
    loaded.leased.remove(&host);
}

/// Entries by their leases; their hosts are locked.
pub(super) async fn tokens(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    wants: &Wants,
    hosts: &mut BTreeSet<HostId>,
) -> Result<(), Failure> {
    // Those that are locked already are not waited for; of the others each has a higher number than those.
    const LOCK: &str = "SELECT h.id FROM @hosts h WHERE h.id = ANY(ARRAY(SELECT q.host FROM @entries e \
        JOIN @queues q ON q.id = e.queue WHERE e.state = 1 AND e.token = ANY($1))) AND h.id > $2 ORDER BY h.id FOR UPDATE";
    const LEASED: &str = concat!(
        "SELECT ",
        standing!(),
        ", ",
        text!(),
        ", q.host FROM @entries e JOIN @queues q ON q.id = e.queue WHERE e.state = 1 AND e.token = ANY($1)"
    );
    let numbers: Vec<i64> = wants.tokens.iter().filter_map(|token| i64::try_from(token.0).ok()).collect();
    let leased = Statement::new(LEASED).with(numbers.clone(), Type::INT8_ARRAY);
    let last = loaded.locked.iter().max().map_or(-1, |last| int(last.0));
    let lock = Statement::new(LOCK).with(numbers, Type::INT8_ARRAY).with(last, Type::INT4);
    let statements = if call.is_alone { vec![leased] } else { vec![lock, leased] };
    let mut answers = session.run_all(&statements).await?;
    let leased = answers.pop().unwrap_or_default();
    for row in answers.iter().flatten() {
        loaded.locked.insert(host_id(row.try_get(0)?));
    }
    let mut unlocked = BTreeSet::new();
    loaded.tokens.extend(wants.tokens.iter().map(|token| (*token, None)));
    for row in &leased {
        let host = host_id(row.try_get("host")?);
        if !call.is_alone && !loaded.locked.contains(&host) {
            unlocked.insert(host);
        }
        hosts.insert(host);
        let (id, row) = rows::entry(row, true)?;
        if let Some(lease) = row.lease {
            loaded.tokens.insert(lease.token, Some(id));
        }
        loaded.entries.insert(id, Some(row));
    }
    // One with a lower number is waited for from the start, the next time.
    if unlocked.is_empty() { Ok(()) } else { Err(Failure::NotLocked(unlocked)) }
}
