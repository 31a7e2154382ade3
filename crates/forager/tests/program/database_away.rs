//! A server whose database goes away: it still ends in time, and says what became of what it was asked. So do crawls.

use crate::common;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::database_crawl::field_at;
use crate::server::Schema;
use crate::serving::{Serving, all_urls, found, free_port, get, info, one_of_each, page, put};
use crate::web::{ANOTHER_WISH, Started, plain_host, wait_until};
use forager_server::proto::DiscoveredBatch;
use forager_server::proto::ack_message::Status;
use forager_server::proto::url_frontier_client::UrlFrontierClient;
use forager_site::Site;
use futures_util::stream::{self, StreamExt as _};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tonic::Code;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// Whether the database can be reached.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Open,
    /// Connections are cut, and no others come about.
    Cut,
    /// Connections stay, and nothing goes through them.
    Silent,
}

/// A way to the database that can be barred.
struct Road {
    port: u16,
    way: watch::Sender<Way>,
}

impl Road {
    /// A way to the server at this port of the loopback address.
    async fn to(port: u16) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let road = Arc::new(Self { port: own, way: watch::Sender::new(Way::Open) });
        let way = road.way.subscribe();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(travel(near, port, way.clone()));
            }
        });
        road
    }
}

async fn travel(mut near: TcpStream, port: u16, mut way: watch::Receiver<Way>) {
    if *way.borrow() == Way::Open {
        let Ok(mut far) = TcpStream::connect(("127.0.0.1", port)).await else { return };
        tokio::select! {
            _ = copy_bidirectional(&mut near, &mut far) => return,
            _ = way.wait_for(|way| *way != Way::Open) => {}
        }
    }
    // Whatever way it is, what comes from here on is not answered.
    let _ = way.wait_for(|way| *way != Way::Silent).await;
}

/// The port in an address such as `postgres://forager@127.0.0.1:5432/postgres`.
fn port_of(url: &str) -> u16 {
    let rest = url.split("127.0.0.1:").nth(1).unwrap();
    rest.split('/').next().unwrap().parse().unwrap()
}

/// The address of a queue by another way.
fn by_road(url: &str, road: &Road) -> String {
    url.replacen(&format!(":{}/", port_of(url)), &format!(":{}/", road.port), 1)
}

/// Whoever wants it to stop at once need not wait for the database, and loses nothing.
#[test]
fn a_second_wish_to_stop_ends_a_crawl_whose_database_is_away() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for way in [Way::Cut, Way::Silent] {
        let schema = Schema::new();
        let road = runtime.block_on(Road::to(port_of(&schema.url())));
        let url = by_road(&schema.url(), &road);
        let site = ["crawl.test", "run.test", "watch.test"]
            .into_iter()
            .fold(Site::new(), |site, name| site.host(plain_host(name, 400)));
        let field = field_at(site, &url, "");
        schema.good(&["collection", "add", "plan"]);
        schema.good(&["profile", "add", "wide", "--collection", "plan", "--depth", "2"]);
        schema.good(&["seed", "add", &field.url("run.test", "/"), "--profile", "wide"]);
        let watched = field.url("watch.test", "/");
        let pages = ["--every", "1s", "--allow-private", "--json"];
        let commands = [
            Started::new(&mut field.crawl_command("crawl.test", &[])),
            Started::new(&mut field.queue.command(&["run", "--collection", "plan"])),
            Started::new(&mut field.queue.command(&[&["watch", &watched], &pages[..]].concat())),
        ];
        field.wait_for("crawl.test", 5);
        field.wait_for("run.test", 5);
        field.wait_for("watch.test", 1);
        road.way.send_replace(way);
        for command in &commands {
            command.signal("INT");
        }
        std::thread::sleep(ANOTHER_WISH);
        for command in &commands {
            command.signal("TERM");
        }
        for (place, command) in commands.into_iter().enumerate() {
            let ran = command.end();
            // What waits for its next page may be through at the first wish.
            assert!(ran.status == 13 || (place == 2 && ran.status == 11), "{way:?}: {ran:?}");
        }
        let checked = common::run_command(&mut schema.command(&["db", "check"]), "");
        assert_eq!(checked.status, 0, "{way:?}: {checked:?}");
    }
}

