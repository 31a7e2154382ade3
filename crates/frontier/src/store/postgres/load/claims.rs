//! Claiming hosts and their leases.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::super::call::Call;
use super::super::failure::Failure;
use super::super::loaded::{Claims, EntryRow, Loaded};
use super::super::rows::{self, askable, host_id, int, millis, queue_id, standing, text};
use super::super::session::{Session, Statement};
use super::super::wants::Wants;
use super::heads::{first_ready, take_ready};
use super::lookups::hosts_of_entries;
use super::{Opened, hosts_and_queues, take_hosts};
use crate::engine::Wanted;
use crate::entry::{EntryId, HostId, Lease, QueueId};
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
            WHERE e.leased_until <= $1 ORDER BY e.leased_until LIMIT $2) x";
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

/// The first queue of each collection that has one.
macro_rules! first_of_each {
    ($collections:literal) => {
        concat!(
            "unnest(",
            $collections,
            "::int4[]) c (collection) CROSS JOIN LATERAL (SELECT f.place, f.id FROM @queues f \
                WHERE f.place < $1 AND f.collection = c.collection ORDER BY f.place, f.id LIMIT 1) f"
        )
    };
}

/// The first queues of some collections, which may have few of those that there are. So many that come first in line are of
/// so many collections at most, whose own first queues come first: no others are looked into, however many there are. What
/// other collections have in line is not come across.
macro_rules! first_of_some {
    ($collections:literal, $depth:literal) => {
        concat!(
            "(SELECT c.collection FROM ",
            first_of_each!($collections),
            " ORDER BY f.place, f.id LIMIT ",
            $depth,
            ") c CROSS JOIN LATERAL (SELECT f.id FROM @queues f \
                WHERE f.place < $1 AND f.collection = c.collection ORDER BY f.place, f.id LIMIT ",
            $depth,
            ") f CROSS JOIN "
        )
    };
}

/// Notes queues and hosts that are claimed, for what is asked next in the same trip.
macro_rules! noted {
    ($claim:expr) => {
        concat!(
            "WITH c AS (",
            $claim,
            ") SELECT array_agg(c.id), array_agg(c.host), array_agg(c.place), \
                set_config('forager.queues', coalesce(array_agg(c.id), '{}')::text, true), \
                set_config('forager.hosts', coalesce(array_agg(c.host), '{}')::text, true) FROM c"
        )
    };
}

/// The hosts that were noted, with their queues.
const NOTED_HOSTS: &str = hosts_and_queues!("current_setting('forager.hosts')::int4[]");

/// Queues to claim in the order of the line, passing over those that others are at.
pub(super) struct Claim<'a> {
    open_before: i64,
    collections: Vec<i32>,
    key: Option<&'a str>,
    /// How many queues.
    count: usize,
    /// How many entries of each are read.
    ready: usize,
    from: From,
}

/// Where claims are looked for. Each case has a statement of its own, for one with a condition that may not apply goes
/// through all there is.
#[derive(Clone, Copy, Debug)]
enum From {
    Key,
    One,
    /// The first so many queues of so many collections.
    Some(i64),
    All,
}

impl<'a> Claim<'a> {
    /// None where there is nothing to claim from.
    pub(super) fn new(call: &Call<'_>, wanted: &'a Wanted, count: usize) -> Option<Self> {
        let from = match wanted.collections.len() {
            0 => return None,
            _ if wanted.key.is_some() => From::Key,
            1 => From::One,
            all if all == call.catalog.rows().collections.len() => From::All,
            _ => From::Some(i64::try_from(count).unwrap_or(i64::MAX)),
        };
        Some(Self {
            open_before: call.open_before,
            collections: wanted.collections.iter().map(|collection| int(collection.0)).collect(),
            key: wanted.key.as_deref(),
            count,
            // And one more, which tells whether something is left.
            ready: wanted.per_host.saturating_add(1).clamp(2, MOST_READY),
            from,
        })
    }

