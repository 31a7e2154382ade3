//! Reading what a call wants.

mod claims;
mod heads;
mod lookups;
mod records;

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use self::claims::Claim;
use super::call::Call;
use super::failure::Failure;
use super::loaded::Loaded;
use super::numbers::{Needed, Numbered};
use super::rows::{self, entry_id, host_id, int, moment_of_millis, queue_id};
use super::session::{Session, Statement};
use super::wants::Wants;
use crate::catalog::Kind;
use crate::entry::{CollectionId, HostId, Lease, QueueId, State};

/// Hosts with their queues, by the numbers of the hosts.
macro_rules! hosts_and_queues {
    ($numbers:literal) => {
        concat!(
            "SELECT h.id, h.key, h.owner, h.state::text, \
                q.id, q.collection, q.host, q.queued, q.leased, q.done, q.failed, \
                q.place, q.opens, q.first_due, q.wake_at, q.seen, q.xmin::text::int8 \
             FROM @hosts h LEFT JOIN @queues q ON q.host = h.id WHERE h.id = ANY(",
            $numbers,
            ")"
        )
    };
}

use hosts_and_queues;

/// Hosts by their numbers.
const HOSTS: &str = hosts_and_queues!("$1");

/// How many tokens are set aside before it is known how many there is work for.
const MOST_TOKENS: usize = 100;

/// The answers to what was asked as a call began.
pub(super) type Opened = Vec<Vec<Row>>;

/// What of all that is wanted can be asked as a call begins: what it claims, the leases that it is about, or the hosts.
pub(super) fn opening(call: &Call<'_>, wants: &Wants) -> Vec<Statement<'static>> {
    match &wants.claims {
        Some((wanted, count)) => Claim::new(call, wanted, *count).map_or_else(Vec::new, |claim| claim.ask()),
        None if !wants.tokens.is_empty() => claims::ask_tokens(call, wants, None),
        None if !wants.lookups.is_empty() => vec![lookups::ask_keys(call, &lookups::keys_of(wants))],
        None => Vec::new(),
    }
}

/// Reads what is wanted, the first part of which may be answered already; hosts that the call is to change are locked first.
/// Returns how many numbers will be needed.
pub(super) async fn load(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    wants: Wants,
    mut opened: Option<Opened>,
) -> Result<Needed, Failure> {
    let mut hosts = BTreeSet::new();
    if let Some((wanted, count)) = &wants.claims {
        claims::claim(session, call, loaded, (wanted, *count), opened.take()).await?;
    } else if !wants.tokens.is_empty() {
        claims::tokens(session, call, loaded, &wants, opened.take()).await?;
    }
    if let Some(until) = wants.expired.filter(|_| loaded.expired.is_none()) {
        claims::expired(session, call, loaded, until, &mut hosts).await?;
    }
    let mut needed = lookups::lookups(session, call, loaded, (&wants, opened), &mut hosts).await?;
    needed[Numbered::Token as usize] =
        wants.claims.as_ref().map_or(0, |(wanted, _)| wanted.most.min(MOST_TOKENS));
    lookups::keys(session, call, loaded, &wants, &mut hosts).await?;
    lookups::entries(session, loaded, &wants, &mut hosts).await?;
    for (stretch, count) in wants.scans.values() {
        lookups::scan(session, loaded, *stretch, *count, &mut hosts).await?;
    }
    if wants.all_queues || wants.all_hosts {
        everything(session, loaded).await?;
    }
    let missing: BTreeSet<HostId> =
        hosts.into_iter().filter(|host| !loaded.hosts.contains_key(host)).collect();
    host_rows(session, loaded, &missing).await?;
    heads::heads(session, loaded, &wants).await?;
    // Whoever claims in the same round has not seen what it got; if that is nothing, the outlook is asked for again.
    if let Some((wanted, without)) = wants.outlook.as_ref().filter(|_| wants.claims.is_none()) {
        heads::outlook(session, call, loaded, wanted, without).await?;
    }
    records::counters(session, loaded, &wants).await?;
    records::host_counts(session, call, loaded, &wants).await?;
    records::logs(session, call, loaded, &wants).await?;
    records::notes(session, loaded, &wants).await?;
    records::note_keys(session, loaded, &wants).await?;
    loaded.asked.merge(wants);
    Ok(needed)
}

/// Locks hosts, in the order of their numbers, as all do.
pub(super) async fn lock(
    session: &Session,
    loaded: &mut Loaded,
    hosts: &BTreeSet<HostId>,
) -> Result<(), Failure> {
    let locked = session.run_all(&[ask_lock(hosts)]).await?;
    take_locked(loaded, locked.iter().flatten())
}

/// Locks hosts and, once they are locked, reads some, which are these and others.
pub(super) async fn lock_and_read(
    session: &Session,
    loaded: &mut Loaded,
    hosts: &BTreeSet<HostId>,
    read: &BTreeSet<HostId>,
) -> Result<(), Failure> {
    let read = Statement::new(HOSTS).with(host_numbers(read), Type::INT4_ARRAY);
    let answers = session.run_all(&[ask_lock(hosts), read]).await?;
    let mut answers = answers.iter();
    take_locked(loaded, answers.next().into_iter().flatten())?;
    take_hosts(session, loaded, answers.next().map_or(&[], Vec::as_slice)).await
}

fn ask_lock(hosts: &BTreeSet<HostId>) -> Statement<'static> {
    const LOCK: &str = "SELECT h.id FROM @hosts h WHERE h.id = ANY($1) ORDER BY h.id FOR UPDATE";
    Statement::new(LOCK).with(host_numbers(hosts), Type::INT4_ARRAY)
}

