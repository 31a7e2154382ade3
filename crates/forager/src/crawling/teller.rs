//! What is told of a crawl while it runs: a line that changes on a terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::{output, progress};

/// How often the line on a terminal is made anew.
const ON_TERMINAL: Duration = Duration::from_millis(250);
/// When the first line is written elsewhere. Each wait is twice as long as the one before.
const FIRST: Duration = Duration::from_secs(5);
/// The longest wait for the next line of a crawl that ends.
pub(crate) const A_MINUTE: Duration = Duration::from_mins(1);
/// The longest wait for the next line of one that goes on for ever: whoever reads its log reads days of it.
pub(crate) const AN_HOUR: Duration = Duration::from_hours(1);

/// Tells how far a crawl is, from a thread of its own: a crawl that waits long has nothing else to wake it.
pub(crate) struct Teller {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Teller {
    /// Tells what `line` says from time to time, at least every `longest`, until it is dropped.
    pub(crate) fn start(longest: Duration, line: impl FnMut() -> String + Send + 'static) -> Self {
        if output::is_quiet() {
            return Self { stop: None, thread: None };
        }
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || tell(&stopped, longest, line));
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

fn tell(stopped: &mpsc::Receiver<()>, longest: Duration, mut line: impl FnMut() -> String) {
    let is_terminal = io::stderr().is_terminal();
    if is_terminal {
        progress::spin();
    }
    let mut wait = if is_terminal { ON_TERMINAL } else { FIRST };
    while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        if is_terminal {
            progress::say(line());
        } else {
            output::tell(format_args!("{}", line()));
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
