//! Fills all queues at once, when a store is opened.

use super::queue::Queue;
use super::slots::{Slot, Slots};
use crate::entry::State;

/// Fills the queues with what they have queued.
///
/// One by one each entry would be for another queue than the last. So they are taken in batches, and each
/// batch in the order of the queues.
pub(super) fn fill_queues(queues: &mut [Option<Queue>], slots: &Slots) {
    const BATCH: usize = 1 << 20;
    let mut waiting = slots.iter().filter(|(_, slot)| slot.state() == State::Queued).peekable();
    while waiting.peek().is_some() {
        let batch: Vec<(u32, Slot)> =
            waiting.by_ref().take(BATCH).map(|(number, slot)| (number, *slot)).collect();
        let sorted = by_queue(&batch, queues.len());
        for entries in sorted.chunk_by(|(_, one), (_, other)| one.queue() == other.queue()) {
            let queue = entries.first().map(|(_, slot)| slot.queue().0 as usize);
            if let Some(Some(queue)) = queue.and_then(|queue| queues.get_mut(queue)) {
                queue.fill(entries);
            }
        }
    }
}

/// Sorts entries by their queues, and within these by their numbers: by counting, as there are few queues.
fn by_queue(entries: &[(u32, Slot)], queues: usize) -> Vec<(u32, Slot)> {
    let place = |slot: &Slot| slot.queue().0 as usize;
    let mut next = vec![0_usize; queues + 1];
    for (_, slot) in entries {
        next[place(slot) + 1] += 1;
    }
    for queue in 0..queues {
        next[queue + 1] += next[queue];
    }
    let mut sorted = entries.to_vec();
    for entry in entries {
        let next = &mut next[place(&entry.1)];
        sorted[*next] = *entry;
        *next += 1;
    }
    sorted
}
