//! What can go wrong with a frontier, and what to do about it.

use std::path::PathBuf;

use crate::moment::Moment;

/// The result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed as a whole. Nothing of it was done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Collections, profiles or seeds cannot be used as they are given.
    #[error("{0}")]
    Configuration(String),
    /// Something that is asked for is not there.
    #[error("there is no {kind} {name:?}")]
    NotFound {
        /// Collection, profile, seed, job or host.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// Something is there already.
    #[error("{kind} {name:?} is there already")]
    Exists {
        /// Collection, profile, seed or job.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// The folder is in use.
    #[error("{} is open in another process; stop it, or choose another folder with --data", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// The folder was written by a later version.
    #[error(
        "{} was written by a newer version of Forager (format {found}, this one knows {known}); \
         use that version, or export from it and import here", path.display()
    )]
    NewerFormat {
        /// The folder.
        path: PathBuf,
        /// The format found.
        found: u32,
        /// The format known.
        known: u32,
    },
    /// The folder holds something else, or was damaged.
    #[error("{}: {problem}; restore it from a backup, or choose another folder with --data", path.display())]
    Damaged {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// What is there is no queue that this program can use, and stays so however often it is tried.
    #[error("{place}: {problem}")]
    Unfit {
        /// The folder, or the database.
        place: String,
        /// Why, and what to do.
        problem: String,
    },
    /// The folder cannot be read or written.
    #[error("{}: {problem}", path.display())]
    Storage {
        /// The folder.
        path: PathBuf,
        /// What went wrong, and what to do.
        problem: String,
    },
    /// The database cannot be used.
    #[error("the database: {problem}")]
    Database {
        /// What went wrong, and what to do.
        problem: String,
    },
    /// An earlier write failed, so nothing more is accepted.
    #[error(
        "{}: writing failed at {since} ({problem}); nothing acknowledged is lost: \
         mend that and start again", path.display()
    )]
    Stopped {
        /// The folder.
        path: PathBuf,
        /// What went wrong.
        problem: String,
        /// When.
        since: Moment,
    },
}

impl Error {
    /// Whether it is about what was asked, rather than about the state of the queue.
    pub fn is_about_input(&self) -> bool {
        matches!(self, Self::Configuration(_) | Self::NotFound { .. } | Self::Exists { .. })
    }

    pub(crate) fn not_found(kind: &'static str, name: &str) -> Self {
        Self::NotFound { kind, name: name.to_owned() }
    }

    pub(crate) fn exists(kind: &'static str, name: &str) -> Self {
        Self::Exists { kind, name: name.to_owned() }
    }
}
