//! What is kept of every entry in memory: 32 bytes, found by its number.

use forager_core::hierarchy::Priority;
use forager_core::scope::Place;
use forager_core::sentinel::Risk;

use super::blocks::Blocks;
use crate::entry::{DEEPEST, QueueId, SeedId, Standing, State};
use crate::moment::Moment;

/// Stands for "none" in a number.
const NONE: u32 = u32::MAX;

const STATE: u8 = 0b11;
const BY_DUE: u8 = 1 << 2;
const HUB: u8 = 1 << 3;
const STEP: u8 = 1 << 4;
const READY: u8 = 1 << 5;
const RECORD: u8 = 1 << 6;
const DOOMED: u8 = 1 << 7;

/// What is added to a priority that orders nothing.
pub(super) const BY_ARRIVAL: u16 = 1 << 12;

const OFFSET: u8 = 0b11_1111;
const RISK_SHIFT: u8 = 6;

/// How many entries one row on disk holds at most; an offset has room for no more.
pub(super) const CHUNK: u32 = 64;

/// A standing, packed, and what else the store must know of an entry without asking the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// The keyed hash of (queue, identity), by which the entry is found.
    pub(super) hash: u64,
    queue: u32,
    seed: u32,
    /// In seconds, as the queues order by it.
    pub(super) due: u32,
    last_fetch: u32,
    depth: u16,
    /// In thousandths; over [`BY_ARRIVAL`] if the queues do not order by it.
    worth: u16,
    hops: u8,
    harvest: u8,
    flags: u8,
    /// The place within its row on disk, and the risk.
    extra: u8,
}

impl Slot {
    /// An entry that was removed. Its number is never used again.
    pub(super) const REMOVED: Self = Self {
        hash: 0,
        queue: NONE,
        seed: NONE,
        due: 0,
        last_fetch: NONE,
        depth: 0,
        worth: 0,
        hops: 0,
        harvest: 0,
        flags: 0,
        extra: 0,
    };

    /// An entry that stands at place `offset` of its row.
    pub(super) fn new(hash: u64, offset: u32, standing: &Standing) -> Self {
        let mut slot = Self { hash, ..Self::removed(offset) };
        slot.set(standing);
        slot
    }

    /// An entry that was removed from place `offset` of its row.
    pub(super) fn removed(offset: u32) -> Self {
        debug_assert!(offset < CHUNK, "a row holds no more");
        #[expect(clippy::cast_possible_truncation, reason = "less than 64")]
        let extra = offset as u8;
        Self { extra, ..Self::REMOVED }
    }

    /// Marks it as removed. It keeps its place in its row.
    pub(super) fn remove(&mut self) {
        *self = Self::removed(self.offset());
    }

    /// Whether it was removed, and rows of it are still to be taken away.
    pub(super) fn is_doomed(&self) -> bool {
        self.flags & DOOMED != 0
    }

    /// Sets whether rows of it are still to be taken away.
    pub(super) fn set_doomed(&mut self, is_doomed: bool) {
        self.set_flag(DOOMED, is_doomed);
    }

    /// Whether there is no entry here any more.
    pub(super) fn is_removed(&self) -> bool {
        self.queue == NONE
    }

    /// The queue; that of a removed entry is no queue.
    pub(super) fn queue(&self) -> QueueId {
        QueueId(self.queue)
    }

    /// Whether it waits.
    pub(super) fn state(&self) -> State {
        State::ALL[usize::from(self.flags & STATE)]
    }

    /// The place within its row on disk.
    pub(super) fn offset(&self) -> u32 {
        u32::from(self.extra & OFFSET)
    }

    /// Whether it goes by its due time among equals.
    pub(super) fn is_by_due(&self) -> bool {
        self.flags & BY_DUE != 0
    }

    /// The priority that orders its queue, in thousandths.
    pub(super) fn priority(&self) -> u16 {
        if self.worth >= BY_ARRIVAL { 0 } else { self.worth }
    }

