//! What clients are told when a call fails as a whole.

use forager_frontier::Error;
use tonic::Status;

/// The status of a call that the queue could not answer.
pub(crate) fn of(error: &Error) -> Status {
    let words = error.to_string();
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
