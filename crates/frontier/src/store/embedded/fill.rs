//! Fills all queues at once, when a store is opened.

use super::blocks::Blocks;
use super::queue::Queue;
use super::slots::Slots;

/// So many entries are looked at together.
const BATCH: usize = 1 << 20;

/// Gives the queues their entries; the slots say already what is ready.
///
/// One by one each entry would be for another queue than the last, somewhere else in memory. So they are
/// taken in batches, and each batch in the order of the queues.
pub(super) fn fill_queues(queues: &mut Blocks<Option<Queue>>, slots: &Slots) {
    let (mut batch, mut sorted) = (Vec::new(), Vec::new());
    let mut live = slots.iter().map(|(number, slot)| (slot.queue().0, number)).peekable();
    while live.peek().is_some() {
        batch.clear();
        batch.extend(live.by_ref().take(BATCH));
        sort(&batch, queues.len() as usize, &mut sorted);
        for entries in sorted.chunk_by(|(one, _), (other, _)| one == other) {
            let queue = entries.first().and_then(|(queue, _)| queues.get_mut(*queue)?.as_mut());
            if let Some(queue) = queue {
                queue.fill(entries.iter().map(|(_, number)| *number), slots);
            }
        }
    }
}

/// Sorts pairs of queue and entry by the queue: by counting, and so that entries of one stay in order.
fn sort(pairs: &[(u32, u32)], queues: usize, sorted: &mut Vec<(u32, u32)>) {
    let mut next = vec![0_usize; queues + 1];
    for (queue, _) in pairs {
        next[*queue as usize + 1] += 1;
    }
    for queue in 0..queues {
        next[queue + 1] += next[queue];
    }
    sorted.clear();
    sorted.resize(pairs.len(), (0, 0));
    for pair in pairs {
        let next = &mut next[pair.0 as usize];
        sorted[*next] = *pair;
        *next += 1;
    }
}
