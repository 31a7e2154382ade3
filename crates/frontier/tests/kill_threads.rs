//! `kill -9` while several threads share commits: what each was told is there.
//!
//! `FORAGER_SOAK_ROUNDS` makes it longer.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use common::heard::{Heard, begin, said_by, start, work};
use common::{is_sound, options, setting, wait};
use forager_frontier::{Durability, Embedded, Settings};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

const THREADS: u64 = 4;
/// Folder, seed, time, and whether to sync.
const ORDERS: &str = "FORAGER_KILL_THREADS";

fn open(folder: &Path, durability: Durability) -> Embedded {
    Embedded::open(folder, Settings::default(), options(durability)).unwrap()
}

/// Not a test of its own: what the child does, if this is one.
#[test]
fn child() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let parts: Vec<&str> = orders.split('|').collect();
    let [folder, seed, clock, syncs] = parts[..] else { panic!("{orders}") };
    let durability = if syncs == "true" { Durability::Fsync } else { Durability::Process };
    let store = open(Path::new(folder), durability);
    let clock = AtomicU64::new(clock.parse().unwrap());
    let seed: u64 = seed.parse().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, clock) = (&store, &clock);
            let random = Pcg64::seed_from_u64(seed * 100 + thread);
            scope.spawn(move || wait(work(store, clock, random)));
        }
    });
}

fn kill(folder: &Path, round: u64, heard: &mut Heard, durability: Durability, random: &mut Pcg64) {
    let clock = heard.latest.max(start()).millisecond() + 1;
    let syncs = durability == Durability::Fsync;
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(ORDERS, format!("{}|{round}|{clock}|{syncs}", folder.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = said_by(&mut child);
    for line in said.by_ref().take(random.random_range(1..300)) {
        heard.hear(&line);
    }
    std::thread::sleep(Duration::from_micros(random.random_range(0..3000)));
    child.kill().unwrap();
    said.for_each(|line| heard.hear(&line));
    child.wait().unwrap();
}

#[test]
fn what_any_thread_was_told_is_there() {
    let rounds = setting("FORAGER_SOAK_ROUNDS", 8) as u64;
    for (durability, seed) in [(Durability::Process, 1), (Durability::Fsync, 2)] {
        let folder = common::new_folder();
        wait(begin(&open(folder.path(), durability)));
        let (mut heard, mut random) = (Heard::default(), Pcg64::seed_from_u64(seed));
        for round in 0..rounds.div_ceil(2) {
            kill(folder.path(), round, &mut heard, durability, &mut random);
            let store = open(folder.path(), durability);
            is_sound(&store);
            wait(heard.compare(&store));
        }
        assert!(heard.reports > 0 && !heard.held.is_empty(), "nothing happened");
    }
}
