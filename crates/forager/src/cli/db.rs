//! The commands that look after a queue in a database.

use clap::{Args, Subcommand};

use super::{CheckArgs, StoreArgs};

/// Set up, look after and take down the schema of a queue in PostgreSQL
#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Bring the schema to the version that this program needs
    ///
    /// Makes it where it is not there yet. One process at a time does so, each step in a transaction of its own;
    /// others wait. Workers of an older version end at their next call: stop them before. Prints the steps taken.
    #[command(
        verbatim_doc_comment,
        after_long_help = r#"Example:
  $ forager db migrate | head -1
  {"version":1,"name":"queue","did":"up"}"#
    )]
    Migrate(DbArgs),
    /// Tell which steps the schema has taken, and which this program needs
    ///
    /// The exit status is 1 unless it is as this program needs it.
    #[command(
        verbatim_doc_comment,
        after_long_help = r#"Example:
  $ forager db status | grep -o '"version":1,"name":"queue","state":"taken"'
  "version":1,"name":"queue","state":"taken""#
    )]
    Status(DbArgs),
    /// Verify every invariant of the schema; the same as `forager check`
    ///
    /// Others may go on working: everything is seen as of one moment.
    #[command(
        verbatim_doc_comment,
        after_long_help = r#"Example:
  $ forager db check
  {"entries":0,"queues":0,"hosts":0,"leases":0,"findings":0}"#
    )]
    Check(CheckArgs),
    /// Take back steps, with all that lies in their tables
    #[command(
        verbatim_doc_comment,
        after_long_help = r#"Example:
  $ forager db down
  forager: this deletes the queue with all that is in it; say --yes to go on
  $ forager db down --yes | tail -1
  {"version":0,"name":"schema","did":"removed"}"#
    )]
    Down(DbDownArgs),
}

/// The database.
#[derive(Debug, Args)]
pub(crate) struct DbArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// How far down.
#[derive(Debug, Args)]
pub(crate) struct DbDownArgs {
    /// The version to go back to; 0 leaves nothing
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) to: i32,

    /// Delete what lies in the tables
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
