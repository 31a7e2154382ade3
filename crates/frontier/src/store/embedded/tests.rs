//! The store against the plain model, call by call, with failures and restarts in between.

use forager_core::hierarchy::Priority;
use forager_core::scope::Place;
use forager_core::sentinel::Risk;
use proptest::prelude::*;

use super::{Embedded, Options, Store};
use crate::catalog::{Catalog, Change, CollectionSpec, Draft, Kind};
use crate::engine::{NewEntry, Tx, Wanted, Within};
use crate::entry::{
    CollectionId, EntryId, How, Lease, Origin, QueueId, Record, SeedId, Standing, State, Visit,
};
use crate::error::{Error, Result};
use crate::moment::Moment;
use crate::settings::Settings;
use crate::store::Memory;
use crate::verbs::{Event, FetchRow, Tally};

/// Something that a call does.
#[derive(Clone, Debug)]
enum Op {
    Insert { collection: u8, host: u8, page: u8, look: Look },
    Move { entry: u8, look: Look },
    Learn { entry: u8, errors: u32 },
    Remove { entry: u8 },
    Lease { collections: u8, key: Option<u8>, oldest: bool, hold: u8, pause: u8 },
    Extend { hold: u8 },
    End { back: bool, nth: u8, due: u8 },
    Expire,
    Pause { host: u8, seconds: u8, limit: Option<u8> },
    Count { collection: u8 },
    Clear { collection: u8 },
    Kind { collection: u8, plain: bool },
    Emit,
    Note { key: u8, value: Option<u8> },
    Log,
}

/// What a standing may be like.
#[derive(Clone, Copy, Debug)]
struct Look {
    priority: u16,
    due: u8,
    by_due: bool,
    by_arrival: bool,
    state: u8,
    step: Option<u8>,
}

fn looks() -> impl Strategy<Value = Look> {
    let priority = prop_oneof![Just(0), Just(500), Just(1000)];
    (priority, 0..40u8, any::<(bool, bool)>(), 0..6u8, proptest::option::of(0..40u8)).prop_map(
        |(priority, due, (by_due, by_arrival), state, step)| Look {
            priority,
            due,
            by_due,
            by_arrival,
            state,
            step,
        },
    )
}

fn ops() -> impl Strategy<Value = Op> {
    let key = || proptest::option::of(0..4u8);
    prop_oneof![
        12 => (0..3u8, 0..4u8, any::<u8>(), looks())
            .prop_map(|(collection, host, page, look)| Op::Insert { collection, host, page, look }),
        4 => (any::<u8>(), looks()).prop_map(|(entry, look)| Op::Move { entry, look }),
        3 => (any::<u8>(), 0..4u32).prop_map(|(entry, errors)| Op::Learn { entry, errors }),
        2 => any::<u8>().prop_map(|entry| Op::Remove { entry }),
        10 => (1..8u8, key(), any::<bool>(), 1..30u8, 0..9u8).prop_map(|(collections, key, oldest, hold, pause)| {
            Op::Lease { collections, key, oldest, hold, pause }
        }),
        1 => (1..30u8).prop_map(|hold| Op::Extend { hold }),
        5 => (any::<bool>(), any::<u8>(), 0..40u8).prop_map(|(back, nth, due)| Op::End { back, nth, due }),
        2 => Just(Op::Expire),
        2 => (0..4u8, 0..40u8, key())
            .prop_map(|(host, seconds, limit)| Op::Pause { host, seconds, limit }),
        1 => (0..3u8).prop_map(|collection| Op::Count { collection }),
        1 => (0..3u8).prop_map(|collection| Op::Clear { collection }),
        1 => (0..3u8, any::<bool>()).prop_map(|(collection, plain)| Op::Kind { collection, plain }),
        1 => Just(Op::Emit),
        3 => (0..4u8, proptest::option::of(any::<u8>())).prop_map(|(key, value)| Op::Note { key, value }),
        2 => Just(Op::Log),
    ]
}

/// A call: what it does, how much later than the last it comes, and whether it fails in the end.
#[derive(Clone, Debug)]
struct Call {
    ops: Vec<Op>,
    later: u64,
    fails: bool,
    restart: bool,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = (proptest::collection::vec(ops(), 1..7), 0..4000u64, 0..8u8, 0..20u8).prop_map(
        |(ops, later, fails, restart)| Call { ops, later, fails: fails == 0, restart: restart == 0 },
    );
    proptest::collection::vec(call, 1..90)
}

