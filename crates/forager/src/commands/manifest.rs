//! `forager manifest`

use forager_core::sentinel::Risk;
use forager_core::sentinel::manifest::{Manifest, Why};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::cli::ManifestArgs;
use crate::config::Config;
use crate::input::Input;
use crate::output::Output;
use crate::record::{BadLine, for_each, parse};

const COLUMNS: &[&str] = &["freshnessRisk", "nextScanDue", "url", "why"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    url: String,
    freshness_risk: Risk,
    #[serde(deserialize_with = "forager_core::time::deserialize")]
    next_scan_due: Timestamp,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    url: &'a str,
    freshness_risk: Risk,
    next_scan_due: Timestamp,
    why: Why,
}

pub(super) fn run(args: &ManifestArgs) -> anyhow::Result<Outcome> {
    let mut settings = Config::load(&args.config)?.manifest;
    settings.limit = args.limit.unwrap_or(settings.limit);
    let mut manifest = Manifest::new(&settings, args.now.get());
    let mut output = Output::new(args.common.format, COLUMNS);
    let outcome = for_each(Input::open(&args.common.files)?.with_progress(), &mut output, |line, _| {
        let Item { url, freshness_risk, next_scan_due } = parse(line)?;
        forager_core::url::check(&url).map_err(|error| BadLine::field("url", error))?;
        manifest.push(url, freshness_risk, next_scan_due);
        Ok(())
    })?;
    for chosen in manifest.finish() {
        output.row(&Row {
            url: &chosen.item,
            freshness_risk: chosen.risk,
            next_scan_due: chosen.due,
            why: chosen.why,
        })?;
    }
    output.flush()?;
    Ok(outcome)
}
