//! Rows as they lie in the tables, and as the engine sees them.

use forager_core::hierarchy::Priority;
use forager_core::scope::Place;
use forager_core::sentinel::Risk;
use tokio_postgres::Row;

use super::failure::Failure;
use super::loaded::{EntryRow, HostRow, QueueRow, Text};
use crate::entry::{
    CollectionId, EntryId, HostId, How, Lease, Origin, QueueId, Record, SeedId, Standing, State, Token,
};
use crate::moment::Moment;

/// The columns of an entry's standing, in the order of [`entry`].
macro_rules! standing {
    () => {
        "e.id, e.queue, e.state, e.seed, e.depth, e.hops, e.priority, e.due, e.last_fetch, e.risk, \
         e.is_hub, e.harvest, e.tie, e.step, e.token, e.leased_from, e.leased_until, e.best, e.created"
    };
}

/// The columns of an entry's text, in the order of [`read_text`], after those of its standing.
macro_rules! text {
    () => {
        "e.url, e.identity, e.how, e.source, e.length, e.record::text"
    };
}

pub(super) use {standing, text};

const STATES: [State; 4] = State::ALL;
const RISKS: [Risk; 4] = [Risk::Low, Risk::Medium, Risk::High, Risk::Critical];
const HOWS: [How; 6] = [How::Seed, How::Link, How::Sitemap, How::Redirect, How::Other, How::Listing];

/// How many columns a standing has.
pub(super) const STANDING_ENDS: usize = 19;

/// A key as it can be asked for. The server takes no text with a zero in it, and no key that is there has one, or is empty.
pub(super) fn askable(key: &str) -> &str {
    if key.contains('\0') { "" } else { key }
}

/// What a number of the database means here, where all numbers are positive.
fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

#[expect(clippy::cast_sign_loss, reason = "the sequences begin at zero")]
fn short(number: i32) -> u32 {
    number.max(0) as u32
}

pub(super) fn second(moment: Moment) -> i64 {
    i64::from(moment.second())
}

pub(super) fn millis(moment: Moment) -> i64 {
    i64::try_from(moment.millisecond()).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_possible_wrap, reason = "the sequences end at the greatest of them")]
pub(super) fn int(number: u32) -> i32 {
    number as i32
}

pub(super) fn moment_of_second(second: i64) -> Moment {
    Moment::from_millisecond(unsigned(second).saturating_mul(1000))
}

pub(super) fn moment_of_millis(millis: i64) -> Moment {
    Moment::from_millisecond(unsigned(millis))
}

pub(super) fn how_number(how: How) -> i16 {
    let place = HOWS.iter().position(|known| *known == how).unwrap_or_default();
    i16::try_from(place).unwrap_or_default()
}

pub(super) fn entry_id(number: i32) -> EntryId {
    EntryId(short(number))
}

pub(super) fn queue_id(number: i32) -> QueueId {
    QueueId(short(number))
}

pub(super) fn host_id(number: i32) -> HostId {
    HostId(short(number))
}

pub(super) fn collection_id(number: i32) -> CollectionId {
    CollectionId(short(number))
}

/// The owner of a host in the table, where -1 is none.
pub(super) fn owner_number(owner: Option<CollectionId>) -> i32 {
    owner.map_or(-1, |owner| int(owner.0))
}

fn damaged(what: &str, cause: impl std::fmt::Display) -> Failure {
    Failure::Damaged(format!("{what} cannot be read: {cause}"))
}

/// Reads an entry: its standing, and its text if that was asked for too.
pub(super) fn entry(row: &Row, has_text: bool) -> Result<(EntryId, EntryRow), Failure> {
    let id = entry_id(row.try_get(0)?);
    let state: i16 = row.try_get(2)?;
    let risk: i16 = row.try_get(9)?;
    let tie: i64 = row.try_get(12)?;
    let best: Option<i32> = row.try_get(17)?;
    let standing = Standing {
        queue: queue_id(row.try_get(1)?),
        state: of(&STATES, state)?,
        seed: row.try_get::<_, Option<i32>>(3)?.map(|seed| SeedId(short(seed))),
        place: Place {
            depth: short(row.try_get(4)?),
            hops_off_domain: short(row.try_get::<_, i16>(5)?.into()),
        },
        priority: u16::try_from(best.map_or_else(|| row.try_get(6), Ok)?)
            .ok()
            .and_then(Priority::from_thousandths)
            .unwrap_or(Priority::MAX),
        due: moment_of_second(row.try_get(7)?),
        last_fetch: row.try_get::<_, Option<i64>>(8)?.map(moment_of_second),
        risk: of(&RISKS, risk)?,
        is_hub: row.try_get(10)?,
        harvest: u8::try_from(row.try_get::<_, i16>(11)?).unwrap_or_default(),
        by_due: tie >= 0,
        by_arrival: best.is_some(),
        step: row.try_get::<_, Option<i64>>(13)?.map(moment_of_millis),
    };
    let token: Option<i64> = row.try_get(14)?;
    let lease = match token.filter(|_| standing.state == State::Leased) {
        Some(token) => Some(Lease {
            token: Token(unsigned(token)),
            entry: id,
            from: moment_of_millis(row.try_get::<_, Option<i64>>(15)?.unwrap_or_default()),
            until: moment_of_millis(row.try_get::<_, Option<i64>>(16)?.unwrap_or_default()),
        }),
        None => None,
    };
    let arrived = moment_of_second(row.try_get(18)?);
    let text = if has_text { Some(read_text(row, STANDING_ENDS, arrived)?) } else { None };
    Ok((id, EntryRow { standing, arrived, lease, text }))
}