fn standing(queue: QueueId, look: Look, now: Moment) -> Standing {
    let second = |offset: u8| Moment::from_second((now.second() + u32::from(offset)).saturating_sub(20));
    Standing {
        queue,
        seed: look.due.is_multiple_of(2).then_some(SeedId(look.due.into())),
        place: Place { depth: look.due.into(), hops_off_domain: look.state.into() },
        priority: Priority::from_thousandths(look.priority).unwrap_or_default(),
        due: second(look.due),
        last_fetch: look.state.is_multiple_of(2).then(|| second(0)),
        state: match look.state {
            4 => State::Done,
            5 => State::Failed,
            _ => State::Queued,
        },
        risk: [Risk::Low, Risk::Medium, Risk::High, Risk::Critical][usize::from(look.due % 4)],
        is_hub: look.due.is_multiple_of(3),
        harvest: look.due,
        by_due: look.by_due,
        by_arrival: look.by_arrival,
        step: look.step.map(|step| second(step).after_millis(1)),
    }
}

/// The nth entry that there is.
fn pick<T: Tx>(tx: &T, nth: u8) -> Option<EntryId> {
    let all = tx.scan(Within::Everything, None, usize::MAX, &mut |_, _| true);
    (!all.is_empty()).then(|| all[usize::from(nth) % all.len()])
}

fn wanted(collections: u8, key: Option<u8>) -> Wanted {
    let collections = (0..3).filter(|number| collections & (1 << number) != 0).map(CollectionId).collect();
    Wanted { collections, key: key.map(|key| format!("host{key}.example")), most: 1, per_host: 1 }
}

fn is_plain<T: Tx>(tx: &T, collection: u8) -> bool {
    let row = tx.catalog().collection_numbered(CollectionId(collection.into()));
    row.is_some_and(|row| row.spec.kind == Kind::Plain)
}

/// Does one thing, and tells what came of it.
#[expect(clippy::too_many_lines, reason = "one arm for each thing that can be done")]
fn apply<T: Tx>(tx: &mut T, op: &Op, now: Moment) -> Result<String> {
    Ok(match op {
        Op::Insert { collection, host, page, look } => {
            let key = format!("host{host}.example");
            let plain = is_plain(tx, *collection);
            let queue = tx.queue(CollectionId((*collection).into()), &key, plain);
            let url = format!("https://{}{key}/{page}", if page % 5 == 0 { "www." } else { "" });
            if let Some(known) = tx.find(queue, &url)? {
                return Ok(format!("known {known:?} {:?}", tx.standing(known)));
            }
            let origin = Origin {
                created: now,
                how: How::Link,
                source: Some(EntryId((*page).into())),
                ..Origin::default()
            };
            let mut record = Record::new(origin, Some(3));
            if page % 7 == 0 {
                record.errors = 2;
            }
            let standing = standing(queue, *look, now);
            format!("{:?}", tx.insert(NewEntry { identity: &url, url: &url, standing, record }))
        }
        Op::Move { entry, look } => {
            let Some(entry) = pick(tx, *entry) else { return Ok(String::new()) };
            let Some(before) = tx.standing(entry) else { return Ok(String::new()) };
            let mut next = standing(before.queue, *look, now);
            if before.state == State::Leased {
                next.state = State::Leased;
            }
            tx.set_standing(entry, next);
            format!("{before:?}")
        }
        Op::Learn { entry, errors } => {
            let Some(entry) = pick(tx, *entry) else { return Ok(String::new()) };
            let (url, mut record) = tx.load(entry)?;
            let before = format!("{url} {record:?}");
            record.errors = *errors;
            record.remember(Visit { at: now, result: "200".into(), changed: true });
            tx.set_record(entry, record);
            before
        }
        Op::Remove { entry } => {
            let Some(entry) = pick(tx, *entry) else { return Ok(String::new()) };
            tx.remove(entry);
            format!("{entry:?}")
        }
        Op::Lease { collections, key, oldest, hold, pause } => {
            lease(tx, &wanted(*collections, *key), *oldest, *hold, *pause, now)?
        }
        Op::Extend { hold } => {
            let Some(entry) = tx
                .scan(Within::Everything, None, 1, &mut |_, standing| standing.state == State::Leased)
                .pop()
            else {
                return Ok(String::new());
            };
            let Some(lease) = tx.lease_of(entry) else { return Ok("leased without a lease".into()) };
            tx.grant(Lease { until: now.after_millis(u64::from(*hold) * 1000), ..lease });
            format!("{lease:?}")
        }
        Op::End { back, nth, due } => {
            let leased = tx.scan(Within::Everything, None, usize::MAX, &mut |_, standing| {
                standing.state == State::Leased
            });
            let Some(entry) = (!leased.is_empty()).then(|| leased[usize::from(*nth) % leased.len()]) else {
                return Ok(String::new());
            };
            finish(tx, entry, *back, now.second() + u32::from(*due));
            format!("{entry:?}")
        }
        Op::Expire => {
            let expired = tx.expired(now);
            for lease in &expired {
                finish(tx, lease.entry, true, now.second());
            }
            format!("{expired:?}")
        }
        Op::Pause { host, seconds, limit } => {
            let host = tx.host_of(None, &format!("host{host}.example"));
            let mut state = tx.host(host).clone();
            state.back_off_until = now.after_millis(u64::from(*seconds) * 1000);
            state.settings.in_flight = limit.map(u32::from);
            tx.set_host(host, state);
            format!("{host:?}")
        }
        Op::Count { collection } => {
            let collection = CollectionId((*collection).into());
            tx.count_up(collection, Tally { fetches: 1, ..Tally::default() });
            format!("{:?}", tx.tally(collection))
        }
        Op::Clear { collection } => {
            let dropped = tx.clear_collection(CollectionId((*collection).into()))?;
            format!("{dropped}")
        }
        Op::Kind { collection, plain } => {
            let mut draft = Draft::of(tx.catalog().rows());
            let kind = if *plain { Kind::Plain } else { Kind::Planned };
            draft.apply(&Change::SetCollection(CollectionSpec::new(format!("c{collection}"), kind)))?;
            let catalog = Catalog::new(draft.finish(), tx.settings())?;
            tx.set_catalog(catalog.into());
            String::new()
        }
        Op::Emit => {
            tx.emit(now, "c0", "subject", Event::Finished);
            format!("{:?}", tx.events(0, 5)?)
        }
        Op::Note { key, value } => {
            let key = format!("note {key}");
            let before = tx.noted(&key)?;
            tx.set_note(&key, value.map(|byte| vec![byte; usize::from(byte)]));
            format!("{before:?} {:?}", tx.noted(&key)?)
        }
        Op::Log => {
            tx.log_fetch(FetchRow { started: now, position: 77, ..FetchRow::default() });
            format!("{:?}", tx.fetches(1, 5)?)
        }
    })
}

