//! `forager rank`

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::anyhow;
use forager_core::score::{Ranking, Scored, UrlSignals, next_change, score};
use jiff::Timestamp;

use super::score::{COLUMNS, Row};
use crate::Outcome;
use crate::cli::RankArgs;
use crate::input::{Input, Line};
use crate::output::Output;
use crate::record::{BadLine, parse, report};

/// What is remembered of a URL that may be printed.
struct Candidate {
    url: Box<str>,
    scored: Scored,
    next_change: Option<Timestamp>,
}

pub(super) fn run(args: &RankArgs) -> anyhow::Result<Outcome> {
    let now = args.now.get();
    let input = Mutex::new(Input::open(&args.common.files)?.with_progress());
    let some_bad = AtomicBool::new(false);
    let work = || rank_share(&input, &some_bad, args, now);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let shares: anyhow::Result<Vec<Ranking<Candidate>>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a thread failed"))?).collect()
    });
    let mut ranking = Ranking::new(args.top, args.min_score);
    for share in shares? {
        ranking.absorb(share);
    }
    print(ranking, args)?;
    Ok(if some_bad.into_inner() { Outcome::SomeBad } else { Outcome::Complete })
}

/// Ranks the chunks that this thread gets hold of.
fn rank_share(
    input: &Mutex<Input>,
    some_bad: &AtomicBool,
    args: &RankArgs,
    now: Timestamp,
) -> anyhow::Result<Ranking<Candidate>> {
    let mut ranking = Ranking::new(args.top, args.min_score);
    let mut buffer = Vec::new();
    loop {
        // Only the reading is under the lock.
        let chunk = input.lock().map_err(|_| anyhow!("a thread failed"))?.next_chunk(buffer)?;
        let Some(chunk) = chunk else { return Ok(ranking) };
        for line in chunk.lines() {
            if let Err(problem) = consider(&mut ranking, &line, now) {
                report(&line.place(), &problem);
                some_bad.store(true, Ordering::Relaxed);
            }
        }
        buffer = chunk.recycle();
    }
}

fn consider(ranking: &mut Ranking<Candidate>, line: &Line<'_>, now: Timestamp) -> Result<(), BadLine> {
    let signals: UrlSignals = parse(line)?;
    let scored = score(&signals, now);
    if ranking.would_keep(scored.score, line.sequence()) {
        let next_change = next_change(&signals, now);
        let candidate = Candidate { url: signals.url.into(), scored, next_change };
        ranking.push(scored.score, line.sequence(), candidate);
    }
    Ok(())
}

fn print(ranking: Ranking<Candidate>, args: &RankArgs) -> anyhow::Result<()> {
    let mut output = Output::new(args.common.format, COLUMNS);
    for (_, Candidate { url, scored, next_change }) in ranking.into_sorted() {
        output.row(&Row::new(&url, &scored, next_change))?;
    }
    output.flush()
}
