//! Waiting to be alone.
//!
//! Whoever waits for the lock that all others share has them stand behind him. One transaction that stays open, of
//! somebody who writes SQL, would stop everybody as soon as one has to be alone. So that one waits for a moment only,
//! lets the others through, and tries again, until its patience ends.

use std::time::{Duration, Instant};

use tokio_postgres::types::Type;

use super::call::Attempt;
use super::session::Statement;
use super::shared::Shared;
use crate::error::{Error, Result};

/// For how long a call waits to be alone, this time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alone {
    wait: Duration,
}

impl Alone {
    /// What takes the lock, or fails when the time is over. What follows may wait as long as any statement.
    pub(super) fn lock(self, key: i64) -> Vec<Statement<'static>> {
        const WAIT: &str = "SELECT set_config('lock_timeout', $1, true)";
        const LOCK: &str = "SELECT pg_advisory_xact_lock($1)";
        vec![
            Statement::new(WAIT).with(self.wait.as_millis().to_string(), Type::TEXT),
            Statement::new(LOCK).with(key, Type::INT8),
            Statement::new(WAIT).with("0", Type::TEXT),
        ]
    }
}

/// How often a call has tried to be alone, and since when.
#[derive(Debug, Default)]
pub(super) struct Tries {
    count: u32,
    since: Option<Instant>,
}

impl Tries {
    /// The wait of the next try: longer each time, for one that is cut short has kept others for nothing, and where all
    /// calls are long none would ever be enough.
    pub(super) fn next(&self) -> Alone {
        Alone { wait: Duration::from_millis(125 << self.count.min(5)) }
    }
}

impl Shared {
    /// Lets others through, for as long as they were kept; gives up in the end.
    pub(super) async fn let_others_through(&self, attempt: &mut Attempt) -> Result<()> {
        let tries = &mut attempt.alone;
        let since = *tries.since.get_or_insert_with(Instant::now);
        // Nobody is so impatient that the calls of others, as long as they may take, are too much.
        let patience = self.options.patience.max(self.options.statement_timeout);
        if since.elapsed() > patience {
            let problem = format!(
                "this has to be done alone, and for {} s somebody else was changing something all the time; \
                 pg_stat_activity shows who: end that transaction",
                patience.as_secs()
            );
            return Err(Error::Database { problem });
        }
        let wait = tries.next().wait;
        tries.count += 1;
        tokio::time::sleep(wait + wait.mul_f64(rand::random_range(0.0..0.5))).await;
        Ok(())
    }
}