fn lease<T: Tx>(
    tx: &mut T,
    wanted: &Wanted,
    oldest: bool,
    hold: u8,
    pause: u8,
    now: Moment,
) -> Result<String> {
    let stepping = tx.wake(now);
    let Some((_, queue)) = tx.next_queue(wanted, None, u64::MAX) else {
        return Ok(format!("{stepping:?} {:?}", tx.outlook(wanted)));
    };
    let Some(entry) = tx.take(queue, oldest).or_else(|| tx.take(queue, false)) else {
        return Ok(format!("{stepping:?} {queue:?} has nothing"));
    };
    let (host, token) = (tx.queue_parts(queue).1, tx.next_token());
    if let Some(standing) = tx.standing(entry) {
        tx.set_standing(entry, Standing { state: State::Leased, ..standing });
    }
    tx.grant(Lease { token, entry, from: now, until: now.after_millis(u64::from(hold) * 1000) });
    let mut state = tx.host(host).clone();
    let (collection, turn) = (tx.queue_parts(queue).0, tx.next_turn());
    state.take_turn(collection, turn);
    state.next_allowed = now.after_millis(u64::from(pause) * 500);
    tx.set_host(host, state);
    Ok(format!("{stepping:?} {queue:?} {entry:?} {:?} {:?}", tx.in_flight(host), tx.load(entry)?))
}

fn finish<T: Tx>(tx: &mut T, entry: EntryId, back: bool, due: u32) {
    if let Some(lease) = tx.lease_of(entry) {
        tx.end_lease(lease.token);
    }
    if let Some(standing) = tx.standing(entry) {
        let state = if back { State::Queued } else { State::Done };
        tx.set_standing(entry, Standing { state, due: Moment::from_second(due), ..standing });
    }
}

