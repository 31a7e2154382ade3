//! The decisions of Forager, as pure functions.
//!
//! Everything that Forager decides is decided here, once: what a URL is worth, whether it is in
//! scope, which seed owns it, when it is due again. Each result carries its reasons as typed
//! values. The queue, the crawler and the servers only carry these decisions out.
//!
//! Nothing here reads a clock, a file, a socket or a random source of its own: `now` and the
//! random source are arguments, so the same input gives the same answer everywhere.
//!
//! | module | decides |
//! |---|---|
//! | [`url`] | what is requested, what counts as the same page, how pages sort |
//! | [`score`] | how much a news page is worth now, 0 to 100 |
//! | [`hierarchy`] | how important a page is from how it was found, 0.000 to 1.000 |
//! | [`order`] | which of the pages due at a host goes first |
//! | [`select`] | which links of a home page describe services |
//! | [`sentinel`] | what kind of page it is, how often it changes, when to look again |
//! | [`scope`] | whether to fetch, queue, postpone or remove, and which seed owns it |
//! | [`merge`] | what a rediscovery may change |

pub mod hierarchy;
pub mod merge;
pub mod order;
pub mod patterns;
pub mod read;
pub mod scope;
pub mod score;
pub mod select;
pub mod sentinel;
pub mod time;
pub mod top;
pub mod url;

#[cfg(test)]
mod purity;
