//! Looks for what is not as it should be: the memory against itself, and against the folder.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::codec;
use super::inner::Inner;
use super::recover::{self, each};
use super::rotation::{Filed, Rota};
use super::slots::Slot;
use super::texts;
use crate::catalog::Kind;
use crate::engine::{Counts, Tx};
use crate::entry::{EntryId, HostId, QueueId, Record, State, Token};
use crate::error::Result;
use crate::moment::Moment;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Where: an entry, a queue, a host, a note.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
}

/// What was looked at, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Entries that there are.
    pub entries: u64,
    /// Queues that there are.
    pub queues: u64,
    /// Hosts that there are.
    pub hosts: u64,
    /// Leases that are held.
    pub leases: u64,
    /// Records that entries have of their own.
    pub records: u64,
    /// What is wrong, at most a thousand things.
    pub findings: Vec<Finding>,
}

/// Nobody reads more, and a broken store could have millions.
const MOST_FINDINGS: usize = 1000;

impl Checked {
    pub(in crate::store) fn expect(&mut self, is_right: bool, place: impl FnOnce() -> String, problem: &str) {
        if !is_right && self.findings.len() < MOST_FINDINGS {
            self.findings.push(Finding { place: place(), problem: problem.to_owned() });
        }
    }

    fn entry(&mut self, number: u32, is_right: bool, problem: &str) {
        self.expect(is_right, || format!("entry {number}"), problem);
    }

    fn queue(&mut self, queue: QueueId, is_right: bool, problem: &str) {
        self.expect(is_right, || format!("queue {}", queue.0), problem);
    }

    fn host(&mut self, host: HostId, is_right: bool, problem: &str) {
        self.expect(is_right, || format!("host {}", host.0), problem);
    }
}

impl Inner {
    /// Looks at everything.
    pub(super) fn check(&mut self) -> Result<Checked> {
        let mut checked = Checked::default();
        self.check_entries(&mut checked);
        self.check_queues(&mut checked);
        self.check_rotation(&mut checked);
        self.check_hosts(&mut checked);
        self.check_texts(&mut checked)?;
        self.check_records(&mut checked)?;
        self.check_notes(&mut checked)?;
        self.check_folder(&mut checked)?;
        Ok(checked)
    }

    fn check_entries(&self, checked: &mut Checked) {
        let now = self.counters.now.second();
        for (number, slot) in self.slots.iter() {
            checked.entries += 1;
            let found = self.index.find(slot.hash, &self.slots);
            checked.entry(number, found == Some(number), "the index does not lead to it");
            checked.entry(number, self.queue_at(slot.queue()).is_some(), "its queue is not there");
            let may_be_ready = slot.state() == State::Queued && slot.due <= now;
            checked.entry(number, !slot.is_ready() || may_be_ready, "it is ready before its time");
            let is_leased = slot.state() == State::Leased;
            let has_lease = self.leases.of(EntryId(number)).is_some();
            checked.entry(number, is_leased == has_lease, "its state and its lease do not agree");
            let has_step = self.steps.get(number).is_some();
            checked.entry(number, slot.has_step() == has_step, "its next step is not known");
        }
        let indexed = self.index.len() as u64;
        checked.expect(
            indexed == checked.entries,
            || "index".to_owned(),
            "it has other entries than there are",
        );
    }

