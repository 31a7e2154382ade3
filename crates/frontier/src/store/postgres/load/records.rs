//! Reading counters, logs and notes.

use tokio_postgres::types::Type;

use super::super::call::Call;
use super::super::failure::Failure;
use super::super::loaded::{Counters, Loaded};
use super::super::rows::{collection_id, int};
use super::super::session::Session;
use super::super::view::key_of;
use super::super::wants::Wants;
use super::owner;
use crate::verbs::{EventRow, FetchRow, Tally};

pub(super) async fn counters(session: &Session, loaded: &mut Loaded, wants: &Wants) -> Result<(), Failure> {
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

/// How many hosts collections have, counted by the server: there may be very many.
pub(super) async fn host_counts(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    wants: &Wants,
) -> Result<(), Failure> {
    const HOSTS: &str = "SELECT q.collection, count(*), \
            count(*) FILTER (WHERE q.queued + q.leased + q.done + q.failed > 0), \
            count(*) FILTER (WHERE q.queued + q.leased > 0) \
        FROM @queues q WHERE q.collection = ANY($1) GROUP BY q.collection";
    if wants.host_counts.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i32> = wants.host_counts.iter().map(|collection| int(collection.0)).collect();
    loaded.host_counts.extend(wants.host_counts.iter().map(|collection| (*collection, [0, 0])));
    for row in session.query(HOSTS, &[(&numbers, Type::INT4_ARRAY)]).await? {
        let count = |column: usize| {
            row.try_get::<_, i64>(column).map(|count| u64::try_from(count).unwrap_or_default())
        };
        let collection = collection_id(row.try_get(0)?);
        // Those that clients have made are listed with nothing in them.
        let listed = if owner(call, collection).is_some() { count(1)? } else { count(2)? };
        loaded.host_counts.insert(collection, [listed, count(3)?]);
    }
    Ok(())
}

/// Rows of the logs. The new ones are numbered first, by one reader at a time, so that none comes later with a
/// number that was passed already.
pub(super) async fn logs(
    session: &Session,
    call: &Call<'_>,
    loaded: &mut Loaded,
    wants: &Wants,
) -> Result<(), Failure> {
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

pub(super) async fn notes(session: &Session, loaded: &mut Loaded, wants: &Wants) -> Result<(), Failure> {
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

/// The keys of notes that begin like this.
pub(super) async fn note_keys(session: &Session, loaded: &mut Loaded, wants: &Wants) -> Result<(), Failure> {
    const KEYS: &str = "SELECT n.key FROM @notes n WHERE substr(n.key, 1, length($1::bytea)) = $1";
    for prefix in &wants.note_prefixes {
        let rows = session.query(KEYS, &[(&prefix.as_bytes(), Type::BYTEA)]).await?;
        let mut keys = Vec::new();
        for row in rows {
            keys.push(String::from_utf8_lossy(row.try_get(0)?).into_owned());
        }
        loaded.note_keys.insert(prefix.clone(), keys);
    }
    Ok(())
}
