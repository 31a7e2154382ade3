//! How far the reading or writing is, on the terminal; nothing elsewhere.

use std::sync::OnceLock;

use indicatif::{ProgressBar, ProgressStyle};

/// One process reads one input or writes one file, and whoever complains must get past its bar.
static BAR: OnceLock<ProgressBar> = OnceLock::new();

/// Shows a bar, if it is known how much there is to read.
pub(crate) fn start(total_bytes: Option<u64>) {
    let Some(total_bytes) = total_bytes else { return };
    show(total_bytes, "{bar:30} {bytes} of {total_bytes}, {eta} left");
}

/// Shows a bar for so many entries to write.
pub(crate) fn start_counting(entries: u64) {
    show(entries, "{bar:30} {human_pos} of {human_len} entries, {eta} left");
}

fn show(total: u64, template: &str) {
    let bar = BAR.get_or_init(|| ProgressBar::new(total));
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

/// Shows a bar for so many steps of a piece of work, in place of the one before.
pub(crate) fn count(what: &'static str, steps: u64) {
    show(steps, "{msg}: {bar:30} {human_pos} of {human_len}, {eta} left");
    if let Some(bar) = BAR.get() {
        bar.reset();
        bar.set_length(steps);
        bar.set_message(what);
    }
}

/// Says what goes on, where somebody watches.
pub(crate) fn note(what: &str) {
    let bar = BAR.get_or_init(|| ProgressBar::new(0));
    bar.println(what);
}

/// So much more has been read or written.
pub(crate) fn advance(amount: u64) {
    if let Some(bar) = BAR.get() {
        bar.inc(amount);
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

/// Shows a line that changes, for work whose end is not known.
pub(crate) fn spin() {
    show(0, "{spinner} {wide_msg}");
}

/// How wide the text of that line may be: what turns before it takes two columns.
pub(crate) fn columns() -> usize {
    console::Term::stderr().size_checked().map_or(80, |(_, columns)| usize::from(columns)).saturating_sub(2)
}

/// Puts another text into that line.
pub(crate) fn say(what: String) {
    if let Some(bar) = BAR.get() {
        bar.set_message(what);
        bar.tick();
    }
}
