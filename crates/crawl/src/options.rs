//! What a profile asks of the reading of its pages.

use std::collections::HashMap;
use std::sync::Arc;

use forager_core::order::Order;
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
    /// Whether it counts what is written on a link.
    pub needs_texts: bool,
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
            needs_texts: goes_by_texts(profile),
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
        let mut options = profile.map_or_else(PageOptions::default, PageOptions::of);
        // A page may lead to one that is another's, which goes by an order of its own.
        options.needs_texts = self.catalog.as_ref().is_some_and(|catalog| {
            let mut profiles = catalog.rows().profiles.iter();
            profiles.any(|profile| profile.collection == collection && goes_by_texts(profile))
        });
        let options = Arc::new(options);
        self.known.insert(key, options.clone());
        options
    }
}

/// Whether a profile orders pages by what is written on the links to them.
fn goes_by_texts(profile: &Profile) -> bool {
    profile.order == Order::Services
}

/// The first profile of a seed in a collection.
fn profile_of<'c>(catalog: &'c Catalog, collection: &str, seed: &str) -> Option<&'c Profile> {
    let number = catalog.seed_number(&Identity::parse(seed).ok()?)?;
    let seed = &catalog.seed(number)?.seed;
    let named = |name: &String| catalog.rows().profiles.iter().find(|profile| profile.id == *name);
    seed.profiles.iter().filter_map(named).find(|profile| profile.collection == collection)
}

#[cfg(test)]
mod tests {
    use forager_core::scope::Seed;
    use forager_frontier::catalog::{Change, CollectionSpec, Kind};
    use forager_frontier::{Frontier as _, Memory, Settings};
    use jiff::Timestamp;

    use super::*;

    /// A catalog of two seeds in one collection, the second of which goes by this order.
    async fn catalog(second: Order) -> Arc<Catalog> {
        let frontier = Memory::new(Settings::default()).unwrap();
        let profile = |id: &str, order| {
            let mut profile = Profile::new(id, "c");
            profile.order = order;
            Change::AddProfile(Box::new(profile))
        };
        let seed = |url: &str, profile: &str| {
            let (url, profiles) = (url.to_owned(), vec![profile.to_owned()]);
            Change::AddSeed(Seed { url, profiles, enabled: true })
        };
        let changes = [
            Change::AddCollection(CollectionSpec::new("c", Kind::Planned)),
            profile("first", Order::Hierarchy),
            profile("second", second),
            seed("https://a.example/", "first"),
            seed("https://b.example/", "second"),
        ];
        frontier.configure(&changes, Timestamp::UNIX_EPOCH).await.unwrap();
        frontier.catalog().await.unwrap()
    }

    #[tokio::test]
    async fn texts_are_read_where_any_order_of_the_collection_goes_by_them() {
        for (order, want) in [(Order::Hierarchy, false), (Order::Services, true)] {
            let mut options = OptionsOf::default();
            options.go_by(catalog(order).await);
            for seed in ["https://a.example/", "https://b.example/"] {
                assert_eq!(options.get("c", Some(seed)).needs_texts, want, "{seed}, {order}");
            }
        }
    }
}
