//! A copy of the folder while it is in use.

use std::fs;
use std::path::{Path, PathBuf};

use fjall::{PersistMode, Readable as _, Snapshot};

use super::Options;
use super::disk::Disk;
use crate::error::{Error, Result};

/// Memory for blocks while copying: each is read once.
const CACHE_BYTES: u64 = 4 * 1024 * 1024;

/// Copies what `snapshot` sees of a store to a new folder. The folder has its name only when all is in it.
pub(super) fn copy(source: &Disk, snapshot: &Snapshot, target: &Path) -> Result<()> {
    let storage = |problem: String| Error::Storage { path: target.to_owned(), problem };
    if target.exists() {
        return Err(storage("is there already; choose a folder that is not".to_owned()));
    }
    let partial = beside(target).ok_or_else(|| storage("is not a name for a folder".to_owned()))?;
    let failed = |cause: std::io::Error| storage(unwritable(&cause.to_string()));
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(failed)?;
    }
    fs::create_dir_all(&partial).map_err(failed)?;
    let copied = fill(source, snapshot, &partial).map_err(|error| about_copy(error, &partial, target));
    let named = copied.and_then(|()| fs::rename(&partial, target).map_err(failed));
    if named.is_err() {
        // What cannot be removed is left for its owner to see.
        let _ = fs::remove_dir_all(&partial);
    }
    named
}

/// Where a copy grows before it is whole.
fn beside(target: &Path) -> Option<PathBuf> {
    let mut name = target.file_name()?.to_owned();
    name.push(".partial");
    Some(target.with_file_name(name))
}

fn unwritable(cause: &str) -> String {
    format!("cannot be written: {cause}; make room there, or choose another folder for the copy")
}

/// An error by the name that the copy is to have. What helps with the folder of a store does not help here.
fn about_copy(error: Error, partial: &Path, target: &Path) -> Error {
    match error {
        Error::Storage { path, problem } | Error::Damaged { path, problem } if path == partial => {
            let cause = problem.split(';').next().unwrap_or_default();
            Error::Storage { path: target.to_owned(), problem: unwritable(cause) }
        }
        other => other,
    }
}

fn fill(source: &Disk, snapshot: &Snapshot, folder: &Path) -> Result<()> {
    let copy = Disk::open(folder, Options { cache_bytes: CACHE_BYTES, ..Options::default() })?;
    let failed = |cause: fjall::Error| copy.storage(super::disk::plain(&cause));
    for (from, to) in source.keyspaces().into_iter().zip(copy.keyspaces()) {
        let mut rows = snapshot.iter(from).peekable();
        if rows.peek().is_none() {
            continue;
        }
        let mut writer = to.start_ingestion().map_err(failed)?;
        for row in rows {
            let (key, value) = row.into_inner().map_err(|cause| source.reading(&cause))?;
            writer.write(key, value).map_err(failed)?;
        }
        writer.finish().map_err(failed)?;
    }
    copy.db.persist(PersistMode::SyncAll).map_err(failed)
}
