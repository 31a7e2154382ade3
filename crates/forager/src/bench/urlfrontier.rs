//! Measures a server of URLFrontier from outside, against one that only acknowledges.

mod load;
mod servers;

use std::io::Write as _;

use anyhow::Context as _;
use forager_crawl::Stop;
use forager_server::echo;
use tokio::net::TcpListener;

use self::load::Load;
use self::servers::{Kind, Started};
use super::figures::{COLUMNS, Figures};
use crate::Outcome;
use crate::cli::BenchUrlfrontierArgs;
use crate::crawling::with_signals;
use crate::output::Output;
use crate::progress;
use crate::runtime;

/// How many queues have something due when that is asked for.
const DUE: u64 = 100;

/// Measures, or is the server that only acknowledges.
pub(crate) fn run(args: &BenchUrlfrontierArgs) -> anyhow::Result<Outcome> {
    if let Some(port) = args.echo {
        return be_echo(port);
    }
    let figures = runtime::wait(measure(args))??;
    let mut output = Output::new(args.format, COLUMNS);
    for figure in figures.rows() {
        output.row(figure)?;
    }
    output.flush()?;
    Ok(Outcome::Complete)
}

fn be_echo(port: u16) -> anyhow::Result<Outcome> {
    with_signals(
        |_| {},
        async |mut signals| {
            let listener = TcpListener::bind(("127.0.0.1", port)).await.context("cannot listen")?;
            let port = listener.local_addr()?.port();
            writeln!(std::io::stdout().lock(), "Started URLFrontierServer on port {port}")?;
            let stop = async move {
                // Where nobody is left who could ask, it is time to end too.
                let _ = signals.stop.wait_for(|asked| *asked != Stop::No).await;
            };
            echo(listener, stop).await?;
            Ok(Outcome::Complete)
        },
    )
}

async fn measure(args: &BenchUrlfrontierArgs) -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    let (echo_items, echo_batches) = limit_of_the_wire(args).await?;
    let server = Started::or_given(args.address.as_deref())?;
    let load = Load::connect(&server.address, args.urls).await?;
    load.no_delay().await?;
    progress::note("getting from few queues");
    let few = load.get_due("few", DUE, DUE).await?;
    progress::note("putting URLs one by one");
    figures.floor("echo: PutURLs, one stream", echo_items);
    figures.flow("PutURLs, one stream, new", load.put_items().await?);
    figures.flow("PutURLs, one stream, known", load.put_items().await?);
    progress::note("putting URLs in batches");
    figures.floor("echo: PutDiscovered, batches of 500", echo_batches);
    figures.flow("PutDiscovered, batches of 500, new", load.put_batches().await?);
    figures.flow("PutDiscovered, batches of 500, known", load.put_batches().await?);
    figures.without_floor();
    progress::note("getting, fetching and reporting");
    let (cycles, gets) = load.cycle(args.workers).await?;
    figures.rate("steady cycle, pages", &cycles);
    figures.rate("GetURLs of 100 queues, in the cycle", &gets);
    figures.flow("in 1000 calls of the cycle, over ten medians", per_mille(&[&cycles, &gets]));
    server.tell(&mut figures, load.put_so_far())?;
    server.end()?;
    figures.rate(&format!("GetURLs, {DUE} queues, all due"), &few);
    many_queues(args, &mut figures).await?;
    Ok(figures)
}

/// The rates at which nothing is kept: items one by one, and in batches.
async fn limit_of_the_wire(args: &BenchUrlfrontierArgs) -> anyhow::Result<(f64, f64)> {
    progress::note("measuring the limit of the wire");
    let server = Started::new(Kind::Echo)?;
    let load = Load::connect(&server.address, args.urls).await?;
    let rates = (load.put_items().await?, load.put_batches().await?);
    server.end()?;
    Ok(rates)
}

/// Few of many queues have something due.
async fn many_queues(args: &BenchUrlfrontierArgs, figures: &mut Figures) -> anyhow::Result<()> {
    progress::note("filling many queues");
    let server = Started::or_given(args.address.as_deref())?;
    let load = Load::connect(&server.address, args.queues).await?;
    load.no_delay().await?;
    let calls = load.get_due("many", args.queues, DUE).await?;
    figures.rate(&format!("GetURLs, {} queues, {DUE} due", args.queues), &calls);
    server.tell(figures, args.queues)?;
    server.end()
}

#[expect(clippy::cast_precision_loss, reason = "at most a thousand")]
fn per_mille(calls: &[&super::figures::Calls]) -> f64 {
    calls.iter().map(|calls| calls.stalled()).max().unwrap_or_default() as f64
}
