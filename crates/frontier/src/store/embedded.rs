//! Everything in one folder: the default.
//!
//! Where entries stand is held in memory, 32 bytes and an index for each, so that finding a known URL and
//! choosing the next one ask no disk. The texts, and what was learned, lie in a database of key spaces.
//!
//! 1. A call runs on the memory ([`tx`], over [`inner`]), which notes what it changed ([`staged`]) and how
//!    to take that back ([`undo`]).
//! 2. When it ends, one atomic batch is written ([`write`](mod@write)): the texts of new entries ([`texts`]),
//!    the records that changed, and one row that says what else did ([`log`]).
//! 3. Pages of entries and hosts follow at leisure, so that old rows of the log can go ([`fold`]).
//! 4. A start reads the pages and then the log ([`recover`]), whether the last stop was clean or a crash.
//!
//! What is ready waits in its queue ([`queue`]), and queues wait for their turn in the [`rotation`].

mod backup;
mod blocks;
mod check;
mod check_notes;
mod clear;
mod codec;
mod disk;
mod fill;
mod fold;
mod fresh;
mod held;
mod hosts;
mod index;
mod inner;
mod leases;
mod log;
mod look;
mod places;
mod queue;
mod recover;
mod rotation;
mod seal;
mod slots;
mod staged;
mod steps;
#[cfg(test)]
mod tests;
mod texts;
mod tx;
mod undo;
mod write;

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

pub use self::check::{Checked, Finding};
use self::disk::Disk;
use self::inner::Inner;
use super::Store;
use crate::error::{Error, Result};
use crate::moment::Moment;
use crate::settings::Settings;

/// What a call that has returned survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, however sudden. A power cut may lose the last seconds; what is left
    /// is whole.
    #[default]
    Process,
    /// A power cut too. Calls that run at the same time share the wait for the medium.
    Fsync,
}

/// How much of what was written waits in memory to be written out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteBuffers {
    /// Enough that whoever takes in many thousand URLs a second is not held up.
    #[default]
    Large,
    /// A quarter of that.
    Small,
}

/// How a folder is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What a call that has returned survives.
    pub durability: Durability,
    /// Memory for blocks that were read, in bytes.
    pub cache_bytes: u64,
    /// Memory for what was written.
    pub write_buffers: WriteBuffers,
    /// How many files stay open once they were read, ten at least. Beside them it needs some dozen for what it writes.
    pub open_files: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            cache_bytes: 32 * 1024 * 1024,
            write_buffers: WriteBuffers::default(),
            open_files: 400,
        }
    }
}

impl Options {
    /// For a crawl, which waits for the web, and may run on a small machine for long: it takes little memory. What it reads it
    /// mostly reads once, so that a larger cache only makes it slower.
    pub fn for_crawl() -> Self {
        Self { cache_bytes: 2 * 1024 * 1024, write_buffers: WriteBuffers::Small, ..Self::default() }
    }
}

/// A frontier in one folder.
#[derive(Debug)]
pub struct Embedded {
    state: Mutex<Guarded>,
    bell: watch::Sender<u64>,
    durability: Durability,
    /// How many batches were committed.
    committed: AtomicU64,
    /// How many of them are known to be on the medium.
    synced: Mutex<u64>,
    disk: Disk,
}

#[derive(Debug)]
struct Guarded {
    inner: Inner,
    /// Why nothing more is accepted.
    stopped: Option<(String, Moment)>,
    /// Whether it was closed in good order.
    is_closed: bool,
}

impl Embedded {
    /// Opens the folder at `path`, or makes it.
    pub fn open(path: impl AsRef<Path>, settings: Settings, options: Options) -> Result<Self> {
        let load = || {
            let seal = seal::read(path.as_ref())?;
            let disk = Disk::open(path.as_ref(), options)?;
            let inner = recover::load(disk.clone(), Arc::new(settings), None)?;
            seal.map_or(Ok(()), |seal| seal.check(&disk, inner.fold.rows()))?;
            seal::break_open(&disk)?;
            Ok((disk, inner))
        };
        // fjall panics at some of the damage that it finds; nothing of what it held is used after that.
        let (disk, inner) = std::panic::catch_unwind(AssertUnwindSafe(load)).unwrap_or_else(|_| {
            let problem = "a file is damaged, so that it cannot be read".to_owned();
            Err(Error::Damaged { path: path.as_ref().to_owned(), problem })
        })?;
        Ok(Self {
            state: Mutex::new(Guarded { inner, stopped: None, is_closed: false }),
            bell: watch::Sender::new(0),
            durability: options.durability,
            committed: AtomicU64::new(0),
            synced: Mutex::new(0),
            disk,
        })
    }

    /// Ends in good order, so that the next start is quick, and can tell what is damaged. Dropping does the
    /// same, but cannot tell what went wrong.
    pub fn close(self) -> Result<()> {
        self.lock().ensure_usable()?;
        self.seal()
    }

