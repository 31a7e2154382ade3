//! The folder: a database of a few key spaces, and how its troubles are told.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fjall::config::{BlockSizePolicy, CompressionPolicy, FilterPolicy};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};

use super::codec::Unreadable;
use super::{Options, WriteBuffers};
use crate::error::{Error, Result};

const MIB: u64 = 1024 * 1024;
/// Old journals are what makes a folder larger than its data, and opening slow.
const MAX_JOURNALS: u64 = 128 * MIB;
/// What is read in no time at the next start.
const SMALL_JOURNAL: u64 = 4 * MIB;

/// fjall does not work with fewer.
const LEAST_OPEN_FILES: usize = 10;

/// The file that says that every key space has been made.
const MADE: &str = "made";

/// The key spaces.
#[derive(Clone)]
pub(super) struct Disk {
    path: PathBuf,
    pub(super) db: Database,
    /// Names to values: the format, the secret, the counters, the catalog, the tallies.
    pub(super) meta: Keyspace,
    /// Number of a host to its key and owner; written once.
    pub(super) hosts: Keyspace,
    /// Number of a queue to its collection and host; written once.
    pub(super) queues: Keyspace,
    /// Number of an entry to its text and those of others that came with it; written once.
    pub(super) urls: Keyspace,
    /// Number of a call to what it changed.
    pub(super) log: Keyspace,
    /// Number of a page to where its entries stand.
    pub(super) pages: Keyspace,
    /// Number of a page to the states of its hosts.
    pub(super) host_pages: Keyspace,
    /// Number of an entry to what was learned of it, if anything was.
    pub(super) records: Keyspace,
    /// Position to event.
    pub(super) events: Keyspace,
    /// Key to what was written down.
    pub(super) notes: Keyspace,
    /// Position to fetch.
    pub(super) fetches: Keyspace,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Disk").field(&self.path).finish()
    }
}

