//! One connection, while one call uses it.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use deadpool_postgres::Object;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error as PgError, Row};

/// A value of a statement, and its type.
pub(super) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// Statements as this database has them: `@` before a name stands for the schema.
#[derive(Debug)]
pub(super) struct Statements {
    schema: String,
    texts: RwLock<HashMap<&'static str, Arc<str>>>,
}

impl Statements {
    pub(super) fn new(schema: &str) -> Self {
        Self { schema: quoted(schema), texts: RwLock::default() }
    }

    /// A statement with the names of this schema.
    pub(super) fn text(&self, statement: &'static str) -> Arc<str> {
        let known = self.texts.read().unwrap_or_else(PoisonError::into_inner).get(statement).cloned();
        known.unwrap_or_else(|| {
            let text: Arc<str> = statement.replace('@', &format!("{}.", self.schema)).into();
            let mut texts = self.texts.write().unwrap_or_else(PoisonError::into_inner);
            texts.insert(statement, text.clone());
            text
        })
    }
}

/// A name as SQL wants it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A connection in a transaction, or before one. Dropped in the middle of one, it is closed and not used again.
pub(super) struct Session {
    connection: Option<Object>,
    statements: Arc<Statements>,
    /// Whether statements are kept prepared at the server, which a pooler in between may not allow.
    prepares: bool,
    is_open: bool,
}

impl Session {
    pub(super) fn new(connection: Object, statements: Arc<Statements>, prepares: bool) -> Self {
        Self { connection: Some(connection), statements, prepares, is_open: false }
    }

    #[expect(clippy::expect_used, reason = "it is taken away only when the session is closed")]
    fn connection(&self) -> &Object {
        self.connection.as_ref().expect("the session has its connection")
    }

    /// Begins a transaction, whose statements take no longer than this.
    pub(super) async fn begin(&mut self, timeout: Duration) -> Result<(), PgError> {
        self.is_open = true;
        let millis = timeout.as_millis();
        // In one message, and for this transaction only: a pooler may give the next one to another connection. Calls go
        // by indexes even where the server believes that a table is small: it is not for long.
        let begin = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = {millis}; \
             SET LOCAL idle_in_transaction_session_timeout = {millis}; SET LOCAL enable_seqscan = off"
        );
        self.connection().batch_execute(&begin).await
    }

    pub(super) async fn commit(&mut self) -> Result<(), PgError> {
        self.connection().batch_execute("COMMIT").await?;
        self.is_open = false;
        Ok(())
    }

    pub(super) async fn roll_back(&mut self) -> Result<(), PgError> {
        if self.is_open {
            self.connection().batch_execute("ROLLBACK").await?;
            self.is_open = false;
        }
        Ok(())
    }

    /// Makes sure that a statement can be sent at once: those that are on their way together arrive in order only then.
    pub(super) async fn prepare(&self, statement: &'static str, types: &[Type]) -> Result<(), PgError> {
        if self.prepares {
            self.connection().prepare_typed_cached(&self.statements.text(statement), types).await?;
        }
        Ok(())
    }

    pub(super) async fn query(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, PgError> {
        let text = self.statements.text(statement);
        if !self.prepares {
            return self.connection().query_typed(&text, params).await;
        }
        let types: Vec<Type> = params.iter().map(|(_, kind)| kind.clone()).collect();
        let prepared = self.connection().prepare_typed_cached(&text, &types).await?;
        let values: Vec<&(dyn ToSql + Sync)> = params.iter().map(|(value, _)| *value).collect();
        self.connection().query(&prepared, &values).await
    }

    /// Runs several statements as they are.
    pub(super) async fn run(&self, statements: &str) -> Result<(), PgError> {
        self.connection().batch_execute(statements).await
    }

    /// Runs a statement that answers nothing; says how many rows it changed.
    pub(super) async fn execute(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
    ) -> Result<u64, PgError> {
        let text = self.statements.text(statement);
        if !self.prepares {
            return self.connection().execute_typed(&text, params).await;
        }
        let types: Vec<Type> = params.iter().map(|(_, kind)| kind.clone()).collect();
        let prepared = self.connection().prepare_typed_cached(&text, &types).await?;
        let values: Vec<&(dyn ToSql + Sync)> = params.iter().map(|(value, _)| *value).collect();
        self.connection().execute(&prepared, &values).await
    }
}

impl Session {
    /// Closes the connection and leaves its place in the pool to another; nothing can be asked any more.
    pub(super) fn close(&mut self) {
        self.is_open = false;
        if let Some(connection) = self.connection.take() {
            drop(Object::take(connection));
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.is_open {
            // The server rolls back.
            self.close();
        }
    }
}
