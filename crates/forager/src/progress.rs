//! How far the reading is, on the terminal; nothing elsewhere.

use std::sync::OnceLock;

use indicatif::{ProgressBar, ProgressStyle};

/// One process reads one input, and whoever complains must get past its bar.
static BAR: OnceLock<ProgressBar> = OnceLock::new();

/// Shows a bar, if it is known how much there is to read.
pub(crate) fn start(total_bytes: Option<u64>) {
    let Some(total_bytes) = total_bytes else { return };
    let bar = BAR.get_or_init(|| ProgressBar::new(total_bytes));
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {bytes} of {total_bytes}, {eta} left") {
        bar.set_style(style);
    }
}

/// So much more has been read.
pub(crate) fn advance(bytes: u64) {
    if let Some(bar) = BAR.get() {
        bar.inc(bytes);
    }
}

/// Takes the bar away.
pub(crate) fn finish() {
    if let Some(bar) = BAR.get() {
        bar.finish_and_clear();
    }
}

/// Takes the bar away while `write` writes to the terminal.
pub(crate) fn aside(write: impl FnOnce()) {
    match BAR.get() {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}
