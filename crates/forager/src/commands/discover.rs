//! `forager discover`

use forager_frontier::Frontier as _;
use forager_frontier::verbs::{Discovery, Page};
use serde::Serialize;

use crate::Outcome;
use crate::batch::{Batches, for_each_batch};
use crate::cli::DiscoverArgs;
use crate::input::{Input, Line};
use crate::output::Output;
use crate::record::{BadLine, parse};
use crate::store::{self, Missing};

/// Enough pages that a commit costs little, and few enough that others soon have their turn.
const BATCHES: Batches = Batches { size: 100, eager: true };

#[derive(Serialize)]
struct Row<'a> {
    url: &'a str,
    #[serde(flatten)]
    discovery: &'a Discovery,
}

pub(super) fn run(args: &DiscoverArgs) -> anyhow::Result<Outcome> {
    let mut output = Output::new(args.store.format(), &["action", "url", "rule"]);
    let input = Input::open(&args.input.files)?;
    store::with_lazy(&args.store, Missing::Refuse, |lazy| {
        let summary = for_each_batch(
            input,
            &mut output,
            BATCHES,
            read,
            |_| false,
            |pages, output| {
                let store = lazy.get()?;
                let catalog = store::ask(store.frontier.catalog())?;
                for page in pages {
                    catalog.require_collection(&page.collection)?; // it would be ignored, and is most often a slip
                }
                let found = store::ask(store.frontier.discover(pages, store.now))?;
                let links = pages.iter().flat_map(|page| &page.links);
                for (link, discovery) in links.zip(&found) {
                    output.row(&Row { url: &link.url, discovery })?;
                }
                Ok(Vec::new())
            },
        )?;
        Ok(summary.outcome())
    })
}

fn read(line: &Line<'_>) -> Result<Page, BadLine> {
    let page: Page = parse(line)?;
    if page.collection.is_empty() {
        return Err(BadLine::field("collection", "missing"));
    }
    match page.links.iter().position(|link| link.url.is_empty()) {
        Some(index) => Err(BadLine::field(&format!("links[{index}].url"), "missing")),
        None => Ok(page),
    }
}
