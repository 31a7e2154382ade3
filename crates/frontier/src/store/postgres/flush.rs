//! Writing what a call changed, in a constant number of statements.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::types::Type;

use super::loaded::{Changes, EntryRow};
use super::rows::{self, how_number, int, millis, owner_number, second};
use super::session::Session;
use super::view::{View, key_of};
use super::{Call, Failure};
use crate::catalog::{Catalog, Rows};
use crate::engine::Tx as _;
use crate::entry::{CollectionId, EntryId, HostId, QueueId};
use crate::verbs::Tally;

/// What came of writing.
pub(super) struct Written {
    /// Whether somebody who waits may find something earlier than he thought.
    pub(super) is_news: bool,
    /// The number of the transaction, by which its fate can be asked for.
    pub(super) transaction: String,
}

/// Writes what the call changed, and works out anew what hangs on it.
pub(super) async fn flush(
    session: &Session,
    call: &Call<'_>,
    view: &View,
    woken: &BTreeSet<QueueId>,
) -> Result<Written, Failure> {
    let changes = &view.changes;
    ensure_locked(call, view)?;
    if let Some(catalog) = &changes.catalog {
        set_catalog(session, &view.catalog, catalog).await?;
    }
    new_hosts(session, view).await?;
    new_queues(session, changes).await?;
    remove_entries(session, changes).await?;
    new_entries(session, view).await?;
    change_entries(session, view).await?;
    change_hosts(session, changes).await?;
    let queues = queues_to_refresh(view, woken);
    let mut is_news = changes.catalog.is_some() || !changes.new_entries.is_empty();
    is_news |= refresh(session, view, &queues).await?;
    notes(session, changes).await?;
    logs(session, changes).await?;
    clear(session, changes).await?;
    count(session, view).await?;
    const TRANSACTION: &str = "SELECT pg_current_xact_id()::text";
    let rows = session.query(TRANSACTION, &[]).await?;
    let transaction = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    Ok(Written { is_news, transaction })
}

/// The hosts whose rows or entries are changed.
fn touched(view: &View) -> BTreeSet<HostId> {
    let changes = &view.changes;
    let mut touched: BTreeSet<HostId> = changes.hosts.keys().copied().collect();
    touched.extend(changes.new_queues.values().map(|queue| queue.host));
    touched.extend(touched_queues(view).into_iter().map(|queue| view.queue_parts(queue).1));
    touched
}

/// The queues whose entries are changed.
fn touched_queues(view: &View) -> BTreeSet<QueueId> {
    let mut queues = BTreeSet::new();
    for (entry, row) in &view.changes.entries {
        queues.extend(row.as_ref().map(|row| row.standing.queue));
        queues.extend(before(view, *entry).map(|row| row.standing.queue));
    }
    queues
}

fn before(view: &View, entry: EntryId) -> Option<&EntryRow> {
    view.loaded.entries.get(&entry)?.as_ref()
}

/// Nothing is changed that somebody else could be changing.
fn ensure_locked(call: &Call<'_>, view: &View) -> Result<(), Failure> {
    if call.is_alone {
        return Ok(());
    }
    if view.changes.catalog.is_some() || !view.changes.cleared.is_empty() {
        return Err(Failure::NotAlone);
    }
    let mut open = touched(view);
    open.retain(|host| !view.loaded.locked.contains(host) && !view.changes.new_hosts.contains(host));
    if open.is_empty() { Ok(()) } else { Err(Failure::NotLocked(open)) }
}

