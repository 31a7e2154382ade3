//! Random sequences of calls: the embedded store and the plain model agree call by call, whatever
//! happens, with restarts in between.
//!
//! `FORAGER_SOAK_STEPS` makes it longer; a failure prints the seed to replay it with `FORAGER_SEED`,
//! and the shortest sequence of calls that fails.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::hash::{BuildHasher as _, Hasher as _};
use std::path::Path;

use common::audit::Auditor;
use common::calls::{Call, Caller, calls, runner};
use common::{close, is_sound, open, setting, wait};
use forager_frontier::{Frontier, Memory, Settings};
use proptest::prelude::*;

/// Steps of one sequence.
const LENGTH: usize = 120;

#[derive(Clone, Debug)]
enum Step {
    Call(Call),
    /// An orderly end and a new start.
    Restart,
    /// An end without any order: what was acknowledged is there all the same.
    Abandon,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step =
        prop_oneof![60 => calls().prop_map(Step::Call), 1 => Just(Step::Restart), 1 => Just(Step::Abandon)];
    proptest::collection::vec(step, 1..LENGTH)
}

/// Where the two differ first, in full.
fn same(what: &str, model: &[String], store: &[String]) -> Result<(), TestCaseError> {
    for (ours, theirs) in model.iter().zip(store) {
        prop_assert_eq!(theirs, ours, "{}: the store (left) and the model (right) differ", what);
    }
    prop_assert_eq!(store.len(), model.len(), "{}: one shows more than the other", what);
    Ok(())
}

async fn agree(folder: &Path, steps: &[Step]) -> Result<(), TestCaseError> {
    let model = Memory::new(Settings::default()).unwrap();
    let mut store = open(folder, Settings::default());
    let mut caller = Caller::default();
    caller.set_up(&model).await;
    caller.set_up(&store).await;
    let mut other = caller.clone();
    let mut auditor = Auditor::from(caller.now);
    for (number, step) in steps.iter().enumerate() {
        let is_last = number + 1 == steps.len();
        match step {
            Step::Call(call) => {
                let answer = caller.make(&model, call).await;
                auditor.note(call, &answer, caller.now);
                let ours = answer.text;
                let theirs = other.make(&store, call).await.text;
                prop_assert_eq!(
                    theirs,
                    ours,
                    "step {}, {:?}: the store (left) and the model (right)",
                    number,
                    call
                );
            }
            Step::Restart => {
                close(store);
                store = open(folder, Settings::default());
            }
            Step::Abandon => {
                drop(store);
                store = open(folder, Settings::default());
            }
        }
        if !matches!(step, Step::Call(_)) {
            caller.begin();
            other.begin();
        }
        if is_last || number % 16 == 15 || !matches!(step, Step::Call(_)) {
            let what = format!("after step {number}, {step:?}");
            same(&what, &caller.see_all(&model).await, &other.see_all(&store).await)?;
            counts_are_right(&what, &caller, &store).await?;
            caller.looked();
            other.looked();
            auditor.looked(caller.now);
            is_sound(&store);
        }
    }
    Ok(())
}

/// What is counted equals what a scan of everything counts.
async fn counts_are_right(what: &str, caller: &Caller, store: &dyn Frontier) -> Result<(), TestCaseError> {
    use forager_frontier::entry::State;
    use forager_frontier::verbs::ListFilter;
    let now = caller.now.timestamp();
    let all =
        store.list(&ListFilter { limit: usize::MAX, ..ListFilter::default() }, now).await.unwrap().entries;
    for stats in store.stats(None, now).await.unwrap() {
        let count = |state| {
            let its = all.iter().filter(|entry| entry.collection == stats.collection && entry.state == state);
            its.count() as u64
        };
        let counted = State::ALL.map(count);
        prop_assert_eq!([stats.queued, stats.in_flight, stats.done, stats.failed], counted, "{}", what);
    }
    Ok(())
}

#[test]
fn the_store_and_the_model_agree_call_by_call() {
    let count = setting("FORAGER_SOAK_STEPS", 2000);
    let is_soak = std::env::var_os("FORAGER_SOAK_STEPS").is_some();
    let drawn = std::hash::RandomState::new().build_hasher().finish();
    let seed = setting("FORAGER_SEED", if is_soak { usize::try_from(drawn).unwrap_or(1) } else { 1 });
    let cases = u32::try_from(count * 2 / LENGTH).unwrap().max(1);
    let result = runner(seed as u64, cases).run(&steps(), |steps| {
        let folder = common::new_folder();
        wait(agree(folder.path(), &steps))
    });
    if let Err(failure) = result {
        panic!("{failure}\nreplay it with FORAGER_SEED={seed} FORAGER_SOAK_STEPS={count}");
    }
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
