//! Keeps requests apart by what is due between them, however late each was sent.
//!
//! The queue counts from when it handed a page out. Between that and its request some time goes by, and not
//! always the same; without this, two requests could be a little closer together than their hosts were promised.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::clock::Clock;

/// How many hosts are kept in mind.
const MOST_HOSTS: usize = 100_000;
/// How long each is: no gap that counts is longer than what the queue itself looks after.
const MEMORY: SignedDuration = SignedDuration::from_mins(10);

/// When each host had its last request.
pub(crate) struct Pace {
    clock: Clock,
    last: Mutex<HashMap<String, Timestamp>>,
}

impl Pace {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, last: Mutex::default() }
    }

    /// Waits until so many milliseconds have gone by since the last request to a host. Says when it is: the request is
    /// to be sent at once.
    pub(crate) async fn turn(&self, host: &str, least_gap: u64) -> Timestamp {
        if least_gap == 0 {
            return self.clock.now();
        }
        let gap = SignedDuration::from_millis(i64::try_from(least_gap).unwrap_or(i64::MAX));
        loop {
            match self.claim(host, gap) {
                Ok(now) => return now,
                Err(until) => self.clock.sleep_until(until).await,
            }
        }
    }

    /// The present, which is the time of the request; or when to try again.
    fn claim(&self, host: &str, gap: SignedDuration) -> Result<Timestamp, Timestamp> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        let opens = last.get(host).and_then(|last| last.checked_add(gap).ok());
        if let Some(opens) = opens.filter(|opens| *opens > now) {
            return Err(opens);
        }
        if last.len() >= MOST_HOSTS {
            last.retain(|_, last| now.duration_since(*last) < MEMORY);
        }
        last.insert(host.to_owned(), now);
        Ok(now)
    }
}
