//! What a crawl shows while it runs, and the sum of it at the end.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use forager_core::sentinel::schedule::Failure;
use forager_core::url::FetchUrl;
use forager_crawl::{Found, NotFetched, PageLine, Stop, Watcher};
use forager_frontier::verbs::{Action, Nothing, Outcome};
use serde::Serialize;
use tokio::sync::watch;

use super::appended::{Appended, Lines};
use super::changes::Changes;
use super::counts::{Shared, is_failed};
use super::outlook::Outlook;
use super::queued::Queued;
use super::starts::LeftOut;
use super::teller::{A_MINUTE, AN_HOUR, Teller};
use super::{kind, log};
use crate::cli::FilesArgs;
use crate::exit::stopped_by;
use crate::{journal, output};

/// Where the lines of a crawl go.
#[derive(Default)]
pub(crate) struct Files {
    pages: Option<Box<dyn Write + Send>>,
    skipped: Option<Box<dyn Write + Send>>,
    log: Option<Box<dyn Write + Send>>,
}

impl Files {
    /// Opens those that are asked for. What they have stays: a crawl that goes on adds to it.
    pub(crate) fn open(args: &FilesArgs) -> anyhow::Result<Self> {
        let open = |path: &Option<PathBuf>, lines| path.as_deref().map(|path| open(path, lines)).transpose();
        Ok(Self {
            pages: open(&args.out, Lines::Json)?,
            skipped: open(&args.skipped, Lines::Json)?,
            log: open(&args.crawl_log, Lines::Log)?,
        })
    }
}

impl Files {
    /// Writes lines of pages whose own were lost.
    pub(crate) fn make_up_for(&mut self, lines: &[impl Serialize]) -> anyhow::Result<()> {
        let Some(pages) = &mut self.pages else { return Ok(()) };
        let written = lines.iter().try_for_each(|line| write_line(pages, line)).and_then(|()| pages.flush());
        written.context(CANNOT_WRITE)
    }

    /// Writes down pages to start from that are not even queued.
    pub(crate) fn leave_out(&mut self, starts: &[LeftOut], ts: jiff::Timestamp) -> anyhow::Result<()> {
        let Some(skipped) = &mut self.skipped else { return Ok(()) };
        let written = starts.iter().try_for_each(|LeftOut { url, rule }| {
            write_line(
                skipped,
                &Skipped { url, page: None, seed_url: Some(url), depth: 0, reason: rule, rule, ts },
            )
        });
        written.and_then(|()| skipped.flush()).context(CANNOT_WRITE).map_err(stopped_by)
    }
}

const CANNOT_WRITE: &str = "cannot write what was fetched";

pub(super) fn open(path: &Path, lines: Lines) -> anyhow::Result<Box<dyn Write + Send>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdout()));
    }
    Ok(Box::new(Appended::open(path, lines)?))
}

/// What was counted.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    /// Fetches that were reported.
    pub(crate) fetched: u64,
    /// Bytes over the wire.
    pub(crate) bytes: u64,
    /// Pages that had changed.
    pub(crate) changed: u64,
    /// How many pages came to what, by its kind; `--out` has the words for each.
    pub(crate) outcomes: BTreeMap<String, u64>,
    /// Why links were not followed and pages not fetched, and how many.
    pub(crate) skipped: BTreeMap<String, u64>,
    /// What is wrong with sitemaps, and pages of which not all links were seen; `--out` has it one by one.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) problems: u64,
    /// Pages that were there.
    #[serde(skip)]
    pub(crate) good: u64,
    /// Pages to start from that were given up, and why; the first few of them.
    #[serde(skip)]
    pub(crate) bad_starts: Vec<String>,
    /// How many of all of them were not refused by a host that is asked too often.
    #[serde(skip)]
    broken_starts: u64,
    /// How many were.
    #[serde(skip)]
    refused_starts: u64,
    /// How many of those that were not may never be fetched, and how many their servers will not have another time either.
    #[serde(skip)]
    forbidden_starts: u64,
    #[serde(skip)]
    dead_starts: u64,
    /// Pages that were given up because their host is asked too often, and for any other reason that may pass.
    #[serde(skip)]
    refused: u64,
    #[serde(skip)]
    broken: u64,
}

