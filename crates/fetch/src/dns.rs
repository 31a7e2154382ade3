//! From names to addresses, cached and bounded.
//!
//! Nothing here judges an address: whoever connects does, with the very address it connects to.

mod cache;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::config::{ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::Name;
use hickory_resolver::{ResolverBuilder, TokioResolver};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use self::cache::{Answer, Cache};

/// How names are looked up.
#[derive(Clone, Debug, Default)]
pub struct DnsConfig {
    /// Names whose addresses are given here and not looked up, like curl's `--resolve`.
    pub overrides: BTreeMap<String, Vec<IpAddr>>,
    /// The name server to ask. By default those that the system is configured with.
    pub nameserver: Option<SocketAddr>,
    /// The bounds.
    pub limits: DnsLimits,
}

/// The bounds of looking up names.
#[derive(Clone, Copy, Debug)]
pub struct DnsLimits {
    /// How long one name may take.
    pub time: Duration,
    /// How many addresses of one name are kept.
    pub addresses: usize,
    /// How many names are remembered.
    pub names: usize,
    /// How many names are looked up at once; others wait.
    pub at_once: usize,
    /// An answer is kept for at least this long, even if it says that it should not be kept at all.
    pub least_ttl: Duration,
    /// An answer is kept for at most this long, whatever it says.
    pub most_ttl: Duration,
    /// How long it is remembered that a name does not exist or could not be looked up.
    pub failure_ttl: Duration,
}

impl Default for DnsLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(5),
            addresses: 16,
            names: 50_000,
            at_once: 256,
            least_ttl: Duration::from_secs(1),
            most_ttl: Duration::from_hours(1),
            failure_ttl: Duration::from_secs(10),
        }
    }
}

/// Why a name has no address for us.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DnsError {
    /// There is no such name.
    #[error("the host {host} does not exist")]
    NoSuchHost {
        /// The name.
        host: String,
    },
    /// The name exists, but has no address.
    #[error("the host {host} has no address")]
    NoAddress {
        /// The name.
        host: String,
    },
    /// No answer came in time.
    #[error("the address of {host} was not found within {limit:?}")]
    TimedOut {
        /// The name.
        host: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The name servers failed, or the name cannot be asked for.
    #[error("the address of {host} cannot be looked up: {cause}")]
    Failed {
        /// The name.
        host: String,
        /// What went wrong.
        cause: String,
    },
}

/// Looks up the addresses of hosts. Clones share one cache.
#[derive(Clone)]
pub struct Resolver(Arc<Inner>);

struct Inner {
    client: TokioResolver,
    overrides: BTreeMap<String, Arc<[IpAddr]>>,
    limits: DnsLimits,
    cache: Cache,
    at_once: Semaphore,
}

impl Resolver {
    /// A resolver that has asked for nothing yet. It reads the configuration of the system now.
    pub fn new(config: DnsConfig) -> Result<Self, DnsError> {
        let client = client(&config).map_err(|error| failed("any host", &error))?;
        let overrides = config.overrides.into_iter();
        Ok(Self(Arc::new(Inner {
            client,
            overrides: overrides
                .map(|(host, to)| (plain_name(&host).to_ascii_lowercase(), to.into()))
                .collect(),
            limits: config.limits,
            cache: Cache::new(config.limits.names),
            at_once: Semaphore::new(config.limits.at_once),
        })))
    }

    /// The addresses of a host as it stands in a URL: a name, or an address itself.
    ///
    /// Several that ask for one name at the same time share one question.
    pub async fn lookup(&self, host: &str) -> Result<Arc<[IpAddr]>, DnsError> {
        if let Some(address) = literal(host) {
            return Ok(Arc::new([address]));
        }
        let name = plain_name(host);
        if is_localhost(name) {
            return Ok(Arc::new([Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]));
        }
        if let Some(addresses) = self.0.overrides.get(name) {
            return Ok(addresses.clone());
        }
        let cell = self.0.cache.cell(name, Instant::now());
        // Where the one that asks goes away, the next that waits asks instead.
        let answer = cell.get_or_init(|| self.0.ask(name)).await;
        answer.addresses.clone()
    }
}

impl Inner {
    async fn ask(&self, host: &str) -> Answer {
        let _turn = self.at_once.acquire().await;
        let limit = self.limits.time;
        let asked = tokio::time::timeout(limit, self.query(host)).await;
        let now = Instant::now();
        match asked.unwrap_or_else(|_| Err(DnsError::TimedOut { host: host.to_owned(), limit })) {
            Ok((addresses, ttl)) => {
                let ttl = ttl.clamp(self.limits.least_ttl, self.limits.most_ttl.max(self.limits.least_ttl));
                Answer { addresses: Ok(addresses), until: now + ttl }
            }
            Err(error) => Answer { addresses: Err(error), until: now + self.limits.failure_ttl },
        }
    }

    async fn query(&self, host: &str) -> Result<(Arc<[IpAddr]>, Duration), DnsError> {
        let mut name = Name::from_ascii(host)
            .map_err(|error| DnsError::Failed { host: host.to_owned(), cause: error.to_string() })?;
        // The host of a URL is the whole name: what the system appends to short names is for people.
        name.set_fqdn(true);
        let found = self.client.lookup_ip(name).await.map_err(|error| failed(host, &error))?;
        let addresses: Arc<[IpAddr]> = found.iter().take(self.limits.addresses).collect();
        if addresses.is_empty() {
            return Err(DnsError::NoAddress { host: host.to_owned() });
        }
        Ok((addresses, found.valid_until().saturating_duration_since(std::time::Instant::now())))
    }
}

fn client(config: &DnsConfig) -> Result<TokioResolver, NetError> {
    let mut builder = match config.nameserver {
        Some(address) => asking(address),
        // Without a usable configuration the C library asks this machine; so do we. Nobody's names
        // go to a public server that they did not choose.
        None => TokioResolver::builder_tokio()
            .unwrap_or_else(|_| asking(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 53))),
    };
    let options = builder.options_mut();
    // Many machines that crawl have no IPv6; none has only that and can still reach IPv4 sites.
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.try_tcp_on_error = true;
    options.max_active_requests = config.limits.at_once;
    // Answers are kept in a cache of our own, whose bounds are ours.
    options.cache_size = 0;
    builder.build()
}

fn asking(address: SocketAddr) -> ResolverBuilder<TokioRuntimeProvider> {
    let at_port = |mut connection: ConnectionConfig| {
        connection.port = address.port();
        connection
    };
    let connections = vec![at_port(ConnectionConfig::udp()), at_port(ConnectionConfig::tcp())];
    let server = NameServerConfig::new(address.ip(), true, connections);
    let config = ResolverConfig::from_name_servers(vec![server]);
    TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
}

fn failed(host: &str, error: &NetError) -> DnsError {
    let host = host.to_owned();
    match error {
        error if error.is_nx_domain() => DnsError::NoSuchHost { host },
        error if error.is_no_records_found() => DnsError::NoAddress { host },
        error => DnsError::Failed { host, cause: error.to_string() },
    }
}

/// The address that a host is, if it is one. IPv6 stands in brackets.
pub(crate) fn literal(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(v6) => v6.parse().map(IpAddr::V6).ok(),
        None => host.parse().map(IpAddr::V4).ok(),
    }
}

/// A name without the dot that makes it absolute.
pub(crate) fn plain_name(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}
