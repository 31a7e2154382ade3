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
        Error::Locked { .. } | Error::Storage { .. } | Error::Database { .. } | Error::Stopped { .. } => {
            Status::unavailable(words)
        }
        Error::Unfit { .. } | Error::NewerFormat { .. } | Error::Damaged { .. } => Status::internal(words),
    }
}

/// The answer of the queue, where nothing there of this name is the same as nothing in it.
pub(crate) fn or_none<T>(answer: forager_frontier::Result<T>) -> Result<Option<T>, Status> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(of(&error)),
    }
}

/// What a stream is told that cannot go on because the server stops.
pub(crate) fn closing() -> Status {
    Status::unavailable("the server is being stopped; what was not acknowledged may be sent again")
}
