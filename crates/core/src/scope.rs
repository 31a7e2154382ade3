//! Whether a URL is fetched, queued, postponed or removed, and which seed owns it.
//!
//! A *collection* is a namespace of queued URLs. A *profile* says how to harvest and belongs to
//! one collection. A *seed* is a URL with the profiles it is harvested under. Each can be
//! disabled, which postpones and never removes, and deleted, which may remove.
//!
//! | question | function |
//! |---|---|
//! | may this entry be fetched now? | [`before_fetch`](before_fetch::before_fetch) |
//! | what becomes of it after the fetch? | [`after_fetch`](after_fetch::after_fetch) |
//! | what becomes of a link on the page? | [`outlink`](outlink::outlink) |
//! | what does starting a seed, profile or collection queue? | [`start`](start::start) |
//!
//! Each verdict names the rule that decided it.

pub mod after_fetch;
pub mod before_fetch;
pub mod config;
pub mod extent;
pub mod outlink;
pub mod start;

mod standing;
mod traps;

pub use config::{Collection, Profile, ScopeError, ScopeOptions, Scopes, Seed};
pub use extent::Place;
