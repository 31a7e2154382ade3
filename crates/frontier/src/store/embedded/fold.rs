//! Writes what has changed page by page, so that old rows of the log can go.
//!
//! Pages are gone through in rounds, a little with every call, and only those that changed are
//! written. When a round is over, every page is at least as new as the start of the round, and
//! the rows of the log before that are not needed any more.

use fjall::OwnedWriteBatch;
use serde::{Deserialize, Serialize};

use super::codec::{self, Reader, Unreadable};
use super::hosts::HostEntry;
use super::inner::Inner;
use super::write::names;
use crate::entry::HostId;
use crate::host::Host;

/// Entries of a page. Tests have small pages, so that their few entries fill many.
pub(super) const ENTRIES: u32 = if cfg!(test) { 4 } else { 512 };
/// Hosts of a page.
pub(super) const HOSTS: u32 = if cfg!(test) { 2 } else { 128 };
/// Bytes of pages that are written for each byte of the log: more makes a shorter log, and more work.
const PACE: usize = 2;
/// About the size of a page.
const PAGE_BYTES: usize = if cfg!(test) { 100 } else { 12 * 1024 };
/// A log of this many bytes is read in no time, and need not get shorter.
const SHORT: u64 = if cfg!(test) { 500 } else { 16 * 1024 * 1024 };
/// Old rows of the log that are taken away with each page. There may be many calls to a page, so it is a
/// good deal more than one.
const TRIMMED_AT_ONCE: u64 = 250;

/// How far the pages are behind the log.
#[derive(Clone, Debug, Default)]
pub(super) struct Fold {
    /// What the next start has to know.
    marks: Marks,
    /// The bytes of the log.
    log_bytes: u64,
    /// Bytes of pages that may be written: small calls save up for a page.
    credit: usize,
    /// Which pages have changed since they were written; those of entries, and those of hosts.
    dirty_entries: Vec<bool>,
    dirty_hosts: Vec<bool>,
}

/// Where the rounds have got to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marks {
    /// The number of the next row of the log.
    #[serde(skip)]
    next_row: u64,
    /// The first row of the log that is still there.
    first_row: u64,
    /// The first row that is still needed.
    needed_from: u64,
    /// The first row that will be needed after this round.
    round_from: u64,
    /// The next page of entries in this round.
    next_entries: u32,
    /// The next page of hosts in this round.
    next_hosts: u32,
}

impl Fold {
    /// Goes on where the last process stopped.
    pub(super) fn resume(marks: Option<Marks>) -> Self {
        let marks = marks.unwrap_or_default();
        Self { marks: Marks { next_row: marks.first_row, ..marks }, ..Self::default() }
    }

    /// The number of the next row of the log.
    pub(super) fn rows(&self) -> u64 {
        self.marks.next_row
    }

    /// Notes that the log has this row already.
    pub(super) fn found_row(&mut self, number: u64, bytes: usize) {
        self.log_bytes += bytes as u64;
        self.marks.next_row = number + 1;
    }

    /// Notes that an entry has changed.
    pub(super) fn touch_entry(&mut self, number: u32) {
        touch(&mut self.dirty_entries, number / ENTRIES);
    }

    /// Notes that a host has changed.
    pub(super) fn touch_host(&mut self, number: u32) {
        touch(&mut self.dirty_hosts, number / HOSTS);
    }

    /// Takes a number for a row of the log.
    pub(super) fn next_row(&mut self, bytes: usize) -> u64 {
        self.log_bytes += bytes as u64;
        self.marks.next_row += 1;
        self.marks.next_row - 1
    }

    /// The next page of this round that has changed.
    fn next_page(&mut self) -> Option<Page> {
        if let Some(page) = next(&mut self.dirty_entries, &mut self.marks.next_entries) {
            return Some(Page::Entries(page));
        }
        next(&mut self.dirty_hosts, &mut self.marks.next_hosts).map(Page::Hosts)
    }

    /// A round is over, and another one begins.
    fn end_round(&mut self) {
        let marks = &mut self.marks;
        (marks.needed_from, marks.round_from) = (marks.round_from, marks.next_row);
        (marks.next_entries, marks.next_hosts) = (0, 0);
    }
}

enum Page {
    Entries(u32),
    Hosts(u32),
}