    /// Whether its queue counts it as ready.
    pub(super) fn is_ready(&self) -> bool {
        self.flags & READY != 0
    }

    /// Sets whether its queue counts it as ready.
    pub(super) fn set_ready(&mut self, is_ready: bool) {
        self.set_flag(READY, is_ready);
    }

    /// Whether it is queued, though not ready.
    pub(super) fn is_waiting(&self) -> bool {
        !self.is_removed() && self.state() == State::Queued && !self.is_ready()
    }

    /// Whether its score steps at some time.
    pub(super) fn has_step(&self) -> bool {
        self.flags & STEP != 0
    }

    /// Whether what was learned of it has a row of its own.
    pub(super) fn has_record(&self) -> bool {
        self.flags & RECORD != 0
    }

    /// Sets whether what was learned of it has a row of its own.
    pub(super) fn set_has_record(&mut self, has_record: bool) {
        self.set_flag(RECORD, has_record);
    }

    fn set_flag(&mut self, flag: u8, is_set: bool) {
        self.flags = if is_set { self.flags | flag } else { self.flags & !flag };
    }

    /// Whether both have the same place in the same queue.
    pub(super) fn stands_like(&self, other: &Self) -> bool {
        let place = |slot: &Self| (slot.queue, slot.state(), slot.priority(), slot.due, slot.is_by_due());
        place(self) == place(other)
    }

    /// Takes over a standing; its step is kept apart.
    pub(super) fn set(&mut self, standing: &Standing) {
        self.queue = standing.queue.0;
        self.seed = standing.seed.map_or(NONE, |seed| seed.0);
        self.due = standing.due.second();
        self.last_fetch = standing.last_fetch.map_or(NONE, Moment::second);
        self.depth = standing.place.depth.min(DEEPEST.depth) as u16;
        self.hops = standing.place.hops_off_domain.min(DEEPEST.hops_off_domain) as u8;
        self.worth = worth(standing);
        self.harvest = standing.harvest;
        self.flags = (self.flags & !STATE) | standing.state as u8;
        self.extra = (self.extra & OFFSET) | ((standing.risk as u8) << RISK_SHIFT);
        self.set_flag(BY_DUE, standing.by_due);
        self.set_flag(HUB, standing.is_hub);
        self.set_flag(STEP, standing.step.is_some());
    }

    /// Where the entry stands.
    pub(super) fn standing(&self, step: Option<Moment>) -> Standing {
        const RISKS: [Risk; 4] = [Risk::Low, Risk::Medium, Risk::High, Risk::Critical];
        Standing {
            queue: self.queue(),
            seed: (self.seed != NONE).then_some(SeedId(self.seed)),
            place: Place { depth: self.depth.into(), hops_off_domain: self.hops.into() },
            priority: Priority::from_thousandths(self.worth % BY_ARRIVAL).unwrap_or(Priority::MAX),
            due: Moment::from_second(self.due),
            last_fetch: (self.last_fetch != NONE).then(|| Moment::from_second(self.last_fetch)),
            state: self.state(),
            risk: RISKS[usize::from(self.extra >> RISK_SHIFT)],
            is_hub: self.flags & HUB != 0,
            harvest: self.harvest,
            by_due: self.is_by_due(),
            by_arrival: self.worth >= BY_ARRIVAL,
            step,
        }
    }
}

/// The priority of a standing, and whether it orders anything, as one number.
pub(super) fn worth(standing: &Standing) -> u16 {
    standing.priority.thousandths() + if standing.by_arrival { BY_ARRIVAL } else { 0 }
}

/// All slots, by number.
#[derive(Debug, Default)]
pub(super) struct Slots {
    all: Blocks<Slot>,
}

impl Slots {
    /// How many numbers were given out.
    pub(super) fn len(&self) -> u32 {
        self.all.len()
    }

    /// Appends a slot.
    pub(super) fn push(&mut self, slot: Slot) {
        self.all.push(slot);
    }

