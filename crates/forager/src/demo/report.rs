//! What the demonstration tells.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use forager_core::hierarchy::{Mode, Priority, effective};
use forager_core::score::{Relevance, UrlSignals, score};
use forager_core::select::{SelectConfig, Selector};
use forager_core::sentinel::Risk;
use forager_core::sentinel::classify::{Classifier, NodeType};
use forager_core::url::FetchUrl;
use forager_crawl::audit::Auditor;
use forager_crawl::{NotFetched, PageLine};
use forager_frontier::{Embedded, Frontier as _};
use forager_site::demo::CRAWL_DELAY;
use forager_site::{Running, Seen, Site, checks};
use jiff::{SignedDuration, Timestamp};

use super::watchers::{Catches, Order};
use super::{CRAWL_SPEED, WATCH_SPEED};
use crate::output::{Format, Output};
use crate::store;

/// How many lines of a kind are shown.
const SHOWN: usize = 12;

/// By how much a request may arrive later than it was sent, on a machine that has much else to do.
const LATENESS: SignedDuration = SignedDuration::from_millis(100);

pub(super) struct Report {
    output: Output,
}

impl Report {
    pub(super) fn new() -> Self {
        Self { output: Output::new(Format::Table, &[]) }
    }

    fn title(&mut self, title: &str) -> anyhow::Result<()> {
        self.output.text("")?;
        self.output.text(title)?;
        self.output.text(&"-".repeat(title.len()))
    }

    pub(super) fn open(&mut self, running: &Running) -> anyhow::Result<()> {
        self.output.text("Six sites on this machine, crawled by the code that crawls the web.")?;
        for (host, address) in running.addresses() {
            self.output.text(&format!("  {host:11} {address}"))?;
        }
        self.output.flush()
    }

    /// The order of the pages, with reasons.
    pub(super) async fn order(&mut self, fetched: &Order, frontier: &Arc<Embedded>) -> anyhow::Result<()> {
        self.title("What was fetched, in which order, and why")?;
        for page in fetched.pages.iter().take(SHOWN) {
            let explained = frontier.explain(&page.collection, None, &page.url, page.at).await?;
            self.output.text(&format!(
                "  {:5.3}  {:4}  {:40}  {}",
                page.priority,
                words(page),
                short(&page.url),
                explained.priority.terms.join(", ")
            ))?;
        }
        let rest = fetched.pages.len().saturating_sub(SHOWN);
        self.output.text(&format!("  … and {rest} more"))?;
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for page in &fetched.pages {
            *counts.entry(words(page)).or_default() += 1;
        }
        let counts: Vec<String> = counts.iter().map(|(what, count)| format!("{what}: {count}")).collect();
        self.output.text(&format!("  {} pages; {}", fetched.pages.len(), counts.join(", ")))?;
        self.skipped(fetched)
    }

    fn skipped(&mut self, fetched: &Order) -> anyhow::Result<()> {
        self.title("Links that were not followed, and why")?;
        let mut rules: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
        for (url, rule) in &fetched.skipped {
            let known = rules.entry(rule).or_insert((0, url));
            known.0 += 1;
        }
        for (rule, (count, example)) in rules {
            self.output.text(&format!("  {count:5}  {rule}, such as {}", short(example)))?;
        }
        self.output.flush()
    }

    /// The changes of the office, and how soon they were seen.
    pub(super) fn changes(
        &mut self,
        site: &Site,
        catches: &Catches,
        (start, end): (Timestamp, Timestamp),
    ) -> anyhow::Result<()> {
        self.title("Changes at the office, and how soon they were seen")?;
        let classifier = Classifier::new(Vec::new())?;
        let (mut late, mut late_critical) = (Vec::new(), Vec::new());
        let (mut made, mut seen) = (0_u64, 0_u64);
        for (host, path, changes) in site.changes().filter(|(host, ..)| *host == "ured.demo") {
            let page =
                |url: &str| FetchUrl::parse(url).is_ok_and(|url| url.host() == host && url.path() == path);
            let looks: Vec<Timestamp> =
                catches.changes.iter().filter(|(url, ..)| page(url)).map(|(_, at, _)| *at).collect();
            for change in changes.times().iter().filter(|time| **time > start && **time < end) {
                made += 1;
                if let Some(look) = looks.iter().find(|look| *look >= change) {
                    seen += 1;
                    let lateness = look.duration_since(*change);
                    late.push(lateness);
                    let url = FetchUrl::parse(&format!("http://{host}{path}"))?;
                    if classifier.classify(&url, None).freshness_risk == Risk::Critical {
                        late_critical.push(lateness);
                    }
                }
            }
        }
        late.sort();
        for (url, at, line) in catches.changes.iter().take(SHOWN / 2) {
            let line = line.as_deref().map(|line| format!(": {}", shortened(line))).unwrap_or_default();
            self.output.text(&format!("  {}  {}{line}", at.strftime("%a %H:%M"), short(url)))?;
        }
        let looks = catches.looks;
        let median = late.get(late.len() / 2).map_or("-".to_owned(), |late| hours(*late));
        let longest = late.last().map_or("-".to_owned(), |late| hours(*late));
        let critical = late_critical.iter().max().map_or("-".to_owned(), |late| hours(*late));
        self.output.text(&format!(
            "  {made} changes, {seen} seen: half of them within {median}, all within {longest}, the {} critical ones within {critical}",
            late_critical.len()
        ))?;
        self.output.text(&format!(
            "  {looks} looks, {} of them answered \"not changed\" (304)",
            catches.not_changed
        ))?;
        self.output.flush()
    }

