//! `forager discover`

use std::fmt::Display;
use std::mem;

use forager_frontier::verbs::{Action, Discovery, Link, Page};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::Outcome;
use crate::batch::{Batches, Told, for_each_batch};
use crate::cli::DiscoverArgs;
use crate::input::{Input, Line};
use crate::output::Output;
use crate::record::{BadLine, parse, parse_part};
use crate::store::{self, Missing, Store};

/// Enough pages that a commit costs little, and few enough that others soon have their turn.
const BATCHES: Batches = Batches { size: 100, eager: true };

pub(super) fn run(args: &DiscoverArgs) -> anyhow::Result<Outcome> {
    let mut output = Output::new(args.store.format(), &["action", "url", "rule"]);
    let input = Input::open(&args.input.files)?;
    store::with_lazy(&args.store, Missing::Refuse, |lazy| {
        let call = |found: &mut [Found], told: &mut Told<'_>| discover(lazy.get()?, found, told);
        let summary = for_each_batch(input, &mut output, BATCHES, read, |_| false, call)?;
        Ok(summary.outcome())
    })
}

/// A page, and those of its links that cannot be read. These have no URL in the page, where they keep their places.
struct Found {
    page: Page,
    slips: Vec<Slip>,
}

/// A link that cannot be read.
struct Slip {
    index: usize,
    url: Option<String>,
    problem: BadLine,
}

#[derive(Serialize)]
struct Row<'a> {
    url: Option<&'a str>,
    #[serde(flatten)]
    discovery: &'a Discovery,
}

fn discover(store: &Store, found: &mut [Found], told: &mut Told<'_>) -> anyhow::Result<()> {
    let catalog = store::ask(store.frontier.catalog())?;
    for Found { page, .. } in &*found {
        catalog.require_collection(&page.collection)?; // it would be ignored, and is most often a slip
    }
    let pages: Vec<Page> = found.iter_mut().map(|found| mem::take(&mut found.page)).collect();
    let mut answers = store::ask(store.frontier.discover(&pages, store.now()))?.into_iter();
    for (line, (page, Found { slips, .. })) in pages.iter().zip(found).enumerate() {
        let mut slips = slips.iter().peekable();
        for (index, (link, discovery)) in page.links.iter().zip(&mut answers).enumerate() {
            match slips.next_if(|slip| slip.index == index) {
                Some(slip) => slip.tell(line, told)?,
                None => told.row(line, &Row { url: Some(&link.url), discovery: &discovery })?,
            }
        }
    }
    Ok(())
}

impl Slip {
    fn new(index: usize, field: &str, problem: impl Display) -> Self {
        Self { index, url: None, problem: BadLine::field(&format!("links[{index}]{field}"), problem) }
    }

    /// Tells of it twice: every link has a row, and every slip is a complaint.
    fn tell(&self, line: usize, told: &mut Told<'_>) -> anyhow::Result<()> {
        let discovery = Discovery { action: Action::Invalid, rule: self.problem.to_string().into() };
        told.row(line, &Row { url: self.url.as_deref(), discovery: &discovery })?;
        told.bad(line, &self.problem)
    }
}

fn read(line: &Line<'_>) -> Result<Found, BadLine> {
    // Most often every link is fine; if not, each is read by itself.
    let mut found = match parse(line) {
        Ok(page) => Found { page, slips: Vec::new() },
        Err(_) => read_apart(line)?,
    };
    if found.page.collection.is_empty() {
        return Err(BadLine::field("collection", "missing"));
    }
    for (index, link) in found.page.links.iter_mut().enumerate() {
        if found.slips.iter().any(|slip| slip.index == index) {
            continue;
        }
        if let Some(slip) = check(index, link) {
            link.url.clear();
            found.slips.push(slip);
        }
    }
    found.slips.sort_by_key(|slip| slip.index);
    Ok(found)
}

/// What is wrong with a link though it can be read. Whether its URL is one is for the queue to say.
fn check(index: usize, link: &Link) -> Option<Slip> {
    if link.url.is_empty() {
        return Some(Slip::new(index, ".url", "missing"));
    }
    let relevance = link.relevance.filter(|relevance| !(0.0..=1.0).contains(relevance))?;
    let problem = format_args!("{relevance} is not from 0 to 1");
    Some(Slip { url: Some(link.url.clone()), ..Slip::new(index, ".relevance", problem) })
}

/// Reads the links of a page one by one.
fn read_apart(line: &Line<'_>) -> Result<Found, BadLine> {
    let mut fields: Map<String, Value> = parse(line)?;
    let links = match fields.remove("links").unwrap_or_default() {
        Value::Null => Vec::new(),
        Value::Array(links) => links,
        _ => return Err(BadLine::field("links", "not a list")),
    };
    let page: Page = parse_part(Value::Object(fields), "")?;
    let mut slips = Vec::new();
    let mut read = |(index, value): (usize, Value)| {
        let url = value.get("url").and_then(Value::as_str).map(str::to_owned);
        parse_part(value, &format!("links[{index}]")).unwrap_or_else(|problem| {
            slips.push(Slip { index, url, problem });
            Link::default()
        })
    };
    let links = links.into_iter().enumerate().map(&mut read).collect();
    Ok(Found { page: Page { links, ..page }, slips })
}
