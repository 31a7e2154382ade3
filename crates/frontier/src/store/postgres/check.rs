//! Looks for what is not as it should be: what is worked out and counted, against what a scan gives.
//!
//! Everything is seen as of one moment, while others go on working.

mod waits;

use std::collections::HashMap;
use std::time::Duration;

use tokio_postgres::types::Type;

use self::waits::Waits;
use super::Postgres;
use super::failure::{Failure, to_error};
use super::rows;
use super::session::Session;
use super::view::key_of;

use crate::catalog::{Catalog, Kind};
use crate::entry::{CollectionId, HostId};
use crate::error::Result;
use crate::host::{Host, InFlight, Opens};
use crate::store::Checked;

/// How long one look at everything may take.
const PATIENCE: Duration = Duration::from_hours(1);

/// How many rows are read at a time.
const PAGE: i64 = 5000;

/// What can be asked in SQL: each statement gives the places where its problem is.
const QUESTIONS: &[(&str, &str)] = &[
    (
        "it is in no queue",
        "SELECT 'entry ' || e.id FROM @entries e LEFT JOIN @queues q ON q.id = e.queue WHERE q.id IS NULL LIMIT 1000",
    ),
    (
        "it is ready without being queued",
        "SELECT 'entry ' || e.id FROM @entries e WHERE e.ready AND e.state <> 0 LIMIT 1000",
    ),
    (
        "it is leased without a lease, or has a lease without being leased",
        "SELECT 'entry ' || e.id FROM @entries e WHERE (e.state = 1) <> (e.token IS NOT NULL) \
            OR (e.state = 1) <> (e.leased_from IS NOT NULL) OR (e.state = 1) <> (e.leased_until IS NOT NULL) LIMIT 1000",
    ),
    (
        "it goes by another time than its own",
        "SELECT 'entry ' || e.id FROM @entries e WHERE e.tie NOT IN (e.due, e.created - 1099511627776) LIMIT 1000",
    ),
    (
        "it goes by its priority, though arrival alone counts",
        "SELECT 'entry ' || e.id FROM @entries e WHERE e.best IS NOT NULL AND e.priority <> 0 LIMIT 1000",
    ),
    (
        "its seed is not there",
        "SELECT 'entry ' || e.id FROM @entries e LEFT JOIN @catalog_rows c ON c.kind = 2 AND c.number = e.seed \
            WHERE e.seed IS NOT NULL AND c.number IS NULL LIMIT 1000",
    ),
    (
        "another entry has the same lease",
        "SELECT 'token ' || e.token FROM @entries e WHERE e.token IS NOT NULL GROUP BY e.token HAVING count(*) > 1 \
            LIMIT 1000",
    ),
    (
        "it is known by another text twice",
        "SELECT 'queue ' || e.queue FROM @entries e GROUP BY e.queue, e.key HAVING count(*) > 1 LIMIT 1000",
    ),
    (
        "its number, or that of a lease, was never given out",
        "SELECT 'entry ' || e.id FROM @entries e, @entry_numbers n, @tokens t \
            WHERE e.id > n.last_value OR e.token > t.last_value LIMIT 1000",
    ),
    (
        "it has no host",
        "SELECT 'queue ' || q.id FROM @queues q LEFT JOIN @hosts h ON h.id = q.host WHERE h.id IS NULL LIMIT 1000",
    ),
    (
        "it belongs to no collection",
        "SELECT 'queue ' || q.id FROM @queues q LEFT JOIN @catalog_rows c ON c.kind = 0 AND c.number = q.collection \
            WHERE c.number IS NULL LIMIT 1000",
    ),
    (
        "it counts other entries than it has",
        "SELECT 'queue ' || q.id FROM @queues q LEFT JOIN (SELECT e.queue, count(*) FILTER (WHERE e.state = 0) AS queued, \
                count(*) FILTER (WHERE e.state = 1) AS leased, count(*) FILTER (WHERE e.state = 2) AS done, \
                count(*) FILTER (WHERE e.state = 3) AS failed FROM @entries e GROUP BY e.queue) s ON s.queue = q.id \
            WHERE (q.queued, q.leased, q.done, q.failed) IS DISTINCT FROM \
                (coalesce(s.queued, 0), coalesce(s.leased, 0), coalesce(s.done, 0), coalesce(s.failed, 0)) LIMIT 1000",
    ),
    (
        "it belongs to a collection that is not there",
        "SELECT 'host ' || h.id FROM @hosts h LEFT JOIN @catalog_rows c ON c.kind = 0 AND c.number = h.owner \
            WHERE h.owner <> -1 AND c.number IS NULL LIMIT 1000",
    ),
    (
        "its number was never given out",
        "SELECT 'host ' || h.id FROM @hosts h, @host_numbers n WHERE h.id > n.last_value \
            UNION ALL SELECT 'queue ' || q.id FROM @queues q, @queue_numbers n WHERE q.id > n.last_value LIMIT 1000",
    ),
    (
        "it counts other entries than it has",
        "SELECT 'collection ' || coalesce(c.collection, s.collection) FROM \
            (SELECT c.collection, sum(c.queued) AS queued, sum(c.leased) AS leased, sum(c.done) AS done, \
                sum(c.failed) AS failed FROM @counters c GROUP BY c.collection) c \
            FULL JOIN (SELECT q.collection, count(*) FILTER (WHERE e.state = 0) AS queued, \
                count(*) FILTER (WHERE e.state = 1) AS leased, count(*) FILTER (WHERE e.state = 2) AS done, \
                count(*) FILTER (WHERE e.state = 3) AS failed \
                FROM @entries e JOIN @queues q ON q.id = e.queue GROUP BY q.collection) s ON s.collection = c.collection \
            WHERE (coalesce(c.queued, 0), coalesce(c.leased, 0), coalesce(c.done, 0), coalesce(c.failed, 0)) \
                IS DISTINCT FROM (coalesce(s.queued, 0), coalesce(s.leased, 0), coalesce(s.done, 0), coalesce(s.failed, 0)) \
            LIMIT 1000",
    ),
    (
        "it is counted though it is not there, or less than nothing is counted",
        "SELECT 'collection ' || c.collection FROM @counters c \
            LEFT JOIN @catalog_rows r ON r.kind = 0 AND r.number = c.collection GROUP BY c.collection \
            HAVING count(r.number) = 0 OR least(sum(c.fetches), sum(c.bytes), sum(c.changes), sum(c.skipped)) < 0 LIMIT 1000",
    ),
    (
        "its number is to be given out once more",
        "SELECT 'collection ' || r.number FROM @catalog_rows r, @catalog c \
            WHERE r.kind = 0 AND r.number >= c.next_collection LIMIT 1000",
    ),
    (
        "it is kept under another key",
        "SELECT 'note ' || encode(n.hash, 'hex') FROM @notes n WHERE substring(sha256(n.key) FROM 1 FOR 16) <> n.hash \
            LIMIT 1000",
    ),
];

