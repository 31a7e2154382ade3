//! The entries of one collection at one host, in the order they are handed out.
//!
//! An entry that moves leaves its old element behind in a heap. What is taken is compared with its
//! slot, so an element that is out of date is dropped when it comes up, or when there are more of
//! them than of the others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::rotation::Filed;
use super::slots::{Slot, Slots};
use crate::engine::Counts;
use crate::entry::{CollectionId, HostId, QueueId, State};

/// The least comes first.
pub(super) type Heap<T> = BinaryHeap<Reverse<T>>;

/// A time and an entry, in the order of both. They are one word: what is written as two and read as one right after, as
/// a heap does, has to wait until both have gone all the way to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Timed(u64);

impl Timed {
    fn new(second: u32, number: u32) -> Self {
        Self(u64::from(second) << 32 | u64::from(number))
    }

    fn second(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[expect(clippy::cast_possible_truncation, reason = "the other half is the time")]
    fn number(self) -> u32 {
        self.0 as u32
    }
}

/// Elements out of date that are not worth a clean-up.
const SLACK: u32 = 64;
/// Entries that are woken one by one; if more are due, all are looked at together.
const FEW: usize = 32;

/// A queue. There may be millions of them, with an entry or two each, of which most are not ready.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) number: QueueId,
    pub(super) collection: CollectionId,
    pub(super) host: HostId,
    /// The entries by state; there are no more of them than numbers.
    counts: [u32; State::ALL.len()],
    /// How many of the queued are ready.
    pub(super) ready: u32,
    /// Where the rotation has it.
    pub(super) filed: Filed,
    /// The ready ones in their order; none if there are none.
    order: Option<Box<Order>>,
    /// Those that are not due, by (due, number).
    waiting: Heap<Timed>,
}

/// The order in which ready entries are handed out.
#[derive(Debug, Default)]
struct Order {
    /// Highest priority first.
    buckets: Vec<Bucket>,
    /// Those that go by their due time, whatever their priority, by (due, number). Most queues are
    /// never asked for it, and have none.
    oldest: Option<Heap<Timed>>,
    /// Elements that were left behind in the heaps since they were tidied.
    left_behind: u32,
}

/// The ready entries of one priority. Those in the order of arrival go before those by due time.
#[derive(Debug)]
struct Bucket {
    priority: u16,
    by_arrival: Heap<u32>,
    by_due: Heap<Timed>,
}

impl Bucket {
    fn len(&self) -> usize {
        self.by_arrival.len() + self.by_due.len()
    }

    /// The first element that is not out of date.
    fn first(&mut self, queue: QueueId, slots: &Slots) -> Option<u32> {
        let priority = self.priority;
        let is_here = |number| ready(queue, slots, number).filter(|slot| slot.priority() == priority);
        while let Some(&Reverse(number)) = self.by_arrival.peek() {
            if is_here(number).is_some_and(|slot| !slot.is_by_due()) {
                return Some(number);
            }
            self.by_arrival.pop();
        }
        while let Some(&Reverse(first)) = self.by_due.peek() {
            if is_here(first.number()).is_some_and(|slot| slot.is_by_due() && slot.due == first.second()) {
                return Some(first.number());
            }
            self.by_due.pop();
        }
        None
    }
}

/// The slot of an entry, if it is ready in this queue.
fn ready(queue: QueueId, slots: &Slots, number: u32) -> Option<&Slot> {
    slots.live(number).filter(|slot| slot.queue() == queue && slot.is_ready())
}

impl Queue {
    /// An empty queue.
    pub(super) fn new(number: QueueId, collection: CollectionId, host: HostId) -> Self {
        Self {
            number,
            collection,
            host,
            counts: [0; State::ALL.len()],
            ready: 0,
            filed: Filed::Nowhere,
            order: None,
            waiting: Heap::new(),
        }
    }

    /// The entries by state.
    pub(super) fn counts(&self) -> Counts {
        self.counts.map(u64::from)
    }

    /// Counts an entry in.
    pub(super) fn count_in(&mut self, state: State) {
        self.counts[state as usize] += 1;
    }

    /// Counts an entry out.
    pub(super) fn count_out(&mut self, state: State) {
        self.counts[state as usize] -= 1;
    }

    /// The place in line by which it is served, if it is ready and open.
    pub(super) fn in_line(&self) -> Option<(u64, QueueId)> {
        match self.filed {
            Filed::Open(place) => Some((place, self.number)),
            _ => None,
        }
    }

    fn waiting_count(&self) -> u32 {
        self.counts[State::Queued as usize] - self.ready
    }

    /// How far it is to the end of a queue, in steps of which each is somewhere else in memory.
    pub(super) const STEPS: u8 = 4;

