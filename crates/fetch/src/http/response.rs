//! What came back.

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{CONTENT_TYPE, ETAG, HeaderName, LAST_MODIFIED, LOCATION, RETRY_AFTER};
use ::http::{HeaderMap, Version};
use bytes::Bytes;
use forager_core::time::Interval;
use jiff::Timestamp;
use tokio::sync::OwnedSemaphorePermit;

use crate::dates;

/// The longest wait that [`Response::retry_after`] gives, whatever the server says: 30 days.
pub const RETRY_AFTER_MAX: Interval = Interval::hours(720);

/// An answer, its body read as far as it may be.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code, from 100 to 999.
    pub status: u16,
    /// The headers as they came.
    pub headers: HeaderMap,
    /// The version of HTTP that was spoken.
    pub version: Version,
    /// The address that was connected to.
    pub address: SocketAddr,
    /// The body, its encodings undone.
    pub body: Bytes,
    /// How many bytes of the body came, before its encodings were undone.
    pub wire_bytes: u64,
    /// Why the body is not whole, if it is not.
    pub cut_off: Option<CutOff>,
    /// The value of `Content-Encoding`, if it has a part that is not known: the body is as it came.
    pub undecoded: Option<String>,
    /// How long it took.
    pub timings: Timings,
    /// Its place among the bodies that are longer than usual, for as long as it is kept.
    pub(super) _room: Option<Arc<OwnedSemaphorePermit>>,
}

/// Why a body is not whole. What came before is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CutOff {
    /// It is longer than bodies may be.
    BodyLimit,
    /// More bytes came than may be read.
    WireLimit,
    /// It grew too much when its encoding was undone.
    RatioLimit,
    /// Others that are longer than usual left no room for it in time. That says nothing of it.
    NoRoom,
    /// It took too long.
    Time,
    /// The connection ended before the body did.
    Broken,
    /// Its encoding has an error, or ends too early.
    BadEncoding,
}

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BodyLimit => "the body is longer than the limit",
            Self::WireLimit => "more bytes came than the limit",
            Self::RatioLimit => "the body grew too much when it was decompressed",
            Self::NoRoom => "other bodies of that length left no room for it",
            Self::Time => "the body took too long",
            Self::Broken => "the connection ended before the body did",
            Self::BadEncoding => "the compressed body has an error",
        })
    }
}

/// How long the steps took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timings {
    /// Looking up the name, connecting and agreeing on encryption; none if a connection was there.
    pub connect: Option<Duration>,
    /// From the start to the end of the headers.
    pub first_byte: Duration,
    /// From the start to the end of the body.
    pub whole: Duration,
}

impl Response {
    /// The `Content-Type`, as it came.
    pub fn content_type(&self) -> Option<&str> {
        self.header(&CONTENT_TYPE)
    }

    /// Where a redirect leads, as it came: often relative.
    ///
    /// Some servers send UTF-8 where only ASCII may stand, or bytes of an older encoding; browsers follow both, and so does
    /// this: what is no UTF-8 is asked for byte by byte (`/caf%E9`).
    pub fn location(&self) -> Option<Cow<'_, str>> {
        let bytes = self.headers.get(LOCATION)?.as_bytes();
        Some(std::str::from_utf8(bytes).map_or_else(|_| escaped(bytes).into(), Cow::from))
    }

    /// The `ETag`, to be sent back next time.
    pub fn etag(&self) -> Option<&str> {
        self.header(&ETAG)
    }

    /// The `Last-Modified`, to be sent back next time.
    pub fn last_modified(&self) -> Option<&str> {
        self.header(&LAST_MODIFIED)
    }

    /// How long the server asks to be left alone from `now` on, at most [`RETRY_AFTER_MAX`].
    pub fn retry_after(&self, now: Timestamp) -> Option<Interval> {
        retry_after(self.header(&RETRY_AFTER)?, now)
    }

    fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// The same with every byte escaped that is not ASCII.
fn escaped(bytes: &[u8]) -> String {
    let escape = |byte: &u8| {
        if byte.is_ascii() { char::from(*byte).to_string() } else { format!("%{byte:02X}") }
    };
    bytes.iter().map(escape).collect()
}

/// Reads a number of seconds or a date. What is past counts as now.
fn retry_after(text: &str, now: Timestamp) -> Option<Interval> {
    let text = text.trim();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let seconds = if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than any number has are a long time all the same.
        text.parse::<f64>().ok()?
    } else {
        // Some servers mean forever, and write the last second of 9999, which is later than any instant of ours.
        let by_http = httpdate::parse_http_date(text).ok();
        let at = by_http.or_else(|| Some(dates::read(text)?.into()))?;
        at.duration_since(now.into()).unwrap_or_default().as_secs_f64().ceil()
    };
    Some(Interval::from_secs_f64(seconds).min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_older_encodings_are_escaped() {
        let table: [(&[u8], &str); 3] =
            [(b"/plain?a=b", "/plain?a=b"), (b"/caf\xE9", "/caf%E9"), (b"/\xFFx\x80", "/%FFx%80")];
        for (bytes, want) in table {
            assert_eq!(escaped(bytes), want);
        }
    }

    #[test]
    fn both_forms_of_retry_after_are_read() {
        let now: Timestamp = "2024-06-15T08:00:00Z".parse().unwrap();
        let cases: [(&str, Option<f64>); 19] = [
            ("120", Some(120.0)),
            (" 5 ", Some(5.0)),
            ("0", Some(0.0)),
            ("-5", Some(0.0)),
            ("99999999999999999999999999", Some(2_592_000.0)),
            ("2592001", Some(2_592_000.0)),
            ("Sat, 15 Jun 2024 08:01:30 GMT", Some(90.0)),
            ("Saturday, 15-Jun-24 08:01:30 GMT", Some(90.0)),
            ("Sat Jun 15 08:01:30 2024", Some(90.0)),
            ("Mon, 15 Jun 2024 08:01:30 GMT", Some(90.0)),
            ("Sat, 15 Jun 2024 10:01:30 +0200", Some(90.0)),
            ("2024-06-15T08:01:30Z", Some(90.0)),
            ("Sat, 15 Jun 2024 07:00:00 GMT", Some(0.0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(2_592_000.0)),
            ("", None),
            ("-", None),
            ("soon", None),
            ("1e3", None),
            ("120 seconds", None),
        ];
        for (text, want) in cases {
            assert_eq!(retry_after(text, now).map(Interval::as_secs_f64), want, "{text:?}");
        }
    }
}
