//! The commands that fetch.

use std::path::PathBuf;

use clap::Args;
use forager_core::time::Interval;

use super::{HarvestArgs, QueuePlace};

/// Who asks, and where requests may go.
#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// Where those who are crawled can learn more or complain: a web page or an address for mail
    /// [default: `contact` of `[fetch]` in the configuration]
    #[arg(long, value_name = "URL")]
    pub(crate) contact: Option<String>,

    /// Allow requests to private and loopback addresses
    #[arg(long)]
    pub(crate) allow_private: bool,

    /// How many fetches may be under way altogether [default: 64]
    #[arg(long, value_name = "N")]
    pub(crate) at_once: Option<usize>,

    /// The wait between two fetches from one host, such as 2s or 0s [default: random, 2s to 5s]
    #[arg(long, value_name = "TIME")]
    pub(crate) delay: Option<Interval>,

    /// How many fetches from one host may be under way [default: 2]
    #[arg(long, value_name = "N")]
    pub(crate) in_flight: Option<u32>,
}

/// Crawl sites once: fetch every page in scope, politely and in order
///
/// Prints a line for each page to --out, and a summary at the end. Ctrl-C finishes what is under way;
/// the same command goes on where it stopped. A second Ctrl-C stops at once, and loses nothing either.
///
/// Exit status: 0 if all is done, 11 if it was stopped, 13 if it was stopped at once, 14 if it read as many
/// bytes as allowed, 15 if it worked as long as allowed, 2 if it cannot go on.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CrawlArgs {
    /// Where to start
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,

    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,

    /// Stop after so many fetches
    #[arg(long, visible_alias = "pages", value_name = "N")]
    pub(crate) limit: Option<u64>,

    /// Stop after so many bytes
    #[arg(long, value_name = "N")]
    pub(crate) bytes: Option<u64>,

    /// Stop after so long
    #[arg(long = "time", value_name = "TIME")]
    pub(crate) duration: Option<Interval>,

    /// The name of the job [default: made from the URLs and the scope, so that the same command goes on with it]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Write a line of JSON for each page to this file, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Write a line of JSON for each link that was not followed, and why
    #[arg(long, value_name = "FILE")]
    pub(crate) skipped: Option<PathBuf>,

    /// Write a log in the form of Heritrix's crawl.log
    #[arg(long, value_name = "FILE")]
    pub(crate) crawl_log: Option<PathBuf>,

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
