//! `forager pick`

use forager_core::select::{Link, Picked, Selector};
use forager_core::url::FetchUrl;
use forager_crawl::scout::Scout;
use serde::Serialize;

use super::look;
use crate::Outcome;
use crate::cli::PickArgs;
use crate::output::Output;

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    page: &'a Picked,
    #[serde(flatten)]
    fetched: Option<Fetched>,
}

#[derive(Serialize)]
struct Fetched {
    status: Option<u16>,
    bytes: Option<usize>,
    error: Option<String>,
}

pub(super) fn run(args: &PickArgs) -> anyhow::Result<Outcome> {
    let (scout, url, config) = look::scout(&args.look)?;
    let mut settings = config.select.clone();
    settings.page_cap = args.page_cap.unwrap_or(settings.page_cap);
    let selector = Selector::new(settings)?;
    look::wait(pick(args, &scout, &url, &selector, config.fetch.product_token()))?
}

async fn pick(
    args: &PickArgs,
    scout: &Scout,
    url: &FetchUrl,
    selector: &Selector,
    product_token: String,
) -> anyhow::Result<Outcome> {
    let seen = scout.look(url, None).await?;
    let page = look::links_of(&seen, product_token)?;
    let link = |link: &forager_fetch::links::Link| Link {
        href: link.url.as_str().to_owned(),
        text: link.text.clone(),
        title: link.title.clone(),
    };
    // The home page is where it was found to be, after all redirects.
    let selection = selector.select(seen.url.as_str(), page.links.iter().map(link))?;
    let columns: &[&str] = if args.fetch_pages {
        &["score", "category", "url", "matchedTerm", "status", "bytes", "error"]
    } else {
        &["score", "category", "url", "matchedTerm"]
    };
    let mut output = Output::new(args.look.format, columns);
    for page in &selection.picked {
        let fetched = if args.fetch_pages { Some(fetch(scout, page).await?) } else { None };
        output.row(&Row { page, fetched })?;
    }
    output.flush()?;
    Ok(Outcome::Complete)
}

async fn fetch(scout: &Scout, page: &Picked) -> anyhow::Result<Fetched> {
    let seen = scout.look(&page.url, None).await?;
    Ok(match &seen.answer {
        Ok(answer) => Fetched { status: Some(answer.status), bytes: Some(answer.body.len()), error: None },
        Err(cause) => Fetched { status: None, bytes: None, error: Some(cause.to_string()) },
    })
}
