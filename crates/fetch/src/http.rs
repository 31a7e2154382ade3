//! One request and its answer, with a limit on everything.
//!
//! [`Http::get`] sends exactly one request and follows no redirect: each hop has to pass scope,
//! robots and politeness first, and those are not known here. What is decided here, for every
//! connection and on the address that it goes to, is whether it may be made at all.

mod body;
mod connect;
mod decode;
mod failure;
mod limits;
mod request;
mod response;
mod tls;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ::http::HeaderMap;
use ::http::header::{ACCEPT_ENCODING, FROM, HeaderValue, USER_AGENT};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::capture_connection;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls_pki_types::CertificateDer;
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep};

use self::body::Room;
use self::connect::{Connector, Note};
pub use self::failure::{Class, Failure, Phase, TlsReason};
pub use self::limits::Limits;
pub use self::request::Request;
pub use self::response::{CutOff, RETRY_AFTER_MAX, Response, Timings};
pub use self::tls::authorities_from_pem;
use crate::address::AddressPolicy;
use crate::dns::{DnsConfig, DnsError, DnsLimits, Resolver, literal, plain_name};

/// What is undone by [`decode`], in the order in which browsers ask for it.
const ENCODINGS: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");

/// How long a connection without a request is kept, and how many of one host.
///
/// Politeness puts seconds between two requests to one host; most servers wait longer than that.
const IDLE: (Duration, usize) = (Duration::from_secs(15), 4);

/// How many bodies may be longer than usual at a time, so that memory is bounded however many requests ask for such.
const MOST_LARGE: usize = 2;

/// Everything that [`Http`] has to be told.
#[derive(Clone, Debug, Default)]
pub struct HttpConfig {
    /// Who is asking, with a way to reach a person.
    pub user_agent: String,
    /// The mail address of that person, sent as `From`.
    pub from: Option<String>,
    /// The bounds.
    pub limits: Limits,
    /// Which addresses may be connected to. Where `user_agent` has no way to reach a person, these should be
    /// [anonymous](AddressPolicy::anonymous).
    pub addresses: AddressPolicy,
    /// Names whose addresses are given here and not looked up. They are judged like any other.
    pub overrides: BTreeMap<String, Vec<IpAddr>>,
    /// The name server to ask. By default those that the system is configured with.
    pub nameserver: Option<SocketAddr>,
    /// Authorities to trust besides those that browsers do; see [`authorities_from_pem`].
    pub extra_authorities: Vec<CertificateDer<'static>>,
}

impl HttpConfig {
    /// Why no connection may lead to a host, as far as that is known without looking up its name.
    pub fn refuses(&self, host: &str) -> Option<Failure> {
        let found = match literal(host) {
            Some(address) => &[address][..],
            None => self.overrides.get(plain_name(host))?,
        };
        let mut judged = found.iter().map(|address| self.addresses.check(*address));
        let refused = judged.next()?.err()?;
        judged.all(|other| other.is_err()).then(|| Failure::AddressRefused { host: host.to_owned(), refused })
    }
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A text that is to be sent has characters that no header may have.
    #[error("{text:?} cannot be sent as {name}: it has characters that no header may have")]
    Header {
        /// The name of the header.
        name: &'static str,
        /// The text.
        text: String,
    },
    /// The resolver cannot be set up.
    #[error("names cannot be looked up: {0}")]
    Dns(#[from] DnsError),
    /// A certificate cannot be used as an authority.
    #[error("the certificate authority cannot be used: {cause}")]
    Authority {
        /// What is wrong with it.
        cause: String,
    },
}

/// A client. Clones share its connections and what it knows of names.
#[derive(Clone)]
pub struct Http(Arc<Inner>);

struct Inner {
    client: Client<Connector, Empty<Bytes>>,
    /// What every request says.
    headers: HeaderMap,
    limits: Limits,
    /// Places for bodies that are longer than usual.
    large: Arc<Semaphore>,
}

impl Http {
    /// A client that has not connected to anything yet.
    pub fn new(config: HttpConfig) -> Result<Self, ConfigError> {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, header("User-Agent", &config.user_agent)?);
        if let Some(from) = &config.from {
            headers.insert(FROM, header("From", from)?);
        }
        headers.insert(ACCEPT_ENCODING, ENCODINGS);
        let tls = tls::config(config.extra_authorities)?;
        let dns = DnsConfig {
            overrides: config.overrides,
            nameserver: config.nameserver,
            limits: DnsLimits::default(),
        };
        let limits = config.limits;
        let connector = Connector::new(Resolver::new(dns)?, config.addresses, tls, limits.connect);
        let large = Arc::new(Semaphore::new(MOST_LARGE));
        Ok(Self(Arc::new(Inner { client: client(connector, &limits), headers, limits, large })))
    }