/// What became of the pages to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Starts {
    /// Some of them, or pages that they led to, were had.
    Had,
    /// None was; hosts refused all of them because they are asked too often.
    RateLimited,
    /// None was, nor ever will be: robots.txt forbids them, or their addresses may not be connected to.
    Forbidden,
    /// None was, nor is likely to be: their servers say that they are not there, or not for us.
    Dead,
    /// None was.
    Failed,
}

impl Summary {
    pub(crate) fn starts(&self) -> Starts {
        if self.good > 0 || self.bad_starts.is_empty() {
            return Starts::Had;
        }
        match (self.broken_starts, self.forbidden_starts) {
            (0, _) => Starts::RateLimited,
            // One that was refused for now may be had another time.
            _ if self.refused_starts > 0 => Starts::Failed,
            (broken, forbidden) if broken == forbidden => Starts::Forbidden,
            (broken, forbidden) if broken == forbidden + self.dead_starts => Starts::Dead,
            _ => Starts::Failed,
        }
    }

    /// Whether that is so of all pages that were given up.
    pub(crate) fn is_rest_refused(&self) -> bool {
        self.refused > 0 && self.broken == 0
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How many kinds of outcome are counted one by one: servers may answer with any status, libraries name any error.
const MOST_OUTCOMES: usize = 100;
/// What the others are counted as.
const OTHER: &str = "other";

/// How many pages to start from are named when they fail.
const NAMED: usize = 10;

/// The last line that was written somewhere else must not be lost with the process.
const FLUSH_EVERY: Duration = Duration::from_millis(500);

/// Counts, writes and shows what happens.
pub(crate) struct View {
    files: Files,
    pub(crate) summary: Summary,
    counts: Shared,
    /// What has more to do with the queue than this one counts, where others work at it too.
    others: Option<Queued>,
    flushed: Instant,
    /// What went wrong with a file; the crawl is stopped for it.
    trouble: Option<io::Error>,
    changes: Option<Changes>,
    /// Hosts of pages to start from of which it was told that they cannot be reached; the first few of them.
    unreachable: HashSet<String>,
    _teller: Teller,
}

impl View {
    /// A view of a crawl that begins with so many pages, which are asked for again where others are at work too. Changes go to
    /// `changes`, if anybody wants them. A crawl that ends has an outlook.
    pub(crate) fn new(
        files: Files,
        (queued, others): (u64, Option<Queued>),
        changes: Option<Changes>,
        mut outlook: Option<Outlook>,
    ) -> Self {
        let counts = Shared::new(queued);
        let (told, mut asked) = (counts.clone(), others.clone());
        let longest = if outlook.is_some() { A_MINUTE } else { AN_HOUR };
        Self {
            files,
            changes,
            summary: Summary::default(),
            counts,
            others,
            flushed: Instant::now(),
            trouble: None,
            unreachable: HashSet::new(),
            _teller: Teller::start(longest, move || {
                // First, for whoever counts does not wait for the queue.
                if let Some(queued) = asked.as_mut().and_then(Queued::look) {
                    told.get().queued = queued;
                }
                if let Some(outlook) = &mut outlook {
                    outlook.look();
                }
                told.get().told(outlook.as_mut())
            }),
        }
    }

    /// A page to start from is not even queued.
    pub(crate) fn leave_out(&mut self, LeftOut { url, rule }: &LeftOut) {
        let summary = &mut self.summary;
        *summary.skipped.entry(rule.clone()).or_default() += 1;
        (summary.broken_starts, summary.forbidden_starts) =
            (summary.broken_starts + 1, summary.forbidden_starts + 1);
        if summary.bad_starts.len() < NAMED {
            summary.bad_starts.push(format!("{url}: {rule}"));
        }
    }

    /// Writes what is left to write; says what went wrong with a file.
    pub(crate) async fn finish(mut self, stop: &watch::Receiver<Stop>) -> anyhow::Result<Summary> {
        self.flush();
        if journal::is_json() {
            if let Some(others) = &self.others
                && let Some(queued) = others.at_the_end().await
            {
                self.counts.get().queued = queued;
            }
            self.counts.get().told(None).tell();
        }
        if let Some(changes) = self.changes.take() {
            changes.finish(stop).await;
        }
        match self.trouble.take() {
            Some(trouble) => Err(trouble).context(CANNOT_WRITE),
            None => Ok(self.summary),
        }
    }

    /// Whether whoever read what it writes has gone away.
    pub(crate) fn is_deserted(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.kind() == io::ErrorKind::BrokenPipe)
    }

    /// What was counted, where nobody wants to read the rest.
    pub(crate) fn leave(self) -> Summary {
        self.summary
    }

    fn write(&mut self, page: &PageLine, found: &[Found]) -> io::Result<()> {
        if let Some(pages) = &mut self.files.pages {
            write_line(pages, page)?;
        }
        if let Some(skipped) = &mut self.files.skipped {
            let (seed_url, ts) = (page.seed.as_deref(), page.at);
            if let Some(not_fetched) = page.not_fetched {
                let (url, depth, rule) = (&page.url, page.depth, &page.rule);
                let reason = &not_fetched.to_string();
                let page = page.trail.via.as_deref();
                write_line(skipped, &Skipped { url, page, seed_url, depth, reason, rule, ts })?;
            }
            for Found { url, rule, .. } in found.iter().filter(|link| is_skipped(link.action)) {
                let depth = page.depth + u32::from(!is_target(page, url));
                let page = Some(page.url.as_str());
                write_line(skipped, &Skipped { url, page, seed_url, depth, reason: rule, rule, ts })?;
            }
        }
        self.log(page)
    }

    fn log(&mut self, page: &PageLine) -> io::Result<()> {
        let Some(log) = &mut self.files.log else { return Ok(()) };
        log.write_all(format!("{}\n", log::line(page)).as_bytes())
    }

    fn flush(&mut self) {
        self.flushed = Instant::now();
        let Files { pages, skipped, log } = &mut self.files;
        for file in [pages, skipped, log].into_iter().flatten() {
            if let Err(cause) = file.flush() {
                self.trouble.get_or_insert(cause);
            }
        }
    }

    fn count(&mut self, page: &PageLine, found: &[Found]) {
        let summary = &mut self.summary;
        summary.fetched += u64::from(page.not_fetched.is_none());
        summary.bytes += page.wire_bytes;
        summary.changed += u64::from(page.changed);
        summary.problems += page.problems.len() as u64;
        let outcomes = &mut summary.outcomes;
        let outcome = kind::of(page);
        let is_known = outcomes.contains_key(&outcome) || outcomes.len() < MOST_OUTCOMES;
        *outcomes.entry(if is_known { outcome } else { OTHER.to_owned() }).or_default() += 1;
        if let Some(not_fetched) = page.not_fetched {
            *summary.skipped.entry(not_fetched.to_string()).or_default() += 1;
        }
        for link in found.iter().filter(|link| is_skipped(link.action)) {
            *summary.skipped.entry(link.rule.to_string()).or_default() += 1;
        }
        summary.good += u64::from(!is_failed(page) && page.status.is_some_and(|s| s < 300 || s == 304));
        let is_over = page.outcome != Some(Outcome::Again);
        let is_bad_start = page.depth == 0 && is_over && is_failed(page);
        if is_bad_start {
            let is_forbidden =
                matches!(page.not_fetched, Some(NotFetched::Robots | NotFetched::AddressRefused));
            summary.broken_starts += u64::from(!page.is_rate_limited);
            summary.refused_starts += u64::from(page.is_rate_limited);
            summary.forbidden_starts += u64::from(is_forbidden && !page.is_rate_limited);
            summary.dead_starts += u64::from(is_dead(page));
        }
        if page.outcome == Some(Outcome::Failed) && may_pass(page) {
            // A single page that answers 503 may as well be broken; 429 is about how often it is asked for.
            let given_up = if page.status == Some(429) { &mut summary.refused } else { &mut summary.broken };
            *given_up += 1;
        }
        if is_bad_start && summary.bad_starts.len() < NAMED {
            let why = page.error.clone().unwrap_or_else(|| kind::of(page));
            summary.bad_starts.push(format!("{}: {why}", page.url));
        }
        self.counts.get().page(page);
    }

    /// Tells that a page to start from leads out of scope: the crawl would end there without a word.
    fn tell_astray(page: &PageLine, found: &[Found]) {
        let Some(target) = page.redirect.as_ref().filter(|_| page.depth == 0) else { return };
        let is_it = |link: &&Found| link.url == *target && link.action == Action::Ignored;
        if let Some(link) = found.iter().find(is_it) {
            let (url, rule) = (&page.url, &link.rule);
            output::complain(format_args!(
                "{url} redirects to {target}, which is not followed: {rule}; start from there, or widen the scope"
            ));
        }
    }

    /// Tells people at once that a page to start from cannot be reached: whoever mistyped it need not wait for the end.
    fn tell_unreachable(&mut self, page: &PageLine) {
        if journal::is_json() {
            return; // programs are told of every page
        }
        let is_out_of_reach = page.status.is_none() && page.not_fetched != Some(NotFetched::Robots);
        let Some(error) = page.error.as_ref().filter(|_| page.depth == 0 && is_out_of_reach) else { return };
        let Ok(url) = FetchUrl::parse(&page.url) else { return };
        if self.unreachable.len() < NAMED && self.unreachable.insert(url.host_key().to_owned()) {
            let next = match (page.outcome, page.due) {
                (Some(Outcome::Again), Some(due)) => format!("; it is not tried again before {due}"),
                _ => String::new(),
            };
            output::tell(format_args!("{}: {error}{next}", page.url));
        }
    }
}

/// Writes a line of JSON in one piece: what a process that is killed leaves behind ends with a whole line, and the next
/// one begins a new one.
fn write_line(file: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    file.write_all(&bytes)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Skipped<'a> {
    url: &'a str,
    /// The page it was found on. Of one that was queued, and then not fetched, that is known where trails are followed.
    page: Option<&'a str>,
    seed_url: Option<&'a str>,
    depth: u32,
    /// As the summary counts it.
    reason: &'a str,
    /// What decided, in full.
    rule: &'a str,
    ts: jiff::Timestamp,
}

impl Watcher for View {
    fn page(&mut self, page: &PageLine, found: &[Found]) {
        self.count(page, found);
        journal::page(page);
        self.tell_unreachable(page);
        Self::tell_astray(page, found);
        if let Some(changes) = self.changes.as_mut().filter(|_| page.changed)
            && let Err(cause) = changes.tell(page)
        {
            self.trouble.get_or_insert(cause);
        }
        if let Err(cause) = self.write(page, found) {
            self.trouble.get_or_insert(cause);
        }
        if self.flushed.elapsed() >= FLUSH_EVERY {
            self.flush();
        }
    }