impl Postgres {
    /// Verifies every invariant of the schema.
    pub async fn check(&self) -> Result<Checked> {
        self.look_at_everything().await.map_err(to_error)
    }

    async fn look_at_everything(&self) -> Result<Checked, Failure> {
        const COUNTS: &str = "SELECT (SELECT count(*) FROM @entries), (SELECT count(*) FROM @queues), \
            (SELECT count(*) FROM @hosts), (SELECT count(*) FROM @entries WHERE state = 1), \
            (SELECT count(*) FROM @entries WHERE record IS NOT NULL)";
        const VERSION: &str = "SELECT version FROM @catalog";
        let mut session = self.shared.session().await?;
        session.begin(PATIENCE, []).await?;
        // Another transaction, as of one moment: what the first one has run already binds it to be as it began.
        let millis = PATIENCE.as_millis();
        let as_of_now = "ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        session.run(&format!("{as_of_now}; SET LOCAL statement_timeout = {millis}")).await?;
        let mut checked = Checked::default();
        for row in session.query(COUNTS, &[]).await? {
            let count = |column: usize| {
                Ok::<_, Failure>(u64::try_from(row.try_get::<_, i64>(column)?).unwrap_or_default())
            };
            (checked.entries, checked.queues, checked.hosts) = (count(0)?, count(1)?, count(2)?);
            (checked.leases, checked.records) = (count(3)?, count(4)?);
        }
        for (problem, places) in QUESTIONS {
            for row in session.query(places, &[]).await? {
                checked.expect(false, || row.try_get(0).unwrap_or_default(), problem);
            }
        }
        let rows = session.query(VERSION, &[]).await?;
        let version = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
        let catalog = self.read_catalog(&session, version).await?.catalog;
        check_entries(&session, &mut checked).await?;
        let hosts = check_hosts(&session, &mut checked).await?;
        self.check_queues(&session, &catalog, &hosts, &mut checked).await?;
        session.roll_back().await?;
        Ok(checked)
    }

