//! Many workers share one crawl through PostgreSQL: tasks of several processes, and processes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "a child tells its parent what it did")]

mod common;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use common::postgres::{InSchema, apart, client, deadlocks, new_database, sql};
use common::setting;
use common::shop::{Clock, Floor, Local, Note, audit, begin, lives, see, start};
use forager_core::order::Order;
use forager_core::scope::Profile;
use forager_core::scope::extent::Kind as Scope;
use forager_core::time::Interval;
use forager_frontier::catalog::{Change, CollectionSpec, Kind, Limits};
use forager_frontier::verbs::{Item, LeaseRequest, Link, NewJob, Page, Put, Word};
use forager_frontier::{Frontier, Moment, Postgres, PostgresOptions, Settings};

/// Hosts that may be asked at any time, so that whatever is queued can be claimed.
fn impolite() -> Settings {
    let mut settings = Settings::default();
    settings.politeness.delay = Interval::from_secs_f64(0.0);
    settings.politeness.max_delay = Interval::from_secs_f64(0.0);
    settings.politeness.in_flight = 100_000;
    settings
}

/// A job with so many pages at so many hosts.
async fn start_job(store: &dyn Frontier, hosts: usize, pages: usize) {
    let mut profile = Profile::new("", "");
    profile.scope = Scope::Any;
    let urls = vec!["https://h0.example/".to_owned()];
    let job = NewJob { id: "job".into(), urls: urls.clone(), profile, limits: Limits::default() };
    let now = start().timestamp();
    store.start_job(&job, now).await.unwrap();
    let links = (1..pages)
        .map(|page| Link { url: format!("https://h{}.example/{page}", page % hosts), ..Link::default() });
    let page = Page {
        collection: "job".into(),
        source: Some(urls[0].clone()),
        links: links.collect(),
        ..Page::default()
    };
    store.discover(&[page], now).await.unwrap();
}

/// Whoever heard that there is nothing to do was told so when nobody could begin anything more.
fn nobody_was_sent_away(notes: &[Note]) {
    let told = notes.iter().filter_map(|note| match note {
        Note::Nothing { span, said } => Some((span.ended, said)),
        _ => None,
    });
    let (first, said) = told.min().expect("in the end there is nothing to do");
    let began = notes.iter().filter_map(|note| match note {
        Note::Leased { span, .. } => Some(span.began),
        _ => None,
    });
    let late = began.filter(|began| *began > first).count();
    assert_eq!(
        late, 0,
        "pages were claimed by calls that began after somebody was told there are none: {said}"
    );
}

#[test]
fn nobody_hears_of_nothing_while_there_is_something_and_nobody_waits_in_a_circle() {
    // Workers, processes, hosts, pages, and how many pages a worker takes at a time.
    let cases = [(8, 4, 1, 40, 1), (8, 8, 5, 100, 4), (64, 8, 3, 120, 2), (64, 8, 100, 200, 2)];
    for (workers, processes, hosts, pages, max) in cases {
        let what = format!("{workers} workers, {hosts} hosts");
        let url = new_database();
        let mut schema = InSchema::at(&url);
        (schema.options.connections, schema.options.number_block) = (8, 64);
        let stores: Vec<Arc<Postgres>> =
            (0..processes).map(|_| Arc::new(schema.connect(impolite()))).collect();
        apart(async move {
            start_job(&*stores[0], hosts, pages).await;
            let floor = Arc::new(Floor::new(Local::new()));
            let tasks = (0..workers).map(|worker| {
                let (floor, store) = (floor.clone(), stores[worker % processes].clone());
                tokio::spawn(async move { floor.work_off(&*store, max).await })
            });
            for task in tasks.collect::<Vec<_>>() {
                task.await.unwrap();
            }
            let notes = floor.take_notes();
            let lives = lives(&notes);
            let urls: BTreeSet<&str> = lives.iter().map(|(_, life)| life.url).collect();
            assert_eq!((lives.len(), urls.len()), (pages, pages), "{what}: each page once");
            nobody_was_sent_away(&notes);
            see(&*stores[0], &notes, floor.clock.tick(0).await).await;
            schema.is_sound().await;
            drop(stores);
            assert_eq!(deadlocks(&url).await, 0, "{what}");
        });
    }
}

