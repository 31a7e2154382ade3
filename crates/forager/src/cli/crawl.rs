//! The commands that crawl, and the one that proves how.

use std::path::PathBuf;

use clap::Args;
use forager_core::time::{Interval, IntervalError};

use super::work::at_least_one;
use super::{HarvestArgs, QueuePlace, StoreArgs};
use crate::config::{AT_ONCE, check_contact};
use crate::journal::LogFormat;

/// Who asks, where requests may go, and how soon one follows another.
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// Where those who are crawled can learn more or complain: a web page or an address for mail
    /// [default: `contact` of `[fetch]` in the configuration]
    #[arg(long, value_name = "URL", value_parser = contact)]
    pub(crate) contact: Option<String>,

    /// Allow requests to private and loopback addresses
    #[arg(long)]
    pub(crate) allow_private: bool,

    /// The wait between two fetches from one host, such as 2s or 0s [default: random, 2s to 5s]
    #[arg(long, value_name = "TIME")]
    pub(crate) delay: Option<Interval>,
}

/// How a crawl fetches, and what it tells meanwhile.
#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    #[command(flatten)]
    pub(crate) ask: AskArgs,

    /// How many fetches may be under way altogether, 1 to 10000 [default: 64]
    #[arg(long, value_name = "N", value_parser = at_once)]
    pub(crate) at_once: Option<usize>,

    /// How many fetches from one host may be under way [default: 2]
    #[arg(long, value_name = "N", value_parser = at_least_one::<u32>)]
    pub(crate) in_flight: Option<u32>,

    /// Do not tell on standard error how far it is; only what is wrong
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// How to tell on standard error what happens
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) log: LogFormat,
}

/// A span of time that is one.
fn some_time(text: &str) -> Result<Interval, String> {
    let interval: Interval = text.parse().map_err(|error: IntervalError| error.to_string())?;
    if interval == Interval::default() { Err("not more than nothing".to_owned()) } else { Ok(interval) }
}

fn contact(text: &str) -> Result<String, String> {
    check_contact(text).map(|()| text.to_owned())
}

fn at_once(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| AT_ONCE.contains(number));
    number.ok_or_else(|| format!("not a whole number from {} to {}", AT_ONCE.start(), AT_ONCE.end()))
}

/// Crawl sites once: fetch every page in scope, politely and in order
///
/// Prints a line for each page to --out, and a summary at the end. Ctrl-C finishes what is under way;
/// the same command goes on where it stopped. A second Ctrl-C stops at once, and loses nothing either.
///
/// Exit status:
///    0  all is done, or as many pages are fetched as --limit allows
///    2  a flag is wrong
///    3  the disk is full
///    4  something else that was asked for, or the configuration, is wrong: trying again will not help
///    8  the queue cannot be had: another process has it, its folder cannot be written, or its database cannot be reached
///    9  every page to start from failed, and not each of them for good, so that no page was had
///   11  it was stopped
///   13  it was stopped at once
///   14  it read as many bytes as --bytes allows
///   15  it worked as long as --time allows
///   17  a person has to look: what is left is at hosts that are blocked or at their limit, or the queue is damaged
///   18  all that was not had was refused by hosts that are asked too often (429, 503): try again later
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "Example:\n  $ forager crawl https://www.example.org/ --depth 2 --contact me@example.com --out pages.jsonl"
)]
pub(crate) struct CrawlArgs {
    /// Where to start
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,

    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,

    /// Read this sitemap or feed too, and fetch what it lists if that is in scope; may be repeated. A URL to start from
    /// may be one as well
    #[arg(long, value_name = "URL")]
    pub(crate) sitemap: Vec<String>,

    /// Stop after so many fetches. The same command with a higher limit, or none, goes on
    #[arg(long, visible_alias = "pages", value_name = "N", value_parser = at_least_one::<u64>)]
    pub(crate) limit: Option<u64>,

    /// Stop after so many bytes
    #[arg(long, value_name = "N", value_parser = at_least_one::<u64>)]
    pub(crate) bytes: Option<u64>,

    /// Stop after so much time at work: the time between two commands that go on with the same job does not count. What is
    /// under way then is finished, which takes as long as one fetch may (`timeout` in `[fetch]`)
    #[arg(long = "time", value_name = "TIME", value_parser = some_time)]
    pub(crate) duration: Option<Interval>,

    /// The name of the job, and of its collection [default: made from the URLs and the scope, so that the same
    /// command goes on with it; it is told at the start]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) files: FilesArgs,

    /// Show what would be fetched first, and why; fetch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) fetch: FetchArgs,

    #[command(flatten)]
    pub(crate) place: QueuePlace,
}

