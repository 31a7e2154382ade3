//! Instants as the queue keeps them.

use std::fmt;

use forager_core::time::Interval;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An instant, to the millisecond, not before 1970.
///
/// Entries are due at whole seconds, which is what a store keeps of them; politeness goes by
/// milliseconds. Written as RFC 3339 for people, and as a number on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

/// In milliseconds.
const HOUR: u64 = 60 * 60 * 1000;

impl Moment {
    /// 1970.
    pub const ZERO: Self = Self(0);
    /// The last second that a store can keep, in the year 2106. It stands for "never".
    pub const NEVER: Self = Self(u32::MAX as u64 * 1000);

    /// The instant of a timestamp, within [`Moment::ZERO`] and [`Moment::NEVER`].
    pub fn of(time: Timestamp) -> Self {
        Self(u64::try_from(time.as_millisecond()).unwrap_or_default()).min(Self::NEVER)
    }

    /// So many whole seconds after 1970.
    pub fn from_second(second: u32) -> Self {
        Self(u64::from(second) * 1000)
    }

    /// So many milliseconds after 1970, at most [`Moment::NEVER`].
    pub fn from_millisecond(millisecond: u64) -> Self {
        Self(millisecond).min(Self::NEVER)
    }

    /// The whole seconds after 1970.
    #[expect(clippy::cast_possible_truncation, reason = "at most u32::MAX seconds")]
    pub fn second(self) -> u32 {
        (self.0 / 1000) as u32
    }

    /// The milliseconds after 1970.
    pub fn millisecond(self) -> u64 {
        self.0
    }

    /// The timestamp.
    pub fn timestamp(self) -> Timestamp {
        // Cannot fail: NEVER is long before the last timestamp.
        Timestamp::from_millisecond(i64::try_from(self.0).unwrap_or(i64::MAX)).unwrap_or(Timestamp::MAX)
    }

    /// The instant this long after.
    #[must_use]
    pub fn after(self, interval: Interval) -> Self {
        Self::of(interval.after(self.timestamp()))
    }

    /// The instant so many milliseconds after.
    #[must_use]
    pub fn after_millis(self, millis: u64) -> Self {
        Self::from_millisecond(self.0.saturating_add(millis))
    }

    /// The time that counts when a caller says it is `now`, after this one was the latest.
    ///
    /// Callers read the clock before they wait for their turn, so that one may come with a time a little
    /// behind; for the queue, time never goes back for that. A clock that is an hour behind was set back, and is believed.
    #[must_use]
    pub fn advanced(self, now: Self) -> Self {
        if now.after_millis(HOUR) < self { now } else { self.max(now) }
    }

    /// The whole second at which an entry is due that may be fetched from `time` on.
    ///
    /// What is due already counts from the start of its second, so that it can be had at once; what
    /// is not waits for the end of its second, so that it is never had too early.
    pub fn due(time: Timestamp, now: Self) -> Self {
        let floor = Self::from_second(Self::of(time).second());
        let is_whole = time.subsec_nanosecond() == 0;
        if Self::of(time) <= now || is_whole { floor } else { floor.after_millis(1000) }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timestamp().fmt(f)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            forager_core::time::deserialize(deserializer).map(Self::of)
        } else {
            u64::deserialize(deserializer).map(Self::from_millisecond)
        }
    }
}
