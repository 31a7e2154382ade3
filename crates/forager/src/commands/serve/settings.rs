//! Settings as URLFrontier has them: a `key=value` each, in a file and on the command line.

use std::path::Path;

use anyhow::Context as _;
use forager_server::limits::{BATCHES_IN_FLIGHT, ITEMS_IN_FLIGHT, MOST_IN_FLIGHT};

/// The settings that mean something here, and the names of the others.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) items_in_flight: usize,
    pub(super) batches_in_flight: usize,
    /// The keys of the others, so that whoever relies on one learns that it has no effect.
    pub(super) others: Vec<String>,
}

impl Settings {
    /// Those of a file, and those of the command line, which count more.
    pub(super) fn read(file: Option<&Path>, given: &[String]) -> anyhow::Result<Self> {
        let text = match file {
            Some(path) => {
                std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?
            }
            None => String::new(),
        };
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut settings = Self {
            items_in_flight: ITEMS_IN_FLIGHT,
            batches_in_flight: BATCHES_IN_FLIGHT,
            others: Vec::new(),
        };
        for setting in lines.chain(given.iter().map(String::as_str)) {
            settings.set(setting)?;
        }
        Ok(settings)
    }

    /// Takes over one. A key without a value is a switch.
    fn set(&mut self, setting: &str) -> anyhow::Result<()> {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        match key.trim() {
            "putURLs.max.inflight" => self.items_in_flight = in_flight(key, value)?,
            "putDiscovered.max.inflight" => self.batches_in_flight = in_flight(key, value)?,
            other if self.others.iter().any(|known| known == other) => {}
            other => self.others.push(other.to_owned()),
        }
        Ok(())
    }
}

/// How many may be under way. None and less stand for as many as can be.
fn in_flight(key: &str, value: &str) -> anyhow::Result<usize> {
    let number: i64 = value.trim().parse().with_context(|| format!("{key}: {value:?} is no number"))?;
    Ok(match usize::try_from(number) {
        Ok(0) | Err(_) => MOST_IN_FLIGHT,
        Ok(number) => number.min(MOST_IN_FLIGHT),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items and batches that may be in flight, and the keys of the others.
    type Read<'a> = (usize, usize, &'a [&'a str]);

    #[test]
    fn the_command_line_counts_more_than_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.ini");
        std::fs::write(&path, "# of ours\nrocksdb.path=/data\n\nputURLs.max.inflight = 7\n").unwrap();
        let cases: [(&str, &[&str], Read<'_>); 4] = [
            ("the file alone", &[], (7, BATCHES_IN_FLIGHT, &["rocksdb.path"])),
            ("overridden", &["putURLs.max.inflight=9"], (9, BATCHES_IN_FLIGHT, &["rocksdb.path"])),
            ("no limit", &["putURLs.max.inflight=0"], (MOST_IN_FLIGHT, BATCHES_IN_FLIGHT, &["rocksdb.path"])),
            (
                "a bare key",
                &["rocksdb.purge", "putDiscovered.max.inflight=2"],
                (7, 2, &["rocksdb.path", "rocksdb.purge"]),
            ),
        ];
        for (name, given, (items, batches, others)) in cases {
            let given: Vec<String> = given.iter().map(|&text| text.to_owned()).collect();
            let settings = Settings::read(Some(&path), &given).unwrap();
            let others = others.iter().map(|&text| text.to_owned()).collect();
            let want = Settings { items_in_flight: items, batches_in_flight: batches, others };
            assert_eq!(settings, want, "{name}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let error = Settings::read(None, &["putURLs.max.inflight=many".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "putURLs.max.inflight: \"many\" is no number");
    }
}
