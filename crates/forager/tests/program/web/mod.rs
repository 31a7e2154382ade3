//! Webs on loopback for the real binary to crawl, and what they saw.

#![allow(dead_code, reason = "each test file takes what it needs")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

pub(crate) mod names;
pub(crate) mod raw;
pub(crate) mod secure;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use forager_site::checks::{self, Rule};
use forager_site::{Answer, Host, Markup, Running, Seen, Server, Site};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::common::{Queue, Ran, run_command};

/// Longer than anything takes that works, also on a machine with much else to do.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// Two signals that are so far apart are two wishes.
pub(crate) const ANOTHER_WISH: Duration = Duration::from_secs(1);

/// By how much a request may arrive later than it was sent: a busy machine takes its time.
pub(crate) const TOLERANCE: SignedDuration = SignedDuration::from_millis(120);

/// Settings with which tests end soon. `[fetch]` is last, so that what follows goes on with it.
const SOON: &str = r#"
[politeness]
delay = "50ms"
max_delay = "50ms"
back_off = "100ms"
max_back_off = "400ms"
[retry]
first = "100ms"
longest = "400ms"
refused = 2
failed = 2
[fetch]
"#;

/// Who asks, in all tests that do not say otherwise.
pub(crate) const CONTACT: &str = "tests@forager.example";

/// A served web, and a queue with a configuration that knows its names.
pub(crate) struct Field {
    runtime: Runtime,
    site: Site,
    running: Option<Running>,
    /// What servers saw that were stopped since.
    before: Vec<Seen>,
    port: u16,
    pub(crate) queue: Queue,
}

impl Field {
    /// Serves a web, and may connect to it.
    pub(crate) fn new(site: Site) -> Self {
        let field = Self::strict(site);
        field.configure(&format!("contact = {CONTACT:?}\nallow_addresses = [\"127.0.0.0/8\"]\n"));
        field
    }

    /// Serves a web, with nothing allowed that is not by default.
    pub(crate) fn strict(site: Site) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let running = runtime.block_on(Server::start(site.clone(), Timestamp::now)).unwrap();
        let (port, before, queue) = (running.port(), Vec::new(), Queue::nowhere());
        let field = Self { runtime, site, running: Some(running), before, port, queue };
        field.configure("");
        field
    }

    /// Writes the configuration: `[fetch]` with these lines, and perhaps more sections.
    pub(crate) fn configure(&self, lines: &str) {
        let overrides = self.running.as_ref().unwrap().overrides();
        let resolve = overrides.iter().map(|(name, addresses)| format!("{name:?} = [\"{}\"]", addresses[0]));
        let resolve = resolve.collect::<Vec<_>>().join(", ");
        let text = format!("{SOON}resolve = {{ {resolve} }}\n{lines}");
        std::fs::write(self.file("forager.toml"), text).unwrap();
    }

    /// Puts other lines into the configuration.
    #[track_caller]
    pub(crate) fn set(&self, line: &str, other: &str) {
        let text = std::fs::read_to_string(self.file("forager.toml")).unwrap();
        assert!(text.contains(line), "{text}");
        std::fs::write(self.file("forager.toml"), text.replace(line, other)).unwrap();
    }

    /// A file beside the queue.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.queue.folder().join(name)
    }

    pub(crate) fn url(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }

    /// Ends the server; what it saw is kept.
    pub(crate) fn stop(&mut self) {
        let running = self.running.take().unwrap();
        let log = running.log().clone();
        self.runtime.block_on(running.stop());
        self.before.extend(log.snapshot());
    }

    /// Serves the same web at the same place again.
    pub(crate) fn serve_again(&mut self) {
        let site = self.site.clone().port(self.port);
        self.running = Some(self.runtime.block_on(Server::start(site, Timestamp::now)).unwrap());
    }

    /// All requests, in the order of arrival.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let now = self.running.as_ref().map(|running| running.log().snapshot()).unwrap_or_default();
        self.before.iter().cloned().chain(now).collect()
    }

    /// What was requested of a host, in the order of arrival, without robots.txt.
    pub(crate) fn paths(&self, host: &str) -> Vec<String> {
        let of_host = self.seen().into_iter().filter(|seen| *seen.host == *host);
        of_host.map(|seen| seen.path).filter(|path| path != "/robots.txt").collect()
    }

    /// How often each path of a host was requested, without robots.txt.
    pub(crate) fn counts(&self, host: &str) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        self.paths(host).into_iter().for_each(|path| *counts.entry(path).or_default() += 1);
        counts
    }

    /// When a path of a host was requested.
    pub(crate) fn times(&self, host: &str, path: &str) -> Vec<Timestamp> {
        let wanted = |seen: &Seen| *seen.host == *host && seen.path == path;
        self.seen().into_iter().filter(wanted).map(|seen| seen.arrived).collect()
    }

    /// Waits until so many requests for pages of a host have come.
    #[track_caller]
    pub(crate) fn wait_for(&self, host: &str, count: usize) {
        wait_until(&format!("{count} requests to {host}"), || self.paths(host).len() >= count);
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        run_command(&mut self.queue.command(args), "")
    }

    /// Crawls from a page of a host, with a line for each page in `pages.jsonl`.
    pub(crate) fn crawl(&self, host: &str, more: &[&str]) -> Ran {
        run_command(&mut self.crawl_command(host, more), "")
    }

    /// The same, ready to be started. It tells only what is wrong.
    pub(crate) fn crawl_command(&self, host: &str, more: &[&str]) -> Command {
        let start = self.url(host, "/");
        self.queue.command(&[&["crawl", &start, "--out", "pages.jsonl", "--json", "--quiet"], more].concat())
    }

    /// The lines of a file beside the queue.
    #[track_caller]
    pub(crate) fn lines(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.file(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The line of `pages.jsonl` on a page, of which there must be one.
    #[track_caller]
    pub(crate) fn line(&self, host: &str, path: &str) -> Value {
        let url = self.url(host, path);
        let mut lines: Vec<Value> = self.lines("pages.jsonl");
        lines.retain(|line| line["url"] == url.as_str());
        assert_eq!(lines.len(), 1, "{url}: {lines:?}");
        lines.pop().unwrap()
    }

    /// Requires that no request came too soon or with too many others, by the log of the server.
    #[track_caller]
    pub(crate) fn assert_polite(&self, limit: usize, gap: Duration) {
        let rule = Rule { limit, gap: gap.try_into().unwrap(), tolerance: TOLERANCE };
        let found: Vec<String> =
            checks::politeness(&self.seen(), |_| rule).iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "{found:#?}");
    }

    /// Requires a clean audit whose figures are those of the server.
    #[track_caller]
    pub(crate) fn assert_audit(&self) -> Vec<Value> {
        let rows = self.run(&["audit", "--json"]).good_rows();
        let mut told: BTreeMap<String, u64> = BTreeMap::new();
        for row in &rows {
            told.insert(row["host"].as_str().unwrap().to_owned(), row["fetches"].as_u64().unwrap());
        }
        let mut counted: BTreeMap<String, u64> = BTreeMap::new();
        self.seen().iter().for_each(|seen| *counted.entry(seen.host.to_string()).or_default() += 1);
        assert_eq!(told, counted, "fetches by host: the audit, and what the server saw");
        rows
    }
}

