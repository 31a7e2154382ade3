//! Writing hosts and queues, and what is worked out of their entries.

use std::collections::BTreeSet;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::super::failure::Failure;
use super::super::loaded::{Changes, QueueRow};
use super::super::rows::{int, millis, owner_number, queue_id, second};
use super::super::session::Statement;
use super::super::view::View;
use super::numbers::{self, BIG, BIG_OR_NONE, Column, INT, or_none};
use super::shifts::{Shift, Shifts};
use crate::entry::QueueId;

/// New hosts, in the order of their keys, as all add them.
pub(super) fn new_hosts(view: &View) -> Result<Option<Statement<'_>>, Failure> {
    const ADD: &str = "INSERT INTO @hosts (id, key, owner, state) \
        SELECT i, k, o, s::json FROM unnest($1::int4[], $2::text[], $3::int4[], $4::text[]) w (i, k, o, s) \
        ORDER BY k, o";
    if view.changes.new_hosts.is_empty() {
        return Ok(None);
    }
    let hosts: Vec<_> = view.changes.new_hosts.iter().map(|host| (host, view.host_row(*host))).collect();
    let numbers: Vec<i32> = hosts.iter().map(|(host, _)| int(host.0)).collect();
    let keys: Vec<&str> = hosts.iter().map(|(_, row)| row.key.as_str()).collect();
    let owners: Vec<i32> = hosts.iter().map(|(_, row)| owner_number(row.owner)).collect();
    let states = hosts.iter().map(|(_, row)| host_state(&row.state)).collect::<Result<Vec<String>, _>>()?;
    Ok(Some(
        Statement::new(ADD)
            .with(numbers, Type::INT4_ARRAY)
            .with(keys, Type::TEXT_ARRAY)
            .with(owners, Type::INT4_ARRAY)
            .with(states, Type::TEXT_ARRAY),
    ))
}

fn host_state(host: &crate::host::Host) -> Result<String, Failure> {
    serde_json::to_string(host)
        .map_err(|cause| Failure::Damaged(format!("a host cannot be written: {cause}")))
}

/// A column of what a new queue waits for.
type Wait = fn(&View, QueueId, &Shift) -> Option<i64>;

/// New queues, with all that is worked out of them: this call has added whatever they have.
pub(super) fn new_queues<'a>(view: &View, shifts: &Shifts) -> Option<Statement<'a>> {
    const ADD: &str = "INSERT INTO @queues (id, collection, host, queued, leased, done, failed, place, opens, first_due, wake_at, seen) \
        SELECT w.*, $12 FROM unnest($1::int4[], $2::int4[], $3::int4[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::int8[], \
            $9::int8[], $10::int8[], $11::int8[]) w";
    let rows = &view.changes.new_queues;
    if rows.is_empty() {
        return None;
    }
    let mut statement = Statement::new(ADD)
        .with(rows.keys().map(|queue| int(queue.0)).collect::<Vec<_>>(), Type::INT4_ARRAY)
        .with(rows.values().map(|row| int(row.collection.0)).collect::<Vec<_>>(), Type::INT4_ARRAY)
        .with(rows.values().map(|row| int(row.host.0)).collect::<Vec<_>>(), Type::INT4_ARRAY);
    let none = Shift::default();
    let shifts: Vec<(QueueId, &Shift)> =
        rows.keys().map(|queue| (*queue, shifts.get(queue).unwrap_or(&none))).collect();
    for state in 0..4 {
        let counts: Vec<i64> = shifts.iter().map(|(_, shift)| shift.counts[state]).collect();
        statement = statement.with(counts, Type::INT8_ARRAY);
    }
    let waits: [Wait; 4] = [
        |view, queue, shift| shift.has_ready.then(|| place(view, queue)),
        |view, queue, shift| {
            let due = shift.first_due.filter(|_| !shift.has_ready)?;
            Some(millis(due.max(view.opens(queue).at)))
        },
        |_, _, shift| shift.first_due.map(second),
        |_, _, shift| shift.first_due.into_iter().chain(shift.step).min().map(millis),
    ];
    for wait in waits {
        let column: Vec<Option<i64>> =
            shifts.iter().map(|(queue, shift)| wait(view, *queue, shift)).collect();
        statement = statement.with(column, Type::INT8_ARRAY);
    }
    Some(statement.with(millis(view.now), Type::INT8))
}

/// Queues that are gone, and the hosts that go with them.
pub(super) fn forget<'a>(changes: &Changes) -> Vec<Statement<'a>> {
    const QUEUES: &str = "DELETE FROM @queues q WHERE q.id = ANY($1)";
    const HOSTS: &str = "DELETE FROM @hosts h WHERE h.id = ANY($1)";
    if changes.forgotten.is_empty() {
        return Vec::new();
    }
    let queues: Vec<i32> = changes.forgotten.keys().map(|queue| int(queue.0)).collect();
    let hosts = changes.forgotten.values().filter(|(_, is_its_own)| *is_its_own);
    let hosts: Vec<i32> = hosts.map(|(host, _)| int(host.0)).collect();
    [(QUEUES, queues), (HOSTS, hosts)]
        .map(|(statement, numbers)| Statement::new(statement).with(numbers, Type::INT4_ARRAY))
        .into()
}

