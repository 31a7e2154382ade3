//! Where the database is, and how it is used.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Error as PgError;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failure::describe;
use super::migrate::{MIGRATIONS, Migration};
use crate::error::{Error, Result};

/// How a database is used.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// The schema that everything lies in; nothing outside it is touched.
    pub schema: String,
    /// The most connections at a time, besides one that listens.
    pub connections: usize,
    /// How long a statement may take.
    pub statement_timeout: Duration,
    /// How long a call waits for a server that cannot be reached before it fails.
    pub patience: Duration,
    /// Whether there was a server at this address before. Then one that does not answer is waited for from the start on;
    /// otherwise only one that says that it is about to be there.
    pub is_known: bool,
    /// Whether statements are kept prepared at the server. A pooler that hands out connections for single
    /// transactions may not allow it.
    pub prepares: bool,
    /// Whether a connection listens for news from other processes; such a pooler does not allow that either.
    pub listens: bool,
    /// How many numbers a process sets aside for itself at a time; with 1 it takes only what it uses.
    pub number_block: usize,
    /// The steps of the schema that this program knows, in order.
    pub steps: &'static [Migration],
    /// A file (PEM) with the certificates of the authority that the server is known by, instead of those that are known
    /// to everybody.
    pub authority: Option<PathBuf>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            schema: "forager".to_owned(),
            connections: 8,
            statement_timeout: Duration::from_secs(30),
            patience: Duration::from_mins(5),
            is_known: false,
            prepares: true,
            listens: true,
            number_block: 256,
            steps: MIGRATIONS,
            authority: None,
        }
    }
}

impl PostgresOptions {
    /// The version of the schema that this program needs.
    pub fn newest(&self) -> i32 {
        self.steps.last().map_or(0, |last| last.version)
    }

    /// Refuses what no database could be used with: names the setting, and says why.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if let Some(problem) = schema_problem(&self.schema) {
            return Err(("schema", format!("{:?}: {problem}", self.schema)));
        }
        if self.connections == 0 {
            return Err(("connections", "0 is less than 1".to_owned()));
        }
        // The server takes nothing for no limit at all.
        if self.statement_timeout < Duration::from_millis(1) {
            return Err(("statement_timeout", "a statement needs a millisecond at least".to_owned()));
        }
        Ok(())
    }
}

/// Why a schema cannot have this name.
fn schema_problem(name: &str) -> Option<&'static str> {
    let mut bytes = name.bytes();
    let is_name = name.len() <= 48
        && bytes.next().is_some_and(|first| first.is_ascii_lowercase() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    let is_of_server = name == "information_schema" || name.starts_with("pg_");
    match (is_name, is_of_server) {
        (false, _) => Some("at most 48 small letters, digits and _, not beginning with a digit"),
        (true, true) => Some("the server keeps this name for itself"),
        (true, false) => None,
    }
}

/// Reads the address of a database; `schema`, `connections`, `prepare`, `listen` and `sslrootcert` in it are ours.
pub(super) fn configure(
    url: &str,
    mut options: PostgresOptions,
) -> Result<(tokio_postgres::Config, PostgresOptions)> {
    let wrong = |cause: &dyn std::fmt::Display| {
        Error::Configuration(format!("the address of the database cannot be used: {cause}"))
    };
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let mut others = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let ours = pair.split_once('=').map(|(name, value)| (name, decoded(value)));
        match ours.as_ref().map(|(name, value)| (*name, value.as_str())) {
            Some(("schema", schema)) => schema.clone_into(&mut options.schema),
            Some(("prepare", value)) => options.prepares = flag("prepare", value)?,
            Some(("listen", value)) => options.listens = flag("listen", value)?,
            Some(("sslrootcert", file)) => options.authority = Some(file.into()),
            // Whoever goes by certificates at all verifies them here.
            Some(("sslmode", "verify-ca" | "verify-full")) => others.push("sslmode=require"),
            Some(("connections", value)) => {
                options.connections =
                    value.parse().map_err(|cause| wrong(&format!("connections={value}: {cause}")))?;
            }
            _ => others.push(pair),
        }
    }
    options.check().map_err(|(setting, problem)| wrong(&format!("{setting}: {problem}")))?;
    let url = if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) };
    let mut config: tokio_postgres::Config =
        url.parse().map_err(|cause: PgError| wrong(&describe(&cause)))?;
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(10));
    }
    // A machine that is gone answers nothing, and would be waited for for hours.
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(GONE_AFTER);
    }
    if !url.contains("keepalives") {
        config.keepalives_idle(GONE_AFTER / 3).keepalives_interval(GONE_AFTER / 6).keepalives_retries(4);
    }
    if config.get_application_name().is_none() {
        config.application_name("forager");
    }
    Ok((config, options))
}

/// A server of which nothing is heard for so long, though it has something to answer, is gone.
const GONE_AFTER: Duration = Duration::from_secs(30);

/// A value of the address, as everything in it is written: `%2F` for `/`.
fn decoded(value: &str) -> String {
    percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned()
}

fn flag(name: &str, value: &str) -> Result<bool> {
    match value {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => {
            Err(Error::Configuration(format!("{name}={value} in the address of the database: true or false")))
        }
    }
}

/// How connections are made secret: by the certificate of the authority that is named, or those that are known to
/// everybody, unless the address says `disable`.
pub(super) fn tls(config: &tokio_postgres::Config, options: &PostgresOptions) -> Result<MakeRustlsConnect> {
    let mut roots = rustls::RootCertStore::empty();
    match &options.authority {
        _ if config.get_ssl_mode() == SslMode::Disable => {}
        Some(file) => add_authority(&mut roots, file)?,
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|cause| Error::Configuration(cause.to_string()))?;
    Ok(MakeRustlsConnect::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

fn add_authority(roots: &mut rustls::RootCertStore, file: &Path) -> Result<()> {
    use rustls::pki_types::{CertificateDer, pem::PemObject as _};
    let wrong = |cause: &dyn std::fmt::Display| {
        Error::Configuration(format!("the authority of the database, {}: {cause}", file.display()))
    };
    for certificate in CertificateDer::pem_file_iter(file).map_err(|cause| wrong(&cause))? {
        let certificate = certificate.map_err(|cause| wrong(&cause))?;
        roots.add(certificate).map_err(|cause| wrong(&cause))?;
    }
    if roots.is_empty() { Err(wrong(&"there is no certificate in it")) } else { Ok(()) }
}
