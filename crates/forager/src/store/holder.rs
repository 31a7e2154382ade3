//! Which process has a queue open, where the system tells.

use std::borrow::Cow;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::config::DatabaseUrl;

/// How much of a command line is shown.
const SHOWN: usize = 200;
/// The flag whose value nobody is shown.
const TOKEN: &str = "--token";
/// What is shown instead.
const HIDDEN: &str = "***";

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
    let words = command.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let text = without_secrets(words).join(" ");
    let text: String = text.trim().chars().take(SHOWN).collect();
    if text.is_empty() { format!("process {id}") } else { format!("process {id} ({text})") }
}

/// The words of a command line that anybody may see: neither a token nor the password of an address.
fn without_secrets<'a>(words: impl Iterator<Item = Cow<'a, str>>) -> Vec<String> {
    let mut is_secret = false;
    let shown = words.map(|word| {
        let was_secret = is_secret;
        is_secret = !was_secret && word == TOKEN;
        if was_secret { HIDDEN.to_owned() } else { without_secret(&word) }
    });
    shown.collect()
}

/// A word, with or without the flag that it is the value of.
fn without_secret(word: &str) -> String {
    match word.split_once('=') {
        Some((TOKEN, _)) => format!("{TOKEN}={HIDDEN}"),
        Some((flag, value)) if flag.starts_with('-') => format!("{flag}={}", without_password(value)),
        _ => without_password(word),
    }
}

/// An address without its password. Other words, and addresses that have none, stay as they are.
fn without_password(word: &str) -> String {
    if word.contains("://") { DatabaseUrl::from(word).to_string() } else { word.to_owned() }
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

    #[test]
    fn secrets_of_a_command_are_not_told() {
        let table = [
            ("serve\0--token\0secret\0--port\x007", "serve --token *** --port 7"),
            ("serve\0--token=secret\0--port=7", "serve --token=*** --port=7"),
            ("serve\0--token\0--token\0--port", "serve --token *** --port"),
            ("serve\0--token", "serve --token"),
            ("run\0--store\0postgres://u:secret@h/d", "run --store postgres://u:***@h/d"),
            ("run\0--store=postgres://u:secret@h/d?a=b", "run --store=postgres://u:***@h/d?a=b"),
            ("run\0--store=postgres://h/d?password=secret", "run --store=postgres://h/d?password=***"),
            ("crawl\0http://u:secret@a.test/b?c=d", "crawl http://u:***@a.test/b?c=d"),
            ("crawl\0http://a.test/b?c=d&e", "crawl http://a.test/b?c=d&e"),
        ];
        for (command, want) in table {
            assert_eq!(described(7, command.as_bytes()), format!("process 7 ({want})"), "{command:?}");
        }
    }
}
