//! Turns at hosts that robots.txt was moved to.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use forager_core::time::Interval;
use forager_frontier::entry::Token;
use forager_frontier::host::Gate;
use forager_frontier::verbs::Visit;
use jiff::{SignedDuration, Timestamp};

use super::Office;
use crate::config::Result;

/// How long the place that robots.txt was moved to may keep us waiting.
const PATIENCE: Interval = Interval::MINUTE;
/// How often a host is looked at that has as much under way as it may: when that comes to its end, nobody knows.
const LOOKS: SignedDuration = SignedDuration::from_millis(100);

/// Hosts that have as much under way as they may, and how many wait for one of them all the same.
#[derive(Default)]
pub(super) struct Awaited(Mutex<HashMap<String, usize>>);

impl Awaited {
    fn waiting(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, host: &str) -> Waiting<'_> {
        *self.waiting().entry(host.to_owned()).or_default() += 1;
        Waiting { awaited: self, host: host.to_owned() }
    }
}

/// Somebody waits, until this is dropped.
struct Waiting<'a> {
    awaited: &'a Awaited,
    host: String,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiting = self.awaited.waiting();
        if let Some(count) = waiting.get_mut(&self.host) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.host);
            }
        }
    }
}

/// Whether a host can be asked for robots.txt.
pub(super) enum Access {
    /// Now, in the turn of a page of its own.
    Own,
    /// Now; to be left with this token.
    Welcome(Token),
    /// Not yet. It may be soon.
    Busy,
    /// Not for a long time.
    Closed(Gate),
}

impl Office {
    /// Whether somebody waits for a host to have less under way. Its own pages give way, for they would take every turn.
    pub(crate) fn is_awaited(&self, host: &str) -> bool {
        self.awaited.waiting().contains_key(host)
    }

    /// Waits for a turn at `host`, in the turn of a page of `own`.
    pub(super) async fn visit(&self, host: &str, own: &str) -> Result<Access> {
        let give_up = PATIENCE.after(self.clock.now());
        let mut waiting = None;
        loop {
            let now = self.clock.now();
            let (until, gate) = match self.frontier.visit(host, PATIENCE, now).await? {
                Visit::Welcome(token) => return Ok(Access::Welcome(token)),
                Visit::Closed(until, gate) => (until.timestamp(), gate),
            };
            let is_passing = matches!(gate, Gate::Delay | Gate::InFlight);
            if !is_passing && until > give_up {
                return Ok(Access::Closed(gate));
            }
            // Two hosts may each have what the other waits for.
            if now >= give_up || (gate == Gate::InFlight && self.is_awaited(own)) {
                return Ok(Access::Busy);
            }
            waiting = (gate == Gate::InFlight).then(|| waiting.unwrap_or_else(|| self.awaited.begin(host)));
            self.clock.sleep_until(next_look(gate, until, now).min(give_up)).await;
        }
    }
}

/// When to look again at a host that is closed until then. A lease ends earlier than it runs out.
fn next_look(gate: Gate, until: Timestamp, now: Timestamp) -> Timestamp {
    match gate {
        Gate::InFlight => now.checked_add(LOOKS).unwrap_or(until).min(until),
        _ => until,
    }
}
