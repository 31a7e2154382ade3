//! A schema for each test, on the server that `make test` starts.

use std::process::{Command, Stdio};
use std::sync::Arc;

use forager_frontier::conformance::Place;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use forager_frontier::{Frontier, Postgres, PostgresOptions, PostgresSchema, Settings};

/// The address of the server.
pub fn server() -> String {
    std::env::var("FORAGER_TEST_POSTGRES").expect(
        "FORAGER_TEST_POSTGRES names no server: run `make test`, or `scripts/postgres run cargo test`",
    )
}

/// A server of the test's own.
pub struct Cluster {
    pub folder: String,
    pub url: String,
}

pub fn script(words: &[&str]) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/postgres");
    let output = Command::new(path).args(words).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "scripts/postgres {words:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Cluster {
    pub fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("forager-test-{:016x}", rand::random::<u64>()));
        let folder = folder.display().to_string();
        let url = script(&["start", &folder]);
        Self { folder, url }
    }

    /// The address of a pooler in front of it, which lends connections for single transactions.
    pub fn pool(&self) -> String {
        script(&["pool", &self.folder])
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        script(&["stop", &self.folder]);
    }
}

/// A schema of its own. It stays: the whole server is thrown away when the tests are through.
#[derive(Clone, Debug)]
pub struct InSchema {
    pub url: String,
    /// How it is used; tests change what they are about.
    pub options: PostgresOptions,
}

impl InSchema {
    /// With nothing in it but its tables.
    pub fn new() -> Self {
        Self::at(&server())
    }

    /// The same on another server.
    pub fn at(url: &str) -> Self {
        Self::bare(url).migrated()
    }

    /// The same behind a pooler, which this is the address of.
    pub fn behind(pool: &str) -> Self {
        let mut schema = Self::bare(pool);
        schema.options.prepares = false;
        schema.migrated()
    }

    /// The same with its tables.
    pub fn migrated(self) -> Self {
        let Self { url, options } = self.clone();
        apart(async move {
            let schema = PostgresSchema::connect(&url, options).unwrap();
            schema.migrate(schema.newest()).await.unwrap();
        });
        self
    }

    /// A name that nobody has, and nothing behind it.
    pub fn bare(url: &str) -> Self {
        let schema = format!("test_{:016x}", rand::random::<u64>());
        // Numbers one at a time, so that they are those of the model. Most tests have nobody to hear from.
        let options = PostgresOptions {
            schema,
            connections: 4,
            number_block: 1,
            listens: false,
            ..PostgresOptions::default()
        };
        Self { url: url.to_owned(), options }
    }

    /// What another process needs to come here too, as one line.
    pub fn address(&self) -> String {
        format!("{}&schema={}", self.url, self.options.schema)
    }

    /// Everything in its tables is as it should be.
    pub async fn is_sound(&self) {
        for (what, statement) in CHECKS {
            let statement = statement.replace('@', &format!("{}.", self.options.schema));
            let wrong = sql(&self.url, &statement).await;
            assert!(wrong.is_empty(), "{what} in {}: {wrong:?}", self.options.schema);
        }
    }

    pub fn connect(&self, settings: Settings) -> Postgres {
        self.try_connect(settings).unwrap_or_else(|error| panic!("{}: {error}", self.address()))
    }

    pub fn try_connect(&self, settings: Settings) -> forager_frontier::Result<Postgres> {
        let Self { url, options } = self.clone();
        apart(async move { Postgres::connect(&url, settings, options).await })
    }
}

/// Asks the server itself: the first column of each row that comes back.
pub async fn sql(url: &str, statements: &str) -> Vec<String> {
    let client = client(url).await;
    let said = client.simple_query(statements).await;
    let said = said.unwrap_or_else(|error| panic!("{statements}: {error:?}"));
    let rows = said.into_iter().filter_map(|said| match said {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
        _ => None,
    });
    rows.collect()
}

