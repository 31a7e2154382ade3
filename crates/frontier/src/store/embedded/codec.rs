//! Rows as they lie on disk.
//!
//! Numbers are little varints, and what is the same for most entries takes a byte or none.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::slots::{BY_ARRIVAL, Slot, worth};
use crate::entry::{EntryId, Lease, QueueId, SeedId, Standing, State, Token};
use crate::moment::Moment;

/// Why a row could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// What comes of reading.
pub(super) type Read<T> = Result<T, Unreadable>;

/// The key of a numbered row; the order of keys is the order of numbers.
pub(super) fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// The number of a row.
pub(super) fn number(key: &[u8]) -> Read<u32> {
    key.try_into().map(u32::from_be_bytes).map_err(|_| Unreadable)
}

/// A value in the general format.
pub(super) fn pack<T: Serialize>(value: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    put_packed(&mut out, value);
    out
}

/// Appends a value in the general format.
pub(super) fn put_packed<T: Serialize>(out: &mut Vec<u8>, value: &T) {
    #[expect(clippy::expect_used, reason = "writing to memory cannot fail, and all lengths are known")]
    let all = postcard::to_extend(value, std::mem::take(out)).expect("the value can be written");
    *out = all;
}

/// Appends a value with its length before it.
pub(super) fn put_block<T: Serialize>(out: &mut Vec<u8>, value: &T) {
    let bytes = pack(value);
    put(out, bytes.len() as u64);
    out.extend_from_slice(&bytes);
}

/// Reads a value in the general format.
pub(super) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Read<T> {
    postcard::from_bytes(bytes).map_err(|_| Unreadable)
}

/// Appends a number.
pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        #[expect(clippy::cast_possible_truncation, reason = "the low seven bits")]
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "less than 0x80")]
    out.push(number as u8);
}

/// What is left to read of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// One byte.
    pub(super) fn byte(&mut self) -> Read<u8> {
        let (first, rest) = self.0.split_first().ok_or(Unreadable)?;
        self.0 = rest;
        Ok(*first)
    }

    /// So many bytes.
    pub(super) fn bytes(&mut self, len: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Unreadable)?;
        self.0 = rest;
        Ok(taken)
    }

    fn long(&mut self) -> Read<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Unreadable)
    }

    /// A number of 32 bits.
    pub(super) fn short(&mut self) -> Read<u32> {
        u32::try_from(self.long()?).map_err(|_| Unreadable)
    }

    /// The length of what follows.
    pub(super) fn len(&mut self) -> Read<usize> {
        self.short().map(|len| len as usize)
    }

    /// A value with its length before it.
    pub(super) fn block<T: DeserializeOwned>(&mut self) -> Read<T> {
        let len = self.len()?;
        unpack(self.bytes(len)?)
    }
}

fn put_optional(out: &mut Vec<u8>, number: Option<u32>) {
    put(out, number.map_or(0, |number| u64::from(number) + 1));
}

fn optional(reader: &mut Reader<'_>) -> Read<Option<u32>> {
    match reader.long()? {
        0 => Ok(None),
        number => u32::try_from(number - 1).map(Some).map_err(|_| Unreadable),
    }
}

const BY_DUE: u8 = 1 << 2;
const HUB: u8 = 1 << 3;
const STEP: u8 = 1 << 4;
const RECORD: u8 = 1 << 5;
const RISK_SHIFT: u8 = 6;

/// A standing, and whether what was learned of the entry has a row of its own.
fn put_standing(out: &mut Vec<u8>, standing: &Standing, has_record: bool) {
    let flag = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
    out.push(
        standing.state as u8
            | flag(BY_DUE, standing.by_due)
            | flag(HUB, standing.is_hub)
            | flag(STEP, standing.step.is_some())
            | flag(RECORD, has_record)
            | ((standing.risk as u8) << RISK_SHIFT),
    );
    put(out, standing.queue.0.into());
    put_optional(out, standing.seed.map(|seed| seed.0));
    put(out, standing.place.depth.into());
    put(out, standing.place.hops_off_domain.into());
    put(out, worth(standing).into());
    put(out, standing.due.second().into());
    put_optional(out, standing.last_fetch.map(Moment::second));
    out.push(standing.harvest);
    if let Some(step) = standing.step {
        put(out, step.millisecond());
    }
}

fn standing(reader: &mut Reader<'_>) -> Read<(Standing, bool)> {
    use forager_core::hierarchy::Priority;
    use forager_core::scope::Place;
    use forager_core::sentinel::Risk;
    const RISKS: [Risk; 4] = [Risk::Low, Risk::Medium, Risk::High, Risk::Critical];
    let flags = reader.byte()?;
    let queue = QueueId(reader.short()?);
    let seed = optional(reader)?.map(SeedId);
    let place = Place { depth: reader.short()?, hops_off_domain: reader.short()? };
    let worth = thousandths(reader.short()?).ok_or(Unreadable)?;
    let by_arrival = worth >= BY_ARRIVAL;
    let priority = if by_arrival { worth - BY_ARRIVAL } else { worth };
    let mut standing = Standing {
        queue,
        seed,
        place,
        priority: Priority::from_thousandths(priority).ok_or(Unreadable)?,
        by_arrival,
        due: Moment::from_second(reader.short()?),
        last_fetch: optional(reader)?.map(Moment::from_second),
        state: State::ALL[usize::from(flags & 0b11)],
        risk: RISKS[usize::from(flags >> RISK_SHIFT)],
        is_hub: flags & HUB != 0,
        harvest: reader.byte()?,
        by_due: flags & BY_DUE != 0,
        step: None,
    };
    if flags & STEP != 0 {
        standing.step = Some(Moment::from_millisecond(reader.long()?));
    }
    Ok((standing, flags & RECORD != 0))
}

