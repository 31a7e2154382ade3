//! `forager hierarchy`

use forager_core::hierarchy::{Pages, Priority, Sighting};
use serde::Serialize;

use crate::Outcome;
use crate::cli::HierarchyArgs;
use crate::input::Input;
use crate::output::Output;
use crate::record::{BadLine, for_each, parse};

const COLUMNS: &[&str] = &["rank", "priority", "url"];

#[derive(Serialize)]
struct Row<'a> {
    url: &'a str,
    priority: Priority,
    rank: u64,
}

pub(super) fn run(args: &HierarchyArgs) -> anyhow::Result<Outcome> {
    let mut pages = Pages::new(args.mode);
    let mut output = Output::new(args.common.format, COLUMNS);
    for_each(Input::open(&args.common.files)?, &mut output, |line, output| {
        let sighting: Sighting = parse(line)?;
        let priority = pages.see(&sighting).map_err(|error| BadLine::field(error.field, error.cause))?;
        let rank = priority.rank(args.total_pages.unwrap_or(pages.len() as u64));
        Ok(output.row(&Row { url: &sighting.url, priority, rank })?)
    })
}
