//! A command that is run for each change, one after another, beside the crawl.

use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use forager_crawl::Stop;
use serde_json::json;
use tokio::sync::watch;

use crate::journal::{self, Event, Level};
use crate::output;
use crate::words::counted;

/// How many changes wait for the command. More are left to `forager events`, which has all of them: a crawl waits for
/// nobody, and its memory has an end.
const MOST_WAITING: usize = 1000;
/// How long a command may take for one change. One that hangs would keep all others from being told.
const LONGEST: Duration = Duration::from_mins(1);
/// How often it is looked whether a command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The longest line of what it prints that is told whole, in bytes.
const LONGEST_LINE: usize = 4096;
/// How long is waited for what a command has printed that has ended. What it leaves running may print for ever.
const FOR_THE_REST: Duration = Duration::from_secs(1);

/// A command and the changes that wait for it.
pub(super) struct Hook {
    command: String,
    lines: mpsc::SyncSender<Vec<u8>>,
    /// How many changes found no place to wait.
    left_out: u64,
    runner: JoinHandle<u64>,
    /// Whether to end without having told everything.
    is_over: Arc<AtomicBool>,
}

impl Hook {
    pub(super) fn new(command: &str) -> Self {
        let (lines, waiting) = mpsc::sync_channel::<Vec<u8>>(MOST_WAITING);
        let is_over = Arc::new(AtomicBool::new(false));
        let (of_runner, command) = (is_over.clone(), command.to_owned());
        let text = command.clone();
        let runner = std::thread::spawn(move || tell_all(&text, waiting, &of_runner));
        Self { command, lines, left_out: 0, runner, is_over }
    }

    /// Hands over a change, if not too many wait already. Never waits itself.
    pub(super) fn tell(&mut self, line: Vec<u8>) {
        // A runner that is gone has said why.
        if let Err(mpsc::TrySendError::Full(_)) = self.lines.try_send(line) {
            if self.left_out == 0 {
                output::complain(format_args!(
                    "{:?} is slower than changes come: {MOST_WAITING} wait for it, and while they do, others are not told to it; \
                     \"forager events\" has all of them",
                    self.command
                ));
            }
            self.left_out += 1;
        }
    }

    /// Waits for the command to have seen every change that it was handed, or until people have waited long enough. Returns how
    /// many it has not seen.
    pub(super) async fn finish(self, stop: &watch::Receiver<Stop>) -> u64 {
        let Self { command, lines, left_out, runner, is_over } = self;
        drop(lines);
        let start = Instant::now();
        let mut was_told = false;
        while !runner.is_finished() {
            if *stop.borrow() == Stop::Now {
                is_over.store(true, Ordering::Relaxed);
            } else if !was_told && start.elapsed() > Duration::from_secs(1) {
                was_told = true;
                output::complain(format_args!("waiting for {command:?} to end; Ctrl-C twice ends it"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        // What went wrong there was told there.
        let untold = left_out + runner.join().unwrap_or_default();
        if untold > 0 {
            let changes = counted(untold, "change was", "changes were");
            output::complain(format_args!("{changes} not told to {command:?}; \"forager events\" has them"));
        }
        untold
    }
}

/// Runs the command for each change. Returns how many it was not run for, or not to its end.
fn tell_all(command: &str, lines: mpsc::Receiver<Vec<u8>>, is_over: &AtomicBool) -> u64 {
    let mut untold = 0;
    for line in lines {
        if is_over.load(Ordering::Relaxed) {
            untold += 1;
            continue;
        }
        match run(command, line, LONGEST, is_over) {
            Ok(Some(status)) if status.success() => {}
            Ok(Some(status)) => output::complain(format_args!("{command:?} failed: {status}")),
            Ok(None) => {
                untold += 1;
                output::complain(format_args!("{command:?} did not end, and was ended"));
            }
            Err(cause) => output::complain(format_args!("{command:?} could not be run: {cause}")),
        }
    }
    untold
}

/// Runs the command with this line as its input. Ends it, and all that it has started, if it takes too long.
fn run(
    command: &str,
    line: Vec<u8>,
    longest: Duration,
    is_over: &AtomicBool,
) -> io::Result<Option<ExitStatus>> {
    // A group of its own: Ctrl-C is for the crawl, and whoever hangs is ended as a whole.
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::piped()).process_group(0);
    let mut child = redirect(&mut shell).spawn()?;
    let input = child.stdin.take();
    let tellers = tell_output(&mut child);
    // From a thread of its own: a command that does not read would hold us up with it. One that has closed its
    // end does not want to know, which is its own business.
    let writer = std::thread::spawn(move || input.map(|mut input| input.write_all(&line)));
    let start = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if is_over.load(Ordering::Relaxed) || start.elapsed() > longest => break end(&mut child)?,
            None => std::thread::sleep(LOOK_EVERY),
        }
    };
    // What a command leaves running may hold its input open; nobody waits for that.
    drop(writer);
    let end = Instant::now();
    while tellers.iter().any(|teller| !teller.is_finished()) && end.elapsed() < FOR_THE_REST {
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(status)
}

/// What a command prints goes to standard error: our standard output is for what we have to say. Programs that read that
/// have it line by line.
fn redirect(shell: &mut Command) -> &mut Command {
    if journal::is_json() {
        shell.stdout(Stdio::piped()).stderr(Stdio::piped())
    } else if journal::is_quiet() {
        shell.stdout(Stdio::null())
    } else {
        shell.stdout(io::stderr())
    }
}

/// Tells what a command prints, as far as it comes to us, for as long as it and what it leaves running do.
fn tell_output(child: &mut Child) -> Vec<JoinHandle<()>> {
    let output = child.stdout.take().map(|output| tell_lines(output, Level::Info, "stdout"));
    let errors = child.stderr.take().map(|errors| tell_lines(errors, Level::Warn, "stderr"));
    output.into_iter().chain(errors).collect()
}

fn tell_lines(from: impl Read + Send + 'static, level: Level, stream: &'static str) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut lines = BufReader::new(from);
        // What cannot be read is at its end.
        while let Ok(Some(line)) = next_line(&mut lines) {
            journal::tell(level, Event::Command, &line, &json!({"stream": stream}));
        }
    })
}

