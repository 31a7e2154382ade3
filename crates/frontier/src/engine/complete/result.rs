//! What came of a fetch, as far as the rules tell cases apart.

use forager_core::scope::after_fetch;
use forager_core::sentinel::schedule::Failure;

use crate::verbs::{FetchError, Report};

/// What came of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FetchResult {
    /// There was a page; it may be known not to have changed.
    Page { is_same: bool },
    /// 404 or 410.
    NotFound,
    /// The host had enough: 429 or 503.
    Refused,
    /// The host failed: 5xx, or no answer.
    Failed { by_host: bool },
    /// The page cannot be had: another 4xx, a status that HTTP does not know, or our own limits.
    Dead,
    /// It must not be fetched, so that nothing was asked of the host.
    Forbidden,
    /// Nobody can tell whether it may be fetched, because the host fails.
    Unknown,
}

impl FetchResult {
    pub(super) fn of(report: &Report) -> Option<Self> {
        Some(match (report.error, report.status) {
            (Some(FetchError::Timeout | FetchError::Network), _) => Self::Failed { by_host: true },
            (Some(FetchError::Damaged), _) => Self::Failed { by_host: false },
            (Some(FetchError::Robots | FetchError::Address), _) => Self::Forbidden,
            (Some(FetchError::Unreachable), _) => Self::Unknown,
            (Some(FetchError::Refused), _) => Self::Dead,
            (None, Some(404 | 410)) => Self::NotFound,
            (None, Some(429 | 503)) => Self::Refused,
            (None, Some(..100) | None) => return None,
            (None, Some(status)) => match Failure::of_status(status) {
                Some(Failure::Transient) => Self::Failed { by_host: false },
                Some(Failure::Dead) => Self::Dead,
                None => Self::Page { is_same: status == 304 },
            },
        })
    }

    pub(super) fn outcome(self) -> after_fetch::Outcome {
        match self {
            Self::Page { .. } => after_fetch::Outcome::Success,
            Self::NotFound => after_fetch::Outcome::NotFound,
            Self::Refused | Self::Failed { .. } | Self::Dead | Self::Forbidden | Self::Unknown => {
                after_fetch::Outcome::Failure
            }
        }
    }

    /// What the schedule calls it; none if it is no failure.
    pub(super) fn failure(self) -> Option<Failure> {
        match self {
            Self::Page { .. } => None,
            Self::NotFound | Self::Dead | Self::Forbidden => Some(Failure::Dead),
            Self::Refused | Self::Failed { .. } | Self::Unknown => Some(Failure::Transient),
        }
    }

    /// Whether the host was asked for the page.
    pub(super) fn was_asked(self) -> bool {
        !matches!(self, Self::Forbidden | Self::Unknown)
    }

    /// Whether the host has failed, or had enough.
    pub(super) fn is_by_host(self) -> bool {
        matches!(self, Self::Refused | Self::Failed { by_host: true } | Self::Unknown)
    }
}