impl Disk {
    /// Opens the folder, or makes it.
    pub(super) fn open(path: &Path, options: Options) -> Result<Self> {
        prepare(path)?;
        let failed = |cause| opening(path, &cause);
        let db = Database::builder(path)
            .cache_size(options.cache_bytes)
            .max_journaling_size(MAX_JOURNALS)
            .max_cached_files(Some(options.open_files.max(LEAST_OPEN_FILES)))
            // It would be undone, and done again for a checksum, at every start.
            .journal_compression(CompressionType::None)
            // With a single one fjall can wait for itself for ever, and with two the first spins while the other compacts.
            .worker_threads(std::thread::available_parallelism().map_or(3, |cores| cores.get().clamp(3, 4)))
            .open()
            .map_err(failed)?;
        // What is written is held in memory until there are so many MiB of it, and once more while these are written
        // out: larger tables would make less work, and weigh more than all that schedules a million queues.
        let size = |mib: u64| match options.write_buffers {
            WriteBuffers::Large => mib * MIB,
            WriteBuffers::Small => mib * MIB / 4,
        };
        let open = |name, mib| db.keyspace(name, || scanned(size(mib))).map_err(failed);
        let open_looked_up = |name, mib| db.keyspace(name, || looked_up(size(mib))).map_err(failed);
        let disk = Self {
            path: path.to_owned(),
            meta: open("meta", 4)?,
            hosts: open("hosts", 8)?,
            queues: open("queues", 8)?,
            urls: open_looked_up("urls", 16)?,
            log: open("log", 8)?,
            pages: open("pages", 8)?,
            host_pages: open("host pages", 8)?,
            // Whoever frees a memtable of many small rows has to wait: let there be fewer of them.
            records: open_looked_up("records", 8)?,
            events: open("events", 4)?,
            notes: open_looked_up("notes", 4)?,
            fetches: open("fetches", 4)?,
            db,
        };
        fs::write(path.join(MADE), []).map_err(|cause| disk.storage(advice(&cause)))?;
        Ok(disk)
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// All key spaces by name.
    pub(super) fn keyspaces(&self) -> [&Keyspace; 11] {
        let Self {
            meta, hosts, queues, urls, log, pages, host_pages, records, events, notes, fetches, ..
        } = self;
        [meta, hosts, queues, urls, log, pages, host_pages, records, events, notes, fetches]
    }

    /// The keys of the notes that begin with `prefix`.
    pub(super) fn note_keys(&self, prefix: &str) -> Result<Vec<String>> {
        let keys = self.notes.prefix(prefix).map(|row| {
            let key = row.key().map_err(|cause| self.reading(&cause))?;
            String::from_utf8(key.to_vec())
                .map_err(|cause| self.damaged(format!("the key of a note: {cause}")))
        });
        keys.collect()
    }

    /// Writes a batch, all of it or nothing. It survives the end of this process.
    pub(super) fn commit(&self, batch: OwnedWriteBatch) -> Result<(), String> {
        batch.commit().map_err(|cause| self.cause(&cause))
    }

    /// Forces everything that was committed to the medium.
    ///
    /// The journal is synced by a handle of our own: fjall's `persist` would hold back all commits
    /// meanwhile. A journal is synced by fjall before the next one is begun, so the last is enough.
    pub(super) fn sync(&self) -> Result<(), String> {
        match journals(&self.path).ok().and_then(|mut journals| journals.pop()) {
            Some((_, journal)) => {
                let synced = fs::File::open(journal).and_then(|file| file.sync_data());
                synced.map_err(|cause| cause.to_string())
            }
            None => self.db.persist(PersistMode::SyncData).map_err(|cause| self.cause(&cause)),
        }
    }

    /// Writes out what is only in the journal, if that is much, so that the next start need not read it.
    /// Says whether the journal is at rest; if it is not after a while, so be it.
    pub(super) fn settle(&self) -> bool {
        if self.db.write_buffer_size() >= SMALL_JOURNAL {
            for keyspace in self.keyspaces() {
                if keyspace.rotate_memtable().is_err() {
                    return false;
                }
            }
        }
        let patience = Instant::now() + Duration::from_secs(10);
        let is_busy = || self.keyspaces().iter().any(|keyspace| keyspace.sealed_memtable_count() > 0);
        while is_busy() && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(5));
        }
        !is_busy()
    }

    /// Why fjall refuses to write. If it only says that something failed earlier, trying tells what.
    fn cause(&self, cause: &fjall::Error) -> String {
        if !matches!(cause, fjall::Error::Poisoned) {
            return plain(cause);
        }
        let probe = self.path.join("probe");
        let tried = fs::write(&probe, vec![1; 256 * 1024]).and_then(|()| fs::File::open(&probe)?.sync_all());
        // Best effort: the next probe writes over it.
        let _ = fs::remove_file(&probe);
        match tried {
            Err(cause) => cause.to_string(),
            Ok(()) => "writing failed in the background, see the log".to_owned(),
        }
    }

    /// What to say when reading fails.
    pub(super) fn reading(&self, cause: &fjall::Error) -> Error {
        match io_cause(cause) {
            Some(cause) => self.storage(format!("cannot be read: {cause}")),
            None => self.damaged(plain(cause)),
        }
    }

    /// What to say when a row makes no sense.
    pub(super) fn unreadable(&self, what: impl std::fmt::Display) -> impl FnOnce(Unreadable) -> Error {
        let error = self.damaged(format!("{what} cannot be read"));
        move |Unreadable| error
    }

    /// The error that the folder is damaged.
    pub(super) fn damaged(&self, problem: String) -> Error {
        Error::Damaged { path: self.path.clone(), problem }
    }

    /// The error that the folder cannot be used.
    pub(super) fn storage(&self, problem: String) -> Error {
        Error::Storage { path: self.path.clone(), problem }
    }
}

/// The journals of a folder, by number: the last is the one in use.
pub(super) fn journals(folder: &Path) -> std::io::Result<Vec<(u64, PathBuf)>> {
    let mut journals = Vec::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let is_journal = path.extension().is_some_and(|extension| extension == "jnl");
        let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        journals.extend(number.filter(|_| is_journal).map(|number| (number, path)));
    }
    journals.sort_unstable();
    Ok(journals)
}

fn options(memtable_bytes: u64, block_kib: u32) -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(memtable_bytes)
        .data_block_size_policy(BlockSizePolicy::all(block_kib * 1024))
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
}

/// For rows that are asked for one by one: each lies in a small block, and none is asked for in vain.
fn looked_up(memtable_bytes: u64) -> KeyspaceCreateOptions {
    options(memtable_bytes, 4).expect_point_read_hits(true)
}

/// For rows that are only ever read all together: these need no filters.
fn scanned(memtable_bytes: u64) -> KeyspaceCreateOptions {
    options(memtable_bytes, 16).filter_policy(FilterPolicy::disabled())
}