fn of<T: Copy>(known: &[T], number: i16) -> Result<T, Failure> {
    let found = usize::try_from(number).ok().and_then(|number| known.get(number));
    found.copied().ok_or_else(|| damaged("an entry", format!("{number} means nothing")))
}

/// Reads the text of an entry.
fn read_text(row: &Row, from: usize, arrived: Moment) -> Result<Text, Failure> {
    let url: String = row.try_get(from)?;
    let identity: Option<String> = row.try_get(from + 1)?;
    let record: Option<String> = row.try_get(from + 5)?;
    let record = if let Some(record) = record {
        serde_json::from_str(&record).map_err(|cause| damaged(&url, cause))?
    } else {
        let origin = Origin {
            created: arrived,
            how: of(&HOWS, row.try_get(from + 2)?)?,
            source: row.try_get::<_, Option<i32>>(from + 3)?.map(entry_id),
            ..Origin::default()
        };
        Record::new(origin, row.try_get::<_, Option<i32>>(from + 4)?.map(short))
    };
    let url: std::sync::Arc<str> = url.into();
    Ok(Text { identity: identity.map_or_else(|| url.clone(), Into::into), url, record })
}

/// The record of an entry as it is kept: nothing if it says no more than the columns do. What was found before it came into
/// this queue says so.
pub(super) fn kept_record(record: &Record, arrived: Moment) -> Result<Option<String>, Failure> {
    let Origin { how, source, .. } = record.origin;
    let plain = Record::new(Origin { created: arrived, how, source, ..Origin::default() }, record.length);
    if plain == *record {
        return Ok(None);
    }
    serde_json::to_string(record).map(Some).map_err(|cause| damaged("a record", cause))
}

/// Where the columns of a queue begin that stands beside its host.
const QUEUE_FROM: usize = 4;

/// Reads a host: id, key, owner, state.
pub(super) fn host(row: &Row) -> Result<HostRow, Failure> {
    let key: String = row.try_get(1)?;
    let owner: i32 = row.try_get(2)?;
    let state: String = row.try_get(3)?;
    let state = serde_json::from_str(&state).map_err(|cause| damaged(&key, cause))?;
    let owner = (owner >= 0).then(|| collection_id(owner));
    Ok(HostRow { key, owner, state })
}

/// Reads the queue that stands beside a host, if it has one: id, collection, host, queued, leased, done, failed, place, opens,
/// `first_due`, `wake_at`, seen, version.
pub(super) fn queue(row: &Row) -> Result<Option<(QueueId, QueueRow)>, Failure> {
    let Some(id) = row.try_get::<_, Option<i32>>(QUEUE_FROM)? else { return Ok(None) };
    let count = |column: usize| row.try_get::<_, i64>(QUEUE_FROM + column).map(unsigned);
    let queue = QueueRow {
        collection: collection_id(row.try_get(QUEUE_FROM + 1)?),
        host: host_id(row.try_get(QUEUE_FROM + 2)?),
        counts: [count(3)?, count(4)?, count(5)?, count(6)?],
        place: row.try_get(QUEUE_FROM + 7)?,
        opens: row.try_get::<_, Option<i64>>(QUEUE_FROM + 8)?.map(moment_of_millis),
        first_due: row.try_get::<_, Option<i64>>(QUEUE_FROM + 9)?.map(moment_of_second),
        wake_at: row.try_get::<_, Option<i64>>(QUEUE_FROM + 10)?.map(moment_of_millis),
        seen: moment_of_millis(row.try_get(QUEUE_FROM + 11)?),
        version: row.try_get(QUEUE_FROM + 12)?,
    };
    Ok(Some((queue_id(id), queue)))
}
