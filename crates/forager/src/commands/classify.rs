//! `forager classify`

use std::borrow::Cow;

use forager_core::sentinel::Risk;
use forager_core::sentinel::classify::{Class, Classifier, NodeRole, NodeType};
use forager_core::url::FetchUrl;
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::cli::ClassifyArgs;
use crate::config::Config;
use crate::input::{Input, Line};
use crate::output::Output;
use crate::record::{BadLine, for_each, parse, text};

const COLUMNS: &[&str] = &["freshnessRisk", "nodeType", "nodeRole", "url", "reasons"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(borrow, default)]
    content_type: Option<Cow<'a, str>>,
    #[serde(default)]
    parent_risk: Option<Risk>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    url: &'a str,
    node_type: NodeType,
    node_role: Option<NodeRole>,
    freshness_risk: Risk,
    reasons: Vec<String>,
}

pub(super) fn run(args: &ClassifyArgs) -> anyhow::Result<Outcome> {
    let classifier = Classifier::new(Config::load(&args.config)?.classify.rows)?;
    let mut output = Output::new(args.common.format, COLUMNS);
    for_each(Input::open(&args.common.files)?, &mut output, |line, output| {
        let page = read(line)?;
        let class = classify(&classifier, &page)?;
        Ok(output.row(&row(&page, &class))?)
    })
}

/// A record, or a URL on its own.
fn read<'a>(line: &Line<'a>) -> Result<Page<'a>, BadLine> {
    let text = text(line)?;
    if text.starts_with('{') {
        return parse(line);
    }
    Ok(Page { url: text.into(), content_type: None, parent_risk: None })
}

fn classify<'c>(classifier: &'c Classifier, page: &Page<'_>) -> Result<Class<'c>, BadLine> {
    let url = FetchUrl::parse(&page.url).map_err(|error| BadLine::field("url", error))?;
    let class = classifier.classify(&url, page.content_type.as_deref());
    Ok(match page.parent_risk {
        Some(parent) => class.on_page_of(parent),
        None => class,
    })
}

fn row<'a>(page: &'a Page<'_>, class: &Class<'_>) -> Row<'a> {
    Row {
        url: &page.url,
        node_type: class.node_type,
        node_role: class.node_role,
        freshness_risk: class.freshness_risk,
        reasons: class.reasons.iter().map(ToString::to_string).collect(),
    }
}