/// Keep crawling: everything that is enabled, for as long as it runs
///
/// Brings the collections, profiles and seeds of the configuration into the queue, starts the seeds that are
/// new, and comes back to every page when its schedule says so. Ctrl-C or SIGTERM finishes what is under way; SIGHUP
/// does that too, and then goes on with the configuration read again, or with the one before if that is broken.
///
/// Exit status:
///    0  nothing is due, and --until-idle was given
///    2  a flag is wrong
///    3  the disk is full
///    4  something else that was asked for, or the configuration, is wrong: trying again will not help
///    8  the queue cannot be had: another process has it, its folder cannot be written, or its database cannot be reached
///   11  it was stopped, and finished what was under way
///   13  it was stopped at once
///   17  a person has to look: what is left for --until-idle is at hosts that are blocked or at their limit, or the queue
///       is damaged
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "Example:\n  $ forager run --config forager.toml --changes changes.jsonl"
)]
pub(crate) struct RunArgs {
    /// Only this collection
    #[arg(long, value_name = "NAME")]
    pub(crate) collection: Option<String>,

    #[command(flatten)]
    pub(crate) files: FilesArgs,

    /// Write a line of JSON for each change that is found, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) changes: Option<PathBuf>,

    /// Run this command for each change that is found, with the line of JSON as its input. What it prints goes to
    /// standard error
    #[arg(long, value_name = "COMMAND")]
    pub(crate) on_change: Option<String>,

    /// Stop when nothing is due any more, instead of waiting
    #[arg(long)]
    pub(crate) until_idle: bool,

    #[command(flatten)]
    pub(crate) fetch: FetchArgs,

    #[command(flatten)]
    pub(crate) place: QueuePlace,
}

/// What is written down of a crawl
#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    /// Write a line of JSON for each page to this file, `-` for standard output. The summary of `crawl` goes to standard
    /// error then
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Write a line of JSON for each link that was not followed, and why
    #[arg(long, value_name = "FILE")]
    pub(crate) skipped: Option<PathBuf>,

    /// Write a log in the form of Heritrix's crawl.log
    #[arg(long, value_name = "FILE")]
    pub(crate) crawl_log: Option<PathBuf>,
}

/// Watch a few pages, and print what changes on them
///
/// Each page is looked at as often as it changes: at first within hours, a quiet one ever more seldom, an important one
/// never less than every four hours. What was learned is kept in the queue, in the collection `watch`.
///
/// Pages that were watched before are in that collection too: they are looked at as well, when they are due, and
/// --every, --content and --exact hold for them from then on. "forager seed remove URL" ends that; --data DIR with
/// a folder of its own keeps pages apart.
///
/// Exit status:
///    2  a flag is wrong
///    3  the disk is full
///    4  something else that was asked for, or the configuration, is wrong: trying again will not help
///    8  the queue cannot be had: another process has it, its folder cannot be written, or its database cannot be reached
///   11  it was stopped, and finished what was under way
///   13  it was stopped at once
///   17  the queue is damaged, so that a person has to look
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "Example:\n  $ forager watch https://www.example.org/rules --every 1h --contact me@example.com"
)]
pub(crate) struct WatchArgs {
    /// The pages
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,

    /// Look at each page this often, instead of as often as it changes
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) every: Option<Interval>,

    /// The part of a page that counts, as a CSS selector such as `main` or `#content`
    #[arg(long, value_name = "CSS", value_parser = super::css)]
    pub(crate) content: Option<String>,

    /// Count every change of a byte, not only of what a page says
    #[arg(long)]
    pub(crate) exact: bool,

    /// Run this command for each change that is found, with a line of JSON as its input. What it prints goes to
    /// standard error
    #[arg(long, value_name = "COMMAND")]
    pub(crate) on_change: Option<String>,

    /// Print changes as JSON Lines
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) fetch: FetchArgs,

    #[command(flatten)]
    pub(crate) place: QueuePlace,
}

/// Prove from the log of fetches that every host was treated as agreed
///
/// No more fetches under way than the limit of the host, no two requests closer together than its gap, nothing that
/// its robots.txt forbade. Prints what each host can be shown: how many requests were under way at most, and how many could be
/// then (`mostAllowed`); the shortest time between two, and what was due there (`gapDue`), in milliseconds like `crawlDelay`, the
/// longest that its robots.txt asked for; the names that were used; and in `robots` (JSON) what was known of robots.txt from
/// when on. Each fetch that was wrong is named on standard error; with JSON Lines it is a line too, after the hosts, with
/// `host`, `url`, `at` and `what`. The log is judged as a whole: `--now` changes nothing.
///
/// Exit status:
///    0  nothing was wrong
///    1  something was
///    2  a flag is wrong
///    4  something else that was asked for, or the configuration, is wrong: trying again will not help
///    8  the queue cannot be had: another process has it, its folder cannot be written, or its database cannot be reached
///   17  the queue is damaged, so that a person has to look
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = "Example:\n  $ forager audit --host www.example.org")]
pub(crate) struct AuditArgs {
    /// Only this host
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,

    /// Show a robots.txt that was obeyed instead: the text that is known by this, as `file` of `robots` has it
    #[arg(long, value_name = "NAME", conflicts_with = "host")]
    pub(crate) robots_text: Option<String>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
