//! Changing what was there before: entries, hosts, queues and counters, in one statement, since each by itself takes the
//! server and us a good part of the time that its rows do.

use std::sync::LazyLock;

use tokio_postgres::types::Type;

use super::super::failure::Failure;
use super::super::receipts::{self, Receipt};
use super::super::rows::millis;
use super::super::session::Statement;
use super::super::view::View;
use super::shifts::Shifts;
use super::{entries, queues, records};

/// What a call changed of what was there before, as it is sent.
pub(super) struct Change {
    entries: entries::Changed,
    hosts: queues::ChangedHosts,
    /// Queues of which the call knows what they wait for now.
    queues: Vec<i64>,
    counts: Vec<i64>,
}

impl Change {
    pub(super) fn of(view: &View, shifts: &Shifts, queues: Vec<i64>) -> Result<Self, Failure> {
        Ok(Self {
            entries: entries::Changed::of(view)?,
            hosts: queues::ChangedHosts::of(&view.changes)?,
            queues,
            counts: records::counts(view, shifts),
        })
    }

    fn is_empty(&self) -> bool {
        self.entries.records.is_empty()
            && self.hosts.numbers.is_empty()
            && self.queues.is_empty()
            && self.counts.is_empty()
    }

    /// What writes it, with the receipt of the call. All of it is of hosts that the call holds, but for counters: each
    /// connection has rows of its own, until there are many.
    pub(super) fn write<'a>(self, view: &View, receipt: Option<&Receipt<'_>>) -> Option<Statement<'a>> {
        static WRITE: LazyLock<String> = LazyLock::new(|| {
            format!(
                "WITH e AS ({}), h AS ({}), q AS ({}), c AS ({}) {}",
                entries::change("$1", "$2"),
                queues::change_hosts("$3", "$4"),
                queues::change_known("$5", "$6"),
                records::count("$7"),
                receipts::write("$8", "$9"),
            )
        });
        if self.is_empty() && receipt.is_none() {
            return None;
        }
        let (slot, call) = receipt.map(Receipt::numbers).unzip();
        Some(
            Statement::new(&WRITE)
                .with(self.entries.numbers, Type::INT8_ARRAY)
                .with(self.entries.records, Type::TEXT_ARRAY)
                .with(self.hosts.numbers, Type::INT4_ARRAY)
                .with(self.hosts.states, Type::TEXT_ARRAY)
                .with(self.queues, Type::INT8_ARRAY)
                .with(millis(view.now), Type::INT8)
                .with(self.counts, Type::INT8_ARRAY)
                .with(slot, Type::INT8)
                .with(call, Type::INT8),
        )
    }
}
