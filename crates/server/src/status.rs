//! What clients are told when a call fails as a whole.

use forager_core::read::shortened;
use forager_frontier::Error;
use tonic::Status;

/// How many letters of what a client said are repeated to it.
const MOST_QUOTED: usize = 100;

/// How many letters the words of an error have. They travel among the headers, where each may take twelve bytes, and
/// clients end a connection, with all its calls, whose headers have more than 8,000.
const MOST_WORDS: usize = 400;

/// What a client said, as it is repeated in a status: never so much of it that the client cannot read the answer.
pub(crate) fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text, MOST_QUOTED))
}

/// The status of a call that the queue could not answer.
pub(crate) fn of(error: &Error) -> Status {
    let words = shortened(&error.to_string(), MOST_WORDS).into_owned();
    match error {
        Error::Configuration(_) => Status::invalid_argument(words),
        Error::NotFound { .. } => Status::not_found(words),
        Error::Exists { .. } => Status::already_exists(words),
        // The server ends by one that is unfit: what was asked may be asked again, of this one or another.
        Error::Locked { .. }
        | Error::Storage { .. }
        | Error::Database { .. }
        | Error::Stopped { .. }
        | Error::Unfit { .. } => Status::unavailable(words),
        Error::NewerFormat { .. } | Error::Damaged { .. } => Status::internal(words),
    }
}

/// What a stream is told that cannot go on because the server stops.
pub(crate) fn closing() -> Status {
    Status::unavailable("the server is being stopped; what was not acknowledged may be sent again")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a status takes among the headers at most: three bytes for each of its own.
    fn on_the_wire(status: &Status) -> usize {
        status.message().len() * 3
    }

    #[test]
    fn errors_that_name_what_is_long_fit_into_headers() {
        for letter in ["a", "ü", "\u{1f98a}", "\u{1}"] {
            let name = letter.repeat(60_000);
            let status = of(&Error::NotFound { kind: "seed", name: name.clone() });
            assert!(status.message().starts_with("there is no seed"), "{letter:?}: {status}");
            assert!(on_the_wire(&status) < 6_000, "{letter:?}: {}", status.message());
            assert!(quoted(&name).len() * 3 < 4_000, "{letter:?}: {}", quoted(&name));
        }
        assert_eq!(quoted("http://a.example/"), "\"http://a.example/\"", "what is short is whole");
    }
}
