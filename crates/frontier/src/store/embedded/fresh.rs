//! The entries that a call adds, apart from their slots: rows of texts in the making.
//!
//! A record is ten times the size of what is written of it, so that many of them would be copied through more memory
//! than caches hold. Each entry is written to its row at once; only what a row cannot say is kept as it is.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::codec::{Read, Unreadable};
use super::slots::CHUNK;
use super::texts::{self, Text};
use crate::entry::Record;

/// For calls of so many bytes the room of the last one is kept for the next, which most likely adds as many.
const KEPT_READY: usize = 2 << 20;

/// The entries that a call adds, by their place among them.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    /// Their texts, one after another, as they are written.
    texts: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
    /// What is known of those of which it is more, or something else, than their texts say.
    records: FxHashMap<usize, Record>,
}

impl Fresh {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds an entry. `host` is the key of its queue.
    pub(super) fn push(&mut self, host: &str, url: &str, record: Record) {
        texts::put_text(&mut self.texts, host, url, &record);
        if !texts::is_of_birth(&record) {
            self.records.insert(self.ends.len(), record);
        }
        self.ends.push(self.texts.len());
    }

    /// What an entry requests, and what is known of it.
    pub(super) fn read(&self, place: usize, host: &str) -> Read<(String, Record)> {
        let text = self.text(place)?;
        match self.records.get(&place) {
            Some(record) => Ok((text.url(host)?, record.clone())),
            None => text.read(host),
        }
    }

    /// Something else is known of an entry.
    pub(super) fn set_record(&mut self, place: usize, record: Record) {
        self.records.insert(place, record);
    }

    /// What is known beyond what texts can say.
    pub(super) fn records(&self) -> impl Iterator<Item = (usize, &Record)> {
        self.records
            .iter()
            .map(|(place, record)| (*place, record))
            .filter(|(_, record)| !texts::is_of_birth(record))
    }

    /// The rows, each with the place of its first entry.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, Cow<'_, [u8]>)> {
        let rows = (0..self.len()).step_by(CHUNK as usize);
        rows.map(|first| (first, self.row(first..self.len().min(first + CHUNK as usize))))
    }

    /// A row; it is written anew if something else is known of one of its entries than when it came.
    fn row(&self, places: Range<usize>) -> Cow<'_, [u8]> {
        if self.records.is_empty() {
            return self.texts[self.start(places.start)..self.start(places.end)].into();
        }
        let mut row = Vec::new();
        for place in places {
            let text = &self.texts[self.start(place)..self.start(place + 1)];
            match self.records.get(&place) {
                Some(record) => texts::put_again(&mut row, text, record),
                None => row.extend_from_slice(text),
            }
        }
        row.into()
    }

    fn start(&self, place: usize) -> usize {
        place.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    fn text(&self, place: usize) -> Read<Text<'_>> {
        let bytes = &self.texts[self.start(place)..self.start(place + 1)];
        texts::read_chunk(bytes).next().unwrap_or(Err(Unreadable))
    }

    /// Forgets them, but not the room that they took, unless that is too much to be kept.
    pub(super) fn clear(&mut self) {
        self.ends.clear();
        self.texts.clear();
        self.texts.shrink_to(KEPT_READY);
        self.ends.shrink_to(KEPT_READY / 8);
        self.records = FxHashMap::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Origin;

    const HOST: &str = "a.example";

    fn url(place: usize) -> String {
        // Some texts are long enough for a length of two bytes.
        format!("https://{HOST}/{}", "x".repeat(place * 3))
    }

    fn filled(count: usize) -> Fresh {
        let mut fresh = Fresh::default();
        (0..count).for_each(|place| fresh.push(HOST, &url(place), Record::new(Origin::default(), None)));
        fresh
    }

    /// What the rows say, in order.
    fn written(fresh: &Fresh) -> Vec<(String, Record)> {
        let texts = |(_, row): (usize, Cow<'_, [u8]>)| -> Vec<(String, Record)> {
            texts::read_chunk(&row)
                .map(|text| text.and_then(|text| text.read(HOST)).expect("a text"))
                .collect()
        };
        fresh.rows().flat_map(texts).collect()
    }

    #[test]
    fn rows_hold_what_was_added_and_begin_where_they_should() {
        let fresh = filled(2 * CHUNK as usize + 1);
        let firsts: Vec<usize> = fresh.rows().map(|(first, _)| first).collect();
        assert_eq!(firsts, [0, 64, 128]);
        let urls: Vec<String> = written(&fresh).into_iter().map(|(url, _)| url).collect();
        assert_eq!(urls, (0..fresh.len()).map(url).collect::<Vec<_>>());
        assert_eq!(fresh.records().count(), 0, "all of it is in the rows");
    }

    #[test]
    fn what_is_known_later_takes_the_place_of_what_was() {
        let mut fresh = filled(70);
        let linked = Record { best_link: Some(7), ..Record::new(Origin::default(), None) };
        let scanned = Record { scans: 1, ..linked.clone() };
        fresh.set_record(3, linked.clone());
        fresh.set_record(66, scanned.clone());
        assert_eq!(fresh.read(3, HOST), Ok((url(3), linked.clone())));
        assert_eq!(fresh.read(66, HOST), Ok((url(66), scanned.clone())));
        assert_eq!(written(&fresh)[3], (url(3), linked), "a row can say this");
        assert_eq!(written(&fresh)[4].0, url(4));
        assert_eq!(fresh.records().collect::<Vec<_>>(), [(66, &scanned)], "but not that");
    }

    #[test]
    fn a_cleared_one_is_as_good_as_new() {
        let mut fresh = filled(5);
        fresh.set_record(0, Record { scans: 1, ..Record::default() });
        fresh.clear();
        assert!(fresh.is_empty() && fresh.rows().next().is_none());
        fresh.push(HOST, &url(1), Record::new(Origin::default(), None));
        assert_eq!(fresh.read(0, HOST).map(|(url, _)| url), Ok(url(1)));
    }
}
