//! What goes wrong with servers, connections and workers: the others go on, and nothing acknowledged is lost.
//!
//! `FORAGER_SOAK_ROUNDS` makes it longer.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use common::heard::{self, Heard, said_by};
use common::postgres::{Cluster, InSchema, apart, client, new_database, script, sql};
use common::setting;
use common::shop::{Clock as _, Floor, Local, audit, begin, lives, see, start};
use forager_frontier::catalog::{Change, CollectionSpec, Kind};
use forager_frontier::host::Setting;
use forager_frontier::verbs::{HostChange, LeaseRequest, Link, Page};
use forager_frontier::{Frontier, Postgres, PostgresOptions, PostgresSchema, Settings};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Lets workers go about their work while something is done to them, and audits what they were told.
fn under_load<F: Future<Output = ()> + Send>(
    schema: InSchema,
    enough: u64,
    harm: impl FnOnce(Arc<Floor<Local>>) -> F + Send + 'static,
) {
    let stores: Vec<Arc<Postgres>> = (0..4).map(|_| Arc::new(schema.connect(Settings::default()))).collect();
    apart(async move {
        begin(&*stores[0]).await;
        let floor = Arc::new(Floor::new(Local::new()));
        let tasks = (0..8_usize).map(|worker| {
            let (floor, store) = (floor.clone(), stores[worker % 4].clone());
            tokio::spawn(async move { floor.work(&*store, worker as u64, enough).await })
        });
        let tasks: Vec<_> = tasks.collect();
        harm(floor.clone()).await;
        for task in tasks {
            task.await.unwrap();
        }
        let notes = floor.take_notes();
        audit(&lives(&notes), &Settings::default());
        see(&*stores[0], &notes, floor.clock.tick(0).await).await;
        schema.is_sound().await;
    });
}

#[test]
fn workers_go_on_when_the_server_crashes() {
    let cluster = Cluster::start();
    let folder = cluster.folder.clone();
    let crashes = setting("FORAGER_SOAK_ROUNDS", 3) as u64;
    under_load(InSchema::at(&cluster.url), (crashes + 1) * 40, move |floor| async move {
        for crash in 1..=crashes {
            while floor.completed() < crash * 40 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let folder = folder.clone();
            tokio::task::spawn_blocking(move || script(&["crash", &folder])).await.unwrap();
        }
    });
}

#[test]
fn workers_go_on_when_their_connections_are_cut() {
    const CUT: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
        AND application_name = 'forager' ORDER BY random() LIMIT 1";
    let url = new_database();
    let enough = setting("FORAGER_SOAK_STEPS", 300) as u64;
    under_load(InSchema::at(&url), enough, move |floor| async move {
        let client = client(&url).await;
        // As far apart as the work goes on, however fast that is.
        let mut amid_work = 0;
        for cut in 0..40 {
            while floor.completed() < enough * cut / 50 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            client.query(CUT, &[]).await.unwrap();
            amid_work += usize::from(floor.completed() < enough);
        }
        assert!(amid_work >= 20, "the work was done after {amid_work} were cut");
    });
}

/// A page with links of its own.
fn page(from: usize, count: usize) -> Page {
    let links = (from..from + count)
        .map(|number| Link { url: format!("https://new{}.example/{number}", number % 9), ..Link::default() });
    let (collection, seed) = ("c".to_owned(), Some("https://h0.example/".to_owned()));
    Page { collection, seed, links: links.collect(), ..Page::default() }
}

