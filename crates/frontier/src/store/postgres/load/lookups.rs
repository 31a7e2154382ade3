//! Finding entries, queues and hosts.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::super::call::Call;
use super::super::failure::Failure;
use super::super::loaded::{Key, Loaded};
use super::super::numbers::{Needed, Numbered};
use super::super::rows::{
    self, askable, collection_id, host_id, int, owner_number, queue_id, standing, text,
};
use super::super::session::{Session, Statement};
use super::super::wants::{Lookup, Stretch, Wants, stretch_key};
use super::claims::forget;
use super::{Opened, lock_and_read, owner};
use crate::engine::Within;
use crate::entry::{CollectionId, EntryId, HostId, QueueId};

/// The hosts of entries.
pub(super) async fn hosts_of_entries(
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

/// Entries by collection, queue key and identity. Where those that are not there may be added, their hosts are locked
/// at once. Which hosts there are may have been answered already. Returns how many numbers it takes to add what is missing.
pub(super) async fn lookups(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    (wants, opened): (&Wants, Option<Opened>),
    hosts: &mut BTreeSet<HostId>,
) -> Result<Needed, Failure> {
    if wants.lookups.is_empty() {
        return Ok(Needed::default());
    }
    let keys = keys_of(wants);
    let answers = match opened {
        Some(answers) => answers,
        None => session.run_all(&[ask_keys(call, &keys)]).await?,
    };
    let versions = take_keys(call, loaded, &keys, answers.iter().flatten(), hosts)?;
    let all: Vec<&Lookup> = wants.lookups.iter().collect();
    look_up(session, loaded, &all).await?;
    if !wants.may_add {
        return Ok(Needed::default());
    }
    let mut missing: Vec<&Lookup> =
        all.into_iter().filter(|lookup| found_as(loaded, lookup).is_none()).collect();
    let needed = needed(call, loaded, &missing);
    if !call.is_alone {
        lock_hosts_of(session, call, loaded, (wants, hosts), &mut missing).await?;
        // Others may have added them meanwhile, but not where queues are as they were.
        missing.retain(|(collection, key, _)| {
            let queue = loaded.queue_by.get(&(*collection, key.clone())).copied().flatten();
            queue.is_some_and(|queue| {
                loaded.queues.get(&queue).map(|row| row.version) != versions.get(&queue).copied()
            })
        });
        look_up(session, loaded, &missing).await?;
    }
    Ok(needed)
}

/// The entry that was found.
fn found_as(loaded: &Loaded, (collection, name, key): &Lookup) -> Option<EntryId> {
    let queue = loaded.queue_by.get(&(*collection, name.clone())).copied().flatten()?;
    loaded.found.get(&(queue, *key)).copied().flatten()
}

/// The host of an entry that is there or may be added.
fn host_of(call: &Call<'_>, loaded: &Loaded, (collection, key, _): &Lookup) -> Option<HostId> {
    loaded.host_by.get(&(owner(call, *collection), key.clone())).copied().flatten()
}

/// How many numbers it takes to add entries.
fn needed(call: &Call<'_>, loaded: &Loaded, missing: &[&Lookup]) -> Needed {
    let mut needed = Needed::default();
    needed[Numbered::Entry as usize] = missing.len();
    let keys: BTreeSet<(CollectionId, &String)> =
        missing.iter().map(|(collection, key, _)| (*collection, key)).collect();
    for (collection, key) in keys {
        let has_queue = loaded.queue_by.get(&(collection, key.clone())).is_some_and(Option::is_some);
        let has_host =
            loaded.host_by.get(&(owner(call, collection), key.clone())).is_some_and(Option::is_some);
        needed[Numbered::Queue as usize] += usize::from(!has_queue);
        needed[Numbered::Host as usize] += usize::from(!has_host);
    }
    needed
}

/// Locks the hosts of entries that may be added, reads them and the others that were found, and leaves those entries whose hosts
/// were not locked before.
async fn lock_hosts_of(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    (wants, found): (&Wants, &BTreeSet<HostId>),
    missing: &mut Vec<&Lookup>,
) -> Result<(), Failure> {
    let is_open = |host: &HostId| !loaded.locked.contains(host);
    missing.retain(|lookup| host_of(call, loaded, lookup).is_some_and(|host| is_open(&host)));
    let hosts: BTreeSet<HostId> = missing.iter().filter_map(|lookup| host_of(call, loaded, lookup)).collect();
    if hosts.is_empty() {
        return Ok(());
    }
    if !loaded.can_lock(&hosts) {
        return Err(Failure::NotLocked(loaded.locked.iter().copied().chain(hosts).collect()));
    }
    for host in &hosts {
        forget(loaded, *host);
    }
    let unread: BTreeSet<HostId> =
        found.iter().filter(|host| !loaded.hosts.contains_key(host)).chain(&hosts).copied().collect();
    lock_and_read(session, loaded, &hosts, &unread).await?;
    let is_locked =
        |lookup: &&Lookup| host_of(call, loaded, lookup).is_some_and(|host| hosts.contains(&host));
    let found = wants.lookups.iter().filter(is_locked).filter_map(|lookup| found_as(loaded, lookup));
    let found: Vec<EntryId> = found.collect();
    loaded.outdated.extend(found);
    Ok(())
}

async fn look_up(session: &Session, loaded: &mut Loaded, lookups: &[&Lookup]) -> Result<(), Failure> {
    const LOOK_UP: &str = concat!(
        "SELECT ",
        standing!(),
        ", e.key FROM unnest($1::int4[], $2::bytea[]) w (queue, key) \
         JOIN @entries e ON e.queue = w.queue AND e.key = w.key"
    );
    let known = lookups.iter().filter_map(|(collection, name, key)| {
        let queue = loaded.queue_by.get(&(*collection, name.clone())).copied().flatten()?;
        Some((queue, *key))
    });
    let known: Vec<(QueueId, Key)> = known.collect();
    if known.is_empty() {
        return Ok(());
    }
    let queues: Vec<i32> = known.iter().map(|(queue, _)| int(queue.0)).collect();
    let keys: Vec<&[u8]> = known.iter().map(|(_, key)| key.as_slice()).collect();
    let rows = session.query(LOOK_UP, &[(&queues, Type::INT4_ARRAY), (&keys, Type::BYTEA_ARRAY)]).await?;
    for (queue, key) in &known {
        loaded.found.entry((*queue, *key)).or_insert(None);
    }
    for row in &rows {
        let mut key = Key::default();
        key.copy_from_slice(row.try_get("key")?);
        let (id, row) = rows::entry(row, false)?;
        loaded.found.insert((row.standing.queue, key), Some(id));
        loaded.entries.entry(id).or_insert(Some(row));
    }
    Ok(())
}

/// Queues and hosts by their keys.
pub(super) async fn keys(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    wants: &Wants,
    hosts: &mut BTreeSet<HostId>,
) -> Result<(), Failure> {
    const HOSTS: &str = "SELECT h.id, h.key, h.owner FROM unnest($1::text[], $2::int4[]) w (key, owner) \
        JOIN @hosts h ON h.key = w.key AND h.owner = w.owner";
    if !wants.queues.is_empty() {
        let answers = session.run_all(&[ask_keys(call, &wants.queues)]).await?;
        take_keys(call, loaded, &wants.queues, answers.iter().flatten(), hosts)?;
    }
    if wants.hosts.is_empty() {
        return Ok(());
    }
    let texts: Vec<&str> = wants.hosts.iter().map(|(_, key)| askable(key)).collect();
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

/// The queues of entries that are looked up, by their keys.
pub(super) fn keys_of(wants: &Wants) -> BTreeSet<(CollectionId, String)> {
    wants.lookups.iter().map(|(collection, name, _)| (*collection, name.clone())).collect()
}

/// What finds queues by their keys.
pub(super) fn ask_keys(call: &Call<'_>, wanted: &BTreeSet<(CollectionId, String)>) -> Statement<'static> {
    const QUEUES: &str = "SELECT h.id, w.collection, h.key, q.id, q.xmin::text::int8 \
        FROM unnest($1::int4[], $2::int4[], $3::text[]) w (collection, owner, key) \
        JOIN @hosts h ON h.key = w.key AND h.owner = w.owner \
        LEFT JOIN @queues q ON q.collection = w.collection AND q.host = h.id";
    let owners = wanted.iter().map(|(collection, _)| owner_number(owner(call, *collection)));
    Statement::new(QUEUES)
        .with(wanted.iter().map(|(collection, _)| int(collection.0)).collect::<Vec<_>>(), Type::INT4_ARRAY)
        .with(owners.collect::<Vec<_>>(), Type::INT4_ARRAY)
        .with(wanted.iter().map(|(_, key)| askable(key).to_owned()).collect::<Vec<_>>(), Type::TEXT_ARRAY)
}

/// Takes in the queues that were found; returns their versions.
fn take_keys<'a>(
    call: &Call<'_>,
    loaded: &mut Loaded,
    wanted: &BTreeSet<(CollectionId, String)>,
    rows: impl Iterator<Item = &'a Row>,
    hosts: &mut BTreeSet<HostId>,
) -> Result<FxHashMap<QueueId, i64>, Failure> {
    for (collection, key) in wanted {
        loaded.queue_by.insert((*collection, key.clone()), None);
        loaded.host_by.entry((owner(call, *collection), key.clone())).or_insert(None);
    }
    let mut versions = FxHashMap::default();
    for row in rows {
        let host = host_id(row.try_get(0)?);
        let collection = collection_id(row.try_get(1)?);
        let key: String = row.try_get(2)?;
        let queue: Option<i32> = row.try_get(3)?;
        loaded.host_by.insert((owner(call, collection), key.clone()), Some(host));
        loaded.queue_by.insert((collection, key), queue.map(queue_id));
        if let Some(queue) = queue {
            versions.insert(queue_id(queue), row.try_get(4)?);
        }
        hosts.insert(host);
    }
    Ok(versions)
}

/// Entries by their numbers.
pub(super) async fn entries(
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
        loaded.outdated.remove(&id);
        loaded.entries.insert(id, Some(row));
    }
    hosts_of_entries(session, &all.into_iter().collect::<Vec<_>>(), hosts).await
}

/// A stretch of a listing.
pub(super) async fn scan(
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
    let key = stretch_key((within, after));
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
        hosts.insert(host_id(row.try_get(rows::STANDING_ENDS)?));
        let (id, row) = rows::entry(row, false)?;
        head.entries.push(id);
        loaded.entries.entry(id).or_insert(Some(row));
    }
    Ok(())
}
