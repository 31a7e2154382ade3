//! Fetching pages and understanding them: HTTP, robots.txt, sitemaps, links, fingerprints.
//!
//! Nothing here knows of the queue. What to fetch, when, and whether it may be is decided by those
//! who call; what comes from outside is bounded here, where it comes in.

pub mod address;
mod dates;
pub mod difference;
pub mod directives;
pub mod dns;
pub mod encoding;
pub mod fingerprint;
mod html;
pub mod http;
pub mod links;
pub mod robots;
pub mod sitemap;
