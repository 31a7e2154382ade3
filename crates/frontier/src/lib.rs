//! The queue of Forager: which URL may be fetched now, by whom, and why.
//!
//! [`Frontier`] is the seam: verbs that take batches, are told the time, and are atomic. Behind it
//! stands one engine, which holds every rule, and several stores, which hold none:
//! [`Memory`] is the plain model, `Embedded` keeps everything in one folder.

pub mod catalog;
pub mod entry;
pub mod error;
pub mod explain;
pub mod host;
pub mod moment;
pub mod settings;
pub mod store;
pub mod verbs;

#[cfg(feature = "conformance")]
pub mod conformance;

mod engine;

// Tests of the whole store run here once more, where its pages are small: see `small_pages`.
#[cfg(test)]
extern crate self as forager_frontier;
#[cfg(test)]
mod small_pages;

pub use error::{Error, Result};
pub use moment::Moment;
pub use settings::Settings;
pub use store::{
    Checked, Durability, Embedded, Finding, Memory, Migration, Options, Postgres, PostgresOptions,
    PostgresSchema, WriteBuffers,
};
pub use verbs::Frontier;
