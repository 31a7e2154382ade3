//! The bounds of one request.

use std::time::Duration;

use ::http::header::{HeaderMap, HeaderName, HeaderValue};

use super::Failure;

const MIB: u64 = 1024 * 1024;

/// How long and how large anything may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For looking up the name, connecting and agreeing on encryption, together.
    pub connect: Duration,
    /// From the connection to the end of the headers of the answer.
    pub first_byte: Duration,
    /// For everything.
    pub whole: Duration,
    /// The bytes of a body that are kept, after its encoding is undone.
    pub body_bytes: u64,
    /// The bytes of a body that are read, as they come.
    pub wire_bytes: u64,
    /// The bytes of the headers of an answer.
    pub header_bytes: usize,
    /// The number of headers of an answer.
    pub header_count: usize,
    /// How many times larger a body may become when its encoding is undone.
    pub decompression_ratio: u64,
    /// Up to so many bytes that ratio does not matter: an empty page of spaces shrinks to nothing.
    pub ratio_floor_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(30),
            whole: Duration::from_mins(2),
            body_bytes: 10 * MIB,
            wire_bytes: 10 * MIB,
            header_bytes: 64 * 1024,
            header_count: 100,
            decompression_ratio: 100,
            ratio_floor_bytes: MIB,
        }
    }
}

impl Limits {
    /// The size of the buffer that the head of an answer has to fit into. Less is not possible.
    pub(super) fn header_buffer(&self) -> usize {
        self.header_bytes.max(8192)
    }

    /// The size of the headers that HTTP/2 reads. Those that are larger break the protocol; those
    /// between this and the limit have a better name, see [`Limits::check_headers`].
    pub(super) fn header_list(&self) -> u32 {
        u32::try_from(self.header_bytes.saturating_mul(4)).unwrap_or(u32::MAX)
    }

    /// Refuses headers that are too many or too large. While they are read, that is only known
    /// roughly: HTTP/1 looks after each piece that comes, and HTTP/2 does not count them.
    pub(super) fn check_headers(&self, headers: &HeaderMap, host: &str) -> Result<(), Failure> {
        let bytes = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 4;
        if headers.len() > self.header_count || headers.iter().map(bytes).sum::<usize>() > self.header_bytes {
            return Err(self.headers_too_large(host));
        }
        Ok(())
    }

    pub(super) fn headers_too_large(&self, host: &str) -> Failure {
        Failure::HeadersTooLarge {
            host: host.to_owned(),
            bytes: self.header_buffer(),
            count: self.header_count,
        }
    }
}
