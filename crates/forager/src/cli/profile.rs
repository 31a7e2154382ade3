//! The commands that say how to harvest.

use clap::{Args, Subcommand};
use forager_core::order::Order;
use forager_core::scope::Profile;
use forager_core::scope::config::{ChangeBy, Reading};
use forager_core::scope::extent::{Kind, Traps};
use forager_core::time::{Interval, IntervalError};
use forager_fetch::fingerprint::{ContentSelector, SelectorError};

use super::work::at_least_one;
use super::{NamesArgs, StoreArgs, named};

/// What a profile, or the harvest of a job, is made of.
#[derive(Debug, Args)]
pub(crate) struct HarvestArgs {
    /// Which URLs are in scope, relative to the seed [default: domain]
    #[arg(long, value_parser = named::<Kind>(&["page", "prefix", "host", "domain", "any"]))]
    scope: Option<Kind>,

    /// How many links away from the seed, inclusive [default: unlimited]
    #[arg(long, value_name = "N")]
    depth: Option<u32>,

    /// How many links in a row may lead off the domain of the seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    hops_off_domain: u32,

    /// Which of the URLs that are due at a host goes first [default: hierarchy]
    #[arg(long, visible_alias = "mode", value_parser = named::<Order>(&["fifo", "hierarchy", "linked", "score", "risk", "services"]))]
    order: Option<Order>,

    /// If given, a URL other than the seed must match one of these expressions; may be repeated
    #[arg(long, value_name = "REGEX", value_parser = expression)]
    include: Vec<String>,

    /// A URL that matches one of these expressions is out of scope; may be repeated
    #[arg(long, value_name = "REGEX", value_parser = expression)]
    exclude: Vec<String>,

    /// A scheme that is in scope; may be repeated [default: http and https]
    #[arg(long, value_name = "SCHEME")]
    scheme: Vec<String>,

    /// The longest URL that is in scope, in bytes [default: 8192]
    #[arg(long, value_name = "BYTES")]
    max_url_length: Option<usize>,

    /// The most segments of a path; 0 turns the guard off [default: 32]
    #[arg(long, value_name = "N")]
    max_segments: Option<usize>,

    /// How often one segment may stand in a path; 0 turns the guard off [default: 3]
    #[arg(long, value_name = "N")]
    max_repeats: Option<usize>,

    /// How often the same segments may follow each other in a path; 0 turns the guard off [default: 2]
    #[arg(long, value_name = "N")]
    max_sequences: Option<usize>,

    /// The most parameters of a query; 0 turns the guard off [default: 32]
    #[arg(long, value_name = "N")]
    max_params: Option<usize>,

    /// Whether a session id keeps a URL out of scope [default: true]
    #[arg(long, value_name = "BOOL")]
    guard_session_ids: Option<bool>,

    /// The first year of a calendar that is in scope, or how far from the present one; 0 turns the guard off [default: -30]
    #[arg(long, value_name = "YEAR", allow_negative_numbers = true)]
    first_year: Option<i16>,

    /// The last year of a calendar that is in scope, or how far from the present one; 0 turns the guard off [default: 2]
    #[arg(long, value_name = "YEAR", allow_negative_numbers = true)]
    last_year: Option<i16>,

    /// The most URLs of one host; 0 for any number [default: 100000]
    #[arg(long, value_name = "N")]
    max_per_host: Option<u64>,

    /// Count URLs that differ only in the order of their parameters as one
    #[arg(long)]
    sort_query: bool,

    /// A parameter that does not count, such as `sid` or `utm_*`; may be repeated
    #[arg(long, value_name = "NAME")]
    strip_param: Vec<String>,

    #[command(flatten)]
    reading: ReadingArgs,
}

/// How pages are read.
#[derive(Debug, Args)]
struct ReadingArgs {
    /// Whether pages are also found through the sitemaps that robots.txt names [default: true]
    #[arg(long, value_name = "BOOL")]
    sitemaps: Option<bool>,

    /// Leave out links that are marked `nofollow`
    #[arg(long)]
    respect_nofollow: bool,

    /// Follow links of a page even if it asks not to, by `meta robots` or `X-Robots-Tag`
    #[arg(long)]
    ignore_meta_robots: bool,

    /// What makes a page count as changed [default: content]
    #[arg(long, value_parser = named::<ChangeBy>(&["content", "exact"]))]
    change: Option<ChangeBy>,

    /// The part of a page that counts, as a CSS selector such as `main` [default: the main text]
    #[arg(long, value_name = "CSS", value_parser = css)]
    content: Option<String>,
}

impl ReadingArgs {
    fn reading(&self) -> Reading {
        Reading {
            sitemaps: self.sitemaps.unwrap_or(true),
            respect_nofollow: self.respect_nofollow,
            respect_meta_robots: !self.ignore_meta_robots,
            change: self.change.unwrap_or_default(),
            content: self.content.clone(),
        }
    }
}

/// A regular expression that can be used.
fn expression(text: &str) -> Result<String, String> {
    forager_core::patterns::check(text).map(|()| text.to_owned())
}

/// A CSS selector that can be used.
pub(crate) fn css(text: &str) -> Result<String, SelectorError> {
    ContentSelector::parse(text).map(|_| text.to_owned())
}

