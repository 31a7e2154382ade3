//! Numbers for what is made: each process sets some aside, so that it need not ask for every one.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use tokio_postgres::types::Type;

use super::Postgres;
use super::failure::Failure;
use super::session::{Session, quoted};

/// Of which kind a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Numbered {
    Entry,
    Queue,
    Host,
    Token,
}

impl Numbered {
    pub(super) const ALL: [Self; 4] = [Self::Entry, Self::Queue, Self::Host, Self::Token];

    /// The sequence that hands them out.
    pub(super) fn sequence(self) -> &'static str {
        match self {
            Self::Entry => "entry_numbers",
            Self::Queue => "queue_numbers",
            Self::Host => "host_numbers",
            Self::Token => "tokens",
        }
    }
}

/// How many numbers of each kind are needed.
pub(super) type Needed = [usize; Numbered::ALL.len()];

/// Numbers for one call, and what becomes of those that it does not use.
///
/// A server that crashes may forget that it gave out a number, unless a transaction that came after was committed, and give it
/// to somebody else. So new numbers are kept for later calls only once theirs is committed; until then they are good for this
/// call alone, which cannot be committed without them.
pub(super) struct Taken<'a> {
    pools: &'a [Mutex<VecDeque<i64>>; Numbered::ALL.len()],
    pub(super) numbers: [Vec<i64>; Numbered::ALL.len()],
    /// Those that go back to the pools: they were there before, or are committed and not used.
    kept: [Vec<i64>; Numbered::ALL.len()],
    /// New ones that this call does not need.
    spare: [Vec<i64>; Numbered::ALL.len()],
    has_new: bool,
}

impl<'a> Taken<'a> {
    pub(super) fn new(pools: &'a [Mutex<VecDeque<i64>>; Numbered::ALL.len()]) -> Self {
        let [numbers, kept, spare] = Default::default();
        Self { pools, numbers, kept, spare, has_new: false }
    }

    /// How many of those that are needed it has not yet.
    pub(super) fn missing(&self, needed: Needed) -> Needed {
        let mut missing = needed;
        for (missing, has) in missing.iter_mut().zip(&self.numbers) {
            *missing = missing.saturating_sub(has.len());
        }
        missing
    }

    /// Whether it has some that are of no use to others before it is committed.
    pub(super) fn has_new(&self) -> bool {
        self.has_new
    }

    /// Takes up to so many from what this process has set aside; says how many.
    fn take(&mut self, kind: Numbered, count: usize) -> usize {
        let mut pool = self.pools[kind as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let count = count.min(pool.len());
        let taken: Vec<i64> = pool.drain(..count).collect();
        self.kept[kind as usize].extend(&taken);
        self.numbers[kind as usize].extend(taken);
        count
    }

    /// Takes so many of new numbers; the others are for later calls.
    fn add(&mut self, kind: Numbered, mut numbers: Vec<i64>, count: usize) {
        let others = numbers.split_off(count.min(numbers.len()));
        self.numbers[kind as usize].extend(numbers);
        self.spare[kind as usize].extend(others);
        self.has_new = true;
    }

    /// The call is committed, and has used the first ones.
    pub(super) fn committed(&mut self, used: Needed) {
        for (kind, used) in used.into_iter().enumerate() {
            let mut unused = std::mem::take(&mut self.numbers[kind]);
            unused.drain(..used.min(unused.len()));
            unused.append(&mut self.spare[kind]);
            self.kept[kind] = unused;
        }
    }

    /// Nobody knows whether the call is committed: none of them is used again.
    pub(super) fn forget(&mut self) {
        self.kept = Default::default();
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        for (pool, numbers) in self.pools.iter().zip(&mut self.kept) {
            let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
            for number in numbers.drain(..).rev() {
                pool.push_front(number);
            }
        }
    }
}

impl Postgres {
    /// Sets aside the numbers that a call wants.
    pub(super) async fn take_numbers(
        &self,
        session: &Session,
        taken: &mut Taken<'_>,
        needed: Needed,
    ) -> Result<(), Failure> {
        const NUMBERS: &str = "SELECT nextval($1::text::regclass) FROM generate_series(1, $2)";
        for kind in Numbered::ALL {
            let mut missing = needed[kind as usize];
            if missing == 0 {
                continue;
            }
            missing -= taken.take(kind, missing);
            if missing == 0 {
                continue;
            }
            // Whoever asks once may not ask again: what a short command sets aside is lost.
            let is_first = !self.has_taken[kind as usize].swap(true, Ordering::Relaxed);
            let block = if is_first { 1 } else { self.shared.options.number_block };
            let count = i64::try_from(missing.max(block)).unwrap_or(i64::MAX);
            let sequence = format!("{}.{}", quoted(&self.shared.options.schema), kind.sequence());
            let rows = session.query(NUMBERS, &[(&sequence, Type::TEXT), (&count, Type::INT8)]).await?;
            let mut numbers = Vec::new();
            for row in rows {
                numbers.push(row.try_get::<_, i64>(0)?);
            }
            taken.add(kind, numbers, missing);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call that has taken 1 and 2, which were set aside, and of 8 and 9, which are new, the first.
    fn taken(pools: &[Mutex<VecDeque<i64>>; Numbered::ALL.len()]) -> Taken<'_> {
        let mut taken = Taken::new(pools);
        assert_eq!(taken.take(Numbered::Entry, 2), 2);
        taken.add(Numbered::Entry, vec![8, 9], 1);
        assert_eq!(taken.numbers[0], [1, 2, 8]);
        taken
    }

    #[test]
    fn new_numbers_are_kept_once_they_are_committed() {
        type End = fn(&mut Taken<'_>);
        let cases: [(&str, End, &[i64]); 4] = [
            ("it is given up", |_| {}, &[1, 2, 3]),
            ("it is committed, and has used one", |taken| taken.committed([1, 0, 0, 0]), &[2, 8, 9, 3]),
            ("it is committed, and has used all", |taken| taken.committed([3, 0, 0, 0]), &[9, 3]),
            ("nobody knows", |taken| taken.forget(), &[3]),
        ];
        for (name, end, want) in cases {
            let pools: [Mutex<VecDeque<i64>>; Numbered::ALL.len()] = Default::default();
            pools[0].lock().unwrap().extend([1, 2, 3]);
            let mut taken = taken(&pools);
            end(&mut taken);
            drop(taken);
            assert_eq!(*pools[0].lock().unwrap(), want, "{name}");
        }
    }
}
