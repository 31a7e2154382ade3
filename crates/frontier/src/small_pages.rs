//! The tests of the whole store once more, in a build where its pages are small and its log is short: the
//! few entries of a test then go through all that is written at leisure.

#![allow(clippy::duplicate_mod, reason = "each file of tests brings what it shares with others")]

#[path = "../tests/kill.rs"]
mod kill;
#[path = "../tests/random.rs"]
mod random;

/// The store that they test is that of this build.
const _: fn(crate::Embedded) -> forager_frontier::Embedded = |store| store;
