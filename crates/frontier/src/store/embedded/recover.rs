//! Rebuilds the memory from the folder.

use std::sync::Arc;

use rand::TryRng;
use rand::rngs::SysRng;
use rustc_hash::FxHashMap;

use super::codec::{self, Counters, StateRow, Unreadable};
use super::disk::Disk;
use super::index::{Index, Names};
use super::inner::{HostEntry, Inner};
use super::leases::Leases;
use super::rotation::Rotation;
use super::slots::{Slot, Slots};
use super::staged::Staged;
use super::steps::Steps;
use super::tx::to_u32;
use super::undo::Undo;
use super::write::names;
use crate::catalog::{Catalog, Rows};
use crate::entry::{CollectionId, HostId};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::settings::Settings;
use crate::verbs::Tally;

/// The form of the rows. Raise it with every change that an older version would misread.
const FORMAT: u32 = 1;

/// Opens what the folder holds, or prepares an empty one.
pub(super) fn load(disk: Disk, settings: Arc<Settings>) -> Result<Inner> {
    let secret = identify(&disk)?;
    let counters = meta(&disk, names::COUNTERS)?.unwrap_or_default();
    let catalog = Arc::new(Catalog::new(read_rows(&disk)?, &settings)?);
    let mut inner = Inner {
        settings,
        catalog,
        counters,
        tallies: read_tallies(&disk)?,
        slots: Slots::default(),
        index: Index::new(secret),
        names: Names::default(),
        hosts: Vec::new(),
        queues: Vec::new(),
        leases: Leases::default(),
        steps: Steps::default(),
        rotation: Rotation::default(),
        totals: FxHashMap::default(),
        graveyard: Vec::new(),
        staged: Staged::default(),
        undo: Undo::default(),
        disk,
    };
    inner.read_places()?;
    inner.read_urls()?;
    let leases = inner.read_states()?;
    inner.settle_in(&leases);
    Ok(inner)
}