#[test]
fn hosts_are_asked_politely_by_all_together() {
    for workers in [8, 64] {
        let url = new_database();
        let mut schema = InSchema::at(&url);
        schema.options.connections = 8;
        let stores: Vec<Arc<Postgres>> =
            (0..8).map(|_| Arc::new(schema.connect(Settings::default()))).collect();
        let enough = setting("FORAGER_SOAK_STEPS", 160) as u64;
        apart(async move {
            begin(&*stores[0]).await;
            let floor = Arc::new(Floor::new(Local::new()));
            let tasks = (0..workers).map(|worker| {
                let (floor, store) = (floor.clone(), stores[worker % 8].clone());
                tokio::spawn(async move { floor.work(&*store, worker as u64, enough).await })
            });
            for task in tasks.collect::<Vec<_>>() {
                task.await.unwrap();
            }
            let notes = floor.take_notes();
            audit(&lives(&notes), &Settings::default());
            see(&*stores[0], &notes, floor.clock.tick(0).await).await;
            schema.is_sound().await;
            drop(stores);
            assert_eq!(deadlocks(&url).await, 0, "{workers} workers");
        });
    }
}

/// What the child is told: the address, its number, and how many reports it makes.
const ORDERS: &str = "FORAGER_WORKER_CHILD";

/// A clock that processes share: two sequences.
struct Sequences(tokio_postgres::Client);

impl Sequences {
    async fn number(&self, statement: &str) -> u64 {
        let row = self.0.query_one(statement, &[]).await.unwrap();
        u64::try_from(row.get::<_, i64>(0)).unwrap()
    }
}

#[async_trait]
impl Clock for Sequences {
    async fn stamp(&self) -> u64 {
        self.number("SELECT nextval('stamps')").await
    }

    async fn tick(&self, _step: u64) -> Moment {
        // By so much at each call.
        Moment::from_millisecond(self.number("SELECT nextval('clock')").await)
    }

    async fn skip_to(&self, until: Moment) {
        let until = until.millisecond();
        let skip = "SELECT setval('clock', least(greatest(last_value, $), last_value + 60000)) FROM clock";
        self.number(&skip.replace('$', &until.to_string())).await;
    }
}

/// Not a test of its own: what a worker does that is a process, if this is one.
#[test]
fn child() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let parts: Vec<&str> = orders.split('|').collect();
    let [address, number, enough] = parts[..] else { panic!("{orders}") };
    let (address, number, enough) = (address.to_owned(), number.parse().unwrap(), enough.parse().unwrap());
    let notes = apart(async move {
        let (url, _) = address.split_once("&schema=").unwrap();
        let floor = Floor::new(Sequences(client(url).await));
        let store =
            Postgres::connect(&address, Settings::default(), PostgresOptions::default()).await.unwrap();
        floor.work(&store, number, enough).await;
        floor.take_notes()
    });
    let lines: Vec<String> = notes.iter().map(|note| format!("@{note}\n")).collect();
    std::io::stdout().write_all(lines.concat().as_bytes()).unwrap();
}

#[test]
fn eight_processes_never_get_in_each_others_way() {
    let url = new_database();
    let schema = InSchema::at(&url);
    let (here, clock) = (schema.clone(), start().millisecond());
    let store = Arc::new(schema.connect(Settings::default()));
    let shown = store.clone();
    apart(async move {
        begin(&*shown).await;
        let sequences = format!("CREATE SEQUENCE stamps; CREATE SEQUENCE clock START {clock} INCREMENT 20");
        sql(&here.url, &sequences).await;
    });
    let children = (0..8).map(|number| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(ORDERS, format!("{}|{number}|{}", schema.address(), setting("FORAGER_SOAK_STEPS", 160) / 8))
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap()
    });
    let mut notes: Vec<Note> = Vec::new();
    for child in children.collect::<Vec<_>>() {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let lines = String::from_utf8(output.stdout).unwrap();
        notes.extend(lines.lines().filter_map(|line| Some(line.split_once('@')?.1.parse::<Note>().unwrap())));
    }
    let lives = lives(&notes);
    assert!(lives.len() > 80, "only {} leases", lives.len());
    audit(&lives, &Settings::default());
    let ended = Moment::from_millisecond(clock).after_millis(10 * 365 * 86_400_000);
    drop(lives);
    apart(async move {
        see(&*store, &notes, ended).await;
        schema.is_sound().await;
        drop(store);
        assert_eq!(deadlocks(&url).await, 0);
    });
}

