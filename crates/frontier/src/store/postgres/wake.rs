//! Waking what is due by now, so that claims find it by an index.

use std::collections::BTreeSet;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::alone::Alone;
use super::call::{self, Call};
use super::failure::Failure;
use super::loaded::Loaded;
use super::numbers::Taken;
use super::rows::{self, int, millis, queue_id};
use super::session::{Session, Statement};
use super::wants::Wants;
use super::{Begun, Postgres, flush, load};
use crate::engine;
use crate::entry::{EntryId, QueueId};
use crate::moment::Moment;

/// How many queues are woken at a time.
const MOST_WOKEN: i64 = 500;
/// How many entries are, so that a million that are due at once take no statement longer than it may.
const MOST_ENTRIES: i64 = 10_000;

/// What of all that happens by itself a call has to know of: until when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ByItself {
    /// Queues that are to be woken.
    pub(super) wakes: Option<Moment>,
    /// Leases that run out.
    pub(super) expires: Option<Moment>,
}

impl ByItself {
    /// The same statement with both, as [`upcoming`] needs them.
    pub(super) fn add_to(self, statement: Statement<'_>) -> Statement<'_> {
        statement.with(self.wakes.map(millis), Type::INT8).with(self.expires.map(millis), Type::INT8)
    }
}

/// Whether there is any of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Upcoming {
    is_waking: bool,
    pub(super) is_expiring: bool,
}

/// The columns that tell it, in the order of [`Upcoming::of`], after the two versions. Whether one is over by then, rather than
/// which is first: that would step over what each call has left behind at the beginning of the index.
macro_rules! upcoming {
    () => {
        "EXISTS (SELECT 1 FROM @queues q WHERE q.wake_at <= $1), \
         EXISTS (SELECT 1 FROM @entries e WHERE e.leased_until <= $2)"
    };
}

pub(super) use upcoming;

impl Upcoming {
    pub(super) fn of(row: &Row) -> Result<Self, Failure> {
        Ok(Self { is_waking: row.try_get(2)?, is_expiring: row.try_get(3)? })
    }
}

impl Postgres {
    /// Begins a transaction before which all was woken that is due by now.
    pub(super) async fn begin_awake<'a>(
        &self,
        session: &mut Session,
        (now, expires): (Moment, Option<Moment>),
        alone: Option<Alone>,
        first: impl Fn() -> Vec<Statement<'a>>,
    ) -> Result<Begun, Failure> {
        let begun = self.begin(session, alone, ByItself { wakes: Some(now), expires }, first()).await?;
        if !begun.upcoming.is_waking {
            return Ok(begun);
        }
        session.roll_back().await?;
        self.wake(session, now).await?;
        self.begin(session, alone, ByItself { wakes: None, expires }, first()).await
    }

    /// Makes ready what is due by now, a batch of hosts at a time, so that claims find it by an index.
    async fn wake(&self, session: &mut Session, now: Moment) -> Result<(), Failure> {
        while self.wake_some(session, now).await? {}
        Ok(())
    }

    async fn wake_some(&self, session: &mut Session, now: Moment) -> Result<bool, Failure> {
        const WHICH: &str = "SELECT q.id, q.host FROM @queues q JOIN @hosts h ON h.id = q.host \
            WHERE q.wake_at <= $1 AND q.seen <= $1 ORDER BY q.wake_at LIMIT $2 FOR UPDATE OF h SKIP LOCKED";
        const WAKE: &str = "UPDATE @entries e SET ready = true FROM (SELECT w.id FROM unnest($1::int4[]) q (id) \
                CROSS JOIN LATERAL (SELECT r.id FROM @entries r WHERE r.queue = q.id AND r.state = 0 AND NOT r.ready \
                    AND r.due <= $2 LIMIT $3) w LIMIT $3) w WHERE e.id = w.id RETURNING 1";
        const STEPPING: &str = "SELECT e.id FROM @entries e \
            WHERE e.queue = ANY($1) AND e.state = 0 AND e.step IS NOT NULL AND e.step <= $2 ORDER BY e.id";
        let known = self.begin(session, None, ByItself::default(), Vec::new()).await?.known;
        let time = millis(now);
        let rows = session.query(WHICH, &[(&time, Type::INT8), (&MOST_WOKEN, Type::INT8)]).await?;
        let mut loaded = Loaded { stepping: Some(Vec::new()), ..Loaded::default() };
        let mut queues: BTreeSet<QueueId> = BTreeSet::new();
        for row in &rows {
            queues.insert(queue_id(row.try_get(0)?));
            loaded.locked.insert(rows::host_id(row.try_get(1)?));
        }
        if queues.is_empty() {
            session.roll_back().await?;
            return Ok(false);
        }
        let numbers: Vec<i32> = queues.iter().map(|queue| int(queue.0)).collect();
        let about = |text, until: i64| {
            Statement::new(text).with(numbers.clone(), Type::INT4_ARRAY).with(until, Type::INT8)
        };
        let wake = about(WAKE, rows::second(now)).with(MOST_ENTRIES, Type::INT8);
        let answers = session.run_all(&[wake, about(STEPPING, time)]).await?;
        let is_cut = answers.first().is_some_and(|woken| i64::try_from(woken.len()) == Ok(MOST_ENTRIES));
        let mut wants = Wants::default();
        for row in answers.iter().skip(1).flatten() {
            wants.entries.insert(rows::entry_id(row.try_get(0)?));
        }
        let stepping: Vec<EntryId> = wants.entries.iter().copied().collect();
        let how = Call {
            settings: &self.settings,
            catalog: &known.catalog,
            is_alone: false,
            waits_for_others: false,
            minds_others: false,
            log_lock: self.shared.lock_key("log"),
            open_before: call::place_after(now),
        };
        let hosts = loaded.locked.iter().copied().collect();
        load::host_rows(session, &mut loaded, &hosts).await?;
        load::load(session, &how, &mut loaded, wants, None).await?;
        loaded.stepping = Some(stepping);
        let mut view = self.view(now, 0, &known.catalog, loaded, &Taken::new(&self.numbers));
        engine::wake(&mut view, now).map_err(Failure::Call)?;
        flush::flush(session, &view, &queues, None).await?;
        Ok(is_cut || i64::try_from(rows.len()) == Ok(MOST_WOKEN))
    }
}
