//! `forager robots`, `forager sitemap`, `forager links`: what a crawl would see.

use forager_core::time::Interval;
use forager_core::url::{FetchUrl, without_user_info};
use forager_crawl::reading;
use forager_crawl::scout::{Scout, Seen, Unseen};
use forager_fetch::fingerprint::Form;
use forager_fetch::http::Response;
use forager_fetch::links::{self, LinkOptions, PageLinks};
use forager_fetch::{encoding, robots, sitemap};
use forager_frontier::host::Gate;
use jiff::Timestamp;
use serde::Serialize;

use crate::Outcome;
use crate::cli::LookArgs;
use crate::config::Config;
use crate::crawling;
use crate::exit::NotHad;
use crate::output::{self, Output};
use crate::runtime;
use crate::words::in_time;

/// Someone to look, with what the flags say.
pub(super) fn scout(args: &LookArgs) -> anyhow::Result<(Scout, FetchUrl, Config)> {
    let url = FetchUrl::parse_lenient(&args.url)?;
    let config = crawling::asking(Config::load(&args.config)?, &args.ask);
    crawling::check_urls(std::slice::from_ref(&args.url))?;
    crawling::require_contact(&config, std::iter::once(args.url.as_str()))?;
    let http = config.fetch.http(args.ask.allow_private)?;
    let scout = Scout::new(http, config.fetch.product_token(), config.politeness, tell_wait)?;
    Ok((scout, url, config))
}

/// A wait that is longer than this is told: nobody should wonder what a command does.
const LONG_SECONDS: f64 = 5.0;

fn tell_wait(host: &str, wait: Interval, gate: Gate) {
    let seconds = wait.as_secs_f64();
    if seconds > LONG_SECONDS {
        output::tell(format_args!("waiting {} for {host}: {gate}", in_time(seconds.ceil())));
    }
}

/// Looks, and waits for what there is to see. One command waits once: connections do not outlive it.
pub(super) fn wait<T>(look: impl Future<Output = T>) -> anyhow::Result<T> {
    runtime::wait(look)
}

/// Why there is nothing to see, for the exit status too.
fn unseen(cause: &Unseen) -> anyhow::Error {
    if cause.may_pass() {
        NotHad::new(cause, cause.is_rate_limited()).into()
    } else {
        anyhow::anyhow!("{cause}")
    }
}

