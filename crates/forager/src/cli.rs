//! The command line: every command, option and example. Completions and man pages come from here too.

mod bench;
mod catalog;
mod crawl;
mod db;
mod demo;
mod exchange;
mod look;
mod policies;
mod profile;
mod queue;
mod serve;
mod work;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use forager_core::time::Interval;
use forager_frontier::Moment;
use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;
use serde::de::DeserializeOwned;

pub(crate) use bench::{BenchCommand, BenchFrontierArgs, BenchPart, BenchUrlfrontierArgs};
pub(crate) use catalog::*;
pub(crate) use crawl::*;
pub(crate) use db::*;
pub(crate) use demo::DemoArgs;
pub(crate) use exchange::*;
pub(crate) use look::*;
pub(crate) use policies::*;
pub(crate) use profile::*;
pub(crate) use queue::*;
pub(crate) use serve::ServeArgs;
pub(crate) use work::*;

use crate::config::DatabaseUrl;
use crate::journal::LogFormat;
use crate::output::Format;
use crate::words::in_shell;

/// Decides which URL a crawler fetches next, when it comes back, and why.
///
/// Every command reads JSON Lines from files or standard input and prints JSON Lines, or a table
/// where the output is a terminal. Names are in camelCase, times in RFC 3339. A bad line is
/// reported with its number on standard error and the others go on.
///
/// Exit status: 0 if all went well, 1 if some lines were bad, 2 if a flag or file was. What fetches has more to tell:
/// `forager crawl --help`, and likewise of run, watch, pick, robots, sitemap, links and audit, lists what each status means.
#[derive(Debug, Parser)]
#[command(name = "forager", version, term_width = 0, verbatim_doc_comment)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(DemoArgs),
    Crawl(Box<CrawlArgs>),
    Run(Box<RunArgs>),
    Watch(Box<WatchArgs>),
    Pick(Box<PickArgs>),
    Audit(AuditArgs),
    Serve(Box<ServeArgs>),
    Robots(Box<RobotsArgs>),
    Sitemap(Box<SitemapArgs>),
    Links(Box<LinksArgs>),
    Score(ScoreArgs),
    Rank(RankArgs),
    Select(SelectArgs),
    Classify(ClassifyArgs),
    Reschedule(RescheduleArgs),
    Manifest(ManifestArgs),
    Hierarchy(HierarchyArgs),
    Scope(ScopeArgs),
    Url(UrlArgs),
    Init(InitArgs),
    Apply(ApplyArgs),
    /// Add, list, switch, remove and start collections: namespaces of queued URLs
    #[command(subcommand)]
    Collection(CollectionCommand),
    /// Add, list, switch, remove and start profiles: how to harvest
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// Add, import, list, switch, remove and start seeds: where harvests begin
    #[command(subcommand)]
    Seed(SeedCommand),
    Discover(DiscoverArgs),
    Lease(LeaseArgs),
    Complete(CompleteArgs),
    Extend(ExtendArgs),
    Release(ReleaseArgs),
    Explain(ExplainArgs),
    /// Look into the queue: entries, hosts, counts, and what comes next
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Set what holds for a single host
    #[command(subcommand)]
    Host(HostCommand),
    /// Start, follow and steer jobs: harvests that end
    #[command(subcommand)]
    Job(JobCommand),
    Events(EventsArgs),
    Export(ExportArgs),
    Import(ImportArgs),
    Backup(BackupArgs),
    Check(CheckArgs),
    /// Set up, look after and take down the schema of a queue in PostgreSQL
    #[command(subcommand)]
    Db(DbCommand),
    /// Check the configuration, or show what is in force and where each value came from
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Measure Forager on this machine
    #[command(subcommand)]
    Bench(BenchCommand),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

impl Command {
    /// Whether it is not to tell how far it is.
    pub(crate) fn is_quiet(&self) -> bool {
        match self {
            Self::Crawl(args) => args.fetch.quiet,
            Self::Run(args) => args.fetch.quiet,
            Self::Watch(args) => args.fetch.quiet,
            _ => false,
        }
    }

    /// How what it tells is written.
    pub(crate) fn log_format(&self) -> LogFormat {
        match self {
            Self::Crawl(args) => args.fetch.log,
            Self::Run(args) => args.fetch.log,
            Self::Watch(args) => args.fetch.log,
            _ => LogFormat::Text,
        }
    }

    /// Whether it is one of those that fetch, serve or judge fetches, whose exit status says why they failed: scripts
    /// start them again if that helps.
    pub(crate) fn has_statuses(&self) -> bool {
        let crawls =
            matches!(self, Self::Crawl(_) | Self::Run(_) | Self::Watch(_) | Self::Pick(_) | Self::Demo(_));
        let looks = matches!(self, Self::Robots(_) | Self::Sitemap(_) | Self::Links(_) | Self::Audit(_));
        crawls || looks || matches!(self, Self::Serve(_))
    }
}

/// Files to read, and how to print.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Files to read, `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// The time that decisions are made at.
#[derive(Debug, Args)]
pub(crate) struct Now {
    /// The time that counts as now, such as 2024-06-15T08:00:00Z [default: the present]
    #[arg(long = "now", value_name = "TIME", value_parser = instant, allow_hyphen_values = true)]
    time: Option<Timestamp>,
}

