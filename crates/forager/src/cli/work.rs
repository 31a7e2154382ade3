//! The commands that work on the queue: links in, URLs out, and what came of them back in.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use forager_core::time::Interval;

use super::{HarvestArgs, StoreArgs};

/// Files to read.
#[derive(Debug, Args)]
pub(crate) struct Files {
    /// Files to read, `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

/// Take in links that were found on pages
///
/// Each line is a page: `collection`, `source` (its URL), and `links`, each with `url` and any of
/// `how` (`link`, `sitemap`, `redirect`, `other`), `inHeader`, `text`, `title`, `relevance` (0 to 1) and
/// `metadata` (a text that comes back with the lease). A page that is not in the queue itself says
/// its `seed` and `depth`. In a plain collection a link may have a queue `key`, which is its host
/// otherwise, and a time at which it is `due`, which is now otherwise. Prints for each link its
/// `url`, the `action` (`added`, `improved`, `kept`, `removed`, `ignored`, `invalid`) and the `rule`.
/// A link that cannot be read is `invalid` and a bad line; the others of its page go on.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ echo '{"collection":"news","source":"https://www.db.no/","links":[{"url":"https://www.db.no/sport","inHeader":true},{"url":"https://elsewhere.example/"}]}' | forager discover --now 2024-06-15T08:00:00Z
  {"url":"https://www.db.no/sport","action":"added","rule":"in scope (daily: scope domain)"}
  {"url":"https://elsewhere.example/","action":"ignored","rule":"out of scope (daily: not in scope domain)"}"#
)]
pub(crate) struct DiscoverArgs {
    #[command(flatten)]
    pub(crate) input: Files,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Take URLs out of the queue to fetch them
///
/// Prints one line for each: `token`, `until` (when the lease runs out), `url`, and what is known
/// of it. Nobody else gets it before then; report with `complete`. When nothing can be handed
/// out, one line says why: `{"nothing":"notDue","until":…}`, or `empty`, `throttled` or `blocked`.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ forager lease --now 2024-06-15T08:00:00Z
  {"token":1,"until":"2024-06-15T08:05:00Z","collection":"news","url":"https://www.db.no/","host":"www.db.no","seed":"https://www.db.no/","depth":0,"priority":1.0,"due":"2024-06-15T08:00:00Z","lastFetch":null,"fingerprint":null,"failures":0,"metadata":null,"asOldest":false,"rule":"7: in scope (daily: scope domain)"}
  $ forager lease --now 2024-06-15T08:00:00Z
  {"nothing":"throttled","until":"2024-06-15T08:00:04.862Z","gate":"delay"}"#
)]
pub(crate) struct LeaseArgs {
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one::<usize>)]
    pub(crate) max: usize,

    /// How many of one host at most
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one::<usize>)]
    pub(crate) per_host: usize,

    /// Of this collection only
    #[arg(long, value_name = "NAME")]
    pub(crate) collection: Option<String>,

    /// Of this host only
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,

    /// How long they are held
    #[arg(long, value_name = "TIME", default_value = "5m")]
    pub(crate) hold: Interval,

    /// If nothing can be handed out now but at a known time, wait for it
    #[arg(long)]
    pub(crate) wait: bool,

    /// The longest to wait [default: as long as it takes]
    #[arg(long, value_name = "TIME", requires = "wait")]
    pub(crate) timeout: Option<Interval>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Report what came of fetches
///
/// Each line has the `token` of the lease and either `status` (of HTTP) or `error` (`timeout`, `network`, `damaged`, `refused`;
/// and for what was not asked for `robots`, `unreachable`, `address`), and may have `fingerprint` (what the content is known by), `changed`,
/// `retryAfter` (such as `"2m"`) and `bytes`. Prints `token`, `outcome` (`again`, `done`, `failed`,
/// `removed`), `changed`, when it is `due` again, and the `rule`. A lease that has run out is
/// reported as a bad line and changes nothing.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ echo '{"token":1,"status":200,"fingerprint":"5d41402a"}' | forager complete --now 2024-06-15T08:00:01Z
  {"token":1,"outcome":"again","changed":false,"due":"2024-06-16T08:00:01Z","rule":"6: too early (daily: every 24h)"}
  $ echo '{"token":1,"status":200}' | forager complete --now 2024-06-15T08:00:02Z
  forager: line 1: token: 1: there is no such lease, or it has run out"#
)]
pub(crate) struct CompleteArgs {
    #[command(flatten)]
    pub(crate) input: Files,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Leases, by their tokens.
#[derive(Debug, Args)]
pub(crate) struct Tokens {
    /// The tokens of the leases
    #[arg(value_name = "TOKEN", required = true)]
    pub(crate) tokens: Vec<u64>,
}

/// Hold leases for longer
///
/// Prints `token`, whether it was still `held`, and `until` when it is held now. One that has run
/// out stays so, and makes the exit status 1.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ forager lease --now 2024-06-15T08:01:00Z | grep -o '^{"token":[0-9]*'
  {"token":2
  $ forager extend 2 --hold 10m --now 2024-06-15T08:02:00Z
  {"token":2,"held":true,"until":"2024-06-15T08:12:00Z"}"#
)]
pub(crate) struct ExtendArgs {
    #[command(flatten)]
    pub(crate) leases: Tokens,

