//! What the verbs of a [`Frontier`](crate::Frontier) mean, exactly: the contract that every implementation passes.
//!
//! A case is a function over a [`World`]: a frontier, a clock that moves only when it is told to, and
//! words for what is asked of it. [`suite!`](crate::conformance_suite) stamps all cases onto an
//! implementation, one test each, so that a failure has a name.
//!
//! ```no_run
//! # use forager_frontier::conformance::{InMemory, Place};
//! forager_frontier::conformance_suite!(memory, || Box::new(InMemory::default()) as Box<dyn Place>);
//! ```

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::float_cmp,
    clippy::wildcard_imports,
    clippy::enum_glob_use,
    reason = "these are tests, though of other crates too: their names are what they say"
)]

pub mod clients;
pub mod complete;
pub mod configure;
pub mod discover;
pub mod explain;
pub mod hops;
pub mod hosts;
pub mod image;
pub mod jobs;
pub mod known;
pub mod lease;
pub mod leases;
pub mod links;
pub mod notes;
pub mod ownership;
pub mod plain;
pub mod priority;
pub mod read;
pub mod robots;
pub mod start;
pub mod versions;
pub mod waiting;

mod cases;
pub mod world;

pub use world::{InMemory, Place, World};
