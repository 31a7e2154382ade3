//! Rebuilds the memory from the folder: names first, then the pages, then what the log says since.

use std::sync::Arc;

use fjall::Keyspace;
use rand::TryRng;
use rand::rngs::SysRng;
use rustc_hash::FxHashMap;

use super::codec::{self, Counters, Held, Kept, Unreadable};
use super::disk::Disk;
use super::fill::fill_queues;
use super::fold::{self, Fold};
use super::hosts::HostEntry;
use super::inner::Inner;
use super::log::{self, Note};
use super::slots::Slot;
use super::write::names;
use crate::catalog::{Catalog, Rows};
use crate::entry::{CollectionId, EntryId, HostId, Lease, QueueId, State};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::moment::Moment;
use crate::settings::Settings;
use crate::verbs::Tally;

/// The form of the rows. Raise it with every change that an older version would misread.
const FORMAT: u32 = 1;

/// Opens what the folder holds, or prepares an empty one. What is ready is worked out for `now`, or for the time of
/// the last call.
pub(super) fn load(disk: Disk, settings: Arc<Settings>, now: Option<Moment>) -> Result<Inner> {
    let secret = identify(&disk)?;
    let catalog = Arc::new(Catalog::new(read_rows(&disk)?, &settings)?);
    let mut inner = Inner::empty(disk, settings, catalog, secret);
    inner.tallies = read_tallies(&inner.disk)?;
    let mut recovery = Recovery { inner, leases: FxHashMap::default() };
    recovery.read_names()?;
    recovery.read_pages()?;
    recovery.read_log()?;
    if let Some(now) = now {
        recovery.inner.counters.now = now;
    }
    Ok(recovery.settle_in())
}

/// Checks the format, and finds the secret; a new folder is given both.
fn identify(disk: &Disk) -> Result<u64> {
    match (meta(disk, names::FORMAT, codec::unpack::<u32>)?, meta(disk, names::SECRET, codec::unpack)?) {
        (Some(found), _) if found > FORMAT => {
            Err(Error::NewerFormat { path: disk.path().to_owned(), found, known: FORMAT })
        }
        (Some(_), Some(secret)) => Ok(secret),
        (None, None) => {
            let mut secret = [0; 8];
            SysRng.try_fill_bytes(&mut secret).map_err(|cause| disk.storage(cause.to_string()))?;
            let secret = u64::from_le_bytes(secret);
            let mut batch = disk.db.batch();
            batch.insert(&disk.meta, names::FORMAT, codec::pack(&FORMAT));
            batch.insert(&disk.meta, names::SECRET, codec::pack(&secret));
            disk.commit(batch).and_then(|()| disk.sync()).map_err(|cause| disk.storage(cause))?;
            Ok(secret)
        }
        _ => Err(disk.damaged("it does not say which format it has".to_owned())),
    }
}

fn meta<T>(disk: &Disk, name: &str, read: impl Fn(&[u8]) -> Result<T, Unreadable>) -> Result<Option<T>> {
    let row = disk.meta.get(name).map_err(|cause| disk.reading(&cause))?;
    row.map(|row| read(&row).map_err(disk.unreadable(name))).transpose()
}

/// The values that there is one of for each number, by number.
fn list<T>(disk: &Disk, name: &str, read: impl Fn(&[u8]) -> Result<T, Unreadable>) -> Result<Vec<(u32, T)>> {
    let rows = disk.meta.prefix(name).map(|row| {
        let (key, row) = row.into_inner().map_err(|cause| disk.reading(&cause))?;
        let entry = codec::number(&key[name.len()..]).and_then(|number| Ok((number, read(&row)?)));
        entry.map_err(disk.unreadable(name))
    });
    rows.collect()
}

