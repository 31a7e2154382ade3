//! The demonstration web, crawled by the production crawler, and judged by what the server saw.
//!
//! This is `forager demo` without its pictures: how a site, a clock that goes faster, a queue in a folder and a
//! crawler are put together is in [`world`].

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod changes;
mod moved;
mod resume;
mod rules;
mod whole;
mod world;