/// Waits until the server shows what a statement looks for; returns it.
async fn shown(url: &str, statement: &str) -> String {
    loop {
        if let Some(found) = sql(url, statement).await.pop() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until the server has heard that commits are to wait for a copy: it is told, and goes by it a little later.
async fn commits_wait(url: &str) {
    const TRY: &str = "CREATE TABLE IF NOT EXISTS tried (id integer); INSERT INTO tried VALUES (1)";
    const WAITING: &str =
        "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%INTO tried %'";
    loop {
        let client = client(url).await;
        let tried = tokio::spawn(async move { client.batch_execute(TRY).await });
        while !tried.is_finished() {
            if let Some(pid) = sql(url, WAITING).await.pop() {
                sql(url, &format!("SELECT pg_terminate_backend({pid})")).await;
                let _ = tried.await; // it was ended, which is what was wanted
                return;
            }
        }
    }
}

/// The transaction is committed and waits for a copy elsewhere, of which there is none; then the connection is cut.
#[test]
fn a_commit_that_nobody_was_told_of_is_not_made_twice() {
    const WAITING: &str = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let cluster = Cluster::start();
    let url = cluster.url.clone();
    let mut schema = InSchema::at(&url);
    // One connection at a time: who asks what became of a transaction needs the place of the lost one.
    schema.options.connections = 1;
    let store = Arc::new(schema.connect(Settings::default()));
    apart(async move {
        begin(&*store).await;
        let before = store.stats(Some("c"), start().timestamp()).await.unwrap().remove(0);
        sql(&url, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'").await;
        sql(&url, "SELECT pg_reload_conf()").await;
        commits_wait(&url).await;
        let caller = store.clone();
        let call = tokio::spawn(async move {
            let page = page(0, 20);
            caller.discover(&[page], start().timestamp()).await
        });
        let pid = shown(&url, WAITING).await;
        sql(&url, &format!("SELECT pg_terminate_backend({pid})")).await;
        let found = call.await.unwrap().unwrap();
        assert_eq!(found.len(), 20);
        assert!(
            found.iter().all(|link| format!("{:?}", link.action) == "Added"),
            "as it was when it was done: {found:?}"
        );
        // And a lease: it is the one that the server knows, not a second one.
        let caller = store.clone();
        let call = tokio::spawn(async move {
            let request = LeaseRequest { max: 1, ..LeaseRequest::default() };
            caller.lease(&request, start().timestamp()).await
        });
        let pid = shown(&url, WAITING).await;
        sql(&url, &format!("SELECT pg_terminate_backend({pid})")).await;
        assert_eq!(call.await.unwrap().unwrap().leased.len(), 1);
        sql(&url, "ALTER SYSTEM RESET synchronous_standby_names").await;
        sql(&url, "SELECT pg_reload_conf()").await;
        let after = store.stats(Some("c"), start().timestamp()).await.unwrap().remove(0);
        assert_eq!((after.queued, after.in_flight), (before.queued + 19, 1));
        schema.is_sound().await;
    });
    drop(cluster);
}

/// The connection is cut after COMMIT was sent, and before it was done.
#[test]
fn a_commit_that_was_cut_off_is_made_again() {
    const COMMITTING: &str = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() \
        AND application_name = 'forager' AND query = 'COMMIT' AND wait_event = 'PgSleep'";
    let url = new_database();
    let schema = InSchema::at(&url);
    let store = Arc::new(schema.connect(Settings::default()));
    apart(async move {
        begin(&*store).await;
        let before = store.stats(Some("c"), start().timestamp()).await.unwrap().remove(0);
        let name = &schema.options.schema;
        let slow = format!(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(20); RETURN NULL; END'; \
             CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON {name}.entries DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW EXECUTE FUNCTION slow()"
        );
        sql(&url, &slow).await;
        let caller = store.clone();
        let call = tokio::spawn(async move { caller.discover(&[page(0, 1)], start().timestamp()).await });
        let pid = shown(&url, COMMITTING).await;
        sql(
            &url,
            "CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        )
        .await;
        sql(&url, &format!("SELECT pg_terminate_backend({pid})")).await;
        assert_eq!(call.await.unwrap().unwrap().len(), 1);
        let after = store.stats(Some("c"), start().timestamp()).await.unwrap().remove(0);
        assert_eq!(after.queued, before.queued + 1);
        schema.is_sound().await;
    });
}

/// Stands between a caller and the server, and can be cut on the side of the caller only.
struct Wire {
    url: String,
    cut: tokio::sync::watch::Sender<u64>,
}

impl Wire {
    async fn to(url: &str) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (start, rest) = url.split_once('@').unwrap();
        let (server, rest) = rest.split_once('/').unwrap();
        let (cut, cuts) = (tokio::sync::watch::Sender::new(0), server.to_owned());
        let hears = cut.subscribe();
        tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                let server = tokio::net::TcpStream::connect(&cuts).await.unwrap();
                tokio::spawn(carry(caller, server, hears.clone()));
            }
        });
        Self { url: format!("{start}@{address}/{rest}"), cut }
    }
}

