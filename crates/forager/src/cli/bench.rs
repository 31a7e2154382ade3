//! The command that measures.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use forager_core::time::Interval;

use crate::config::DatabaseUrl;
use crate::output::Format;

/// Measure Forager on this machine
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Frontier(BenchFrontierArgs),
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
/// that claim and complete side by side, a minimal queue table (FOR UPDATE SKIP LOCKED) with as many workers, and the
/// query by which a plan of priorities in one view acquires a task. Prints the settings of the server, and last how
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