    fn robots(&mut self, line: &PageLine) {
        if let Err(cause) = self.log(line) {
            self.trouble.get_or_insert(cause);
        }
    }

    fn under_way(&mut self, count: usize) {
        self.counts.get().under_way = count;
    }

    fn waits(&mut self, nothing: &Nothing) {
        self.counts.get().waits_for = Some(*nothing);
        self.flush();
    }

    fn has_enough(&self) -> bool {
        self.trouble.is_some()
    }
}

/// Whether a server has said of a page that it is not there, or not for us, which trying again does not change.
fn is_dead(page: &PageLine) -> bool {
    page.error.is_none() && page.status.and_then(Failure::of_status) == Some(Failure::Dead)
}

/// Whether a page could be had at another time, that was not had now.
fn may_pass(page: &PageLine) -> bool {
    let has_passed = page.not_fetched.is_none_or(|why| why == NotFetched::RobotsUnreachable);
    has_passed && page.status.is_none_or(|status| status == 429 || status >= 500)
}

/// Whether a page redirects to a URL: that is no farther from the seed. One that cannot be asked for is no target by name.
fn is_target(page: &PageLine, url: &str) -> bool {
    let is_redirect = page.status.is_some_and(|status| (300..400).contains(&status));
    page.redirect.as_deref().map_or(is_redirect, |target| target == url)
}

fn is_skipped(action: Action) -> bool {
    matches!(action, Action::Ignored | Action::Invalid | Action::Removed)
}

#[cfg(test)]
mod tests {
    use std::io::BufWriter;

    use super::*;

    #[test]
    fn a_file_has_whole_lines_at_any_time() {
        let mut file = BufWriter::new(Vec::new());
        for number in 0..500 {
            let page = PageLine { url: format!("http://a.test/{number}"), ..PageLine::default() };
            write_line(&mut file, &page).unwrap();
            assert!(matches!(file.get_ref().last(), None | Some(b'\n')), "after line {number}");
        }
        assert!(!file.get_ref().is_empty(), "some of it was written before the end");
    }
}
