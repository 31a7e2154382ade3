//! Random sequences of calls: the embedded store and the plain model agree call by call, whatever
//! happens, with restarts in between.
//!
//! `FORAGER_SOAK_STEPS` makes it longer; a failure prints the seed to replay it with `FORAGER_SEED`,
//! and the shortest sequence of calls that fails.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::agree::{Stand, agree, agree_on_random_calls};
use common::calls::Caller;
use common::{close, is_sound, open, wait};
use forager_frontier::{Embedded, Memory, Settings};
use tempfile::TempDir;

impl Stand for TempDir {
    type Store = Embedded;

    fn open(&self) -> Embedded {
        open(self.path(), Settings::default())
    }

    fn close(&self, store: Embedded) {
        close(store);
    }

    fn check(&self, store: &Embedded) {
        is_sound(store);
    }
}

#[test]
fn the_store_and_the_model_agree_call_by_call() {
    agree_on_random_calls(2000, |steps| wait(agree(&common::new_folder(), &steps)));
}

/// A sequence that only ever hears "no" proves little.
#[test]
fn the_calls_reach_everything_that_can_be_answered() {
    let mut missing = vec![
        "Added",
        "Improved",
        "Kept",
        "Removed",
        "Ignored",
        "Invalid", // what becomes of a link
        "outcome: Again",
        "outcome: Done",
        "outcome: Failed",
        "outcome: Removed",
        "outcome: Refused",
        "changed: true",
        "as_oldest: true",
        "held: true",
        "held: false",
        "taken over",
        "Empty",
        "NotDue",
        "Throttled",
        "Blocked { until: None }",
        "Blocked { until: Some",
        "Abandoned",
        "Finished",
        "Changed",
        "state: Paused",
        "state: Cancelled",
        "gate: Some(InFlight)",
        "gate: Some(FetchLimit)",
        "gate: Some(Robots)",
        "gate: Some(BackOff)",
        "error: there is no",
        "is there already",
        "[true",
        "waits_for: Some(Others)",
        "leased: the owner stays",
        "owner c: longest prefix",
        "stored depth in scope",
        "found: [Discovery { action: Added", // with a report
        "lists pages of the site",
        "how: Listing",
        "how: Redirect",
        "etag: Some",
        "difference: Difference { added: [\"", // what changed
        "text a https://",                     // what a page says
        "robots x.example: [",
        "FetchRow",
        "result: \"robots\"",
        "1 to 60000", // a key that cannot be kept
        "most_in_flight: 1, ",
        "back_off_until: Some(",
        "result: \"address\"",
        "unreachable: ",
    ];
    let model_for = |seed: u64| async move {
        let model = Memory::new(Settings::default()).unwrap();
        let mut caller = Caller::default();
        caller.set_up(&model).await;
        let mut seen = String::new();
        for call in common::calls::sequence(seed, 400) {
            seen.push_str(&caller.make(&model, &call).await.text);
        }
        seen.push_str(&caller.see_all(&model).await.join("\n"));
        seen
    };
    for seed in 0..400 {
        if missing.is_empty() {
            break;
        }
        let seen = wait(model_for(seed));
        missing.retain(|word| !seen.contains(word));
    }
    assert!(missing.is_empty(), "never answered: {missing:?}");
}
