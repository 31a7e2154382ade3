//! Claiming hosts and their leases.

use std::collections::{BTreeSet, HashSet};

use tokio_postgres::types::Type;

use super::super::call::Call;
use super::super::failure::Failure;
use super::super::loaded::{Claims, EntryRow, Loaded};
use super::super::rows::{self, askable, host_id, int, millis, queue_id, standing, text};
use super::super::session::Session;
use super::super::wants::Wants;
use super::heads::ready;
use super::lock;
use crate::engine::Wanted;
use crate::entry::{HostId, Lease, QueueId};
use crate::moment::Moment;

/// How many leases that ran out one call takes back.
const MOST_EXPIRED: i64 = 1000;

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

/// Queues that can be claimed, in the order of their turns; their hosts are locked.
macro_rules! claim {
    ($which:literal, $limit:literal, $how:literal) => {
        concat!(
            "SELECT q.id, q.host, q.turn FROM @queues q JOIN @hosts h ON h.id = q.host WHERE q.claimable AND ",
            $which,
            " ORDER BY q.turn, q.id LIMIT ",
            $limit,
            " FOR UPDATE OF h",
            $how
        )
    };
}

/// Claims queues in the order of their turns, passing over those that others are at.
pub(super) async fn claim(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    wanted: &Wanted,
    count: usize,
    hosts: &mut BTreeSet<HostId>,
) -> Result<(), Failure> {
    const OF_KEY: &str = claim!("q.collection = ANY($1) AND h.key = $3", "$2", " SKIP LOCKED");
    const OF_ONE: &str = claim!("q.collection = $1", "$2", " SKIP LOCKED");
    const OF_MANY: &str = claim!("q.collection = ANY($1)", "$2", " SKIP LOCKED");
    let limit = i64::try_from(count).unwrap_or(i64::MAX);
    let collections: Vec<i32> = wanted.collections.iter().map(|collection| int(collection.0)).collect();
    if call.waits_for_others && loaded.locked.is_empty() {
        wait(session, &collections, wanted.key.as_deref()).await?;
    }
    let limit = (&limit as _, Type::INT8);
    let all = (&collections as _, Type::INT4_ARRAY);
    // Each has a statement of its own, for one with a condition that may not apply goes through all hosts.
    let rows = match (&collections[..], &wanted.key) {
        ([], _) => Vec::new(),
        (_, Some(key)) => session.query(OF_KEY, &[all, limit, (&askable(key), Type::TEXT)]).await?,
        ([only], None) => session.query(OF_ONE, &[(only, Type::INT4), limit]).await?,
        (_, None) => session.query(OF_MANY, &[all, limit]).await?,
    };
    let mut claims = Claims { asked: count, last: None, is_all: rows.len() < count };
    let mut queues = BTreeSet::new();
    for row in &rows {
        let (queue, host) = (queue_id(row.try_get(0)?), host_id(row.try_get(1)?));
        let turn = u64::try_from(row.try_get::<_, i64>(2)?).unwrap_or_default();
        claims.last = claims.last.max(Some((turn, queue)));
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

/// Waits until one of those is through who hold what can be claimed; nothing is held meanwhile that they could be
/// waiting for.
async fn wait(session: &Session, collections: &[i32], key: Option<&str>) -> Result<(), Failure> {
    const OF_KEY: &str = claim!("q.collection = ANY($1) AND h.key = $2", "1", "");
    const OF_MANY: &str = claim!("q.collection = ANY($1)", "1", "");
    let all = (&collections as _, Type::INT4_ARRAY);
    match key {
        Some(key) => session.query(OF_KEY, &[all, (&askable(key), Type::TEXT)]).await?,
        None => session.query(OF_MANY, &[all]).await?,
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
    const WHICH: &str = "SELECT q.host FROM @entries e JOIN @queues q ON q.id = e.queue \
        WHERE e.state = 1 AND e.token = ANY($1)";
    const LEASED: &str = concat!(
        "SELECT ",
        standing!(),
        ", ",
        text!(),
        ", q.host FROM @entries e JOIN @queues q ON q.id = e.queue WHERE e.state = 1 AND e.token = ANY($1)"
    );
    let numbers: Vec<i64> = wants.tokens.iter().filter_map(|token| i64::try_from(token.0).ok()).collect();
    let param = [(&numbers as _, Type::INT8_ARRAY)];
    if !call.is_alone {
        let mut found = BTreeSet::new();
        for row in session.query(WHICH, &param).await? {
            found.insert(host_id(row.try_get(0)?));
        }
        found.retain(|host| !loaded.locked.contains(host));
        if loaded.can_lock(&found) {
            lock(session, loaded, &found).await?;
        } else {
            return Err(Failure::NotLocked(found));
        }
    }
    loaded.tokens.extend(wants.tokens.iter().map(|token| (*token, None)));
    for row in &session.query(LEASED, &param).await? {
        hosts.insert(host_id(row.try_get("host")?));
        let (id, row) = rows::entry(row, true)?;
        if let Some(lease) = row.lease {
            loaded.tokens.insert(lease.token, Some(id));
        }
        loaded.entries.insert(id, Some(row));
    }
    Ok(())
}