/// Two who change the catalog at the same time both succeed: neither works on what the other has replaced.
#[test]
fn nothing_is_lost_of_collections_that_are_added_at_the_same_time() {
    const EACH: usize = 3;
    let schema = InSchema::new();
    let stores: Vec<Arc<Postgres>> = (0..8).map(|_| Arc::new(schema.connect(Settings::default()))).collect();
    apart(async move {
        let tasks = stores.iter().cloned().enumerate().map(|(number, store)| {
            tokio::spawn(async move {
                for round in 0..EACH {
                    let spec = CollectionSpec::new(format!("c{number}_{round}"), Kind::Plain);
                    let changes = [Change::AddCollection(spec)];
                    store.configure(&changes, start().timestamp()).await.unwrap();
                    store.stats(None, start().timestamp()).await.unwrap();
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        for store in &stores {
            let catalog = store.catalog().await.unwrap();
            let numbers: BTreeSet<_> =
                catalog.rows().collections.iter().map(|collection| collection.number).collect();
            assert_eq!((catalog.rows().collections.len(), numbers.len()), (8 * EACH, 8 * EACH));
        }
    });
}

/// One whose clock is ahead has made ready what is not due yet for the other: for the queue, time does not go back.
#[test]
fn time_does_not_go_back_at_a_host() {
    let url = new_database();
    let schema = InSchema::at(&url);
    let stores = [(); 2].map(|()| schema.connect(Settings::default()));
    apart(async move {
        let [ahead, behind] = &stores;
        let due = start().after_millis(60_000);
        let plain = Change::AddCollection(CollectionSpec::new("c", Kind::Plain));
        ahead.configure(&[plain], start().timestamp()).await.unwrap();
        let items = ["https://a.example/", "https://b.example/"].map(|url| Item {
            url: url.to_owned(),
            word: Word::Due(due),
            ..Item::default()
        });
        let put = Put { collection: "c".to_owned(), items: items.into() };
        ahead.put(&[put], start().timestamp()).await.unwrap();
        let lease = async |store: &Postgres, now: Moment| {
            store.lease(&LeaseRequest::default(), now.timestamp()).await.unwrap()
        };
        let first = lease(ahead, due).await.leased.remove(0);
        let second = lease(behind, start()).await.leased.remove(0);
        assert_ne!(first.url, second.url);
        assert_eq!(second.until, first.until, "it was leased at the time that the other was at");
    });
}

/// More queues and more entries become due at once than are woken at a time.
#[test]
fn all_that_is_due_at_once_is_woken() {
    const HOSTS: usize = 700;
    const PAGES: usize = 10_700;
    let url = new_database();
    let schema = InSchema::at(&url);
    let store = schema.connect(Settings::default());
    apart(async move {
        let due = start().after_millis(60_000);
        let plain = Change::AddCollection(CollectionSpec::new("c", Kind::Plain));
        store.configure(&[plain], start().timestamp()).await.unwrap();
        // Most of them at one host.
        let items = (0..PAGES).map(|page| Item {
            url: format!("https://h{}.example/{page}", page.saturating_sub(PAGES - HOSTS)),
            word: Word::Due(due),
            ..Item::default()
        });
        let items: Vec<Item> = items.collect();
        for items in items.chunks(1000) {
            let put = Put { collection: "c".to_owned(), items: items.to_vec() };
            store.put(&[put], start().timestamp()).await.unwrap();
        }
        let of_each = LeaseRequest { max: PAGES, ..LeaseRequest::default() };
        assert_eq!(store.lease(&of_each, start().timestamp()).await.unwrap().leased, []);
        assert_eq!(store.lease(&of_each, due.timestamp()).await.unwrap().leased.len(), HOSTS);
        let ready = format!("SELECT count(*) FROM {}.entries WHERE ready", schema.options.schema);
        assert_eq!(sql(&url, &ready).await, [(PAGES - HOSTS).to_string()]);
        schema.is_sound().await;
    });
}

/// Some of few collections, and some of many: what others are at is passed over, and nothing else is.
#[test]
fn a_claim_over_some_collections_finds_what_is_free_in_each() {
    for count in [3, 150] {
        let url = new_database();
        let schema = InSchema::at(&url);
        let store = schema.connect(impolite());
        apart(async move {
            let now = start().timestamp();
            let names: Vec<String> = (0..count).map(|number| format!("c{number}")).collect();
            for name in &names {
                let plain = Change::AddCollection(CollectionSpec::new(name, Kind::Plain));
                store.configure(&[plain], now).await.unwrap();
                let items = ["a", "b"]
                    .map(|host| Item { url: format!("https://{host}.example/"), ..Item::default() });
                let put = Put { collection: name.clone(), items: items.into() };
                store.put(&[put], now).await.unwrap();
            }
            store.configure(&[Change::EnableCollection("c0".to_owned(), false)], now).await.unwrap();
            // Somebody is at the first queue of each.
            let holder = client(&url).await;
            let hold = "BEGIN; SELECT 1 FROM @.hosts WHERE key = 'a.example' FOR UPDATE";
            holder.batch_execute(&hold.replace('@', &schema.options.schema)).await.unwrap();
            let all = LeaseRequest { max: count - 1, ..LeaseRequest::default() };
            let leased = store.lease(&all, now).await.unwrap().leased;
            let found: BTreeSet<String> = leased.iter().map(|leased| leased.collection.clone()).collect();
            let hosts: BTreeSet<String> = leased.into_iter().map(|leased| leased.host).collect();
            assert_eq!(found, names[1..].iter().cloned().collect(), "of {count}");
            assert_eq!(hosts, BTreeSet::from(["b.example".to_owned()]), "of {count}");
            holder.batch_execute("ROLLBACK").await.unwrap();
            schema.is_sound().await;
        });
    }
}

/// A page has a link that is known and one that is new. While it waits for their host, somebody raises the one that is known,
/// or takes it, and the page would change another thing of it: how deep it lies.
#[test]
fn what_others_change_while_a_call_waits_for_a_host_is_not_lost() {
    const RAISE: &str = "UPDATE @.entries SET best = 900 WHERE url LIKE '%/known'";
    const TAKE: &str = "UPDATE @.entries SET state = 1, ready = false, token = nextval('@.tokens'), leased_from = $, \
            leased_until = $ + 300000 WHERE url LIKE '%/known'; \
        UPDATE @.queues SET queued = queued - 1, leased = leased + 1; \
        UPDATE @.counters SET queued = queued - 1, leased = leased + 1 \
            WHERE shard = (SELECT min(shard) FROM @.counters)";
    let home = || Some("https://h0.example/".to_owned());
    // A page that is no entry names its seed, and nothing of it has the host locked before.
    let from_entry = Page { source: home(), ..Page::default() };
    let from_seed = Page { seed: home(), ..Page::default() };
    let cases = [
        (&from_entry, RAISE, "900 at depth 1, state 0, false"),
        (&from_entry, TAKE, "800 at depth 1, state 1, true"),
        (&from_seed, RAISE, "900 at depth 1, state 0, false"),
        (&from_seed, TAKE, "640 at depth 1, state 1, true"),
    ];
    for (found_on, change, expected) in cases {
        let found_on = Page { collection: "job".into(), ..found_on.clone() };
        apart(async move { changed_while_waiting(found_on, change, expected).await });
    }
}

async fn changed_while_waiting(found_on: Page, change: &str, expected: &str) {
    let url = new_database();
    let schema = InSchema::at(&url);
    let store = Arc::new(schema.connect(impolite()));
    let now = start().timestamp();
    let address = |path: &str| format!("https://h0.example/{path}");
    let links =
        |paths: &[&str]| paths.iter().map(|path| Link { url: address(path), ..Link::default() }).collect();
    let page = |source: &str, link: &str| Page {
        collection: "job".into(),
        source: Some(address(source)),
        links: links(&[link]),
        ..Page::default()
    };
    let profile = Profile { order: Order::Fifo, ..Profile::new("", "") };
    let job = NewJob { id: "job".into(), urls: vec![address("")], profile, limits: Limits::default() };
    store.start_job(&job, now).await.unwrap();
    store.discover(&[page("", "1")], now).await.unwrap();
    store.discover(&[page("1", "known")], now).await.unwrap();
    let within = |statement: &str| {
        statement.replace('@', &schema.options.schema).replace('$', &now.as_millisecond().to_string())
    };
    let stands = within(
        "SELECT best || ' at depth ' || depth || ', state ' || state || ', ' || (token IS NOT NULL)::text \
         FROM @.entries WHERE url LIKE '%/known'",
    );
    assert_eq!(sql(&url, &stands).await, ["640 at depth 2, state 0, false"]);
    let holder = client(&url).await;
    let hold = format!("BEGIN; SELECT 1 FROM @.hosts WHERE key = 'h0.example' FOR UPDATE; {change}");
    holder.batch_execute(&within(&hold)).await.unwrap();
    let waiting = tokio::spawn({
        let (store, page) = (store.clone(), Page { links: links(&["known", "new"]), ..found_on.clone() });
        async move { store.discover(&[page], now).await.unwrap() }
    });
    let waits = "SELECT count(*) FROM pg_stat_activity \
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while sql(&url, waits).await != ["1"] {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    holder.batch_execute("COMMIT").await.unwrap();
    waiting.await.unwrap();
    assert_eq!(sql(&url, &stands).await, [expected], "{change} found on {found_on:?}");
    schema.is_sound().await;
}

/// Somebody has a transaction open that raises a page, and one who has to be alone waits for its end: by SQL, or through
/// Forager. All others go on.
#[test]
fn who_waits_to_be_alone_keeps_nobody_else() {
    use std::time::Duration;
    for by_sql in [false, true] {
        let url = new_database();
        let schema = InSchema::at(&url);
        let [store, other] = [impolite(), impolite()].map(|settings| Arc::new(schema.connect(settings)));
        apart(async move {
            let now = start().timestamp();
            for name in ["a", "b", "c"] {
                let urls = vec![format!("https://{name}.example/")];
                let profile = Profile::new("", "");
                let job = NewJob { id: name.into(), urls, profile, limits: Limits::default() };
                store.start_job(&job, now).await.unwrap();
            }
            let [holder, steers] = [client(&url).await, client(&url).await];
            let within = format!("SET search_path TO {}", schema.options.schema);
            for client in [&holder, &steers] {
                client.batch_execute(&within).await.unwrap();
            }
            let raise = "BEGIN; SELECT hold_host(domain_id) FROM jobs WHERE id = 'a'";
            holder.batch_execute(raise).await.unwrap();
            let waiting = tokio::spawn(async move {
                if by_sql {
                    steers.batch_execute("UPDATE jobs SET status = 'paused' WHERE id = 'b'").await.unwrap();
                } else {
                    other.steer_job("b", forager_frontier::verbs::Steer::Pause, now).await.unwrap();
                }
            });
            // Often enough to meet the one who waits, who is in line half of the time.
            let deadline = std::time::Instant::now() + Duration::from_secs(4);
            while std::time::Instant::now() < deadline {
                let one = LeaseRequest { max: 1, collection: Some("c".into()), ..LeaseRequest::default() };
                let leased = tokio::time::timeout(Duration::from_secs(3), store.lease(&one, now)).await;
                let leased = leased.expect("others go on").unwrap().leased;
                if let Some(leased) = leased.first() {
                    store.release(&[leased.token], now).await.unwrap();
                }
            }
            assert!(!waiting.is_finished(), "it is not alone yet");
            holder.batch_execute("ROLLBACK").await.unwrap();
            waiting.await.unwrap();
            let paused = format!("SELECT status FROM {}.jobs WHERE id = 'b'", schema.options.schema);
            assert_eq!(sql(&url, &paused).await, ["paused"], "by SQL: {by_sql}");
        });
    }
}

#[test]
fn who_cannot_be_alone_says_so_in_the_end() {
    let url = new_database();
    let mut schema = InSchema::at(&url);
    schema.options.patience = std::time::Duration::ZERO;
    schema.options.statement_timeout = std::time::Duration::from_millis(500);
    let store = schema.connect(impolite());
    apart(async move {
        let holder = client(&url).await;
        let hold =
            format!("BEGIN; SELECT pg_advisory_xact_lock_shared({}.calls_lock())", schema.options.schema);
        holder.batch_execute(&hold).await.unwrap();
        let plain = Change::AddCollection(CollectionSpec::new("c", Kind::Plain));
        let refused = store.configure(&[plain], start().timestamp()).await.unwrap_err().to_string();
        assert!(refused.contains("this has to be done alone"), "{refused}");
    });
}
