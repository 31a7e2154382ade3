//! The embedded store passes the contract.

mod common;

use forager_frontier::conformance::Place;

forager_frontier::conformance_suite!(embedded, || Box::new(common::InFolder::new()) as Box<dyn Place>);