    /// Some number for which has to be read what is changed when an entry comes in, as far as a step.
    pub(super) fn end(&self, step: u8) -> usize {
        let Some(order) = &self.order else {
            return self.waiting.as_slice().last().copied().map_or(0, number);
        };
        if step == 0 {
            return self.ready as usize;
        }
        let Some(bucket) = order.buckets.first().filter(|_| step > 1) else { return order.buckets.len() };
        if step == 2 {
            return bucket.len();
        }
        // What comes in goes to the end of its heap, and is compared with the one that stands above that place.
        let heap = bucket.by_due.as_slice();
        let above = heap.get(heap.len().saturating_sub(1) / 2);
        [heap.last(), above].into_iter().flatten().copied().map(number).sum()
    }

    /// Takes in an entry whose slot says that it is ready.
    pub(super) fn add_ready(&mut self, number: u32, slot: &Slot) {
        self.ready += 1;
        self.order.get_or_insert_default().add(number, slot);
    }

    /// Takes in entries; their slots say already what is ready.
    pub(super) fn fill(&mut self, entries: impl Iterator<Item = u32>, slots: &Slots) {
        for (number, slot) in entries.filter_map(|number| Some((number, slots.live(number)?))) {
            self.count_in(slot.state());
            if slot.is_ready() {
                self.add_ready(number, slot);
            } else if slot.is_waiting() {
                self.add_waiting(number, slot.due);
            }
        }
    }

    /// Takes in an entry that is not due.
    pub(super) fn add_waiting(&mut self, number: u32, due: u32) {
        push(&mut self.waiting, Timed::new(due, number));
    }

    /// An entry is not ready any more; its slot says so already.
    pub(super) fn drop_ready(&mut self, number: u32, slots: &Slots) {
        self.ready -= 1;
        if self.ready == 0 {
            // What may be left is out of date.
            self.order = None;
        }
        if let Some(order) = &mut self.order
            && !order.pop_if_first(number)
        {
            order.left_behind += 1;
            if order.left_behind > self.ready + SLACK {
                order.tidy(self.number, slots);
            }
        }
    }

    /// An entry does not wait any more; its slot says so already.
    pub(super) fn drop_waiting(&mut self, slots: &Slots) {
        if self.waiting.len() > 2 * self.waiting_count() as usize + SLACK as usize {
            self.tidy_waiting(slots);
        }
    }

    fn tidy_waiting(&mut self, slots: &Slots) {
        let queue = self.number;
        tidy(&mut self.waiting, |waiting| waits(queue, slots, *waiting));
    }

    /// The entry that comes first.
    pub(super) fn first(&mut self, slots: &Slots) -> Option<u32> {
        self.order.as_mut()?.first(self.number, slots)
    }

    /// Of those that go by their due time, the one that has been due longest.
    pub(super) fn oldest(&mut self, slots: &Slots) -> Option<u32> {
        self.order.as_mut()?.oldest(self.number, slots)
    }

    /// When the next of those that wait is due.
    pub(super) fn next_due(&mut self, slots: &Slots) -> Option<u32> {
        while let Some(&Reverse(first)) = self.waiting.peek() {
            if waits(self.number, slots, first) {
                return Some(first.second());
            }
            self.waiting.pop();
        }
        None
    }

    /// Makes ready what is due by `now`.
    pub(super) fn wake(&mut self, slots: &mut Slots, now: u32) {
        for _ in 0..FEW {
            if self.waiting.peek().is_none_or(|Reverse(first)| first.second() > now) {
                return;
            }
            if let Some(Reverse(first)) = self.waiting.pop()
                && waits(self.number, slots, first)
            {
                self.wake_one(slots, first.number());
            }
        }
        self.wake_many(slots, now);
    }

    fn wake_one(&mut self, slots: &mut Slots, number: u32) {
        if let Some(slot) = slots.get_mut(number) {
            slot.set_ready(true);
            let slot = *slot;
            self.add_ready(number, &slot);
        }
    }

    /// Splits those that wait instead of popping them one by one.
    fn wake_many(&mut self, slots: &mut Slots, now: u32) {
        let all = std::mem::take(&mut self.waiting).into_vec();
        let (mut due, later): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|Reverse(waiting)| waiting.second() <= now);
        self.waiting = later.into();
        // In the order of their numbers each push is for the end of its heap.
        due.sort_unstable_by_key(|Reverse(due)| due.number());
        for Reverse(due) in due {
            if waits(self.number, slots, due) {
                self.wake_one(slots, due.number());
            }
        }
    }
}