    /// For how long from now
    #[arg(long, value_name = "TIME", default_value = "5m")]
    pub(crate) hold: Interval,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Give leases back, unfetched
///
/// Prints `token` and whether it was still `held`. One that has run out makes the exit status 1.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = r#"Example:
  $ forager release 2 --now 2024-06-15T08:03:00Z
  {"token":2,"held":true,"until":null}"#
)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) leases: Tokens,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// A job to create.
#[derive(Debug, Args)]
pub(crate) struct JobCreateArgs {
    /// Where it starts
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,

    /// Its name; also that of its collection and profile [default: the first host, with a number if that is taken]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,

    /// End it after so many fetches; 0 ends it at once
    #[arg(long, value_name = "N")]
    pub(crate) pages: Option<u64>,

    /// End it after so many bytes
    #[arg(long, value_name = "N")]
    pub(crate) bytes: Option<u64>,

    /// End it after so long
    #[arg(long = "time", value_name = "TIME")]
    pub(crate) duration: Option<Interval>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// A job.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// The pages of a job.
#[derive(Debug, Args)]
pub(crate) struct JobPagesArgs {
    /// The name of the job
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// How many at most, the highest ranks first [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Create a job and start it: fetch each page in scope once, until nothing is left or a limit is reached
    #[command(after_long_help = r#"Example:
  $ forager job create https://acme.example/ --name acme --mode hierarchy --depth 1 --pages 20 --now 2024-06-15T08:05:00Z
  {"id":"acme","state":"running","order":"hierarchy","started":"2024-06-15T08:05:00Z","steering":"running","finished":null,"limits":{"pages":20,"bytes":null,"time":null},"progress":{"collection":"acme","queued":1,"inFlight":0,"done":0,"failed":0,"hosts":1,"fetches":0,"bytes":0,"changes":0,"skipped":0}}"#)]
    Create(Box<JobCreateArgs>),
    /// List all jobs and how far they are
    #[command(after_long_help = r#"Example:
  $ forager job list --format table --now 2024-06-15T08:05:00Z
  id    state    order      started               queued  inFlight  done  failed  skipped
  acme  running  hierarchy  2024-06-15T08:05:00Z  1       0         0     0       0"#)]
    List(StoreArgs),
    /// Show a job and how far it is
    #[command(after_long_help = r#"Example:
  $ forager job show acme --now 2024-06-15T08:05:00Z | grep -o '"queued":[0-9]*'
  "queued":1"#)]
    Show(JobArgs),
    /// List the pages of a job by rank: of 1,700 pages, the homepage has rank 1700
    #[command(after_long_help = r#"Example:
  $ echo '{"collection":"acme","source":"https://acme.example/","links":[{"url":"https://acme.example/shop"}]}' | forager discover --now 2024-06-15T08:05:00Z
  {"url":"https://acme.example/shop","action":"added","rule":"in scope (acme: scope domain)"}
  $ forager job pages acme --format table --now 2024-06-15T08:05:00Z
  rank  priority  state   url                        depth  how   source
  2     1.0       queued  https://acme.example/      0      seed  -
  2     0.8       queued  https://acme.example/shop  1      link  https://acme.example/"#)]
    Pages(JobPagesArgs),
    /// Pause a job: nothing of it is handed out
    #[command(after_long_help = r#"Example:
  $ forager job pause acme --now 2024-06-15T08:06:00Z | grep -o '"state":"[a-z]*"'
  "state":"paused""#)]
    Pause(JobArgs),
    /// Resume a job that was paused
    #[command(after_long_help = r#"Example:
  $ forager job resume acme --now 2024-06-15T08:07:00Z | grep -o '"state":"[a-z]*"'
  "state":"running""#)]
    Resume(JobArgs),
    /// Cancel a job for good; what it found stays
    #[command(after_long_help = r#"Example:
  $ forager job cancel acme --now 2024-06-15T08:08:00Z | grep -o '"state":"[a-z]*"'
  "state":"cancelled""#)]
    Cancel(JobArgs),
}

pub(super) fn at_least_one<T: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| *number >= T::from(1));
    number.ok_or_else(|| "not a whole number of at least 1".to_owned())
}
