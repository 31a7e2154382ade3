//! Keeps requests apart by what is due between them, however late each was sent.
//!
//! The queue counts from when it handed a page out. Between that and its request some time goes by, and not
//! always the same; without this, two requests could be a little closer together than their hosts were promised.
//! And what it handed out before a host asked for a pause must not be sent any more.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::clock::Clock;

/// How many hosts are kept in mind.
const MOST_HOSTS: usize = 100_000;
/// How long each is: no gap that counts is longer than what the queue itself looks after.
const MEMORY: SignedDuration = SignedDuration::from_mins(10);

/// When each host had its last request, and which want to be left alone.
pub(crate) struct Pace {
    clock: Clock,
    last: Mutex<HashMap<String, Timestamp>>,
    /// How often the queue was asked for pages.
    rounds: AtomicU64,
    /// For each host that has failed, or asked for a pause or longer waits, the last round whose pages are not to be sent.
    rests: Mutex<HashMap<String, Round>>,
}

/// Which call of the queue handed out a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Round(u64);

impl Round {
    /// Later than all others: until the queue knows, nothing that it hands out may be sent.
    const NONE_YET: Self = Self(u64::MAX);
}

impl Pace {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, last: Mutex::default(), rounds: AtomicU64::new(0), rests: Mutex::default() }
    }

    /// The queue is asked for pages: these are of a new round.
    pub(crate) fn begin_round(&self) -> Round {
        Round(self.rounds.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// The round of what the queue allows now.
    pub(crate) fn round(&self) -> Round {
        Round(self.rounds.load(Ordering::SeqCst))
    }

    /// A host has failed, or asked for a pause.
    pub(crate) fn rest(&self, host: &str) {
        self.hold_back(host, Round::NONE_YET);
    }

    /// The queue knows of it: what it hands out from now on may be sent.
    pub(crate) fn settle(&self, host: &str) {
        if let Some(round) = self.rests().get_mut(host) {
            *round = self.round();
        }
    }

    /// A host wants longer waits than those that its pages were handed out with: what was goes back. Those that the queue
    /// hands out from now on have the new ones.
    pub(crate) fn recall(&self, host: &str) {
        self.hold_back(host, self.round());
    }

    /// Nothing of these rounds is sent any more. A host that rests goes on resting.
    fn hold_back(&self, host: &str, round: Round) {
        let mut rests = self.rests();
        if rests.len() >= MOST_HOSTS {
            rests.retain(|_, round| *round == Round::NONE_YET);
        }
        let last = rests.entry(host.to_owned()).or_insert(round);
        *last = round.max(*last);
    }

    fn rests(&self) -> MutexGuard<'_, HashMap<String, Round>> {
        self.rests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many milliseconds have gone by since the last request to a host. Says when it is: the request is
    /// to be sent at once. None if the host wants to be left alone since the page was handed out.
    pub(crate) async fn turn(&self, host: &str, least_gap: u64, round: Round) -> Option<Timestamp> {
        let gap = SignedDuration::from_millis(i64::try_from(least_gap).unwrap_or(i64::MAX));
        let now = loop {
            match if least_gap == 0 { Ok(self.clock.now()) } else { self.claim(host, gap) } {
                Ok(now) => break now,
                Err(until) => self.clock.sleep_until(until).await,
            }
        };
        // After the time was taken: whoever is not stopped here is earlier than the end of the answer that would have.
        let rests = self.rests().get(host).is_some_and(|last| round <= *last);
        (!rests).then_some(now)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_handed_out_before_a_pause_is_not_sent() {
        let pace = Pace::new(Clock::default());
        let early = pace.begin_round();
        let sent = async |host: &str, round: Round| pace.turn(host, 0, round).await.is_some();
        assert!(sent("a.no", early).await);
        pace.rest("a.no");
        let meanwhile = pace.begin_round();
        for (name, round) in [("before", early), ("before the queue knew", meanwhile)] {
            assert!(!sent("a.no", round).await, "{name}");
            assert!(sent("b.no", round).await, "{name}: another host");
        }
        pace.settle("a.no");
        assert!(!sent("a.no", meanwhile).await, "handed out before the queue knew");
        assert!(sent("a.no", pace.begin_round()).await, "the queue knows");
        pace.settle("never.rested");
        assert!(sent("never.rested", early).await);
    }

    #[tokio::test]
    async fn what_was_handed_out_with_shorter_waits_is_not_sent() {
        let pace = Pace::new(Clock::default());
        let early = pace.begin_round();
        let sent = async |round: Round| pace.turn("a.no", 0, round).await.is_some();
        pace.recall("a.no");
        assert!(!sent(early).await, "handed out before");
        let late = pace.begin_round();
        assert!(sent(late).await, "handed out since");
        pace.rest("a.no");
        pace.recall("a.no");
        assert!(!sent(pace.begin_round()).await, "it rests, and the queue does not know yet");
    }

    #[tokio::test]
    async fn whoever_waits_for_a_turn_gives_it_up_for_a_pause() {
        let pace = Pace::new(Clock::default());
        let round = pace.begin_round();
        assert!(pace.turn("a.no", 50, round).await.is_some());
        let (turn, ()) = tokio::join!(pace.turn("a.no", 50, round), async { pace.rest("a.no") });
        assert_eq!(turn, None);
    }
}