/// Replaces the rows of the catalog that are different.
async fn set_catalog(session: &Session, before: &Catalog, after: &Catalog) -> Result<(), Failure> {
    const PUT: &str = "INSERT INTO @catalog_rows (kind, number, body) \
        SELECT k, n, b::json FROM unnest($1::int2[], $2::int4[], $3::text[]) w (k, n, b) \
        ON CONFLICT (kind, number) DO UPDATE SET body = excluded.body";
    const REMOVE: &str = "DELETE FROM @catalog_rows c USING unnest($1::int2[], $2::int4[]) w (k, n) \
        WHERE c.kind = w.k AND c.number = w.n";
    const VERSION: &str = "UPDATE @catalog SET version = version + 1, next_collection = $1";
    let (old, new) = (pieces(before.rows())?, pieces(after.rows())?);
    let changed: Vec<_> = new.iter().filter(|(place, body)| old.get(*place) != Some(*body)).collect();
    let kinds: Vec<i16> = changed.iter().map(|((kind, _), _)| *kind).collect();
    let numbers: Vec<i32> = changed.iter().map(|((_, number), _)| *number).collect();
    let bodies: Vec<&str> = changed.iter().map(|(_, body)| body.as_str()).collect();
    let placed = [(&kinds as _, Type::INT2_ARRAY), (&numbers as _, Type::INT4_ARRAY)];
    session.execute(PUT, &[placed[0].clone(), placed[1].clone(), (&bodies, Type::TEXT_ARRAY)]).await?;
    let gone: Vec<_> = old.keys().filter(|place| !new.contains_key(*place)).collect();
    let kinds: Vec<i16> = gone.iter().map(|(kind, _)| *kind).collect();
    let numbers: Vec<i32> = gone.iter().map(|(_, number)| *number).collect();
    session.execute(REMOVE, &[(&kinds, Type::INT2_ARRAY), (&numbers, Type::INT4_ARRAY)]).await?;
    let next = int(after.rows().next_collection);
    session.execute(VERSION, &[(&next, Type::INT4)]).await?;
    Ok(())
}

/// The rows of a catalog by kind and number.
fn pieces(rows: &Rows) -> Result<BTreeMap<(i16, i32), String>, Failure> {
    let text = |body: serde_json::Result<String>| {
        body.map_err(|cause| Failure::Damaged(format!("the catalog cannot be written: {cause}")))
    };
    let mut pieces = BTreeMap::new();
    for row in &rows.collections {
        pieces.insert((0, int(row.number.0)), text(serde_json::to_string(row))?);
    }
    for (place, profile) in rows.profiles.iter().enumerate() {
        pieces.insert((1, i32::try_from(place).unwrap_or(i32::MAX)), text(serde_json::to_string(profile))?);
    }
    for row in &rows.seeds {
        pieces.insert((2, int(row.number.0)), text(serde_json::to_string(row))?);
    }
    Ok(pieces)
}

/// New hosts, in the order of their keys, as all add them.
async fn new_hosts(session: &Session, view: &View) -> Result<(), Failure> {
    const ADD: &str = "INSERT INTO @hosts (id, key, owner, state) \
        SELECT i, k, o, s::json FROM unnest($1::int4[], $2::text[], $3::int4[], $4::text[]) w (i, k, o, s) \
        ORDER BY k, o";
    if view.changes.new_hosts.is_empty() {
        return Ok(());
    }
    let hosts: Vec<_> = view.changes.new_hosts.iter().map(|host| (host, view.host_row(*host))).collect();
    let numbers: Vec<i32> = hosts.iter().map(|(host, _)| int(host.0)).collect();
    let keys: Vec<&str> = hosts.iter().map(|(_, row)| row.key.as_str()).collect();
    let owners: Vec<i32> = hosts.iter().map(|(_, row)| owner_number(row.owner)).collect();
    let states = hosts.iter().map(|(_, row)| host_state(&row.state)).collect::<Result<Vec<String>, _>>()?;
    session
        .execute(
            ADD,
            &[
                (&numbers, Type::INT4_ARRAY),
                (&keys, Type::TEXT_ARRAY),
                (&owners, Type::INT4_ARRAY),
                (&states, Type::TEXT_ARRAY),
            ],
        )
        .await?;
    Ok(())
}

fn host_state(host: &crate::host::Host) -> Result<String, Failure> {
    serde_json::to_string(host)
        .map_err(|cause| Failure::Damaged(format!("a host cannot be written: {cause}")))
}

async fn new_queues(session: &Session, changes: &Changes) -> Result<(), Failure> {
    const ADD: &str = "INSERT INTO @queues (id, collection, host) \
        SELECT * FROM unnest($1::int4[], $2::int4[], $3::int4[])";
    if changes.new_queues.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i32> = changes.new_queues.keys().map(|queue| int(queue.0)).collect();
    let collections: Vec<i32> = changes.new_queues.values().map(|row| int(row.collection.0)).collect();
    let hosts: Vec<i32> = changes.new_queues.values().map(|row| int(row.host.0)).collect();
    let params = [
        (&numbers as _, Type::INT4_ARRAY),
        (&collections as _, Type::INT4_ARRAY),
        (&hosts as _, Type::INT4_ARRAY),
    ];
    session.execute(ADD, &params).await?;
    Ok(())
}