    /// Takes back the last slot.
    pub(super) fn pop(&mut self) {
        self.all.pop();
    }

    /// Fills up with removed slots until there are `len`.
    pub(super) fn pad_to(&mut self, len: u32) {
        while self.len() < len {
            self.push(Slot::REMOVED);
        }
    }

    /// The slot of an entry; none if there never was one, or it was removed.
    pub(super) fn live(&self, number: u32) -> Option<&Slot> {
        self.get(number).filter(|slot| !slot.is_removed())
    }

    /// The slot of a number, also of a removed entry.
    pub(super) fn get(&self, number: u32) -> Option<&Slot> {
        self.all.get(number)
    }

    /// The slot of a number, to be changed.
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Slot> {
        self.all.get_mut(number)
    }

    /// The entries that there are from `first` on, in the order of their numbers.
    pub(super) fn iter_from(&self, first: u32) -> impl Iterator<Item = (u32, &Slot)> {
        (first..).zip(self.all.iter_from(first)).filter(|(_, slot)| !slot.is_removed())
    }

    /// All entries that there are.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Slot)> {
        self.iter_from(0)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An entry that is due at once, in the order of arrival.
    pub(in super::super) fn plain(queue: u32) -> Standing {
        Standing {
            queue: QueueId(queue),
            seed: None,
            place: Place::default(),
            priority: Priority::ZERO,
            due: Moment::ZERO,
            last_fetch: None,
            state: State::Queued,
            risk: Risk::Low,
            is_hub: false,
            harvest: 0,
            by_due: false,
            by_arrival: false,
            step: None,
        }
    }

    /// A standing of which every part says something.
    pub(in super::super) fn full() -> Standing {
        Standing {
            queue: QueueId(70_000),
            seed: Some(SeedId(3)),
            place: Place { depth: 65_535, hops_off_domain: 255 },
            priority: Priority::MAX,
            due: Moment::from_second(1_800_000_000),
            last_fetch: Some(Moment::ZERO),
            state: State::Failed,
            risk: Risk::Critical,
            is_hub: true,
            harvest: 255,
            by_due: true,
            by_arrival: true,
            step: Some(Moment::from_millisecond(1_800_000_000_123)),
        }
    }

    #[test]
    fn a_slot_gives_back_the_standing_that_it_was_given() {
        assert_eq!(size_of::<Slot>(), 32);
        for standing in [plain(0), full()] {
            assert_eq!(Slot::new(7, 63, &standing).standing(standing.step), standing);
        }
        let mut slot = Slot::new(7, 63, &full());
        slot.set(&plain(1));
        assert_eq!((slot.standing(None), slot.offset(), slot.hash), (plain(1), 63, 7));
    }

    #[test]
    fn a_removed_slot_keeps_its_place_and_nothing_else() {
        let mut slot = Slot::new(7, 5, &full());
        slot.set_has_record(true);
        slot.remove();
        assert!(slot.is_removed() && !slot.has_record() && !slot.is_ready() && !slot.is_doomed());
        assert_eq!(slot, Slot::removed(5));
    }

    #[test]
    fn what_was_removed_is_passed_over() {
        let mut slots = Slots::default();
        slots.push(Slot::new(1, 0, &plain(0)));
        slots.pad_to(3);
        slots.push(Slot::new(2, 0, &plain(0)));
        let hashes = |first| slots.iter_from(first).map(|(number, slot)| (number, slot.hash)).collect();
        let cases: [(u32, Vec<(u32, u64)>); 3] = [(0, vec![(0, 1), (3, 2)]), (1, vec![(3, 2)]), (4, vec![])];
        for (first, want) in cases {
            let found: Vec<(u32, u64)> = hashes(first);
            assert_eq!(found, want, "from {first} on");
        }
        assert_eq!((slots.live(1), slots.get(1), slots.len()), (None, Some(&Slot::REMOVED), 4));
    }
}
