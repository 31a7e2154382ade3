//! What stops a crawl: people, a configuration to be read again, and a reader who has gone away.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use forager_crawl::Stop;
use tokio::io::Interest;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::exit::Left;
use crate::runtime;

/// What people ask of a process while it works.
#[derive(Clone)]
pub(crate) struct Signals {
    /// Whether to stop.
    pub(crate) stop: watch::Receiver<Stop>,
    /// Whether to read the configuration again.
    pub(crate) reload: watch::Receiver<bool>,
    /// Whether whoever read standard output has gone away.
    pub(crate) deserted: watch::Receiver<bool>,
}

/// What else stops a crawl, besides those who say so.
#[derive(Clone, Copy, Default)]
pub(crate) struct StopsAt {
    /// The wish to read the configuration again.
    pub(crate) reload: bool,
    /// That nobody reads standard output any more, where that is what the crawl is for.
    pub(crate) deserted: bool,
}

impl Signals {
    /// All that stops a crawl, as one.
    pub(crate) fn merged(&self, at: StopsAt) -> watch::Receiver<Stop> {
        let Self { mut stop, mut reload, mut deserted } = self.clone();
        let (sender, merged) = watch::channel(*stop.borrow());
        tokio::spawn(async move {
            loop {
                let (changed, asked) = tokio::select! {
                    changed = stop.changed() => (changed, *stop.borrow_and_update()),
                    changed = reload.changed(), if at.reload => (changed, Stop::Drain),
                    changed = deserted.changed(), if at.deserted => (changed, Stop::Drain),
                };
                if changed.is_err() || sender.is_closed() {
                    return;
                }
                // Whoever wants it to stop at once has the last word.
                if *sender.borrow() != Stop::Now {
                    sender.send_replace(asked);
                }
            }
        });
        merged
    }
}

/// Signals that come as soon after the first are of the same wish: `timeout` sends one to its child, and at once another
/// to the group that the child is in.
const TOGETHER: Duration = Duration::from_millis(300);

/// How often people asked to stop.
#[derive(Default)]
struct Wishes {
    /// When they did first.
    first: Option<Instant>,
}

impl Wishes {
    /// What a signal asks for that comes now, if it is another wish.
    fn asked(&mut self, now: Instant) -> Option<Stop> {
        let Some(first) = self.first else {
            self.first = Some(now);
            return Some(Stop::Drain);
        };
        (now.duration_since(first) >= TOGETHER).then_some(Stop::Now)
    }
}

/// Waits until whoever read standard output has gone away. Where that is no pipe, nobody knows.
async fn reader_gone() -> io::Result<()> {
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if !output.metadata()?.file_type().is_fifo() {
        return std::future::pending().await;
    }
    // The end that is written to has an error when the other one is closed. Nothing is written here, so that it may stay as it is:
    // whoever shares it does not expect a pipe that is never waited for.
    pipe::Sender::from_file_unchecked(output)?.ready(Interest::ERROR).await.map(|_| ())
}

/// Listens for signals, beside all else: people may want a process to end most when nothing else goes on.
fn listen(
    on_stop: fn(Stop),
    sender: watch::Sender<Stop>,
    again: watch::Sender<bool>,
) -> anyhow::Result<JoinHandle<()>> {
    let aside = runtime::aside()?;
    let _here = aside.enter();
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut hang_up = signal(SignalKind::hangup()).context("cannot wait for SIGHUP")?;
    Ok(aside.spawn(async move {
        let mut wishes = Wishes::default();
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {
                    if again.send(true).is_err() {
                        return;
                    }
                    continue;
                }
            }
            let Some(asked) = wishes.asked(Instant::now()) else { continue };
            on_stop(asked);
            if sender.send(asked).is_err() || asked == Stop::Now {
                return;
            }
        }
    }))
}

/// How long whoever is to stop at once may take. A queue that does not answer keeps nobody for longer.
const GRACE: Duration = Duration::from_secs(5);

/// Runs `work`, which is told when to stop: on Ctrl-C or SIGTERM by and by, on a second one at once, unless it comes
/// together with the first. `on_stop` is told of it first. What does not stop at once when it should is left.
pub(crate) fn with_signals<T>(
    on_stop: fn(Stop),
    work: impl AsyncFnOnce(Signals) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    runtime::wait(async {
        let (sender, stop) = watch::channel(Stop::No);
        runtime::listen_for_stop(stop.clone());
        let (again, reload) = watch::channel(false);
        let listening = listen(on_stop, sender, again)?;
        let (leave, deserted) = watch::channel(false);
        let reading = tokio::spawn(async move {
            // Who cannot be watched is noticed when something is written.
            if reader_gone().await.is_ok() {
                leave.send_replace(true);
            }
            // Whoever waits for it would take its end for the end of all.
            std::future::pending::<()>().await;
            drop(leave);
        });
        let forced = Stop::overdue(stop.clone(), GRACE);
        let done = tokio::select! {
            done = work(Signals { stop, reload, deserted }) => done,
            () = forced => Err(Left.into()),
        };
        listening.abort();
        reading.abort();
        done
    })?
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use rustix::process::{Signal, getpid, kill_process};
    use tokio::runtime::Handle;

    use super::*;

    #[test]
    fn signals_that_come_together_are_one_wish() {
        let start = Instant::now();
        let table: [(&str, &[u64], Option<Stop>); 5] = [
            ("the first", &[0], Some(Stop::Drain)),
            ("one at the same moment", &[0, 0], None),
            ("one just after it", &[0, 299], None),
            ("another wish", &[0, 300], Some(Stop::Now)),
            ("another wish after one that came together", &[0, 5, 400], Some(Stop::Now)),
        ];
        for (name, times, want) in table {
            let mut wishes = Wishes::default();
            let asked = times.iter().map(|at| wishes.asked(start + Duration::from_millis(*at)));
            assert_eq!(asked.last().flatten(), want, "{name}");
        }
    }

    #[test]
    fn signals_are_heard_though_every_thread_that_works_is_held() {
        let (count, is_heard) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let told = with_signals(
            |_| {},
            async |mut signals| {
                let workers = Handle::current().metrics().num_workers();
                let hold = |_| {
                    let (count, is_heard) = (count.clone(), is_heard.clone());
                    tokio::spawn(async move {
                        count.fetch_add(1, Ordering::SeqCst);
                        let begun = Instant::now();
                        while !is_heard.load(Ordering::SeqCst) && begun.elapsed() < Duration::from_secs(30) {
                            std::thread::sleep(Duration::from_millis(5));
                        }
                        is_heard.load(Ordering::SeqCst)
                    })
                };
                let holders: Vec<_> = (0..workers).map(hold).collect();
                while count.load(Ordering::SeqCst) < workers {
                    std::thread::sleep(Duration::from_millis(5)); // this thread is none of them
                }
                kill_process(getpid(), Signal::HUP)?;
                signals.reload.changed().await?;
                is_heard.store(true, Ordering::SeqCst);
                let mut were_held = true;
                for holder in holders {
                    were_held &= holder.await?;
                }
                Ok(were_held)
            },
        );
        assert!(told.unwrap());
    }
}
