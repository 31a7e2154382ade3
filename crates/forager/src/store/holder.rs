//! Which process has a queue open, where the system tells.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// How much of a command line is shown.
const SHOWN: usize = 200;

/// The process that holds the lock of the queue in this folder: its number, and how it was started. Linux tells; others
/// do not.
pub(super) fn holder(folder: &Path) -> Option<String> {
    let inode = fs::metadata(folder.join("lock")).ok()?.ino();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let id = locks.lines().find_map(|line| holder_in(line, inode))?;
    let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    Some(described(id, &command))
}

/// The process of a line such as `1: FLOCK  ADVISORY  WRITE 2554 fe:00:10166514 0 EOF`, if it locks this file. Which
/// device the file is on is left out: file systems in layers do not tell the truth there.
fn holder_in(line: &str, inode: u64) -> Option<u32> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, _, id, file, ..] = fields[..] else { return None };
    let is_it = file.rsplit(':').next()?.parse() == Ok(inode);
    // Number 0 is a process that cannot be seen from here.
    id.parse().ok().filter(|id| is_it && *id > 0)
}

fn described(id: u32, command: &[u8]) -> String {
    let words: Vec<_> = command.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let text = words.join(" ");
    let text: String = text.trim().chars().take(SHOWN).collect();
    if text.is_empty() { format!("process {id}") } else { format!("process {id} ({text})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_lock_names_its_process() {
        let table = [
            ("1: FLOCK  ADVISORY  WRITE 2554 fe:00:10166514 0 EOF", Some(2554)),
            ("1: FLOCK  ADVISORY  WRITE 0 fe:00:10166514 0 EOF", None),
            ("1: FLOCK  ADVISORY  WRITE 2554 fe:00:10166515 0 EOF", None),
            ("1: -> FLOCK  ADVISORY  WRITE 7 fe:00:10166514 0 EOF", None),
            ("1: POSIX  ADVISORY  WRITE 7 fe:00:10166514 0 EOF", None),
            ("", None),
        ];
        for (line, want) in table {
            assert_eq!(holder_in(line, 10_166_514), want, "{line}");
        }
    }

    #[test]
    fn a_process_is_told_by_its_number_and_command() {
        assert_eq!(
            described(7, b"forager\0crawl\0http://a.test/\0"),
            "process 7 (forager crawl http://a.test/)"
        );
        assert_eq!(described(7, b""), "process 7");
    }
}
