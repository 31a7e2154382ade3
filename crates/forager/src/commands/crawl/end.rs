//! How a crawl ended, what is left, and how to go on.

use std::fmt;

use forager_core::time::Interval;
use forager_crawl::{Ended, Stop};
use forager_frontier::catalog::Limits;
use forager_frontier::verbs::JobView;
use serde::{Serialize, Serializer};

use super::Crawled;
use crate::Outcome;
use crate::crawling::view::{Starts, Summary};
use crate::output;
use crate::words::counted;

/// How a crawl ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// There is nothing left to do.
    Done,
    /// Every page to start from failed.
    Failed,
    /// No page to start from may be fetched.
    Forbidden,
    /// No page to start from is there, or for us.
    Dead,
    /// All that was not had was refused by hosts that are asked too often.
    RateLimited,
    /// What is left waits for a person.
    Stuck,
    /// It was asked to stop.
    Stopped(Stop),
    /// As many pages as allowed were fetched.
    Pages(u64),
    /// As many bytes as allowed were read.
    Bytes(u64),
    /// It was worked as long as allowed.
    Time(Interval),
}

impl End {
    /// How a crawl of this job ended. One that was asked to stop and had nothing more to do than what was under way is over
    /// like any other: the same command would not go on with it, but begin anew.
    pub(super) fn of(ended: Ended, job: &JobView, starts: Starts, is_refused: bool) -> Self {
        match ended {
            Ended::Stopped(stop) if job.job.finished.is_none() => Self::Stopped(stop),
            _ if job.progress.queued > 0 && job.job.finished.is_some() => Self::at_limit(job),
            _ if is_refused => Self::RateLimited,
            _ if starts == Starts::Forbidden => Self::Forbidden,
            _ if starts == Starts::Dead => Self::Dead,
            _ if starts == Starts::Failed => Self::Failed,
            Ended::Stuck => Self::Stuck,
            Ended::Done | Ended::Stopped(_) => Self::Done,
        }
    }

    /// The limit that ended a job which has more to do.
    fn at_limit(job: &JobView) -> Self {
        let (Limits { pages, bytes, time }, tally) = (job.job.limits, job.progress.tally);
        match (pages, bytes, time) {
            (_, Some(bytes), _) if tally.bytes >= bytes => Self::Bytes(bytes),
            (Some(pages), ..) if tally.fetches >= pages => Self::Pages(pages),
            (_, _, Some(time)) => Self::Time(time),
            _ => Self::Done,
        }
    }

    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Done | Self::Pages(_) => Outcome::Complete,
            Self::Failed => Outcome::Failed,
            Self::Forbidden | Self::Dead => Outcome::Forbidden,
            Self::RateLimited => Outcome::RateLimited,
            Self::Stuck => Outcome::Stuck,
            Self::Stopped(Stop::Now) => Outcome::Forced,
            Self::Stopped(_) => Outcome::Interrupted,
            Self::Bytes(_) => Outcome::SizeLimit,
            Self::Time(_) => Outcome::TimeLimit,
        }
    }

    /// Tells what is left and how to go on, or what went wrong.
    pub(super) fn tell(self, crawled: &Crawled) {
        let Crawled { job, left, summary, place, .. } = crawled;
        let pages = match left {
            0 => "no page is left".to_owned(),
            left => format!("{} left", counted(*left, "page is", "pages are")),
        };
        match self {
            Self::Failed | Self::Forbidden | Self::Dead => {
                output::complain(format_args!("no page was had, for {self}:"));
                name_starts(summary);
            }
            Self::RateLimited => {
                output::complain(format_args!(
                    "{self}: they answered 429 or 503 until their pages were given up; try again later, or with a \
                     longer --delay"
                ));
                name_starts(summary);
            }
            Self::Stopped(_) if *left == 0 => output::tell(format_args!("{pages}")),
            Self::Stopped(_) => output::tell(format_args!("{pages}; the same command goes on with them")),
            Self::Pages(_) => output::tell(format_args!(
                "{self} is reached, and {pages}; the same command with a higher --limit, or without it, goes on with them"
            )),
            Self::Bytes(_) => output::tell(format_args!(
                "{self} is reached, and {pages}; the same command with more --bytes, or without, goes on with them"
            )),
            Self::Time(_) => output::tell(format_args!(
                "{self} is reached, and {pages}; the same command with more --time, or without, goes on with them"
            )),
            Self::Stuck => output::complain(format_args!(
                "{pages}, at hosts that are blocked or at their limit (\"forager queue hosts --collection {job}{place}\" \
                 names them), or a client has stopped all handing out (SetActive)"
            )),
            Self::Done => {}
        }
        output::tell(format_args!(
            "\"forager queue list --collection {job}{place}\" shows its pages, \"forager explain URL --collection \
             {job}{place}\" why one was fetched or not"
        ));
    }
}

/// Names the pages to start from that failed.
fn name_starts(summary: &Summary) {
    for start in &summary.bad_starts {
        output::complain(format_args!("  {start}"));
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Failed => f.write_str("every page to start from failed"),
            Self::Forbidden => f.write_str("no page to start from may be fetched"),
            Self::Dead => f.write_str("every page to start from failed for good"),
            Self::RateLimited => f.write_str("what is missing was refused by hosts that are asked too often"),
            Self::Stuck => f.write_str("what is left waits for a person"),
            Self::Stopped(Stop::Now) => f.write_str("stopped at once"),
            Self::Stopped(_) => f.write_str("stopped"),
            Self::Pages(pages) => write!(f, "the limit of {}", counted(*pages, "page", "pages")),
            Self::Bytes(bytes) => write!(f, "the limit of {}", counted(*bytes, "byte", "bytes")),
            Self::Time(time) => write!(f, "the limit of {time}"),
        }
    }
}

impl Serialize for End {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
