//! The command that serves the queue.

use std::net::{AddrParseError, IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::QueuePlace;

/// Serve the queue to clients of URLFrontier, such as StormCrawler and Scrapy
///
/// Speaks the gRPC interface of URLFrontier 2.6. A crawl is a collection and a queue key a host, so that what clients put
/// can be read with `queue`, `explain`, `events` and `export`. A collection that a client makes is plain: URLs stay as they
/// are sent, and the dates of the client rule. One with profiles applies them.
///
/// Prints one line when it listens. SIGTERM or Ctrl-C ends it when what has arrived is acknowledged; a second one ends it at
/// once, and loses nothing that was acknowledged either. What is under way, delays, blocks and limits outlive it.
///
/// Exit status:
///    0  it was stopped
///    2  a flag is wrong
///    3  the disk is full
///    4  something else that was asked for, or the configuration, is wrong: trying again will not help
///    8  the queue cannot be had, or takes nothing more in until it is opened again
///   13  it was stopped at once
///   17  the folder of the queue is damaged
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    disable_help_flag = true,
    after_long_help = "Example:\n  $ forager serve --prometheus 9100\n  Started URLFrontierServer on port 7071"
)]
pub(crate) struct ServeArgs {
    /// The port to listen on; 0 for any that is free
    #[arg(long, short, value_name = "PORT", default_value_t = 7071)]
    pub(crate) port: u16,

    /// The address to listen on, or `localhost`
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_parser = address)]
    pub(crate) listen: IpAddr,

    /// The name that clients are told this server by
    #[arg(long, short = 'h', value_name = "HOST", default_value = "localhost")]
    pub(crate) host: String,

    /// Serve figures for Prometheus on this port, under /metrics, with /healthz and /readyz; 0 for any that is free
    #[arg(long, short = 's', value_name = "PORT")]
    pub(crate) prometheus: Option<u16>,

    /// A file of settings, a `key=value` a line, as that of URLFrontier
    #[arg(long, short = 'c', value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    /// What clients have to show, as `authorization: Bearer TOKEN`
    #[arg(long, value_name = "TOKEN", env = "FORAGER_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,

    /// A file with the token, on one line
    #[arg(long, value_name = "FILE", env = "FORAGER_TOKEN_FILE", conflicts_with = "token")]
    pub(crate) token_file: Option<PathBuf>,

    /// The certificate to encrypt connections with, and those that lead to one that is trusted, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Listen beyond this machine even without a token or without encryption
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Settings of URLFrontier: `putURLs.max.inflight` and `putDiscovered.max.inflight` count, others are passed over
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) keys: Vec<String>,

    #[command(flatten)]
    pub(crate) place: QueuePlace,

    // Its short form is that of the host.
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// An address. The one name that needs nobody to look it up is understood too.
fn address(text: &str) -> Result<IpAddr, AddrParseError> {
    if text.eq_ignore_ascii_case("localhost") { Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)) } else { text.parse() }
}
