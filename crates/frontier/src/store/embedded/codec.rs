//! Rows as they lie on disk.
//!
//! Numbers are little varints, and what is the same for most entries takes a byte or none.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::slots::Slot;
use crate::entry::{Lease, Origin, QueueId, Record, SeedId, Standing, State, Token};
use crate::moment::Moment;

/// Why a row could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

type Read<T> = Result<T, Unreadable>;

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
    #[expect(clippy::expect_used, reason = "writing to memory cannot fail, and all lengths are known")]
    postcard::to_stdvec(value).expect("the value can be written")
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
    pub(super) fn byte(&mut self) -> Read<u8> {
        let (first, rest) = self.0.split_first().ok_or(Unreadable)?;
        self.0 = rest;
        Ok(*first)
    }

    fn bytes(&mut self, len: usize) -> Read<&'a [u8]> {
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

    fn len(&mut self) -> Read<usize> {
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
    put(out, standing.priority.thousandths().into());
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
    let mut standing = Standing {
        queue: QueueId(reader.short()?),
        seed: optional(reader)?.map(SeedId),
        place: Place { depth: reader.short()?, hops_off_domain: reader.short()? },
        priority: thousandths(reader.short()?).and_then(Priority::from_thousandths).ok_or(Unreadable)?,
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
    Live { hash: u64, offset: u32, standing: Standing, has_record: bool, lease: Option<(Token, Moment)> },
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
        HELD => Some((Token(reader.long()?), Moment::from_millisecond(reader.long()?))),
        _ => None,
    };
    Ok(Kept::Live { hash, offset, standing, has_record, lease })
}

#[expect(clippy::cast_possible_truncation, reason = "only for numbers below 64")]
fn low_byte(number: u32) -> u8 {
    number as u8
}

/// What is known of an entry when it is new.
#[derive(Serialize, Deserialize)]
struct Birth {
    origin: Origin,
    length: Option<u32>,
    best_link: Option<u16>,
    linked_from: Vec<u32>,
    due_because: Option<String>,
}

/// The same, to be written.
#[derive(Serialize)]
struct BirthRef<'a> {
    origin: &'a Origin,
    length: Option<u32>,
    best_link: Option<u16>,
    linked_from: &'a [u32],
    due_because: Option<&'a str>,
}

/// Whether a record says no more than the row of a new entry can.
pub(super) fn is_of_birth(record: &Record) -> bool {
    let fresh = Record::new(Origin::default(), None);
    record.abandoned == 0
        && record.errors == 0
        && record.not_found == 0
        && record.velocity.to_bits() == fresh.velocity.to_bits()
        && record.scans == 0
        && record.last_changed.is_none()
        && record.fingerprint.is_none()
        && record.history.is_empty()
}

/// The texts of new entries, as a row in the making.
#[derive(Debug, Default)]
pub(super) struct ChunkWriter {
    out: Vec<u8>,
    text: Vec<u8>,
}

impl ChunkWriter {
    /// Adds an entry. `host` is the key of its queue, which need not be written again.
    pub(super) fn add(&mut self, host: &str, url: &str, record: &Record) {
        self.text.clear();
        put_url(&mut self.text, host, url);
        let birth = BirthRef {
            origin: &record.origin,
            length: record.length,
            best_link: record.best_link,
            linked_from: &record.linked_from,
            due_because: record.due_because.as_deref(),
        };
        put_packed(&mut self.text, &birth);
        put(&mut self.out, self.text.len() as u64);
        self.out.extend_from_slice(&self.text);
    }

    /// The row; the writer is empty again.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

/// What may stand before the key of the queue at the start of a URL. The first stands for none of them.
const PREFIXES: [&str; 4] = ["", "https://", "http://", ""];

fn put_url(out: &mut Vec<u8>, host: &str, url: &str) {
    let after = |prefix: &str| url.strip_prefix(prefix)?.strip_prefix(host);
    let short = if host.is_empty() {
        None
    } else {
        (1..).zip(&PREFIXES[1..]).find_map(|(kind, prefix)| Some((kind, after(prefix)?)))
    };
    let (kind, text) = short.unwrap_or((0, url));
    out.push(kind);
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn url(reader: &mut Reader<'_>, host: &str) -> Read<String> {
    let kind = reader.byte()?;
    let len = reader.len()?;
    let text = std::str::from_utf8(reader.bytes(len)?).map_err(|_| Unreadable)?;
    let prefix = PREFIXES.get(usize::from(kind)).ok_or(Unreadable)?;
    Ok(if kind == 0 { text.to_owned() } else { [prefix, host, text].concat() })
}

/// The text of an entry, and what was known of it when it was new.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a>(&'a [u8]);

impl Text<'_> {
    /// What the entry requests, and what was known of it. `host` is the key of its queue.
    pub(super) fn read(&self, host: &str) -> Read<(String, Record)> {
        let mut reader = Reader(self.0);
        let url = url(&mut reader, host)?;
        let birth: Birth = unpack(reader.0)?;
        let mut record = Record::new(birth.origin, birth.length);
        record.best_link = birth.best_link;
        record.linked_from = birth.linked_from;
        record.due_because = birth.due_because;
        Ok((url, record))
    }

    /// What the entry requests.
    pub(super) fn url(&self, host: &str) -> Read<String> {
        url(&mut Reader(self.0), host)
    }
}

/// The texts of a row, in the order of their entries.
pub(super) fn read_chunk(bytes: &[u8]) -> impl Iterator<Item = Read<Text<'_>>> {
    let mut reader = Reader(bytes);
    std::iter::from_fn(move || if reader.0.is_empty() { None } else { Some(text(&mut reader)) })
}

fn text<'a>(reader: &mut Reader<'a>) -> Read<Text<'a>> {
    let len = reader.len()?;
    reader.bytes(len).map(Text)
}

/// Numbers that go on where they stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counters {
    pub(super) entries: u32,
    pub(super) queues: u32,
    pub(super) hosts: u32,
    pub(super) events: u64,
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