    /// Sends one request and reads its answer.
    ///
    /// An answer whose body is not whole is an answer: [`Response::cut_off`] says why. What goes beyond the usual limit, where
    /// the request allows it, may have to wait for others that do; that time does not count, and is as long as the whole may be at
    /// most ([`CutOff::NoRoom`]).
    pub async fn get(&self, request: &Request) -> Result<Response, Failure> {
        let started = Instant::now();
        let limits = request.limits(&self.0.limits);
        // One timer for all phases: moving its end later costs next to nothing.
        let mut clock = std::pin::pin!(tokio::time::sleep(limits.connect.min(limits.whole)));
        let answer = self.head(request, &limits, started, clock.as_mut()).await?;
        let first_byte = started.elapsed();
        let (parts, incoming) = answer.into_parts();
        // Every connection is made by our connector, which leaves one.
        let note = parts.extensions.get::<Note>().ok_or_else(|| Failure::without_note(request.url.host()))?;
        limits.check_headers(&parts.headers, request.url.host())?;
        clock.as_mut().reset(started + limits.whole);
        let mut room = Room::new(&self.0.large, &self.0.limits, clock);
        let body = body::read(incoming, &parts.headers, (&limits, &mut room)).await;
        Ok(Response {
            status: parts.status.as_u16(),
            headers: parts.headers,
            version: parts.version,
            address: note.address,
            body: body.bytes,
            wire_bytes: body.wire_bytes,
            cut_off: body.cut_off,
            undecoded: body.undecoded,
            _room: room.taken(),
            timings: Timings { connect: note.first_use(), first_byte, whole: started.elapsed() },
        })
    }

    /// Connects, sends the request and waits for the head of the answer.
    async fn head(
        &self,
        request: &Request,
        limits: &Limits,
        started: Instant,
        mut clock: Pin<&mut Sleep>,
    ) -> Result<::http::Response<Incoming>, Failure> {
        let host = request.url.host();
        let timed_out = |phase, limit| Failure::TimedOut { host: host.to_owned(), phase, limit };
        let mut message = request.message(&self.0.headers)?;
        let mut connection = capture_connection(&mut message);
        let mut answer = self.0.client.request(message);
        let done = tokio::select! {
            biased;
            done = &mut answer => Some(done),
            _ = connection.wait_for_connection_metadata() => None,
            () = &mut clock => return Err(timed_out(Phase::Connect, limits.connect.min(limits.whole))),
        };
        let end = (Instant::now() + limits.first_byte).min(started + limits.whole);
        clock.as_mut().reset(end);
        let done = if let Some(done) = done {
            done
        } else {
            tokio::select! {
                biased;
                done = answer => done,
                () = clock => return Err(timed_out(Phase::FirstByte, limits.first_byte.min(limits.whole))),
            }
        };
        done.map_err(|error| Failure::of(&error, host, &connection, limits))
    }
}

fn client(connector: Connector, limits: &Limits) -> Client<Connector, Empty<Bytes>> {
    let (idle_time, idle_connections) = IDLE;
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(idle_time)
        .pool_max_idle_per_host(idle_connections)
        .http1_max_buf_size(limits.header_buffer())
        .http2_max_header_list_size(limits.header_list());
    // Other numbers than hyper's own cost an allocation for each answer.
    if limits.header_count != Limits::default().header_count {
        builder.http1_max_headers(limits.header_count);
    }
    builder.build(connector)
}

fn header(name: &'static str, text: &str) -> Result<HeaderValue, ConfigError> {
    HeaderValue::from_str(text).map_err(|_| ConfigError::Header { name, text: text.to_owned() })
}
