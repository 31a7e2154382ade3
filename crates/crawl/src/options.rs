//! What a profile asks of the reading of its pages.

use std::collections::HashMap;
use std::sync::Arc;

use forager_core::scope::Profile;
use forager_core::scope::config::Reading;
use forager_core::scope::extent::Kind;
use forager_core::url::Identity;
use forager_fetch::fingerprint::ContentSelector;
use forager_frontier::catalog::Catalog;

/// What a profile asks of the reading of its pages.
#[derive(Clone, Debug, Default)]
pub struct PageOptions {
    /// What it says. Sitemaps are only wanted where they are of use.
    pub reading: Reading,
    /// The part of a page that counts.
    pub content: Option<ContentSelector>,
    /// Whether what a page leads to can be in scope at all.
    pub reaches_out: bool,
    /// Whether pages are fetched more than once, so that what they say has to be kept.
    pub comes_back: bool,
}

impl PageOptions {
    /// What a profile asks. A selector that cannot be read counts as none; whoever takes in profiles checks it.
    pub fn of(profile: &Profile) -> Self {
        let reaches_out = profile.scope != Kind::Page && profile.depth != Some(0);
        let mut reading = profile.reading.clone();
        reading.sitemaps &= reaches_out;
        Self {
            content: reading.content.as_deref().and_then(|text| ContentSelector::parse(text).ok()),
            reading,
            reaches_out,
            comes_back: profile.length != Some(1),
        }
    }
}

/// The options of each seed in each collection, worked out once.
#[derive(Debug, Default)]
pub(crate) struct OptionsOf {
    catalog: Option<Arc<Catalog>>,
    known: HashMap<(String, Option<String>), Arc<PageOptions>>,
}

impl OptionsOf {
    /// Goes by this catalog from now on.
    pub(crate) fn go_by(&mut self, catalog: Arc<Catalog>) {
        if !self.catalog.as_ref().is_some_and(|known| Arc::ptr_eq(known, &catalog)) {
            self.known.clear();
            self.catalog = Some(catalog);
        }
    }

    /// What is asked of the pages that a seed owns in a collection.
    pub(crate) fn get(&mut self, collection: &str, seed: Option<&str>) -> Arc<PageOptions> {
        let key = (collection.to_owned(), seed.map(str::to_owned));
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let profile = self.catalog.as_ref().and_then(|catalog| profile_of(catalog, collection, seed?));
        let options = Arc::new(profile.map_or_else(PageOptions::default, PageOptions::of));
        self.known.insert(key, options.clone());
        options
    }
}

/// The first profile of a seed in a collection.
fn profile_of<'c>(catalog: &'c Catalog, collection: &str, seed: &str) -> Option<&'c Profile> {
    let number = catalog.seed_number(&Identity::parse(seed).ok()?)?;
    let seed = &catalog.seed(number)?.seed;
    let named = |name: &String| catalog.rows().profiles.iter().find(|profile| profile.id == *name);
    seed.profiles.iter().filter_map(named).find(|profile| profile.collection == collection)
}