/// Whatever a test is about, every host was treated as agreed.
impl Drop for Field {
    fn drop(&mut self) {
        // A test that fails has said why; and not every one has a queue, or leaves one that can be read.
        if std::thread::panicking() || !self.file("forager-data").exists() {
            return;
        }
        let audit = self.run(&["audit", "--json"]);
        assert_ne!(audit.status, 1, "not as agreed: {audit:?}");
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A command that runs while a test goes on. It does not outlive the test.
pub(crate) struct Started(Child);

impl Started {
    pub(crate) fn new(command: &mut Command) -> Self {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(quiet.spawn().unwrap())
    }

    /// The same, with what it tells in a file that can be read meanwhile.
    pub(crate) fn telling(command: &mut Command, file: &std::path::Path) -> Self {
        let file = std::fs::File::create(file).unwrap();
        Self(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file).spawn().unwrap())
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Sends a signal, by its name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Reads no more of what it writes.
    pub(crate) fn desert(&mut self) {
        drop(self.0.stdout.take());
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ran {
        wait_until("a command to end", || self.0.try_wait().unwrap().is_some());
        let status = self.0.wait().unwrap().code().unwrap_or(-1);
        let read = |stream: Option<&mut dyn std::io::Read>| {
            let mut text = String::new();
            stream.map(|stream| stream.read_to_string(&mut text).unwrap());
            text
        };
        let stdout = read(self.0.stdout.as_mut().map(|stream| stream as &mut dyn std::io::Read));
        let stderr = read(self.0.stderr.as_mut().map(|stream| stream as &mut dyn std::io::Read));
        Ran { stdout, stderr, status }
    }

    /// Ends it without a word, as a crash would.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and need not be.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A page with a title and links to these paths.
pub(crate) fn page(title: &str, links: &[&str]) -> Answer {
    Answer::html(Markup::new(title).links(links.iter().map(|to| (*to, *to))).finish())
}

/// A host whose home page links to `/1` and so on.
pub(crate) fn plain_host(name: &str, pages: usize) -> Host {
    let paths: Vec<String> = (1..=pages).map(|number| format!("/{number}")).collect();
    let links: Vec<&str> = paths.iter().map(String::as_str).collect();
    let host = Host::new(name).page("/", page("Home", &links));
    paths.iter().fold(host, |host, path| host.page(path, page(path, &["/"])))
}

/// The home page and the pages of [`plain_host`], each requested so many times.
pub(crate) fn each(pages: usize, times: usize) -> BTreeMap<String, usize> {
    let paths = (1..=pages).map(|number| format!("/{number}"));
    paths.chain(["/".to_owned()]).map(|path| (path, times)).collect()
}