/// Checks the format, and finds the secret; a new folder is given both.
fn identify(disk: &Disk) -> Result<u64> {
    match (meta::<u32>(disk, names::FORMAT)?, meta(disk, names::SECRET)?) {
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

fn meta<T: serde::de::DeserializeOwned>(disk: &Disk, name: &str) -> Result<Option<T>> {
    let row = disk.meta.get(name).map_err(|cause| disk.reading(&cause))?;
    row.map(|row| codec::unpack(&row).map_err(disk.unreadable(name))).transpose()
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
    let without_numbers = |(_, row)| row;
    Ok(Rows {
        collections: list(disk, names::COLLECTION, codec::unpack_text)?
            .into_iter()
            .map(without_numbers)
            .collect(),
        next_collection: meta(disk, names::NEXT_COLLECTION)?.unwrap_or_default(),
        profiles: list(disk, names::PROFILE, codec::unpack_text)?.into_iter().map(|(_, row)| row).collect(),
        seeds: list(disk, names::SEED, codec::unpack_text)?.into_iter().map(|(_, row)| row).collect(),
    })
}

fn read_tallies(disk: &Disk) -> Result<FxHashMap<CollectionId, Tally>> {
    let tallies = list(disk, names::TALLY, codec::unpack)?;
    Ok(tallies.into_iter().map(|(collection, tally)| (CollectionId(collection), tally)).collect())
}

impl Inner {
    fn read_places(&mut self) -> Result<()> {
        let disk = self.disk.clone();
        for row in disk.hosts.iter() {
            let (key, row) = row.into_inner().map_err(|cause| disk.reading(&cause))?;
            let number = codec::number(&key).map_err(disk.unreadable("the number of a host"))?;
            let host: (Box<str>, Option<CollectionId>, Host) =
                codec::unpack(&row).map_err(disk.unreadable(format_args!("host {number}")))?;
            while self.hosts.len() < number as usize {
                self.add_host(None);
            }
            self.add_host(Some(HostEntry::new(&host.0, host.1, host.2)));
        }
        while self.hosts.len() < self.counters.hosts as usize {
            self.add_host(None);
        }
        for row in disk.queues.iter() {
            let (key, row) = row.into_inner().map_err(|cause| disk.reading(&cause))?;
            let number = codec::number(&key).map_err(disk.unreadable("the number of a queue"))?;
            let parts: (CollectionId, HostId) =
                codec::unpack(&row).map_err(disk.unreadable(format_args!("queue {number}")))?;
            if self.host_at(parts.1).is_none() {
                return Err(disk.damaged(format!("queue {number} has no host")));
            }
            while self.queues.len() < number as usize {
                self.add_queue(None);
            }
            self.add_queue(Some(parts));
        }
        while self.queues.len() < self.counters.queues as usize {
            self.add_queue(None);
        }
        Ok(())
    }

    /// The entries as they stood when they were new.
    fn read_urls(&mut self) -> Result<()> {
        let disk = self.disk.clone();
        for row in disk.urls.iter() {
            let (key, row) = row.into_inner().map_err(|cause| disk.reading(&cause))?;
            let first = codec::number(&key).map_err(disk.unreadable("the number of an entry"))?;
            if first < self.slots.len() {
                return Err(disk.damaged(format!("entry {first} is there twice")));
            }
            self.slots.pad_to(first);
            for (offset, newborn) in (0..).zip(codec::read_chunk(&row)) {
                let newborn = newborn.map_err(disk.unreadable(format_args!("entry {}", first + offset)))?;
                let mut slot = Slot::new(newborn.hash, offset, &newborn.standing);
                slot.set_has_record(newborn.has_record);
                self.adopt(slot, newborn.standing.step);
            }
        }
        self.slots.pad_to(self.counters.entries);
        Ok(())
    }

    /// Takes in an entry; one whose queue is gone is only waiting to be buried.
    fn adopt(&mut self, mut slot: Slot, step: Option<crate::moment::Moment>) {
        let number = self.slots.len();
        if self.queue_at(slot.queue()).is_none() {
            slot.remove();
            self.graveyard.push(number);
        } else if step.is_some() {
            self.steps.set(number, step, false);
        }
        self.slots.push(slot);
    }

    /// Where entries stand now. Returns the leases.
    fn read_states(&mut self) -> Result<Vec<crate::entry::Lease>> {
        let disk = self.disk.clone();
        let mut leases = Vec::new();
        for row in disk.states.iter() {
            let (key, row) = row.into_inner().map_err(|cause| disk.reading(&cause))?;
            let number = codec::number(&key).map_err(disk.unreadable("the number of an entry"))?;
            let row = codec::read_state_row(&row)
                .map_err(disk.unreadable(format_args!("the state of entry {number}")))?;
            let Some(slot) = self.slots.get_mut(number) else {
                return Err(disk.damaged(format!("entry {number} has a state, though it is not there")));
            };
            if slot.is_removed() {
                continue;
            }
            let StateRow::Stands { standing, has_record, lease } = row else {
                if slot.has_step() {
                    self.steps.set(number, None, false);
                }
                slot.remove();
                continue;
            };
            let had_step = slot.has_step();
            slot.set(&standing);
            slot.set_has_record(has_record);
            if had_step || standing.step.is_some() {
                self.steps.set(number, standing.step, false);
            }
            leases.extend(lease.map(|lease| codec::lease(number, lease)));
        }
        Ok(leases)
    }

    /// Builds what is not kept on disk: index, queues, rotation and alarms.
    fn settle_in(&mut self, leases: &[crate::entry::Lease]) {
        self.index.reserve(self.slots.len() as usize, &self.slots);
        for number in 0..self.slots.len() {
            let Some(slot) = self.slots.live(number).copied() else { continue };
            self.index.insert(slot.hash, number, &self.slots);
            if slot.has_step() {
                let step = self.steps.get(number);
                self.steps.set(number, step, slot.state() == crate::entry::State::Queued);
            }
            self.enter(number);
        }
        for lease in leases {
            self.put_lease(*lease);
        }
        for queue in 0..to_u32(self.queues.len()) {
            self.refile(crate::entry::QueueId(queue));
        }
        self.counters = Counters {
            entries: self.slots.len(),
            hosts: to_u32(self.hosts.len()),
            queues: to_u32(self.queues.len()),
            ..self.counters
        };
    }
}
