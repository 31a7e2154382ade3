//! The server: what it offers, to whom, and how it ends.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;

use forager_frontier::Frontier;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tonic::codec::CompressionEncoding;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server as Transport;
use tonic::transport::server::Router;

use crate::anybody::ForAnybody;
use crate::auth::Auth;
use crate::connections::{self, Door};
use crate::ending::Offered;
use crate::limits::{
    BATCHES_IN_FLIGHT, GRACE, ITEMS_IN_FLIGHT, KEEPALIVE, MAX_CONNECTIONS, MAX_HEADER_BYTES,
    MAX_MESSAGE_BYTES, MAX_QUESTION_BYTES, MAX_STREAMS,
};
use crate::metrics::Metrics;
use crate::proto::DESCRIPTION;
use crate::proto::url_frontier_server::{UrlFrontier, UrlFrontierServer};
use crate::readiness::Readiness;
use crate::service::Service;
use crate::shared::{Clock, Lost, Shared};
use crate::wire::encrypting;

/// How many bytes may be on their way in one stream, so that clients can send while the queue writes; and in all of
/// one connection.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// What is said when the server ends without having given back what clients did not take.
const LEFT_LEASED: &str =
    "the queue gave no answer in time: URLs that clients had not read stay leased until their time is over";

/// Why the server ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Certificate and key cannot be used.
    #[error("the certificate or its key cannot be used; both must be PEM, and belong together")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The description of the service is not as it should be.
    #[error("the description of the service cannot be used")]
    Description(#[source] tonic_reflection::server::Error),
    /// Connections cannot be served.
    #[error("connections cannot be served")]
    Transport(#[source] tonic::transport::Error),
    /// No thread can be had that asks the queue whether it is well.
    #[error("no thread can be started")]
    Thread(#[source] io::Error),
    /// The queue has become one that this program cannot use: why, and what to do.
    #[error("{0}")]
    Unfit(String),
    /// The queue takes nothing more in until it is opened again: why, and what to do.
    #[error("{0}")]
    Stopped(String),
}

/// How a server behaves.
#[derive(Clone)]
pub struct Options {
    /// What it calls itself, such as `localhost:7071`.
    pub name: String,
    /// What clients have to show.
    pub token: Option<String>,
    /// What it is known by where the connection is encrypted.
    pub tls: Option<Tls>,
    /// How many items of one stream may have arrived and wait to be acknowledged.
    pub items_in_flight: usize,
    /// How many batches may.
    pub batches_in_flight: usize,
    /// How many connections there may be at a time.
    pub connections: usize,
    /// Told of calls that the queue could not answer, now and then.
    pub complain: fn(&dyn fmt::Display),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "localhost:7071".to_owned(),
            token: None,
            tls: None,
            items_in_flight: ITEMS_IN_FLIGHT,
            batches_in_flight: BATCHES_IN_FLIGHT,
            connections: MAX_CONNECTIONS,
            complain: |_| {},
        }
    }
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Tls {
    /// The certificate, and those that lead to one that is trusted.
    pub certificate: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
}

/// A server of the queue.
pub struct Server {
    shared: Arc<Shared>,
    encrypting: Option<TlsAcceptor>,
}

impl Server {
    /// A server of a queue.
    pub fn new(frontier: Arc<dyn Frontier>, clock: Clock, options: Options) -> Result<Self, Error> {
        let encrypting = options.tls.as_ref().map(encrypting).transpose()?;
        Ok(Self { shared: Arc::new(Shared::new(frontier, clock, options)), encrypting })
    }

    /// What it counts.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.shared.metrics.clone()
    }

    /// Serves until it is told to stop, or the queue has become one that it cannot use. Then it takes nothing more in, acknowledges what has arrived or says that it
    /// failed, and ends; clients that do not let it end are left. What they have not taken is given back, if the queue
    /// can be reached within the time there is.
    pub async fn run(self, listener: TcpListener, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let Self { shared, encrypting } = self;
        let (health, health_service) = tonic_health::server::health_reporter();
        // Whether the server is well, for whoever watches over it: that needs no token.
        let health_service = ForAnybody::new(health_service.max_decoding_message_size(MAX_QUESTION_BYTES));
        let closing = shared.closing.clone();
        let health_service = Offered::until(health_service, closing.clone());
        let router = router(transport(), &shared)?.add_service(health_service);
        let door = Door::new(listener, shared.options.connections);
        let connections = connections::accept(door, encrypting, shared.metrics.clone(), shared.cut.clone());
        let serving = router.serve_with_incoming_shutdown(connections, closing.clone().cancelled_owned());
        let readiness = Arc::new(Readiness::new(shared.clone(), health));
        readiness.tell(true).await;
        let following = readiness.follow().map_err(Error::Thread)?;
        let stop = async {
            tokio::select! {
                () = stop => {}
                _ = shared.lost.wait() => {}
            }
            following.end().await;
            readiness.tell(false).await;
        };
        let served = ended(serving, stop, || closing.cancel()).await;
        shared.cut.cancel();
        shared.tasks.close();
        // A queue that cannot be reached does not keep it: leases end by themselves, and nothing was acknowledged.
        if tokio::time::timeout(GRACE, shared.tasks.wait()).await.is_err() {
            (shared.options.complain)(&LEFT_LEASED);
        }
        match shared.lost.get().cloned() {
            Some(Lost::Unfit(why)) => Err(Error::Unfit(why)),
            Some(Lost::Stopped(why)) => Err(Error::Stopped(why)),
            None => served,
        }
    }
}

/// Waits for the end of a server. When it is told to stop it has some time to do so.
pub(crate) async fn ended(
    serving: impl Future<Output = Result<(), tonic::transport::Error>>,
    stop: impl Future<Output = ()>,
    close: impl FnOnce(),
) -> Result<(), Error> {
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        served = &mut serving => return served.map_err(Error::Transport),
        () = stop => close(),
    }
    match tokio::time::timeout(GRACE, serving).await {
        Ok(served) => served.map_err(Error::Transport),
        Err(_) => Ok(()),
    }
}

/// What only those who show the token may call.
fn router(mut transport: Transport, shared: &Arc<Shared>) -> Result<Router, Error> {
    let auth = Auth::new(shared.options.token.as_deref());
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTION)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let newer = reflection().build_v1().map_err(Error::Description)?;
    let newer = newer.max_decoding_message_size(MAX_QUESTION_BYTES);
    // Many tools only know the name that it had before.
    let older = reflection().build_v1alpha().map_err(Error::Description)?;
    let older = older.max_decoding_message_size(MAX_QUESTION_BYTES);
    let service = Offered::new(bounded(Service::new(shared.clone())), shared.arriving.clone());
    let (newer, older) =
        (Offered::until(newer, shared.closing.clone()), Offered::until(older, shared.closing.clone()));
    Ok(transport
        .add_service(InterceptedService::new(service, auth.clone()))
        .add_service(InterceptedService::new(newer, auth.clone()))
        .add_service(InterceptedService::new(older, auth)))
}

/// A service with the limits on its messages, which hold for what is compressed once it is not any more.
pub(crate) fn bounded<S: UrlFrontier>(service: S) -> UrlFrontierServer<S> {
    UrlFrontierServer::new(service)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .accept_compressed(CompressionEncoding::Gzip)
}

/// The transport with its limits.
pub(crate) fn transport() -> Transport {
    Transport::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MAX_STREAMS)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
}
