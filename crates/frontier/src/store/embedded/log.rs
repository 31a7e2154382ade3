//! What each call changed, one row a call.
//!
//! A row for each changed entry and host would cost more than all the rest of a call. So a call
//! appends one row with all of them, and [`fold`](super::fold) writes what has changed page by page
//! at leisure. Every note gives a whole new state: reading one twice, or after a page that
//! already knows it, does no harm.

use super::codec::{self, Counters, Reader, Unreadable};
use super::inner::Inner;
use super::staged::Staged;
use crate::entry::{EntryId, HostId};
use crate::host::Host;

const ENTRY: u8 = 1;
const FRESH: u8 = 2;
const HOST: u8 = 3;

/// Something that a call changed.
pub(super) enum Note {
    /// An entry.
    Entry(u32, codec::Kept),
    /// A host.
    Host(HostId, Box<Host>),
}

impl Inner {
    /// The row of this call.
    pub(super) fn log_row(&self, staged: &Staged, first_fresh: u32) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 32 * (staged.fresh.len() + staged.states.len()));
        codec::put_block(&mut out, &self.counters);
        for &number in &staged.states {
            out.push(ENTRY);
            codec::put(&mut out, number.into());
            self.put_entry(&mut out, number);
        }
        if !staged.fresh.is_empty() {
            out.push(FRESH);
            codec::put(&mut out, first_fresh.into());
            codec::put(&mut out, staged.fresh.len() as u64);
            for number in first_fresh..self.slots.len() {
                self.put_entry(&mut out, number);
            }
        }
        for &number in &staged.hosts {
            if let Some(host) = self.host_at(HostId(number)) {
                out.push(HOST);
                codec::put(&mut out, number.into());
                codec::put_block(&mut out, host.state());
            }
        }
        out
    }

    /// Writes what has to be known of an entry.
    pub(super) fn put_entry(&self, out: &mut Vec<u8>, number: u32) {
        if let Some(slot) = self.slots.get(number) {
            let lease = if slot.is_removed() { None } else { self.leases.of(EntryId(number)) };
            codec::put_entry(out, slot, self.step_of(number, slot), lease);
        }
    }
}

/// Reads a row, and hands each note to `take`. Returns the counters of the time.
pub(super) fn read(
    row: &[u8],
    mut take: impl FnMut(Note) -> Result<(), Unreadable>,
) -> Result<Counters, Unreadable> {
    let mut reader = Reader(row);
    let counters = reader.block()?;
    while !reader.0.is_empty() {
        match reader.byte()? {
            ENTRY => {
                let number = reader.short()?;
                take(Note::Entry(number, codec::entry(&mut reader)?))?;
            }
            FRESH => {
                let (first, count) = (reader.short()?, reader.short()?);
                for number in (first..).take(count as usize) {
                    take(Note::Entry(number, codec::entry(&mut reader)?))?;
                }
            }
            HOST => {
                let number = HostId(reader.short()?);
                take(Note::Host(number, Box::new(reader.block()?)))?;
            }
            _ => return Err(Unreadable),
        }
    }
    Ok(counters)
}