impl Now {
    /// The given time, or the clock's; read once for a whole run.
    pub(crate) fn get(&self) -> Timestamp {
        self.time.unwrap_or_else(Timestamp::now)
    }
}

/// The time that the queue is asked at.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct QueueNow {
    /// The time that counts as now, such as 2024-06-15T08:00:00Z [default: the present]
    #[arg(long = "now", value_name = "TIME", value_parser = kept_instant, allow_hyphen_values = true)]
    time: Option<Timestamp>,
}

impl QueueNow {
    /// The given time, or the clock's.
    pub(crate) fn get(&self) -> Timestamp {
        self.time.unwrap_or_else(Timestamp::now)
    }
}

fn instant(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| match Pieces::parse(text) {
        Ok(pieces) if pieces.offset().is_some() => "further off than any time that can be told".to_owned(),
        _ => "not a time such as 2024-06-15T08:00:00Z".to_owned(),
    })
}

/// An instant that the queue can keep.
fn kept_instant(text: &str) -> Result<Timestamp, String> {
    let (first, end) = (Moment::ZERO.timestamp(), Moment::NEVER.timestamp());
    let is_written = Pieces::parse(text).is_ok_and(|pieces| pieces.offset().is_some());
    match text.parse() {
        Ok(time) if (first..end).contains(&time) => Ok(time),
        Err(_) if !is_written => instant(text),
        _ => Err(format!("the queue keeps times from {first} on and before {end}")),
    }
}

/// Where the configuration is.
#[derive(Debug, Args)]
pub(crate) struct ConfigFile {
    /// The configuration file [default: forager.toml, if there is one]
    #[arg(long = "config", value_name = "FILE", env = "FORAGER_CONFIG")]
    pub(crate) path: Option<PathBuf>,
}

/// Where the queue is.
#[derive(Debug, Args)]
pub(crate) struct QueuePlace {
    /// The folder of the queue [env: `FORAGER_DATA`] [default: `data` of `[store]` in the configuration, forager-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// The database of the queue, such as `postgres://user@host/name`, instead of a folder [env:
    /// `FORAGER_STORE`, `DATABASE_URL`] [default: `url` of `[store]` in the configuration]
    // Not read by clap, whose complaints would show the password.
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<DatabaseUrl>,

    #[command(flatten)]
    pub(crate) config: ConfigFile,

    /// How long to wait for another process to leave the queue
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub(crate) lock_timeout: Interval,
}

impl QueuePlace {
    /// The flags that name the same queue to another command, each after a space. A password is not shown.
    pub(crate) fn flags(&self) -> String {
        let path = |path: &PathBuf| path.to_string_lossy().into_owned();
        let given = [
            ("--data", self.data.as_ref().map(path)),
            ("--store", self.store.as_ref().map(ToString::to_string)),
            ("--config", self.config.path.as_ref().map(path)),
        ];
        let given =
            given.into_iter().filter_map(|(flag, value)| Some([" ", flag, " ", &in_shell(&value?)].concat()));
        given.collect()
    }
}

/// The queue that a command works on, and how it prints.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    pub(crate) place: QueuePlace,

    #[command(flatten)]
    pub(crate) now: QueueNow,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,

    /// Print JSON Lines; short for `--format jsonl`
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl StoreArgs {
    /// How to print.
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Jsonl } else { self.format }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a configuration and say what is wrong with it, and where
    ///
    /// Warns of names that refer to nothing. Exit status 2 if the file cannot be used.
    #[command(
        verbatim_doc_comment,
        after_long_help = r#"Example:
  $ printf '[select]\npage_cpa = 3\n' > wrong.toml
  $ forager config check --config wrong.toml
  forager: wrong.toml:2: unknown key "page_cpa" in [select]; did you mean "page_cap"?"#
    )]
    Check {
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Show every value in force, and where it came from
    ///
    /// A value comes from the environment (`FORAGER_SECTION__KEY`), from the file, or is the
    /// default, in this order.
    #[command(
        verbatim_doc_comment,
        after_long_help = r#"Example:
  $ printf '[manifest]\nlimit = 100\n' > small.toml
  $ forager config show --config small.toml | grep '^manifest'
  manifest.limit = 100                        # small.toml:2
  manifest.reserved_percent = 10              # default"#
    )]
    Show {
        #[command(flatten)]
        config: ConfigFile,
    },
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "Example:\n  $ forager completions bash | grep -c '^_forager()'\n  1"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Write the manual: one page, or all of them into a folder
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example:\n  $ forager man --dir man1\n  $ ls man1/forager-rank.1\n  man1/forager-rank.1"
)]
pub(crate) struct ManArgs {
    /// The folder to write a page for each command into; without it, the main page is printed
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// A parser for a value that has a few names, which are those it is written by everywhere.
fn named<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| serde_json::from_value(name.into()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    /// Clap finds most slips only when a command is used.
    #[test]
    fn every_command_can_be_used() {
        super::Cli::command().debug_assert();
    }
}
