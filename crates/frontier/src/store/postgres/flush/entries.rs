//! Writing entries.

use tokio_postgres::types::Type;

use super::super::failure::Failure;
use super::super::loaded::{Changes, EntryRow};
use super::super::rows::{self, how_number, int, millis, second};
use super::super::session::Statement;
use super::super::view::{View, key_of};
use crate::entry::{EntryId, Standing};

pub(super) fn remove_entries<'a>(changes: &Changes) -> Option<Statement<'a>> {
    const REMOVE: &str = "DELETE FROM @entries e WHERE e.id = ANY($1)";
    let gone: Vec<i32> =
        changes.entries.iter().filter(|(_, row)| row.is_none()).map(|(entry, _)| int(entry.0)).collect();
    (!gone.is_empty()).then(|| Statement::new(REMOVE).with(gone, Type::INT4_ARRAY))
}

/// Where entries stand, as the columns that every writing of them has, in this order.
#[derive(Default)]
struct Standings {
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
}

impl Standings {
    fn push(&mut self, view: &View, standing: &Standing) {
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
    }

    /// The same statement with these columns.
    fn add_to(self, statement: Statement<'_>) -> Statement<'_> {
        statement
            .with(self.state, Type::INT2_ARRAY)
            .with(self.ready, Type::BOOL_ARRAY)
            .with(self.priority, Type::INT4_ARRAY)
            .with(self.due, Type::INT8_ARRAY)
            .with(self.tie, Type::INT8_ARRAY)
            .with(self.seed, Type::INT4_ARRAY)
            .with(self.depth, Type::INT4_ARRAY)
            .with(self.hops, Type::INT2_ARRAY)
            .with(self.last_fetch, Type::INT8_ARRAY)
            .with(self.risk, Type::INT2_ARRAY)
            .with(self.is_hub, Type::BOOL_ARRAY)
            .with(self.harvest, Type::INT2_ARRAY)
            .with(self.step, Type::INT8_ARRAY)
    }
}

/// Entries as columns.
#[derive(Default)]
struct Columns<'a> {
    id: Vec<i32>,
    queue: Vec<i32>,
    key: Vec<[u8; 16]>,
    url: Vec<&'a str>,
    identity: Vec<Option<&'a str>>,
    standing: Standings,
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
        self.id.push(int(id.0));
        self.queue.push(int(row.standing.queue.0));
        self.standing.push(view, &row.standing);
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

pub(super) fn new_entries(view: &View) -> Result<Option<Statement<'_>>, Failure> {
    const ADD: &str = "INSERT INTO @entries (id, queue, key, url, identity, state, ready, priority, due, tie, seed, \
            depth, hops, last_fetch, risk, is_hub, harvest, step, created, how, source, length, tries, record) \
        SELECT a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x::json \
        FROM unnest($1::int4[], $2::int4[], $3::bytea[], $4::text[], $5::text[], $6::int2[], $7::bool[], $8::int4[], \
            $9::int8[], $10::int8[], $11::int4[], $12::int4[], $13::int2[], $14::int8[], $15::int2[], $16::bool[], \
            $17::int2[], $18::int8[], $19::int8[], $20::int2[], $21::int4[], $22::int4[], $23::int4[], $24::text[]) \
            z (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x)";
    let mut columns = Columns::default();
    for entry in &view.changes.new_entries {
        if let Some(Some(row)) = view.changes.entries.get(entry) {
            columns.push(view, *entry, row)?;
        }
    }
    if columns.id.is_empty() {
        return Ok(None);
    }
    let keys: Vec<Vec<u8>> = columns.key.iter().map(|key| key.to_vec()).collect();
    let statement = Statement::new(ADD)
        .with(columns.id, Type::INT4_ARRAY)
        .with(columns.queue, Type::INT4_ARRAY)
        .with(keys, Type::BYTEA_ARRAY)
        .with(columns.url, Type::TEXT_ARRAY)
        .with(columns.identity, Type::TEXT_ARRAY);
    Ok(Some(
        columns
            .standing
            .add_to(statement)
            .with(columns.created, Type::INT8_ARRAY)
            .with(columns.how, Type::INT2_ARRAY)
            .with(columns.source, Type::INT4_ARRAY)
            .with(columns.length, Type::INT4_ARRAY)
            .with(columns.tries, Type::INT4_ARRAY)
            .with(columns.record, Type::TEXT_ARRAY),
    ))
}

pub(super) fn change_entries(view: &View) -> Result<Option<Statement<'_>>, Failure> {
    const CHANGE: &str = "UPDATE @entries e SET state = w.state, ready = w.ready, priority = w.priority, due = w.due, \
            tie = w.tie, seed = w.seed, depth = w.depth, hops = w.hops, last_fetch = w.last_fetch, risk = w.risk, \
            is_hub = w.is_hub, harvest = w.harvest, step = w.step, token = w.token, leased_from = w.leased_from, \
            leased_until = w.leased_until, \
            length = CASE WHEN w.has_text THEN w.length ELSE e.length END, \
            tries = CASE WHEN w.has_text THEN w.tries ELSE e.tries END, \
            source = CASE WHEN w.has_text THEN w.source ELSE e.source END, \
            record = CASE WHEN w.has_text THEN w.record::json ELSE e.record END \
        FROM unnest($1::int4[], $2::int2[], $3::bool[], $4::int4[], $5::int8[], $6::int8[], $7::int4[], $8::int4[], \
            $9::int2[], $10::int8[], $11::int2[], $12::bool[], $13::int2[], $14::int8[], $15::int8[], $16::int8[], \
            $17::int8[], $18::int4[], $19::int4[], $20::text[], $21::bool[], $22::int4[]) \
            w (id, state, ready, priority, due, tie, seed, depth, hops, last_fetch, risk, is_hub, harvest, step, \
               token, leased_from, leased_until, length, tries, record, has_text, source) \
        WHERE e.id = w.id";
    let mut columns = Columns::default();
    for (entry, row) in &view.changes.entries {
        if let (Some(row), false) = (row, view.changes.new_entries.contains(entry)) {
            columns.push(view, *entry, row)?;
        }
    }
    if columns.id.is_empty() {
        return Ok(None);
    }
    let statement = Statement::new(CHANGE).with(columns.id, Type::INT4_ARRAY);
    Ok(Some(
        columns
            .standing
            .add_to(statement)
            .with(columns.token, Type::INT8_ARRAY)
            .with(columns.leased_from, Type::INT8_ARRAY)
            .with(columns.leased_until, Type::INT8_ARRAY)
            .with(columns.length, Type::INT4_ARRAY)
            .with(columns.tries, Type::INT4_ARRAY)
            .with(columns.record, Type::TEXT_ARRAY)
            .with(columns.has_text, Type::BOOL_ARRAY)
            .with(columns.source, Type::INT4_ARRAY),
    ))
}
