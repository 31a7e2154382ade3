//! The connections, and what runs beside the calls: telling others of news, and hearing of theirs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Notify, watch};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Error as PgError, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{PostgresOptions, configure, tls};
use super::call::Attempt;
use super::failure::{Failure, SILENT, said, to_error};
use super::session::{self, Session, Statements};
use crate::error::{Error, Result};

/// What speaks to the server for a connection that is made beside those of calls.
type Connection = tokio_postgres::Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// What background tasks need too.
#[derive(Debug)]
pub(super) struct Shared {
    pool: Pool,
    pub(super) config: tokio_postgres::Config,
    pub(super) options: PostgresOptions,
    statements: Arc<Statements>,
    channel: String,
    /// Whether anything was ever heard of a server at this address.
    is_known: AtomicBool,
    pub(super) bell: watch::Sender<u64>,
    pub(super) news: Notify,
    /// How often there were news, and how many of these others were told of.
    pub(super) heard: AtomicU64,
    pub(super) told: AtomicU64,
}

impl Shared {
    pub(super) fn new(url: &str, options: PostgresOptions) -> Result<Self> {
        let (config, options) = configure(url, options)?;
        let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config.clone(), tls(&config, &options)?, manager);
        let limit = connection_limit(&config);
        let pool = Pool::builder(manager)
            .max_size(options.connections)
            .runtime(Runtime::Tokio1)
            .create_timeout(Some(limit))
            .recycle_timeout(Some(limit))
            // Others have them all for as long as their statements take.
            .wait_timeout(Some(limit.max(options.statement_timeout)))
            .build();
        Ok(Self {
            statements: Arc::new(Statements::new(&options.schema)),
            channel: format!("{}_news", options.schema),
            pool: pool.map_err(|cause| Error::Configuration(cause.to_string()))?,
            config,
            is_known: AtomicBool::new(options.is_known),
            options,
            bell: watch::Sender::new(0),
            news: Notify::new(),
            heard: AtomicU64::new(0),
            told: AtomicU64::new(0),
        })
    }

    pub(super) async fn session(&self) -> Result<Session, Failure> {
        let connection = self.pool.get().await.map_err(Failure::Pool)?;
        self.is_known.store(true, Ordering::Relaxed);
        let Self { statements, options, .. } = self;
        Ok(Session::new(connection, statements.clone(), options.prepares, options.statement_timeout))
    }

    /// A connection for what is no call. A server that is about to be there is waited for.
    pub(super) async fn session_in_time(&self, attempt: &mut Attempt) -> Result<Session> {
        loop {
            match self.session().await {
                Ok(session) => return Ok(session),
                Err(failure) => self.wait_out(attempt, failure).await?,
            }
        }
    }

    /// The number of a lock of this schema.
    pub(super) fn lock_key(&self, what: &str) -> i64 {
        lock_key(&self.options.schema, what)
    }

    /// Waits after a failure before something is tried again that is no call, if time may mend it. Where nobody has ever
    /// answered, the address is more likely to be wrong.
    pub(super) async fn wait_out(&self, attempt: &mut Attempt, failure: Failure) -> Result<()> {
        if failure.is_said() {
            self.is_known.store(true, Ordering::Relaxed);
        }
        match failure.passing() {
            Some(problem) if self.is_known.load(Ordering::Relaxed) => self.pause(attempt, &problem).await,
            _ => Err(to_error(failure)),
        }
    }

    /// Waits a little longer each time for a server that cannot be reached, and gives up in the end.
    pub(super) async fn pause(&self, attempt: &mut Attempt, problem: &str) -> Result<()> {
        let since = *attempt.since.get_or_insert_with(std::time::Instant::now);
        if since.elapsed() > self.options.patience {
            let waited = self.options.patience.as_secs();
            let problem = format!("it could not be used for {waited} s: {problem}");
            return Err(Error::Database { problem });
        }
        attempt.failures += 1;
        let millis = 50_u64 << attempt.failures.min(6);
        let spread = rand::random_range(0..=millis / 2);
        tokio::time::sleep(Duration::from_millis(millis + spread)).await;
        Ok(())
    }

    /// What runs beside the calls: telling others of news, and hearing of theirs.
    pub(super) fn start_tasks(self: &Arc<Self>) -> Vec<tokio::task::JoinHandle<()>> {
        let (teller, hearer) = (self.clone(), self.clone());
        vec![
            tokio::spawn(async move { teller.tell().await }),
            tokio::spawn(async move { hearer.hear().await }),
        ]
    }

    /// Tells other processes that there may be something to claim, but not more often than they can use it.
    async fn tell(&self) {
        loop {
            self.news.notified().await;
            self.tell_now().await;
            tokio::time::sleep(TELL_EVERY).await;
        }
    }

    pub(super) async fn tell_now(&self) {
        const TELL: &str = "SELECT pg_notify($1, '')";
        let heard = self.heard.load(Ordering::Relaxed);
        if let Ok(session) = self.session().await {
            // Whoever does not hear of it looks by himself, a little later.
            let _ = session.query(TELL, &[(&self.channel, Type::TEXT)]).await;
            self.told.fetch_max(heard, Ordering::Relaxed);
        }
    }

    /// Rings whenever other processes have news, and now and then in case they could not say so.
    async fn hear(&self) {
        loop {
            if self.options.listens {
                // Comes back only when the connection is lost.
                let _ = self.listen().await;
            }
            let spread = Duration::from_millis(rand::random_range(0..1000));
            tokio::time::sleep(LOOK_EVERY + spread).await;
            self.bell.send_modify(|count| *count += 1);
        }
    }

    async fn listen(&self) -> Result<()> {
        let (client, mut connection) = self.connect().await?;
        let (sender, mut messages) = tokio::sync::mpsc::channel(1);
        let driver = tokio::spawn(async move {
            let mut stream = std::pin::pin!(futures_util::stream::poll_fn(move |context| {
                connection.poll_message(context)
            }));
            while let Some(Ok(message)) = futures_util::StreamExt::next(&mut stream).await {
                if matches!(message, AsyncMessage::Notification(_)) {
                    // One that waits already says the same.
                    let _ = sender.try_send(());
                }
            }
        });
        let listen = format!("LISTEN {}", session::quoted(&self.channel));
        let listening = self.soon(client.batch_execute(&listen)).await;
        if listening.is_ok() {
            self.bell.send_modify(|count| *count += 1);
            while let Ok(Some(())) | Err(_) = tokio::time::timeout(LOOK_EVERY * 6, messages.recv()).await {
                self.bell.send_modify(|count| *count += 1);
            }
        }
        driver.abort();
        listening
    }

    /// A connection beside those of calls.
    pub(super) async fn connect(&self) -> Result<(Client, Connection)> {
        self.soon(self.config.connect(tls(&self.config, &self.options)?)).await
    }

    /// What is there as soon as a connection has to be.
    async fn soon<T>(&self, answer: impl Future<Output = Result<T, PgError>>) -> Result<T> {
        match tokio::time::timeout(connection_limit(&self.config), answer).await {
            Ok(answer) => answer.map_err(|cause| said(&cause)),
            Err(_) => Err(Error::Database { problem: SILENT.to_owned() }),
        }
    }
}

/// How long it may take until there is a connection: so much as is allowed for reaching each host, and once more for what is
/// said before the first statement.
fn connection_limit(config: &tokio_postgres::Config) -> Duration {
    let each = config.get_connect_timeout().copied().unwrap_or(Duration::from_secs(10));
    each.saturating_mul(u32::try_from(config.get_hosts().len() + 1).unwrap_or(u32::MAX))
}

/// How often others are told of news at most.
const TELL_EVERY: Duration = Duration::from_millis(25);

/// How often those look by themselves who cannot be told.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The number of a lock, from a name. `calls_lock` in the schema works it out too.
fn lock_key(schema: &str, what: &str) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&Sha256::digest(format!("forager {schema} {what}"))[..8]);
    i64::from_be_bytes(first)
}