/// A connection of the test's own.
pub async fn client(url: &str) -> Client {
    let config: tokio_postgres::Config = url.parse().unwrap();
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A database of its own on the server of the tests, for what is counted for each database.
pub fn new_database() -> String {
    let (url, name) = (server(), format!("test_{:016x}", rand::random::<u64>()));
    let create = format!("CREATE DATABASE {name}");
    let (address, rest) = url.split_once("/postgres?").expect("the address of a throw-away server");
    let new = format!("{address}/{name}?{rest}");
    apart(async move { sql(&url, &create).await });
    new
}

/// How often the server had to break a circle of those who wait for each other, in a database that nobody uses any
/// more: what each connection counted is known when it has ended.
pub async fn deadlocks(url: &str) -> u64 {
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
        AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
    while sql(url, others).await != ["0"] {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let count = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    sql(url, count).await[0].parse().unwrap()
}

/// What the tables say that is worked out from others is what comes out.
const CHECKS: &[(&str, &str)] = &[
    (
        "counts of queues",
        "SELECT q.id FROM @queues q LEFT JOIN @entries e ON e.queue = q.id GROUP BY q.id \
         HAVING (q.queued, q.leased, q.done, q.failed) <> (count(*) FILTER (WHERE e.state = 0), \
            count(*) FILTER (WHERE e.state = 1), count(*) FILTER (WHERE e.state = 2), \
            count(*) FILTER (WHERE e.state = 3))",
    ),
    (
        "what is ready in queues",
        "SELECT q.id FROM @queues q WHERE (q.place IS NOT NULL) <> EXISTS (SELECT 1 FROM @entries e \
            WHERE e.queue = q.id AND e.ready) \
         OR (q.place IS NULL AND q.opens IS NULL) <> (q.queued = 0) OR (q.place IS NOT NULL AND q.opens IS NOT NULL)",
    ),
    (
        "what queues wait for",
        "SELECT q.id FROM @queues q WHERE q.first_due IS DISTINCT FROM (SELECT min(e.due) FROM @entries e \
            WHERE e.queue = q.id AND e.state = 0 AND NOT e.ready) \
         OR (q.first_due IS NOT NULL AND (q.wake_at IS NULL OR q.wake_at > q.first_due * 1000)) \
         OR q.wake_at > (SELECT min(e.step) FROM @entries e WHERE e.queue = q.id AND e.state = 0)",
    ),
    (
        "leases",
        "SELECT e.id FROM @entries e WHERE (e.state = 1) <> (e.token IS NOT NULL AND e.leased_until IS NOT NULL) \
         OR (e.ready AND e.state <> 0)",
    ),
    (
        "counts of collections",
        "SELECT collection FROM (SELECT c.collection, c.queued, c.leased, c.done, c.failed FROM @counters c \
            UNION ALL SELECT q.collection, -q.queued, -q.leased, -q.done, -q.failed FROM @queues q) x \
         GROUP BY collection HAVING (sum(queued), sum(leased), sum(done), sum(failed)) <> (0, 0, 0, 0)",
    ),
    ("hosts of queues", "SELECT q.id FROM @queues q LEFT JOIN @hosts h ON h.id = q.host WHERE h.id IS NULL"),
    (
        "queues of entries",
        "SELECT e.id FROM @entries e LEFT JOIN @queues q ON q.id = e.queue WHERE q.id IS NULL",
    ),
];

/// Runs something to its end, on a thread with a runtime that stays: what it leaves running goes on.
pub fn apart<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    use std::sync::LazyLock;
    static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
    });
    std::thread::spawn(|| RUNTIME.block_on(work))
        .join()
        .unwrap_or_else(|cause| std::panic::resume_unwind(cause))
}

impl Place for InSchema {
    fn open(&self, settings: Settings) -> Arc<dyn Frontier> {
        Arc::new(self.connect(settings))
    }

    fn close(&self, frontier: Arc<dyn Frontier>) {
        drop(frontier);
    }
}
