//! The commands that say what is harvested.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::StoreArgs;

/// Write a configuration to start from, with every section explained
///
/// Refuses to overwrite a file unless told to.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ forager init first.toml
  first.toml: written; change it, then run "forager apply --config first.toml"
  $ forager config check --config first.toml
  first.toml: 1 collection, 1 profile, 1 seed"#
)]
pub(crate) struct InitArgs {
    /// The file to write
    #[arg(value_name = "FILE", default_value = "forager.toml")]
    pub(crate) file: PathBuf,

    /// Overwrite the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
}

/// Bring the collections, profiles and seeds of the configuration into the queue
///
/// Creates what is not there and changes what differs, all of it or nothing. What is only in the
/// queue stays unless `--prune` is given; jobs always stay. Prints one row for each change.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ printf '[[collections]]\nid = "laws"\n[[profiles]]\nid = "watch"\ncollection = "laws"\norder = "risk"\n[[seeds]]\nurl = "https://laws.example/"\nprofiles = ["watch"]\n' > laws.toml
  $ forager apply --config laws.toml --data laws
  {"change":"added","kind":"collection","name":"laws"}
  {"change":"added","kind":"profile","name":"watch"}
  {"change":"added","kind":"seed","name":"https://laws.example/"}
  $ forager apply --config laws.toml --data laws"#
)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Remove what is in the queue and not in the configuration
    #[arg(long)]
    pub(crate) prune: bool,

    /// Remove collections even if they have entries
    #[arg(long)]
    pub(crate) yes: bool,

    /// Print what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What a command is about, by name.
#[derive(Debug, Args)]
pub(crate) struct NamesArgs {
    /// Their names
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// What a command is about, by URL.
#[derive(Debug, Args)]
pub(crate) struct UrlsArgs {
    /// Their URLs
    #[arg(value_name = "URL", required = true)]
    pub(crate) names: Vec<String>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CollectionCommand {
    /// Add collections
    #[command(after_long_help = r#"Example:
  $ forager collection add news
  {"change":"added","kind":"collection","name":"news"}"#)]
    Add {
        /// Their names
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,

        /// Keep URLs, queue keys and dates as clients give them, without profiles
        #[arg(long)]
        plain: bool,

        /// Add them disabled: their URLs wait
        #[arg(long)]
        disabled: bool,

        #[command(flatten)]
        store: StoreArgs,
    },
    /// List the collections and how many entries they have
    #[command(after_long_help = r#"Example:
  $ forager collection list --format table
  id    kind     enabled  profiles  queued  inFlight  done  failed  hosts
  news  planned  true     daily     1       0         0     0       1"#)]
    List(StoreArgs),
    /// Show collections with all that is counted
    #[command(after_long_help = r#"Example:
  $ forager collection show news
  {"id":"news","kind":"planned","isJob":false,"enabled":true,"profiles":["daily"],"queued":1,"inFlight":0,"done":0,"failed":0,"hosts":1,"fetches":0,"bytes":0,"changes":0,"skipped":0}"#)]
    Show(NamesArgs),
    /// Enable collections: their URLs are handed out again
    #[command(after_long_help = r#"Example:
  $ forager collection enable news
  {"change":"enabled","kind":"collection","name":"news"}"#)]
    Enable(NamesArgs),
    /// Disable collections: their URLs wait
    #[command(after_long_help = r#"Example:
  $ forager collection disable news
  {"change":"disabled","kind":"collection","name":"news"}"#)]
    Disable(NamesArgs),
    /// Remove collections, with all their entries
    ///
    /// A collection that has entries is removed only with `--yes`. Its profiles stay.
    #[command(
        verbatim_doc_comment,
        after_long_help = r#"Example:
  $ forager collection remove news
  forager: collection "news" has 2 entries, which would go with it; say --yes to remove it
  $ forager collection remove news --yes
  {"change":"removed","kind":"collection","name":"news"}"#
    )]
    Remove {
        #[command(flatten)]
        names: NamesArgs,

        /// Remove them even if they have entries
        #[arg(long)]
        yes: bool,
    },
    /// Queue all seeds of collections, as a new harvest
    #[command(after_long_help = r#"Example:
  $ forager collection start news --now 2024-06-15T08:00:00Z
  {"collection":"news","url":"https://www.db.no/","action":"added","due":"2024-06-15T08:00:00Z","rule":"started"}"#)]
    Start(NamesArgs),
}

/// A file of seeds.
#[derive(Debug, Args)]
pub(crate) struct SeedImportArgs {
    /// Files to read, `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// A profile for the seeds that name none; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Vec<String>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SeedCommand {
    /// Add seeds
    #[command(after_long_help = r#"Example:
  $ forager seed add https://www.db.no/ --profile daily
  {"change":"added","kind":"seed","name":"https://www.db.no/"}"#)]
    Add {
        /// Where the harvest starts
        #[arg(value_name = "URL", required = true)]
        urls: Vec<String>,

        /// A profile to harvest them under; may be repeated
        #[arg(long, value_name = "NAME", required = true)]
        profile: Vec<String>,

        /// Add them disabled: their URLs wait
        #[arg(long)]
        disabled: bool,

        #[command(flatten)]
        store: StoreArgs,
    },
    /// Add the seeds of a file
    ///
    /// Each line is a URL, or a record with `url`, `profiles` and `enabled`. Seeds that are there
    /// already are counted and left as they are. A bad line is reported with its number, and the
    /// others go on. Prints how many were `added`, `present` and `bad`.
    #[command(
        verbatim_doc_comment,
        after_long_help = r#"Example:
  $ printf '%s\n' https://a.example/ https://www.db.no/ '{"url":"https://b.example/","enabled":false}' | forager seed import --profile daily
  {"added":2,"present":1,"bad":0}"#
    )]
    Import(SeedImportArgs),
    /// List the seeds
    #[command(after_long_help = r#"Example:
  $ forager seed list --format table
  url                 profiles  enabled
  https://www.db.no/  daily     true
  https://a.example/  daily     true
  https://b.example/  daily     false"#)]
    List(StoreArgs),
    /// Show seeds
    #[command(after_long_help = r#"Example:
  $ forager seed show https://b.example/
  {"url":"https://b.example/","profiles":["daily"],"enabled":false}"#)]
    Show(UrlsArgs),
    /// Enable seeds: their URLs are handed out again
    #[command(after_long_help = r#"Example:
  $ forager seed enable https://b.example/
  {"change":"enabled","kind":"seed","name":"https://b.example/"}"#)]
    Enable(UrlsArgs),
    /// Disable seeds: their URLs wait
    #[command(after_long_help = r#"Example:
  $ forager seed disable https://b.example/
  {"change":"disabled","kind":"seed","name":"https://b.example/"}"#)]
    Disable(UrlsArgs),
    /// Remove seeds
    ///
    /// Another seed may take over their entries when these are next touched.
    #[command(
        verbatim_doc_comment,
        after_long_help = r#"Example:
  $ forager seed remove https://a.example/ https://b.example/
  {"change":"removed","kind":"seed","name":"https://a.example/"}
  {"change":"removed","kind":"seed","name":"https://b.example/"}"#
    )]
    Remove(UrlsArgs),
    /// Queue seeds, as a new harvest, in the collections of all their profiles
    #[command(after_long_help = r#"Example:
  $ forager seed start https://www.db.no/ --now 2024-06-15T08:00:00Z
  {"collection":"news","url":"https://www.db.no/","action":"improved","due":"2024-06-15T08:00:00Z","rule":"started"}"#)]
    Start(UrlsArgs),
}