    /// The counters of queues and collections, and the order of queues, by looking at every entry.
    fn check_queues(&mut self, checked: &mut Checked) {
        let mut seen: FxHashMap<QueueId, (Counts, u64, Option<Order>)> = FxHashMap::default();
        for (number, slot) in self.slots.iter() {
            let (counts, ready, first) = seen.entry(slot.queue()).or_default();
            counts[slot.state() as usize] += 1;
            if slot.is_ready() {
                *ready += 1;
                *first = [*first, Some(order(number, slot))].into_iter().flatten().min();
            }
        }
        let mut totals: FxHashMap<_, Counts> = FxHashMap::default();
        for queue in self.queues.iter_mut().flatten() {
            checked.queues += 1;
            let (counts, ready, first) = seen.remove(&queue.number).unwrap_or_default();
            checked.queue(queue.number, queue.counts() == counts, "it counts other entries than it has");
            checked.queue(
                queue.number,
                u64::from(queue.ready) == ready,
                "it counts other ready entries than it has",
            );
            let is_first = queue.first(&self.slots) == first.map(|(.., number)| number);
            checked.queue(queue.number, is_first, "it would hand out another entry first");
            let total = totals.entry(queue.collection).or_default();
            total.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
        }
        for (collection, counts) in &self.totals {
            let is_right = totals.get(collection).copied().unwrap_or_default() == *counts;
            let place = || format!("collection {}", collection.0);
            checked.expect(is_right, place, "it counts other entries than it has");
        }
    }

    fn check_rotation(&mut self, checked: &mut Checked) {
        let mut filed = 0;
        for queue in self.queues.iter().flatten() {
            let rota = self.rotation.rota(queue.collection);
            let has = |is_there: fn(&Rota, Filed, QueueId) -> bool| {
                rota.is_some_and(|rota| is_there(rota, queue.filed, queue.number))
            };
            let is_filed = queue.filed == Filed::Nowhere || has(is_in);
            checked.queue(queue.number, is_filed, "the rotation does not have it");
            filed += usize::from(queue.filed != Filed::Nowhere);
            let is_known = self.find_queue(queue.collection, self.key_of(queue.number)) == Some(queue.number);
            checked.queue(queue.number, is_known, "it cannot be found by its name");
            let host = self.host_at(queue.host);
            let is_its = host.is_some_and(|host| host.queues.of(queue.collection) == Some(queue.number));
            checked.queue(queue.number, is_its, "its host does not know it");
        }
        let in_rotation = self.rotation.len();
        checked.expect(
            in_rotation == filed,
            || "rotation".to_owned(),
            "it has queues that it should not have",
        );
        self.wake_queues();
        let before: Vec<_> = self.queues.iter().flatten().map(|queue| (queue.number, queue.filed)).collect();
        for (queue, filed) in before {
            self.refile(queue);
            let now = self.queue_at(queue).map(|queue| queue.filed);
            checked.queue(queue, now == Some(filed), "it was filed in the wrong place");
        }
    }

    fn check_hosts(&self, checked: &mut Checked) {
        let mut leases: FxHashMap<HostId, BTreeSet<(Moment, Token)>> = FxHashMap::default();
        for lease in self.leases.iter() {
            checked.leases += 1;
            let is_known = self.leases.of(lease.entry) == Some(lease);
            checked.entry(lease.entry.0, is_known, "it has two leases");
            if let Some((_, host)) = self.home(lease.entry) {
                leases.entry(host).or_default().insert((lease.until, lease.token));
            }
        }
        for number in self.all_hosts() {
            checked.hosts += 1;
            let Some(host) = self.host_at(number) else { continue };
            let is_right = *host.leases() == leases.remove(&number).unwrap_or_default();
            checked.host(number, is_right, "what it has under way is not what is leased");
            let is_known = self.hosts.find(host.owner, &host.key) == Some(number);
            checked.host(number, is_known, "it cannot be found by its name");
        }
        let named = self.hosts.names() as u64;
        checked.expect(named == checked.hosts, || "hosts".to_owned(), "other names are known than there are");
    }

