//! A store and the plain model agree call by call, whatever happens, with restarts in between.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _};

use forager_frontier::{Frontier, Memory, Settings};
use proptest::prelude::*;

use super::audit::Auditor;
use super::calls::{Call, Caller, calls, runner};
use super::setting;

/// Steps of one sequence.
const LENGTH: usize = 120;

/// Where a store is kept, so that it can be opened again.
pub trait Stand: Sync {
    type Store: Frontier;
    /// Whether it numbers entries and leases without gaps, as the model does.
    const HAS_NO_GAPS: bool = true;
    fn open(&self) -> Self::Store;
    /// An orderly end.
    fn close(&self, store: Self::Store);
    /// Everything in it is as it should be.
    fn check(&self, store: &Self::Store);
}

#[derive(Clone, Debug)]
pub enum Step {
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

/// Runs random sequences, as many as it takes for so many steps. `FORAGER_SOAK_STEPS` makes it longer; a failure
/// prints the seed to replay it with `FORAGER_SEED`, and the shortest sequence of calls that fails.
pub fn agree_on_random_calls(everyday: usize, agree: impl Fn(Vec<Step>) -> Result<(), TestCaseError>) {
    let count = setting("FORAGER_SOAK_STEPS", everyday);
    let is_soak = std::env::var_os("FORAGER_SOAK_STEPS").is_some();
    let drawn = std::hash::RandomState::new().build_hasher().finish();
    let seed = setting("FORAGER_SEED", if is_soak { usize::try_from(drawn).unwrap_or(1) } else { 1 });
    let cases = u32::try_from(count * 2 / LENGTH).unwrap().max(1);
    if let Err(failure) = runner(seed as u64, cases).run(&steps(), agree) {
        panic!("{failure}\nreplay it with FORAGER_SEED={seed} FORAGER_SOAK_STEPS={count}");
    }
}

/// The numbers of the model for those of a store that leaves some out.
#[derive(Default)]
struct Numbers(BTreeMap<(&'static str, String), String>);

impl Numbers {
    /// What the store said, in the numbers of the model. A number that is new stands where the model has its own.
    fn translate(&mut self, theirs: &str, ours: &str) -> String {
        let mut text = theirs.to_owned();
        for kind in ["EntryId(", "Token("] {
            let numbers = |text: &str| -> Vec<String> {
                let parts = text.split(kind).skip(1).filter_map(|part| part.split_once(')'));
                parts.map(|(number, _)| number.to_owned()).collect()
            };
            for (theirs, ours) in numbers(theirs).into_iter().zip(numbers(ours)) {
                self.0.entry((kind, theirs)).or_insert(ours);
            }
            for number in numbers(theirs) {
                let ours = &self.0.get(&(kind, number.clone())).unwrap_or(&number);
                text = text.replace(&format!("{kind}{number})"), &format!("{kind}\u{0}{ours})"));
            }
        }
        text.replace('\u{0}', "")
    }
}

/// Where the two differ first, in full.
fn same(what: &str, model: &[String], store: &[String]) -> Result<(), TestCaseError> {
    for (ours, theirs) in model.iter().zip(store) {
        prop_assert_eq!(theirs, ours, "{}: the store (left) and the model (right) differ", what);
    }
    prop_assert_eq!(store.len(), model.len(), "{}: one shows more than the other", what);
    Ok(())
}

/// Takes the steps on a new store and on the model.
pub async fn agree<S: Stand>(stand: &S, steps: &[Step]) -> Result<(), TestCaseError> {
    let model = Memory::new(Settings::default()).unwrap();
    let mut store = stand.open();
    let mut caller = Caller::default();
    caller.set_up(&model).await;
    caller.set_up(&store).await;
    let mut other = caller.clone();
    let mut auditor = Auditor::from(caller.now);
    let mut numbers = Numbers::default();
    for (number, step) in steps.iter().enumerate() {
        let is_last = number + 1 == steps.len();
        match step {
            Step::Call(call) => {
                let answer = caller.make(&model, call).await;
                auditor.note(call, &answer, caller.now);
                let ours = answer.text;
                let mut theirs = other.make(&store, call).await.text;
                if !S::HAS_NO_GAPS {
                    theirs = numbers.translate(&theirs, &ours);
                }
                prop_assert_eq!(
                    theirs,
                    ours,
                    "step {}, {:?}: the store (left) and the model (right)",
                    number,
                    call
                );
            }
            Step::Restart => {
                stand.close(store);
                store = stand.open();
            }
            Step::Abandon => {
                drop(store);
                store = stand.open();
            }
        }
        if !matches!(step, Step::Call(_)) {
            for caller in [&mut caller, &mut other] {
                caller.begin();
                // No process begins within the millisecond in which another has ended.
                caller.now = caller.now.after_millis(1);
            }
        }
        if is_last || number % 16 == 15 || !matches!(step, Step::Call(_)) {
            let what = format!("after step {number}, {step:?}");
            let (ours, mut theirs) = (caller.see_all(&model).await, other.see_all(&store).await);
            if !S::HAS_NO_GAPS {
                let lines = theirs.iter().zip(&ours);
                theirs = lines.map(|(theirs, ours)| numbers.translate(theirs, ours)).collect();
            }
            same(&what, &ours, &theirs)?;
            counts_are_right(&what, &caller, &store).await?;
            caller.looked();
            other.looked();
            auditor.looked(caller.now);
            stand.check(&store);
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