/// Hosts that were there before.
#[derive(Default)]
pub(super) struct ChangedHosts {
    pub(super) numbers: Vec<i32>,
    pub(super) states: Vec<String>,
}

impl ChangedHosts {
    pub(super) fn of(changes: &Changes) -> Result<Self, Failure> {
        let mut hosts = Self::default();
        for (host, row) in changes.hosts.iter().filter(|(host, _)| !changes.new_hosts.contains(*host)) {
            hosts.numbers.push(int(host.0));
            hosts.states.push(host_state(&row.state)?);
        }
        Ok(hosts)
    }
}

/// What changes hosts that were there before, which are sent as `numbers` and `states`.
pub(super) fn change_hosts(numbers: &str, states: &str) -> String {
    format!(
        "UPDATE @hosts h SET state = w.state::json \
        FROM unnest({numbers}::int4[], {states}::text[]) w (id, state) WHERE h.id = w.id"
    )
}

/// Queues that were there before, by what is known of them.
pub(super) struct Refreshed {
    /// Those of which all is known, in the order of [`KNOWN`].
    pub(super) known: Vec<i64>,
    /// Whether one of these can be claimed earlier than it could before.
    pub(super) is_any_earlier: bool,
    /// The others, of which something has to be asked.
    unknown: Columns,
}

/// What is known of a queue.
const KNOWN: [Column; 9] = [
    ("id", INT),
    ("queued", BIG),
    ("leased", BIG),
    ("done", BIG),
    ("failed", BIG),
    ("place", BIG_OR_NONE),
    ("opens", BIG_OR_NONE),
    ("first_due", BIG_OR_NONE),
    ("wake_at", BIG_OR_NONE),
];

/// What changes queues of which all is known, which are sent as `numbers`; they are seen at `now`.
pub(super) fn change_known(numbers: &str, now: &str) -> String {
    format!(
        "UPDATE @queues q SET queued = q.queued + w.queued, leased = q.leased + w.leased, done = q.done + w.done, \
            failed = q.failed + w.failed, place = w.place, opens = w.opens, first_due = w.first_due, \
            wake_at = w.wake_at, seen = {now} \
        FROM (SELECT {} FROM generate_series(1, {}) n) w WHERE q.id = w.id",
        numbers::select(numbers, &KNOWN),
        numbers::count(numbers, &KNOWN)
    )
}

impl Refreshed {
    pub(super) fn of(
        view: &View,
        shifts: &Shifts,
        queues: &BTreeSet<QueueId>,
        woken: &BTreeSet<QueueId>,
    ) -> Self {
        let mut refreshed = Self { known: Vec::new(), is_any_earlier: false, unknown: Columns::default() };
        let none = Shift::default();
        for queue in queues {
            let shift = shifts.get(queue).unwrap_or(&none);
            let found = Found::of(view, *queue, shift, woken.contains(queue));
            match found.settled() {
                Some(settled) => refreshed.push(view, *queue, shift, settled),
                None => refreshed.unknown.push(view, *queue, shift, &found),
            }
        }
        refreshed
    }

    fn push(&mut self, view: &View, queue: QueueId, shift: &Shift, (is_ready, first_due, step): Settled) {
        let due = first_due.map(|due| due.saturating_mul(1000));
        let place = is_ready.then(|| place(view, queue));
        let opens = due.filter(|_| !is_ready).map(|due| due.max(millis(view.opens(queue).at)));
        let wake_at = due.into_iter().chain(step).min();
        self.known.push(int(queue.0).into());
        self.known.extend(shift.counts);
        self.known.extend([place, opens, first_due, wake_at].map(or_none));
        self.is_any_earlier |= is_earlier(view, queue, place, opens);
    }
}

/// Whether something is ready in a queue, when the first entry is due that is not, in seconds, and when a score steps, in
/// milliseconds.
type Settled = (bool, Option<i64>, Option<i64>);

/// What is known of a queue that was there before.
struct Found {
    is_ready: Option<bool>,
    knows_due: bool,
    first_due: Option<i64>,
    knows_step: bool,
    step: Option<i64>,
}

impl Found {
    /// Of one that was woken nothing is known: what is ready there was made so beside the call.
    fn of(view: &View, queue: QueueId, shift: &Shift, is_woken: bool) -> Self {
        let before = view.queue_row(queue);
        let was_ready = before.is_some_and(|row| row.place.is_some());
        let has_ready = shift.has_ready_after(was_ready, view.has_other_ready(queue));
        let first_due = before.and_then(|row| row.first_due);
        let knows_due = !is_woken && shift.knows_first_due(first_due);
        // Where an entry is due before any score steps, none steps before the first is due now.
        let none_steps =
            |row: QueueRow| row.wake_at.is_none_or(|wake_at| knows_due && row.first_due == Some(wake_at));
        Self {
            is_ready: has_ready.filter(|_| !is_woken),
            knows_due,
            first_due: shift.first_due_after(first_due).map(second),
            knows_step: !is_woken && before.is_some_and(none_steps),
            step: shift.step.map(millis),
        }
    }