impl Order {
    /// Takes in an entry.
    fn add(&mut self, number: u32, slot: &Slot) {
        let bucket = self.bucket(slot.priority());
        if slot.is_by_due() {
            push(&mut bucket.by_due, Timed::new(slot.due, number));
            if let Some(oldest) = &mut self.oldest {
                oldest.push(Reverse(Timed::new(slot.due, number)));
            }
        } else {
            push(&mut bucket.by_arrival, number);
        }
    }

    fn bucket(&mut self, priority: u16) -> &mut Bucket {
        let place = self.buckets.partition_point(|bucket| bucket.priority > priority);
        if self.buckets.get(place).is_none_or(|bucket| bucket.priority != priority) {
            if self.buckets.is_empty() {
                self.buckets.reserve_exact(1);
            }
            self.buckets.insert(place, Bucket { priority, by_arrival: Heap::new(), by_due: Heap::new() });
        }
        &mut self.buckets[place]
    }

    /// What was just taken is on top of its heap, and can go at once. Says whether nothing is left of it.
    fn pop_if_first(&mut self, number: u32) -> bool {
        let Some(bucket) = self.buckets.first_mut() else { return false };
        if bucket.by_arrival.peek() == Some(&Reverse(number)) {
            bucket.by_arrival.pop();
            return true;
        }
        pop_if(&mut bucket.by_due, number) & self.oldest.as_mut().is_none_or(|oldest| pop_if(oldest, number))
    }

    /// Drops what is out of date.
    fn tidy(&mut self, queue: QueueId, slots: &Slots) {
        self.left_behind = 0;
        for bucket in &mut self.buckets {
            let priority = bucket.priority;
            let is_here = |number| ready(queue, slots, number).filter(|slot| slot.priority() == priority);
            tidy(&mut bucket.by_arrival, |number| is_here(*number).is_some_and(|slot| !slot.is_by_due()));
            tidy(&mut bucket.by_due, |due| {
                is_here(due.number()).is_some_and(|slot| slot.is_by_due() && slot.due == due.second())
            });
        }
        self.buckets.retain(|bucket| bucket.len() > 0);
        if let Some(oldest) = &mut self.oldest {
            tidy(oldest, |due| {
                ready(queue, slots, due.number())
                    .is_some_and(|slot| slot.is_by_due() && slot.due == due.second())
            });
        }
    }

    fn first(&mut self, queue: QueueId, slots: &Slots) -> Option<u32> {
        while let Some(bucket) = self.buckets.first_mut() {
            if let Some(number) = bucket.first(queue, slots) {
                return Some(number);
            }
            self.buckets.remove(0);
        }
        None
    }

    fn oldest(&mut self, queue: QueueId, slots: &Slots) -> Option<u32> {
        let buckets = &self.buckets;
        let all = || buckets.iter().flat_map(|bucket| bucket.by_due.iter().copied()).collect();
        let oldest = self.oldest.get_or_insert_with(all);
        while let Some(&Reverse(first)) = oldest.peek() {
            let slot = ready(queue, slots, first.number());
            if slot.is_some_and(|slot| slot.is_by_due() && slot.due == first.second()) {
                return Some(first.number());
            }
            oldest.pop();
        }
        None
    }
}

fn number(Reverse(element): Reverse<Timed>) -> usize {
    element.number() as usize
}

/// Adds an element. Most heaps never have a second one, and the first makes room for no others.
fn push<T: Ord>(heap: &mut Heap<T>, element: T) {
    if heap.capacity() == 0 {
        heap.reserve_exact(1);
    }
    heap.push(Reverse(element));
}

fn waits(queue: QueueId, slots: &Slots, element: Timed) -> bool {
    let is_it = |slot: &Slot| slot.queue() == queue && slot.is_waiting() && slot.due == element.second();
    slots.get(element.number()).is_some_and(is_it)
}

/// Takes the first element away if it is that of an entry.
fn pop_if(heap: &mut Heap<Timed>, number: u32) -> bool {
    let is_it = heap.peek().is_some_and(|Reverse(first)| first.number() == number);
    if is_it {
        heap.pop();
    }
    is_it
}

/// Drops what is out of date, and what is there twice.
pub(super) fn tidy<T: Ord + Copy>(heap: &mut Heap<T>, is_here: impl Fn(&T) -> bool) {
    let mut all = std::mem::take(heap).into_vec();
    all.retain(|Reverse(element)| is_here(element));
    all.sort_unstable();
    all.dedup();
    *heap = all.into();
}

#[cfg(test)]
mod tests {
    use forager_core::hierarchy::Priority;

    use super::super::slots::tests::plain;
    use super::*;
    use crate::entry::Standing;
    use crate::moment::Moment;

