//! The commands that look into the queue, and that set its hosts.

use clap::{Args, Subcommand, ValueEnum};
use forager_core::time::Interval;
use forager_frontier::entry::State;
use jiff::Timestamp;

use super::{StoreArgs, kept_instant, named};

/// Say all that speaks for and against a URL, seen or never seen
///
/// Its forms; whether it is in scope, and the rule that says so; its priority, term by term; its
/// class; what its scans have taught; when it is due and why; each gate of its host; its place in
/// the queue; and, if it is not fetched now, what would have to change.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ forager explain https://www.db.no/ --format table --now 2024-06-15T08:04:00Z
  https://www.db.no/
  queued; not handed out now

    needs       scope has to allow it: 6: too early (daily: every 24h)
                its due time has to come: 2024-06-16T08:00:01Z
    collection  news
    now         2024-06-15T08:04:00Z
    scope       postpone: 6: too early (daily: every 24h)
                by seed https://www.db.no/, depth 0
    due         2024-06-16T08:00:01Z, in 23h 56m 1s: it was fetched at 2024-06-15T08:00:01Z; its interval followed
    host        www.db.no
                open: delay between fetches, back-off after failures, blocked, in-flight limit, fetch limit, robots.txt
    queue       number 2 of the 2 that wait at its host
    priority    1, order hierarchy
                1.000 as the homepage
    class       LEAF, MEDIUM risk
                no row matches
    changes     rate 0.5 after 1 scan: an interval of 8h
                velocity and MEDIUM risk give 8h
    fetches     2024-06-15T08:00:01Z, 3m 59s ago: 200
    found       2024-06-15T08:00:00Z, 4m ago, as a seed
    forms       requested as https://www.db.no/
                known as https://www.db.no/
                sorted as http://(no,db,www,)/"#
)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) entry: EntryArgs,
}

/// Which entries to list.
#[derive(Debug, Args)]
pub(crate) struct QueueListArgs {
    /// Of this collection
    #[arg(long, value_name = "NAME")]
    pub(crate) collection: Option<String>,

    /// Of this host
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,

    /// In this state
    #[arg(long, value_parser = named::<State>(&["queued", "leased", "done", "failed"]))]
    pub(crate) state: Option<State>,

    /// Whose URL starts with this
    #[arg(long, value_name = "TEXT")]
    pub(crate) prefix: Option<String>,

    /// Whose URL contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) contains: Option<String>,

    /// How many at most [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,

    /// Go on after the entry with this `id`
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<u32>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Which entry.
#[derive(Debug, Args)]
pub(crate) struct EntryArgs {
    /// The URL
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    /// The collection [default: the only one there is]
    #[arg(long, value_name = "NAME")]
    pub(crate) collection: Option<String>,

    /// The queue, where a plain collection has the URL in several [default: that of its host, or else the first]
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// What to plan.
#[derive(Debug, Args)]
pub(crate) struct QueuePlanArgs {
    /// How many entries
    #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,

    /// Of this collection only
    #[arg(long, value_name = "NAME")]
    pub(crate) collection: Option<String>,

    /// Of this host only
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Which hosts to list.
#[derive(Debug, Args)]
pub(crate) struct QueueHostsArgs {
    /// Only this one
    #[arg(value_name = "HOST")]
    pub(crate) host: Option<String>,

    /// Those with entries of this collection
    #[arg(long, value_name = "NAME")]
    pub(crate) collection: Option<String>,

