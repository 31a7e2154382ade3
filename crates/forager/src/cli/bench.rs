//! The command that measures.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use forager_core::time::Interval;

use super::work::at_least_one;
use crate::config::DatabaseUrl;
use crate::output::Format;

/// Measure Forager on this machine
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Frontier(BenchFrontierArgs),
    Urlfrontier(BenchUrlfrontierArgs),
}

/// Measure the queue: rates, times of calls, disk, memory and reopening
///
/// URLs of about 75 bytes on hosts whose sizes follow Zipf's law, one in ten found again. Every rate is
/// told as a multiple of the floor, measured in the same run: the raw storage engine writing the same URLs
/// as bare keys, without a look-up. Hosts wait by a clock of the benchmark's own, so that politeness costs no
/// time. Prints `what`, `perSecond`, `timesFloor`, `p50`, `p99` and `max` (milliseconds a call), `bytes`,
/// `bytesPerUrl` and `seconds`.
///
/// Ten million URLs need about 4 GB of disk, 1.2 GB of memory and some minutes.
///
/// With `--store` the queue is in that database, in a schema of its own which is dropped at the end. The floor is
/// then a bare INSERT of the same URLs. Measured in the same run are claims at each number of pending URLs, workers
/// that claim and complete side by side, a minimal queue table (FOR UPDATE SKIP LOCKED) with as many workers, the
/// query by which a plan of priorities in one view acquires a task, and claims from queues of several shapes: one host or
/// as many as URLs, hardly anything due, after much coming and going. Prints the settings of the server, and last how
/// far the goals are met: `goal`, `measured`, `wanted`, `met`.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "Example:\n  $ forager bench frontier --urls 2000 --hosts 20 | grep -c perSecond\n  13"
)]
pub(crate) struct BenchFrontierArgs {
    /// How many URLs
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(crate) urls: u64,

    /// How many hosts
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) hosts: u64,

    /// The database to measure the queue in, such as `postgres://user@host/name`
    #[arg(long, value_name = "URL", conflicts_with_all = ["dir", "keep", "urls"])]
    pub(crate) store: Option<DatabaseUrl>,

    /// The numbers of pending URLs that claims are measured at, in a database
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [40_000, 400_000], requires = "store")]
    pub(crate) pending: Vec<u64>,

    /// How many workers claim and complete side by side, in a database
    #[arg(long, value_name = "N", default_value_t = 8, requires = "store")]
    pub(crate) workers: usize,

    /// For how long they do, in a database
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "store")]
    pub(crate) time: Interval,

    /// The folder to work in; what is made there is removed at the end [default: that for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// Leave the store behind
    #[arg(long)]
    pub(crate) keep: bool,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// The part that a child process does
    #[arg(long, hide = true)]
    pub(crate) part: Option<BenchPart>,
}

/// Measure a server of URLFrontier: that of Forager, or any other
///
/// Puts URLs one by one and in batches of 500, new and known; then goes through the life of pages: gets 100 queues of 10
/// URLs, reports each as fetched with 5 new and 5 known links, several clients at a time; then gets what little is due of
/// many queues. Every rate of putting is told as a multiple of the floor, measured in the same run: a server that
/// acknowledges without keeping anything.
///
/// Without an address it starts a server of its own, in a folder that is removed at the end, and tells memory and disk
/// too. The server that is measured is filled, and its delay set to 0: give none that is in use. Prints the same as
/// `bench frontier`.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "Example:\n  $ forager bench urlfrontier --urls 2000 --queues 200 | grep -c perSecond\n  15"
)]
pub(crate) struct BenchUrlfrontierArgs {
    /// The server to measure, such as `127.0.0.1:7071` or `https://queue.example:7071` [default: one of our own]
    #[arg(value_name = "ADDRESS")]
    pub(crate) address: Option<String>,

    /// How many URLs are put in each way
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = at_least_one::<u64>)]
    pub(crate) urls: u64,

    /// How many queues there are when few of them have something due
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = at_least_one::<u64>)]
    pub(crate) queues: u64,

    /// How many clients go through the life of pages at a time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = at_least_one::<usize>)]
    pub(crate) workers: usize,

    /// Only be the server that acknowledges without keeping anything, on this port; 0 for any that is free
    #[arg(long, value_name = "PORT", conflicts_with = "address")]
    pub(crate) echo: Option<u16>,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// What a child process does for the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchPart {
    /// Write bare keys.
    Floor,
    /// Open the store, write, and wait to be killed.
    Hold,
}

impl BenchPart {
    /// Its name on the command line.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Hold => "hold",
        }
    }
}
