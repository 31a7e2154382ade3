//! Eight threads lease, discover and complete on one store; an audit goes through what they were told.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::shop::{Clock as _, Floor, Local, audit, begin, lives, see};
use common::{close, is_sound, open, setting, wait};
use forager_frontier::Settings;

const THREADS: u64 = 8;

#[test]
fn eight_threads_never_get_in_each_others_way() {
    let folder = common::new_folder();
    let settings = Settings::default();
    let store = open(folder.path(), settings.clone());
    wait(begin(&store));
    let floor = Floor::new(Local::new());
    let enough = setting("FORAGER_SOAK_STEPS", 2000) as u64;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (floor, store) = (&floor, &store);
            scope.spawn(move || wait(floor.work(store, thread, enough)));
        }
    });
    let notes = floor.take_notes();
    let lives = lives(&notes);
    assert!(lives.len() as u64 >= enough, "only {} leases", lives.len());
    audit(&lives, &settings);

    let now = wait(floor.clock.tick(0));
    is_sound(&store);
    let seen = wait(see(&store, &notes, now));
    close(store);
    let store = open(folder.path(), settings);
    is_sound(&store);
    assert_eq!(wait(see(&store, &notes, now)), seen, "and all of it is there after a restart");
}
