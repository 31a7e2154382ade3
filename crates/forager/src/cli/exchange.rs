//! The commands that follow a queue, take it elsewhere, and look after it.

use std::path::PathBuf;

use clap::Args;

use super::StoreArgs;

/// Print what happened: changes found, pages given up or removed, what clients put, jobs finished
///
/// Each row has its `position`; `--from` goes on from one.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ forager lease --collection news --now 2024-06-16T09:00:00Z | grep -o '^{"token":[0-9]*'
  {"token":3
  $ echo '{"token":3,"status":200,"fingerprint":"7d793037"}' | forager complete --now 2024-06-16T09:00:01Z
  {"token":3,"outcome":"again","changed":true,"due":"2024-06-17T09:00:01Z","rule":"6: too early (daily: every 24h)"}
  $ forager events
  {"position":0,"at":"2024-06-16T09:00:01Z","collection":"news","subject":"https://www.db.no/","event":{"changed":{"from":"5d41402a","to":"7d793037","difference":{"added":[],"removed":[]}}}}"#
)]
pub(crate) struct EventsArgs {
    /// The position to begin at
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) from: u64,

    /// How many at most [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,

    /// Go on and print what happens, until Ctrl-C
    ///
    /// Looks once a second, and leaves the queue to other commands in between.
    #[arg(long, verbatim_doc_comment)]
    pub(crate) follow: bool,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Write collections as JSON Lines, with all it takes to build them again
///
/// A collection begins with a line about itself, what it has counted, its profiles, seeds, and what is set for and
/// known of its hosts; each entry follows on a line of its own. At the end stand the fetches and events of all of them, in
/// their order. A file is put in place when it is complete.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ forager export --collection news news.jsonl
  {"collection":"news","entries":2}
  $ wc -l < news.jsonl
  4"#
)]
pub(crate) struct ExportArgs {
    /// The file to write [default: standard output]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Only this collection
    #[arg(long, value_name = "NAME")]
    pub(crate) collection: Option<String>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Take in what was exported
///
/// Collections, profiles and seeds are made where they are not there yet; what is there stays as it
/// is, and what is in the logs already is not written again. Prints each change, then how many entries were `added` and `present`, and how many lines were
/// `bad`. A collection that is refused is passed over with all that belongs to it.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ forager import news.jsonl --data copy
  {"change":"added","kind":"collection","name":"news"}
  {"change":"added","kind":"profile","name":"daily"}
  {"change":"added","kind":"seed","name":"https://www.db.no/"}
  {"added":2,"present":0,"bad":0}"#
)]
pub(crate) struct ImportArgs {
    /// Files to read, `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Take the first collection in under this name, and pass over others
    #[arg(long, value_name = "NAME")]
    pub(crate) collection: Option<String>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Copy the queue as it is now into another folder
///
/// The copy is a queue by itself: `--data` takes it.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ forager backup monday
  $ forager collection list --data monday | grep -o '"id":"[a-z]*"'
  "id":"news"
  "id":"acme""#
)]
pub(crate) struct BackupArgs {
    /// The folder to write; it must not be there yet
    #[arg(value_name = "DIR")]
    pub(crate) target: PathBuf,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Verify every invariant of the queue
///
/// Prints a row for each thing that is wrong, with its `place` and the `problem`, and one that counts
/// what was looked at. The exit status is 1 if anything is wrong.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ forager check
  {"entries":4,"queues":2,"hosts":2,"leases":0,"findings":0}"#
)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
