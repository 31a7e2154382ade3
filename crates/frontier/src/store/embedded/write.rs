//! Makes rows of what a call changed, and reads back the texts of single entries.

use fjall::{Keyspace, OwnedWriteBatch};

use super::codec;
use super::inner::Inner;
use super::slots::{CHUNK, Slot};
use super::staged::Staged;
use super::texts::{self, Text};
use super::tx::to_u32;
use crate::catalog::Rows;
use crate::entry::{HostId, QueueId, Record};
use crate::error::Result;

/// Names of the values in the key space `meta`.
pub(super) mod names {
    pub(in super::super) const FORMAT: &str = "format";
    pub(in super::super) const SECRET: &str = "secret";
    pub(in super::super) const FOLD: &str = "fold";
    pub(in super::super) const NEXT_COLLECTION: &str = "next collection";
    pub(in super::super) const COLLECTION: &str = "collection/";
    pub(in super::super) const PROFILE: &str = "profile/";
    pub(in super::super) const SEED: &str = "seed/";
    pub(in super::super) const OVERALL: &str = "overall";
    pub(in super::super) const TALLY: &str = "tally/";
}

/// The name of a value that there is one of for each number.
pub(super) fn numbered(name: &str, number: u32) -> Vec<u8> {
    [name.as_bytes(), &number.to_be_bytes()].concat()
}

/// Rows of gone entries that a call which writes anyway takes away.
const BURIED_AT_ONCE: usize = if cfg!(test) { 3 } else { 1000 };

impl Inner {
    /// All that has to be written.
    pub(super) fn batch(&mut self) -> OwnedWriteBatch {
        let mut staged = std::mem::take(&mut self.staged);
        let mut batch = self.disk.db.batch();
        let first_fresh = self.slots.len() - to_u32(staged.fresh.len());
        sort(&mut staged.states);
        sort(&mut staged.hosts);
        sort(&mut staged.queues);
        self.write_fresh(&mut batch, &staged, first_fresh);
        self.write_records(&mut batch, &mut staged);
        self.write_places(&mut batch, &staged);
        self.write_meta(&mut batch, &mut staged);
        for event in &staged.events {
            batch.insert(&self.disk.events, event.position.to_be_bytes(), codec::pack(event));
        }
        for fetch in &staged.fetches {
            batch.insert(&self.disk.fetches, fetch.position.to_be_bytes(), codec::pack(fetch));
        }
        for (key, value) in staged.notes.drain() {
            write(&mut batch, &self.disk.notes, key, value);
        }
        self.bury(&mut batch);
        let row = self.log_row(&staged, first_fresh);
        let appended = row.len();
        batch.insert(&self.disk.log, self.fold.next_row(appended).to_be_bytes(), row);
        self.mark_changed(&staged, first_fresh);
        self.fold(&mut batch, appended);
        staged.fresh.clear();
        self.staged.fresh = staged.fresh;
        batch
    }

    fn mark_changed(&mut self, staged: &Staged, first_fresh: u32) {
        for &number in &staged.states {
            self.fold.touch_entry(number);
        }
        for number in first_fresh..self.slots.len() {
            self.fold.touch_entry(number);
        }
        for &number in &staged.hosts {
            self.fold.touch_host(number);
        }
    }

    fn write_fresh(&mut self, batch: &mut OwnedWriteBatch, staged: &Staged, first: u32) {
        for (place, record) in staged.fresh.records() {
            let number = first + to_u32(place);
            if let Some(slot) = self.slots.get_mut(number).filter(|slot| !slot.is_removed()) {
                slot.set_has_record(true);
                batch.insert(&self.disk.records, codec::key(number), codec::pack(record));
            }
        }
        for (place, row) in staged.fresh.rows() {
            batch.insert(&self.disk.urls, codec::key(first + to_u32(place)), &*row);
        }
    }

    fn write_records(&self, batch: &mut OwnedWriteBatch, staged: &mut Staged) {
        let mut records: Vec<(u32, Record)> = staged.records.drain().collect();
        records.sort_unstable_by_key(|(number, _)| *number);
        for (number, record) in records {
            batch.insert(&self.disk.records, codec::key(number), codec::pack(&record));
        }
        for number in &staged.forgotten {
            batch.remove(&self.disk.records, codec::key(*number));
        }
    }

    fn write_places(&self, batch: &mut OwnedWriteBatch, staged: &Staged) {
        let mut named = staged.named_hosts.clone();
        sort(&mut named);
        for number in named {
            let host = self.host_at(HostId(number));
            let row = host.map(|host| codec::pack(&(&host.key, host.owner)));
            write(batch, &self.disk.hosts, codec::key(number), row);
        }
        for &number in &staged.queues {
            let queue = self.queue_at(QueueId(number));
            let row = queue.map(|queue| codec::pack(&(queue.collection, queue.host)));
            write(batch, &self.disk.queues, codec::key(number), row);
        }
    }