impl HarvestArgs {
    /// The profile of this name with what is given, and the default of what is not.
    pub(crate) fn profile(&self, id: &str, collection: &str) -> Profile {
        let mut profile = Profile::new(id, collection);
        profile.scope = self.scope.unwrap_or(profile.scope);
        profile.depth = self.depth;
        profile.hops_off_domain = self.hops_off_domain;
        profile.order = self.order.unwrap_or(profile.order);
        profile.include.clone_from(&self.include);
        profile.exclude.clone_from(&self.exclude);
        if !self.scheme.is_empty() {
            profile.schemes.clone_from(&self.scheme);
        }
        profile.max_url_length = self.max_url_length.unwrap_or(profile.max_url_length);
        profile.traps = self.traps();
        profile.sort_query = self.sort_query;
        profile.strip_params.clone_from(&self.strip_param);
        profile.reading = self.reading.reading();
        profile
    }

    fn traps(&self) -> Traps {
        let usual = Traps::default();
        Traps {
            max_segments: self.max_segments.unwrap_or(usual.max_segments),
            max_repeats: self.max_repeats.unwrap_or(usual.max_repeats),
            max_sequences: self.max_sequences.unwrap_or(usual.max_sequences),
            max_params: self.max_params.unwrap_or(usual.max_params),
            session_ids: self.guard_session_ids.unwrap_or(usual.session_ids),
            first_year: self.first_year.unwrap_or(usual.first_year),
            last_year: self.last_year.unwrap_or(usual.last_year),
            max_per_host: self.max_per_host.unwrap_or(usual.max_per_host),
        }
    }
}

/// A profile to add.
#[derive(Debug, Args)]
pub(crate) struct ProfileAddArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The collection it belongs to
    #[arg(long, value_name = "NAME")]
    pub(crate) collection: String,

    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,

    /// How often a URL is fetched at most, such as 24h [default: by how often it changes]
    #[arg(long, value_name = "TIME", value_parser = above_zero)]
    pub(crate) every: Option<Interval>,

    /// How many times a URL is fetched before it leaves the queue [default: unlimited]
    #[arg(long, value_name = "N", value_parser = at_least_one::<u32>)]
    pub(crate) length: Option<u32>,

    /// Add it disabled: its URLs wait
    #[arg(long)]
    pub(crate) disabled: bool,

    /// Change the profile if it is there already
    #[arg(long)]
    pub(crate) replace: bool,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// An interval that is one.
fn above_zero(text: &str) -> Result<Interval, String> {
    let interval: Interval = text.parse().map_err(|error: IntervalError| error.to_string())?;
    if interval == Interval::default() { Err(NO_INTERVAL.to_owned()) } else { Ok(interval) }
}

/// What to say of an interval of nothing.
pub(crate) const NO_INTERVAL: &str = "is no interval; leave it out, and how often the page changes decides";

#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// Add a profile to a collection
    #[command(after_long_help = r#"Example:
  $ forager profile add daily --collection news --depth 2 --every 24h
  {"change":"added","kind":"profile","name":"daily"}"#)]
    Add(Box<ProfileAddArgs>),
    /// List the profiles
    #[command(after_long_help = r#"Example:
  $ forager profile list --format table
  id     collection  enabled  order      scope   depth  every  length  include  exclude
  daily  news        true     hierarchy  domain  2      24h    -       -        -"#)]
    List(StoreArgs),
    /// Show profiles with every setting
    #[command(after_long_help = r#"Example:
  $ forager profile show daily
  {"id":"daily","collection":"news","enabled":true,"order":"hierarchy","scope":"domain","depth":2,"hopsOffDomain":0,"every":"24h","length":null,"include":[],"exclude":[],"schemes":["http","https"],"maxUrlLength":8192,"traps":{"maxSegments":32,"maxRepeats":3,"maxSequences":2,"maxParams":32,"sessionIds":true,"firstYear":-30,"lastYear":2,"maxPerHost":100000},"sortQuery":false,"stripParams":[],"reading":{"sitemaps":true,"respectNofollow":false,"respectMetaRobots":true,"change":"content","content":null}}"#)]
    Show(NamesArgs),
    /// Enable profiles: their URLs are handed out again
    #[command(after_long_help = r#"Example:
  $ forager profile enable daily
  {"change":"enabled","kind":"profile","name":"daily"}"#)]
    Enable(NamesArgs),
    /// Disable profiles: their URLs wait
    #[command(after_long_help = r#"Example:
  $ forager profile disable daily
  {"change":"disabled","kind":"profile","name":"daily"}"#)]
    Disable(NamesArgs),
    /// Remove profiles
    ///
    /// Entries that are out of scope without them go when they are next touched.
    #[command(
        verbatim_doc_comment,
        after_long_help = r#"Example:
  $ forager profile add weekly --collection news --every 7d
  {"change":"added","kind":"profile","name":"weekly"}
  $ forager profile remove weekly
  {"change":"removed","kind":"profile","name":"weekly"}"#
    )]
    Remove(NamesArgs),
    /// Queue all seeds of profiles, as a new harvest
    #[command(after_long_help = r#"Example:
  $ forager profile start daily --now 2024-06-15T08:00:00Z
  {"collection":"news","url":"https://www.db.no/","action":"improved","due":"2024-06-15T08:00:00Z","rule":"started"}"#)]
    Start(NamesArgs),
}