/// Carries what both say. When it is cut, the caller is gone, and the server is not told for a while.
async fn carry(
    mut caller: tokio::net::TcpStream,
    mut server: tokio::net::TcpStream,
    mut cuts: tokio::sync::watch::Receiver<u64>,
) {
    cuts.borrow_and_update();
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut caller, &mut server) => return,
        _ = cuts.changed() => {}
    }
    drop(caller);
    tokio::time::sleep(Duration::from_secs(8)).await;
}

/// The caller is cut off while the server is still at what it was sent: that must not be committed afterwards, when the
/// caller has found it was not.
#[test]
fn what_the_server_is_still_at_when_its_caller_is_cut_off_is_done_once() {
    const AT_IT: &str =
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
    let url = new_database();
    let schema = InSchema::at(&url);
    apart(async move {
        let wire = Wire::to(&url).await;
        let mut options = schema.options.clone();
        options.statement_timeout = Duration::from_secs(30);
        let store = Postgres::connect(&wire.url, Settings::default(), options).await.unwrap();
        let store = Arc::new(store);
        begin(&*store).await;
        let before = store.stats(Some("c"), start().timestamp()).await.unwrap().remove(0);
        let slow = format!(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(3); RETURN NULL; END'; \
             CREATE TRIGGER slow AFTER INSERT ON {}.entries FOR EACH STATEMENT EXECUTE FUNCTION slow()",
            schema.options.schema
        );
        sql(&url, &slow).await;
        let caller = store.clone();
        let call = tokio::spawn(async move { caller.discover(&[page(0, 3)], start().timestamp()).await });
        shown(&url, AT_IT).await;
        wire.cut.send_modify(|cut| *cut += 1);
        let found = call.await.unwrap().unwrap();
        assert!(found.iter().all(|link| format!("{:?}", link.action) == "Added"), "{found:?}");
        let after = store.stats(Some("c"), start().timestamp()).await.unwrap().remove(0);
        assert_eq!(after.queued, before.queued + 3);
        schema.is_sound().await;
    });
}

/// Rows by which commits are looked up are no more than there are calls at a time, and go with their process.
#[test]
fn receipts_do_not_pile_up() {
    let url = new_database();
    let schema = InSchema::at(&url);
    let store = schema.connect(Settings::default());
    apart(async move {
        let name = &schema.options.schema;
        let receipts = format!("SELECT count(*) FROM {name}.receipts");
        let gone =
            format!("INSERT INTO {name}.receipts VALUES (1, 1, now() - interval '8 days'), (2, 1, now())");
        begin(&store).await;
        for number in 0..10 {
            store.discover(&[page(number, 1)], start().timestamp()).await.unwrap();
        }
        assert_eq!(sql(&url, &receipts).await, ["1"], "one call at a time was made");
        sql(&url, &gone).await;
        store.close().await;
        assert_eq!(sql(&url, &receipts).await, ["1"], "that of another that may still be asked for is left");
    });
}

