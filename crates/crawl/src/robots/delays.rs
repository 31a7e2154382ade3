//! What the sites of one host ask for between fetches.
//!
//! Each scheme and port has a robots.txt of its own, but they are one host, which is one machine to be spared. So the
//! longest `Crawl-delay` of those that still count holds for all of them.

use forager_core::time::Interval;
use forager_frontier::{Frontier, Moment};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::Result;

/// How many sites of one host are remembered; of more, those that ask for the longest waits.
const MOST_SITES: usize = 64;

/// What one site asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Wish {
    origin: String,
    delay: Interval,
    /// Until when its robots.txt counts.
    until: Moment,
}

/// What the sites of a host ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Delays(Vec<Wish>);

/// The key under which the queue keeps what the sites of a host ask for.
pub fn delays_key(host: &str) -> String {
    format!("crawl-delays {host}")
}

impl Delays {
    /// What is known of the sites of a host but this one, as far as it still counts.
    pub(super) async fn of_others(
        frontier: &dyn Frontier,
        host: &str,
        origin: &str,
        now: Timestamp,
    ) -> Result<Self> {
        let kept = frontier.noted(&[delays_key(host)]).await?.pop().flatten();
        let mut wishes: Vec<Wish> =
            kept.and_then(|bytes| postcard::from_bytes(&bytes).ok()).unwrap_or_default();
        wishes.retain(|wish| wish.origin != origin && wish.until.timestamp() > now);
        Ok(Self(wishes))
    }

    /// The longest wait that any of them asks for.
    pub(super) fn longest(&self) -> Option<Interval> {
        self.0.iter().map(|wish| wish.delay).max()
    }

    /// Adds what one more asks for, if it asks for anything.
    pub(super) fn add(&mut self, origin: &str, delay: Option<Interval>, until: Timestamp) {
        let wish = |delay| Wish { origin: origin.to_owned(), delay, until: Moment::of(until) };
        self.0.extend(delay.map(wish));
        self.0.sort_by_key(|wish| std::cmp::Reverse(wish.delay));
        self.0.truncate(MOST_SITES);
    }

    /// How it is kept: under which key, and what; nothing if nobody asks for anything.
    pub(super) fn kept(&self, host: &str) -> (String, Option<Vec<u8>>) {
        let bytes = if self.0.is_empty() { None } else { postcard::to_allocvec(&self.0).ok() };
        (delays_key(host), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_counts() {
        let (second, until) = (|count: u32| Interval::from_secs_f64(f64::from(count)), Timestamp::MAX);
        let mut delays = Delays::default();
        assert_eq!((delays.longest(), delays.kept("a.no").1), (None, None));
        delays.add("http://a.no", None, until);
        assert_eq!(delays.longest(), None);
        for count in [3, 9, 1] {
            delays.add(&format!("http://a.no:{count}"), Some(second(count)), until);
        }
        assert_eq!(delays.longest(), Some(second(9)));
        for port in 100..300 {
            delays.add(&format!("http://a.no:{port}"), Some(second(2)), until);
        }
        assert_eq!((delays.0.len(), delays.longest()), (MOST_SITES, Some(second(9))));
    }
}