fn thousandths(number: u32) -> Option<u16> {
    u16::try_from(number).ok()
}

/// What the disk says of one entry, apart from its text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kept {
    /// It was removed. `is_doomed` if rows of it are still to be taken away.
    Removed { offset: u32, is_doomed: bool },
    /// It stands there.
    Live { hash: u64, offset: u32, standing: Standing, has_record: bool, lease: Option<Held> },
}

/// A lease, apart from its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    token: Token,
    from: Moment,
    until: Moment,
}

impl Held {
    /// The lease of this entry.
    pub(super) fn of(self, entry: EntryId) -> Lease {
        Lease { token: self.token, entry, from: self.from, until: self.until }
    }
}

const REMOVED: u8 = 0;
const DOOMED: u8 = 1;
const FREE: u8 = 2;
const HELD: u8 = 3;

/// Writes what has to be known of an entry, apart from its text.
pub(super) fn put_entry(out: &mut Vec<u8>, slot: &Slot, step: Option<Moment>, lease: Option<Lease>) {
    let kind = match lease {
        _ if slot.is_doomed() => DOOMED,
        _ if slot.is_removed() => REMOVED,
        None => FREE,
        Some(_) => HELD,
    };
    // An offset is less than 64, which leaves two bits.
    out.push(kind | (low_byte(slot.offset()) << 2));
    if slot.is_removed() {
        return;
    }
    out.extend_from_slice(&slot.hash.to_le_bytes());
    put_standing(out, &slot.standing(step), slot.has_record());
    if let Some(lease) = lease {
        put(out, lease.token.0);
        put(out, lease.from.millisecond());
        put(out, lease.until.millisecond());
    }
}

/// Reads what has to be known of an entry.
pub(super) fn entry(reader: &mut Reader<'_>) -> Read<Kept> {
    let first = reader.byte()?;
    let (kind, offset) = (first & 0b11, u32::from(first >> 2));
    if kind == REMOVED || kind == DOOMED {
        return Ok(Kept::Removed { offset, is_doomed: kind == DOOMED });
    }
    let hash = reader.bytes(8)?.try_into().map(u64::from_le_bytes).map_err(|_| Unreadable)?;
    let (standing, has_record) = standing(reader)?;
    let lease = match kind {
        HELD => Some(Held {
            token: Token(reader.long()?),
            from: Moment::from_millisecond(reader.long()?),
            until: Moment::from_millisecond(reader.long()?),
        }),
        _ => None,
    };
    Ok(Kept::Live { hash, offset, standing, has_record, lease })
}

#[expect(clippy::cast_possible_truncation, reason = "only for numbers below 64")]
fn low_byte(number: u32) -> u8 {
    number as u8
}

/// Numbers that go on where they stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counters {
    pub(super) entries: u32,
    pub(super) queues: u32,
    pub(super) hosts: u32,
    pub(super) events: u64,
    pub(super) fetches: u64,
    pub(super) last_token: u64,
    pub(super) last_turn: u64,
    /// The latest time that a call was told.
    pub(super) now: Moment,
}

/// A row of the catalog, as text: it is small, seldom written, and its form grows with the product.
pub(super) fn pack_text<T: Serialize>(value: &T) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "rows of the catalog have names for keys")]
    serde_json::to_vec(value).expect("the row can be written")
}

/// Reads a row of the catalog.
pub(super) fn unpack_text<T: DeserializeOwned>(bytes: &[u8]) -> Read<T> {
    serde_json::from_slice(bytes).map_err(|_| Unreadable)
}

#[cfg(test)]
mod tests {
    use super::super::slots::tests::{full, plain};
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written() {
        let (from, until) = (Moment::from_millisecond(999), Moment::from_millisecond(1_999));
        let lease = Lease { token: Token(900), entry: EntryId(1), from, until };
        for (standing, lease, offset) in [(plain(5), None, 0), (full(), Some(lease), 63)] {
            let mut slot = Slot::new(u64::MAX, offset, &standing);
            slot.set_has_record(lease.is_some());
            let mut row = Vec::new();
            put_entry(&mut row, &slot, standing.step, lease);
            let kept = Kept::Live {
                hash: u64::MAX,
                offset,
                standing,
                has_record: lease.is_some(),
                lease: lease.map(|Lease { token, from, until, .. }| Held { token, from, until }),
            };
            assert_eq!(entry(&mut Reader(&row)), Ok(kept));
            for end in 0..row.len() {
                assert_eq!(entry(&mut Reader(&row[..end])), Err(Unreadable), "{end} bytes");
            }
        }
        let mut slot = Slot::removed(9);
        slot.set_doomed(true);
        let mut row = Vec::new();
        put_entry(&mut row, &slot, None, None);
        assert_eq!(entry(&mut Reader(&row)), Ok(Kept::Removed { offset: 9, is_doomed: true }));
    }
}