#[test]
fn a_statement_that_takes_too_long_is_tried_again_as_long_as_there_is_patience() {
    let mut schema = InSchema::new();
    let patient = schema.connect(Settings::default());
    schema.options.statement_timeout = Duration::from_secs(1);
    let waiting = schema.connect(Settings::default());
    schema.options.patience = Duration::from_secs(1);
    let store = schema.connect(Settings::default());
    apart(async move {
        begin(&patient).await;
        let holder = client(&schema.url).await;
        let lock = format!("BEGIN; SELECT 1 FROM {}.hosts FOR UPDATE", schema.options.schema);
        holder.batch_execute(&lock).await.unwrap();
        let sets = vec![Setting::InFlight(Some(1))];
        let changes = [HostChange { key: "h0.example".into(), collection: None, sets, only_known: false }];
        let error = store.set_hosts(&changes, start().timestamp()).await.unwrap_err().to_string();
        assert!(error.contains("statement timeout"), "{error}");
        let release = async {
            tokio::time::sleep(Duration::from_millis(2500)).await;
            holder.batch_execute("ROLLBACK").await.unwrap();
        };
        let (set, ()) = tokio::join!(waiting.set_hosts(&changes, start().timestamp()), release);
        set.expect("it goes on when the others are through");
        store.set_hosts(&changes, start().timestamp()).await.unwrap();
    });
}

/// A connection that is new prepares what it will ask, and waits for locks as it does: no longer than for any statement.
#[test]
fn a_table_that_is_locked_keeps_a_new_connection_no_longer_than_a_statement_may_take() {
    let mut schema = InSchema::new();
    apart({
        let store = schema.connect(Settings::default());
        async move { begin(&store).await }
    });
    schema.options.statement_timeout = Duration::from_secs(1);
    schema.options.patience = Duration::from_secs(1);
    apart(async move {
        let holder = client(&schema.url).await;
        for table in ["entries", "hosts", "migrations"] {
            let name = &schema.options.schema;
            let lock = format!("BEGIN; LOCK TABLE {name}.{table} IN ACCESS EXCLUSIVE MODE");
            holder.batch_execute(&lock).await.unwrap();
            let leasing = async {
                let store =
                    Postgres::connect(&schema.url, Settings::default(), schema.options.clone()).await?;
                let request = LeaseRequest { max: 1, ..LeaseRequest::default() };
                store.lease(&request, start().timestamp()).await
            };
            let ended = tokio::time::timeout(Duration::from_mins(2), leasing).await.expect("it ends");
            let error = ended.unwrap_err().to_string();
            assert!(error.contains("statement timeout"), "{table}: {error}");
            holder.batch_execute("ROLLBACK").await.unwrap();
        }
    });
}

/// Processes that stand still until this is dropped.
struct Stopped(Vec<String>);

impl Stopped {
    fn stop(pids: Vec<String>) -> Self {
        let stopped = Self(pids);
        stopped.signal("-STOP");
        stopped
    }

    fn signal(&self, signal: &str) {
        let told = Command::new("kill").arg(signal).args(&self.0).status().unwrap();
        assert!(told.success(), "kill {signal} {:?}", self.0);
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.signal("-CONT");
    }
}

