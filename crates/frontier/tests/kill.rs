//! `kill -9`: whatever was acknowledged is there, and nothing is half done.
//!
//! A child process makes random calls on a folder and says after each that it has returned. It is
//! killed at a random moment. The plain model then makes the acknowledged calls too; what is in the
//! folder must look the same, or as it does after the one call more that was under way. So no write
//! is lost, no lease is handed out twice, and no host is asked too early.
//!
//! `FORAGER_SOAK_ROUNDS` makes it longer.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::audit::Auditor;
use common::calls::{Call, Caller, sequence};
use common::{close, is_sound, open, setting, wait};
use forager_frontier::{Memory, Settings};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

/// The most calls that a child makes.
const CALLS: usize = 400;
/// Kills of one folder, before another is begun.
const KILLS_OF_A_FOLDER: usize = 6;

/// What the child is told: folder, seed, first step, and what its caller knows.
const ORDERS: &str = "FORAGER_KILL_CHILD";

/// Not a test of its own: what the child does, if this is one.
#[test]
fn child() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let mut parts = orders.splitn(4, '|');
    let mut next = || parts.next().expect("four parts");
    let (folder, seed, from) = (next(), next().parse().unwrap(), next().parse::<usize>().unwrap());
    let mut caller: Caller = next().parse().unwrap();
    let calls = sequence(seed, from + CALLS);
    let store = open(Path::new(folder), Settings::default());
    for (step, call) in calls.iter().enumerate().skip(from) {
        wait(caller.make(&store, call));
        // One write for each line, so that what was read was acknowledged.
        let line = format!("@{}\n", step + 1);
        std::io::stdout().write_all(line.as_bytes()).unwrap();
    }
    close(store);
}

/// The name of [`child`] in this binary; these tests are part of more than one.
fn child_test() -> String {
    let module = module_path!().split_once("::").map(|(_, module)| format!("{module}::"));
    format!("{}child", module.unwrap_or_default())
}

fn spawn(folder: &Path, seed: u64, from: usize, caller: &Caller) -> Child {
    let orders = format!("{}|{seed}|{from}|{caller}", folder.display());
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &child_test(), "--nocapture", "--test-threads=1"])
        .env(ORDERS, orders)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Kills a child some time after so many calls; returns how many steps were acknowledged.
fn kill_after(mut child: Child, calls: usize, pause: Duration, from: usize) -> usize {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut steps = lines.by_ref().filter_map(|line| Some(line.split_once('@')?.1.parse::<usize>().unwrap()));
    let mut acknowledged = from;
    if calls > 0 {
        acknowledged = steps.by_ref().take(calls).last().unwrap_or(from);
    }
    std::thread::sleep(pause);
    child.kill().unwrap();
    acknowledged = steps.last().unwrap_or(acknowledged);
    child.wait().unwrap();
    acknowledged
}

/// What one caller after the other has done to a folder.
#[derive(Clone)]
enum Deed {
    Call(Call),
    /// A new process began.
    Begin,
}

/// Lets the plain model do all of it. Nobody looks meanwhile, for looking too takes back what has run out.
async fn replayed(deeds: &[Deed]) -> (Memory, Caller) {
    let (memory, mut caller) = (Memory::new(Settings::default()).unwrap(), Caller::default());
    caller.set_up(&memory).await;
    let mut auditor = Auditor::from(caller.now);
    for deed in deeds {
        match deed {
            Deed::Begin => caller.begin(),
            Deed::Call(call) => {
                let answer = caller.make(&memory, call).await;
                auditor.note(call, &answer, caller.now);
            }
        }
    }
    (memory, caller)
}

/// Looks at a folder through a copy, so that it stays as the child has left it.
async fn seen_in(folder: &Path, caller: &Caller) -> Vec<String> {
    let copy = common::new_folder();
    let status =
        Command::new("cp").args(["-r", "--sparse=always"]).arg(folder.join(".")).arg(copy.path()).status();
    assert!(status.unwrap().success());
    let store = open(copy.path(), Settings::default());
    is_sound(&store);
    caller.see_all(&store).await
}

async fn kill_and_compare(folder: &Path, seed: u64, kills: usize) {
    let mut random = Pcg64::seed_from_u64(seed);
    let store = open(folder, Settings::default());
    let mut caller = Caller::default();
    caller.set_up(&store).await;
    close(store);
    let (mut deeds, mut steps) = (vec![], 0);
    for kill in 0..kills {
        deeds.push(Deed::Begin);
        caller.begin();
        let calls = sequence(seed, steps + CALLS);
        let child = spawn(folder, seed, steps, &caller);
        // Some die before they have opened the store, most between two calls or within one.
        let (after, pause) = match random.random_range(0..8) {
            0 => (0, random.random_range(0..60_000)),
            _ => (random.random_range(1..CALLS / 2), random.random_range(0..3000)),
        };
        let acknowledged = kill_after(child, after, Duration::from_micros(pause), steps);
        deeds.extend(calls[steps..acknowledged].iter().cloned().map(Deed::Call));
        steps = acknowledged;
        let (memory, after) = replayed(&deeds).await;
        let look = after.begun();
        let found = seen_in(folder, &look).await;
        caller = after;
        if found == look.see_all(&memory).await {
            continue;
        }
        // The call that was under way was done, though nobody was told.
        deeds.extend(calls.get(steps).cloned().map(Deed::Call));
        steps += 1;
        let (memory, after) = replayed(&deeds).await;
        let look = after.begun();
        let (found, wanted) = (seen_in(folder, &look).await, look.see_all(&memory).await);
        let what = format!("seed {seed}, kill {kill}, {acknowledged} calls acknowledged");
        for (found, wanted) in found.iter().zip(&wanted) {
            assert_eq!(found, wanted, "{what}");
        }
        assert_eq!(found.len(), wanted.len(), "{what}");
        caller = after;
    }
    assert!(steps > 0, "no child ever got anywhere");
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_done() {
    let rounds = setting("FORAGER_SOAK_ROUNDS", 18);
    let first = setting("FORAGER_SEED", 1);
    for (number, done) in (0..rounds).step_by(KILLS_OF_A_FOLDER).enumerate() {
        let folder = common::new_folder();
        let kills = KILLS_OF_A_FOLDER.min(rounds - done);
        wait(kill_and_compare(folder.path(), (first + number) as u64, kills));
    }
}
