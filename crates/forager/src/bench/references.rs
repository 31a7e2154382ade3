//! What a database does at best, and what the plan that the queue replaces would have it do.

use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinSet;

use super::figures::Calls;
use super::postgres::{CLAIM, Scratch};
use super::workload::Workload;

/// Rows of one INSERT.
pub(super) const BATCH: usize = 500;
/// How often the acquisition query is measured.
const ACQUISITIONS: usize = 20;
/// Rows of the minimal queue: more than workers get through.
const MINIMAL_ROWS: i64 = 400_000;

/// A setting of the server.
#[derive(Serialize)]
pub(super) struct Setting {
    setting: String,
    value: String,
}

/// The settings that figures depend on.
pub(super) async fn settings(scratch: &Scratch) -> anyhow::Result<Vec<Setting>> {
    const SETTINGS: &str =
        "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY($1) ORDER BY name";
    const NAMES: [&str; 14] = [
        "autovacuum",
        "checkpoint_timeout",
        "effective_cache_size",
        "fsync",
        "full_page_writes",
        "jit",
        "max_connections",
        "max_wal_size",
        "random_page_cost",
        "server_version",
        "shared_buffers",
        "synchronous_commit",
        "wal_level",
        "work_mem",
    ];
    let client = scratch.connection().await?;
    let rows = client.query(SETTINGS, &[&&NAMES[..]]).await?;
    Ok(rows.iter().map(|row| Setting { setting: row.get(0), value: row.get(1) }).collect())
}

/// Has the planner know what is there, as it would soon.
pub(super) async fn analyze(scratch: &Scratch, part: &str) -> anyhow::Result<()> {
    const TABLES: &str = "SELECT format('ANALYZE %I.%I', schemaname, tablename) FROM pg_tables \
        WHERE schemaname = $1";
    let client = scratch.connection().await?;
    for row in client.query(TABLES, &[&scratch.schema(part)]).await? {
        client.batch_execute(row.get(0)).await?;
    }
    Ok(())
}

/// How many bytes all tables and indexes take.
pub(super) async fn size(scratch: &Scratch, part: &str) -> anyhow::Result<u64> {
    const SIZE: &str = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c \
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'";
    let row = scratch.connection().await?.query_one(SIZE, &[&scratch.schema(part)]).await?;
    Ok(u64::try_from(row.get::<_, i64>(0))?)
}

/// The URLs that the store discovers, as bare rows: the floor.
pub(super) async fn bare_insert(scratch: &Scratch, workload: Workload) -> anyhow::Result<Calls> {
    const TABLE: &str =
        "CREATE TABLE bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, url text NOT NULL UNIQUE)";
    const INSERT: &str = "INSERT INTO bare (url) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING";
    let client = scratch.connection().await?;
    client.batch_execute(TABLE).await?;
    let insert = client.prepare(INSERT).await?;
    let mut calls = Calls::default();
    for batch in workload.batches_from(0, BATCH) {
        let urls: Vec<String> = batch.into_iter().map(|index| workload.url(index)).collect();
        let started = Instant::now();
        client.execute(&insert, &[&urls]).await?;
        calls.add(started.elapsed(), urls.len());
    }
    Ok(calls)
}

/// A queue with nothing but a state and one index: what claims cost at least.
pub(super) async fn minimal_queue(
    scratch: &Scratch,
    count: usize,
    length: Duration,
) -> anyhow::Result<Calls> {
    const TABLE: &str = "CREATE TABLE minimal (id bigint PRIMARY KEY, url text NOT NULL, state text NOT NULL); \
        CREATE INDEX minimal_pending ON minimal (id) WHERE state = 'pending'";
    const FILL: &str = "INSERT INTO minimal SELECT n, 'https://site-' || n % 10000 || '.example/page-' || n, 'pending' \
        FROM generate_series(1::bigint, $1) n";
    const CLAIM_SOME: &str = "UPDATE minimal SET state = 'running' WHERE id IN (SELECT id FROM minimal \
        WHERE state = 'pending' ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING id, url";
    const COMPLETE: &str = "UPDATE minimal SET state = 'done' WHERE id = ANY($1)";
    let client = scratch.connection().await?;
    client.batch_execute(TABLE).await?;
    client.execute(FILL, &[&MINIMAL_ROWS]).await?;
    client.batch_execute("ANALYZE minimal").await?;
    let mut clients = Vec::new();
    for _ in 0..count {
        let client = scratch.connection().await?;
        let prepared = (client.prepare(CLAIM_SOME).await?, client.prepare(COMPLETE).await?);
        clients.push((client, prepared));
    }
    let (mut workers, started) = (JoinSet::new(), Instant::now());
    for (client, (claim, complete)) in clients {
        workers.spawn(async move {
            let (mut calls, most) = (Calls::default(), i64::try_from(CLAIM)?);
            while started.elapsed() < length {
                let cycle = Instant::now();
                let rows = client.query(&claim, &[&most]).await?;
                let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
                client.execute(&complete, &[&ids]).await?;
                calls.add(cycle.elapsed(), ids.len());
            }
            anyhow::Ok(calls)
        });
    }
    let done = workers.join_all().await.into_iter().collect::<anyhow::Result<Vec<Calls>>>()?;
    Ok(Calls::side_by_side(done, started.elapsed()))
}