/// A server that takes what it is sent and does nothing is like one that is not there: what is asked goes to another
/// connection, as long as there is patience.
#[test]
fn a_server_that_stands_still_is_waited_for_as_long_as_there_is_patience() {
    const OURS: &str = "SELECT pid FROM pg_stat_activity WHERE application_name = 'forager'";
    let cluster = Cluster::start();
    let mut schema = InSchema::at(&cluster.url);
    schema.options.statement_timeout = Duration::from_secs(1);
    schema.options.patience = Duration::from_secs(1);
    let (url, folder) = (format!("{}&connect_timeout=1", schema.url), cluster.folder.clone());
    apart(async move {
        let store = Postgres::connect(&url, Settings::default(), schema.options.clone()).await.unwrap();
        begin(&store).await;
        // So that several connections are there, of which none is of any use.
        let now = start().timestamp();
        let calls = (0..8).map(|_| store.stats(None, now));
        futures_util::future::try_join_all(calls).await.unwrap();
        let ours = Stopped::stop(sql(&schema.url, OURS).await);
        assert!(ours.0.len() > 1, "{:?}", ours.0);
        store.stats(None, now).await.expect("another connection answers");
        drop(ours);
        let server = std::fs::read_to_string(format!("{folder}/data/postmaster.pid")).unwrap();
        let server = server.lines().next().unwrap().to_owned();
        let all = sql(&schema.url, OURS).await.into_iter().chain([server]);
        let all = Stopped::stop(all.collect());
        let call = store.stats(None, start().timestamp());
        let ended = tokio::time::timeout(Duration::from_mins(2), call).await.expect("it ends");
        let error = ended.unwrap_err().to_string();
        assert!(error.contains("it could not be used for 1 s"), "{error}");
        drop(all);
        store.stats(None, start().timestamp()).await.expect("it goes on when the server does");
    });
    drop(cluster);
}

/// What a role is allowed to wait for is no concern of calls, and where it is, time may mend it.
#[test]
fn a_lock_that_is_not_to_be_had_is_waited_for_as_long_as_there_is_patience() {
    const IMPATIENT: &str = "DO $$ BEGIN EXECUTE \
        format('ALTER DATABASE %I SET lock_timeout = ''10ms''', current_database()); END $$";
    let url = new_database();
    let schema = InSchema::at(&url);
    apart({
        let url = url.clone();
        async move { sql(&url, IMPATIENT).await }
    });
    let store = schema.connect(Settings::default());
    apart(async move {
        begin(&store).await;
        let set = async |most| {
            let sets = vec![Setting::InFlight(Some(most))];
            let changes =
                [HostChange { key: "h0.example".into(), collection: None, sets, only_known: false }];
            store.set_hosts(&changes, start().timestamp()).await
        };
        let person = client(&url).await;
        let name = &schema.options.schema;
        set(3).await.unwrap();
        // Others hold what it needs.
        let lock = format!("BEGIN; SELECT 1 FROM {name}.hosts FOR UPDATE");
        person.batch_execute(&lock).await.unwrap();
        let release = async {
            tokio::time::sleep(Duration::from_millis(2500)).await;
            person.batch_execute("ROLLBACK").await.unwrap();
        };
        let (done, ()) = tokio::join!(set(1), release);
        done.expect("it waits");
        // Something at the server itself gives up on a lock.
        let gives_up = format!(
            "SET lock_timeout = 0; CREATE FUNCTION {name}.gives_up() RETURNS trigger LANGUAGE plpgsql AS \
                $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = 'lock_not_available'; END $$; \
             CREATE TRIGGER gives_up BEFORE UPDATE ON {name}.hosts FOR EACH ROW EXECUTE FUNCTION {name}.gives_up()"
        );
        person.batch_execute(&gives_up).await.unwrap();
        let mend = async {
            tokio::time::sleep(Duration::from_millis(2500)).await;
            let mend = format!("DROP TRIGGER gives_up ON {name}.hosts; DROP FUNCTION {name}.gives_up()");
            person.batch_execute(&mend).await.unwrap();
        };
        let (done, ()) = tokio::join!(set(2), mend);
        done.expect("it is tried again");
        schema.is_sound().await;
    });
}

/// Says to all who come that it is starting up, as a server does that is being restarted, so many times; then it is a way to the
/// server that is.
async fn starting_up(url: &str, times: usize) -> String {
    const STARTING: &[u8] = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0";
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (start, rest) = url.split_once('@').unwrap();
    let (server, rest) = rest.split_once('/').unwrap();
    let to = server.to_owned();
    tokio::spawn(async move {
        for _ in 0..times {
            let (mut caller, _) = listener.accept().await.unwrap();
            let mut startup = [0; 256];
            let _ = caller.read(&mut startup).await.unwrap();
            let length = u32::try_from(STARTING.len() + 4).unwrap().to_be_bytes();
            caller.write_all(&[&b"E"[..], &length, STARTING].concat()).await.unwrap();
        }
        while let Ok((mut caller, _)) = listener.accept().await {
            let mut server = tokio::net::TcpStream::connect(&to).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut caller, &mut server).await });
        }
    });
    format!("{start}@{address}/{rest}")
}

