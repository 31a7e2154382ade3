//! A schema for each test, on the server that `make test` starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use forager_frontier::conformance::Place;
use forager_frontier::{Frontier, Postgres, PostgresOptions, PostgresSchema, Settings};

/// The address of the server.
pub fn server() -> String {
    std::env::var("FORAGER_TEST_POSTGRES").expect(
        "FORAGER_TEST_POSTGRES names no server: run `make test`, or `scripts/postgres run cargo test`",
    )
}

/// A schema of its own, dropped with it.
pub struct InSchema {
    pub name: String,
}

impl InSchema {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        let schema = Self { name };
        let (url, options) = (server(), schema.options());
        apart(async move {
            let schema = PostgresSchema::connect(&url, options).unwrap();
            schema.migrate(PostgresSchema::newest()).await.unwrap();
        });
        schema
    }

    /// Numbers one at a time, so that they are those of the model.
    pub fn options(&self) -> PostgresOptions {
        PostgresOptions {
            schema: self.name.clone(),
            connections: 4,
            number_block: 1,
            ..PostgresOptions::default()
        }
    }

    pub fn connect(&self, settings: Settings) -> Postgres {
        let (url, options) = (server(), self.options());
        apart(async move { Postgres::connect(&url, settings, options).await.unwrap() })
    }
}

impl Drop for InSchema {
    fn drop(&mut self) {
        let (url, options) = (server(), self.options());
        apart(async move {
            let schema = PostgresSchema::connect(&url, options).unwrap();
            schema.migrate(0).await.unwrap();
        });
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
