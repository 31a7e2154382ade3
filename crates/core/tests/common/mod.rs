//! What the tables of all policies share: reading them, and writing times.
#![allow(dead_code, reason = "each test file takes what it needs")]

use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;

/// A list of `tests/cases/<file>.json`. A list that shrank below `at_least` fails, so that no
/// table passes by being empty.
pub(crate) fn cases<T: DeserializeOwned>(file: &str, list: &str, at_least: usize) -> Vec<T> {
    let list_of_cases = part::<Vec<T>>(file, list);
    assert!(list_of_cases.len() >= at_least, "{file}.json: {list}: {} cases only", list_of_cases.len());
    list_of_cases
}

/// A named part of `tests/cases/<file>.json`.
pub(crate) fn part<T: DeserializeOwned>(file: &str, name: &str) -> T {
    let path = format!("{}/tests/cases/{file}.json", env!("CARGO_MANIFEST_DIR"));
    #[expect(clippy::disallowed_methods, reason = "core does no I/O; its tests read their tables")]
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut whole: serde_json::Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(whole[name].take()).unwrap_or_else(|error| panic!("{file}.json: {name}: {error}"))
}

/// The instant at which every table is judged, unless it says otherwise.
pub(crate) fn now() -> Timestamp {
    "2024-06-15T08:00:00Z".parse().unwrap()
}

/// The instant so long before [`now`], written as `1h 30m`; `-1h` ago is still to come.
pub(crate) fn ago(length: &str) -> Timestamp {
    now() - length.parse::<SignedDuration>().unwrap()
}

/// The instant so long after [`now`].
pub(crate) fn after(length: &str) -> Timestamp {
    now() + length.parse::<SignedDuration>().unwrap()
}