async fn remove_entries(session: &Session, changes: &Changes) -> Result<(), Failure> {
    const REMOVE: &str = "DELETE FROM @entries e WHERE e.id = ANY($1)";
    let gone: Vec<i32> =
        changes.entries.iter().filter(|(_, row)| row.is_none()).map(|(entry, _)| int(entry.0)).collect();
    if !gone.is_empty() {
        session.execute(REMOVE, &[(&gone, Type::INT4_ARRAY)]).await?;
    }
    Ok(())
}

/// Entries as columns.
#[derive(Default)]
struct Columns<'a> {
    id: Vec<i32>,
    queue: Vec<i32>,
    key: Vec<[u8; 16]>,
    url: Vec<&'a str>,
    identity: Vec<Option<&'a str>>,
    state: Vec<i16>,
    ready: Vec<bool>,
    priority: Vec<i32>,
    due: Vec<i64>,
    tie: Vec<i64>,
    seed: Vec<Option<i32>>,
    depth: Vec<i32>,
    hops: Vec<i16>,
    last_fetch: Vec<Option<i64>>,
    risk: Vec<i16>,
    is_hub: Vec<bool>,
    harvest: Vec<i16>,
    step: Vec<Option<i64>>,
    token: Vec<Option<i64>>,
    leased_from: Vec<Option<i64>>,
    leased_until: Vec<Option<i64>>,
    created: Vec<i64>,
    how: Vec<i16>,
    source: Vec<Option<i32>>,
    length: Vec<Option<i32>>,
    tries: Vec<i32>,
    record: Vec<Option<String>>,
    /// Whether what was learned is written too.
    has_text: Vec<bool>,
}

impl<'a> Columns<'a> {
    fn push(&mut self, view: &View, id: EntryId, row: &'a EntryRow) -> Result<(), Failure> {
        let standing = &row.standing;
        self.id.push(int(id.0));
        self.queue.push(int(standing.queue.0));
        self.state.push(standing.state as i16);
        self.ready.push(view.is_ready(standing));
        self.priority.push(i32::from(standing.priority.thousandths()));
        self.due.push(second(standing.due));
        self.tie.push(if standing.by_due { second(standing.due) } else { -1 });
        self.seed.push(standing.seed.map(|seed| int(seed.0)));
        self.depth.push(int(standing.place.depth));
        self.hops.push(i16::try_from(standing.place.hops_off_domain).unwrap_or(i16::MAX));
        self.last_fetch.push(standing.last_fetch.map(second));
        self.risk.push(standing.risk as i16);
        self.is_hub.push(standing.is_hub);
        self.harvest.push(i16::from(standing.harvest));
        self.step.push(standing.step.map(millis));
        self.token.push(row.lease.map(|lease| i64::try_from(lease.token.0).unwrap_or(i64::MAX)));
        self.leased_from.push(row.lease.map(|lease| millis(lease.from)));
        self.leased_until.push(row.lease.map(|lease| millis(lease.until)));
        self.push_text(row)
    }

    fn push_text(&mut self, row: &'a EntryRow) -> Result<(), Failure> {
        let text = row.text.as_ref();
        let record = text.map(|text| &text.record);
        self.has_text.push(text.is_some());
        self.key.push(text.map(|text| key_of(&text.identity)).unwrap_or_default());
        self.url.push(text.map(|text| &*text.url).unwrap_or_default());
        self.identity.push(text.filter(|text| text.identity != text.url).map(|text| &*text.identity));
        self.created.push(record.map(|record| second(record.origin.created)).unwrap_or_default());
        self.how.push(record.map(|record| how_number(record.origin.how)).unwrap_or_default());
        self.source.push(record.and_then(|record| record.origin.source).map(|source| int(source.0)));
        self.length.push(record.and_then(|record| record.length).map(int));
        let tries = record.map(|record| record.errors.saturating_add(record.abandoned));
        self.tries.push(tries.map(|tries| i32::try_from(tries).unwrap_or(i32::MAX)).unwrap_or_default());
        self.record.push(record.map(rows::kept_record).transpose()?.flatten());
        Ok(())
    }
}

