//! Lines of `--out` that a process which was killed could not write any more.
//!
//! A page is committed to the queue before its line is written, and lines are written in the order of the log of fetches.
//! So what is in the log after the last line of the file has no line. The log does not have all that a line has: those
//! that are made up for here say so, and leave out the rest.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::Context as _;
use forager_frontier::verbs::FetchRow;
use forager_frontier::{Frontier, Moment};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::appended::LONGEST_LINE;

/// Rows that are read at a time.
const PAGE: usize = 10_000;
/// How many lines of fetches from the end are looked for in the log: the very last may be of one that the queue did not
/// take in, because its lease had run out.
const LINES: usize = 1000;

/// A line, as far as the log has it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MadeUp {
    at: Moment,
    url: String,
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    collection: String,
    wire_bytes: u64,
    took: u64,
    robots: String,
    /// What tells it from other lines.
    recovered: bool,
}

impl From<FetchRow> for MadeUp {
    fn from(row: FetchRow) -> Self {
        let status = row.result.parse().ok();
        Self {
            at: row.started,
            url: row.url.clone(),
            status,
            error: status.is_none().then_some(row.result),
            collection: row.collection,
            wire_bytes: row.bytes,
            took: row.ended.millisecond().saturating_sub(row.started.millisecond()),
            robots: row.robots,
            recovered: true,
        }
    }
}

/// What is read of a line.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    at: Timestamp,
    url: String,
    collection: String,
    /// Why it was not asked for: the log has no row of it.
    #[serde(default)]
    not_fetched: Option<serde::de::IgnoredAny>,
}

/// The last lines of a file that are about fetches of a job, oldest first.
fn last_lines(path: &Path, job: &str) -> anyhow::Result<VecDeque<(Moment, String)>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (mut reader, mut bytes, mut lines) = (BufReader::new(file), Vec::new(), VecDeque::new());
    loop {
        bytes.clear();
        let mut limited = std::io::Read::take(&mut reader, LONGEST_LINE as u64);
        if limited.read_until(b'\n', &mut bytes).with_context(|| format!("cannot read {}", path.display()))?
            == 0
        {
            return Ok(lines);
        }
        // What is no line of ours is none that could be missing.
        let Ok(line) = serde_json::from_slice::<Line>(&bytes) else { continue };
        if line.collection == job && line.not_fetched.is_none() {
            lines.push_back((Moment::of(line.at), line.url));
            if lines.len() > LINES {
                lines.pop_front();
            }
        }
    }
}

/// The lines that a file lacks of a job. Of a job that is over, only if the file has any of it: otherwise it is another
/// file than that job had.
pub(crate) async fn missing(
    path: &Path,
    frontier: &dyn Frontier,
    job: &str,
    is_over: bool,
) -> anyhow::Result<Vec<MadeUp>> {
    let lines = last_lines(path, job)?;
    if lines.is_empty() && is_over {
        return Ok(Vec::new());
    }
    let (mut from, mut rows, mut is_found) = (0, Vec::new(), lines.is_empty());
    loop {
        let page = frontier.fetches(from, PAGE).await?;
        let Some(last) = page.last() else { break };
        from = last.position + 1;
        // A request that was dropped has no line.
        for row in page.into_iter().filter(|row| row.collection == job && row.result != "stopped") {
            if lines.iter().any(|(at, url)| *at == row.started && *url == row.url) {
                (is_found, rows) = (true, Vec::new());
            } else if is_found {
                rows.push(row);
            }
        }
    }
    Ok(rows.into_iter().map(MadeUp::from).collect())
}
