//! The commands of the decision core: lines in, decisions out.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use forager_core::hierarchy::Mode;
use forager_core::sentinel::schedule::Jitter;

use super::{Common, ConfigFile, Now};
use crate::output::Format;

/// Score news URLs from 0 to 100, with reasons
///
/// Each line has `url` and any of `visits`, `lastVisited`, `lastChanged`, `topicRelevance` (0 to 1),
/// `hubDepth` and `isHub`. Prints `url`, `score`, `level`, `reasons` and `nextChange`, the first
/// instant at which the score will differ.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ echo '{"url":"https://reuters.com/world","lastVisited":"2024-06-10T08:00:00Z","topicRelevance":0.9,"isHub":true}' | forager score --now 2024-06-15T08:00:00Z
  {"url":"https://reuters.com/world","score":74,"level":"high","reasons":["High topic relevance","Is a hub page"],"nextChange":"2024-06-17T08:00:00.000000001Z"}"#
)]
pub(crate) struct ScoreArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) now: Now,
}

/// Score news URLs and print the best first
///
/// Lines are as for `score`; ties keep the order of the input. Memory stays flat with `--top`.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ printf '%s\n' '{"url":"https://example.org/a","lastVisited":"2024-06-15T07:30:00Z"}' '{"url":"https://example.org/b"}' | forager rank --now 2024-06-15T08:00:00Z --top 1
  {"url":"https://example.org/b","score":73,"level":"high","reasons":["Not visited in 7+ days"],"nextChange":null}"#
)]
pub(crate) struct RankArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) now: Now,

    /// Print only the best N
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,

    /// Print only what scores at least S
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) min_score: u8,
}

/// Select the service pages among the links of a home page
///
/// Each line is a link of the page: `href`, and its `text` and `title`. Prints the selected pages,
/// best first: `url`, `category`, `score`, `pathLength` and `matchedTerm`.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ printf '%s\n' '{"href":"/services/fire-alarm-installation"}' '{"href":"/about"}' '{"href":"/privacy"}' | forager select --home https://acme.com --dropped
  {"url":"https://acme.com/services/fire-alarm-installation","category":"A","score":100,"pathLength":2,"matchedTerm":"installation"}
  {"url":"https://acme.com/about","category":"C","score":75,"pathLength":1,"matchedTerm":"/about"}
  {"href":"/privacy","dropped":"disallowedPath"}"#
)]
pub(crate) struct SelectArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) config: ConfigFile,

    /// The page that the links were found on
    #[arg(long, value_name = "URL")]
    pub(crate) home: String,

    /// How many pages to select at most [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) page_cap: Option<usize>,

    /// A path prefix that is never selected, besides those of the configuration; may be repeated
    #[arg(long, value_name = "PREFIX")]
    pub(crate) disallow: Vec<String>,

    /// Also print every link that was dropped: `href`, and the filter that `dropped` it
    #[arg(long)]
    pub(crate) dropped: bool,
}

/// Classify pages by their address: what they are, and how urgent their changes
///
/// Each line is a URL, or a record with `url`, `contentType` and `parentRisk`. Prints `url`,
/// `nodeType`, `nodeRole`, `freshnessRisk` and `reasons`.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ echo https://esavjetovanja.gov.hr/a | forager classify
  {"url":"https://esavjetovanja.gov.hr/a","nodeType":"HUB","nodeRole":"GUIDANCE","freshnessRisk":"CRITICAL","reasons":["default row: /(savjetovanja|e-?savjetovanja|javna-rasprava|public-consult)"]}"#
)]
pub(crate) struct ClassifyArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) config: ConfigFile,
}

/// Work out when scanned pages are due again
///
/// Each line is a scan: `url`, `changeFrequency` (0 to 1), `scanCount` (scans before this one),
/// `freshnessRisk`, `contentChanged`, and `lastChangedAt` if known. A scan that failed has
/// `status` (an HTTP status, or `timeout` or `network`) instead of `contentChanged`, `failures`
/// (in a row before this one) and `retryAfter` (seconds). Prints the updated record with
/// `intervalHours`, `nextScanDue` and `reasons`.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ echo '{"url":"https://x.hr/propisi/1","changeFrequency":0.1,"scanCount":7,"contentChanged":false,"freshnessRisk":"CRITICAL"}' | forager reschedule --now 2024-06-15T08:00:00Z --jitter 0
  {"url":"https://x.hr/propisi/1","changeFrequency":0.09,"scanCount":8,"lastChangedAt":null,"intervalHours":11.1111,"nextScanDue":"2024-06-15T19:06:40Z","reasons":["velocity and CRITICAL risk give 11h 6m 40s"]}"#
)]
pub(crate) struct RescheduleArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) now: Now,
    #[command(flatten)]
    pub(crate) config: ConfigFile,

    /// How much of an interval is random, up or down; 0 turns it off [default: 0.1]
    #[arg(long, value_name = "SHARE", value_parser = jitter)]
    pub(crate) jitter: Option<Jitter>,

    /// Where the random numbers start, so that a run can be repeated [default: different each time]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Take the settings of a preset instead of the configuration
    #[arg(long, value_enum)]
    pub(crate) preset: Option<Preset>,
}

/// Settings that belong together.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Preset {
    /// Every critical page at least every 4 hours
    Sentinel,
}