    /// Whether queues know what they wait for, and wait as long as their hosts say, in the order that they say.
    async fn check_queues(
        &self,
        session: &Session,
        catalog: &Catalog,
        hosts: &HashMap<HostId, Host>,
        checked: &mut Checked,
    ) -> Result<(), Failure> {
        const QUEUES: &str = "SELECT q.id, q.collection, q.host, q.place, q.opens, q.first_due, q.wake_at, q.seen, \
                EXISTS (SELECT 1 FROM @entries e WHERE e.queue = q.id AND e.ready) AS has_ready, \
                (SELECT min(e.due) FROM @entries e WHERE e.queue = q.id AND e.state = 0 AND NOT e.ready) AS is_due, \
                (SELECT min(e.step) FROM @entries e WHERE e.queue = q.id AND e.state = 0 AND e.step IS NOT NULL) AS step, \
                EXISTS (SELECT 1 FROM @queues o JOIN @entries e ON e.queue = o.id AND e.state = 1 WHERE o.host = q.host) AS is_busy \
            FROM @queues q WHERE q.id > $1 ORDER BY q.id LIMIT $2";
        let mut after = -1_i32;
        loop {
            let page = session.query(QUEUES, &[(&after, Type::INT4), (&PAGE, Type::INT8)]).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.try_get(0)?;
            for row in page {
                let (id, collection, host): (i32, i32, i32) =
                    (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
                let place = || format!("queue {id}");
                let waits = Waits::read(&row)?;
                checked.expect(
                    waits.are_known(),
                    place,
                    "it does not know when it has something to hand out",
                );
                let collection = rows::collection_id(collection);
                let Some(host) = hosts.get(&rows::host_id(host)) else { continue };
                let is_busy = row.try_get::<_, bool>("is_busy")? || host.visitor.is_some();
                let opens = self.opens(host, is_plain(catalog, collection));
                let is_right = waits.are_those_of(host, collection, opens, is_busy);
                checked.expect(is_right, place, "it waits for another time than its host opens at");
            }
        }
    }

    /// When a host opens that has nothing under way.
    fn opens(&self, host: &Host, is_plain: bool) -> Opens {
        let host = Host { visitor: None, ..host.clone() };
        host.opens(InFlight::default(), &self.settings.politeness, is_plain)
    }
}

fn is_plain(catalog: &Catalog, collection: CollectionId) -> bool {
    catalog.collection_numbered(collection).is_some_and(|row| row.spec.kind == Kind::Plain)
}

/// Whether all entries can be read, and are known by their texts.
async fn check_entries(session: &Session, checked: &mut Checked) -> Result<(), Failure> {
    const ENTRIES: &str = concat!(
        "SELECT ",
        rows::standing!(),
        ", ",
        rows::text!(),
        ", e.key, e.tries FROM @entries e WHERE e.id > $1 ORDER BY e.id LIMIT $2"
    );
    let mut after = -1_i32;
    loop {
        let page = session.query(ENTRIES, &[(&after, Type::INT4), (&PAGE, Type::INT8)]).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.try_get(0)?;
        for row in page {
            let id: i32 = row.try_get(0)?;
            let place = || format!("entry {id}");
            let Ok((_, entry)) = rows::entry(&row, true) else {
                checked.expect(false, place, "it cannot be read");
                continue;
            };
            let Some(text) = entry.text else { continue };
            let key: &[u8] = row.try_get("key")?;
            checked.expect(key == key_of(&text.identity), place, "it is known by another text");
            let tries = text.record.errors.saturating_add(text.record.abandoned);
            let is_counted = i64::from(row.try_get::<_, i32>("tries")?) == i64::from(tries);
            checked.expect(is_counted, place, "it counts other tries than its record");
        }
    }
}

/// Whether all hosts can be read; returns them.
async fn check_hosts(session: &Session, checked: &mut Checked) -> Result<HashMap<HostId, Host>, Failure> {
    const HOSTS: &str =
        "SELECT h.id, h.key, h.owner, h.state::text FROM @hosts h WHERE h.id > $1 ORDER BY h.id LIMIT $2";
    let (mut hosts, mut after) = (HashMap::new(), -1_i32);
    loop {
        let page = session.query(HOSTS, &[(&after, Type::INT4), (&PAGE, Type::INT8)]).await?;
        let Some(last) = page.last() else { return Ok(hosts) };
        after = last.try_get(0)?;
        for row in page {
            let id: i32 = row.try_get(0)?;
            match rows::host(&row) {
                Ok(host) => {
                    hosts.insert(rows::host_id(id), host.state);
                }
                Err(_) => checked.expect(false, || format!("host {id}"), "it cannot be read"),
            }
        }
    }
}
