//! Jobs, and how far collections are.

use std::ops::AddAssign;

use forager_core::order::Order;
use serde::{Deserialize, Serialize};

use crate::catalog::{Job, Limits};

/// A job to start.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Its name; also that of its collection and profile.
    pub id: String,
    /// Where it starts.
    pub urls: Vec<String>,
    /// Scope, order and depth; its name, collection and length are set by the job.
    pub profile: forager_core::scope::Profile,
    /// When it ends at the latest.
    pub limits: Limits,
}

/// What to do with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steer {
    /// Hand out nothing until it is resumed.
    Pause,
    /// Go on.
    Resume,
    /// Hand out nothing any more.
    Cancel,
}

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    /// Its name.
    pub id: String,
    /// Whether it goes on.
    pub state: JobState,
    /// How it orders its pages.
    pub order: Order,
    /// What it is made of.
    #[serde(flatten)]
    pub job: Job,
    /// How far it is.
    pub progress: Stats,
}

/// Whether a job goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// It goes on.
    Running,
    /// It waits to be resumed.
    Paused,
    /// A person ended it.
    Cancelled,
    /// It reached a limit, and has pages left; a higher limit lets it go on.
    Limited,
    /// It has nothing left to fetch.
    Finished,
}

/// How many entries a collection has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// The collection.
    pub collection: String,
    /// Entries in the queue, due or not.
    pub queued: u64,
    /// Entries that workers have.
    pub in_flight: u64,
    /// Entries that were fetched as often as asked.
    pub done: u64,
    /// Entries that were given up.
    pub failed: u64,
    /// Hosts that have entries.
    pub hosts: u64,
    /// Hosts that have entries which wait or are under way.
    #[serde(skip)]
    pub active_hosts: u64,
    /// What was counted since the collection began.
    #[serde(flatten)]
    pub tally: Tally,
}

/// What is counted as it happens, for no entry tells it afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// Fetches that were reported.
    pub fetches: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Changes that were found.
    pub changes: u64,
    /// Entries that were taken out of the queue unfetched, because they were out of scope.
    pub skipped: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, more: Self) {
        self.fetches = self.fetches.saturating_add(more.fetches);
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.changes = self.changes.saturating_add(more.changes);
        self.skipped = self.skipped.saturating_add(more.skipped);
    }
}
