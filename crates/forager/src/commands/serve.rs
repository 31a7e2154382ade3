//! `forager serve`

mod files;
mod settings;

use std::io::{ErrorKind, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use forager_core::time::Interval;
use forager_crawl::Stop;
use forager_frontier::Options as StoreOptions;
use forager_server::limits::MAX_CONNECTIONS;
use forager_server::{Metrics, Options, Server, Tls, export};
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::watch;

use self::files::Shares;
use self::settings::Settings;
use crate::Outcome;
use crate::cli::ServeArgs;
use crate::config::Config;
use crate::crawling::with_signals;
use crate::output;
use crate::runtime;
use crate::store::Queue;

/// For how many seconds a call waits for a database that is away, at most. Clients wait for the answer, and do better to
/// learn that it failed than to hang.
const PATIENCE: f64 = 30.0;

pub(super) fn run(args: &ServeArgs) -> anyhow::Result<Outcome> {
    let token = token(args)?;
    guard(args, token.as_deref())?;
    let settings = Settings::read(args.settings.as_deref(), &args.keys)?;
    if !settings.others.is_empty() {
        let others = settings.others.join(", ");
        output::tell(format_args!("passed over, as this server has no such settings: {others}"));
    }
    let tls = tls(args)?;
    let shares = shares();
    let mut config = Config::load(&args.place.config)?;
    let patience = &mut config.store.postgres.patience;
    *patience = Interval::from_secs_f64(PATIENCE).min(*patience);
    with_signals(
        |_| {},
        async |signals| {
            let listener = listen(args.listen, args.port, "--port").await?;
            let opened = StoreOptions { open_files: shares.cached, ..StoreOptions::default() };
            let queue = Queue::open_as(&args.place, &config, opened).await?;
            let options = options(args, &settings, shares, token, tls);
            let served = serve(args, &queue, listener, options, signals.stop).await;
            queue.close().await?;
            served
        },
    )
}

/// Serves until it is told to stop.
async fn serve(
    args: &ServeArgs,
    queue: &Queue,
    listener: TcpListener,
    options: Options,
    stop: watch::Receiver<Stop>,
) -> anyhow::Result<Outcome> {
    let port = listener.local_addr()?.port();
    let options = Options { name: format!("{}:{port}", args.host), ..options };
    let server = Server::new(queue.frontier(), Arc::new(Timestamp::now), options)?;
    if let Some(port) = args.prometheus {
        export_figures(args, port, server.metrics(), stop.clone()).await?;
    }
    announce(port)?;
    let serving = server.run(listener, asked(stop.clone(), Stop::Drain));
    tokio::select! {
        ended = serving => ended.map(|()| Outcome::Complete).map_err(Into::into),
        () = asked(stop, Stop::Now) => Ok(Outcome::Forced),
    }
}

/// Who may have how many open files. Where they are so few that clients may have to wait, that is told.
fn shares() -> Shares {
    let files = files::most();
    let shares = Shares::of(files);
    if shares.connections < MAX_CONNECTIONS {
        output::tell(format_args!(
            "{} connections at a time, for no more than {files} files may be open (ulimit -n)",
            shares.connections
        ));
    }
    shares
}

/// How the server behaves; its name is known when its port is.
fn options(
    args: &ServeArgs,
    settings: &Settings,
    shares: Shares,
    token: Option<String>,
    tls: Option<Tls>,
) -> Options {
    Options {
        name: args.host.clone(),
        token,
        tls,
        items_in_flight: settings.items_in_flight,
        batches_in_flight: settings.batches_in_flight,
        connections: shares.connections,
        complain: |problem| output::complain(format_args!("{problem}")),
    }
}

/// What clients have to show: as it is given, or what a file has on its line.
fn token(args: &ServeArgs) -> anyhow::Result<Option<String>> {
    let Some(path) = &args.token_file else { return Ok(args.token.clone()) };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let token = text.trim_end_matches(['\r', '\n']);
    if token.contains(['\r', '\n']) {
        bail!("{} has more than one line; a token is one", path.display());
    }
    Ok(Some(token.to_owned()))
}

/// Programs that start the server wait for this line. Where nobody reads it any more, clients are served all the same.
fn announce(port: u16) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match writeln!(stdout, "Started URLFrontierServer on port {port}").and_then(|()| stdout.flush()) {
        Err(cause) if cause.kind() != ErrorKind::BrokenPipe => Err(cause.into()),
        _ => Ok(()),
    }
}

/// Serves figures, beside all else: whoever looks after a server asks most when nothing else goes on.
async fn export_figures(
    args: &ServeArgs,
    port: u16,
    metrics: Arc<Metrics>,
    stop: watch::Receiver<Stop>,
) -> anyhow::Result<()> {
    let aside = runtime::aside()?;
    let listener = aside.spawn(listen(args.listen, port, "--prometheus")).await??;
    output::tell(format_args!("figures for Prometheus: http://{}/metrics", listener.local_addr()?));
    aside.spawn(async move {
        if let Err(cause) = export(listener, metrics, asked(stop, Stop::Drain)).await {
            output::complain(format_args!("no more figures: {cause}"));
        }
    });
    Ok(())
}

/// Waits until a stop is asked for, this one or a more sudden one.
async fn asked(mut stop: watch::Receiver<Stop>, least: Stop) {
    let is_enough = |asked: &Stop| *asked == least || *asked == Stop::Now;
    if stop.wait_for(is_enough).await.is_err() {
        std::future::pending::<()>().await; // nobody is left who could ask
    }
}

/// Listens on a port that an option names.
async fn listen(ip: IpAddr, port: u16, option: &str) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::new(ip, port);
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address} ({option})"))
}

/// Refuses to serve strangers unasked.
fn guard(args: &ServeArgs, token: Option<&str>) -> anyhow::Result<()> {
    if token.is_some_and(|token| token.trim().is_empty()) {
        bail!("an empty token opens to everybody; give one, or none at all");
    }
    let lacks: Vec<&str> =
        [("a token (--token)", token.is_none()), ("encryption (--tls-cert)", args.tls_cert.is_none())]
            .into_iter()
            .filter_map(|(what, is_lacking)| is_lacking.then_some(what))
            .collect();
    if args.listen.is_loopback() || lacks.is_empty() {
        return Ok(());
    }
    let (address, them) = (args.listen, if lacks.len() > 1 { "them" } else { "it" });
    let lacks = lacks.join(" and ");
    if !args.insecure {
        bail!(
            "{address} can be reached from other machines, and this server lacks {lacks}; add {them}, or say --insecure"
        );
    }
    output::complain(format_args!(
        "warning: {address} can be reached from other machines, and this server lacks {lacks}"
    ));
    Ok(())
}

fn tls(args: &ServeArgs) -> anyhow::Result<Option<Tls>> {
    let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) else { return Ok(None) };
    Ok(Some(Tls {
        certificate: pem(certificate, "certificate", "CERTIFICATE-----")?,
        key: pem(key, "key", "PRIVATE KEY-----")?,
    }))
}

/// What a file has, in which there must be something of a kind.
fn pem(path: &Path, what: &str, mark: &str) -> anyhow::Result<Vec<u8>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !String::from_utf8_lossy(&bytes).contains(mark) {
        bail!("{} cannot be used: there is no {what} in it, as PEM", path.display());
    }
    Ok(bytes)
}
