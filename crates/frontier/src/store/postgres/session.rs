//! One connection, while one call uses it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use deadpool_postgres::Object;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use rustc_hash::FxHashMap;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, Statement as Prepared};

use super::failure::Failure;

/// A value of a statement, and its type.
pub(super) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// A statement and its values.
pub(super) struct Statement<'a> {
    text: &'static str,
    values: Vec<(Box<dyn ToSql + Sync + Send + 'a>, Type)>,
}

impl<'a> Statement<'a> {
    pub(super) fn new(text: &'static str) -> Self {
        Self { text, values: Vec::new() }
    }

    /// The same with one more value.
    #[must_use]
    pub(super) fn with(mut self, value: impl ToSql + Sync + Send + 'a, kind: Type) -> Self {
        self.values.push((Box::new(value), kind));
        self
    }
}

/// Statements as this database has them: `@` before a name stands for the schema.
#[derive(Debug)]
pub(super) struct Statements {
    schema: String,
    /// By where they stand in the program: reading them takes longer than finding them.
    texts: RwLock<FxHashMap<(usize, usize), Arc<str>>>,
}

impl Statements {
    pub(super) fn new(schema: &str) -> Self {
        Self { schema: quoted(schema), texts: RwLock::default() }
    }

    /// A statement with the names of this schema.
    pub(super) fn text(&self, statement: &'static str) -> Arc<str> {
        let place = (statement.as_ptr().addr(), statement.len());
        let known = self.texts.read().unwrap_or_else(PoisonError::into_inner).get(&place).cloned();
        known.unwrap_or_else(|| {
            let text: Arc<str> = statement.replace('@', &format!("{}.", self.schema)).into();
            let mut texts = self.texts.write().unwrap_or_else(PoisonError::into_inner);
            texts.insert(place, text.clone());
            text
        })
    }
}

/// A name as SQL wants it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// How much longer than a statement may take its answer is waited for: the server ends what is late by itself, and says so.
const MARGIN: Duration = Duration::from_secs(5);

/// A connection in a transaction, or before one. Dropped in the middle of one, or after a statement that was not answered, it
/// is closed and not used again.
pub(super) struct Session {
    connection: Option<Object>,
    statements: Arc<Statements>,
    /// Whether statements are kept prepared at the server, which a pooler in between may not allow.
    prepares: bool,
    /// How long each answer is waited for.
    limit: Duration,
    is_open: bool,
    /// Whether an answer did not come in time.
    is_silent: AtomicBool,
}

impl Session {
    /// With this connection, on which statements take no longer than `timeout` outside of transactions.
    pub(super) fn new(
        connection: Object,
        statements: Arc<Statements>,
        prepares: bool,
        timeout: Duration,
    ) -> Self {
        let (limit, is_silent) = (timeout.saturating_add(MARGIN), AtomicBool::new(false));
        Self { connection: Some(connection), statements, prepares, limit, is_open: false, is_silent }
    }

    #[expect(clippy::expect_used, reason = "it is taken away only when the session is dropped")]
    fn connection(&self) -> &Object {
        self.connection.as_ref().expect("the session has its connection")
    }

