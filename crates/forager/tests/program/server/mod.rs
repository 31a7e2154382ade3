//! Schemas on a real PostgreSQL server, for the real binary to work on.

#![allow(dead_code, reason = "each test file takes what it needs")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::common::{NOW, Ran, forager, run_command};

/// The address of the server that `make test` starts.
fn server() -> String {
    std::env::var("FORAGER_TEST_POSTGRES").expect(
        "FORAGER_TEST_POSTGRES names no server: run `make test`, or `scripts/postgres run cargo test`",
    )
}

fn new_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("program_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A server of the test's own, which is gone when this is dropped, also from under those who use it.
pub(crate) struct Cluster {
    folder: String,
    /// Where it is.
    pub(crate) url: String,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let folder = std::env::temp_dir().join(new_name()).display().to_string();
        let url = script("start", &folder);
        Self { folder, url }
    }

    /// The address of a pooler in front of it, which lends connections for single transactions.
    pub(crate) fn pool(&self) -> String {
        script("pool", &self.folder)
    }

    /// What statements give.
    pub(crate) fn sql(&self, statements: &str) -> Vec<Vec<String>> {
        answers(&self.url, "", statements)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        script("stop", &self.folder);
    }
}

fn script(what: &str, folder: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/postgres");
    let output = Command::new(path).args([what, folder]).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "scripts/postgres {what}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A schema of its own, which goes with it.
pub(crate) struct Schema {
    pub(crate) name: String,
}

impl Schema {
    /// A name that nothing has.
    pub(crate) fn unmade() -> Self {
        Self { name: new_name() }
    }

    /// A schema with an empty queue.
    pub(crate) fn new() -> Self {
        let schema = Self::unmade();
        schema.good(&["db", "migrate"]);
        schema
    }

    /// The address of the queue.
    pub(crate) fn url(&self) -> String {
        format!("{}&schema={}", server(), self.name)
    }

    /// The same with another user part, such as `forager:password`.
    pub(crate) fn url_of(&self, user: &str) -> String {
        self.url().replacen("forager@", &format!("{user}@"), 1)
    }

    /// The program, about to work on this queue.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = forager();
        command.args(args).env("DATABASE_URL", self.url());
        command
    }

    /// Runs a command at [`NOW`].
    pub(crate) fn run(&self, args: &[&str], input: impl AsRef<[u8]>) -> Ran {
        run_command(self.command(args).args(["--now", NOW]), input)
    }

    /// The rows of a command without input that must go well.
    #[track_caller]
    pub(crate) fn good(&self, args: &[&str]) -> Vec<Value> {
        self.run(args, "").good_rows()
    }

    /// What statements give: the values of their rows, as texts. Tables are those of this schema.
    pub(crate) fn sql(&self, statements: &str) -> Vec<Vec<String>> {
        answers(&server(), &format!("SET search_path TO {}", self.name), statements)
    }
}

/// What statements give on a server, after one that gives nothing.
fn answers(url: &str, first: &str, statements: &str) -> Vec<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(first).await.unwrap();
        let messages = client.simple_query(statements).await;
        let messages = messages.unwrap_or_else(|cause| panic!("{statements}: {cause:?}"));
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let text = |row: &tokio_postgres::SimpleQueryRow, column| row.get(column).unwrap_or("").to_owned();
        rows.map(|row| (0..row.len()).map(|column| text(&row, column)).collect()).collect()
    })
}

impl Drop for Schema {
    fn drop(&mut self) {
        self.sql(&format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name));
    }
}
