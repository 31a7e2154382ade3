//! A copy that is taken while the store is at work: as it was at one moment, and whole.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::calls::{Call, Caller, sequence};
use common::{close, is_sound, open, wait};
use forager_frontier::{Error, Memory, Settings};

/// What the plain model shows now if only the first calls were made.
fn seen_after(caller: &Caller, calls: &[Call]) -> Vec<String> {
    let memory = Memory::new(Settings::default()).unwrap();
    let mut again = Caller::default();
    wait(again.set_up(&memory));
    for call in calls {
        wait(again.make(&memory, call));
    }
    wait(caller.see_all(&memory))
}

fn seen_in(folder: &Path, caller: &Caller) -> Vec<String> {
    let store = open(folder, Settings::default());
    is_sound(&store);
    let seen = wait(caller.see_all(&store));
    close(store);
    seen
}

#[test]
fn a_copy_is_the_store_as_it_was_and_stays_so() {
    let base = common::new_folder();
    let (folder, copy) = (base.path().join("store"), base.path().join("copy"));
    let store = open(&folder, Settings::default());
    let mut caller = Caller::default();
    wait(caller.set_up(&store));
    let calls = sequence(5, 120);
    for call in &calls[..80] {
        wait(caller.make(&store, call));
    }
    store.backup(&copy).unwrap();
    let then = caller.clone();
    for call in &calls[80..] {
        wait(caller.make(&store, call));
    }
    assert_eq!(seen_in(&copy, &then), seen_after(&then, &calls[..80]));
    assert_eq!(wait(caller.see_all(&store)), seen_after(&caller, &calls), "and the store went on");
    is_sound(&store);
}

#[test]
fn a_copy_that_is_taken_meanwhile_is_of_one_moment() {
    let base = common::new_folder();
    let store = open(&base.path().join("store"), Settings::default());
    wait(Caller::default().set_up(&store));
    let calls = sequence(6, 200);
    let made = AtomicUsize::new(0);
    let copies: Vec<_> = (0..4).map(|number| base.path().join(format!("copy {number}"))).collect();
    let mut spans = vec![];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut caller = Caller::default();
            for call in &calls {
                wait(caller.make(&store, call));
                made.fetch_add(1, Ordering::SeqCst);
            }
        });
        for copy in &copies {
            let first = made.load(Ordering::SeqCst);
            store.backup(copy).unwrap();
            spans.push((first, (made.load(Ordering::SeqCst) + 1).min(calls.len())));
        }
    });
    for (copy, (first, last)) in copies.iter().zip(spans) {
        // The time at which all have run out, so that it does not matter when each was looked at.
        let mut late = Caller::default();
        late.now = late.now.after_millis(400 * 86_400_000);
        let found = seen_in(copy, &late);
        let known = (first..=last).find(|&made| seen_after(&late, &calls[..made]) == found);
        assert!(known.is_some(), "{} is as it never was from call {first} to {last}", copy.display());
    }
}

#[test]
fn a_copy_never_goes_over_something_else() {
    let base = common::new_folder();
    let store = open(&base.path().join("store"), Settings::default());
    let (file, full) = (base.path().join("file"), base.path().join("full"));
    std::fs::write(&file, "mine").unwrap();
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("mine"), "mine").unwrap();
    for target in [&file, &full, &base.path().join("store")] {
        let error = store.backup(target).unwrap_err();
        assert!(error.to_string().contains(&target.display().to_string()), "{error}");
        assert!(!matches!(error, Error::Stopped { .. }), "{error:?}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(std::fs::read_dir(&full).unwrap().count(), 1);
    wait(Caller::default().set_up(&store)); // it works on
    is_sound(&store);
}
