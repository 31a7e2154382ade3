//! The texts of entries: rows of up to 64 that came in one call, written once.

use forager_core::sentinel::velocity::Velocity;
use serde::{Deserialize, Serialize};

use super::codec::{Read, Reader, Unreadable, put, put_packed, unpack};
use crate::entry::{Origin, Record};

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

impl<'a> BirthRef<'a> {
    fn of(record: &'a Record) -> Self {
        Self {
            origin: &record.origin,
            length: record.length,
            best_link: record.best_link,
            linked_from: &record.linked_from,
            due_because: record.due_because.as_deref(),
        }
    }
}

/// Whether a record says no more than the row of a new entry can.
pub(super) fn is_of_birth(record: &Record) -> bool {
    record.abandoned == 0
        && record.errors == 0
        && record.not_found == 0
        && record.velocity.to_bits() == Velocity::default().get().to_bits()
        && record.scans == 0
        && record.last_changed.is_none()
        && record.fingerprint.is_none()
        && record.history.is_empty()
}

/// Appends the text of an entry to a row in the making. `host` is the key of its queue, which need not be written
/// again.
pub(super) fn put_text(row: &mut Vec<u8>, host: &str, url: &str, record: &Record) {
    put_sized(row, |text| {
        put_url(text, host, url);
        put_packed(text, &BirthRef::of(record));
    });
}

/// Appends what `write` does, with its length before it. Most texts have a length of one byte, and need not be moved.
fn put_sized(row: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = row.len();
    row.push(0);
    write(row);
    let len = row.len() - start - 1;
    match u8::try_from(len) {
        Ok(short) if short < 0x80 => row[start] = short,
        _ => {
            let mut prefix = Vec::with_capacity(5);
            put(&mut prefix, len as u64);
            row.splice(start..=start, prefix);
        }
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

/// Appends a text that was just written to another row, with what is known of its entry now.
pub(super) fn put_again(row: &mut Vec<u8>, text: &[u8], record: &Record) {
    put_sized(row, |out| {
        out.extend_from_slice(url_part(text).unwrap_or_default());
        put_packed(out, &BirthRef::of(record));
    });
}

fn url_part(text: &[u8]) -> Read<&[u8]> {
    let mut reader = Reader(text);
    reader.len()?;
    let start = reader.0;
    reader.byte()?;
    let len = reader.len()?;
    reader.bytes(len)?;
    Ok(&start[..start.len() - reader.0.len()])
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{EntryId, How};
    use crate::moment::Moment;

    #[test]
    fn texts_are_read_as_they_were_written() {
        let origin = Origin {
            created: Moment::from_second(1_800_000_000),
            how: How::Sitemap,
            source: Some(EntryId(7)),
            relevance: Some(1000),
            metadata: Some("{\"a\":1}".into()),
        };
        let mut record = Record::new(origin, Some(3));
        (record.best_link, record.linked_from) = (Some(800), vec![1, 2]);
        record.due_because = Some("why not".into());
        assert!(is_of_birth(&record));
        let urls = [
            "https://host.example/a",
            "http://host.example/a",
            "host.example:8080/a",
            "https://www.host.example/a",
            "https://other.example/host.example",
            "",
        ];
        let mut row = Vec::new();
        for url in urls {
            put_text(&mut row, "host.example", url, &record);
        }
        let read: Read<Vec<_>> = read_chunk(&row).map(|text| text?.read("host.example")).collect();
        let expected: Vec<_> = urls.iter().map(|url| ((*url).to_owned(), record.clone())).collect();
        assert_eq!(read, Ok(expected));
        assert!(row.len() < 6 * 60, "{} bytes: the host is not written again", row.len());
    }

    #[test]
    fn what_was_learned_needs_a_row_of_its_own() {
        let changes: [fn(&mut Record); 5] = [
            |record| record.errors = 1,
            |record| record.abandoned = 1,
            |record| record.scans = 1,
            |record| record.fingerprint = Some("f".into()),
            |record| record.velocity = 0.123,
        ];
        for change in changes {
            let mut record = Record::new(Origin::default(), None);
            change(&mut record);
            assert!(!is_of_birth(&record), "{record:?}");
        }
    }
}