/// The plan that ranks tasks in a view, and acquires the first one by sorting it.
pub(super) async fn acquisition_query(scratch: &Scratch, pending: u64) -> anyhow::Result<Calls> {
    const TABLES: &str = "
        CREATE TABLE domains (id serial PRIMARY KEY, name text NOT NULL UNIQUE);
        CREATE TABLE pages (id serial PRIMARY KEY, domain_id integer NOT NULL REFERENCES domains, path text NOT NULL,
            UNIQUE (domain_id, path));
        CREATE TABLE jobs (id text PRIMARY KEY, domain_id integer NOT NULL REFERENCES domains, status text NOT NULL);
        CREATE TABLE tasks (id serial PRIMARY KEY, job_id text NOT NULL REFERENCES jobs,
            page_id integer NOT NULL REFERENCES pages, status text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(),
            retry_count integer NOT NULL DEFAULT 0, source_type text, source_url text);
        ALTER TABLE pages ADD COLUMN priority_score NUMERIC(4,3) DEFAULT 0.000;
        CREATE INDEX idx_pages_priority ON pages(domain_id, priority_score DESC);
        ALTER TABLE jobs ADD COLUMN prioritization_mode TEXT DEFAULT 'hierarchy', ADD COLUMN total_pages INTEGER DEFAULT 0;
        CREATE OR REPLACE VIEW prioritized_pending_tasks AS
        WITH job_config AS (
            SELECT DISTINCT j.id as job_id, j.prioritization_mode, j.total_pages FROM jobs j
        )
        SELECT t.id, t.job_id, t.page_id, p.path, t.created_at, t.retry_count, t.source_type, t.source_url,
            CASE WHEN jc.prioritization_mode = 'fifo' THEN 0 ELSE COALESCE(p.priority_score, 0.000) END
                as effective_priority
        FROM tasks t
        JOIN pages p ON t.page_id = p.id
        JOIN job_config jc ON t.job_id = jc.job_id
        WHERE t.status = 'pending';
        INSERT INTO domains (name) VALUES ('www.example.org');
        INSERT INTO jobs (id, domain_id, status) VALUES ('job', 1, 'running')";
    const PAGES: &str = "INSERT INTO pages (domain_id, path, priority_score) \
        SELECT 1, '/section-' || n % 13 || '/page-' || n, 0.100 + (n * 7919 % 700) / 1000.0 FROM generate_series(1::bigint, $1) n";
    const TASKS: &str = "INSERT INTO tasks (job_id, page_id, status, source_type, created_at) \
        SELECT 'job', p.id, 'pending', 'sitemap', now() + p.id * interval '1 ms' FROM pages p";
    const ACQUIRE: &str = "SELECT id, job_id, page_id, path, created_at, retry_count, source_type, source_url
        FROM prioritized_pending_tasks
        WHERE job_id = $1
        ORDER BY effective_priority DESC, created_at ASC
        LIMIT 1
        FOR UPDATE SKIP LOCKED";
    let mut client = scratch.connection().await?;
    client.batch_execute(TABLES).await?;
    client.execute(PAGES, &[&i64::try_from(pending)?]).await?;
    client.execute(TASKS, &[]).await?;
    client.batch_execute("ANALYZE pages; ANALYZE tasks").await?;
    let acquire = client.prepare(ACQUIRE).await?;
    let mut calls = Calls::default();
    for _ in 0..ACQUISITIONS {
        let transaction = client.transaction().await?;
        let started = Instant::now();
        let rows = transaction.query(&acquire, &[&"job"]).await?;
        calls.add(started.elapsed(), rows.len());
        transaction.commit().await?;
    }
    Ok(calls)
}