/// Whoever starts while the server does finds it a little later. Where nobody answers at all, the address is likely to be wrong.
#[test]
fn a_server_that_starts_up_is_waited_for_from_the_start_on() {
    let schema = InSchema::new();
    apart(async move {
        let url = starting_up(&schema.url, 3).await;
        Postgres::connect(&url, Settings::default(), schema.options.clone()).await.unwrap();
        let url = starting_up(&schema.url, 3).await;
        let there = PostgresSchema::connect(&url, schema.options.clone()).unwrap();
        assert_eq!(there.migrate(there.newest()).await.unwrap(), []);
        let impatient = PostgresOptions { patience: Duration::ZERO, ..schema.options.clone() };
        let url = starting_up(&schema.url, 3).await;
        let error = Postgres::connect(&url, Settings::default(), impatient).await.unwrap_err().to_string();
        assert!(error.contains("starting up"), "{error}");
        let nowhere = "postgres://forager@127.0.0.1:1/postgres?sslmode=disable";
        let refused = Postgres::connect(nowhere, Settings::default(), schema.options.clone()).await;
        assert!(refused.unwrap_err().to_string().contains("refused"), "at once");
        let known =
            PostgresOptions { is_known: true, patience: Duration::from_secs(1), ..schema.options.clone() };
        let gone = Postgres::connect(nowhere, Settings::default(), known).await.unwrap_err().to_string();
        assert!(gone.contains("it could not be used for 1 s"), "{gone}");
    });
}

/// A server that takes whoever comes, and says nothing, is like one that is not there.
#[test]
fn a_server_that_says_nothing_is_not_waited_for_without_end() {
    apart(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let silent = format!("postgres://forager@{address}/postgres?sslmode=disable&connect_timeout=1");
        let taken = tokio::spawn(async move {
            let mut callers = Vec::new();
            while let Ok((caller, _)) = listener.accept().await {
                callers.push(caller);
            }
        });
        for is_known in [false, true] {
            let patience = Duration::from_secs(3);
            let options = PostgresOptions { is_known, patience, ..PostgresOptions::default() };
            let connecting = Postgres::connect(&silent, Settings::default(), options);
            let ended = tokio::time::timeout(Duration::from_mins(2), connecting).await.expect("it ends");
            let error = ended.unwrap_err().to_string();
            assert!(error.contains("does not answer in time"), "{error}");
            assert_eq!(error.contains("could not be used for 3 s"), is_known, "{error}");
        }
        taken.abort();
    });
}

/// There are only so many connections, and others have them all: the call waits for one.
#[test]
fn a_server_with_no_room_is_waited_for() {
    let cluster = Cluster::start();
    let schema = InSchema::at(&cluster.url);
    let store = Arc::new(schema.connect(Settings::default()));
    let url = cluster.url.clone();
    apart(async move {
        sql(&url, "ALTER ROLE forager NOSUPERUSER").await;
        let mut others = Vec::new();
        // What this one has open already is cut, so that it has to connect again.
        let config: tokio_postgres::Config = url.parse().unwrap();
        while let Ok((client, connection)) = config.connect(tokio_postgres::NoTls).await {
            others.push((client, tokio::spawn(connection)));
        }
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'forager'";
        others[0].0.query(cut, &[]).await.unwrap();
        while let Ok((client, connection)) = config.connect(tokio_postgres::NoTls).await {
            others.push((client, tokio::spawn(connection)));
        }
        let caller = store.clone();
        let call = tokio::spawn(async move { caller.stats(None, start().timestamp()).await });
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!call.is_finished(), "{:?}", call.await);
        drop(others);
        call.await.unwrap().unwrap();
    });
    drop(cluster);
}

