//! What was measured.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;

pub(crate) const COLUMNS: &[&str] =
    &["what", "perSecond", "timesFloor", "p50", "p99", "max", "bytes", "bytesPerUrl", "seconds"];

/// One row of the report.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Figure {
    what: String,
    /// URLs a second.
    per_second: Option<u64>,
    /// That rate, as a multiple of the floor in the same run.
    times_floor: Option<f64>,
    /// Milliseconds a call.
    p50: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
    bytes: Option<u64>,
    bytes_per_url: Option<f64>,
    seconds: Option<f64>,
}

/// All rows.
#[derive(Default)]
pub(crate) struct Figures {
    rows: Vec<Figure>,
    floor: f64,
}

impl Figures {
    pub(crate) fn rows(&self) -> &[Figure] {
        &self.rows
    }

    /// The rate of the raw engine, which the others are measured by.
    pub(crate) fn floor(&mut self, what: &str, per_second: f64) {
        self.floor = per_second;
        let what = what.to_owned();
        self.rows.push(Figure { what, per_second: Some(whole(per_second)), ..Figure::default() });
    }

    /// From here on, rates have no floor to be measured by.
    pub(crate) fn without_floor(&mut self) {
        self.floor = 0.0;
    }

    /// A rate that is not one of calls.
    pub(crate) fn flow(&mut self, what: &str, per_second: f64) {
        let times_floor = (self.floor > 0.0).then(|| rounded(per_second / self.floor, 100.0));
        let what = what.to_owned();
        self.rows.push(Figure {
            what,
            per_second: Some(whole(per_second)),
            times_floor,
            ..Figure::default()
        });
    }

    /// A rate, and how long its calls took.
    pub(crate) fn rate(&mut self, what: &str, calls: &Calls) {
        let per_second = calls.per_second();
        let ratio = (self.floor > 0.0).then(|| rounded(per_second / self.floor, 100.0));
        let mut times = calls.times.clone();
        times.sort_unstable();
        self.rows.push(Figure {
            what: what.to_owned(),
            per_second: Some(whole(per_second)),
            times_floor: ratio,
            p50: Some(quantile(&times, 50)),
            p99: Some(quantile(&times, 99)),
            max: Some(quantile(&times, 100)),
            ..Figure::default()
        });
    }

    pub(crate) fn seconds(&mut self, what: &str, seconds: f64) {
        let seconds = Some(rounded(seconds, 100.0));
        self.rows.push(Figure { what: what.to_owned(), seconds, ..Figure::default() });
    }

    #[expect(clippy::cast_precision_loss, reason = "a mean for people")]
    pub(crate) fn size(&mut self, what: &str, bytes: u64, urls: u64) {
        let bytes_per_url = Some(rounded(bytes as f64 / urls.max(1) as f64, 10.0));
        self.rows.push(Figure {
            what: what.to_owned(),
            bytes: Some(bytes),
            bytes_per_url,
            ..Figure::default()
        });
    }
}

/// How long each call took, and how many URLs they were about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    times: Vec<Duration>,
    urls: u64,
    /// How long all of them took, where they were not made one after another.
    took: Option<Duration>,
}

impl Calls {
    pub(crate) fn add(&mut self, time: Duration, urls: usize) {
        self.times.push(time);
        self.urls += urls as u64;
    }

    /// Milliseconds that half of the calls did not exceed.
    pub(crate) fn median(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        quantile(&times, 50)
    }

    /// How many of a thousand calls took more than ten times as long as half of them.
    pub(crate) fn stalled(&self) -> usize {
        let mut times = self.times.clone();
        times.sort_unstable();
        let longest = times.get(times.len() / 2).copied().unwrap_or_default() * 10;
        times.iter().filter(|time| **time > longest).count() * 1000 / times.len().max(1)
    }

    /// The calls of several workers side by side, which took this long together.
    pub(crate) fn side_by_side(workers: Vec<Self>, took: Duration) -> Self {
        let mut all = Self { took: Some(took), ..Self::default() };
        for worker in workers {
            all.times.extend(worker.times);
            all.urls += worker.urls;
        }
        all
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub(crate) fn per_second(&self) -> f64 {
        let total: Duration = self.took.unwrap_or_else(|| self.times.iter().sum());
        self.urls as f64 / total.as_secs_f64().max(1e-9)
    }
}

/// Milliseconds that so many per cent of the calls did not exceed.
fn quantile(sorted: &[Duration], percent: usize) -> f64 {
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).map_or(0.0, |time| rounded(time.as_secs_f64() * 1000.0, 1000.0))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is not negative")]
fn whole(rate: f64) -> u64 {
    rate.round() as u64
}

pub(super) fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

/// The bytes of all files below a folder, as they are on disk.
pub(crate) fn folder_bytes(folder: &Path) -> anyhow::Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        // Blocks of 512 bytes: a file that was only reserved does not count.
        bytes += if metadata.is_dir() { folder_bytes(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(bytes)
}

/// The most memory that this process has had.
pub(crate) fn peak_memory() -> anyhow::Result<u64> {
    peak_memory_of("self")
}

/// The most memory that a process has had.
pub(crate) fn peak_memory_of(process: &str) -> anyhow::Result<u64> {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(path).context("cannot read the peak of memory")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes: u64 = line.and_then(|line| line.split_whitespace().next()).context("no VmHWM")?.parse()?;
    Ok(kibibytes * 1024)
}