    /// What each order would have fetched first.
    pub(super) fn policies(&mut self, fetched: &Order) -> anyhow::Result<()> {
        self.title("What each order would have fetched first, of all that was found")?;
        let selector = Selector::new(SelectConfig::default())?;
        let classifier = Classifier::new(Vec::new())?;
        let pages: Vec<(FetchUrl, &PageLine)> =
            fetched.pages.iter().filter_map(|page| Some((FetchUrl::parse(&page.url).ok()?, page))).collect();
        let title = |page: &PageLine| page.title.clone().unwrap_or_default();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "priorities are from 0 to 1"
        )]
        let by_hierarchy = |page: &PageLine| (page.priority * 1000.0) as u32;
        // One that many pages link to comes before its equals, by as much as the queue gives it.
        let by_links = |page: &PageLine| {
            let best = u16::try_from(by_hierarchy(page)).ok().and_then(Priority::from_thousandths);
            let links = fetched.sighted(&page.url).pages;
            u32::from(effective(Mode::Linked, best.unwrap_or(Priority::ZERO), links).thousandths())
        };
        // Pages to start from came first, wherever links to them were found later.
        let by_arrival = |page: &PageLine| {
            let place = if page.depth == 0 { 0 } else { fetched.sighted(&page.url).place };
            u32::MAX - u32::try_from(place).unwrap_or(u32::MAX)
        };
        let by_score = |url: &FetchUrl, page: &PageLine| {
            let is_hub = classifier.classify(url, None).node_type == NodeType::Hub;
            u32::from(score(&never_visited(page, is_hub), page.at).score)
        };
        let table: [(&str, Vec<u32>); 6] = [
            ("hierarchy", pages.iter().map(|(_, page)| by_hierarchy(page)).collect()),
            ("linked", pages.iter().map(|(_, page)| by_links(page)).collect()),
            ("fifo", pages.iter().map(|(_, page)| by_arrival(page)).collect()),
            ("score", pages.iter().map(|(url, page)| by_score(url, page)).collect()),
            ("services", pages.iter().map(|(url, page)| selector.score(url, &title(page), "")).collect()),
            (
                "risk",
                pages.iter().map(|(url, _)| classifier.classify(url, None).freshness_risk as u32).collect(),
            ),
        ];
        for (order, worth) in table {
            let mut ranked: Vec<usize> = (0..pages.len()).collect();
            ranked.sort_by_key(|&index| std::cmp::Reverse(worth[index]));
            let first: Vec<&str> = ranked.iter().take(4).map(|&index| short(&pages[index].1.url)).collect();
            self.output.text(&format!("  {order:10}  {}", first.join("  ")))?;
        }
        self.output.flush()
    }

    /// Whether every host was treated as agreed, by our log and by that of the servers.
    pub(super) async fn politeness(
        &mut self,
        frontier: &Arc<Embedded>,
        running: &Running,
        watched_from: Timestamp,
    ) -> anyhow::Result<bool> {
        self.title("Was it polite?")?;
        let files = |key: &str| store::block_on(frontier.noted(&[key.to_owned()])).ok()?.pop().flatten();
        let mut auditor = Auditor::new("forager", &files);
        for row in frontier.fetches(0, usize::MAX).await? {
            auditor.fetch(row);
        }
        let audit = auditor.finish();
        for host in &audit.hosts {
            let gap = host
                .shortest_gap
                .map_or("-".to_owned(), |gap| format!("{}.{} s", gap / 1000, gap / 100 % 10));
            self.output.text(&format!(
                "  {:11} {:4} requests, at most {} under way, at least {gap} apart, robots.txt read {} times",
                host.host, host.fetches, host.most_in_flight, host.robots_read
            ))?;
        }
        for violation in &audit.violations {
            self.output.text(&format!("  NOT AS AGREED: {}: {}", violation.url, violation.what))?;
        }
        let seen = running.log().snapshot();
        let impolite = impolite(&seen, watched_from);
        for violation in impolite.iter().take(SHOWN) {
            self.output.text(&format!("  NOT AS AGREED, by the log of the servers: {violation}"))?;
        }
        self.output.text(&format!(
            "  by our own log: {} fetches, {} not as agreed; by the log of the servers: {} requests, {} not as agreed",
            audit.hosts.iter().map(|host| host.fetches).sum::<u64>(),
            audit.violations.len(),
            seen.len(),
            impolite.len(),
        ))?;
        Ok(audit.violations.is_empty() && impolite.is_empty())
    }

    pub(super) fn close(&mut self, took: Duration) -> anyhow::Result<()> {
        self.output.text("")?;
        self.output.text(&format!("All of this took {:.1} s.", took.as_secs_f64()))?;
        self.output
            .text("Now one of your own:  forager crawl https://www.example.org/ --contact you@example.org")?;
        self.output.flush()
    }
}