/// Takes all connections that are to be had; returns what is said to the next who wants one.
async fn take_all(url: &str, taken: &mut Vec<tokio_postgres::Client>) -> String {
    let config: tokio_postgres::Config = url.parse().unwrap();
    loop {
        match config.connect(tokio_postgres::NoTls).await {
            Ok((client, connection)) => {
                tokio::spawn(connection);
                taken.push(client);
            }
            Err(error) => return error.as_db_error().unwrap().message().to_owned(),
        }
    }
}

/// Others take every connection again and again, also those that workers had: whoever comes is told so, and the work goes on.
#[test]
fn workers_go_on_when_others_take_all_connections() {
    const CUT: &str =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'forager'";
    let rounds = setting("FORAGER_SOAK_ROUNDS", 3) as u64;
    let cluster = Cluster::start();
    let schema = InSchema::at(&cluster.url);
    let (url, options) = (cluster.url.clone(), schema.options.clone());
    under_load(schema, (rounds + 1) * 40, move |floor| async move {
        sql(&url, "ALTER ROLE forager NOSUPERUSER").await;
        for round in 1..=rounds {
            while floor.completed() < round * 40 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let mut taken = Vec::new();
            take_all(&url, &mut taken).await;
            while !taken[0].query(CUT, &[]).await.unwrap().is_empty() {
                let said = take_all(&url, &mut taken).await;
                let impatient = PostgresOptions { patience: Duration::ZERO, ..options.clone() };
                if let Err(error) = Postgres::connect(&url, Settings::default(), impatient).await {
                    assert!(error.to_string().contains(&said), "{error}: {said}");
                    assert!(said.contains("connection slots") || said.contains("too many clients"), "{said}");
                }
            }
            let before = floor.completed();
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert_eq!(floor.completed(), before, "nobody has a connection");
        }
    });
    drop(cluster);
}

/// As while another one takes over: it answers questions, and takes nothing in.
#[test]
fn a_server_that_only_reads_is_waited_for() {
    const CUT: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
        AND application_name = 'forager'";
    let url = new_database();
    let schema = InSchema::at(&url);
    let store = Arc::new(schema.connect(Settings::default()));
    apart(async move {
        begin(&*store).await;
        let only_reads = |value: &str| {
            let alter = "ALTER DATABASE %I SET default_transaction_read_only";
            format!(
                "BEGIN READ WRITE; DO $$ BEGIN EXECUTE format('{alter} = {value}', current_database()); END $$; COMMIT"
            )
        };
        sql(&url, &only_reads("on")).await;
        sql(&url, CUT).await;
        let caller = store.clone();
        let call = tokio::spawn(async move { caller.discover(&[page(0, 1)], start().timestamp()).await });
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(!call.is_finished(), "{:?}", call.await);
        sql(&url, &only_reads("off")).await;
        assert_eq!(call.await.unwrap().unwrap().len(), 1);
        schema.is_sound().await;
    });
}

/// Whoever gives up on such a server knows what became of the call: it said no before anything was to be committed.
#[test]
fn a_server_that_only_reads_has_changed_nothing() {
    let url = new_database();
    let mut schema = InSchema::at(&url);
    schema.options.patience = Duration::ZERO;
    let only_reads = "DO $$ BEGIN EXECUTE \
        format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$";
    apart({
        let url = url.clone();
        async move { sql(&url, only_reads).await }
    });
    let store = schema.connect(Settings::default());
    let error = apart(async move {
        let plain = Change::AddCollection(CollectionSpec::new("c", Kind::Plain));
        store.configure(&[plain], start().timestamp()).await.unwrap_err().to_string()
    });
    assert!(error.contains("read-only transaction") && !error.contains("not known"), "{error}");
}

