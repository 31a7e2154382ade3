//! Instants in RFC 3339, and lengths of time as people write them: `4h`, `30 days`, `1h 30m`.

use core::fmt;
use core::str::FromStr;

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use serde::{Deserialize, Serialize};

/// A length of time that is not negative, and at most 100 years.
///
/// Days are 24 hours and weeks seven days; months and years are refused, for they differ in length.
///
/// ```
/// # use forager_core::time::Interval;
/// let interval: Interval = "1d 12h".parse()?;
/// assert_eq!(interval, Interval::hours(36));
/// assert_eq!(interval.to_string(), "36h");
/// # Ok::<(), forager_core::time::IntervalError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval(SignedDuration);

/// Why a text is not an [`Interval`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntervalError {
    /// It is not a length of time.
    #[error("{text:?} is not a length of time such as \"90s\", \"4h\" or \"30 days\"")]
    Invalid {
        /// What was written.
        text: String,
    },
    /// It is negative, or longer than [`Interval::MAX`].
    #[error("{text:?} is out of range: at least 0s, at most 36500 days")]
    OutOfRange {
        /// What was written.
        text: String,
    },
}

impl Interval {
    /// The longest there is: 36,500 days.
    pub const MAX: Self = Self(SignedDuration::from_hours(36_500 * 24));

    /// One minute.
    pub const MINUTE: Self = Self(SignedDuration::from_secs(60));

    /// So many hours, at most [`Interval::MAX`].
    pub const fn hours(hours: u32) -> Self {
        let max = Self::MAX.0.as_hours();
        let hours = hours as i64;
        Self(SignedDuration::from_hours(if hours < max { hours } else { max }))
    }

    /// So many seconds, rounded to whole ones, within zero and [`Interval::MAX`].
    pub fn from_secs_f64(seconds: f64) -> Self {
        let bounded = seconds.round().clamp(0.0, Self::MAX.as_secs_f64());
        Self(SignedDuration::try_from_secs_f64(bounded).unwrap_or_default())
    }

    /// The length in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0.as_secs_f64()
    }

    /// The length in hours.
    pub fn as_hours_f64(self) -> f64 {
        self.as_secs_f64() / 3600.0
    }

    /// The instant this long after `start`, or the last one there is.
    pub fn after(self, start: Timestamp) -> Timestamp {
        start.saturating_add(self.0).unwrap_or(Timestamp::MAX)
    }

    /// Twice as long for each of `times`, up to `limit`.
    #[must_use]
    pub fn doubled(self, times: u32, limit: Self) -> Self {
        let factor = 2_i32.checked_pow(times).unwrap_or(i32::MAX);
        self.0.checked_mul(factor).map_or(limit, |product| Self(product).min(limit))
    }
}

impl FromStr for Interval {
    type Err = IntervalError;

    fn from_str(text: &str) -> Result<Self, IntervalError> {
        let invalid = || IntervalError::Invalid { text: text.to_owned() };
        let span: Span = text.trim().parse().map_err(|_| invalid())?;
        let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| invalid())?;
        let interval = Self(length);
        if length.is_negative() || interval > Self::MAX {
            return Err(IntervalError::OutOfRange { text: text.to_owned() });
        }
        Ok(interval)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl Serialize for Interval {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Interval {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = crate::read::borrowed_text(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Reads an instant in RFC 3339. Unlike jiff's own, its error names the value.
pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = crate::read::borrowed_text(deserializer)?;
    let general = || text.parse().ok().filter(|_| has_shape_of_rfc_3339(&text));
    plain(&text).or_else(general).ok_or_else(|| {
        serde::de::Error::custom(format_args!("{text:?} is not a time such as \"2024-06-15T08:00:00Z\""))
    })
}

/// Whether a text has its separators where RFC 3339 has them; the parser takes many other forms too.
fn has_shape_of_rfc_3339(text: &str) -> bool {
    let separators = [(4, "-"), (7, "-"), (10, "Tt "), (13, ":"), (16, ":")];
    separators
        .iter()
        .all(|&(place, any)| text.as_bytes().get(place).is_some_and(|byte| any.as_bytes().contains(byte)))
}

/// An instant as most are written, to the second and in UTC, without the general parser.
fn plain(text: &str) -> Option<Timestamp> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', n1, n2, b':', s1, s2, b'Z'] =
        text.as_bytes()
    else {
        return None;
    };
    let digits = [y1, y2, y3, y4, m1, m2, d1, d2, h1, h2, n1, n2, s1, s2].map(|byte| byte.wrapping_sub(b'0'));
    if digits.into_iter().fold(0, u8::max) > 9 {
        return None;
    }
    let pair = |index: usize| i64::from(digits[index] * 10 + digits[index + 1]);
    let (year, month, day) = (pair(0) * 100 + pair(2), pair(4), pair(6));
    let (hour, minute, second) = (pair(8), pair(10), pair(12));
    // Days that not every month has, and leap seconds, are left to the general parser.
    let is_plain = matches!((month, day), (1..=12, 1..=28)) && hour < 24 && minute < 60 && second < 60;
    let seconds = ((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    is_plain.then(|| Timestamp::from_second(seconds).ok())?
}

/// The days from 1970-01-01 to a date of the Gregorian calendar, year 0 or later.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years that start in March end with the day that leap years add.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days_before_month = (153 * month + 2) / 5;
    year * 365 + leap_days + days_before_month + day - 1 - 719_468
}

/// Reads an instant that may be missing or `null`.
pub fn deserialize_option<'de, D>(deserializer: D) -> Result<Option<Timestamp>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    #[derive(Deserialize)]
    struct Instant(#[serde(deserialize_with = "deserialize")] Timestamp);
    Ok(Option::<Instant>::deserialize(deserializer)?.map(|Instant(instant)| instant))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn plain_times_are_as_parsed(text in "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]Z") {
            if let Some(instant) = plain(&text) {
                prop_assert_eq!(Some(instant), text.parse().ok());
            }
        }

        #[test]
        fn most_times_are_plain(second in 0_i64..253_402_207_200) {
            let instant = Timestamp::from_second(second).unwrap();
            let text = instant.to_string();
            prop_assert_eq!(plain(&text), (&text[8..10] < "29").then_some(instant));
        }
    }

    #[test]
    fn only_rfc_3339_is_a_time() {
        let read = |text: &str| deserialize(serde_json::Value::from(text)).is_ok();
        for text in [
            "2024-06-15T08:00:00Z",
            "2024-06-15t08:00:00.25+02:00",
            "2024-02-29 08:00:00Z",
            "2016-12-31T23:59:60Z",
        ] {
            assert!(read(text), "{text}");
        }
        for text in [
            "2024-06-15 08Z",
            "20240615T080000Z",
            "2024-06-15T08:00Z",
            "2024-06-15T08:00:00",
            "2023-02-29T08:00:00Z",
        ] {
            assert!(!read(text), "{text}");
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_the_parser() {
        let texts = [
            "2024-06-15T08:00:00+02:00",
            "2024-06-15 08:00:00Z",
            "2024-06-15T08:00:00.5Z",
            "",
            "2024-1a-15T08:00:00Z",
        ];
        for text in texts {
            assert_eq!(plain(text), None, "{text}");
        }
    }
}
