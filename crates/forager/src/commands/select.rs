//! `forager select`

use forager_core::select::{Link, Selector};

use crate::Outcome;
use crate::cli::SelectArgs;
use crate::config::Config;
use crate::input::Input;
use crate::output::Output;
use crate::record::{for_each, parse};

const COLUMNS: &[&str] = &["score", "category", "url", "pathLength", "matchedTerm"];
const COLUMNS_WITH_DROPPED: &[&str] =
    &["score", "category", "url", "pathLength", "matchedTerm", "href", "dropped"];

pub(super) fn run(args: &SelectArgs) -> anyhow::Result<Outcome> {
    let mut settings = Config::load(&args.config)?.select;
    settings.page_cap = args.page_cap.unwrap_or(settings.page_cap);
    settings.disallowed_paths.extend(args.disallow.iter().cloned());
    let selector = Selector::new(settings)?;
    selector.select(&args.home, [])?; // a bad home page is told before any line is read

    let columns = if args.dropped { COLUMNS_WITH_DROPPED } else { COLUMNS };
    let mut output = Output::new(args.common.format, columns);
    let mut links: Vec<Link> = Vec::new();
    let outcome = for_each(Input::open(&args.common.files)?.with_progress(), &mut output, |line, _| {
        links.push(parse(line)?);
        Ok(())
    })?;
    let selection = selector.select(&args.home, links)?;
    for page in &selection.picked {
        output.row(page)?;
    }
    if args.dropped {
        for link in &selection.dropped {
            output.row(link)?;
        }
    }
    output.flush()?;
    Ok(outcome)
}
