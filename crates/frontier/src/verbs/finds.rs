//! Links and seeds: what was found, and what became of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::entry::How;
use crate::moment::Moment;

/// What to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A seed, by its URL, in the collections of all its profiles.
    Seed(String),
    /// All seeds of a profile.
    Profile(String),
    /// All profiles of a collection.
    Collection(String),
}

/// What became of a seed that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    /// The collection it was started in.
    pub collection: String,
    /// The URL.
    pub url: String,
    /// What became of it.
    pub action: Action,
    /// When it is due.
    pub due: Option<Moment>,
    /// Why.
    pub rule: Arc<str>,
}

/// Links, and the page they were found on.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Page {
    /// The collection that the page was fetched for.
    pub collection: String,
    /// The page. Where it is an entry, its seed, depth and priority are taken from there.
    pub source: Option<String>,
    /// The seed of the page, if it is no entry.
    pub seed: Option<String>,
    /// How far from the seed the page is, if it is no entry.
    pub depth: u32,
    /// What was found on it.
    pub links: Vec<Link>,
}

/// A link.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Link {
    /// Where it leads; absolute.
    pub url: String,
    /// How it was found.
    pub how: How,
    /// Whether it stands in the header or navigation of the page.
    pub in_header: bool,
    /// Its text.
    pub text: String,
    /// Its title.
    pub title: String,
    /// How well it fits the topic, 0 to 1.
    pub relevance: Option<f64>,
    /// The queue key, in a plain collection; the host of the URL if there is none.
    pub key: Option<String>,
    /// When it is due, in a plain collection; at once if there is none.
    pub due: Option<Moment>,
    /// What the client wants back with it.
    pub metadata: Option<String>,
    /// When it changed, as a sitemap says.
    pub last_modified: Option<Moment>,
}

/// What became of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Discovery {
    /// What was done.
    pub action: Action,
    /// Why.
    pub rule: Arc<str>,
}

/// What was done with a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// It is new in the queue.
    Added,
    /// It was known, and something about it is better now.
    Improved,
    /// It was known, and stays as it is.
    Kept,
    /// It was known, and is out of scope now.
    Removed,
    /// It is not wanted.
    Ignored,
    /// It is not a URL that can be crawled.
    Invalid,
}