async fn new_entries(session: &Session, view: &View) -> Result<(), Failure> {
    const ADD: &str = "INSERT INTO @entries (id, queue, key, url, identity, state, ready, priority, due, tie, seed, \
            depth, hops, last_fetch, risk, is_hub, harvest, step, created, how, source, length, tries, record) \
        SELECT w.*, r::json FROM unnest($1::int4[], $2::int4[], $3::bytea[], $4::text[], $5::text[], $6::int2[], \
            $7::bool[], $8::int4[], $9::int8[], $10::int8[], $11::int4[], $12::int4[], $13::int2[], $14::int8[], \
            $15::int2[], $16::bool[], $17::int2[], $18::int8[], $19::int8[], $20::int2[], $21::int4[], $22::int4[], \
            $23::int4[]) WITH ORDINALITY w0 (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r0, s, t, u, v, x, place) \
        CROSS JOIN LATERAL (SELECT a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r0, s, t, u, v, x) w \
        CROSS JOIN LATERAL (SELECT ($24::text[])[place] AS r) y";
    let mut columns = Columns::default();
    for entry in &view.changes.new_entries {
        if let Some(Some(row)) = view.changes.entries.get(entry) {
            columns.push(view, *entry, row)?;
        }
    }
    if columns.id.is_empty() {
        return Ok(());
    }
    let keys: Vec<&[u8]> = columns.key.iter().map(<[u8; 16]>::as_slice).collect();
    session
        .execute(
            ADD,
            &[
                (&columns.id, Type::INT4_ARRAY),
                (&columns.queue, Type::INT4_ARRAY),
                (&keys, Type::BYTEA_ARRAY),
                (&columns.url, Type::TEXT_ARRAY),
                (&columns.identity, Type::TEXT_ARRAY),
                (&columns.state, Type::INT2_ARRAY),
                (&columns.ready, Type::BOOL_ARRAY),
                (&columns.priority, Type::INT4_ARRAY),
                (&columns.due, Type::INT8_ARRAY),
                (&columns.tie, Type::INT8_ARRAY),
                (&columns.seed, Type::INT4_ARRAY),
                (&columns.depth, Type::INT4_ARRAY),
                (&columns.hops, Type::INT2_ARRAY),
                (&columns.last_fetch, Type::INT8_ARRAY),
                (&columns.risk, Type::INT2_ARRAY),
                (&columns.is_hub, Type::BOOL_ARRAY),
                (&columns.harvest, Type::INT2_ARRAY),
                (&columns.step, Type::INT8_ARRAY),
                (&columns.created, Type::INT8_ARRAY),
                (&columns.how, Type::INT2_ARRAY),
                (&columns.source, Type::INT4_ARRAY),
                (&columns.length, Type::INT4_ARRAY),
                (&columns.tries, Type::INT4_ARRAY),
                (&columns.record, Type::TEXT_ARRAY),
            ],
        )
        .await?;
    Ok(())
}

async fn change_entries(session: &Session, view: &View) -> Result<(), Failure> {
    const CHANGE: &str = "UPDATE @entries e SET state = w.state, ready = w.ready, priority = w.priority, due = w.due, \
            tie = w.tie, seed = w.seed, depth = w.depth, hops = w.hops, last_fetch = w.last_fetch, risk = w.risk, \
            is_hub = w.is_hub, harvest = w.harvest, step = w.step, token = w.token, leased_from = w.leased_from, \
            leased_until = w.leased_until, \
            length = CASE WHEN w.has_text THEN w.length ELSE e.length END, \
            tries = CASE WHEN w.has_text THEN w.tries ELSE e.tries END, \
            record = CASE WHEN w.has_text THEN w.record::json ELSE e.record END \
        FROM unnest($1::int4[], $2::int2[], $3::bool[], $4::int4[], $5::int8[], $6::int8[], $7::int4[], $8::int4[], \
            $9::int2[], $10::int8[], $11::int2[], $12::bool[], $13::int2[], $14::int8[], $15::int8[], $16::int8[], \
            $17::int8[], $18::int4[], $19::int4[], $20::text[], $21::bool[]) \
            w (id, state, ready, priority, due, tie, seed, depth, hops, last_fetch, risk, is_hub, harvest, step, \
               token, leased_from, leased_until, length, tries, record, has_text) \
        WHERE e.id = w.id";
    let mut columns = Columns::default();
    for (entry, row) in &view.changes.entries {
        if let (Some(row), false) = (row, view.changes.new_entries.contains(entry)) {
            columns.push(view, *entry, row)?;
        }
    }
    if columns.id.is_empty() {
        return Ok(());
    }
    session
        .execute(
            CHANGE,
            &[
                (&columns.id, Type::INT4_ARRAY),
                (&columns.state, Type::INT2_ARRAY),
                (&columns.ready, Type::BOOL_ARRAY),
                (&columns.priority, Type::INT4_ARRAY),
                (&columns.due, Type::INT8_ARRAY),
                (&columns.tie, Type::INT8_ARRAY),
                (&columns.seed, Type::INT4_ARRAY),
                (&columns.depth, Type::INT4_ARRAY),
                (&columns.hops, Type::INT2_ARRAY),
                (&columns.last_fetch, Type::INT8_ARRAY),
                (&columns.risk, Type::INT2_ARRAY),
                (&columns.is_hub, Type::BOOL_ARRAY),
                (&columns.harvest, Type::INT2_ARRAY),
                (&columns.step, Type::INT8_ARRAY),
                (&columns.token, Type::INT8_ARRAY),
                (&columns.leased_from, Type::INT8_ARRAY),
                (&columns.leased_until, Type::INT8_ARRAY),
                (&columns.length, Type::INT4_ARRAY),
                (&columns.tries, Type::INT4_ARRAY),
                (&columns.record, Type::TEXT_ARRAY),
                (&columns.has_text, Type::BOOL_ARRAY),
            ],
        )
        .await?;
    Ok(())
}

