//! Reading what a call wants.

use std::collections::{BTreeSet, HashSet};

use tokio_postgres::types::Type;

use super::loaded::{Claims, Counters, Elsewhere, Head, Loaded};
use super::rows::{
    self, collection_id, entry_id, host_id, int, millis, moment_of_millis, owner_number, queue_id, standing,
    text,
};
use super::session::Session;
use super::view::key_of;
use super::wants::{Stretch, Wants};
use super::{Call, Failure};
use crate::catalog::Kind;
use crate::engine::{Outlook, Wanted, Within};
use crate::entry::{CollectionId, EntryId, HostId, Lease, QueueId};
use crate::host::Opens;
use crate::moment::Moment;
use crate::verbs::{EventRow, FetchRow, Tally};

/// How many leases that ran out one call takes back.
const MOST_EXPIRED: i64 = 1000;

/// How many entries of a host that is claimed are read at first.
const MOST_READY: usize = 16;

/// Reads what is wanted; hosts that the call is to change are locked first.
pub(super) async fn load(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    wants: Wants,
) -> Result<(), Failure> {
    let mut hosts = BTreeSet::new();
    if let Some(until) = wants.expired {
        expired(session, call, loaded, until, &mut hosts).await?;
    }
    if let Some((wanted, count)) = &wants.claims {
        claim(session, loaded, wanted, *count, &mut hosts).await?;
    }
    if !wants.tokens.is_empty() {
        tokens(session, call, loaded, &wants, &mut hosts).await?;
    }
    lookups(session, call, loaded, &wants, &mut hosts).await?;
    keys(session, call, loaded, &wants, &mut hosts).await?;
    entries(session, loaded, &wants, &mut hosts).await?;
    for (stretch, count) in wants.scans.values() {
        scan(session, loaded, *stretch, *count, &mut hosts).await?;
    }
    if wants.all_queues || wants.all_hosts {
        everything(session, loaded).await?;
    }
    let missing: BTreeSet<HostId> =
        hosts.into_iter().filter(|host| !loaded.hosts.contains_key(host)).collect();
    host_rows(session, loaded, &missing).await?;
    heads(session, loaded, &wants).await?;
    // Whoever has yet to see what can be claimed does not know what he waits for.
    if let (Some((wanted, without)), None) = (&wants.outlook, &wants.claims) {
        outlook(session, call, loaded, wanted, without).await?;
    }
    counters(session, loaded, &wants).await?;
    logs(session, call, loaded, &wants).await?;
    notes(session, loaded, &wants).await?;
    loaded.asked.merge(wants);
    Ok(())
}

/// Locks hosts, in the order of their numbers, as all do.
pub(super) async fn lock(
    session: &Session,
    loaded: &mut Loaded,
    hosts: &BTreeSet<HostId>,
) -> Result<(), Failure> {
    const LOCK: &str = "SELECT h.id FROM @hosts h WHERE h.id = ANY($1) ORDER BY h.id FOR UPDATE";
    let numbers = host_numbers(hosts);
    let rows = session.query(LOCK, &[(&numbers, Type::INT4_ARRAY)]).await?;
    for row in rows {
        loaded.locked.insert(host_id(row.try_get(0)?));
    }
    Ok(())
}

fn host_numbers(hosts: &BTreeSet<HostId>) -> Vec<i32> {
    hosts.iter().map(|host| int(host.0)).collect()
}

fn queue_numbers<'a>(queues: impl IntoIterator<Item = &'a QueueId>) -> Vec<i32> {
    queues.into_iter().map(|queue| int(queue.0)).collect()
}

