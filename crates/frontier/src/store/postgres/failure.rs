//! Why a call did not go through, and what that means.

use std::collections::BTreeSet;
use std::time::Duration;

use deadpool_postgres::PoolError;
use rustls::CertificateError;
use tokio_postgres::Error as PgError;
use tokio_postgres::error::SqlState;

use crate::entry::HostId;
use crate::error::Error;
use crate::moment::Moment;

/// Why a call has to run again, or cannot.
#[derive(Debug)]
pub(super) enum Failure {
    /// The database says no, or says nothing.
    Database(PgError),
    /// The database did not answer a statement in this time.
    Silent(Duration),
    /// There is no connection to be had.
    Pool(PoolError),
    /// What is there cannot be read.
    Damaged(String),
    /// The call changes hosts that it has not locked.
    NotLocked(BTreeSet<HostId>),
    /// The call changes what only one at a time may.
    NotAlone,
    /// The call has to be alone, and others were still there.
    NotYetAlone,
    /// What was asked as the call began is by a catalog that is not the latest.
    OtherCatalog,
    /// Others hold all that could be claimed.
    OthersAreAtIt,
    /// What the call changes was changed at a later time.
    Behind(Moment),
    /// The connection was lost while a transaction was being committed, for this reason.
    Unheard(Box<Failure>),
    /// That transaction was not committed.
    Unsure,
    /// The call itself failed.
    Call(Error),
}

impl Failure {
    /// What is the matter, where time may mend it: a server that cannot be reached, or a statement that is late.
    pub(super) fn passing(&self) -> Option<String> {
        match self {
            Self::Database(cause) | Self::Pool(PoolError::Backend(cause)) if is_lost(cause) => {
                Some(describe(cause))
            }
            Self::Database(cause) if is_late(cause) => Some(describe(cause)),
            Self::Silent(limit) => Some(stands_still(*limit)),
            Self::Pool(PoolError::Timeout(_)) => Some(SILENT.to_owned()),
            Self::Unheard(why) => why.passing(),
            _ => None,
        }
    }

    /// Whether it is a server that says so.
    pub(super) fn is_said(&self) -> bool {
        match self {
            Self::Database(cause) | Self::Pool(PoolError::Backend(cause)) => cause.code().is_some(),
            Self::Unheard(why) => why.is_said(),
            _ => false,
        }
    }

    /// Whether the connection was lost, or is of no use any more.
    pub(super) fn is_loss(&self) -> bool {
        match self {
            Self::Database(cause) => is_lost(cause),
            Self::Silent(_) | Self::Unheard(_) => true,
            _ => false,
        }
    }

    /// Whether a lock was not to be had in the time that was given for it.
    pub(super) fn is_about_lock(&self) -> bool {
        matches!(self, Self::Database(cause) if is_locked(cause))
    }
}

/// What is said of a server that has not answered for so long.
fn stands_still(limit: Duration) -> String {
    format!("it did not answer for {} s", limit.as_secs_f64())
}

impl From<PgError> for Failure {
    fn from(cause: PgError) -> Self {
        Self::Database(cause)
    }
}

/// What is said of a server from which no connection is to be had in time.
pub(super) const SILENT: &str = "it does not answer in time";

/// Whether the server cannot be reached, or ended the connection.
fn is_lost(cause: &PgError) -> bool {
    let Some(code) = cause.code() else {
        if is_about_secrecy(cause) {
            return false;
        }
        // What is no answer of the server is a broken connection, unless it is a mistake of ours.
        return cause.is_closed()
            || std::error::Error::source(cause).is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
    };
    // A server that has no room will have some again; one that ended a transaction for its idleness takes another; and one
    // that only answers questions is about to be replaced, or to replace another.
    let is_temporary = [
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ]
    .contains(code);
    is_temporary || code.code().starts_with("08") || code.code().starts_with("57P")
}

/// Whether the tables are not those that this program knows.
pub(super) fn is_about_tables(cause: &PgError) -> bool {
    cause.code().is_some_and(|code| {
        [
            SqlState::UNDEFINED_TABLE,
            SqlState::UNDEFINED_COLUMN,
            SqlState::UNDEFINED_FUNCTION,
            SqlState::INVALID_SCHEMA_NAME,
            SqlState::FEATURE_NOT_SUPPORTED,
        ]
        .contains(code)
    })
}

