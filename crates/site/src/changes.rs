//! When pages change.

use jiff::{SignedDuration, Timestamp};
use rand::RngExt;
use rand_pcg::Pcg64;

/// The most changes that one page can have: a mean of nothing would never end.
const MOST: usize = 100_000;

/// The times at which a page changes, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes(Vec<Timestamp>);

/// A version of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// How many changes there were before it.
    pub number: usize,
    /// When it came to be; none for the first one, which always was.
    pub since: Option<Timestamp>,
}

impl Changes {
    /// Changes at these times.
    pub fn at(times: impl IntoIterator<Item = Timestamp>) -> Self {
        let mut times: Vec<Timestamp> = times.into_iter().take(MOST).collect();
        times.sort_unstable();
        Self(times)
    }

    /// Changes at random times from `start` on for so long, one every `mean` on average and independent of each
    /// other, as those of real pages are. The same seed gives the same times.
    ///
    /// ```
    /// # use forager_site::changes::Changes;
    /// # use jiff::{SignedDuration, Timestamp};
    /// let day = SignedDuration::from_hours(24);
    /// let changes = Changes::random(7, Timestamp::UNIX_EPOCH, day * 100, day);
    /// assert_eq!(changes, Changes::random(7, Timestamp::UNIX_EPOCH, day * 100, day));
    /// assert!((50..200).contains(&changes.times().len()));
    /// ```
    pub fn random(seed: u64, start: Timestamp, length: SignedDuration, mean: SignedDuration) -> Self {
        let mut random = Pcg64::new(u128::from(seed), 0);
        let end = start.saturating_add(length).unwrap_or(Timestamp::MAX);
        let (mut times, mut at) = (Vec::new(), start);
        while times.len() < MOST {
            // The time to the next of independent events is spread like this; never 0, whose logarithm is endless.
            let share = -(1.0 - random.random::<f64>()).ln();
            let wait =
                SignedDuration::try_from_secs_f64(mean.as_secs_f64().max(1.0) * share).unwrap_or(length);
            at = at.saturating_add(wait).unwrap_or(Timestamp::MAX);
            if at >= end {
                break;
            }
            times.push(at);
        }
        Self(times)
    }

    /// The times.
    pub fn times(&self) -> &[Timestamp] {
        &self.0
    }

    /// The version at a time.
    pub fn version(&self, now: Timestamp) -> Version {
        let number = self.0.partition_point(|change| *change <= now);
        let since = number.checked_sub(1).map(|last| self.0[last]);
        Version { number, since }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_version_is_that_of_the_last_change() {
        let changes = Changes::at([at(20), at(10)]);
        let table = [
            ("before any", 9, 0, None),
            ("at the first", 10, 1, Some(10)),
            ("between", 19, 1, Some(10)),
            ("after all", 100, 2, Some(20)),
        ];
        for (name, now, number, since) in table {
            assert_eq!(changes.version(at(now)), Version { number, since: since.map(at) }, "{name}");
        }
    }

    proptest! {
        /// Every change lies in its time, and the versions count them.
        #[test]
        fn random_changes_stay_in_their_time(seed: u64, hours in 1..1000_i64, mean in 1..100_i64) {
            let length = SignedDuration::from_hours(hours);
            let changes = Changes::random(seed, at(0), length, SignedDuration::from_hours(mean));
            prop_assert!(changes.times().is_sorted());
            prop_assert!(changes.times().iter().all(|time| (at(0)..at(hours * 3600)).contains(time)));
            prop_assert_eq!(changes.version(Timestamp::MAX).number, changes.times().len());
        }
    }
}