/// Every command tells with its status whether trying again may help.
#[test]
fn what_may_answer_another_time_is_told_from_what_is_wrong() {
    let schema = Schema::new();
    // Takes whoever comes, and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let nowhere = "postgres://forager@127.0.0.1:1/postgres?sslmode=disable".to_owned();
    let silent_url =
        format!("postgres://forager@127.0.0.1:{port}/postgres?sslmode=disable&connect_timeout=1");
    let missing = schema.url().replacen("/postgres?", "/no_such_database?", 1);
    let commands: [&[&str]; 9] = [
        &["lease"],
        &["queue", "stats"],
        &["job", "list"],
        &["events"],
        &["collection", "list"],
        &["db", "status"],
        &["db", "migrate"],
        &["db", "down", "--yes"],
        &["db", "check"],
    ];
    let ended = |url: &str, args: &[&str]| {
        common::run_command(common::forager().args(args).env("DATABASE_URL", url), "")
    };
    for args in commands {
        let (away, wrong) = (ended(&nowhere, args), ended(&missing, args));
        assert_eq!((away.status, wrong.status), (8, 2), "{args:?}: {away:?}, {wrong:?}");
        assert!(wrong.stderr.contains("does not exist"), "{args:?}: {wrong:?}");
    }
    for args in [commands[0], commands[5]] {
        let ran = ended(&silent_url, args);
        assert!(ran.status == 8 && ran.stderr.contains("it does not answer in time"), "{args:?}: {ran:?}");
    }
}

#[test]
fn who_follows_events_is_through_when_the_database_is_away() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for way in [Way::Cut, Way::Silent] {
        let schema = Schema::new();
        let road = runtime.block_on(Road::to(port_of(&schema.url())));
        let name = format!("follows_{}", schema.name);
        let url = format!("{}&application_name={name}", by_road(&schema.url(), &road));
        let follows = Started::new(schema.command(&["events", "--follow"]).env("DATABASE_URL", url));
        let here = format!("SELECT pid FROM pg_stat_activity WHERE application_name = '{name}'");
        wait_until("somebody to follow", || !schema.sql(&here).is_empty());
        road.way.send_replace(way);
        std::thread::sleep(ANOTHER_WISH); // most likely it asks meanwhile
        follows.signal("INT");
        let ran = follows.end();
        assert_eq!(ran.status, 0, "{way:?}: {ran:?}");
    }
}

#[test]
fn a_server_whose_database_is_away_ends_in_time_and_says_so() {
    // Outside of the runtime, for it has one of its own.
    let schemas = [(Way::Cut, Schema::new()), (Way::Silent, Schema::new())];
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let (cut, silent) = (&schemas[0], &schemas[1]);
        tokio::join!(end_without_database(cut.0, &cut.1), end_without_database(silent.0, &silent.1));
    });
    for (way, schema) in &schemas {
        let checked = common::run_command(&mut schema.command(&["db", "check"]), "");
        assert_eq!(checked.status, 0, "{way:?}: {checked:?}");
    }
}

async fn end_without_database(way: Way, schema: &Schema) {
    let url = schema.url();
    let road = Road::to(port_of(&url)).await;
    let by_road = by_road(&url, &road);
    let server = Serving::start(schema.command(&["serve", "--port", "0"]).env("DATABASE_URL", by_road));
    let mut client = server.client().await;
    put(&mut client, (0..10).map(|n| found(info(&format!("http://kept.example/{n}"), ""))).collect()).await;
    road.way.send_replace(way);
    let getting = tokio::spawn({
        let mut client = client.clone();
        async move { client.get_ur_ls(one_of_each()).await.map(|_| ()) }
    });
    let putting = tokio::spawn(put_and_wait(client.clone()));
    let discovering = tokio::spawn(discover_and_wait(client.clone()));
    tokio::time::sleep(Duration::from_secs(1)).await; // most likely all of it is under way
    let asked = Instant::now();
    server.signal("TERM");
    let (statuses, end) = putting.await.unwrap();
    assert_eq!(statuses, [Status::Fail; 5], "{way:?}: each is told");
    assert_eq!(end, Code::Unavailable, "{way:?}");
    let (statuses, end) = discovering.await.unwrap();
    assert_eq!(statuses, [[Status::Fail; 5]; 2], "{way:?}: each of each batch");
    assert_eq!(end, Code::Unavailable, "{way:?}");
    assert!(getting.await.unwrap().is_err(), "{way:?}: nothing is handed out");
    drop(client);
    let (_, told) = tokio::task::spawn_blocking(|| server.ended()).await.unwrap();
    // Two times ten seconds is what it may take; the rest is for a machine that is busy.
    assert!(asked.elapsed() < Duration::from_mins(1), "{way:?}: {:?}", asked.elapsed());
    assert!(told.contains("the database"), "{way:?}: {told}");
    is_as_it_was(schema).await;
}

