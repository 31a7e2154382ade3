//! When something changed, in all the ways that sitemaps and feeds write it.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::tz::TimeZone;

/// The longest text that can be a date, in bytes.
const MAX_DATE_BYTES: usize = 64;

/// Reads a date in a form of the W3C or, as RSS has it, of RFC 2822.
///
/// What is left out is the start: `2026` is the first of January at midnight. Without a zone it is
/// UTC, so that the answer does not depend on where we are.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    if text.len() > MAX_DATE_BYTES {
        return None;
    }
    text.parse()
        .ok()
        .or_else(|| in_utc(text.parse().ok()?))
        .or_else(|| in_utc(year_and_month(text)?.into()))
        .or_else(|| DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok())
}

fn in_utc(time: DateTime) -> Option<Timestamp> {
    TimeZone::UTC.to_timestamp(time).ok()
}

/// `2026` or `2026-02`.
fn year_and_month(text: &str) -> Option<Date> {
    let (year, month) = match text.split_once('-') {
        None => (text, "01"),
        Some(both) => both,
    };
    let is_number =
        |text: &str, digits| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(year, 4) || !is_number(month, 2) {
        return None;
    }
    Date::new(year.parse().ok()?, month.parse().ok()?, 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_all_forms() {
        let cases = [
            ("a year", "1997", "1997-01-01T00:00:00Z"),
            ("a month", "1997-07", "1997-07-01T00:00:00Z"),
            ("a day", "1997-07-16", "1997-07-16T00:00:00Z"),
            ("minutes", "1997-07-16T19:20+01:00", "1997-07-16T18:20:00Z"),
            ("seconds", "1997-07-16T19:20:30+01:00", "1997-07-16T18:20:30Z"),
            ("parts of a second", "1997-07-16T19:20:30.45+01:00", "1997-07-16T18:20:30.45Z"),
            ("in UTC", "1997-07-16T19:20:30Z", "1997-07-16T19:20:30Z"),
            ("minutes in UTC", "1997-07-16T19:20Z", "1997-07-16T19:20:00Z"),
            ("west of it", "1997-07-16T19:20:30-08:30", "1997-07-17T03:50:30Z"),
            ("a zone without a colon", "1997-07-16T19:20:30+0100", "1997-07-16T18:20:30Z"),
            ("no zone", "1997-07-16T19:20:30", "1997-07-16T19:20:30Z"),
            ("a space between", "1997-07-16 19:20:30Z", "1997-07-16T19:20:30Z"),
            ("a leap day", "2024-02-29", "2024-02-29T00:00:00Z"),
            ("as in mail", "Wed, 16 Jul 1997 19:20:30 +0100", "1997-07-16T18:20:30Z"),
            ("as in mail, of Greenwich", "Wed, 16 Jul 1997 19:20:30 GMT", "1997-07-16T19:20:30Z"),
            ("as in mail, on a wrong day", "Mon, 16 Jul 1997 19:20:30 GMT", "1997-07-16T19:20:30Z"),
            ("as in mail, without a day", "16 Jul 1997 19:20 GMT", "1997-07-16T19:20:00Z"),
        ];
        for (name, text, want) in cases {
            assert_eq!(parse(text), Some(want.parse().unwrap()), "{name}");
        }
    }

    #[test]
    fn what_is_no_date() {
        let texts =
            ["", "soon", "97", "1997-7", "1997-13", "1997-02-30", "1997-07-16T25:00Z", "16.07.1997", "19970"];
        for text in texts {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