/// Refuses what is not a folder of ours, and clears away one that was never finished.
fn prepare(path: &Path) -> Result<()> {
    let storage = |problem: String| Error::Storage { path: path.to_owned(), problem };
    let unfit = |problem: String| Error::Unfit { place: path.display().to_string(), problem };
    match fs::metadata(path) {
        Ok(found) if !found.is_dir() => {
            return Err(unfit("is a file, not a folder; choose a folder with --data".to_owned()));
        }
        Ok(_) => {}
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            // fjall would make it too, and take a failure for a file that is missing.
            let made = fs::create_dir_all(path);
            return made.map_err(|cause| storage(format!("cannot be made: {}", advice(&cause))));
        }
        Err(cause) => return Err(storage(advice(&cause))),
    }
    if path.join("version").exists() {
        return if path.join(MADE).exists() { check_keyspaces(path) } else { Ok(()) };
    }
    let names: std::io::Result<Vec<_>> =
        fs::read_dir(path).and_then(|files| files.map(|file| file.map(|file| file.file_name())).collect());
    let names = names.map_err(|cause| storage(advice(&cause)))?;
    let of_fjall = ["lock", "keyspaces", "0.jnl", "clean", MADE];
    if let Some(other) = names.iter().find(|name| of_fjall.iter().all(|known| name != known)) {
        let problem = format!("is not empty, and holds {} rather than a queue", other.display());
        return Err(unfit(format!("{problem}; choose another folder with --data")));
    }
    // The marker is written last: without it nothing was ever stored here, unless it was lost.
    let journal = path.join("0.jnl");
    if !journal.exists() {
        return Ok(());
    }
    let written = fs::read(&journal).map_err(|cause| storage(advice(&cause)))?;
    if written.iter().any(|byte| *byte != 0) {
        let problem = "its file \"version\" is missing".to_owned();
        return Err(Error::Damaged { path: path.to_owned(), problem });
    }
    fs::remove_file(journal).map_err(|cause| storage(advice(&cause)))
}

/// Refuses a folder in which a key space has lost the file that it begins with: fjall would take it for one that
/// was never finished, and clear it away.
fn check_keyspaces(path: &Path) -> Result<()> {
    let folders = fs::read_dir(path.join("keyspaces")).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let folders =
        folders.map_err(|cause| Error::Storage { path: path.to_owned(), problem: advice(&cause) })?;
    for folder in folders.into_iter().map(|folder| folder.path()) {
        if !folder.join("current").exists() {
            let problem = format!("the file \"current\" is missing in {}", folder.display());
            return Err(Error::Damaged { path: path.to_owned(), problem });
        }
    }
    Ok(())
}

/// What to say when the folder cannot be opened.
fn opening(path: &Path, cause: &fjall::Error) -> Error {
    let path = path.to_owned();
    match (cause, io_cause(cause)) {
        (fjall::Error::Locked, _) => Error::Locked { path },
        (_, Some(io)) if io.kind() == ErrorKind::NotFound => {
            Error::Damaged { path, problem: "a file is missing".to_owned() }
        }
        (_, Some(io)) => Error::Storage { path, problem: advice(io) },
        _ => Error::Damaged { path, problem: plain(cause) },
    }
}

fn io_cause(cause: &fjall::Error) -> Option<&std::io::Error> {
    match cause {
        fjall::Error::Io(io) | fjall::Error::Storage(fjall::LsmError::Io(io)) => Some(io),
        _ => None,
    }
}

/// What went wrong with a file, and what to do.
pub(super) fn advice(cause: &std::io::Error) -> String {
    let remedy = match cause.kind() {
        ErrorKind::PermissionDenied => "allow writing to it, or choose another folder with --data",
        ErrorKind::ReadOnlyFilesystem => "choose a folder that can be written with --data",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "make room, or choose another folder with --data"
        }
        _ => "mend that, or choose another folder with --data",
    };
    format!("{cause}; {remedy}")
}

/// An error of fjall in plain words; its own are those of a debugger.
pub(super) fn plain(cause: &fjall::Error) -> String {
    use fjall::LsmError;
    let text = match cause {
        fjall::Error::Io(io) | fjall::Error::Storage(LsmError::Io(io)) => return io.to_string(),
        fjall::Error::Storage(LsmError::ChecksumMismatch { .. }) => "a checksum is wrong",
        fjall::Error::JournalRecovery(_) => "the journal is damaged",
        fjall::Error::InvalidVersion(_) | fjall::Error::Storage(LsmError::InvalidVersion(_)) => {
            "its files are of another version of the storage engine"
        }
        fjall::Error::Decompress(_) | fjall::Error::Storage(LsmError::Decompress(_)) => {
            "a block cannot be decompressed"
        }
        fjall::Error::Locked => "it is locked",
        fjall::Error::Poisoned => "an earlier write failed",
        fjall::Error::Unrecoverable | fjall::Error::Storage(LsmError::Unrecoverable) => {
            "a file is missing or damaged"
        }
        _ => "a file is damaged",
    };
    text.to_owned()
}
