//! Writing entries.

use std::sync::LazyLock;

use tokio_postgres::types::Type;

use super::super::failure::Failure;
use super::super::loaded::{Changes, EntryRow, Text};
use super::super::rows::{self, how_number, int, millis, second};
use super::super::session::Statement;
use super::super::view::{View, key_of};
use super::numbers::{self, BIG, BIG_OR_NONE, Column, INT, INT_OR_NONE, SMALL, TRUTH, or_none};
use crate::entry::{EntryId, Record};

pub(super) fn remove_entries<'a>(changes: &Changes) -> Option<Statement<'a>> {
    const REMOVE: &str = "DELETE FROM @entries e WHERE e.id = ANY($1)";
    let gone: Vec<i32> =
        changes.entries.iter().filter(|(_, row)| row.is_none()).map(|(entry, _)| int(entry.0)).collect();
    (!gone.is_empty()).then(|| Statement::new(REMOVE).with(gone, Type::INT4_ARRAY))
}

/// Where an entry stands, in the order of [`standing`].
const STANDING: [Column; 14] = [
    ("state", SMALL),
    ("ready", TRUTH),
    ("priority", INT),
    ("best", INT_OR_NONE),
    ("due", BIG),
    ("tie", BIG),
    ("seed", INT_OR_NONE),
    ("depth", INT),
    ("hops", SMALL),
    ("last_fetch", BIG_OR_NONE),
    ("risk", SMALL),
    ("is_hub", TRUTH),
    ("harvest", SMALL),
    ("step", BIG_OR_NONE),
];

/// What is taken from the time of arrival, so that those who go by it come before those who go by their due time.
const BEFORE_ALL: i64 = 1 << 40;

fn standing(view: &View, EntryRow { standing, arrived, .. }: &EntryRow) -> [i64; STANDING.len()] {
    [
        standing.state as i64,
        view.is_ready(standing).into(),
        standing.effective().thousandths().into(),
        or_none(standing.by_arrival.then(|| standing.priority.thousandths())),
        second(standing.due),
        if standing.by_due { second(standing.due) } else { second(*arrived) - BEFORE_ALL },
        or_none(standing.seed.map(|seed| int(seed.0))),
        int(standing.place.depth).into(),
        i16::try_from(standing.place.hops_off_domain).unwrap_or(i16::MAX).into(),
        or_none(standing.last_fetch.map(second)),
        standing.risk as i64,
        standing.is_hub.into(),
        standing.harvest.into(),
        or_none(standing.step.map(millis)),
    ]
}

/// What was learned of an entry, in the order of [`learned`].
const LEARNED: [Column; 3] = [("source", INT_OR_NONE), ("length", INT_OR_NONE), ("tries", INT)];

fn learned(record: Option<&Record>) -> [i64; LEARNED.len()] {
    let tries = record.map(|record| record.errors.saturating_add(record.abandoned)).unwrap_or_default();
    [
        or_none(record.and_then(|record| record.origin.source).map(|source| int(source.0))),
        or_none(record.and_then(|record| record.length).map(int)),
        i32::try_from(tries).unwrap_or(i32::MAX).into(),
    ]
}

/// What an entry has from the start, before where it stands, in the order of [`Added::push`].
const ORIGIN: [Column; 4] = [("id", INT), ("queue", INT), ("created", BIG), ("how", SMALL)];

/// New entries, as they are sent.
#[derive(Default)]
struct Added<'a> {
    numbers: Vec<i64>,
    keys: Vec<Vec<u8>>,
    urls: Vec<&'a str>,
    /// Where they are not the URLs.
    identities: Vec<Option<&'a str>>,
    records: Vec<Option<String>>,
}

impl<'a> Added<'a> {
    fn push(&mut self, view: &View, entry: EntryId, row: &EntryRow, text: &'a Text) -> Result<(), Failure> {
        let (queue, how) = (int(row.standing.queue.0), how_number(text.record.origin.how));
        let origin: [i64; ORIGIN.len()] =
            [int(entry.0).into(), queue.into(), second(row.arrived), how.into()];
        self.numbers.extend(origin);
        self.numbers.extend(standing(view, row));
        self.numbers.extend(learned(Some(&text.record)));
        self.keys.push(key_of(&text.identity).to_vec());
        self.urls.push(&text.url);
        self.identities.push((text.identity != text.url).then_some(&*text.identity));
        self.records.push(rows::kept_record(&text.record, row.arrived)?);
        Ok(())
    }
}

