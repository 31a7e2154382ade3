//! The server as a process of its own, and words for what its clients say.

#![allow(dead_code, reason = "each test file takes what it needs")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

pub(crate) mod lasting;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use forager_server::proto::ack_message::Status as Ack;
use forager_server::proto::get_params::Item as Of;
use forager_server::proto::url_frontier_client::UrlFrontierClient;
use forager_server::proto::url_item::Item;
use forager_server::proto::{
    DiscoveredUrlItem, GetParams, KnownUrlItem, ListUrlParams, QueueWithinCrawlParams, Stats, UrlInfo,
    UrlItem,
};
use futures_util::stream;
use tonic::transport::Channel;

/// A server that listens.
pub(crate) struct Serving {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) line: String,
    pub(crate) port: u16,
}

impl Serving {
    /// Starts a command, and waits until it listens.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let port = line.trim_end().strip_prefix("Started URLFrontierServer on port ");
        let port = port.unwrap_or_else(|| {
            let mut problem = String::new();
            child.stderr.take().unwrap().read_to_string(&mut problem).unwrap();
            panic!("it does not listen: {line:?} {problem}")
        });
        Self { port: port.parse().unwrap(), child, stdout, line }
    }

    pub(crate) async fn client(&self) -> UrlFrontierClient<Channel> {
        UrlFrontierClient::new(self.channel().await)
    }

    /// A connection, for clients of whatever it serves.
    pub(crate) async fn channel(&self) -> Channel {
        Channel::from_shared(format!("http://127.0.0.1:{}", self.port)).unwrap().connect().await.unwrap()
    }

    /// What it has told on standard error so far comes with its end.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// The most memory that it has had so far, in MiB.
    #[cfg(target_os = "linux")]
    pub(crate) fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() / 1024
    }

    /// How many files it has open.
    #[cfg(target_os = "linux")]
    pub(crate) fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// Asks it to end, and waits for that. Tells its status and what it wrote to standard error.
    pub(crate) fn stop(self) -> (i32, String) {
        self.signal("TERM");
        self.ended()
    }

    /// Waits for its end.
    pub(crate) fn ended(mut self) -> (i32, String) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "one line is all it prints");
        let mut told = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        (self.child.wait().unwrap().code().unwrap(), told)
    }

    /// Kills it, as sudden as can be.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It has ended already, unless a test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody listens on, most likely also a moment later.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// What a server says of a path; nothing if it is not there.
pub(crate) fn page(port: u16, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let mut page = String::new();
    if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port))
        && stream.write_all(request.as_bytes()).is_ok()
    {
        // One that ends meanwhile has said what it has.
        let _ = stream.read_to_string(&mut page);
    }
    page
}

pub(crate) fn info(url: &str, key: &str) -> UrlInfo {
    UrlInfo { url: url.into(), key: key.into(), ..UrlInfo::default() }
}

pub(crate) fn found(info: UrlInfo) -> UrlItem {
    UrlItem { item: Some(Item::Discovered(DiscoveredUrlItem { info: Some(info) })), ..UrlItem::default() }
}

pub(crate) fn known(info: UrlInfo, date: u64) -> UrlItem {
    let item = KnownUrlItem { info: Some(info), refetchable_from_date: date };
    UrlItem { item: Some(Item::Known(item)), ..UrlItem::default() }
}

/// Puts items that must all be taken.
pub(crate) async fn put(client: &mut UrlFrontierClient<Channel>, items: Vec<UrlItem>) {
    let count = items.len();
    let mut answers = client.put_ur_ls(stream::iter(items)).await.unwrap().into_inner();
    let mut taken = 0;
    while let Some(ack) = answers.message().await.unwrap() {
        assert_eq!(Ack::try_from(ack.status), Ok(Ack::Ok), "{ack:?}");
        taken += 1;
    }
    assert_eq!(taken, count);
}

/// One URL of each queue at most, held for ten hours.
pub(crate) fn one_of_each() -> GetParams {
    GetParams { max_urls_per_queue: 1, delay_requestable: 36_000, ..GetParams::default() }
}

/// Those of one queue.
pub(crate) fn of_queue(key: &str, most: u32) -> GetParams {
    let item = Some(Of::CrawlId(String::new()));
    GetParams { key: key.into(), max_urls_per_queue: most, item, ..one_of_each() }
}

/// Those of a crawl, of one queue or of all.
pub(crate) fn of_crawl(crawl: &str, key: &str, most: u32) -> GetParams {
    GetParams { item: Some(Of::CrawlId(crawl.into())), ..of_queue(key, most) }
}

pub(crate) async fn get(client: &mut UrlFrontierClient<Channel>, params: GetParams) -> Vec<String> {
    let mut answers = client.get_ur_ls(params).await.unwrap().into_inner();
    let mut urls = Vec::new();
    while let Some(info) = answers.message().await.unwrap() {
        urls.push(info.url);
    }
    urls
}

pub(crate) async fn stats(client: &mut UrlFrontierClient<Channel>, key: &str) -> Stats {
    let params = QueueWithinCrawlParams { key: key.into(), ..QueueWithinCrawlParams::default() };
    client.get_stats(params).await.unwrap().into_inner()
}

pub(crate) async fn all_urls(client: &mut UrlFrontierClient<Channel>) -> Vec<String> {
    let params = ListUrlParams { size: u32::MAX, ..ListUrlParams::default() };
    let mut answers = client.list_ur_ls(params).await.unwrap().into_inner();
    let mut urls = Vec::new();
    while let Some(item) = answers.message().await.unwrap() {
        let Some(Item::Known(known)) = item.item else { panic!("{item:?}") };
        urls.push(known.info.unwrap().url);
    }
    urls
}