fn touch(dirty: &mut Vec<bool>, page: u32) {
    let page = page as usize;
    if dirty.len() <= page {
        dirty.resize(page + 1, false);
    }
    dirty[page] = true;
}

/// The first page from `from` on that has changed. It does not count as changed any more.
fn next(dirty: &mut [bool], from: &mut u32) -> Option<u32> {
    let rest = dirty.get_mut(*from as usize..).unwrap_or_default();
    let Some(ahead) = rest.iter().position(|is_dirty| *is_dirty) else {
        *from += super::tx::to_u32(rest.len());
        return None;
    };
    rest[ahead] = false;
    let page = *from + super::tx::to_u32(ahead);
    *from = page + 1;
    Some(page)
}

impl Inner {
    /// Writes some pages, after a call that appended so many bytes to the log.
    pub(super) fn fold(&mut self, batch: &mut OwnedWriteBatch, appended: usize) {
        if self.fold.log_bytes < SHORT {
            return;
        }
        self.fold.credit += appended * PACE;
        if self.fold.credit < PAGE_BYTES {
            return;
        }
        while self.fold.credit > 0 {
            let Some(page) = self.fold.next_page() else {
                self.fold.end_round();
                break;
            };
            let written = self.write_page(batch, &page);
            self.fold.credit = self.fold.credit.saturating_sub(written);
        }
        self.trim(batch);
        batch.insert(&self.disk.meta, names::FOLD, codec::pack(&self.fold.marks));
    }

    fn write_page(&self, batch: &mut OwnedWriteBatch, page: &Page) -> usize {
        let (keyspace, key, row) = match page {
            Page::Entries(page) => (&self.disk.pages, *page, self.entries_row(*page)),
            Page::Hosts(page) => (&self.disk.host_pages, *page, self.hosts_row(*page)),
        };
        let len = row.len();
        batch.insert(keyspace, codec::key(key), row);
        len
    }

    fn entries_row(&self, page: u32) -> Vec<u8> {
        let mut out = Vec::with_capacity(32 * ENTRIES as usize);
        for number in (page * ENTRIES..self.slots.len()).take(ENTRIES as usize) {
            self.put_entry(&mut out, number);
        }
        out
    }

    fn hosts_row(&self, page: u32) -> Vec<u8> {
        let mut out = Vec::with_capacity(32 * HOSTS as usize);
        for host in self.hosts.iter_from(page * HOSTS).take(HOSTS as usize) {
            codec::put_block(&mut out, &host.map(HostEntry::state));
        }
        out
    }

    /// Takes away rows of the log that are not needed any more.
    fn trim(&mut self, batch: &mut OwnedWriteBatch) {
        let Marks { first_row, needed_from, next_row, .. } = self.fold.marks;
        // The last row stays in any case, for the counters.
        let end = needed_from.min(next_row - 1).min(first_row + TRIMMED_AT_ONCE);
        for row in first_row..end {
            batch.remove(&self.disk.log, row.to_be_bytes());
        }
        if end > first_row {
            // All rows count alike: what matters is that the whole length goes with all of them.
            self.fold.log_bytes -= self.fold.log_bytes * (end - first_row) / (next_row - first_row);
            self.fold.marks.first_row = end;
        }
    }
}

/// Reads a page of entries, and hands each to `take`.
pub(super) fn read_entries(
    page: u32,
    row: &[u8],
    mut take: impl FnMut(u32, codec::Kept) -> Result<(), Unreadable>,
) -> Result<(), Unreadable> {
    let mut reader = Reader(row);
    for number in (page.checked_mul(ENTRIES).ok_or(Unreadable)?..).take(ENTRIES as usize) {
        if reader.0.is_empty() {
            return Ok(());
        }
        take(number, codec::entry(&mut reader)?)?;
    }
    Ok(())
}

/// Reads a page of hosts, and hands each that there was to `take`.
pub(super) fn read_hosts(
    page: u32,
    row: &[u8],
    mut take: impl FnMut(HostId, Host),
) -> Result<(), Unreadable> {
    let mut reader = Reader(row);
    for number in (page.checked_mul(HOSTS).ok_or(Unreadable)?..).take(HOSTS as usize) {
        if reader.0.is_empty() {
            return Ok(());
        }
        if let Some(host) = reader.block()? {
            take(HostId(number), host);
        }
    }
    Ok(())
}