pub(super) fn new_entries(view: &View) -> Result<Option<Statement<'_>>, Failure> {
    static ADD: LazyLock<String> = LazyLock::new(|| {
        let columns = [&ORIGIN[..], &STANDING, &LEARNED].concat();
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        format!(
            "INSERT INTO @entries ({}, key, url, identity, record) SELECT {}, key, url, identity, record::json \
             FROM unnest($2::bytea[], $3::text[], $4::text[], $5::text[]) WITH ORDINALITY w (key, url, identity, record, n)",
            names.join(", "),
            numbers::select("$1", &columns)
        )
    });
    let mut added = Added::default();
    for entry in &view.changes.new_entries {
        let row = view.changes.entries.get(entry).and_then(Option::as_ref);
        if let Some((row, text)) = row.and_then(|row| Some((row, row.text.as_ref()?))) {
            added.push(view, *entry, row, text)?;
        }
    }
    let statement = Statement::new(&ADD)
        .with(added.numbers, Type::INT8_ARRAY)
        .with(added.keys, Type::BYTEA_ARRAY)
        .with(added.urls, Type::TEXT_ARRAY)
        .with(added.identities, Type::TEXT_ARRAY)
        .with(added.records, Type::TEXT_ARRAY);
    Ok((!view.changes.new_entries.is_empty()).then_some(statement))
}

/// The lease of an entry that was there before, and whether what was learned of it is written too.
const LEASE: [Column; 5] = [
    ("id", INT),
    ("token", BIG_OR_NONE),
    ("leased_from", BIG_OR_NONE),
    ("leased_until", BIG_OR_NONE),
    ("has_text", TRUTH),
];

/// Entries that were there before: their numbers, and their records.
#[derive(Default)]
pub(super) struct Changed {
    pub(super) numbers: Vec<i64>,
    pub(super) records: Vec<Option<String>>,
}

/// What changes entries that were there before, which are sent as `numbers` and `records`.
pub(super) fn change(numbers: &str, records: &str) -> String {
    let columns = [&LEASE[..], &STANDING, &LEARNED].concat();
    format!(
        "UPDATE @entries e SET state = w.state, ready = w.ready, priority = w.priority, best = w.best, due = w.due, tie = w.tie, \
            seed = w.seed, depth = w.depth, hops = w.hops, last_fetch = w.last_fetch, risk = w.risk, \
            is_hub = w.is_hub, harvest = w.harvest, step = w.step, token = w.token, leased_from = w.leased_from, \
            leased_until = w.leased_until, \
            length = CASE WHEN w.has_text THEN w.length ELSE e.length END, \
            tries = CASE WHEN w.has_text THEN w.tries ELSE e.tries END, \
            source = CASE WHEN w.has_text THEN w.source ELSE e.source END, \
            record = CASE WHEN w.has_text THEN w.record::json ELSE e.record END \
        FROM (SELECT {}, record FROM unnest({records}::text[]) WITH ORDINALITY r (record, n)) w WHERE e.id = w.id",
        numbers::select(numbers, &columns)
    )
}

impl Changed {
    pub(super) fn of(view: &View) -> Result<Self, Failure> {
        let mut changed = Self::default();
        for (entry, row) in &view.changes.entries {
            if let (Some(row), false) = (row, view.changes.new_entries.contains(entry)) {
                changed.push(view, *entry, row)?;
            }
        }
        Ok(changed)
    }

    fn push(&mut self, view: &View, entry: EntryId, row: &EntryRow) -> Result<(), Failure> {
        let record = row.text.as_ref().map(|text| &text.record);
        let lease = row.lease;
        let lease: [i64; LEASE.len()] = [
            int(entry.0).into(),
            or_none(lease.map(|lease| i64::try_from(lease.token.0).unwrap_or(i64::MAX))),
            or_none(lease.map(|lease| millis(lease.from))),
            or_none(lease.map(|lease| millis(lease.until))),
            record.is_some().into(),
        ];
        self.numbers.extend(lease);
        self.numbers.extend(standing(view, row));
        self.numbers.extend(learned(record));
        self.records.push(record.map(|record| rows::kept_record(record, row.arrived)).transpose()?.flatten());
        Ok(())
    }
}
