//! The command that shows what Forager does.

use clap::Args;

/// Crawl a small web of our own, and show what happens and why
///
/// Starts six sites on loopback addresses: a shop, a news hub, an office whose rules change, a slow one, one with traps and
/// one with errors. Crawls them with the production code, on a clock that goes faster than yours, then watches the office for some
/// days. Shows the order of the pages with reasons, the changes caught and how soon, an audit of its politeness from both
/// sides, and what each order would have fetched first. Takes less than half a minute, and leaves nothing behind.
///
/// Exit status 1 if a host was not treated as agreed.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = "Example:\n  $ forager demo --days 2")]
pub(crate) struct DemoArgs {
    /// What the web and its changes are made from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// How many days the office is watched
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) days: u32,
}
