//! The crawl: what is due is taken from the queue, fetched politely, understood, and reported.
//!
//! One turn of a page, in the order in which it happens:
//!
//! 1. [`Crawler::run`] leases it, once its host is ready for another request.
//! 2. [`robots`] says whether it may be fetched. Where that is not known, this turn is spent on asking
//!    for robots.txt, and the page waits for the next one.
//! 3. [`visit`] sends one request. A redirect is no second request, but a link: its target waits for its own turn.
//! 4. [`reading`] finds the links, and what the page is known by.
//! 5. [`Crawler::run`] hands in the report and the links together; the queue decides when the page is due again.
//!
//! Whatever is known of hosts and pages is in the queue. A crawl that is killed knows as much as it did.

pub mod audit;
pub mod clock;
mod config;
mod listings;
pub mod memory;
mod obstacle;
mod options;
mod pace;
mod places;
pub mod reading;
pub mod robots;
mod run;
pub mod scout;
mod told;
mod trail;
pub mod visit;

pub use config::{CrawlConfig, Error};
pub use options::PageOptions;
pub use run::{Crawler, Ended, Stop, Work};
pub use told::{Found, NotFetched, PageLine, Watcher};
pub use trail::Trail;