fn take_locked<'a>(loaded: &mut Loaded, rows: impl Iterator<Item = &'a Row>) -> Result<(), Failure> {
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

/// The collection that a host belongs to.
fn owner(call: &Call<'_>, collection: CollectionId) -> Option<CollectionId> {
    let row = call.catalog.collection_numbered(collection);
    row.filter(|row| row.spec.kind == Kind::Plain).map(|row| row.number)
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
    if hosts.is_empty() {
        return Ok(());
    }
    let rows = session.query(HOSTS, &[(&host_numbers(hosts), Type::INT4_ARRAY)]).await?;
    take_hosts(session, loaded, &rows).await
}

/// Takes in hosts that were read and not known, and reads what is under way there.
async fn take_hosts(session: &Session, loaded: &mut Loaded, rows: &[Row]) -> Result<(), Failure> {
    let mut new = BTreeSet::new();
    for row in rows {
        let host = host_id(row.try_get(0)?);
        if loaded.hosts.contains_key(&host) && !new.contains(&host) {
            continue;
        }
        if new.insert(host) {
            let row = rows::host(row)?;
            loaded.host_by.insert((row.owner, row.key.clone()), Some(host));
            loaded.hosts.insert(host, row);
            loaded.leased.insert(host, Vec::new());
            loaded.queues_of.insert(host, Vec::new());
        }
        if let Some((queue, row)) = rows::queue(row)? {
            let key = loaded.hosts.get(&host).map(|host| host.key.clone()).unwrap_or_default();
            loaded.queue_by.insert((row.collection, key), Some(queue));
            loaded.queues_of.entry(host).or_default().push(queue);
            loaded.queues.insert(queue, row);
        }
    }
    leases(session, loaded, &new).await
}

/// What is under way at hosts. That is read already where the call has all of it in its hands.
async fn leases(session: &Session, loaded: &mut Loaded, hosts: &BTreeSet<HostId>) -> Result<(), Failure> {
    const LEASED: &str =
        "SELECT e.id, e.queue, e.leased_until FROM @entries e WHERE e.queue = ANY($1) AND e.state = 1";
    let mut held: BTreeMap<QueueId, Vec<Lease>> = BTreeMap::new();
    for (entry, row) in &loaded.entries {
        let row = row.as_ref().filter(|_| !loaded.outdated.contains(entry));
        if let Some((row, lease)) = row.and_then(|row| Some((row, row.lease?))) {
            held.entry(row.standing.queue).or_default().push(lease);
        }
    }
    let mut unread = Vec::new();
    for host in hosts {
        for queue in loaded.queues_of.get(host).into_iter().flatten() {
            let count = loaded.queues.get(queue).map_or(0, |row| row.counts[State::Leased as usize]);
            let held = held.remove(queue).unwrap_or_default();
            if count > 0 && (held.len() as u64 != count || !loaded.locked.contains(host)) {
                unread.push(*queue);
            } else if count > 0 {
                let leases = held.into_iter().map(|lease| (lease.entry, *queue, lease.until));
                loaded.leased.entry(*host).or_default().extend(leases);
            }
        }
    }
    if unread.is_empty() {
        return Ok(());
    }
    for row in session.query(LEASED, &[(&queue_numbers(&unread), Type::INT4_ARRAY)]).await? {
        let queue = queue_id(row.try_get(1)?);
        let lease = (entry_id(row.try_get(0)?), queue, moment_of_millis(row.try_get(2)?));
        if let Some(host) = loaded.queues.get(&queue).map(|row| row.host) {
            loaded.leased.entry(host).or_default().push(lease);
        }
    }
    Ok(())
}
