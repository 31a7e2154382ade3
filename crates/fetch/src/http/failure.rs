//! Why there is no answer.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::CaptureConnection;

use super::Limits;
use super::connect::Note;
use crate::address::Refused;
use crate::dns::DnsError;

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The URL cannot be asked for.
    #[error("{url:?} cannot be requested: {cause}")]
    Url {
        /// The URL, shortened.
        url: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The host has no address that may be connected to.
    #[error("{host} may not be connected to: {refused}; {}", refused.remedy())]
    AddressRefused {
        /// The host.
        host: String,
        /// The address and its kind.
        refused: Refused,
    },
    /// The host has no address.
    #[error(transparent)]
    Dns(#[from] DnsError),
    /// No connection could be made.
    #[error("{address} ({host}) cannot be connected to: {cause}")]
    Connect {
        /// The host.
        host: String,
        /// The address that was tried last.
        address: SocketAddr,
        /// What the system says.
        cause: String,
    },
    /// No encrypted connection could be made.
    #[error("no secure connection to {host}: {reason}")]
    Tls {
        /// The host.
        host: String,
        /// Why not.
        reason: TlsReason,
    },
    /// It took too long.
    #[error("{host} {phase} within {limit:?}")]
    TimedOut {
        /// The host.
        host: String,
        /// What had not happened.
        phase: Phase,
        /// How long was waited.
        limit: Duration,
    },
    /// The connection ended before an answer.
    #[error("{host} closed the connection before it answered")]
    Closed {
        /// The host.
        host: String,
        /// Whether the connection had served another request before. Then the host may only have
        /// tired of waiting for the next one, and asking again at once is no new burden.
        reused: bool,
    },
    /// The answer is not HTTP.
    #[error("{host} did not answer in HTTP: {cause}")]
    Protocol {
        /// The host.
        host: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The headers are too large or too many.
    #[error("the headers of {host} are more than {bytes} bytes or {count} lines")]
    HeadersTooLarge {
        /// The host.
        host: String,
        /// How many bytes are read.
        bytes: usize,
        /// How many headers are read.
        count: usize,
    },
}

/// The kinds of [`Failure`], for counting and for deciding what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The URL cannot be asked for.
    Url,
    /// The address may not be connected to.
    AddressRefused,
    /// The name has no address.
    Dns,
    /// No connection.
    Connect,
    /// No encrypted connection.
    Tls,
    /// It took too long.
    TimedOut(Phase),
    /// The connection ended early, or what came is not HTTP.
    Protocol,
    /// The headers are too large.
    HeadersTooLarge,
}

/// What had not happened when time ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The connection.
    Connect,
    /// The head of the answer.
    FirstByte,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "was not connected to",
            Self::FirstByte => "did not answer",
        })
    }
}

/// Why an encrypted connection could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsReason {
    /// The time of the certificate is over.
    Expired,
    /// The time of the certificate has not begun.
    NotYetValid,
    /// The certificate is signed by itself, or by somebody who is not trusted.
    UnknownAuthority,
    /// The certificate is for other names.
    WrongName,
    /// The certificate was taken back.
    Revoked,
    /// Anything else, in the words of the library.
    Other(String),
}

impl fmt::Display for TlsReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its certificate has expired",
            Self::NotYetValid => "its certificate is not valid yet",
            Self::UnknownAuthority => "its certificate is from an unknown authority",
            Self::WrongName => "its certificate is for another name",
            Self::Revoked => "its certificate was revoked",
            Self::Other(text) => text,
        })
    }
}

impl Failure {
    /// What kind of failure this is.
    pub fn class(&self) -> Class {
        match self {
            Self::Url { .. } => Class::Url,
            Self::AddressRefused { .. } => Class::AddressRefused,
            Self::Dns(_) => Class::Dns,
            Self::Connect { .. } => Class::Connect,
            Self::Tls { .. } => Class::Tls,
            Self::TimedOut { phase, .. } => Class::TimedOut(*phase),
            Self::Closed { .. } | Self::Protocol { .. } => Class::Protocol,
            Self::HeadersTooLarge { .. } => Class::HeadersTooLarge,
        }
    }

    /// An answer over a connection that is not one of ours.
    pub(super) fn without_note(host: &str) -> Self {
        Self::Protocol { host: host.to_owned(), cause: "it came over an unknown connection".to_owned() }
    }

    /// What the client's error means.
    pub(super) fn of(
        error: &legacy::Error,
        host: &str,
        connection: &CaptureConnection,
        limits: &Limits,
    ) -> Self {
        if let Some(failure) = cause::<Self>(error) {
            return failure.clone();
        }
        let host = host.to_owned();
        match cause::<hyper::Error>(error) {
            Some(error) if error.is_parse_too_large() => limits.headers_too_large(&host),
            Some(error) if error.is_parse() => Self::Protocol { host, cause: error.to_string() },
            Some(error) if ended(error) => Self::Closed { host, reused: was_used(connection) },
            _ => Self::Protocol { host, cause: innermost(error).to_string() },
        }
    }
}

/// Whether the connection ended, politely or not.
fn ended(error: &hyper::Error) -> bool {
    let is_io = || cause::<std::io::Error>(error).is_some();
    error.is_incomplete_message() || error.is_canceled() || error.is_closed() || is_io()
}

/// Whether a connection had already served a request.
fn was_used(connection: &CaptureConnection) -> bool {
    let mut extensions = ::http::Extensions::new();
    if let Some(connected) = connection.connection_metadata().as_ref() {
        connected.get_extras(&mut extensions);
    }
    extensions.get::<Note>().is_some_and(Note::was_used)
}

/// The first error of a type among an error and its causes.
pub(super) fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An error of I/O skips the one that it wraps when it is asked for its cause.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = wrapped.map(|wrapped| wrapped as &(dyn Error + 'static)).or_else(|| error.source());
    }
    None
}

/// The last of the causes of an error, which says most.
pub(super) fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error
}
