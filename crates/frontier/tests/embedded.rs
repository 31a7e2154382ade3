//! The embedded store passes the contract.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use forager_frontier::conformance::Place;

forager_frontier::conformance_suite!(embedded, || Box::new(common::InFolder::new()) as Box<dyn Place>);