/// Leases that ran out, of hosts that nobody else is at: who is will take them back.
async fn expired(
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

/// Claims queues in the order of their turns, passing over those that others are at.
async fn claim(
    session: &Session,
    loaded: &mut Loaded,
    wanted: &Wanted,
    count: usize,
    hosts: &mut BTreeSet<HostId>,
) -> Result<(), Failure> {
    const OF_ONE: &str = "SELECT q.id, q.host, q.turn FROM @queues q JOIN @hosts h ON h.id = q.host \
        WHERE q.claimable AND q.collection = $1 AND ($2::text IS NULL OR h.key = $2) \
        ORDER BY q.turn, q.id LIMIT $3 FOR UPDATE OF h SKIP LOCKED";
    const OF_MANY: &str = "SELECT q.id, q.host, q.turn FROM @queues q JOIN @hosts h ON h.id = q.host \
        WHERE q.claimable AND q.collection = ANY($1) AND ($2::text IS NULL OR h.key = $2) \
        ORDER BY q.turn, q.id LIMIT $3 FOR UPDATE OF h SKIP LOCKED";
    let limit = i64::try_from(count).unwrap_or(i64::MAX);
    let collections: Vec<i32> = wanted.collections.iter().map(|collection| int(collection.0)).collect();
    let common = [(&wanted.key as _, Type::TEXT), (&limit as _, Type::INT8)];
    let rows = match &collections[..] {
        [] => Vec::new(),
        [only] => session.query(OF_ONE, &[(only, Type::INT4), common[0].clone(), common[1].clone()]).await?,
        _ => {
            let all = (&collections as _, Type::INT4_ARRAY);
            session.query(OF_MANY, &[all, common[0].clone(), common[1].clone()]).await?
        }
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

/// Waits for the host that is next in turn. Whoever does so holds no other, so that nobody waits in a circle.
pub(super) async fn wait_for_others(
    session: &Session,
    loaded: &mut Loaded,
    wanted: &Wanted,
) -> Result<(), Failure> {
    const WAIT: &str = "SELECT h.id FROM @queues q JOIN @hosts h ON h.id = q.host \
        WHERE q.claimable AND q.collection = ANY($1) AND ($2::text IS NULL OR h.key = $2) \
        ORDER BY q.turn, q.id LIMIT 1 FOR UPDATE OF h";
    let collections: Vec<i32> = wanted.collections.iter().map(|collection| int(collection.0)).collect();
    let params = [(&collections as _, Type::INT4_ARRAY), (&wanted.key as _, Type::TEXT)];
    for row in session.query(WAIT, &params).await? {
        loaded.locked.insert(host_id(row.try_get(0)?));
    }
    Ok(())
}

/// Forgets what was read of a host, so that it is read again.
fn forget(loaded: &mut Loaded, host: HostId) {
    if loaded.hosts.remove(&host).is_none() {
        return;
    }
    let queues: HashSet<QueueId> =
        loaded.queues.iter().filter(|(_, row)| row.host == host).map(|(queue, _)| *queue).collect();
    loaded.queues.retain(|queue, _| !queues.contains(queue));
    let is_its = |row: &Option<super::loaded::EntryRow>| {
        row.as_ref().is_some_and(|row| queues.contains(&row.standing.queue))
    };
    loaded.entries.retain(|_, row| !is_its(row));
    loaded.leased.remove(&host);
}

/// Entries by their leases; their hosts are locked.
async fn tokens(
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
        " FROM @entries e WHERE e.state = 1 AND e.token = ANY($1)"
    );
    let numbers: Vec<i64> = wants.tokens.iter().filter_map(|token| i64::try_from(token.0).ok()).collect();
    let param = [(&numbers as _, Type::INT8_ARRAY)];
    if !call.is_alone {
        let mut found = BTreeSet::new();
        for row in session.query(WHICH, &param).await? {
            found.insert(host_id(row.try_get(0)?));
        }
        found.retain(|host| !loaded.locked.contains(host));
        if call.can_lock(loaded, &found) {
            lock(session, loaded, &found).await?;
        } else {
            return Err(Failure::NotLocked(found));
        }
    }
    loaded.tokens.extend(wants.tokens.iter().map(|token| (*token, None)));
    for row in &session.query(LEASED, &param).await? {
        let (id, row) = rows::entry(row, true)?;
        if let Some(lease) = row.lease {
            loaded.tokens.insert(lease.token, Some(id));
        }
        loaded.entries.insert(id, Some(row));
    }
    let entries: Vec<EntryId> = loaded.tokens.values().flatten().copied().collect();
    hosts_of_entries(session, &entries, hosts).await
}

/// The hosts of entries.
async fn hosts_of_entries(
    session: &Session,
    entries: &[EntryId],
    hosts: &mut BTreeSet<HostId>,
) -> Result<(), Failure> {
    const HOSTS: &str =
        "SELECT DISTINCT q.host FROM @entries e JOIN @queues q ON q.id = e.queue WHERE e.id = ANY($1)";
    if entries.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i32> = entries.iter().map(|entry| int(entry.0)).collect();
    for row in session.query(HOSTS, &[(&numbers, Type::INT4_ARRAY)]).await? {
        hosts.insert(host_id(row.try_get(0)?));
    }
    Ok(())
}

/// Entries by collection, queue key and identity.
async fn lookups(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    wants: &Wants,
    hosts: &mut BTreeSet<HostId>,
) -> Result<(), Failure> {
    const LOOK_UP: &str = concat!(
        "SELECT ",
        standing!(),
        ", w.place FROM unnest($1::int4[], $2::int4[], $3::text[], $4::bytea[]) \
              WITH ORDINALITY w (collection, owner, host, key, place) \
         JOIN @hosts h ON h.key = w.host AND h.owner = w.owner \
         JOIN @queues q ON q.collection = w.collection AND q.host = h.id \
         JOIN @entries e ON e.queue = q.id AND e.key = w.key"
    );
    if wants.lookups.is_empty() {
        return Ok(());
    }
    let keys: BTreeSet<(CollectionId, String)> =
        wants.lookups.iter().map(|(collection, key, _)| (*collection, key.clone())).collect();
    queue_keys(session, call, loaded, &keys, hosts).await?;
    let lookups: Vec<_> = wants.lookups.iter().collect();
    let collections: Vec<i32> = lookups.iter().map(|(collection, ..)| int(collection.0)).collect();
    let owners: Vec<i32> =
        lookups.iter().map(|(collection, ..)| owner_number(owner(call, *collection))).collect();
    let texts: Vec<&str> = lookups.iter().map(|(_, key, _)| key.as_str()).collect();
    let hashes: Vec<[u8; 16]> = lookups.iter().map(|(.., identity)| key_of(identity)).collect();
    let slices: Vec<&[u8]> = hashes.iter().map(<[u8; 16]>::as_slice).collect();
    let rows = session
        .query(
            LOOK_UP,
            &[
                (&collections, Type::INT4_ARRAY),
                (&owners, Type::INT4_ARRAY),
                (&texts, Type::TEXT_ARRAY),
                (&slices, Type::BYTEA_ARRAY),
            ],
        )
        .await?;
    for ((collection, key, _), hash) in lookups.iter().zip(&hashes) {
        if let Some(Some(queue)) = loaded.queue_by.get(&(*collection, key.clone())) {
            loaded.found.entry((*queue, *hash)).or_insert(None);
        }
    }
    for row in &rows {
        let place: i64 = row.try_get(17)?;
        let (id, row) = rows::entry(row, false)?;
        let place = usize::try_from(place - 1).unwrap_or_default();
        loaded.found.insert((row.standing.queue, hashes[place]), Some(id));
        loaded.entries.entry(id).or_insert(Some(row));
    }
    Ok(())
}

/// The collection that a host belongs to.
fn owner(call: &Call<'_>, collection: CollectionId) -> Option<CollectionId> {
    let row = call.catalog.collection_numbered(collection);
    row.filter(|row| row.spec.kind == Kind::Plain).map(|row| row.number)
}

/// Queues and hosts by their keys.
async fn keys(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    wants: &Wants,
    hosts: &mut BTreeSet<HostId>,
) -> Result<(), Failure> {
    const HOSTS: &str = "SELECT h.id, h.key, h.owner FROM unnest($1::text[], $2::int4[]) w (key, owner) \
        JOIN @hosts h ON h.key = w.key AND h.owner = w.owner";
    queue_keys(session, call, loaded, &wants.queues, hosts).await?;
    if wants.hosts.is_empty() {
        return Ok(());
    }
    let texts: Vec<&str> = wants.hosts.iter().map(|(_, key)| key.as_str()).collect();
    let owners: Vec<i32> = wants.hosts.iter().map(|(owner, _)| owner_number(*owner)).collect();
    loaded.host_by.extend(wants.hosts.iter().map(|host| (host.clone(), None)));
    for row in session.query(HOSTS, &[(&texts, Type::TEXT_ARRAY), (&owners, Type::INT4_ARRAY)]).await? {
        let (id, owner) = (host_id(row.try_get(0)?), row.try_get::<_, i32>(2)?);
        let owner = (owner >= 0).then(|| collection_id(owner));
        loaded.host_by.insert((owner, row.try_get(1)?), Some(id));
        hosts.insert(id);
    }
    Ok(())
}

async fn queue_keys(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    wanted: &BTreeSet<(CollectionId, String)>,
    hosts: &mut BTreeSet<HostId>,
) -> Result<(), Failure> {
    const QUEUES: &str = "SELECT h.id, w.collection, h.key, q.id \
        FROM unnest($1::int4[], $2::int4[], $3::text[]) w (collection, owner, key) \
        JOIN @hosts h ON h.key = w.key AND h.owner = w.owner \
        LEFT JOIN @queues q ON q.collection = w.collection AND q.host = h.id";
    if wanted.is_empty() {
        return Ok(());
    }
    let collections: Vec<i32> = wanted.iter().map(|(collection, _)| int(collection.0)).collect();
    let owners: Vec<i32> =
        wanted.iter().map(|(collection, _)| owner_number(owner(call, *collection))).collect();
    let texts: Vec<&str> = wanted.iter().map(|(_, key)| key.as_str()).collect();
    for (collection, key) in wanted {
        loaded.queue_by.insert((*collection, key.clone()), None);
        loaded.host_by.entry((owner(call, *collection), key.clone())).or_insert(None);
    }
    let rows = session
        .query(
            QUEUES,
            &[(&collections, Type::INT4_ARRAY), (&owners, Type::INT4_ARRAY), (&texts, Type::TEXT_ARRAY)],
        )
        .await?;
    for row in rows {
        let host = host_id(row.try_get(0)?);
        let collection = collection_id(row.try_get(1)?);
        let key: String = row.try_get(2)?;
        let queue: Option<i32> = row.try_get(3)?;
        loaded.host_by.insert((owner(call, collection), key.clone()), Some(host));
        loaded.queue_by.insert((collection, key), queue.map(queue_id));
        hosts.insert(host);
    }
    Ok(())
}

/// Entries by their numbers.
async fn entries(
    session: &Session,
    loaded: &mut Loaded,
    wants: &Wants,
    hosts: &mut BTreeSet<HostId>,
) -> Result<(), Failure> {
    const ENTRIES: &str =
        concat!("SELECT ", standing!(), ", ", text!(), " FROM @entries e WHERE e.id = ANY($1)");
    let all: BTreeSet<EntryId> = wants.entries.union(&wants.texts).copied().collect();
    if all.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i32> = all.iter().map(|entry| int(entry.0)).collect();
    for entry in &all {
        loaded.entries.entry(*entry).or_insert(None);
    }
    for row in &session.query(ENTRIES, &[(&numbers, Type::INT4_ARRAY)]).await? {
        let (id, row) = rows::entry(row, true)?;
        loaded.entries.insert(id, Some(row));
    }
    hosts_of_entries(session, &all.into_iter().collect::<Vec<_>>(), hosts).await
}

/// A stretch of a listing.
async fn scan(
    session: &Session,
    loaded: &mut Loaded,
    (within, after): Stretch,
    count: usize,
    hosts: &mut BTreeSet<HostId>,
) -> Result<(), Failure> {
    const EVERYTHING: &str = concat!(
        "SELECT ",
        standing!(),
        ", q.host FROM @entries e JOIN @queues q ON q.id = e.queue \
         WHERE e.id > $1 AND $2::int4 IS NULL ORDER BY e.id LIMIT $3"
    );
    const COLLECTION: &str = concat!(
        "SELECT ",
        standing!(),
        ", q.host FROM @entries e JOIN @queues q ON q.id = e.queue \
         WHERE e.id > $1 AND q.collection = $2 ORDER BY e.id LIMIT $3"
    );
    const QUEUE: &str = concat!(
        "SELECT ",
        standing!(),
        ", q.host FROM @entries e JOIN @queues q ON q.id = e.queue \
         WHERE e.id > $1 AND e.queue = $2 ORDER BY e.id LIMIT $3"
    );
    let key = super::wants::stretch_key((within, after));
    let (statement, number): (_, Option<i32>) = match within {
        Within::Everything => (EVERYTHING, None),
        Within::Collection(collection) => (COLLECTION, Some(int(collection.0))),
        Within::Queue(queue) => (QUEUE, Some(int(queue.0))),
    };
    let head = loaded.scans.entry(key).or_default();
    let last = head.entries.last().copied().or(after).map_or(-1, |last| int(last.0));
    let limit = i64::try_from(count).unwrap_or(i64::MAX);
    let rows =
        session.query(statement, &[(&last, Type::INT4), (&number, Type::INT4), (&limit, Type::INT8)]).await?;
    head.is_all = rows.len() < count;
    for row in &rows {
        hosts.insert(host_id(row.try_get(17)?));
        let (id, row) = rows::entry(row, false)?;
        head.entries.push(id);
        loaded.entries.entry(id).or_insert(Some(row));
    }
    Ok(())
}

/// All hosts and queues there are.
async fn everything(session: &Session, loaded: &mut Loaded) -> Result<(), Failure> {
    const HOSTS: &str = "SELECT h.id FROM @hosts h";
    let mut hosts = BTreeSet::new();
    for row in session.query(HOSTS, &[]).await? {
        hosts.insert(host_id(row.try_get(0)?));
    }
    loaded.has_all_hosts = true;
    loaded.has_all_queues = true;
    hosts.retain(|host| !loaded.hosts.contains_key(host));
    host_rows(session, loaded, &hosts).await
}

/// Hosts, their queues, and what is under way there.
pub(super) async fn host_rows(
    session: &Session,
    loaded: &mut Loaded,
    hosts: &BTreeSet<HostId>,
) -> Result<(), Failure> {
    const HOSTS: &str = "SELECT h.id, h.key, h.owner, h.state::text FROM @hosts h WHERE h.id = ANY($1)";
    const QUEUES: &str = "SELECT q.id, q.collection, q.host, q.queued, q.leased, q.done, q.failed, q.first_due \
        FROM @queues q WHERE q.host = ANY($1)";
    const LEASED: &str = "SELECT q.host, e.id, e.queue, e.leased_until FROM @queues q \
        JOIN @entries e ON e.queue = q.id AND e.state = 1 WHERE q.host = ANY($1) AND q.leased > 0";
    if hosts.is_empty() {
        return Ok(());
    }
    let numbers = host_numbers(hosts);
    let param = [(&numbers as _, Type::INT4_ARRAY)];
    let (host_rows, queue_rows, leased) = tokio::try_join!(
        session.query(HOSTS, &param),
        session.query(QUEUES, &param),
        session.query(LEASED, &param)
    )?;
    for row in &host_rows {
        let (id, row) = rows::host(row)?;
        loaded.host_by.insert((row.owner, row.key.clone()), Some(id));
        loaded.hosts.insert(id, row);
        loaded.leased.insert(id, Vec::new());
    }
    for row in &queue_rows {
        let (id, row) = rows::queue(row)?;
        if let Some(host) = loaded.hosts.get(&row.host) {
            loaded.queue_by.insert((row.collection, host.key.clone()), Some(id));
        }
        loaded.queues.insert(id, row);
    }
    for row in &leased {
        let lease = (entry_id(row.try_get(1)?), queue_id(row.try_get(2)?), moment_of_millis(row.try_get(3)?));
        loaded.leased.entry(host_id(row.try_get(0)?)).or_default().push(lease);
    }
    Ok(())
}

/// The first entries of queues.
async fn heads(session: &Session, loaded: &mut Loaded, wants: &Wants) -> Result<(), Failure> {
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
    rows: &[tokio_postgres::Row],
) -> Result<std::collections::HashMap<QueueId, Head>, Failure> {
    let mut heads: std::collections::HashMap<QueueId, Head> =
        queues.iter().map(|queue| (*queue, Head::default())).collect();
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
async fn outlook(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    wanted: &Wanted,
    without: &BTreeSet<QueueId>,
) -> Result<(), Failure> {
    // In one statement, so that a queue that changes meanwhile is not missed: whether something could be claimed if
    // others were not just at it, the host that opens first, and what is due and runs out first.
    const LOOK: &str = "SELECT EXISTS (SELECT 1 FROM @queues q JOIN @hosts h ON h.id = q.host WHERE q.claimable \
            AND q.collection = ANY($1) AND ($2::text IS NULL OR h.key = $2) AND q.id <> ALL($3)), o.id, o.host, \
        (SELECT q.at FROM @queues q JOIN @hosts h ON h.id = q.host \
            WHERE q.collection = ANY($1) AND NOT q.ready AND NOT q.claimable AND q.at IS NOT NULL \
            AND ($2::text IS NULL OR h.key = $2) AND q.id <> ALL($3) ORDER BY q.at LIMIT 1), \
        (SELECT e.leased_until FROM @entries e JOIN @queues q ON q.id = e.queue \
            JOIN @hosts h ON h.id = q.host WHERE e.state = 1 AND q.collection = ANY($1) \
            AND ($2::text IS NULL OR h.key = $2) AND q.id <> ALL($3) ORDER BY e.leased_until LIMIT 1) \
        FROM (SELECT 1) x LEFT JOIN LATERAL (SELECT q.id, q.host FROM @queues q JOIN @hosts h ON h.id = q.host \
            WHERE q.collection = ANY($1) AND q.ready AND NOT q.claimable AND q.at IS NOT NULL \
            AND ($2::text IS NULL OR h.key = $2) AND q.id <> ALL($3) ORDER BY q.at, q.id LIMIT 1) o ON true";
    let collections: Vec<i32> = wanted.collections.iter().map(|collection| int(collection.0)).collect();
    let held = queue_numbers(without);
    let params = [
        (&collections as _, Type::INT4_ARRAY),
        (&wanted.key as _, Type::TEXT),
        (&held as _, Type::INT4_ARRAY),
    ];
    let rows = session.query(LOOK, &params).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    if call.waits_for_others && row.try_get(0)? {
        return Err(Failure::OthersAreAtIt(wanted.clone()));
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
    let in_flight = crate::host::InFlight {
        count: u32::try_from(ends.clone().count()).unwrap_or(u32::MAX),
        first_expiry: ends.min(),
    };
    let is_plain = owner(call, row.collection).is_some();
    state.state.opens(in_flight, &call.settings.politeness, is_plain)
}

async fn counters(session: &Session, loaded: &mut Loaded, wants: &Wants) -> Result<(), Failure> {
    const COUNTERS: &str = "SELECT c.collection, sum(c.queued)::int8, sum(c.leased)::int8, sum(c.done)::int8, \
        sum(c.failed)::int8, sum(c.fetches)::int8, sum(c.bytes)::int8, sum(c.changes)::int8, sum(c.skipped)::int8 \
        FROM @counters c WHERE c.collection = ANY($1) GROUP BY c.collection";
    if wants.counters.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i32> = wants.counters.iter().map(|collection| int(collection.0)).collect();
    for collection in &wants.counters {
        loaded.counters.insert(*collection, Counters::default());
    }
    for row in session.query(COUNTERS, &[(&numbers, Type::INT4_ARRAY)]).await? {
        let count = |column: usize| {
            row.try_get::<_, i64>(column).map(|count| u64::try_from(count).unwrap_or_default())
        };
        let counts = [count(1)?, count(2)?, count(3)?, count(4)?];
        let tally = Tally { fetches: count(5)?, bytes: count(6)?, changes: count(7)?, skipped: count(8)? };
        loaded.counters.insert(collection_id(row.try_get(0)?), Counters { counts, tally });
    }
    Ok(())
}

/// Rows of the logs. The new ones are numbered first, by one reader at a time, so that none comes later with a
/// number that was passed already.
async fn logs(session: &Session, call: &Call<'_>, loaded: &mut Loaded, wants: &Wants) -> Result<(), Failure> {
    const ALONE: &str = "SELECT pg_advisory_xact_lock($1)";
    const NUMBER_EVENTS: &str = "UPDATE @events e SET position = n.last + n.place FROM (\
        SELECT id, row_number() OVER (ORDER BY id) AS place, \
            coalesce((SELECT max(position) FROM @events), -1) AS last \
        FROM @events WHERE position IS NULL) n WHERE e.id = n.id";
    const EVENTS: &str =
        "SELECT e.position, e.body::text FROM @events e WHERE e.position >= $1 ORDER BY e.position LIMIT $2";
    const NUMBER_FETCHES: &str = "UPDATE @fetches e SET position = n.last + n.place FROM (\
        SELECT id, row_number() OVER (ORDER BY id) AS place, \
            coalesce((SELECT max(position) FROM @fetches), -1) AS last \
        FROM @fetches WHERE position IS NULL) n WHERE e.id = n.id";
    const FETCHES: &str =
        "SELECT e.position, e.body::text FROM @fetches e WHERE e.position >= $1 ORDER BY e.position LIMIT $2";
    if wants.events.is_none() && wants.fetches.is_none() {
        return Ok(());
    }
    session.query(ALONE, &[(&call.log_lock, Type::INT8)]).await?;
    if let Some((from, limit)) = wants.events {
        session.execute(NUMBER_EVENTS, &[]).await?;
        let mut events = Vec::new();
        for (position, body) in log_rows(session, EVENTS, from, limit).await? {
            let event: EventRow =
                serde_json::from_str(&body).map_err(|cause| unreadable("an event", &cause))?;
            events.push(EventRow { position, ..event });
        }
        loaded.events = Some(events);
    }
    if let Some((from, limit)) = wants.fetches {
        session.execute(NUMBER_FETCHES, &[]).await?;
        let mut fetches = Vec::new();
        for (position, body) in log_rows(session, FETCHES, from, limit).await? {
            let fetch: FetchRow =
                serde_json::from_str(&body).map_err(|cause| unreadable("a fetch", &cause))?;
            fetches.push(FetchRow { position, ..fetch });
        }
        loaded.fetches = Some(fetches);
    }
    Ok(())
}

async fn log_rows(
    session: &Session,
    statement: &'static str,
    from: u64,
    limit: usize,
) -> Result<Vec<(u64, String)>, Failure> {
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = session.query(statement, &[(&from, Type::INT8), (&limit, Type::INT8)]).await?;
    let read = rows.iter().map(|row| {
        let position = u64::try_from(row.try_get::<_, i64>(0)?).unwrap_or_default();
        Ok((position, row.try_get(1)?))
    });
    read.collect()
}

fn unreadable(what: &str, cause: &serde_json::Error) -> Failure {
    Failure::Damaged(format!("{what} cannot be read: {cause}"))
}

async fn notes(session: &Session, loaded: &mut Loaded, wants: &Wants) -> Result<(), Failure> {
    const NOTES: &str = "SELECT n.key, n.value FROM @notes n WHERE n.hash = ANY($1)";
    if wants.notes.is_empty() {
        return Ok(());
    }
    let hashes: Vec<[u8; 16]> = wants.notes.iter().map(|key| key_of(key)).collect();
    let slices: Vec<&[u8]> = hashes.iter().map(<[u8; 16]>::as_slice).collect();
    loaded.notes.extend(wants.notes.iter().map(|key| (key.clone(), None)));
    for row in session.query(NOTES, &[(&slices, Type::BYTEA_ARRAY)]).await? {
        let key: Vec<u8> = row.try_get(0)?;
        loaded.notes.insert(String::from_utf8_lossy(&key).into_owned(), Some(row.try_get(1)?));
    }
    Ok(())
}