fn read_rows(disk: &Disk) -> Result<Rows> {
    fn rows<T>(numbered: Vec<(u32, T)>) -> Vec<T> {
        numbered.into_iter().map(|(_, row)| row).collect()
    }
    Ok(Rows {
        collections: rows(list(disk, names::COLLECTION, codec::unpack_text)?),
        next_collection: meta(disk, names::NEXT_COLLECTION, codec::unpack)?.unwrap_or_default(),
        profiles: rows(list(disk, names::PROFILE, codec::unpack_text)?),
        seeds: rows(list(disk, names::SEED, codec::unpack_text)?),
        overall: meta(disk, names::OVERALL, codec::unpack_text)?.unwrap_or_default(),
    })
}

fn read_tallies(disk: &Disk) -> Result<FxHashMap<CollectionId, Tally>> {
    let tallies = list(disk, names::TALLY, codec::unpack)?;
    Ok(tallies.into_iter().map(|(collection, tally)| (CollectionId(collection), tally)).collect())
}

/// Hands every row of a key space, with its number, to `take`.
pub(super) fn each(
    disk: &Disk,
    keyspace: &Keyspace,
    what: &str,
    mut take: impl FnMut(u32, &[u8]) -> Result<(), Unreadable>,
) -> Result<()> {
    for row in keyspace.iter() {
        let (key, row) = row.into_inner().map_err(|cause| disk.reading(&cause))?;
        let number = codec::number(&key).map_err(disk.unreadable(format_args!("the number of a {what}")))?;
        take(number, &row).map_err(disk.unreadable(format_args!("{what} {number}")))?;
    }
    Ok(())
}

/// A store that is being read.
struct Recovery {
    inner: Inner,
    /// The leases found so far: each may end in a later row of the log.
    leases: FxHashMap<u32, Lease>,
}

impl Recovery {
    fn read_names(&mut self) -> Result<()> {
        let (disk, inner) = (self.inner.disk.clone(), &mut self.inner);
        each(&disk, &disk.hosts, "host", |number, row| {
            let (key, owner): (Box<str>, Option<CollectionId>) = codec::unpack(row)?;
            while inner.hosts.len() < number {
                inner.hosts.push(None);
            }
            inner.hosts.push(Some(HostEntry::new(&key, owner)));
            Ok(())
        })?;
        each(&disk, &disk.queues, "queue", |number, row| {
            let parts: (CollectionId, HostId) = codec::unpack(row)?;
            if inner.host_at(parts.1).is_none() {
                return Err(Unreadable);
            }
            while inner.queues.len() < number {
                inner.add_queue(None);
            }
            inner.add_queue(Some(parts));
            Ok(())
        })
    }

    /// Where entries and hosts stood when their pages were written.
    fn read_pages(&mut self) -> Result<()> {
        let disk = self.inner.disk.clone();
        each(&disk, &disk.pages, "page", |page, row| {
            fold::read_entries(page, row, |number, kept| self.adopt(number, kept))
        })?;
        each(&disk, &disk.host_pages, "page of hosts", |page, row| {
            fold::read_hosts(page, row, |host, state| self.adopt_host(host, state))
        })
    }

    /// What was changed since.
    fn read_log(&mut self) -> Result<()> {
        let disk = self.inner.disk.clone();
        let mut fold = Fold::resume(meta(&disk, names::FOLD, codec::unpack)?);
        for row in disk.log.iter() {
            let (key, row) = row.into_inner().map_err(|cause| disk.reading(&cause))?;
            let number = key.as_ref().try_into().map(u64::from_be_bytes).map_err(|_| Unreadable);
            let number = number.map_err(disk.unreadable("the number of a row of the log"))?;
            let read = log::read(&row, |note| match note {
                Note::Entry(number, kept) => {
                    fold.touch_entry(number);
                    self.adopt(number, kept)
                }
                Note::Host(host, state) => {
                    fold.touch_host(host.0);
                    self.adopt_host(host, *state);
                    Ok(())
                }
            });
            self.inner.counters = read.map_err(disk.unreadable(format_args!("row {number} of the log")))?;
            fold.found_row(number, row.len());
        }
        self.inner.fold = fold;
        Ok(())
    }