/// Choose what one cycle scans: the most urgent of what is due, and a share of the oldest
///
/// Each line has `url`, `freshnessRisk` and `nextScanDue`. Prints the chosen ones in order, each
/// with `why`: `risk` or `oldest due`.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ printf '%s\n' '{"url":"https://x.hr/a","freshnessRisk":"LOW","nextScanDue":"2024-06-01T00:00:00Z"}' '{"url":"https://x.hr/b","freshnessRisk":"HIGH","nextScanDue":"2024-06-15T07:00:00Z"}' | forager manifest --now 2024-06-15T08:00:00Z
  {"url":"https://x.hr/b","freshnessRisk":"HIGH","nextScanDue":"2024-06-15T07:00:00Z","why":"risk"}
  {"url":"https://x.hr/a","freshnessRisk":"LOW","nextScanDue":"2024-06-01T00:00:00Z","why":"risk"}"#
)]
pub(crate) struct ManifestArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) now: Now,
    #[command(flatten)]
    pub(crate) config: ConfigFile,

    /// How many to choose at most [default: 500]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

/// Follow the priorities of pages as they are found
///
/// Each line is a sighting: `url`, `sourceType` (`link`, `redirect`, `sitemap`, `listing` or any
/// other), `source` (the page that leads to it) and `inHeader`. Prints `url`, its `priority` after
/// the sighting, and its `rank` among the pages seen so far.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ printf '%s\n' '{"url":"https://acme.com/","sourceType":"manual"}' '{"url":"https://acme.com/a","sourceType":"link","source":"acme.com"}' | forager hierarchy --total-pages 1700
  {"url":"https://acme.com/","priority":1.0,"rank":1700}
  {"url":"https://acme.com/a","priority":0.8,"rank":1360}"#
)]
pub(crate) struct HierarchyArgs {
    #[command(flatten)]
    pub(crate) common: Common,

    /// How priorities are made
    #[arg(long, value_name = "MODE", default_value = "hierarchy", value_parser = mode_parser())]
    pub(crate) mode: Mode,

    /// The number of pages of the site, for the rank [default: the pages seen so far]
    #[arg(long, value_name = "N")]
    pub(crate) total_pages: Option<u64>,
}

/// Decide what to do with queued URLs and with links
///
/// By the collections, profiles and seeds of the configuration.
/// A line `{"entry":{collection,url,seed,depth,lastFetch,length}}` asks whether a queued URL may
/// be fetched: the action is `fetch`, `postpone` or `remove`. A line
/// `{"context":{collection,seed,depth},"url":…,"queued":{seed,depth,due}}` asks what becomes of a
/// link found on a page: the action is `add`, `merge`, `keep`, `remove` or `ignore`. Prints `url`,
/// `action`, `seed`, `depth`, `due`, and the `rule` that decided.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ printf '[[collections]]\nid = "news"\n[[profiles]]\nid = "daily"\ncollection = "news"\ndepth = 2\nevery = "24h"\n[[seeds]]\nurl = "https://www.db.no/"\nprofiles = ["daily"]\n' > news.toml
  $ echo '{"entry":{"collection":"news","url":"https://www.db.no/a","seed":"https://www.db.no/","depth":1,"lastFetch":"2024-06-15T02:00:00Z"}}' | forager scope --config news.toml --now 2024-06-15T08:00:00Z
  {"url":"https://www.db.no/a","action":"postpone","seed":"https://www.db.no/","depth":1,"due":"2024-06-16T02:00:00Z","rule":"6: too early (daily: every 24h)"}
  $ echo '{"context":{"collection":"news","seed":"https://www.db.no/","depth":0},"url":"https://www.db.no/b"}' | forager scope --config news.toml --now 2024-06-15T08:00:00Z
  {"url":"https://www.db.no/b","action":"add","seed":"https://www.db.no/","depth":1,"due":"2024-06-15T08:00:00Z","rule":"in scope (daily: scope domain)"}"#
)]
pub(crate) struct ScopeArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) now: Now,
    #[command(flatten)]
    pub(crate) config: ConfigFile,
}

/// Show the three forms of URLs: what is fetched, what counts as the same page, how it sorts
///
/// Prints `url`, `fetch`, `identity`, `surt`, `host` (the politeness unit) and
/// `registrableDomain`.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ forager url 'HTTP://www.Example.co.uk:80/a/../%7Eb?y=1&x=2#top' --sort-query
  {"url":"HTTP://www.Example.co.uk:80/a/../%7Eb?y=1&x=2#top","fetch":"http://www.example.co.uk/%7Eb?y=1&x=2","identity":"http://www.example.co.uk/~b?x=2&y=1","surt":"http://(uk,co,example,www,)/~b?x=2&y=1","host":"www.example.co.uk","registrableDomain":"example.co.uk"}"#
)]
pub(crate) struct UrlArgs {
    /// URLs; without any, one a line from standard input
    #[arg(value_name = "URL")]
    pub(crate) urls: Vec<String>,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// Sort the parameters of the query in the identity
    #[arg(long)]
    pub(crate) sort_query: bool,

    /// A parameter to leave out of the identity, such as `sid` or `utm_*`; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) strip_param: Vec<String>,
}

fn jitter(text: &str) -> Result<Jitter, String> {
    let share = text.parse().ok().and_then(Jitter::new);
    share.ok_or_else(|| "not a share: at least 0, less than 1".to_owned())
}

fn mode_parser() -> impl clap::builder::TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(["hierarchy", "fifo", "linked"]).try_map(|mode| mode.parse::<Mode>())
}
