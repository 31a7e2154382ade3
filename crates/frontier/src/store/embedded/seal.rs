//! What a clean stop leaves behind, so that the next start can tell whether anything was damaged.
//!
//! fjall ends a journal at the first row that it cannot read, because that is what a process that was killed
//! leaves. After a clean stop nothing is torn: what differs then was damaged, and must be told.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::disk::Disk;
use crate::error::{Error, Result};

/// Where it is kept.
pub(super) const FILE: &str = "clean";

/// What was there when the store was stopped in good order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Seal {
    /// The number of the next row of the log.
    next_row: u64,
    /// The journals, and hashes of what was written to them.
    journals: Vec<(String, u64)>,
}

/// Notes that everything is there, up to the row of the log before this one.
pub(super) fn put(disk: &Disk, next_row: u64) -> Result<()> {
    let failed = |cause: std::io::Error| disk.storage(cause.to_string());
    let mut journals = Vec::new();
    for file in fs::read_dir(disk.path()).map_err(failed)? {
        let path = file.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.extension().is_some_and(|extension| extension == "jnl")
            && let Some(hash) = hash(&path).map_err(failed)?
        {
            journals.push((name.to_owned(), hash));
        }
    }
    let text = serde_json::to_vec(&Seal { next_row, journals }).unwrap_or_default();
    let mut file = fs::File::create(disk.path().join(FILE)).map_err(failed)?;
    file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)
}

/// Refuses a store whose journals were changed since it was stopped in good order.
pub(super) fn read(path: &Path) -> Result<Option<Seal>> {
    let storage = |cause: std::io::Error| {
        let problem = format!("cannot be read: {cause}");
        Error::Storage { path: path.to_owned(), problem }
    };
    let text = match fs::read(path.join(FILE)) {
        Ok(text) => text,
        Err(cause) if matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(cause) => return Err(storage(cause)),
    };
    // What cannot be read was damaged itself, and says nothing of the rest.
    let Ok(seal) = serde_json::from_slice::<Seal>(&text) else { return Ok(None) };
    for (name, sealed) in &seal.journals {
        // One that is gone was not needed any more; if it was, rows are missing.
        let found = hash(&path.join(name)).map_err(storage)?;
        if found.is_some_and(|found| found != *sealed) {
            let problem = format!("its journal {name} was changed since it was stopped");
            return Err(Error::Damaged { path: path.to_owned(), problem });
        }
    }
    Ok(Some(seal))
}

impl Seal {
    /// Refuses a store from which rows are missing. From now on there will be more, so the seal goes.
    pub(super) fn break_open(self, disk: &Disk, next_row: u64) -> Result<()> {
        if let Some(missing) = self.next_row.checked_sub(next_row).filter(|missing| *missing > 0) {
            return Err(disk.damaged(format!("the last {missing} calls before it was stopped are missing")));
        }
        let removed = fs::remove_file(disk.path().join(FILE));
        removed.map_err(|cause| disk.storage(format!("cannot be written: {cause}")))
    }
}

/// A hash of what was written to a journal: the zeros that it is filled up with may come and go. None if it
/// is not there.
fn hash(path: &Path) -> std::io::Result<Option<u64>> {
    match fs::read(path) {
        Ok(bytes) => {
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            Ok(Some(xxh3_64(&bytes[..end])))
        }
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
    }
}
