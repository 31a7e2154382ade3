//! How a command ended, and the exit status that says so.
//!
//! The numbers are those that other crawlers have, so that scripts that start them know what to do: try again, do not, or
//! call a person. 16 (a limit of disk space) is not given, for there is no such limit here.

use std::error::Error;
use std::fmt;
use std::io;

use crate::store;

/// How a run ended, where it did not fail as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every line was good.
    Complete,
    /// Some lines were bad; each was reported, and the others were processed.
    SomeBad,
    /// Every page to start from failed.
    Failed,
    /// No page to start from may be fetched, or is there, which trying again does not change.
    Forbidden,
    /// It was asked to stop, and did when what was under way was finished.
    Interrupted,
    /// It was asked to stop at once, and did.
    Forced,
    /// So many bytes as allowed were read.
    SizeLimit,
    /// As long as allowed was worked.
    TimeLimit,
    /// What is left waits for a person.
    Stuck,
    /// What was not had was refused by hosts that are asked too often.
    RateLimited,
}

impl Outcome {
    /// The exit status.
    pub(crate) fn status(self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::SomeBad => 1,
            Self::Forbidden => WRONG,
            Self::Failed => 9,
            Self::Interrupted => 11,
            Self::Forced => 13,
            Self::SizeLimit => 14,
            Self::TimeLimit => 15,
            Self::Stuck => NEEDS_A_PERSON,
            Self::RateLimited => 18,
        }
    }
}

/// What was asked for is wrong, and stays so.
const WRONG: u8 = 4;

/// The queue cannot be had, or not any more.
const NO_QUEUE: u8 = 8;

/// Nothing changes by itself, and it is not what was asked for that is wrong.
const NEEDS_A_PERSON: u8 = 17;

/// A page that cannot be had now.
#[derive(Debug)]
pub(crate) struct NotHad {
    what: String,
    is_rate_limited: bool,
}

impl NotHad {
    pub(crate) fn new(what: impl fmt::Display, is_rate_limited: bool) -> Self {
        Self { what: what.to_string(), is_rate_limited }
    }
}

impl fmt::Display for NotHad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for NotHad {}

/// Whoever read what a crawl writes has gone away.
#[derive(Debug)]
pub(crate) struct Deserted;

impl fmt::Display for Deserted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("whoever read the output is gone, so that the crawl was stopped")
    }
}

impl Error for Deserted {}

/// It was asked to stop before it had begun, while it waited for its queue.
#[derive(Debug)]
pub(crate) struct NotBegun;

impl fmt::Display for NotBegun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped while it waited for the database; nothing was begun")
    }
}

impl Error for NotBegun {}

/// It was asked to stop while it waited for an answer of its queue.
#[derive(Debug)]
pub(crate) struct Unanswered;

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped while it waited for the queue to answer")
    }
}

impl Error for Unanswered {}

/// It was asked to stop at once, and left while its queue did not answer.
#[derive(Debug)]
pub(crate) struct Left;

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "stopped at once, while the queue did not answer; it has what was under way again a little later",
        )
    }
}

impl Error for Left {}

/// An error of writing what a crawl has to tell: a reader that goes away stops it, as a signal does.
pub(crate) fn stopped_by(error: anyhow::Error) -> anyhow::Error {
    if is_closed_pipe(&error) { Deserted.into() } else { error }
}

/// The exit status of a command that failed: 3 if the disk is full, 8 if the queue cannot be had, 17 if it is damaged, 9
/// if a page cannot be had, 18 if its host is asked too often, 11 if nobody reads the output of a crawl any more or
/// it was stopped before it began, 13 if it was stopped at once while its queue did not answer, 4 if what was asked for is wrong.
pub(crate) fn status_of_failure(error: &anyhow::Error) -> u8 {
    let is_full = error.chain().any(|cause| cause.to_string().contains("No space left on device"));
    match error.chain().find_map(status_of_cause) {
        _ if is_full => 3,
        _ if store::is_locked(error) => NO_QUEUE,
        status => status.unwrap_or(WRONG),
    }
}

fn status_of_cause(cause: &(dyn Error + 'static)) -> Option<u8> {
    use forager_frontier::Error as QueueError;
    if let Some(page) = cause.downcast_ref::<NotHad>() {
        let outcome = if page.is_rate_limited { Outcome::RateLimited } else { Outcome::Failed };
        return Some(outcome.status());
    }
    if cause.is::<Deserted>() || cause.is::<NotBegun>() || cause.is::<Unanswered>() {
        return Some(Outcome::Interrupted.status());
    }
    if cause.is::<Left>() {
        return Some(Outcome::Forced.status());
    }
    if let Some(forager_server::Error::Stopped(_)) = cause.downcast_ref() {
        return Some(NO_QUEUE);
    }
    let queue = match cause.downcast_ref() {
        Some(forager_crawl::Error::Queue(error)) => error,
        _ => cause.downcast_ref::<QueueError>()?,
    };
    Some(match queue {
        QueueError::Damaged { .. } | QueueError::NewerFormat { .. } => NEEDS_A_PERSON,
        QueueError::Unfit { .. } => WRONG,
        error if error.is_about_input() => WRONG,
        _ => NO_QUEUE,
    })
}

/// Whoever reads our output has seen enough: `forager rank … | head` is no error.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    })
}
