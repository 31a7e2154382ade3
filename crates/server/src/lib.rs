//! The queue of Forager, for clients of URLFrontier.
//!
//! The service speaks the interface of that project, so that whoever crawls with StormCrawler or Scrapy keeps the
//! fetcher and changes the queue. A crawl is a collection and a queue key a host: what a client puts can be looked at
//! with the commands of Forager, and the other way round.
//!
//! [`Server`] is what is run. Each call is in the file that is named after what it does; **no rule of the queue is
//! decided here**, and nothing is kept that has to outlive the process.

mod anybody;
mod arriving;
mod auth;
mod budget;
mod codec;
mod connections;
mod control;
mod echo;
mod ending;
mod exchange;
mod exporter;
mod gathered;
mod get;
pub mod limits;
mod listing;
mod metadata;
mod metrics;
mod names;
mod pages;
mod put;
mod readiness;
mod removal;
mod salvage;
mod serve;
mod service;
mod shared;
mod stats;
mod status;
mod wire;

/// The messages, the client and the service, as they are described in `proto/urlfrontier.proto`.
#[allow(missing_docs, clippy::all, clippy::pedantic, unreachable_pub, reason = "made from the description")]
pub mod proto {
    tonic::include_proto!("urlfrontier");

    pub(crate) const DESCRIPTION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/urlfrontier.bin"));
}

pub use echo::echo;
pub use exporter::export;
pub use metrics::Metrics;
pub use serve::{Error, Options, Server, Tls};
pub use shared::Clock;
