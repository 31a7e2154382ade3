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

/// Numbers that one call has set aside; what it does not use goes back.
pub(super) struct Taken<'a> {
    pub(super) pools: &'a [Mutex<VecDeque<i64>>; Numbered::ALL.len()],
    pub(super) numbers: [Vec<i64>; Numbered::ALL.len()],
}

impl<'a> Taken<'a> {
    pub(super) fn new(pools: &'a [Mutex<VecDeque<i64>>; Numbered::ALL.len()]) -> Self {
        Self { pools, numbers: Default::default() }
    }

    /// How many of those that are needed it has not yet.
    pub(super) fn missing(&self, needed: Needed) -> Needed {
        let mut missing = needed;
        for (missing, has) in missing.iter_mut().zip(&self.numbers) {
            *missing = missing.saturating_sub(has.len());
        }
        missing
    }

    /// Takes up to so many from what this process has set aside; says how many.
    pub(super) fn take(&mut self, kind: Numbered, count: usize) -> usize {
        let mut pool = self.pools[kind as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let count = count.min(pool.len());
        self.numbers[kind as usize].extend(pool.drain(..count));
        count
    }

    /// Takes so many of new numbers, and sets the others aside.
    pub(super) fn add(&mut self, kind: Numbered, mut numbers: Vec<i64>, count: usize) {
        let others = numbers.split_off(count.min(numbers.len()));
        self.numbers[kind as usize].extend(numbers);
        self.pools[kind as usize].lock().unwrap_or_else(PoisonError::into_inner).extend(others);
    }

    /// Gives back all but the first ones, which are used now.
    pub(super) fn keep_unused(&mut self, used: Needed) {
        for (numbers, used) in self.numbers.iter_mut().zip(used) {
            numbers.drain(..used.min(numbers.len()));
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        for (pool, numbers) in self.pools.iter().zip(&mut self.numbers) {
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
