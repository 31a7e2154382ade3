//! The store in `PostgreSQL` passes the contract, on a real server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::postgres::InSchema;
use forager_frontier::conformance::Place;

forager_frontier::conformance_suite!(postgres, || Box::new(InSchema::new()) as Box<dyn Place>);