/// Whoever looks after the server is told that no call can be answered, and when it can be again.
#[test]
fn a_server_whose_database_is_away_is_not_ready_until_it_is_back() {
    // Outside of the runtime, for they have one of their own.
    let schemas = [(Way::Cut, Schema::new()), (Way::Silent, Schema::new())];
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let (cut, silent) = (&schemas[0], &schemas[1]);
        tokio::join!(
            not_ready_without_database(cut.0, &cut.1),
            not_ready_without_database(silent.0, &silent.1)
        );
    });
}

async fn not_ready_without_database(way: Way, schema: &Schema) {
    let url = schema.url();
    let (road, figures) = (Road::to(port_of(&url)).await, free_port());
    let by_road = by_road(&url, &road);
    let args = ["serve", "--port", "0", "--prometheus", &figures.to_string()];
    let server = Serving::start(schema.command(&args).env("DATABASE_URL", by_road));
    let mut client = server.client().await;
    let mut watch = HealthClient::new(server.channel().await);
    let mut watch = watch.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    let mut health = async || watch.message().await.unwrap().unwrap().status();
    let ready = || page(figures, "/readyz");
    assert_eq!(health().await, ServingStatus::Serving, "{way:?}");
    assert!(ready().starts_with("HTTP/1.1 200"), "{way:?}");
    road.way.send_replace(way);
    // Nobody has to call for it to be found out.
    assert_eq!(health().await, ServingStatus::NotServing, "{way:?}");
    assert!(ready().starts_with("HTTP/1.1 503"), "{way:?}");
    road.way.send_replace(Way::Open);
    assert_eq!(health().await, ServingStatus::Serving, "{way:?}");
    assert!(ready().starts_with("HTTP/1.1 200"), "{way:?}");
    put(&mut client, vec![found(info("http://kept.example/", ""))]).await;
    drop((client, watch));
    let (status, told) = tokio::task::spawn_blocking(|| server.stop()).await.unwrap();
    assert_eq!(status, 0, "{way:?}: {told}");
    assert!(told.contains("not ready until the queue answers"), "{way:?}: {told}");
    assert!(told.contains("the queue answers again"), "{way:?}: {told}");
}

/// Puts URLs on a stream that stays open. Tells the statuses, and how the stream ended.
async fn put_and_wait(mut client: UrlFrontierClient<Channel>) -> (Vec<Status>, Code) {
    let items = (0..5).map(|n| found(info(&format!("http://lost.example/{n}"), "")));
    let items = stream::iter(items).chain(stream::pending());
    let mut answers = client.put_ur_ls(items).await.unwrap().into_inner();
    let mut statuses = Vec::new();
    loop {
        match answers.message().await {
            Ok(Some(ack)) => statuses.push(Status::try_from(ack.status).unwrap()),
            Ok(None) => return (statuses, Code::Ok),
            Err(status) => return (statuses, status.code()),
        }
    }
}

/// The same with batches.
async fn discover_and_wait(mut client: UrlFrontierClient<Channel>) -> (Vec<Vec<Status>>, Code) {
    let batch = |b: usize| DiscoveredBatch {
        id: b.to_string(),
        items: (0..5).map(|n| info(&format!("http://lost.example/{b}/{n}"), "")).collect(),
    };
    let batches = stream::iter((0..2).map(batch)).chain(stream::pending());
    let mut answers = client.put_discovered(batches).await.unwrap().into_inner();
    let mut statuses = Vec::new();
    loop {
        match answers.message().await {
            Ok(Some(ack)) => statuses.push(ack.statuses().collect()),
            Ok(None) => return (statuses, Code::Ok),
            Err(status) => return (statuses, status.code()),
        }
    }
}

/// What was acknowledged is there for the next server, and nothing of it is leased.
async fn is_as_it_was(schema: &Schema) {
    let server = Serving::start(&mut schema.command(&["serve", "--port", "0"]));
    let mut client = server.client().await;
    let urls = all_urls(&mut client).await;
    assert_eq!(urls.iter().filter(|url| url.starts_with("http://kept.example/")).count(), 10, "{urls:?}");
    assert_eq!(get(&mut client, one_of_each()).await, ["http://kept.example/0"]);
    drop(client);
    let ended = tokio::task::spawn_blocking(|| server.stop()).await.unwrap();
    assert_eq!(ended.0, 0, "{ended:?}");
}