    fn write_meta(&self, batch: &mut OwnedWriteBatch, staged: &mut Staged) {
        let meta = &self.disk.meta;
        staged.tallies.sort_unstable();
        staged.tallies.dedup();
        for collection in &staged.tallies {
            let row = self.tallies.get(collection).map(codec::pack);
            write(batch, meta, numbered(names::TALLY, collection.0), row);
        }
        if let Some(before) = &staged.catalog_before {
            write_catalog(batch, meta, before.rows(), self.catalog.rows());
        }
    }

    /// Takes away rows of entries whose collections are gone.
    fn bury(&mut self, batch: &mut OwnedWriteBatch) {
        let rest = self.graveyard.len().saturating_sub(BURIED_AT_ONCE);
        for number in self.graveyard.split_off(rest) {
            let key = codec::key(number);
            batch.remove(&self.disk.records, key);
            let is_first = self.slots.get(number).is_some_and(|slot| slot.offset() == 0);
            if is_first && !self.is_chunk_alive(number) {
                batch.remove(&self.disk.urls, key);
            }
            if let Some(slot) = self.slots.get_mut(number) {
                slot.set_doomed(false);
            }
            self.fold.touch_entry(number);
        }
    }

    /// Whether an entry is left of those in a row.
    fn is_chunk_alive(&self, first: u32) -> bool {
        let mut slots = (0..CHUNK).map_while(|offset| {
            let slot = self.slots.get(first + offset)?;
            (slot.offset() == offset).then_some(slot)
        });
        slots.any(|slot| !slot.is_removed())
    }

    /// What an entry requests, and what was learned of it.
    pub(super) fn on_disk(&self, number: u32, slot: &Slot) -> Result<(String, Record)> {
        if !slot.has_record() {
            return self.text(number, slot, |text, key| text.read(key));
        }
        let row = self.disk.records.get(codec::key(number)).map_err(|cause| self.disk.reading(&cause))?;
        let record = row.ok_or(codec::Unreadable).and_then(|row| codec::unpack(&row));
        let record = record.map_err(self.disk.unreadable(format_args!("the record of entry {number}")))?;
        Ok((self.url_on_disk(number, slot)?, record))
    }

    /// What an entry requests.
    pub(super) fn url_on_disk(&self, number: u32, slot: &Slot) -> Result<String> {
        self.text(number, slot, |text, key| text.url(key))
    }

    fn text<T>(
        &self,
        number: u32,
        slot: &Slot,
        read: impl FnOnce(Text<'_>, &str) -> Result<T, codec::Unreadable>,
    ) -> Result<T> {
        let first = number.saturating_sub(slot.offset());
        let row = self.disk.urls.get(codec::key(first)).map_err(|cause| self.disk.reading(&cause))?;
        let found = row.as_ref().and_then(|row| texts::read_chunk(row).nth(slot.offset() as usize));
        let text = found.unwrap_or(Err(codec::Unreadable));
        let read = text.and_then(|text| read(text, self.key_of(slot.queue())));
        read.map_err(self.disk.unreadable(format_args!("entry {number}")))
    }
}

fn sort(numbers: &mut Vec<u32>) {
    numbers.sort_unstable();
    numbers.dedup();
}

fn write<K: Into<fjall::UserKey>>(
    batch: &mut OwnedWriteBatch,
    keyspace: &Keyspace,
    key: K,
    row: Option<Vec<u8>>,
) {
    match row {
        Some(row) => batch.insert(keyspace, key, row),
        None => batch.remove(keyspace, key),
    }
}

/// Writes only the rows that differ: a catalog of many jobs changes one at a time.
fn write_catalog(batch: &mut OwnedWriteBatch, meta: &Keyspace, before: &Rows, now: &Rows) {
    batch.insert(meta, names::NEXT_COLLECTION, codec::pack(&now.next_collection));
    for row in &now.collections {
        let known = before.collections.binary_search_by_key(&row.number, |row| row.number);
        if known.is_ok_and(|known| before.collections[known] == *row) {
            continue;
        }
        batch.insert(meta, numbered(names::COLLECTION, row.number.0), codec::pack_text(row));
    }
    for row in &before.collections {
        if now.collections.binary_search_by_key(&row.number, |row| row.number).is_err() {
            batch.remove(meta, numbered(names::COLLECTION, row.number.0));
        }
    }
    write_list(batch, meta, names::PROFILE, &before.profiles, &now.profiles);
    write_list(batch, meta, names::SEED, &before.seeds, &now.seeds);
    if before.overall != now.overall {
        batch.insert(meta, names::OVERALL, codec::pack_text(&now.overall));
    }
}

fn write_list<T: serde::Serialize + PartialEq>(
    batch: &mut OwnedWriteBatch,
    meta: &Keyspace,
    name: &str,
    before: &[T],
    now: &[T],
) {
    for (place, row) in (0..).zip(now) {
        if before.get(place as usize) != Some(row) {
            batch.insert(meta, numbered(name, place), codec::pack_text(row));
        }
    }
    for place in now.len()..before.len() {
        batch.remove(meta, numbered(name, to_u32(place)));
    }
}