    fn adopt_host(&mut self, host: HostId, state: Host) {
        // One that is gone has no name any more, and is not missed.
        if let Some(host) = self.inner.host_mut(host) {
            host.set_state(state);
        }
    }

    /// Takes in what is known of an entry; it may be known already.
    fn adopt(&mut self, number: u32, kept: Kept) -> Result<(), Unreadable> {
        let slots = &mut self.inner.slots;
        slots.pad_to(number.checked_add(1).ok_or(Unreadable)?);
        let place = slots.get_mut(number).ok_or(Unreadable)?;
        let (had_step, was_leased) = (place.has_step(), place.state() == State::Leased);
        let (slot, step, lease) = unpacked(kept);
        *place = slot;
        if had_step || step.is_some() {
            self.inner.steps.set(number, step, false);
        }
        if let Some(lease) = lease {
            self.leases.insert(number, lease.of(EntryId(number)));
        } else if was_leased {
            self.leases.remove(&number);
        }
        Ok(())
    }

    /// Builds what is not kept on disk: index, queues, rotation and alarms.
    fn settle_in(self) -> Inner {
        let Self { mut inner, leases } = self;
        inner.slots.pad_to(inner.counters.entries);
        while inner.hosts.len() < inner.counters.hosts {
            inner.hosts.push(None);
        }
        while inner.queues.len() < inner.counters.queues {
            inner.add_queue(None);
        }
        inner.counters = Counters {
            entries: inner.slots.len(),
            hosts: inner.hosts.len(),
            queues: inner.queues.len(),
            ..inner.counters
        };
        inner.sort_out();
        let Inner { index, slots, queues, .. } = &mut inner;
        std::thread::scope(|scope| {
            scope.spawn(|| index.fill(slots));
            fill_queues(queues, slots);
        });
        for queue in inner.queues.iter().flatten() {
            let total = inner.totals.entry(queue.collection).or_default();
            total.iter_mut().zip(queue.counts()).for_each(|(total, count)| *total += count);
        }
        for lease in leases.into_values() {
            inner.put_lease(lease);
        }
        for queue in 0..inner.queues.len() {
            inner.refile(QueueId(queue));
        }
        inner
    }
}

impl Inner {
    /// Decides which entries are ready, and which are gone with their collections.
    fn sort_out(&mut self) {
        let now = self.counters.now.second();
        let is_there: Vec<bool> = self.queues.iter().map(Option::is_some).collect();
        for number in 0..self.slots.len() {
            let Some(slot) = self.slots.get_mut(number) else { continue };
            if slot.is_removed() && !slot.is_doomed() {
                continue;
            }
            if slot.is_removed() || is_there.get(slot.queue().0 as usize) != Some(&true) {
                self.doom(number);
                continue;
            }
            let is_queued = slot.state() == State::Queued;
            slot.set_ready(is_queued && slot.due <= now);
            if slot.has_step() {
                let step = self.steps.get(number);
                self.steps.set(number, step, is_queued);
            }
        }
    }

    /// An entry whose collection is gone.
    fn doom(&mut self, number: u32) {
        self.steps.set(number, None, false);
        if let Some(slot) = self.slots.get_mut(number) {
            slot.remove();
            slot.set_doomed(true);
        }
        self.graveyard.push(number);
    }
}

/// What is known of an entry, as the memory has it.
fn unpacked(kept: Kept) -> (Slot, Option<Moment>, Option<Held>) {
    match kept {
        Kept::Removed { offset, is_doomed } => {
            let mut slot = Slot::removed(offset);
            slot.set_doomed(is_doomed);
            (slot, None, None)
        }
        Kept::Live { hash, offset, standing, has_record, lease } => {
            let mut slot = Slot::new(hash, offset, &standing);
            slot.set_has_record(has_record);
            (slot, standing.step, lease)
        }
    }
}