    /// A queue and its slots.
    struct Fixture {
        queue: Queue,
        slots: Slots,
    }

    impl Fixture {
        fn new() -> Self {
            Self { queue: Queue::new(QueueId(0), CollectionId(0), HostId(0)), slots: Slots::default() }
        }

        /// Adds an entry; it is ready if it is due by 100.
        fn add(&mut self, priority: u16, due: u32, by_due: bool) -> u32 {
            let priority = Priority::from_thousandths(priority).expect("a priority");
            let due = Moment::from_second(due);
            let mut slot = Slot::new(0, 0, &Standing { priority, due, by_due, ..plain(0) });
            slot.set_ready(slot.due <= 100);
            let number = self.slots.len();
            self.slots.push(slot);
            self.queue.fill([number].into_iter(), &self.slots);
            number
        }

        /// Takes an entry as the engine does: it is not ready any more.
        fn take(&mut self, as_oldest: bool) -> Option<u32> {
            let taken =
                if as_oldest { self.queue.oldest(&self.slots) } else { self.queue.first(&self.slots) }?;
            self.drop(taken);
            Some(taken)
        }

        fn drop(&mut self, number: u32) {
            self.slots.get_mut(number).expect("the slot is there").set_ready(false);
            self.queue.drop_ready(number, &self.slots);
        }
    }

    #[test]
    fn entries_come_by_priority_then_arrival_then_due_time() {
        let mut fixture = Fixture::new();
        let late = fixture.add(500, 9, true);
        let early = fixture.add(500, 5, true);
        let arrived = fixture.add(500, 90, false);
        let high = fixture.add(900, 90, true);
        let next = fixture.add(500, 1, false);
        let order: Vec<u32> = std::iter::from_fn(|| fixture.take(false)).collect();
        assert_eq!(order, [high, arrived, next, early, late]);
    }

    #[test]
    fn the_oldest_is_the_one_due_first_of_those_that_go_by_it() {
        let mut fixture = Fixture::new();
        fixture.add(900, 1, false);
        let high = fixture.add(900, 9, true);
        let old = fixture.add(100, 5, true);
        assert_eq!(fixture.take(true), Some(old));
        assert_eq!(fixture.take(true), Some(high));
        assert_eq!((fixture.take(true), fixture.queue.ready), (None, 1));
    }

    #[test]
    fn what_is_due_wakes_one_by_one_or_all_together() {
        for count in [3, 200] {
            let mut fixture = Fixture::new();
            for offset in 0..count {
                fixture.add(0, 1000 + count - offset, false);
            }
            assert_eq!((fixture.queue.next_due(&fixture.slots), fixture.take(false)), (Some(1001), None));
            fixture.queue.wake(&mut fixture.slots, 1000 + count / 2);
            assert_eq!(fixture.queue.ready, count / 2, "{count}");
            let order: Vec<u32> = std::iter::from_fn(|| fixture.take(false)).collect();
            assert!(order.is_sorted() && order.len() == count as usize / 2, "{order:?}");
            assert_eq!(fixture.queue.next_due(&fixture.slots), Some(1001 + count / 2));
        }
    }

    #[test]
    fn what_is_left_behind_is_tidied_away() {
        let mut fixture = Fixture::new();
        let numbers: Vec<u32> = (0..10_000).map(|_| fixture.add(0, 1, true)).collect();
        fixture.queue.oldest(&fixture.slots);
        for &number in numbers.iter().rev().take(9_990) {
            fixture.drop(number);
        }
        let order = fixture.queue.order.as_ref().expect("some are ready");
        let held: usize = order.buckets.iter().map(Bucket::len).sum();
        let oldest = order.oldest.as_ref().map_or(0, Heap::len);
        assert!(held < 200 && oldest < 200, "{held} and {oldest} elements for ten entries");
        let order: Vec<u32> = std::iter::from_fn(|| fixture.take(false)).collect();
        assert_eq!(order, numbers[..10]);
    }

    #[test]
    fn a_queue_in_which_nothing_is_ready_takes_little() {
        assert!(size_of::<Option<Queue>>() <= 80, "{}", size_of::<Option<Queue>>());
        let mut fixture = Fixture::new();
        let (first, second) = (fixture.add(0, 1, false), fixture.add(0, 1, false));
        fixture.drop(second);
        assert!(fixture.queue.order.is_some(), "one is left");
        fixture.drop(first);
        assert!(fixture.queue.order.is_none(), "what is left of others is dropped with the last");
        let third = fixture.add(0, 1, false);
        assert_eq!((fixture.take(false), fixture.take(false)), (Some(third), None));
    }
}
