//! What clients say that plan by themselves: they name queues, dates and what they are through with.

use std::collections::BTreeSet;

use crate::entry::EntryId;
use crate::moment::Moment;

/// What a client says of URLs of one collection.
#[derive(Clone, Debug, Default)]
pub struct Put {
    /// The collection.
    pub collection: String,
    /// The URLs, in the order in which they were told.
    pub items: Vec<Item>,
}

/// What a client says of a URL.
#[derive(Clone, Debug, Default)]
pub struct Item {
    /// The URL.
    pub url: String,
    /// Its queue key; the host of the URL if there is none.
    pub key: Option<String>,
    /// What is said of it.
    pub word: Word,
    /// What the client wants back with it. It takes the place of what there was, unless the URL was only found.
    pub metadata: Option<String>,
    /// The page that it was found on, where the client tells; for collections with profiles.
    pub source: Option<String>,
    /// The HTTP status that it was fetched with, where the client tells; for collections with profiles.
    pub status: Option<u16>,
    /// Whether it could not be fetched, where the client tells; for collections with profiles.
    pub failed: bool,
}

impl Item {
    /// Whether a plain collection can keep it: its URL and its queue key are there, and not too long.
    pub fn can_be_kept(&self) -> bool {
        crate::engine::plain_problem(self).is_none()
    }
}

/// What is said of a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Word {
    /// It was found: of no account where it is known.
    #[default]
    Found,
    /// It is to be fetched from this moment on, whatever there was before.
    Due(Moment),
    /// It is not to be fetched any more.
    Done,
}

/// Which entries have had their time.
#[derive(Clone, Debug)]
pub struct Purge {
    /// The collection.
    pub collection: String,
    /// Of this queue only.
    pub key: Option<String>,
    /// Those that were created before this.
    pub before: Moment,
    /// And these, whenever they were created: whoever wants all that there is at some time cannot say so by a second in
    /// which others may yet be created.
    pub also: BTreeSet<EntryId>,
    /// From the entry after this one on.
    pub after: Option<EntryId>,
    /// How many to look at.
    pub limit: usize,
}

/// What a purge has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// How many entries it removed.
    pub removed: u64,
    /// Where to go on; none at the end.
    pub next: Option<EntryId>,
}

/// The queue key that clients expect of a URL: what follows `://`, up to the first of `:`, `/`, `?`, `&`. Empty if there
/// is none.
pub fn derived_key(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split([':', '/', '?', '&']).next().unwrap_or_default()
}
