//! What a clean stop leaves behind, so that the next start can tell whether anything is missing.
//!
//! fjall ends a journal at the first row that it cannot read, because that is what a process that was killed
//! leaves. After a clean stop nothing is torn: rows that are missing then were damaged, and must be told.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;

use super::disk::Disk;
use crate::error::Result;

fn file(disk: &Disk) -> PathBuf {
    disk.path().join("clean")
}

/// Notes that everything up to the row of the log before this one is there.
pub(super) fn put(disk: &Disk, next_row: u64) -> Result<()> {
    let mut written = fs::File::create(file(disk));
    if let Ok(file) = &mut written {
        let done = file.write_all(next_row.to_string().as_bytes()).and_then(|()| file.sync_all());
        return done.map_err(|cause| disk.storage(cause.to_string()));
    }
    written.map(drop).map_err(|cause| disk.storage(cause.to_string()))
}

/// Refuses a store from which rows are missing since it was stopped in good order. What is noted goes,
/// for from now on there is more.
pub(super) fn take(disk: &Disk, next_row: u64) -> Result<()> {
    let noted = match fs::read_to_string(file(disk)) {
        Ok(noted) => noted,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(disk.storage(format!("cannot be read: {cause}"))),
    };
    // What cannot be read was damaged itself, and says nothing of the rest.
    let expected: u64 = noted.parse().unwrap_or(next_row);
    if next_row < expected {
        let missing = expected - next_row;
        return Err(disk.damaged(format!("the last {missing} calls before it was stopped are missing")));
    }
    fs::remove_file(file(disk)).map_err(|cause| disk.storage(format!("cannot be written: {cause}")))
}