    fn seal(&self) -> Result<()> {
        let mut guarded = self.lock();
        if std::mem::replace(&mut guarded.is_closed, true) {
            return Ok(());
        }
        let is_at_rest = self.disk.settle();
        self.disk.sync().map_err(|problem| self.disk.storage(problem))?;
        if is_at_rest { seal::put(&self.disk, guarded.inner.fold.rows()) } else { Ok(()) }
    }

    /// Looks for what is not as it should be, in memory and in the folder. Calls wait meanwhile.
    pub fn check(&self) -> Result<Vec<Finding>> {
        self.audit().map(|checked| checked.findings)
    }

    /// Like [`check`](Self::check), and tells what was looked at.
    pub fn audit(&self) -> Result<Checked> {
        let mut guarded = self.lock();
        guarded.begin(None)?;
        guarded.inner.check()
    }

    /// Copies all as it is now to a new folder, which can be opened like this one. Calls go on meanwhile.
    pub fn backup(&self, target: &Path) -> Result<()> {
        let is_inside = std::path::absolute(target).ok().zip(std::path::absolute(self.disk.path()).ok());
        if is_inside.is_some_and(|(target, own)| target.starts_with(own)) {
            let problem = format!("{} lies inside of what is to be copied", target.display());
            return Err(Error::Configuration(problem));
        }
        let snapshot = {
            let mut guarded = self.lock();
            guarded.begin(None)?;
            self.disk.db.snapshot()
        };
        backup::copy(&self.disk, &snapshot, target)
    }

    fn lock(&self) -> MutexGuard<'_, Guarded> {
        // A call that panicked is undone by the next one, from what it left staged.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a batch is on the medium. Whoever comes first syncs for all that wait with it.
    fn sync(&self, batch: u64) -> Result<()> {
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        if *synced >= batch {
            return Ok(());
        }
        let reached = self.committed.load(Ordering::Acquire);
        match self.disk.sync() {
            Ok(()) => {
                *synced = reached;
                Ok(())
            }
            Err(problem) => Err(self.lock().stop(problem)),
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if self.lock().stopped.is_none() {
            // What goes wrong here costs the next start a check, and nothing else.
            let _ = self.seal();
        }
    }
}

impl Guarded {
    fn ensure_usable(&self) -> Result<()> {
        let Some((problem, since)) = &self.stopped else { return Ok(()) };
        let path = self.inner.disk.path().to_owned();
        Err(Error::Stopped { path, problem: problem.clone(), since: *since })
    }

    /// Readies the store for a call. What is ready depends on the time, so that a clock which was set back
    /// has everything filed anew.
    fn begin(&mut self, now: Option<Moment>) -> Result<()> {
        self.ensure_usable()?;
        let latest = self.inner.counters.now;
        let now = now.map_or(latest, |now| latest.advanced(now));
        if now < latest || !self.inner.staged.is_empty() {
            self.reload(now)?;
        }
        let inner = &mut self.inner;
        inner.counters.now = now;
        inner.undo.begin(inner.counters);
        inner.staged.rings = false;
        Ok(())
    }

    /// Writes what the call changed; says whether that was anything.
    fn commit(&mut self) -> Result<bool> {
        if self.inner.staged.is_empty() {
            return Ok(false);
        }
        let batch = self.inner.batch();
        self.inner.disk.commit(batch).map_err(|problem| self.stop(problem))?;
        Ok(true)
    }

    /// Brings the memory back to what is on disk.
    fn undo(&mut self) -> Result<()> {
        if self.inner.undo() { Ok(()) } else { self.reload(self.inner.counters.now) }
    }

    /// Rebuilds the memory, as it is at a time.
    fn reload(&mut self, now: Moment) -> Result<()> {
        let (disk, settings) = (self.inner.disk.clone(), self.inner.settings.clone());
        match recover::load(disk, settings, Some(now)) {
            Ok(inner) => {
                self.inner = inner;
                Ok(())
            }
            Err(cause) => Err(self.stop(cause.to_string())),
        }
    }

    fn stop(&mut self, problem: String) -> Error {
        let since = self.inner.counters.now;
        self.stopped = Some((problem.clone(), since));
        Error::Stopped { path: self.inner.disk.path().to_owned(), problem, since }
    }
}

impl Store for Embedded {
    type Tx = Inner;

    async fn transact<R: Send>(
        &self,
        now: Option<Moment>,
        call: impl Fn(&mut Inner, Moment) -> Result<R> + Send + Sync,
    ) -> Result<R> {
        let mut guarded = self.lock();
        guarded.begin(now)?;
        let now = guarded.inner.counters.now;
        let result = match call(&mut guarded.inner, now) {
            Ok(result) => result,
            Err(error) => {
                guarded.undo()?;
                return Err(error);
            }
        };
        let rings = guarded.inner.staged.rings;
        let batch = guarded.commit()?.then(|| self.committed.fetch_add(1, Ordering::AcqRel) + 1);
        drop(guarded);
        if let Some(batch) = batch
            && self.durability == Durability::Fsync
        {
            self.sync(batch)?;
        }
        if rings {
            self.bell.send_modify(|count| *count += 1);
        }
        Ok(result)
    }

    fn bell(&self) -> watch::Receiver<u64> {
        self.bell.subscribe()
    }
}