/// The server of the tests is removed with all that it wrote, also when they fail.
#[test]
fn a_throw_away_server_is_gone_after_a_failure() {
    let folder = std::env::temp_dir().join(format!("forager-away-{:016x}", rand::random::<u64>()));
    std::fs::create_dir(&folder).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/postgres");
    let there = "echo $FORAGER_TEST_POSTGRES; ls $TMPDIR; exit 3";
    let output = Command::new(path).args(["run", "sh", "-c", there]).env("TMPDIR", &folder).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let (url, folders) = said.split_once('\n').unwrap();
    assert!(folders.contains("forager-postgres."), "it was there: {said}");
    assert_eq!(output.status.code(), Some(3), "the status is that of the command");
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == "forager-install.lock"), "{left:?}");
    let port: u16 = url.split(':').nth(2).unwrap().split('/').next().unwrap().parse().unwrap();
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "nobody answers any more");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_server_that_stays_away_is_not_waited_for_for_ever() {
    let cluster = Cluster::start();
    let mut schema = InSchema::at(&cluster.url);
    schema.options.patience = Duration::from_millis(500);
    let store = schema.connect(Settings::default());
    drop(cluster);
    let error = apart(async move { store.stats(None, start().timestamp()).await.unwrap_err().to_string() });
    assert!(error.contains("could not be used for"), "{error}");
}

/// What the child is told: address, seed, and time.
const ORDERS: &str = "FORAGER_KILL_WORKER";
const TASKS: u64 = 2;

/// Not a test of its own: what the child does, if this is one.
#[test]
fn child() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let parts: Vec<&str> = orders.split('|').collect();
    let [address, seed, clock] = parts[..] else { panic!("{orders}") };
    let (address, seed): (String, u64) = (address.to_owned(), seed.parse().unwrap());
    let clock = Arc::new(AtomicU64::new(clock.parse().unwrap()));
    apart(async move {
        let store =
            Postgres::connect(&address, Settings::default(), PostgresOptions::default()).await.unwrap();
        let store = Arc::new(store);
        let tasks = (0..TASKS).map(|task| {
            let (store, clock) = (store.clone(), clock.clone());
            let random = Pcg64::seed_from_u64(seed * 100 + task);
            tokio::spawn(async move { heard::work(&*store, &clock, random).await })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    });
}

fn spawn(schema: &InSchema, seed: u64, clock: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(ORDERS, format!("{}|{seed}|{clock}", schema.address()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Three processes at a time, killed in the middle of whatever they do.
#[test]
fn what_killed_workers_were_told_is_there() {
    let schema = InSchema::new();
    let store = Arc::new(schema.connect(Settings::default()));
    let begun = store.clone();
    apart(async move { heard::begin(&*begun).await });
    let (mut heard, mut random) = (Heard::default(), Pcg64::seed_from_u64(setting("FORAGER_SEED", 1) as u64));
    for round in 0..setting("FORAGER_SOAK_ROUNDS", 4) as u64 {
        let clock = heard.latest.max(heard::start()).millisecond() + 1;
        let mut children: Vec<Child> =
            (0..3).map(|child| spawn(&schema, round * 10 + child, clock)).collect();
        for child in &mut children {
            let mut said = said_by(child);
            said.by_ref().take(random.random_range(1..40)).for_each(|line| heard.hear(&line));
            std::thread::sleep(Duration::from_micros(random.random_range(0..20_000)));
            child.kill().unwrap();
            said.for_each(|line| heard.hear(&line));
            child.wait().unwrap();
        }
        let (store, here) = (store.clone(), schema.clone());
        heard = apart(async move {
            heard.compare(&*store).await;
            here.is_sound().await;
            heard
        });
    }
    assert!(heard.reports > 0 && !heard.held.is_empty(), "nothing happened");
}
