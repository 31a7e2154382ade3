//! A schema for each test, on the server that `make test` starts.

use std::sync::Arc;

use forager_frontier::conformance::Place;
use forager_frontier::{Frontier, Postgres, PostgresOptions, PostgresSchema, Settings};

/// The address of the server.
pub fn server() -> String {
    std::env::var("FORAGER_TEST_POSTGRES").expect(
        "FORAGER_TEST_POSTGRES names no server: run `make test`, or `scripts/postgres run cargo test`",
    )
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
        let schema = Self::bare(url);
        let (url, options) = (url.to_owned(), schema.options.clone());
        apart(async move {
            let schema = PostgresSchema::connect(&url, options).unwrap();
            schema.migrate(PostgresSchema::newest()).await.unwrap();
        });
        schema
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

    pub fn connect(&self, settings: Settings) -> Postgres {
        self.try_connect(settings).unwrap_or_else(|error| panic!("{}: {error}", self.address()))
    }

    pub fn try_connect(&self, settings: Settings) -> forager_frontier::Result<Postgres> {
        let Self { url, options } = self.clone();
        apart(async move { Postgres::connect(&url, settings, options).await })
    }
}

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
