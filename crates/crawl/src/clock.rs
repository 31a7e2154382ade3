//! The time, as a crawl sees it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A clock that may go faster than the one on the wall, so that a day can be shown in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Timestamp,
    began: Instant,
    speed: u32,
}

impl Default for Clock {
    fn default() -> Self {
        Self { start: Timestamp::now(), began: Instant::now(), speed: 1 }
    }
}

impl Clock {
    /// A clock that starts at `start` and goes so many times as fast.
    pub fn faster(start: Timestamp, speed: u32) -> Self {
        Self { start, began: Instant::now(), speed: speed.max(1) }
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        if self.speed == 1 {
            return Timestamp::now();
        }
        let passed = SignedDuration::try_from(self.began.elapsed().saturating_mul(self.speed));
        passed.ok().and_then(|passed| self.start.checked_add(passed).ok()).unwrap_or(Timestamp::MAX)
    }

    /// Waits until it is `then`.
    pub async fn sleep_until(&self, then: Timestamp) {
        let wait = Duration::try_from(then.duration_since(self.now())).unwrap_or_default();
        // A little late rather than early: whoever is too early has to wait again.
        tokio::time::sleep(wait / self.speed + Duration::from_millis(1)).await;
    }
}