    /// Begins a transaction, whose statements take no longer than this, and runs the first ones of it; returns their
    /// answers.
    pub(super) async fn begin<'a>(
        &mut self,
        timeout: Duration,
        first: impl IntoIterator<Item = Statement<'a>>,
    ) -> Result<Vec<Vec<Row>>, Failure> {
        const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
        // For this transaction only: a pooler may give the next one to another connection. Every statement of a call
        // finds its rows by an index, row by row, however small or large the server believes the tables to be. So one
        // plan is right for all values, and making another for each call would take longer than carrying it out;
        // compiling it, very much longer. And a backslash in a text is one, and a lock is waited for as long as any
        // statement, whatever the role has set.
        const SETTINGS: &str = "SELECT set_config('statement_timeout', $1, true), \
            set_config('idle_in_transaction_session_timeout', $1, true), set_config('lock_timeout', '0', true), \
            set_config('enable_seqscan', 'off', true), \
            set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), \
            set_config('enable_material', 'off', true), \
            set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true), \
            set_config('standard_conforming_strings', 'on', true)";
        self.is_open = true;
        self.limit = timeout.saturating_add(MARGIN);
        let settings = Statement::new(SETTINGS).with(timeout.as_millis().to_string(), Type::TEXT);
        let (opening, first) = ([Statement::new(BEGIN), settings], first.into_iter().collect::<Vec<_>>());
        // What looks at tables is prepared in the transaction: that waits for locks, and may take no longer than the rest.
        let prepared = self.prepare(&opening).await?;
        // The first is sent before the second is begun.
        let (opened, answers) =
            futures_util::future::join(self.answers(&opening, &prepared), self.run_all(&first)).await;
        opened.and(answers)
    }

    pub(super) async fn commit(&mut self) -> Result<(), Failure> {
        self.in_time(self.connection().batch_execute("COMMIT")).await??;
        self.is_open = false;
        Ok(())
    }

    pub(super) async fn roll_back(&mut self) -> Result<(), Failure> {
        if self.is_open {
            self.in_time(self.connection().batch_execute("ROLLBACK")).await??;
            self.is_open = false;
        }
        Ok(())
    }

    pub(super) async fn query(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let text = self.statements.text(statement);
        if !self.prepares {
            return Ok(self.in_time(self.connection().query_typed(&text, params)).await??);
        }
        let types: Vec<Type> = params.iter().map(|(_, kind)| kind.clone()).collect();
        let prepared = self.in_time(self.connection().prepare_typed_cached(&text, &types)).await??;
        let values: Vec<&(dyn ToSql + Sync)> = params.iter().map(|(value, _)| *value).collect();
        Ok(self.in_time(self.connection().query(&prepared, &values)).await??)
    }

    /// Runs statements one after the other, without waiting for the answer of one before the next is sent.
    pub(super) async fn run_all(&self, statements: &[Statement<'_>]) -> Result<Vec<Vec<Row>>, Failure> {
        let prepared = self.prepare(statements).await?;
        self.answers(statements, &prepared).await
    }

    /// Statements as the server has them, where it keeps them.
    async fn prepare(&self, statements: &[Statement<'_>]) -> Result<Vec<Prepared>, Failure> {
        let mut prepared = Vec::new();
        for statement in statements.iter().filter(|_| self.prepares) {
            let types: Vec<Type> = statement.values.iter().map(|(_, kind)| kind.clone()).collect();
            let text = self.statements.text(statement.text);
            prepared.push(self.in_time(self.connection().prepare_typed_cached(&text, &types)).await??);
        }
        Ok(prepared)
    }

    /// Sends all statements, and hears what comes of each.
    async fn answers(
        &self,
        statements: &[Statement<'_>],
        prepared: &[Prepared],
    ) -> Result<Vec<Vec<Row>>, Failure> {
        let answers = statements.iter().enumerate().map(|(place, statement)| {
            let prepared = prepared.get(place);
            async move {
                let values =
                    statement.values.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind));
                if let Some(prepared) = prepared {
                    let values: Vec<&(dyn ToSql + Sync)> = values.map(|(value, _)| value).collect();
                    self.connection().query(prepared, &values).await
                } else {
                    let values: Vec<Param<'_>> = values.map(|(value, kind)| (value, kind.clone())).collect();
                    self.connection().query_typed(&self.statements.text(statement.text), &values).await
                }
            }
        });
        let mut answers: FuturesOrdered<_> = answers.collect();
        let mut heard = Vec::with_capacity(statements.len());
        // Each has its own time. All of them, in order: after one that fails those that follow do too, and only the first
        // says why.
        while let Some(answer) = self.in_time(answers.next()).await? {
            heard.push(answer);
        }
        Ok(heard.into_iter().collect::<Result<_, _>>()?)
    }

    /// What the server answers, unless it stands still: then nothing more is to be had from this connection.
    async fn in_time<T>(&self, answer: impl Future<Output = T>) -> Result<T, Failure> {
        let heard = tokio::time::timeout(self.limit, answer).await;
        heard.map_err(|_| {
            self.is_silent.store(true, Ordering::Relaxed);
            Failure::Silent(self.limit)
        })
    }

    /// Runs several statements as they are.
    pub(super) async fn run(&self, statements: &str) -> Result<(), Failure> {
        Ok(self.in_time(self.connection().batch_execute(statements)).await??)
    }

    /// Runs a statement that answers nothing; says how many rows it changed.
    pub(super) async fn execute(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
    ) -> Result<u64, Failure> {
        let text = self.statements.text(statement);
        if !self.prepares {
            return Ok(self.in_time(self.connection().execute_typed(&text, params)).await??);
        }
        let types: Vec<Type> = params.iter().map(|(_, kind)| kind.clone()).collect();
        let prepared = self.in_time(self.connection().prepare_typed_cached(&text, &types)).await??;
        let values: Vec<&(dyn ToSql + Sync)> = params.iter().map(|(value, _)| *value).collect();
        Ok(self.in_time(self.connection().execute(&prepared, &values)).await??)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let is_silent = *self.is_silent.get_mut();
        if (self.is_open || is_silent)
            && let Some(connection) = self.connection.take()
        {
            // Those that nobody uses go with it: they lead to the same server, and each would be waited for as long.
            if let Some(pool) = Object::pool(&connection).filter(|_| is_silent) {
                pool.retain(|_, _| false);
            }
            // Out of the pool, and closed: the server rolls back.
            drop(Object::take(connection));
        }
    }
}
