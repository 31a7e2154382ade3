//! What the demonstration takes down while it crawls.

use std::collections::{BTreeMap, BTreeSet};

use forager_crawl::{Found, PageLine, Watcher};
use jiff::Timestamp;

/// The pages in the order in which they were fetched.
#[derive(Default)]
pub(super) struct Order {
    pub(super) pages: Vec<PageLine>,
    /// Links that were not followed, with the rule.
    pub(super) skipped: Vec<(String, String)>,
    /// The URLs that pages led to.
    sighted: BTreeMap<String, Sighted>,
}

/// A URL that pages led to.
#[derive(Clone, Copy, Default)]
pub(super) struct Sighted {
    /// How many URLs were found before it.
    pub(super) place: usize,
    /// How many pages led to it.
    pub(super) pages: usize,
}

impl Order {
    /// What is known of a URL from other pages: nothing, of one to start from.
    pub(super) fn sighted(&self, url: &str) -> Sighted {
        self.sighted.get(url).copied().unwrap_or_default()
    }

    fn sight(&mut self, found: &[Found]) {
        let links: BTreeSet<&str> = found.iter().map(|link| link.url.as_str()).collect();
        for link in found {
            let place = self.sighted.len() + 1;
            self.sighted.entry(link.url.clone()).or_insert(Sighted { place, pages: 0 });
        }
        for link in links {
            self.sighted.entry(link.to_owned()).and_modify(|sighted| sighted.pages += 1);
        }
    }
}

impl Watcher for Order {
    fn page(&mut self, page: &PageLine, found: &[Found]) {
        use forager_frontier::verbs::Action;
        let skipped = found.iter().filter(|link| matches!(link.action, Action::Ignored | Action::Invalid));
        self.skipped.extend(skipped.map(|link| (link.url.clone(), link.rule.to_string())));
        self.sight(found);
        self.pages.push(page.clone());
    }
}

/// The changes that were found.
#[derive(Default)]
pub(super) struct Catches {
    pub(super) looks: u64,
    pub(super) not_changed: u64,
    /// Page, when it was seen, and the first line that is new.
    pub(super) changes: Vec<(String, Timestamp, Option<String>)>,
}

impl Watcher for Catches {
    fn page(&mut self, page: &PageLine, _found: &[Found]) {
        self.looks += 1;
        self.not_changed += u64::from(page.status == Some(304));
        if page.changed {
            let line = page.difference.as_ref().and_then(|difference| difference.added.first().cloned());
            self.changes.push((page.url.clone(), page.at, line));
        }
    }
}