/// The next line, if there is one; of a long one, its beginning.
fn next_line(lines: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if lines.by_ref().take(LONGEST_LINE as u64 + 1).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let is_cut = line.len() > LONGEST_LINE && line.last() != Some(&b'\n');
    if is_cut {
        line.truncate(LONGEST_LINE);
        lines.skip_until(b'\n')?;
    }
    let text = String::from_utf8_lossy(line.trim_ascii_end());
    Ok(Some(if is_cut { format!("{text}[…]") } else { text.into_owned() }))
}

/// Ends a command with all that it has started.
fn end(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let group = format!("kill -s KILL -- -{}", child.id());
    Command::new("sh").args(["-c", &group]).stderr(Stdio::null()).status()?;
    child.kill()?;
    child.wait()?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_hangs_is_ended_with_what_it_has_started() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let text = format!("(sleep 2; echo late > {}) & wait", mark.display());
        let start = Instant::now();
        let ended = run(&text, vec![b'x'; 1 << 20], Duration::from_millis(100), &AtomicBool::new(false));
        assert!(ended.unwrap().is_none());
        assert!(start.elapsed() < Duration::from_mins(1));
        std::thread::sleep(Duration::from_secs(3));
        assert!(!mark.exists(), "what it started went on");
    }

    #[tokio::test]
    async fn a_command_that_is_too_slow_holds_nobody_up() {
        let places = u64::try_from(MOST_WAITING).unwrap();
        let mut hook = Hook::new("sleep 600");
        let (done, is_done) = mpsc::channel();
        // From a thread of its own: were it held up, it would be so until the command ends.
        std::thread::spawn(move || {
            (0..3 * places).for_each(|_| hook.tell(b"line\n".to_vec()));
            done.send(hook)
        });
        let hook = is_done.recv_timeout(Duration::from_mins(1)).unwrap();
        // One may be with the command already.
        assert!(hook.left_out >= 2 * places - 1, "{}", hook.left_out);
        let (_keep, stop) = watch::channel(Stop::Now);
        assert_eq!(hook.finish(&stop).await, 3 * places);
    }

    #[test]
    fn a_line_is_told_as_far_as_it_is_not_too_long() {
        let long = |bytes: usize| "x".repeat(bytes);
        let cut = long(LONGEST_LINE) + "[…]";
        let table = [
            (String::new(), vec![]),
            ("one\n\ntwo".to_owned(), vec!["one".to_owned(), String::new(), "two".to_owned()]),
            (long(LONGEST_LINE), vec![long(LONGEST_LINE)]),
            (long(LONGEST_LINE) + "\nnext", vec![long(LONGEST_LINE), "next".to_owned()]),
            (long(LONGEST_LINE + 1) + "\nnext\n", vec![cut.clone(), "next".to_owned()]),
            (long(LONGEST_LINE + 1), vec![cut.clone()]),
            (long(1 << 20), vec![cut]),
        ];
        for (text, want) in table {
            let mut lines = text.as_bytes();
            let told: Vec<String> = std::iter::from_fn(|| next_line(&mut lines).unwrap()).collect();
            assert_eq!(told, want, "{text:.20}");
        }
    }

    #[test]
    fn how_a_command_ends_is_known() {
        let status = |text: &str| {
            let ended = run(text, b"line\n".to_vec(), Duration::from_mins(1), &AtomicBool::new(false));
            ended.unwrap().unwrap().code()
        };
        assert_eq!(status("read line && test \"$line\" = line"), Some(0));
        assert_eq!(status("exit 3"), Some(3));
        assert_eq!(status("/no/such/program 2> /dev/null"), Some(127));
    }
}