async fn change_hosts(session: &Session, changes: &Changes) -> Result<(), Failure> {
    const CHANGE: &str = "UPDATE @hosts h SET state = w.state::json \
        FROM unnest($1::int4[], $2::text[]) w (id, state) WHERE h.id = w.id";
    let changed: Vec<_> =
        changes.hosts.iter().filter(|(host, _)| !changes.new_hosts.contains(*host)).collect();
    if changed.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i32> = changed.iter().map(|(host, _)| int(host.0)).collect();
    let states = changed.iter().map(|(_, row)| host_state(&row.state)).collect::<Result<Vec<String>, _>>()?;
    session.execute(CHANGE, &[(&numbers, Type::INT4_ARRAY), (&states, Type::TEXT_ARRAY)]).await?;
    Ok(())
}

/// The queues for which something is worked out anew: those of all hosts that are touched.
fn queues_to_refresh(view: &View, woken: &BTreeSet<QueueId>) -> BTreeSet<QueueId> {
    let hosts = touched(view);
    let read = view.loaded.queues.iter().filter(|(_, row)| hosts.contains(&row.host));
    let mut queues: BTreeSet<QueueId> = read.map(|(queue, _)| *queue).collect();
    queues.extend(view.changes.new_queues.keys());
    queues.extend(woken);
    queues
}