/// What the news score knows of a page that was never fetched.
fn never_visited(page: &PageLine, is_hub: bool) -> UrlSignals<'_> {
    UrlSignals {
        url: page.url.as_str().into(),
        visits: 0,
        last_visited: None,
        last_changed: None,
        topic_relevance: Relevance::default(),
        hub_depth: page.depth.into(),
        is_hub,
    }
}

/// What the servers have to complain of. The clock goes faster from `watched_from` on, and so does what a moment of ours is
/// on it.
fn impolite(seen: &[Seen], watched_from: Timestamp) -> Vec<checks::Violation> {
    let (watched, crawled): (Vec<Seen>, Vec<Seen>) =
        seen.iter().cloned().partition(|seen| seen.arrived >= watched_from);
    let of = |seen: &[Seen], speed: u32| {
        checks::politeness(seen, |host| checks::Rule {
            limit: if host == "slow.demo" { 1 } else { 2 },
            gap: if host == "slow.demo" { CRAWL_DELAY } else { SignedDuration::from_secs(2) },
            tolerance: LATENESS * i32::try_from(speed).unwrap_or(i32::MAX),
        })
    };
    [of(&crawled, CRAWL_SPEED), of(&watched, WATCH_SPEED)].concat()
}

fn words(page: &PageLine) -> String {
    match (page.status, &page.error) {
        (Some(status), None) => status.to_string(),
        _ if page.not_fetched == Some(NotFetched::Robots) => "robots".to_owned(),
        _ => "none".to_owned(),
    }
}

/// A URL without what is the same for all.
fn short(url: &str) -> &str {
    url.strip_prefix("http://").unwrap_or(url)
}

fn shortened(line: &str) -> String {
    line.chars().take(60).collect()
}

fn hours(length: SignedDuration) -> String {
    let minutes = length.as_mins();
    format!("{}h {:02}m", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};

    use forager_frontier::{Options, Settings};
    use forager_site::{Server, demo_site};

    use super::*;

    /// Asks for a page without a word of robots.txt, and without a pause.
    fn ask(address: SocketAddr, host: &str) {
        let mut connection = TcpStream::connect(address).unwrap();
        let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        connection.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_only_the_servers_have_seen_counts_too() {
        let folder = tempfile::tempdir().unwrap();
        let frontier = Embedded::open(folder.path(), Settings::default(), Options::default()).unwrap();
        let frontier = Arc::new(frontier);
        for (requests, is_polite) in [(1, true), (40, false)] {
            let running = Server::start(demo_site(1), Timestamp::now).await.unwrap();
            let (host, address) = ("shop.demo", running.addresses()["shop.demo"]);
            let asking = tokio::task::spawn_blocking(move || (0..requests).for_each(|_| ask(address, host)));
            asking.await.unwrap();
            let mut report = Report { output: Output::new(Format::Table, &[]) };
            let verdict = report.politeness(&frontier, &running, Timestamp::MAX).await.unwrap();
            assert_eq!(verdict, is_polite, "{requests} requests");
            running.stop().await;
        }
    }
}
