//! Making connections, to addresses that may be connected to and no others.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use ::http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tower_service::Service;

use super::failure::{cause, innermost};
use super::{Failure, Phase, TlsReason, tls};
use crate::address::{AddressPolicy, Refused};
use crate::dns::Resolver;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>;

/// How many addresses of one host are tried.
const ATTEMPTS: usize = 4;

/// Makes connections, encrypted ones for https, within a time.
#[derive(Clone)]
pub(super) struct Connector {
    https: HttpsConnector<Tcp>,
    limit: Duration,
}

impl Connector {
    pub(super) fn new(
        resolver: Resolver,
        addresses: AddressPolicy,
        tls: ClientConfig,
        limit: Duration,
    ) -> Self {
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(Tcp { resolver, addresses, limit });
        Self { https, limit }
    }
}

impl Service<Uri> for Connector {
    type Response = Noted;
    type Error = Failure;
    type Future = Connecting<Noted>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (started, limit) = (Instant::now(), self.limit);
        let host = uri.host().unwrap_or_default().to_owned();
        let connecting = self.https.call(uri);
        Box::pin(async move {
            // Also for those connections that nobody waits for any more: the pool finishes them.
            match tokio::time::timeout(limit, connecting).await {
                Ok(Ok(stream)) => Noted::new(stream, started.elapsed(), host),
                Ok(Err(error)) => Err(failure(error, host)),
                Err(_) => Err(Failure::TimedOut { host, phase: Phase::Connect, limit }),
            }
        })
    }
}

/// What went wrong: something of our own on the way there, or else the encryption.
fn failure(error: BoxError, host: String) -> Failure {
    let error = match error.downcast::<Failure>() {
        Ok(failure) => return *failure,
        Err(error) => error,
    };
    let reason = cause(&*error).map_or_else(|| TlsReason::Other(innermost(&*error).to_string()), tls::reason);
    Failure::Tls { host, reason }
}

/// Makes plain connections.
#[derive(Clone)]
struct Tcp {
    resolver: Resolver,
    addresses: AddressPolicy,
    limit: Duration,
}

impl Service<Uri> for Tcp {
    type Response = TokioIo<TcpStream>;
    type Error = Failure;
    type Future = Connecting<TokioIo<TcpStream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { this.connect(&uri).await.map(TokioIo::new) })
    }
}

impl Tcp {
    async fn connect(&self, uri: &Uri) -> Result<TcpStream, Failure> {
        let host = uri.host().unwrap_or_default();
        let default_port = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(default_port);
        let found = self.resolver.lookup(host).await?;
        let (allowed, refused) = self.judged(&found);
        let time_each = self.limit / u32::try_from(allowed.len()).unwrap_or(1).max(1);
        let mut failure = refused.map(|refused| Failure::AddressRefused { host: host.to_owned(), refused });
        for ip in allowed {
            let address = SocketAddr::new(ip, port);
            match open(address, time_each).await {
                Ok(stream) => return Ok(stream),
                Err(error) => {
                    let cause = error.to_string();
                    failure = Some(Failure::Connect { host: host.to_owned(), address, cause });
                }
            }
        }
        // A name that is found has an address; one that is given may have none.
        Err(failure.unwrap_or_else(|| crate::dns::DnsError::NoAddress { host: host.to_owned() }.into()))
    }

    /// The addresses to try, and one that may not be.
    fn judged(&self, found: &[IpAddr]) -> (Vec<IpAddr>, Option<Refused>) {
        let mut refused = None;
        let is_allowed = |ip: &&IpAddr| match self.addresses.check(**ip) {
            Ok(()) => true,
            Err(reason) => {
                refused.get_or_insert(reason);
                false
            }
        };
        let allowed = found.iter().filter(is_allowed).take(ATTEMPTS).copied().collect();
        (allowed, refused)
    }
}

async fn open(address: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let connecting = tokio::time::timeout(limit, TcpStream::connect(address));
    let stream = connecting.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// What is known of a connection.
#[derive(Clone)]
pub(super) struct Note {
    /// Where it goes.
    pub(super) address: SocketAddr,
    took: Duration,
    used: Arc<AtomicBool>,
}

impl Note {
    /// How long it took to make the connection; told once.
    pub(super) fn first_use(&self) -> Option<Duration> {
        (!self.used.swap(true, Ordering::Relaxed)).then_some(self.took)
    }

    /// Whether the connection has brought an answer before.
    pub(super) fn was_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }
}

/// A connection and its note.
pub(super) struct Noted {
    stream: MaybeHttpsStream<TokioIo<TcpStream>>,
    note: Note,
}

impl Noted {
    fn new(
        stream: MaybeHttpsStream<TokioIo<TcpStream>>,
        took: Duration,
        host: String,
    ) -> Result<Self, Failure> {
        let tcp = match &stream {
            MaybeHttpsStream::Http(tcp) => tcp.inner(),
            MaybeHttpsStream::Https(tls) => tls.inner().get_ref().0.inner().inner(),
        };
        // A connection that has no other end any more has just been closed by it.
        let address = tcp.peer_addr().map_err(|_| Failure::Closed { host, reused: false })?;
        Ok(Self { stream, note: Note { address, took, used: Arc::default() } })
    }
}

impl Connection for Noted {
    fn connected(&self) -> Connected {
        self.stream.connected().extra(self.note.clone())
    }
}

impl Read for Noted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Noted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }
}
