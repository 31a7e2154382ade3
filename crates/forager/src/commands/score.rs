//! `forager score`

use forager_core::score::{Level, Reason, Scored, UrlSignals, next_change, score};
use jiff::Timestamp;
use serde::Serialize;

use crate::Outcome;
use crate::cli::ScoreArgs;
use crate::input::Input;
use crate::output::Output;
use crate::record::{for_each, parse};

/// The fields of a row, which `rank` prints too.
pub(super) const COLUMNS: &[&str] = &["score", "level", "url", "reasons", "nextChange"];

/// What is printed for a scored URL.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row<'a> {
    url: &'a str,
    score: u8,
    level: Level,
    reasons: Vec<Reason>,
    next_change: Option<Timestamp>,
}

impl<'a> Row<'a> {
    pub(super) fn new(url: &'a str, scored: &Scored, next_change: Option<Timestamp>) -> Self {
        let reasons = scored.reasons().collect();
        Self { url, score: scored.score, level: scored.level(), reasons, next_change }
    }
}

pub(super) fn run(args: &ScoreArgs) -> anyhow::Result<Outcome> {
    let now = args.now.get();
    let mut output = Output::new(args.common.format, COLUMNS);
    for_each(Input::open(&args.common.files)?, &mut output, |line, output| {
        let signals: UrlSignals = parse(line)?;
        let row = Row::new(&signals.url, &score(&signals, now), next_change(&signals, now));
        Ok(output.row(&row)?)
    })
}
