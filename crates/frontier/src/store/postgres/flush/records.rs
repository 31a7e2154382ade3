//! Writing notes, logs and counters.

use std::collections::BTreeMap;

use tokio_postgres::types::Type;

use super::super::failure::Failure;
use super::super::loaded::Changes;
use super::super::rows::int;
use super::super::session::Statement;
use super::super::view::{View, key_of};
use super::numbers::{self, BIG, Column, INT};
use super::shifts::Shifts;
use crate::engine::Tx as _;
use crate::entry::CollectionId;
use crate::verbs::Tally;

pub(super) fn notes(changes: &Changes) -> Vec<Statement<'_>> {
    const KEEP: &str = "INSERT INTO @notes (hash, key, value) \
        SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) w (h, k, v) ORDER BY h \
        ON CONFLICT (hash) DO UPDATE SET value = excluded.value";
    const FORGET: &str = "DELETE FROM @notes n WHERE n.hash = ANY($1)";
    if changes.notes.is_empty() {
        return Vec::new();
    }
    let kept = || changes.notes.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
    let gone = changes.notes.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| key);
    let hashes: Vec<Vec<u8>> = kept().map(|(key, _)| key_of(key).to_vec()).collect();
    let keys: Vec<&[u8]> = kept().map(|(key, _)| key.as_bytes()).collect();
    let values: Vec<&[u8]> = kept().map(|(_, value)| value.as_slice()).collect();
    let gone: Vec<Vec<u8>> = gone.map(|key| key_of(key).to_vec()).collect();
    vec![
        Statement::new(KEEP)
            .with(hashes, Type::BYTEA_ARRAY)
            .with(keys, Type::BYTEA_ARRAY)
            .with(values, Type::BYTEA_ARRAY),
        Statement::new(FORGET).with(gone, Type::BYTEA_ARRAY),
    ]
}

pub(super) fn logs<'a>(changes: &Changes) -> Result<Vec<Statement<'a>>, Failure> {
    const EVENTS: &str = "INSERT INTO @events (body) SELECT b::json FROM unnest($1::text[]) WITH ORDINALITY w (b, n) ORDER BY n";
    const FETCHES: &str = "INSERT INTO @fetches (body) SELECT b::json FROM unnest($1::text[]) WITH ORDINALITY w (b, n) ORDER BY n";
    let text = |body: serde_json::Result<String>| {
        body.map_err(|cause| Failure::Damaged(format!("the log cannot be written: {cause}")))
    };
    let events = changes.events.iter().map(|row| text(serde_json::to_string(row)));
    let fetches = changes.fetches.iter().map(|row| text(serde_json::to_string(row)));
    let mut statements = Vec::new();
    for (statement, bodies) in [
        (EVENTS, events.collect::<Result<Vec<String>, _>>()?),
        (FETCHES, fetches.collect::<Result<Vec<String>, _>>()?),
    ] {
        if !bodies.is_empty() {
            statements.push(Statement::new(statement).with(bodies, Type::TEXT_ARRAY));
        }
    }
    Ok(statements)
}

/// Collections that are gone.
pub(super) fn clear<'a>(changes: &Changes) -> Vec<Statement<'a>> {
    const ENTRIES: &str =
        "DELETE FROM @entries e USING @queues q WHERE q.id = e.queue AND q.collection = ANY($1)";
    const QUEUES: &str = "DELETE FROM @queues q WHERE q.collection = ANY($1)";
    const HOSTS: &str = "DELETE FROM @hosts h WHERE h.owner = ANY($1)";
    const COUNTERS: &str = "DELETE FROM @counters c WHERE c.collection = ANY($1)";
    if changes.cleared.is_empty() {
        return Vec::new();
    }
    let numbers: Vec<i32> = changes.cleared.iter().map(|collection| int(collection.0)).collect();
    let clear = |statement| Statement::new(statement).with(numbers.clone(), Type::INT4_ARRAY);
    [ENTRIES, QUEUES, HOSTS, COUNTERS].map(clear).into()
}

/// What is counted of a collection.
const COUNTS: [Column; 9] = [
    ("collection", INT),
    ("queued", BIG),
    ("leased", BIG),
    ("done", BIG),
    ("failed", BIG),
    ("fetches", BIG),
    ("bytes", BIG),
    ("changes", BIG),
    ("skipped", BIG),
];

/// What adds to what is counted of collections, sent as `numbers`: each connection in a row of its own, so that none waits
/// for another.
pub(super) fn count(numbers: &str) -> String {
    format!(
        "INSERT INTO @counters AS c \
        SELECT w.collection, pg_backend_pid() % 64, queued, leased, done, failed, fetches, bytes, changes, skipped \
        FROM (SELECT {} FROM generate_series(1, {}) n) w ORDER BY w.collection \
        ON CONFLICT (collection, shard) DO UPDATE SET queued = c.queued + excluded.queued, \
            leased = c.leased + excluded.leased, done = c.done + excluded.done, failed = c.failed + excluded.failed, \
            fetches = c.fetches + excluded.fetches, bytes = c.bytes + excluded.bytes, \
            changes = c.changes + excluded.changes, skipped = c.skipped + excluded.skipped",
        numbers::select(numbers, &COUNTS),
        numbers::count(numbers, &COUNTS)
    )
}

/// What the call has counted, by collection.
pub(super) fn counts(view: &View, shifts: &Shifts) -> Vec<i64> {
    let mut sums: BTreeMap<CollectionId, [i64; 8]> = BTreeMap::new();
    for (queue, shift) in shifts {
        let (collection, _) = view.queue_parts(*queue);
        let sum = sums.entry(collection).or_default();
        for (sum, count) in sum.iter_mut().zip(shift.counts) {
            *sum += count;
        }
    }
    for (collection, Tally { fetches, bytes, changes, skipped }) in &view.changes.tallies {
        let sum = sums.entry(*collection).or_default();
        for (sum, more) in sum[4..].iter_mut().zip([fetches, bytes, changes, skipped]) {
            *sum += i64::try_from(*more).unwrap_or(i64::MAX);
        }
    }
    sums.retain(|collection, sum| {
        sum.iter().any(|count| *count != 0) && !view.changes.cleared.contains(collection)
    });
    let row =
        |(collection, sum): (&CollectionId, &[i64; 8])| std::iter::once(int(collection.0).into()).chain(*sum);
    sums.iter().flat_map(row).collect()
}
