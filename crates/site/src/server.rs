//! Serving a site on loopback.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use jiff::Timestamp;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::log::Log;
use crate::respond::{Placed, Served};
use crate::site::{Host, Site, url};

/// The most connections to one address at a time.
const MOST_CONNECTIONS: usize = 4096;
/// How many ports are tried until one is free at every address.
const MOST_TRIES: usize = 50;
/// The wait after a connection could not be accepted, most often for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(20);

/// Serves sites.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Serves a site until what is returned is dropped. The clock says what time it is for the site and its log;
    /// it may be faster than the one on the wall.
    ///
    /// Hosts are given 127.0.0.2 and so on in their order. Where the system has no such addresses, as macOS has
    /// not, they share 127.0.0.1.
    pub async fn start(
        site: Site,
        clock: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) -> io::Result<Running> {
        let (listeners, places) = match bind(&site).await {
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable && !site.is_on_one_address => {
                bind(&site.clone().on_one_address()).await?
            }
            bound => bound?,
        };
        let port = listeners.first().map_or(Ok(site.port), |one| one.local_addr().map(|at| at.port()))?;
        let log = Log::new(Arc::new(clock));
        let put = |(host, address): (Host, IpAddr)| Placed { name: host.name().into(), address, host };
        let hosts: Vec<Placed> = site.hosts.into_iter().zip(places).map(put).collect();
        let addresses =
            hosts.iter().map(|host| (host.name.to_string(), SocketAddr::new(host.address, port))).collect();
        let served = Arc::new(Served { hosts, port, log: log.clone() });
        let mut tasks = JoinSet::new();
        for listener in listeners {
            tasks.spawn(accept(listener, served.clone()));
        }
        Ok(Running { addresses, port, log, tasks })
    }
}

/// A site that is served. It ends when this is dropped, and with it every request under way.
#[derive(Debug)]
pub struct Running {
    addresses: BTreeMap<String, SocketAddr>,
    port: u16,
    log: Log,
    tasks: JoinSet<()>,
}

impl Running {
    /// Where each host is served.
    pub fn addresses(&self) -> &BTreeMap<String, SocketAddr> {
        &self.addresses
    }

    /// The port of all of them.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What was asked.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// An address at a host.
    pub fn url(&self, host: &str, path: &str) -> String {
        url(host, self.port, path)
    }

    /// Where the names of the hosts lead, for a client that has to be told.
    pub fn overrides(&self) -> BTreeMap<String, Vec<IpAddr>> {
        self.addresses.iter().map(|(name, address)| (name.clone(), vec![address.ip()])).collect()
    }

    /// Ends the server, and waits until it has.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

/// The addresses of the hosts, in their order.
fn places(site: &Site) -> Vec<IpAddr> {
    let taken: Vec<IpAddr> = site.hosts.iter().filter_map(|host| host.address).collect();
    let first = u32::from(Ipv4Addr::new(127, 0, 0, 2));
    let mut free =
        (first..).map(|number| IpAddr::V4(Ipv4Addr::from(number))).filter(|ip| !taken.contains(ip));
    let place = |host: &Host| {
        let given = if site.is_on_one_address { Some(Ipv4Addr::LOCALHOST.into()) } else { host.address };
        given.or_else(|| free.next()).unwrap_or(Ipv4Addr::LOCALHOST.into())
    };
    site.hosts.iter().map(place).collect()
}

/// Listens at every address, at one port.
async fn bind(site: &Site) -> io::Result<(Vec<TcpListener>, Vec<IpAddr>)> {
    let places = places(site);
    let mut distinct = places.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let mut last = None;
    for _ in 0..MOST_TRIES {
        match bind_all(&distinct, site.port).await {
            Ok(listeners) => return Ok((listeners, places)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && site.port == 0 => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AddrInUse.into()))
}

async fn bind_all(addresses: &[IpAddr], port: u16) -> io::Result<Vec<TcpListener>> {
    let (mut listeners, mut port) = (Vec::new(), port);
    for address in addresses {
        let listener = TcpListener::bind((*address, port)).await?;
        port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(listeners)
}

async fn accept(listener: TcpListener, served: Arc<Served>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= MOST_CONNECTIONS {
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(serve(stream, served.clone()));
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn serve(stream: TcpStream, served: Arc<Served>) {
    let Ok(address) = stream.local_addr() else { return };
    // An answer is not to wait for more to be sent with it.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let served = served.clone();
        async move { Ok::<_, std::convert::Infallible>(served.respond(request, address.ip()).await) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    // Clients that break off are nothing to be told of: the log has them.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}
