//! `forager audit`

use forager_core::url::FetchUrl;
use forager_crawl::audit::{Abandoned, Audit, Auditor};
use forager_frontier::verbs::Event;

use crate::Outcome;
use crate::cli::AuditArgs;
use crate::config::Config;
use crate::output::{self, Output};
use crate::store::{self, Missing, Store};

const COLUMNS: &[&str] =
    &["host", "fetches", "bytes", "first", "last", "mostInFlight", "shortestGap", "robotsRead", "abandoned"];

/// Rows that are read at a time.
const PAGE: usize = 10_000;

pub(super) fn run(args: &AuditArgs) -> anyhow::Result<Outcome> {
    let token = Config::load(&args.store.place.config)?.fetch.product_token();
    let host = args.host.as_deref().map(str::to_lowercase);
    let audit = store::with(&args.store, Missing::Refuse, |store| audit(store, &token, host.as_deref()))?;
    let mut output = Output::new(args.store.format(), COLUMNS);
    audit.hosts.iter().try_for_each(|host| output.row(host))?;
    output.flush()?;
    for violation in &audit.violations {
        let forager_crawl::audit::Violation { host, url, at, what } = violation;
        output::complain(format_args!("{host}: {url} at {at}: {what}"));
    }
    Ok(if audit.violations.is_empty() { Outcome::Complete } else { Outcome::SomeBad })
}

fn audit(store: &Store, token: &str, host: Option<&str>) -> anyhow::Result<Audit> {
    let files = |key: &str| {
        let found = store::ask(store.frontier.noted(&[key.to_owned()])).ok()?;
        found.into_iter().next().flatten()
    };
    let mut auditor = Auditor::new(token, &files).only(host);
    let mut from = 0;
    loop {
        let rows = store::ask(store.frontier.fetches(from, PAGE))?;
        let Some(last) = rows.last() else { break };
        from = last.position + 1;
        for row in rows {
            auditor.fetch(row);
        }
    }
    let mut from = 0;
    loop {
        let events = store::ask(store.frontier.events(from, PAGE))?;
        let Some(last) = events.last() else { break };
        from = last.position + 1;
        for event in events {
            let Event::Abandoned { from, .. } = event.event else { continue };
            let Ok(url) = FetchUrl::parse(&event.subject) else { continue };
            let (host, url) = (url.host_key().to_owned(), event.subject);
            auditor.abandoned(Abandoned { host, url, from, until: event.at });
        }
    }
    Ok(auditor.finish())
}