    /// Every entry has a text, and is known by it. Which text a planned collection knows its entries by
    /// depends on its profiles, which may have changed since: there, only that it can be read counts.
    fn check_texts(&self, checked: &mut Checked) -> Result<()> {
        let mut texts = 0;
        each(&self.disk, &self.disk.urls, "row of texts", |first, row| {
            for (number, text) in (first..).zip(texts::read_chunk(row)) {
                let Some(slot) = self.slots.live(number) else { continue };
                texts += 1;
                checked.entry(number, slot.offset() == number - first, "it lies elsewhere in its row");
                let url = text.and_then(|text| text.url(self.key_of(slot.queue())));
                checked.entry(number, url.is_ok(), "its text cannot be read");
                let is_known = url.is_ok_and(|url| {
                    !self.is_plain(slot.queue()) || self.index.hash(slot.queue(), &url) == slot.hash
                });
                checked.entry(number, is_known, "it is known by another text");
            }
            Ok(())
        })?;
        checked.expect(texts == checked.entries, || "texts".to_owned(), "some entries have none");
        Ok(())
    }

    fn is_plain(&self, queue: QueueId) -> bool {
        let row = self.queue_at(queue).and_then(|queue| self.catalog.collection_numbered(queue.collection));
        row.is_some_and(|row| row.spec.kind == Kind::Plain)
    }

    fn check_records(&self, checked: &mut Checked) -> Result<()> {
        each(&self.disk, &self.disk.records, "record", |number, row| {
            let slot = self.slots.get(number);
            let is_wanted = slot.is_some_and(|slot| slot.has_record() || slot.is_doomed());
            checked.entry(number, is_wanted, "it has a record that it does not know of");
            checked.entry(number, codec::unpack::<Record>(row).is_ok(), "its record cannot be read");
            checked.records += u64::from(slot.is_some_and(Slot::has_record));
            Ok(())
        })?;
        let expected = self.slots.iter().filter(|(_, slot)| slot.has_record()).count() as u64;
        let are_there = checked.records == expected;
        checked.expect(are_there, || "records".to_owned(), "some entries have none, though they should");
        Ok(())
    }

    /// What a start after a crash would find is what is in memory.
    fn check_folder(&self, checked: &mut Checked) -> Result<()> {
        let found = recover::load(self.disk.clone(), self.settings.clone(), Some(self.counters.now))?;
        let differs = "the folder has it otherwise than the memory";
        for number in 0..self.slots.len().max(found.slots.len()) {
            let row = |inner: &Self| {
                let mut row = Vec::new();
                if inner.slots.live(number).is_some() {
                    inner.put_entry(&mut row, number);
                }
                row
            };
            checked.entry(number, row(self) == row(&found), differs);
        }
        for number in (0..self.hosts.len()).map(HostId) {
            let parts = |inner: &Self| {
                inner.host_at(number).map(|host| (host.key.clone(), host.owner, host.state().clone()))
            };
            checked.host(number, parts(self) == parts(&found), differs);
        }
        for number in (0..self.queues.len()).map(QueueId) {
            let parts = |inner: &Self| inner.queue_at(number).map(|queue| (queue.collection, queue.host));
            checked.queue(number, parts(self) == parts(&found), differs);
        }
        let numbers = |inner: &Self| codec::Counters { now: Moment::ZERO, ..inner.counters };
        checked.expect(numbers(self) == numbers(&found), || "counters".to_owned(), differs);
        checked.expect(self.tallies == found.tallies, || "tallies".to_owned(), differs);
        let is_same = self.catalog.rows() == found.catalog.rows();
        checked.expect(is_same, || "catalog".to_owned(), differs);
        Ok(())
    }
}

/// What a queue goes by.
type Order = (std::cmp::Reverse<u16>, Option<u32>, u32);

fn order(number: u32, slot: &Slot) -> Order {
    (std::cmp::Reverse(slot.priority()), slot.is_by_due().then_some(slot.due), number)
}

fn is_in(rota: &Rota, filed: Filed, queue: QueueId) -> bool {
    match filed {
        Filed::Nowhere => true,
        Filed::Open(place) => rota.open.contains(&(place, queue)),
        Filed::Closed(until) => rota.closed.contains(&(until, queue)),
        Filed::Asleep(due) => rota.asleep.contains(&(due, queue)),
    }
}