    /// How many at most [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// List entries in the order of their arrival
    #[command(after_long_help = r#"Example:
  $ forager queue list --format table --now 2024-06-15T08:04:00Z
  id  state   priority  due                   collection  url                      depth  risk    lastFetch
  0   queued  1.0       2024-06-16T08:00:01Z  news        https://www.db.no/       0      MEDIUM  2024-06-15T08:00:01Z
  1   queued  0.9       2024-06-15T08:00:00Z  news        https://www.db.no/sport  1      MEDIUM  -"#)]
    List(QueueListArgs),
    /// Show an entry with all that was learned of it
    #[command(after_long_help = r#"Example:
  $ forager queue show https://www.db.no/ --format table --now 2024-06-15T08:04:00Z | head -10
  id                              0
  collection                      news
  url                             https://www.db.no/
  host                            www.db.no
  state                           queued
  priority                        1.0
  due                             2024-06-16T08:00:01Z
  seed                            https://www.db.no/
  depth                           0
  lastFetch                       2024-06-15T08:00:01Z"#)]
    Show(EntryArgs),
    /// Show what would be handed out next, and when, if every fetch took no time
    #[command(after_long_help = r#"Example:
  $ forager queue plan -n 2 --format table --now 2024-06-15T08:04:00Z
  at                    waitsFor  priority  collection  url                      due
  2024-06-15T08:04:00Z  -         0.9       news        https://www.db.no/sport  2024-06-15T08:00:00Z
  2024-06-16T08:00:01Z  due       1.0       news        https://www.db.no/       2024-06-16T08:00:01Z"#)]
    Plan(QueuePlanArgs),
    /// List hosts: what waits there, and whether they may be asked
    #[command(after_long_help = r#"Example:
  $ forager queue hosts --format table --now 2024-06-15T08:04:00Z
  host       collection  queued  inFlight  fetched  failures  opens  gate  delay  crawlDelay
  www.db.no  -           2       0         1        0         -      -     -      -"#)]
    Hosts(QueueHostsArgs),
    /// Count the entries of each collection
    #[command(after_long_help = r#"Example:
  $ forager queue stats --now 2024-06-15T08:04:00Z
  {"collection":"news","queued":2,"inFlight":0,"done":0,"failed":0,"hosts":1,"fetches":1,"bytes":0,"changes":0,"skipped":0}"#)]
    Stats {
        /// Of this collection only
        #[arg(long, value_name = "NAME")]
        collection: Option<String>,

        #[command(flatten)]
        store: StoreArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum HostCommand {
    /// Set what holds for a single host; what is not named stays as it is
    ///
    /// A value of `default` goes back to the general setting, that of `[politeness]`. Prints the host.
    #[command(
        verbatim_doc_comment,
        after_long_help = r#"Example:
  $ forager host set www.db.no --delay 10s --in-flight 1 --now 2024-06-15T08:04:00Z
  {"host":"www.db.no","collection":null,"queued":2,"done":0,"inFlight":0,"fetched":1,"failures":0,"opens":null,"gate":null,"settings":{"delay":"10s","blockedUntil":null,"inFlight":1,"fetchLimit":null,"robots":null}}"#
    )]
    Set(Box<HostSetArgs>),
}

/// What to set for a host.
#[derive(Debug, Args)]
pub(crate) struct HostSetArgs {
    /// The host, or queue key
    #[arg(value_name = "HOST")]
    pub(crate) host: String,

    /// The plain collection that the queue key belongs to
    #[arg(long, value_name = "NAME")]
    pub(crate) collection: Option<String>,

    /// The time between two fetches
    #[arg(long, value_name = "TIME", value_parser = setting::<Interval>)]
    pub(crate) delay: Option<Setting<Interval>>,

    /// How many fetches may be under way
    #[arg(long, value_name = "N", value_parser = setting::<u32>)]
    pub(crate) in_flight: Option<Setting<u32>>,

    /// How many fetches there may be altogether
    #[arg(long, value_name = "N", value_parser = setting::<u64>)]
    pub(crate) fetch_limit: Option<Setting<u64>>,

    /// Fetch nothing before this time
    #[arg(long, value_name = "TIME", value_parser = kept_instant, conflicts_with_all = ["block", "unblock"])]
    pub(crate) block_until: Option<Timestamp>,

    /// Fetch nothing until it is unblocked
    #[arg(long, conflicts_with = "unblock")]
    pub(crate) block: bool,

    /// Take back a block
    #[arg(long)]
    pub(crate) unblock: bool,

    /// What robots.txt says of the whole host
    #[arg(long, value_enum)]
    pub(crate) robots: Option<RobotsWord>,

    /// Until when that holds [default: 24 hours from now]
    #[arg(long, value_name = "TIME", value_parser = kept_instant, requires = "robots")]
    pub(crate) robots_until: Option<Timestamp>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// What robots.txt says of a whole host.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RobotsWord {
    /// Something may be fetched
    Allow,
    /// Nothing may be fetched
    Forbid,
    /// Forget what was said
    Default,
}

/// A value of its own, or the general one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setting<T> {
    Default,
    Own(T),
}

impl<T> Setting<T> {
    /// The value of its own.
    pub(crate) fn own(self) -> Option<T> {
        match self {
            Self::Default => None,
            Self::Own(value) => Some(value),
        }
    }
}

fn setting<T: std::str::FromStr>(text: &str) -> Result<Setting<T>, T::Err> {
    if text == "default" { Ok(Setting::Default) } else { text.parse().map(Setting::Own) }
}