/// The answer to a look, or why there is none.
pub(super) fn answer(seen: &Seen) -> anyhow::Result<&Response> {
    let response = seen.answer.as_ref().map_err(unseen)?;
    if !(200..300).contains(&response.status) {
        let is_rate_limited = matches!(response.status, 429 | 503);
        let what = format!("{} answers {}", seen.url, response.status);
        return Err(NotHad::new(what, is_rate_limited).into());
    }
    if let Some(cut) = &response.cut_off {
        output::complain(format_args!("{}: the page is not whole: {cut}", seen.url));
    }
    Ok(response)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RobotsSheet {
    url: String,
    allowed: bool,
    rule: String,
    addressed: Option<String>,
    crawl_delay: Option<Interval>,
    sitemaps: Vec<String>,
    rules: Vec<String>,
    extras: Vec<String>,
}

pub(super) fn robots(args: &LookArgs) -> anyhow::Result<Outcome> {
    let (scout, url, _) = scout(args)?;
    let rules = wait(scout.rules(&url))??.map_err(|cause| unseen(&cause))?;
    let ruling = rules.verdict(&url);
    let file = rules.robots();
    let addressed = file.map(|file| {
        let words = match file.addressed() {
            robots::Addressed::Us => "us by name",
            robots::Addressed::Everyone => "everyone",
            robots::Addressed::Nobody => "nobody",
        };
        words.to_owned()
    });
    let public = |url: &String| without_user_info(url).into_owned();
    let sheet = RobotsSheet {
        url: url.as_str().to_owned(),
        allowed: ruling.allowed,
        rule: ruling.to_string(),
        addressed,
        crawl_delay: file.and_then(robots::Robots::crawl_delay),
        sitemaps: file.map(|file| file.sitemaps().iter().map(public).collect()).unwrap_or_default(),
        rules: file.map(|file| file.rules().map(|(rule, _)| rule.to_string()).collect()).unwrap_or_default(),
        extras: file
            .map(|file| file.extras().iter().map(|(name, value)| format!("{name}: {value}")).collect())
            .unwrap_or_default(),
    };
    let mut output = Output::new(args.format, &[]);
    output.sheet(&sheet)?;
    output.flush()?;
    if let robots::Why::Unreachable { last, .. } = ruling.why {
        let is_rate_limited = matches!(last, robots::LastTry::Status(429 | 503));
        let what = format!("robots.txt of {} cannot be had: {}", url.host(), sheet.rule);
        return Err(NotHad::new(what, is_rate_limited).into());
    }
    Ok(Outcome::Complete)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SitemapRow {
    kind: &'static str,
    url: String,
    last_modified: Option<Timestamp>,
    sitemap: String,
}

pub(super) fn sitemap(args: &LookArgs) -> anyhow::Result<Outcome> {
    let (scout, url, _) = scout(args)?;
    let most = Some(sitemap::MAX_BYTES as u64 + 1);
    let mut output = Output::new(args.format, &["kind", "url", "lastModified", "sitemap"]);
    let (rules, seen) =
        wait(async { Ok::<_, anyhow::Error>((scout.rules(&url).await?, scout.look(&url, most).await?)) })??;
    let rules = rules.map_err(|cause| unseen(&cause))?;
    let response = answer(&seen)?;
    let found = sitemap::read(&response.body, &seen.url, response.content_type());
    if found.kind == sitemap::Kind::Unknown {
        let named = rules.robots().map(|file| file.sitemaps().to_vec()).unwrap_or_default();
        // Whoever gives a page of a site asks for its sitemaps; anything else was to be one.
        let is_page = Form::of(response.content_type(), &response.body) == Form::Html;
        if !is_page {
            tell_problems(&seen, &found);
        }
        if named.is_empty() {
            output::complain(format_args!("{} is no sitemap, and its robots.txt names none", seen.url));
            return Ok(Outcome::SomeBad);
        }
        for named in named {
            let sitemap = seen.url.as_str().to_owned();
            // As a crawl takes them.
            let url = url.join(&named).map_or(named, |url| url.as_str().to_owned());
            output.row(&SitemapRow { kind: "named by robots.txt", url, last_modified: None, sitemap })?;
        }
        output.flush()?;
        return Ok(if is_page { Outcome::Complete } else { Outcome::SomeBad });
    }
    let rows = found.sitemaps.iter().map(|item| ("sitemap", item));
    for (kind, item) in rows.chain(found.urls.iter().map(|item| ("page", item))) {
        let (url, sitemap) = (item.url.as_str().to_owned(), seen.url.as_str().to_owned());
        output.row(&SitemapRow { kind, url, last_modified: item.last_modified, sitemap })?;
    }
    output.flush()?;
    tell_problems(&seen, &found);
    let is_good = found.problems.is_empty() && found.remarks.is_empty();
    Ok(if is_good { Outcome::Complete } else { Outcome::SomeBad })
}

/// Tells what is wrong with a sitemap.
fn tell_problems(seen: &Seen, found: &sitemap::Sitemap) {
    for problem in found.problems.iter().chain(&found.remarks) {
        output::complain(format_args!("{}: {problem}", seen.url));
    }
    let further = found.further_problems + found.further_remarks;
    if further > 0 {
        output::complain(format_args!("{}: and {further} more", seen.url));
    }
}

/// The links of a page that was seen. Only HTML has any.
pub(super) fn links_of(seen: &Seen, token: String) -> anyhow::Result<PageLinks> {
    let response = answer(seen)?;
    if Form::of(response.content_type(), &response.body) != Form::Html {
        let kind = response.content_type().unwrap_or("of a type that it does not tell");
        anyhow::bail!("{} is {kind}, and no HTML: it has no links that are followed", seen.url);
    }
    let decoded = encoding::decode_from(&response.body, response.content_type(), Some(seen.url.host()));
    let options = LinkOptions { encoding: decoded.encoding, product_token: token, ..LinkOptions::default() };
    Ok(links::extract(&decoded.text, &seen.url, &options))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LinkRow<'a> {
    url: &'a str,
    kind: String,
    in_header: bool,
    nofollow: bool,
    text: &'a str,
    title: &'a str,
    /// What the page asks of robots.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    directives: &'a [String],
}

pub(super) fn links(args: &LookArgs) -> anyhow::Result<Outcome> {
    let (scout, url, config) = scout(args)?;
    let seen = wait(scout.look(&url, None))??;
    let token = config.fetch.product_token();
    let page = links_of(&seen, token.clone())?;
    let asked = seen.answer.as_ref().map(|answer| reading::directives(answer, &page.robots_meta, &token));
    let asked = asked.unwrap_or_default();
    let directives = asked.words();
    let mut output = Output::new(args.format, &["url", "kind", "inHeader", "nofollow", "text", "title"]);
    for link in &page.links {
        output.row(&LinkRow {
            url: link.url.as_str(),
            kind: format!("{:?}", link.kind).to_lowercase(),
            in_header: link.in_header,
            nofollow: link.rel.nofollow,
            text: &link.text,
            title: &link.title,
            directives: &directives,
        })?;
    }
    output.flush()?;
    for link in &page.unusable {
        output::tell(format_args!("not followed: {}: {}", link.href, link.why));
    }
    if !asked.why.is_empty() {
        let asked: Vec<String> = asked.why.iter().map(ToString::to_string).collect();
        output::tell(format_args!("{} asks of robots: {}", seen.url, asked.join(", ")));
    }
    for problem in page.problems() {
        output::complain(format_args!("{}: {problem}", seen.url));
    }
    Ok(Outcome::Complete)
}