/// Works out when queues can be claimed. Says whether one can be earlier than before.
async fn refresh(session: &Session, view: &View, queues: &BTreeSet<QueueId>) -> Result<bool, Failure> {
    const REFRESH: &str = "UPDATE @queues q SET turn = n.turn, queued = n.queued, leased = n.leased, done = n.done, \
            failed = n.failed, ready = n.ready, claimable = n.ready AND n.opens <= $8, at = n.at, \
            first_due = n.first_due, \
            wake_at = least(CASE WHEN n.ready AND n.opens <= $8 THEN NULL ELSE n.at END, n.first_due * 1000, n.step) \
        FROM (SELECT w.id, w.turn, w.opens, o.at AS old_at, o.queued + w.queued AS queued, o.leased + w.leased AS leased, \
                o.done + w.done AS done, o.failed + w.failed AS failed, s.ready, s.first_due, s.step, \
                CASE WHEN s.ready THEN w.opens WHEN s.first_due IS NOT NULL THEN greatest(w.opens, s.first_due * 1000) END AS at \
            FROM unnest($1::int4[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[]) \
                w (id, turn, opens, queued, leased, done, failed) \
            JOIN @queues o ON o.id = w.id \
            CROSS JOIN LATERAL (SELECT \
                EXISTS (SELECT 1 FROM @entries e WHERE e.queue = w.id AND e.ready) AS ready, \
                (SELECT min(e.due) FROM @entries e WHERE e.queue = w.id AND e.state = 0 AND NOT e.ready) AS first_due, \
                (SELECT min(e.step) FROM @entries e WHERE e.queue = w.id AND e.state = 0 AND e.step IS NOT NULL) AS step) s) n \
        WHERE q.id = n.id RETURNING coalesce(n.at < n.old_at, n.at IS NOT NULL AND n.old_at IS NULL)";
    if queues.is_empty() {
        return Ok(false);
    }
    let deltas = deltas(view);
    let delta = |queue: &QueueId, state: usize| deltas.get(queue).map_or(0, |delta| delta[state]);
    let numbers: Vec<i32> = queues.iter().map(|queue| int(queue.0)).collect();
    let turns: Vec<i64> = queues
        .iter()
        .map(|queue| {
            let (collection, host) = view.queue_parts(*queue);
            i64::try_from(view.host(host).turn(collection)).unwrap_or(i64::MAX)
        })
        .collect();
    let opens: Vec<i64> = queues.iter().map(|queue| millis(view.opens(*queue).at)).collect();
    let [queued, leased, done, failed] =
        [0, 1, 2, 3].map(|state| queues.iter().map(|queue| delta(queue, state)).collect::<Vec<i64>>());
    let now = millis(view.now);
    let rows = session
        .query(
            REFRESH,
            &[
                (&numbers, Type::INT4_ARRAY),
                (&turns, Type::INT8_ARRAY),
                (&opens, Type::INT8_ARRAY),
                (&queued, Type::INT8_ARRAY),
                (&leased, Type::INT8_ARRAY),
                (&done, Type::INT8_ARRAY),
                (&failed, Type::INT8_ARRAY),
                (&now, Type::INT8),
            ],
        )
        .await?;
    for row in rows {
        if row.try_get(0)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How many entries of each state a queue has gained or lost.
fn deltas(view: &View) -> BTreeMap<QueueId, [i64; 4]> {
    let mut deltas: BTreeMap<QueueId, [i64; 4]> = BTreeMap::new();
    for (entry, row) in &view.changes.entries {
        if let Some(row) = before(view, *entry) {
            deltas.entry(row.standing.queue).or_default()[row.standing.state as usize] -= 1;
        }
        if let Some(row) = row {
            deltas.entry(row.standing.queue).or_default()[row.standing.state as usize] += 1;
        }
    }
    deltas
}

async fn notes(session: &Session, changes: &Changes) -> Result<(), Failure> {
    const KEEP: &str = "INSERT INTO @notes (hash, key, value) \
        SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) w (h, k, v) ORDER BY h \
        ON CONFLICT (hash) DO UPDATE SET value = excluded.value";
    const FORGET: &str = "DELETE FROM @notes n WHERE n.hash = ANY($1)";
    if changes.notes.is_empty() {
        return Ok(());
    }
    let kept: Vec<_> = changes.notes.iter().filter_map(|(key, value)| Some((key, value.as_ref()?))).collect();
    let hashes: Vec<[u8; 16]> = kept.iter().map(|(key, _)| key_of(key)).collect();
    let slices: Vec<&[u8]> = hashes.iter().map(<[u8; 16]>::as_slice).collect();
    let keys: Vec<&[u8]> = kept.iter().map(|(key, _)| key.as_bytes()).collect();
    let values: Vec<&[u8]> = kept.iter().map(|(_, value)| value.as_slice()).collect();
    let params = [
        (&slices as _, Type::BYTEA_ARRAY),
        (&keys as _, Type::BYTEA_ARRAY),
        (&values as _, Type::BYTEA_ARRAY),
    ];
    session.execute(KEEP, &params).await?;
    let gone = changes.notes.iter().filter(|(_, value)| value.is_none());
    let hashes: Vec<[u8; 16]> = gone.map(|(key, _)| key_of(key)).collect();
    let slices: Vec<&[u8]> = hashes.iter().map(<[u8; 16]>::as_slice).collect();
    session.execute(FORGET, &[(&slices, Type::BYTEA_ARRAY)]).await?;
    Ok(())
}

async fn logs(session: &Session, changes: &Changes) -> Result<(), Failure> {
    const EVENTS: &str = "INSERT INTO @events (body) SELECT b::json FROM unnest($1::text[]) WITH ORDINALITY w (b, n) ORDER BY n";
    const FETCHES: &str = "INSERT INTO @fetches (body) SELECT b::json FROM unnest($1::text[]) WITH ORDINALITY w (b, n) ORDER BY n";
    let text = |body: serde_json::Result<String>| {
        body.map_err(|cause| Failure::Damaged(format!("the log cannot be written: {cause}")))
    };
    if !changes.events.is_empty() {
        let bodies = changes
            .events
            .iter()
            .map(|row| text(serde_json::to_string(row)))
            .collect::<Result<Vec<_>, _>>()?;
        session.execute(EVENTS, &[(&bodies, Type::TEXT_ARRAY)]).await?;
    }
    if !changes.fetches.is_empty() {
        let bodies = changes
            .fetches
            .iter()
            .map(|row| text(serde_json::to_string(row)))
            .collect::<Result<Vec<_>, _>>()?;
        session.execute(FETCHES, &[(&bodies, Type::TEXT_ARRAY)]).await?;
    }
    Ok(())
}

/// Collections that are gone.
async fn clear(session: &Session, changes: &Changes) -> Result<(), Failure> {
    const ENTRIES: &str =
        "DELETE FROM @entries e USING @queues q WHERE q.id = e.queue AND q.collection = ANY($1)";
    const QUEUES: &str = "DELETE FROM @queues q WHERE q.collection = ANY($1)";
    const HOSTS: &str = "DELETE FROM @hosts h WHERE h.owner = ANY($1)";
    const COUNTERS: &str = "DELETE FROM @counters c WHERE c.collection = ANY($1)";
    if changes.cleared.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i32> = changes.cleared.iter().map(|collection| int(collection.0)).collect();
    for statement in [ENTRIES, QUEUES, HOSTS, COUNTERS] {
        session.execute(statement, &[(&numbers, Type::INT4_ARRAY)]).await?;
    }
    Ok(())
}

/// Adds to what is counted of collections: each connection in a row of its own, so that none waits for another.
async fn count(session: &Session, view: &View) -> Result<(), Failure> {
    const COUNT: &str = "INSERT INTO @counters AS c \
        SELECT w.collection, pg_backend_pid() % 64, queued, leased, done, failed, fetches, bytes, changes, skipped \
        FROM unnest($1::int4[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::int8[], \
            $9::int8[]) w (collection, queued, leased, done, failed, fetches, bytes, changes, skipped) \
        ORDER BY w.collection \
        ON CONFLICT (collection, shard) DO UPDATE SET queued = c.queued + excluded.queued, \
            leased = c.leased + excluded.leased, done = c.done + excluded.done, failed = c.failed + excluded.failed, \
            fetches = c.fetches + excluded.fetches, bytes = c.bytes + excluded.bytes, \
            changes = c.changes + excluded.changes, skipped = c.skipped + excluded.skipped";
    let mut sums: BTreeMap<CollectionId, [i64; 8]> = BTreeMap::new();
    for (queue, delta) in deltas(view) {
        let (collection, _) = view.queue_parts(queue);
        let sum = sums.entry(collection).or_default();
        for (sum, delta) in sum.iter_mut().zip(delta) {
            *sum += delta;
        }
    }
    for (collection, tally) in &view.changes.tallies {
        let before = view.loaded.counters.get(collection).map(|counters| counters.tally).unwrap_or_default();
        let sum = sums.entry(*collection).or_default();
        for (sum, more) in sum[4..].iter_mut().zip(more(before, *tally)) {
            *sum += more;
        }
    }
    sums.retain(|collection, sum| {
        sum.iter().any(|count| *count != 0) && !view.changes.cleared.contains(collection)
    });
    if sums.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i32> = sums.keys().map(|collection| int(collection.0)).collect();
    let columns: [Vec<i64>; 8] = std::array::from_fn(|column| sums.values().map(|sum| sum[column]).collect());
    let mut params: Vec<super::session::Param<'_>> = vec![(&numbers, Type::INT4_ARRAY)];
    params.extend(columns.iter().map(|column| (column as _, Type::INT8_ARRAY)));
    session.execute(COUNT, &params).await?;
    Ok(())
}

/// What was counted since.
fn more(before: Tally, after: Tally) -> [i64; 4] {
    let more = |before: u64, after: u64| {
        i64::try_from(after).unwrap_or(i64::MAX) - i64::try_from(before).unwrap_or(i64::MAX)
    };
    [
        more(before.fetches, after.fetches),
        more(before.bytes, after.bytes),
        more(before.changes, after.changes),
        more(before.skipped, after.skipped),
    ]
}
