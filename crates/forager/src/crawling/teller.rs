//! What is told of a crawl while it runs: a line that changes on a terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use super::line::Line;
use crate::journal::{self, Event, Level};
use crate::progress;

/// How often the line on a terminal is made anew.
const ON_TERMINAL: Duration = Duration::from_millis(250);
/// When the first line is written elsewhere. Each wait is twice as long as the one before.
const FIRST: Duration = Duration::from_secs(5);
/// The longest wait for the next line of a crawl that ends.
pub(crate) const A_MINUTE: Duration = Duration::from_mins(1);
/// The longest wait for the next line of one that goes on for ever: whoever reads its log reads days of it.
pub(crate) const AN_HOUR: Duration = Duration::from_hours(1);

/// How far it is.
pub(crate) struct Told {
    /// For people.
    pub(crate) line: String,
    /// What that is made of, where it may be too long for a terminal.
    pub(crate) parts: Option<Line>,
    /// For programs.
    pub(crate) figures: Value,
}

impl Told {
    /// The line, for a terminal of so many columns.
    fn fitted(self, columns: usize) -> String {
        self.parts.map_or(self.line, |parts| parts.fitted(columns))
    }

    /// Writes it down.
    pub(crate) fn tell(&self) {
        journal::tell(Level::Info, Event::Progress, &self.line, &self.figures);
    }
}

/// Tells how far a crawl is, from a thread of its own: a crawl that waits long has nothing else to wake it.
pub(crate) struct Teller {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Teller {
    /// Tells what `line` says from time to time, at least every `longest`, until it is dropped.
    pub(crate) fn start(longest: Duration, line: impl FnMut() -> Told + Send + 'static) -> Self {
        if journal::is_quiet() {
            return Self { stop: None, thread: None };
        }
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || tell(&stopped, longest, line));
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

fn tell(stopped: &mpsc::Receiver<()>, longest: Duration, mut line: impl FnMut() -> Told) {
    let is_terminal = io::stderr().is_terminal() && !journal::is_json();
    if is_terminal {
        progress::spin();
    }
    let mut wait = if is_terminal { ON_TERMINAL } else { FIRST };
    while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        if is_terminal {
            progress::say(line().fitted(progress::columns()));
        } else {
            line().tell();
            wait = (wait * 2).min(longest);
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It does nothing but tell; a panic there was told there.
            let _ = thread.join();
        }
    }
}