    /// What claims them, and reads them once they are: their hosts, and what comes first in each.
    pub(super) fn ask(&self) -> Vec<Statement<'static>> {
        const READY: &str = first_ready!("current_setting('forager.queues')::int4[]", "$1");
        let ready = i64::try_from(self.ready).unwrap_or(i64::MAX);
        vec![self.claim(), Statement::new(NOTED_HOSTS), Statement::new(READY).with(ready, Type::INT8)]
    }

    fn claim(&self) -> Statement<'static> {
        const OF_KEY: &str =
            noted!(claim!("", " AND q.collection = ANY($3) AND h.key = $4", "$2", " SKIP LOCKED"));
        const OF_ONE: &str = noted!(claim!("", " AND q.collection = $3", "$2", " SKIP LOCKED"));
        const OF_SOME: &str =
            noted!(claim!(first_of_some!("$3", "$4"), " AND q.id = f.id", "$2", " SKIP LOCKED"));
        const OF_ALL: &str = noted!(claim!("", "", "$2", " SKIP LOCKED"));
        let limit = i64::try_from(self.count).unwrap_or(i64::MAX);
        let of = |text| Statement::new(text).with(self.open_before, Type::INT8).with(limit, Type::INT8);
        let all = |text| of(text).with(self.collections.clone(), Type::INT4_ARRAY);
        match self.from {
            From::Key => all(OF_KEY).with(askable(self.key.unwrap_or_default()).to_owned(), Type::TEXT),
            From::One => of(OF_ONE).with(self.collections.first().copied(), Type::INT4),
            From::Some(depth) => all(OF_SOME).with(depth, Type::INT8),
            From::All => of(OF_ALL),
        }
    }

    /// The same claim, deeper into collections and into more of them, if others are at the first queues and that found too few.
    async fn deeper(&self, session: &Session, found: usize) -> Result<Option<Self>, Failure> {
        const ARE_MORE: &str = concat!(
            "(SELECT 1 FROM ",
            first_of_each!("$2"),
            " OFFSET $3 LIMIT 1) UNION ALL \
             (SELECT 1 FROM unnest($2::int4[]) c (collection) CROSS JOIN LATERAL (\
                SELECT 1 FROM @queues q WHERE q.place < $1 AND q.collection = c.collection \
                ORDER BY q.place, q.id OFFSET $3 LIMIT 1) m LIMIT 1) LIMIT 1"
        );
        let From::Some(depth) = self.from else { return Ok(None) };
        let beyond = [
            (&self.open_before as _, Type::INT8),
            (&self.collections as _, Type::INT4_ARRAY),
            (&depth as _, Type::INT8),
        ];
        if found >= self.count || session.query(ARE_MORE, &beyond).await?.is_empty() {
            return Ok(None);
        }
        let from = From::Some(depth.saturating_mul(8));
        Ok(Some(Self { collections: self.collections.clone(), from, ..*self }))
    }
}

/// Claims queues, unless that was done as the call began.
pub(super) async fn claim(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    (wanted, count): (&Wanted, usize),
    opened: Option<Opened>,
) -> Result<(), Failure> {
    let Some(mut claim) = Claim::new(call, wanted, count) else {
        loaded.claims = Some(Claims { asked: count, last: None, is_all: true });
        return Ok(());
    };
    if call.waits_for_others && loaded.locked.is_empty() {
        wait(session, &claim).await?;
    }
    let mut answers = match opened {
        Some(answers) => answers,
        None => session.run_all(&claim.ask()).await?,
    };
    loop {
        let [claimed, hosts, ready] = three(answers);
        let found = take_claimed(session, loaded, &claim, (&claimed, &hosts, &ready)).await?;
        let Some(deeper) = claim.deeper(session, found).await? else { return Ok(()) };
        claim = deeper;
        answers = session.run_all(&claim.ask()).await?;
    }
}

/// The answers of three statements.
fn three(answers: Vec<Vec<Row>>) -> [Vec<Row>; 3] {
    let mut answers = answers.into_iter();
    std::array::from_fn(|_| answers.next().unwrap_or_default())
}

/// Takes in what was claimed; says how many queues that are.
async fn take_claimed(
    session: &Session,
    loaded: &mut Loaded,
    claim: &Claim<'_>,
    (claimed, hosts, ready): (&[Row], &[Row], &[Row]),
) -> Result<usize, Failure> {
    let [mut queues, mut of_hosts]: [Vec<i32>; 2] = Default::default();
    let mut places: Vec<i64> = Vec::new();
    for row in claimed {
        queues = row.try_get::<_, Option<_>>(0)?.unwrap_or_default();
        of_hosts = row.try_get::<_, Option<_>>(1)?.unwrap_or_default();
        places = row.try_get::<_, Option<_>>(2)?.unwrap_or_default();
    }
    let queues: Vec<QueueId> = queues.into_iter().map(queue_id).collect();
    let places = places.into_iter().map(|place| u64::try_from(place).unwrap_or_default());
    let last = places.zip(queues.iter().copied()).max();
    loaded.claims = Some(Claims { asked: claim.count, last, is_all: queues.len() < claim.count });
    for host in of_hosts.into_iter().map(host_id) {
        loaded.locked.insert(host);
        // What was read of it before may be old.
        forget(loaded, host);
    }
    take_hosts(session, loaded, hosts).await?;
    take_ready(loaded, &queues, claim.ready, ready)?;
    Ok(queues.len())
}

