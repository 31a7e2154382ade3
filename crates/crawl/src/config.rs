//! How a crawl behaves.

use forager_core::time::Interval;
use forager_fetch::http::ConfigError;

/// How a crawl behaves, whatever it fetches.
#[derive(Clone, Debug)]
pub struct CrawlConfig {
    /// The name by which robots.txt addresses us.
    pub product_token: String,
    /// How many fetches may be under way altogether.
    pub at_once: usize,
    /// How long a page is held without a word: then it goes to others. What takes longer is held on to in time.
    pub hold: Interval,
    /// Whether to find out how each page was come to, which takes a look or two into the queue.
    pub traces: bool,
    /// How soon a page that failed is tried again: robots.txt that cannot be had is asked for as soon.
    pub first_retry: Interval,
}

impl Default for CrawlConfig {
    fn default() -> Self {
        let hold = Interval::from_secs_f64(600.0);
        let (product_token, first_retry) = ("forager".to_owned(), Interval::MINUTE);
        Self { product_token, at_once: 64, hold, traces: false, first_retry }
    }
}

/// What can stop a crawl.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The queue failed.
    #[error(transparent)]
    Queue(#[from] forager_frontier::Error),
    /// Nothing can be fetched with these settings.
    #[error(transparent)]
    Http(#[from] ConfigError),
}

/// What comes of a crawl.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
