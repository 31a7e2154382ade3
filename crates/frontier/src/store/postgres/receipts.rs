//! Whether a commit whose answer was lost was made.
//!
//! The number of a transaction cannot tell: a server that crashed before anything of it reached the medium, or that took
//! over from one that did, gives the same number to another. So each call that changes something writes a number of its
//! own into a row that no other call uses meanwhile, and that row is asked for.

use std::sync::{Mutex, PoisonError};

use tokio_postgres::types::Type;

use super::Postgres;
use super::call::Attempt;
use super::failure::Failure;
use super::session::Statement;

/// The rows of one process, each of which is used by one call at a time.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    free: Mutex<Vec<Row>>,
}

/// A row, and the number that was last written there.
#[derive(Clone, Copy, Debug)]
struct Row {
    slot: i64,
    call: i64,
}

impl Receipts {
    /// A number that no other call has, for a row that no other uses until this is dropped.
    pub(super) fn take(&self) -> Receipt<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut row = free.unwrap_or_else(|| Row { slot: rand::random(), call: 0 });
        row.call += 1;
        Receipt { of: self, row }
    }
}

/// What a call is known by, should its connection be lost.
#[derive(Debug)]
pub(super) struct Receipt<'a> {
    of: &'a Receipts,
    row: Row,
}

impl Receipt<'_> {
    /// The row, and the number that is written there.
    pub(super) fn numbers(&self) -> (i64, i64) {
        (self.row.slot, self.row.call)
    }
}

/// What writes a receipt, if there is one, which is sent as `slot` and `call`: with what the call changes, so that both are
/// there or neither is.
pub(super) fn write(slot: &str, call: &str) -> String {
    format!(
        "INSERT INTO @receipts (slot, call) SELECT {slot}, {call} WHERE {slot} IS NOT NULL \
            ON CONFLICT (slot) DO UPDATE SET call = excluded.call, written = now()"
    )
}

impl Drop for Receipt<'_> {
    fn drop(&mut self) {
        self.of.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.row);
    }
}

impl Postgres {
    /// Whether a call whose end was not heard of was committed.
    pub(super) async fn is_committed(&self, receipt: &Receipt<'_>) -> Result<bool, Failure> {
        let mut attempt = Attempt::default();
        loop {
            let answer = self.look_up(receipt).await;
            let Some(problem) = answer.as_ref().err().and_then(Failure::passing) else { return answer };
            let problem = format!("whether a change was made is not known: {problem}");
            self.shared.pause(&mut attempt, &problem).await.map_err(Failure::Call)?;
        }
    }

    async fn look_up(&self, receipt: &Receipt<'_>) -> Result<bool, Failure> {
        // Writing waits for a transaction that is still at this row; reading would see what was there before. It is rolled
        // back, as a commit may have to wait for a copy elsewhere.
        const LOOK_UP: &str = "INSERT INTO @receipts AS r (slot, call) VALUES ($1, 0) \
            ON CONFLICT (slot) DO UPDATE SET call = r.call RETURNING call";
        let mut session = self.shared.session().await?;
        let look_up = Statement::new(LOOK_UP).with(receipt.row.slot, Type::INT8);
        let answers = session.begin(self.shared.options.statement_timeout, [look_up]).await;
        let answers = match answers {
            Err(why) if !why.is_loss() => {
                session.roll_back().await?;
                return Err(why);
            }
            answers => answers?,
        };
        session.roll_back().await?;
        let row = answers.last().and_then(|rows| rows.first());
        Ok(row.map(|row| row.try_get::<_, i64>(0)).transpose()? == Some(receipt.row.call))
    }

    /// Removes the rows of this process, and those of others that went without doing so.
    pub(super) async fn clear_receipts(&self) -> Result<(), Failure> {
        const CLEAR: &str = "DELETE FROM @receipts WHERE slot IN (SELECT slot FROM @receipts \
            WHERE slot = ANY($1) OR written < now() - interval '7 days' FOR UPDATE SKIP LOCKED)";
        let free = self.receipts.free.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let slots: Vec<i64> = free.iter().map(|row| row.slot).collect();
        if slots.is_empty() {
            return Ok(());
        }
        let session = self.shared.session().await?;
        session.execute(CLEAR, &[(&slots, Type::INT8_ARRAY)]).await?;
        Ok(())
    }
}