/// Waits until one of those is through who hold what can be claimed; nothing is held meanwhile that they could be
/// waiting for.
async fn wait(session: &Session, claim: &Claim<'_>) -> Result<(), Failure> {
    const OF_KEY: &str = claim!("", " AND q.collection = ANY($2) AND h.key = $3", "1", "");
    const OF_SOME: &str = claim!(first_of_some!("$2", "1"), " AND q.id = f.id", "1", "");
    let [open, all] = [(&claim.open_before as _, Type::INT8), (&claim.collections as _, Type::INT4_ARRAY)];
    match claim.key {
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
    let queues: FxHashSet<QueueId> = loaded.queues_of.remove(&host).into_iter().flatten().collect();
    loaded.queues.retain(|queue, _| !queues.contains(queue));
    let is_its =
        |row: &Option<EntryRow>| row.as_ref().is_some_and(|row| queues.contains(&row.standing.queue));
    loaded.entries.retain(|_, row| !is_its(row));
    loaded.leased.remove(&host);
}

/// What locks the hosts of leases, and reads the entries and hosts once they are. Hosts up to the last one that is locked
/// already are not waited for.
pub(super) fn ask_tokens(call: &Call<'_>, wants: &Wants, last: Option<HostId>) -> Vec<Statement<'static>> {
    const LOCK: &str = "WITH w AS MATERIALIZED (SELECT q.host FROM @entries e JOIN @queues q ON q.id = e.queue \
            WHERE e.token = ANY($1)), \
        l AS (SELECT h.id FROM @hosts h WHERE h.id = ANY(ARRAY(SELECT w.host FROM w)) AND h.id > $2 ORDER BY h.id FOR UPDATE) \
        SELECT array_agg(l.id), \
            set_config('forager.hosts', (SELECT coalesce(array_agg(w.host), '{}') FROM w)::text, true) FROM l";
    const LEASED: &str =
        concat!("SELECT ", standing!(), ", ", text!(), " FROM @entries e WHERE e.token = ANY($1)");
    let tokens: Vec<i64> = wants.tokens.iter().filter_map(|token| i64::try_from(token.0).ok()).collect();
    // Who is alone has all of them.
    let last = if call.is_alone { i32::MAX } else { last.map_or(-1, |last| int(last.0)) };
    vec![
        Statement::new(LOCK).with(tokens.clone(), Type::INT8_ARRAY).with(last, Type::INT4),
        Statement::new(NOTED_HOSTS),
        Statement::new(LEASED).with(tokens, Type::INT8_ARRAY),
    ]
}

/// Entries by their leases; their hosts are locked.
pub(super) async fn tokens(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    wants: &Wants,
    opened: Option<Opened>,
) -> Result<(), Failure> {
    let last = loaded.locked.iter().max().copied();
    let answers = match opened {
        Some(answers) => answers,
        None => session.run_all(&ask_tokens(call, wants, last)).await?,
    };
    let [locked, hosts, leased] = three(answers);
    for row in &locked {
        let locked = row.try_get::<_, Option<Vec<i32>>>(0)?.unwrap_or_default();
        loaded.locked.extend(locked.into_iter().map(host_id));
    }
    loaded.tokens.extend(wants.tokens.iter().map(|token| (*token, None)));
    let mut found = Vec::new();
    for row in &leased {
        let (id, row) = rows::entry(row, true)?;
        if let Some(lease) = row.lease {
            loaded.tokens.insert(lease.token, Some(id));
        }
        found.push((id, row.standing.queue));
        loaded.entries.insert(id, Some(row));
    }
    take_hosts(session, loaded, &hosts).await?;
    if call.is_alone {
        return Ok(());
    }
    let is_held =
        |queue: &QueueId| loaded.queues.get(queue).is_some_and(|row| loaded.locked.contains(&row.host));
    let open: Vec<EntryId> = found.iter().filter(|(_, queue)| !is_held(queue)).map(|(id, _)| *id).collect();
    if open.is_empty() {
        return Ok(());
    }
    // One with a lower number is waited for from the start, the next time.
    let mut hosts = BTreeSet::new();
    hosts_of_entries(session, &open, &mut hosts).await?;
    Err(Failure::NotLocked(hosts))
}