/// Everything that can be seen.
fn look_at<T: Tx>(tx: &mut T, now: Moment) -> Result<String> {
    let mut seen = Vec::new();
    for entry in tx.scan(Within::Everything, None, usize::MAX, &mut |_, _| true) {
        seen.push(format!(
            "{entry:?} {:?} {:?} {:?}",
            tx.standing(entry),
            tx.load(entry)?,
            tx.lease_of(entry)
        ));
    }
    for queue in tx.queues() {
        seen.push(format!("{queue:?} {:?} {:?}", tx.queue_parts(queue), tx.queue_counts(queue)));
    }
    for host in tx.all_hosts() {
        seen.push(format!("{host:?} {:?} {:?} {:?}", tx.host_key(host), tx.host(host), tx.in_flight(host)));
    }
    for collection in 0..3 {
        let collection = CollectionId(collection);
        seen.push(format!("{:?} {:?}", tx.tally(collection), tx.counts(collection)));
    }
    seen.push(format!("{:?}", tx.wake(now)));
    for collections in 0..8 {
        for key in [None, Some(0), Some(1), Some(2), Some(3)] {
            let wanted = wanted(collections, key);
            let next = tx.next_queue(&wanted, None, u64::MAX);
            let second = next.and_then(|next| tx.next_queue(&wanted, Some(next), u64::MAX));
            seen.push(format!("{wanted:?} {next:?} {second:?} {:?}", tx.outlook(&wanted)));
        }
    }
    for queue in tx.queues() {
        seen.push(format!("{:?} {:?}", tx.take(queue, true), tx.take(queue, false)));
    }
    seen.push(format!("{:?} {:?}", tx.events(1, 100)?, tx.catalog().rows()));
    for key in 0..4 {
        seen.push(format!("{:?}", tx.noted(&format!("note {key}"))?));
    }
    seen.push(format!("{:?}", tx.fetches(1, 100)?));
    Ok(seen.join("\n"))
}

fn wait<F: Future>(call: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(call)
}

fn look<S: Store>(store: &S, now: Moment) -> Result<String> {
    wait(store.transact(Some(now), |tx, _| look_at(tx, now)))
}

fn run<S: Store>(store: &S, call: &Call, now: Moment) -> String {
    let result = wait(store.transact(Some(now), |tx, _| {
        let done: Result<Vec<String>> = call.ops.iter().map(|op| apply(tx, op, now)).collect();
        let done = done?;
        if call.fails { Err(Error::Configuration("as planned".into())) } else { Ok(done) }
    }));
    format!("{result:?}")
}

fn prepare<S: Store>(store: &S) -> Result<()> {
    wait(store.transact(Some(Moment::from_second(100)), |tx, _| {
        let mut draft = Draft::of(tx.catalog().rows());
        for (number, kind) in [Kind::Planned, Kind::Planned, Kind::Plain].into_iter().enumerate() {
            draft.apply(&Change::AddCollection(CollectionSpec::new(format!("c{number}"), kind)))?;
        }
        let catalog = Catalog::new(draft.finish(), tx.settings())?;
        tx.set_catalog(catalog.into());
        tx.count_up(CollectionId(0), Tally { bytes: 7, ..Tally::default() });
        Ok(())
    }))
}

fn open(folder: &std::path::Path) -> Embedded {
    Embedded::open(folder, Settings::default(), Options::default()).expect("the store opens")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever is done, the store shows the same as the model: at once, after a failure, and
    /// after a restart.
    #[test]
    fn the_store_is_like_the_model(calls in calls()) {
        let folder = tempfile::tempdir().expect("a folder");
        let model = Memory::new(Settings::default()).expect("a model");
        let mut store = open(folder.path());
        prepare(&model).expect("the model takes the catalog");
        prepare(&store).expect("the store takes the catalog");
        let mut now = Moment::from_second(100);
        for call in &calls {
            now = now.after_millis(call.later);
            prop_assert_eq!(run(&store, call, now), run(&model, call, now), "{:?}", call);
            if call.restart {
                prop_assert_eq!(store.check().expect("the store can be checked"), []);
                drop(store);
                store = open(folder.path());
            }
            let seen = look(&store, now).expect("the store can be looked at");
            let expected = look(&model, now).expect("the model can be looked at");
            prop_assert_eq!(seen, expected, "after {:?}", call);
        }
        prop_assert_eq!(store.check().expect("the store can be checked"), []);
        // Removed with the folder: workers of the engine may still be writing when the copy is dropped.
        let copies = tempfile::tempdir().expect("a folder for the copy");
        let copy = copies.path().join("copy");
        store.backup(&copy).expect("the store can be copied");
        let copied = open(&copy);
        prop_assert_eq!(copied.check().expect("the copy can be checked"), []);
        let seen = look(&copied, now).expect("the copy can be looked at");
        let expected = look(&model, now).expect("the model can be looked at");
        prop_assert_eq!(seen, expected, "in the copy");
    }
}
