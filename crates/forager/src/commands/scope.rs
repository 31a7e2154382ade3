//! `forager scope`

use forager_core::read::null_is_default;
use forager_core::scope::before_fetch::{self, Entry, before_fetch};
use forager_core::scope::outlink::{self, Claim, Context, Hop, Queued, outlink};
use forager_core::scope::{Place, Scopes};
use forager_core::url::{FetchUrl, Identity};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::cli::ScopeArgs;
use crate::config::Config;
use crate::input::Input;
use crate::output::Output;
use crate::record::{BadLine, for_each, parse};

const COLUMNS: &[&str] = &["action", "url", "seed", "depth", "due", "rule"];

/// A question: about an entry before its fetch, or about a link in the context of a page.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Question {
    #[serde(default)]
    entry: Option<EntryRecord>,
    #[serde(default)]
    context: Option<ContextRecord>,
    #[serde(default)]
    url: Option<FetchUrl>,
    #[serde(default)]
    queued: Option<QueuedRecord>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryRecord {
    collection: String,
    url: FetchUrl,
    seed: FetchUrl,
    #[serde(default, deserialize_with = "null_is_default")]
    depth: u32,
    #[serde(default)]
    hops_off_domain: Option<u32>,
    #[serde(default, deserialize_with = "forager_core::time::deserialize_option")]
    last_fetch: Option<Timestamp>,
    #[serde(default)]
    length: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContextRecord {
    collection: String,
    seed: FetchUrl,
    #[serde(default, deserialize_with = "null_is_default")]
    depth: u32,
    #[serde(default, deserialize_with = "null_is_default")]
    hops_off_domain: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueuedRecord {
    seed: FetchUrl,
    #[serde(default, deserialize_with = "null_is_default")]
    depth: u32,
    #[serde(default)]
    hops_off_domain: Option<u32>,
    #[serde(deserialize_with = "forager_core::time::deserialize")]
    due: Timestamp,
    #[serde(default, deserialize_with = "forager_core::time::deserialize_option")]
    last_fetch: Option<Timestamp>,
    #[serde(default, deserialize_with = "null_is_default")]
    leased: bool,
}

#[derive(Serialize)]
struct Row<'a> {
    url: &'a str,
    action: &'static str,
    seed: Option<&'a Identity>,
    depth: Option<u32>,
    due: Option<Timestamp>,
    rule: String,
}

pub(super) fn run(args: &ScopeArgs) -> anyhow::Result<Outcome> {
    let scopes = Config::load_required(&args.config)?.scopes()?;
    let now = args.now.get();
    let mut output = Output::new(args.common.format, COLUMNS);
    for_each(Input::open(&args.common.files)?, &mut output, |line, output| match parse(line)? {
        Question { entry: Some(entry), context: None, url: None, queued: None } => {
            Ok(answer_entry(&scopes, &entry, now, output)?)
        }
        Question { entry: None, context: Some(context), url: Some(url), queued } => {
            Ok(answer_link(&scopes, &context, &url, queued.as_ref(), now, output)?)
        }
        _ => Err(BadLine::whole("has neither an \"entry\" nor a \"context\" with a \"url\"").into()),
    })
}

fn answer_entry(
    scopes: &Scopes,
    entry: &EntryRecord,
    now: Timestamp,
    output: &mut Output,
) -> anyhow::Result<()> {
    let (url, seed) = (scopes.identity(&entry.collection, &entry.url), seed_identity(&entry.seed));
    let verdict = before_fetch(
        scopes,
        &Entry {
            collection: &entry.collection,
            url: &url,
            seed: &seed,
            place: scopes.place(&seed, &url, entry.depth, entry.hops_off_domain),
            last_fetch: entry.last_fetch,
            length: entry.length,
            is_listing: false,
        },
        now,
    );
    let (action, due) = match verdict.action {
        before_fetch::Action::Fetch => ("fetch", None),
        before_fetch::Action::Postpone { due } => ("postpone", Some(due)),
        before_fetch::Action::Remove => ("remove", None),
    };
    output.row(&Row {
        url: url.as_str(),
        action,
        seed: verdict.seed,
        depth: Some(entry.depth),
        due,
        rule: verdict.to_string(),
    })
}

fn answer_link(
    scopes: &Scopes,
    context: &ContextRecord,
    url: &FetchUrl,
    queued: Option<&QueuedRecord>,
    now: Timestamp,
    output: &mut Output,
) -> anyhow::Result<()> {
    let (url, seed) = (scopes.identity(&context.collection, url), seed_identity(&context.seed));
    let place_of_page = Place { depth: context.depth, hops_off_domain: context.hops_off_domain };
    let context =
        Context { collection: &context.collection, seed: &seed, place: place_of_page, hop: Hop::Link };
    let queued = queued.map(|queued| (queued, seed_identity(&queued.seed)));
    let queued = queued.as_ref().map(|(queued, seed)| Queued {
        seed,
        place: scopes.place(seed, &url, queued.depth, queued.hops_off_domain),
        due: queued.due,
        last_fetch: queued.last_fetch,
        leased: queued.leased,
    });
    let verdict = outlink(scopes, &context, &url, queued.as_ref(), now);
    let stored = queued.map(|Queued { seed, place, due, .. }| Claim { seed, place, due });
    let (action, claim) = match verdict.action {
        outlink::Action::Add { claim, .. } => ("add", Some(claim)),
        outlink::Action::Merge(claim) => ("merge", Some(claim)),
        outlink::Action::Keep => ("keep", stored),
        outlink::Action::Remove => ("remove", None),
        outlink::Action::Ignore => ("ignore", None),
    };
    output.row(&Row {
        url: url.as_str(),
        action,
        seed: claim.map(|claim| claim.seed),
        depth: claim.map(|claim| claim.place.depth),
        due: claim.map(|claim| claim.due),
        rule: verdict.rule.to_string(),
    })
}

fn seed_identity(seed: &FetchUrl) -> Identity {
    seed.identity(&forager_core::url::IdentityOptions::default())
}
