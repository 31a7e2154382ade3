//! What a clean stop leaves behind, so that the next start can tell whether anything is missing.
//!
//! fjall ends a journal at the first row that it cannot read, because that is what a process that was killed
//! leaves; and it does not notice when a bit flips in the number by which rows are ordered. After a clean stop
//! nothing is torn: a journal that is not what it was then was damaged, and that must be told.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::disk::{Disk, advice, journals};
use crate::error::{Error, Result};

/// A journal is made with room at its end. So much of nothing is where it ends.
const NOTHING: usize = 256 * 1024;

/// How everything was at a clean stop.
#[derive(Debug, Serialize, Deserialize)]
struct Seal {
    /// The number of the next row of the log.
    next_row: u64,
    journals: Vec<Written>,
}

/// What a journal holds. It may hold more later.
#[derive(Debug, Serialize, Deserialize)]
struct Written {
    name: String,
    bytes: u64,
    hash: u64,
}

fn file(folder: &Path) -> PathBuf {
    folder.join("clean")
}

/// Notes how everything is, now that nothing more is written.
pub(super) fn put(disk: &Disk, next_row: u64) -> Result<()> {
    let seal = || -> std::io::Result<()> {
        let mut journals_now = Vec::new();
        for (_, path) in journals(disk.path())? {
            journals_now.extend(written(&path)?);
        }
        let text = serde_json::to_vec(&Seal { next_row, journals: journals_now })?;
        let mut file = File::create(file(disk.path()))?;
        file.write_all(&text)?;
        file.sync_all()
    };
    seal().map_err(|cause| disk.storage(advice(&cause)))
}

/// What was noted at the last stop; none if that was not a clean one. To be asked before the folder is opened, which
/// changes the journals.
pub(super) fn read(folder: &Path) -> Result<Option<Found>> {
    // While another process has the folder open, opening it says so.
    let is_free = File::open(folder.join("lock")).is_ok_and(|lock| lock.try_lock().is_ok());
    if !is_free {
        return Ok(None);
    }
    let storage = |cause: std::io::Error| Error::Storage { path: folder.to_owned(), problem: advice(&cause) };
    let text = match fs::read(file(folder)) {
        Ok(text) => text,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(storage(cause)),
    };
    // What cannot be read was damaged itself, and says nothing of the rest.
    let Ok(seal) = serde_json::from_slice::<Seal>(&text) else { return Ok(None) };
    let mut is_intact = true;
    for journal in &seal.journals {
        is_intact &= journal.is_still_in(folder).map_err(storage)?;
    }
    Ok(Some(Found { next_row: seal.next_row, is_intact }))
}

/// What the seal of the last stop says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    next_row: u64,
    /// Whether the journals are what they were.
    is_intact: bool,
}

impl Found {
    /// Refuses a store that is not what it was.
    pub(super) fn check(self, disk: &Disk, next_row: u64) -> Result<()> {
        match self.next_row.saturating_sub(next_row) {
            0 if self.is_intact => Ok(()),
            0 => Err(disk.damaged("its journal is not what it was when it was stopped".to_owned())),
            1 => Err(disk.damaged("the last call before it was stopped is missing".to_owned())),
            missing => {
                Err(disk.damaged(format!("the last {missing} calls before it was stopped are missing")))
            }
        }
    }
}

/// Takes the seal away, for from now on there is more.
pub(super) fn break_open(disk: &Disk) -> Result<()> {
    match fs::remove_file(file(disk.path())) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => Err(disk.storage(advice(&cause))),
        _ => Ok(()),
    }
}

impl Written {
    /// Whether a journal still begins with what it held. One that is gone was not needed any more, or the
    /// rows that are missing tell of it.
    fn is_still_in(&self, folder: &Path) -> std::io::Result<bool> {
        match File::open(folder.join(&self.name)) {
            Ok(file) => Ok(hash(file.take(self.bytes))? == (self.bytes, self.hash)),
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(true),
            Err(cause) => Err(cause),
        }
    }
}

/// What a journal holds now; none if it is gone since it was listed, for it is not needed any more.
fn written(path: &Path) -> std::io::Result<Option<Written>> {
    let (file, again) = match (File::open(path), File::open(path)) {
        (Ok(file), Ok(again)) => (file, again),
        (Err(cause), _) | (_, Err(cause)) if cause.kind() == ErrorKind::NotFound => return Ok(None),
        (Err(cause), _) | (_, Err(cause)) => return Err(cause),
    };
    let bytes = end(file)?;
    let (bytes, hash) = hash(again.take(bytes))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Some(Written { name, bytes, hash }))
}

/// Where a journal ends: after the last byte before nothing but zeros.
fn end(mut file: File) -> std::io::Result<u64> {
    let (mut end, mut read) = (0, 0);
    let mut block = Vec::with_capacity(NOTHING);
    loop {
        block.clear();
        (&mut file).take(NOTHING as u64).read_to_end(&mut block)?;
        let Some(last) = block.iter().rposition(|byte| *byte != 0) else { return Ok(end) };
        end = read + last as u64 + 1;
        read += block.len() as u64;
    }
}

/// How many bytes there are, and their hash.
fn hash(mut bytes: impl Read) -> std::io::Result<(u64, u64)> {
    let (mut hasher, mut count) = (Xxh3::new(), 0);
    let mut block = vec![0; NOTHING];
    loop {
        let len = bytes.read(&mut block)?;
        if len == 0 {
            return Ok((count, hasher.digest()));
        }
        hasher.update(&block[..len]);
        count += len as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The database removes journals that it does not need any more whenever it likes, also while it is stopped.
    #[test]
    fn a_journal_that_is_gone_meanwhile_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.jnl");
        fs::write(&path, b"rows").unwrap();
        assert_eq!(
            written(&path).unwrap().map(|written| (written.name, written.bytes)),
            Some(("1.jnl".into(), 4))
        );
        fs::remove_file(&path).unwrap();
        assert!(written(&path).unwrap().is_none());
    }
}
