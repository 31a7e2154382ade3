//! Dates as servers write them, which is not always as they should.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::tz::TimeZone;

/// Whoever counts on his fingers which day of the week it is may be wrong, and means the date.
static PARSER: DateTimeParser = DateTimeParser::new().relaxed_weekday(true);

/// Reads a date in the forms that are written: RFC 3339, RFC 2822, the three of HTTP, and `25-Jun-2010 15:00:00 PST`. A date
/// alone means its beginning, a time without zone UTC.
pub(crate) fn read(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let read = text.parse::<Timestamp>().ok().or_else(|| PARSER.parse_timestamp(text).ok());
    read.or_else(|| in_utc(text)).or_else(|| by_http(text)).or_else(|| in_words(text))
}

fn in_utc(text: &str) -> Option<Timestamp> {
    let moment = text.parse::<DateTime>().ok();
    let moment = moment.or_else(|| text.parse::<Date>().ok().map(|day| day.at(0, 0, 0, 0)))?;
    moment.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

fn by_http(text: &str) -> Option<Timestamp> {
    Timestamp::try_from(httpdate::parse_http_date(text).ok()?).ok()
}

/// `25-Aug-2011 15:00:00 EST` and `25 Jun 2010 15:00:00 PST`.
fn in_words(text: &str) -> Option<Timestamp> {
    let mended = text.replacen('-', " ", 2);
    let with_zone = |text: &str| PARSER.parse_timestamp(text).ok();
    with_zone(&mended).or_else(|| with_zone(&format!("{mended} GMT")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_they_are_meant() {
        let night = "2026-11-18T23:00:00Z";
        let table = [
            ("as it should be", "Wed, 18 Nov 2026 23:00:00 GMT", Some(night)),
            ("another day of the week", "Thu, 18 Nov 2026 23:00:00 GMT", Some(night)),
            ("none", "18 Nov 2026 23:00:00 GMT", Some(night)),
            ("lower case", "wed, 18 nov 2026 23:00:00 gmt", Some(night)),
            ("a zone as a number", "Thu, 19 Nov 2026 00:00:00 +0100", Some(night)),
            ("ISO", "2026-11-18T23:00:00Z", Some(night)),
            ("ISO without zone", "2026-11-18 23:00:00", Some(night)),
            ("a date alone", "2026-11-18", Some("2026-11-18T00:00:00Z")),
            ("of the older form", "Wednesday, 18-Nov-26 23:00:00 GMT", Some(night)),
            ("that of C", "Wed Nov 18 23:00:00 2026", Some(night)),
            ("with dashes", "18-Nov-2026 18:00:00 EST", Some(night)),
            ("nothing", "", None),
            ("a word", "tomorrow", None),
            ("no such day", "Mon, 31 Nov 2026 23:00:00 GMT", None),
        ];
        for (name, text, want) in table {
            assert_eq!(read(text), want.map(|want| want.parse().unwrap()), "{name}: {text}");
        }
    }
}