/// Whether a statement took too long, or was not to wait so long, most often because somebody else holds what it needs:
/// nothing of it was done.
fn is_late(cause: &PgError) -> bool {
    cause.code() == Some(&SqlState::QUERY_CANCELED) || is_locked(cause)
}

/// Whether a lock was not to be had in the time that was given for it.
fn is_locked(cause: &PgError) -> bool {
    cause.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// Whether others got in the way, so that it may work the next time.
pub(super) fn is_conflict(cause: &PgError) -> bool {
    cause.code().is_some_and(|code| {
        [SqlState::UNIQUE_VIOLATION, SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE]
            .contains(code)
    })
}

/// Whether it is about how the database was set up, or how it is called: trying again changes nothing.
fn is_about_setup(cause: &PgError) -> bool {
    let Some(code) = cause.code() else { return is_about_how_to_log_in(cause) || is_about_secrecy(cause) };
    code.code().starts_with("28")
        || [SqlState::INVALID_CATALOG_NAME, SqlState::INSUFFICIENT_PRIVILEGE].contains(code)
}

/// Whether a connection was given up on this side, because the server wants a password, or another way to log in, than it was
/// given.
fn is_about_how_to_log_in(cause: &PgError) -> bool {
    // The library tells its kinds of errors apart by their words only.
    let words = cause.to_string();
    ["invalid configuration", "authentication error"].iter().any(|kind| words.starts_with(kind))
}

/// Whether there is no secret connection to be had: the server has none, or does not show who it is.
fn is_about_secrecy(cause: &PgError) -> bool {
    let is_broken =
        std::error::Error::source(cause).is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
    cause.to_string().starts_with("error performing TLS handshake")
        && (!is_broken || wrong_certificate(cause).is_some())
}

/// What is wrong with the certificate that a server shows.
fn wrong_certificate(cause: &PgError) -> Option<&CertificateError> {
    let source = std::error::Error::source(cause)?.downcast_ref::<std::io::Error>()?;
    match source.get_ref()?.downcast_ref()? {
        rustls::Error::InvalidCertificate(problem) => Some(problem),
        _ => None,
    }
}

/// What to do about a certificate that is wrong.
fn remedy(problem: &CertificateError) -> &'static str {
    match problem {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its address has to name the host as the certificate does"
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => "the server needs one that is valid now",
        _ => {
            "sslrootcert=FILE in its address names the authority that it is known by, and sslmode=disable does without"
        }
    }
}

/// Whether a statement that was prepared is not to be had at this connection, or another one is.
fn is_about_prepared(cause: &PgError) -> bool {
    cause.code().is_some_and(|code| {
        [SqlState::DUPLICATE_PSTATEMENT, SqlState::INVALID_SQL_STATEMENT_NAME].contains(code)
    })
}

/// What a database says, in one line.
pub(super) fn describe(cause: &PgError) -> String {
    match cause.as_db_error() {
        Some(said) if is_about_prepared(cause) => format!(
            "{}; behind a pooler that lends connections for single transactions, put prepare=false&listen=false into its address",
            said.message()
        ),
        Some(said) => match said.detail() {
            Some(detail) => format!("{} ({detail})", said.message()),
            None => said.message().to_owned(),
        },
        None => match (std::error::Error::source(cause), wrong_certificate(cause)) {
            (Some(source), Some(problem)) => format!("{cause}: {source}; {}", remedy(problem)),
            (Some(source), None) => format!("{cause}: {source}"),
            (None, _) => cause.to_string(),
        },
    }
}

/// A database that cannot be used as it is, which trying again does not change.
pub(super) fn unfit(problem: String) -> Error {
    Error::Unfit { place: "the database".to_owned(), problem }
}

/// What a database said, as an error that tells whether trying again may help.
pub(super) fn said(cause: &PgError) -> Error {
    let problem = describe(cause);
    if is_about_setup(cause) { unfit(problem) } else { Error::Database { problem } }
}

/// Why something failed that is no call: it is done when a program starts, or at somebody's word.
pub(super) fn to_error(failure: Failure) -> Error {
    let problem = match failure {
        Failure::Call(error) => return error,
        Failure::Damaged(problem) => problem,
        Failure::Database(cause) | Failure::Pool(PoolError::Backend(cause)) => return said(&cause),
        Failure::Silent(limit) => stands_still(limit),
        Failure::Pool(PoolError::Timeout(_)) => SILENT.to_owned(),
        Failure::Pool(cause) => cause.to_string(),
        other => format!("{other:?}"),
    };
    Error::Database { problem }
}
