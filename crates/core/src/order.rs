//! Which of the pages that are due at a host goes first.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// How a profile orders the pages of a host. Whatever the order, each page has a
/// [`Priority`](crate::hierarchy::Priority), and the higher one goes first unless arrival alone counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// In order of arrival.
    Fifo,
    /// By how the page was found: homepage, its header, its links, theirs.
    #[default]
    Hierarchy,
    /// As `hierarchy`, and a little more for each further page that links to it.
    Linked,
    /// By the news score.
    Score,
    /// By how urgent its changes are.
    Risk,
    /// By how well it describes a service.
    Services,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Fifo, Self::Hierarchy, Self::Linked, Self::Score, Self::Risk, Self::Services];

    /// The name as it is written everywhere.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Hierarchy => "hierarchy",
            Self::Linked => "linked",
            Self::Score => "score",
            Self::Risk => "risk",
            Self::Services => "services",
        }
    }

    /// Whether pages go by arrival alone, whatever their priority.
    pub fn is_by_arrival(self) -> bool {
        self == Self::Fifo
    }

    /// Whether pages of equal priority go by the time they are due; otherwise they go by arrival.
    pub fn ties_by_due(self) -> bool {
        matches!(self, Self::Score | Self::Risk)
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no [`Order`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an order; take fifo, hierarchy, linked, score, risk or services")]
pub struct UnknownOrder(String);

impl FromStr for Order {
    type Err = UnknownOrder;

    fn from_str(text: &str) -> Result<Self, UnknownOrder> {
        Self::ALL
            .into_iter()
            .find(|order| order.as_str() == text)
            .ok_or_else(|| UnknownOrder(text.to_owned()))
    }
}