    fn settled(&self) -> Option<Settled> {
        let is_known = self.knows_due && self.knows_step;
        self.is_ready.filter(|_| is_known).map(|is_ready| (is_ready, self.first_due, self.step))
    }
}

/// Works out when queues can be claimed that were there before, and answers that. What the call knows is not asked for;
/// `OFFSET 0` has each question asked once, and not wherever its answer is used.
pub(super) fn refresh<'a>(view: &View, refreshed: Refreshed) -> Option<Statement<'a>> {
    const REFRESH: &str = "UPDATE @queues q SET queued = q.queued + w.queued, leased = q.leased + w.leased, \
            done = q.done + w.done, failed = q.failed + w.failed, place = CASE WHEN s.ready THEN w.place END, \
            opens = CASE WHEN NOT s.ready AND s.first_due IS NOT NULL THEN greatest(w.opens, s.first_due * 1000) END, \
            first_due = s.first_due, wake_at = least(s.first_due * 1000, s.step), seen = $13 \
        FROM unnest($1::int4[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::bool[], \
                $9::bool[], $10::int8[], $11::bool[], $12::int8[]) \
            w (id, queued, leased, done, failed, place, opens, ready, knows_due, first_due, knows_step, step) \
        CROSS JOIN LATERAL (SELECT \
            coalesce(w.ready, EXISTS (SELECT 1 FROM @entries e WHERE e.queue = w.id AND e.ready)) AS ready, \
            CASE WHEN w.knows_due THEN w.first_due ELSE (SELECT min(e.due) FROM @entries e \
                WHERE e.queue = w.id AND e.state = 0 AND NOT e.ready) END AS first_due, \
            CASE WHEN w.knows_step THEN w.step ELSE (SELECT min(e.step) FROM @entries e \
                WHERE e.queue = w.id AND e.state = 0 AND e.step IS NOT NULL) END AS step OFFSET 0) s \
        WHERE q.id = w.id RETURNING q.id, q.place, q.opens";
    let columns = refreshed.unknown;
    if columns.id.is_empty() {
        return None;
    }
    let mut statement = Statement::new(REFRESH).with(columns.id, Type::INT4_ARRAY);
    for counts in columns.counts {
        statement = statement.with(counts, Type::INT8_ARRAY);
    }
    Some(
        statement
            .with(columns.place, Type::INT8_ARRAY)
            .with(columns.opens, Type::INT8_ARRAY)
            .with(columns.ready, Type::BOOL_ARRAY)
            .with(columns.knows_due, Type::BOOL_ARRAY)
            .with(columns.first_due, Type::INT8_ARRAY)
            .with(columns.knows_step, Type::BOOL_ARRAY)
            .with(columns.step, Type::INT8_ARRAY)
            .with(millis(view.now), Type::INT8),
    )
}

/// What is known of queues that were there before, as columns.
#[derive(Default)]
struct Columns {
    id: Vec<i32>,
    /// What they have gained or lost, by state.
    counts: [Vec<i64>; 4],
    /// Their places in line, if something is ready.
    place: Vec<i64>,
    /// When they open.
    opens: Vec<i64>,
    ready: Vec<Option<bool>>,
    knows_due: Vec<bool>,
    first_due: Vec<Option<i64>>,
    knows_step: Vec<bool>,
    step: Vec<Option<i64>>,
}

impl Columns {
    fn push(&mut self, view: &View, queue: QueueId, shift: &Shift, found: &Found) {
        self.id.push(int(queue.0));
        for (counts, count) in self.counts.iter_mut().zip(shift.counts) {
            counts.push(count);
        }
        self.place.push(place(view, queue));
        self.opens.push(millis(view.opens(queue).at));
        self.ready.push(found.is_ready);
        self.knows_due.push(found.knows_due);
        self.first_due.push(found.first_due);
        self.knows_step.push(found.knows_step);
        self.step.push(found.step);
    }
}

/// Whether one of the queues that were worked out can be claimed earlier than it could before.
pub(super) fn is_any_earlier(view: &View, refreshed: &[Row]) -> Result<bool, Failure> {
    for row in refreshed {
        if is_earlier(view, queue_id(row.try_get(0)?), row.try_get(1)?, row.try_get(2)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a queue can be claimed earlier than it could before.
fn is_earlier(view: &View, queue: QueueId, place: Option<i64>, opens: Option<i64>) -> bool {
    let at = |place: Option<i64>, opens: Option<i64>| place.map(|place| place >> 20).or(opens);
    let before = view.queue_row(queue).and_then(|row| at(row.place, row.opens.map(millis)));
    at(place, opens).is_some_and(|after| before.is_none_or(|before| after < before))
}

fn place(view: &View, queue: QueueId) -> i64 {
    i64::try_from(view.place_of(queue)).unwrap_or(i64::MAX)
}
