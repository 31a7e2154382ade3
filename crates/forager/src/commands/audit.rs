//! `forager audit`

use anyhow::bail;
use forager_core::url::FetchUrl;
use forager_crawl::audit::{Abandoned, Audit, Auditor};
use forager_crawl::robots::key_of_file;
use forager_frontier::verbs::Event;

use super::history::{for_each_event, for_each_fetch};
use super::host::named;
use crate::Outcome;
use crate::cli::AuditArgs;
use crate::config::Config;
use crate::output::{self, Output};
use crate::store::{self, Missing, Store};

const COLUMNS: &[&str] = &[
    "host",
    "fetches",
    "bytes",
    "first",
    "last",
    "mostInFlight",
    "mostAllowed",
    "shortestGap",
    "gapDue",
    "crawlDelay",
    "robotsRead",
    "abandoned",
    "names",
];

pub(super) fn run(args: &AuditArgs) -> anyhow::Result<Outcome> {
    if let Some(name) = &args.robots_text {
        return show_text(args, name);
    }
    let token = Config::load(&args.store.place.config)?.fetch.product_token();
    let host = args.host.as_deref().map(named).transpose()?;
    let audit = store::with(&args.store, Missing::Refuse, |store| audit(store, &token, host.as_deref()))?;
    let mut output = Output::new(args.store.format(), COLUMNS);
    audit.hosts.iter().try_for_each(|host| output.row(host))?;
    if !output.is_for_people() {
        audit.violations.iter().try_for_each(|violation| output.row(violation))?;
    }
    output.flush()?;
    if let Some(host) = host.filter(|_| audit.hosts.is_empty()) {
        bail!("nothing was asked of {host}, as far as the log has it: there is nothing to prove");
    }
    for violation in &audit.violations {
        let forager_crawl::audit::Violation { host, url, at, what } = violation;
        output::complain(format_args!("{host}: {url} at {at}: {what}"));
    }
    Ok(if audit.violations.is_empty() { Outcome::Complete } else { Outcome::SomeBad })
}

/// Shows a text of robots.txt that was obeyed.
fn show_text(args: &AuditArgs, name: &str) -> anyhow::Result<Outcome> {
    let key = key_of_file(name);
    let found = store::with(&args.store, Missing::Refuse, |store| store::ask(store.frontier.noted(&[key])))?;
    let Some(text) = found.into_iter().next().flatten() else {
        bail!(
            "no robots.txt is kept that is known by {name:?}; \"forager audit --json\" has those that are, as \"file\""
        );
    };
    output::print(&text)?;
    Ok(Outcome::Complete)
}

fn audit(store: &Store, token: &str, host: Option<&str>) -> anyhow::Result<Audit> {
    let files = |key: &str| {
        let found = store::ask(store.frontier.noted(&[key.to_owned()])).ok()?;
        found.into_iter().next().flatten()
    };
    let mut auditor = Auditor::new(token, &files).only(host);
    for_each_fetch(store, |row| {
        auditor.fetch(row);
        Ok(())
    })?;
    for_each_event(store, |row| {
        let Event::Abandoned { from, .. } = row.event else { return Ok(()) };
        let Ok(url) = FetchUrl::parse(&row.subject) else { return Ok(()) };
        let (host, url) = (url.host_key().to_owned(), row.subject);
        auditor.abandoned(Abandoned { host, url, from, until: row.at });
        Ok(())
    })?;
    Ok(auditor.finish())
}
