//! How the server goes about what it is asked: by indexes, whatever it believes of the tables, and in few trips.
//!
//! A server of the test's own writes down the plan of each statement as it was run, with what it went through. So the
//! statements are those that the store really makes, prepared as it prepares them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::postgres::{Cluster, InSchema, apart, client, sql};
use common::setting;
use common::shop::{begin, start};
use forager_core::scope::Profile;
use forager_core::time::Interval;
use forager_frontier::catalog::{Change, CollectionSpec, Kind, Limits};
use forager_frontier::verbs::{Item, LeaseRequest, Leased, Link, NewJob, Page, Put, Report, Steer, Word};
use forager_frontier::{Frontier, Moment, Postgres, Settings};
use serde_json::Value;

const HOSTS: usize = 2000;

/// A server that writes down what it does.
async fn write_plans(url: &str) {
    let client = client(url).await;
    for statement in [
        "LOAD 'auto_explain'",
        "ALTER SYSTEM SET session_preload_libraries = 'auto_explain'",
        "ALTER SYSTEM SET auto_explain.log_format = 'json'",
        "ALTER SYSTEM SET auto_explain.log_analyze = on",
        "ALTER SYSTEM SET auto_explain.log_timing = off",
        "ALTER SYSTEM SET auto_explain.log_nested_statements = on",
        "ALTER SYSTEM SET auto_explain.log_min_duration = 0",
        // What it believes of the tables is what the test lets it know.
        "ALTER SYSTEM SET autovacuum = off",
        "SELECT pg_reload_conf()",
    ] {
        client.batch_execute(statement).await.unwrap();
    }
}

/// What the server has written so far.
fn log(cluster: &Cluster) -> String {
    std::fs::read_to_string(format!("{}/log", cluster.folder)).unwrap()
}

/// The plans in a part of the log.
fn plans(log: &str) -> Vec<Value> {
    let mut plans = Vec::new();
    for part in log.split("plan:\n").skip(1) {
        let text: String = part.lines().take_while(|line| line.starts_with('\t')).collect();
        plans.push(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")));
    }
    plans
}

/// All parts of a plan.
fn nodes(plan: &Value) -> Vec<&Value> {
    let mut nodes = vec![plan];
    for part in plan["Plans"].as_array().into_iter().flatten() {
        nodes.extend(self::nodes(part));
    }
    nodes
}

/// What speaks against a part of a plan.
fn fault(node: &Value, most: f64) -> Option<String> {
    let kind = node["Node Type"].as_str().unwrap_or_default();
    let table = node["Relation Name"].as_str().unwrap_or_default();
    let count = |name: &str| node[name].as_f64().unwrap_or_default();
    let loops = count("Actual Loops").max(1.0);
    let went_through =
        (count("Actual Rows") + count("Rows Removed by Filter") + count("Rows Removed by Index Recheck"))
            * loops;
    match kind {
        "Seq Scan" if ["entries", "queues", "hosts"].contains(&table) => {
            Some(format!("goes through all of {table}"))
        }
        "Sort" | "Incremental Sort" | "Bitmap Index Scan" | "Index Scan" | "Index Only Scan"
            if went_through > most =>
        {
            Some(format!("{kind} of {table} over {went_through} rows"))
        }
        _ => None,
    }
}

fn judge(what: &str, log: &str, most: f64) {
    let plans = plans(log);
    for asked in ["SKIP LOCKED", "e.leased_until", "q.wake_at", "ORDER BY r.priority DESC"] {
        let is_it = |plan: &Value| plan["Query Text"].as_str().is_some_and(|text| text.contains(asked));
        assert!(plans.iter().any(is_it), "{what}: no plan of {asked} was written down");
    }
    for plan in &plans {
        let faults: Vec<String> =
            nodes(&plan["Plan"]).into_iter().filter_map(|node| fault(node, most)).collect();
        assert!(
            faults.is_empty(),
            "{what}: {faults:?}\n{}\n{plan:#}",
            plan["Query Text"].as_str().unwrap_or_default()
        );
    }
}

fn links(from: usize, count: usize) -> Page {
    let links = (from..from + count).map(|number| Link {
        url: format!("https://h{}.example/{number}", number % HOSTS),
        ..Link::default()
    });
    let (collection, seed) = ("c".to_owned(), Some("https://h0.example/".to_owned()));
    Page { collection, seed, links: links.collect(), ..Page::default() }
}

fn request(max: usize) -> LeaseRequest {
    LeaseRequest { max, hold: Interval::from_secs_f64(60.0), ..LeaseRequest::default() }
}

fn report(leased: &Leased) -> Report {
    Report { token: leased.token.0, status: Some(200), ..Report::default() }
}

/// Makes so many of each page; it would take the engine a while.
async fn multiply(schema: &InSchema, times: usize) {
    let statement = "SET search_path TO @; CREATE TEMP TABLE more AS SELECT * FROM entries WHERE state = 0; \
        DO $$ BEGIN FOR round IN 1..% LOOP \
            UPDATE more SET id = nextval('entry_numbers'), url = url || '-', key = decode(md5(url), 'hex'); \
            INSERT INTO entries SELECT * FROM more; \
        END LOOP; END $$; \
        UPDATE queues SET queued = queued * (% + 1); UPDATE counters SET queued = queued * (% + 1)";
    let statement = statement.replace('@', &schema.options.schema).replace('%', &(times - 1).to_string());
    sql(&schema.url, &statement).await;
}

/// A while of every day: claims, reports with links, leases that run out, and hosts that wake up.
async fn live(store: &Postgres, now: &mut Moment) {
    // More than five times, after which the server may choose a plan for any value.
    for round in 0..8 {
        *now = now.after_millis(700);
        let leased = store.lease(&request(10), now.timestamp()).await.unwrap().leased;
        assert!(!leased.is_empty());
        let reports: Vec<Report> = leased.iter().skip(2).map(report).collect();
        store.complete(&reports, now.timestamp()).await.unwrap();
        store.discover(&[links(round * 40, 20)], now.timestamp()).await.unwrap();
        let one = LeaseRequest { host: Some(format!("h{round}.example")), ..request(1) };
        store.lease(&one, now.timestamp()).await.unwrap();
    }
    // The leases that were kept run out.
    *now = now.after_millis(61_000);
    store.lease(&request(10), now.timestamp()).await.unwrap();
    store.reclaim("c", now.timestamp()).await.unwrap();
}

#[test]
fn what_is_asked_every_day_goes_by_indexes() {
    let cluster = Cluster::start();
    let (url, mut schema) = (cluster.url.clone(), InSchema::at(&cluster.url));
    schema.options.number_block = 256;
    let times = setting("FORAGER_SOAK_ROUNDS", 10);
    apart(async move {
        let store = schema.connect(Settings::default());
        begin(&store).await;
        // What it believes from now on is that there is next to nothing.
        sql(&url, "ANALYZE").await;
        for from in (0..4000).step_by(500) {
            store.discover(&[links(from, 500)], start().timestamp()).await.unwrap();
        }
        drop(store);
        multiply(&schema, times).await;
        write_plans(&url).await;
        let mut now = start();
        for what in ["with what it knew before", "with what it knows now"] {
            let from = log(&cluster).len();
            let store = schema.connect(Settings::default());
            live(&store, &mut now).await;
            drop(store);
            judge(what, &log(&cluster)[from..], 2500.0);
            sql(&url, "ANALYZE").await;
        }
        schema.is_sound().await;
    });
}

/// What a queue may look like.
struct Shape {
    name: &'static str,
    /// Of how many hosts.
    hosts: usize,
    /// How many of a thousand are due; the others are not for an hour.
    due: usize,
    /// How many collections share what there is.
    collections: usize,
    /// Whether there is one more that has as much by itself, is first in line, and is not to be claimed from.
    is_one_at_rest: bool,
}

const SHAPES: [Shape; 5] = [
    Shape { name: "one host", hosts: 1, due: 1000, collections: 1, is_one_at_rest: false },
    Shape { name: "a host each", hosts: PENDING, due: 1000, collections: 1, is_one_at_rest: false },
    Shape { name: "hardly anything due", hosts: 500, due: 30, collections: 1, is_one_at_rest: false },
    Shape { name: "a collection at rest", hosts: 1000, due: 1000, collections: 2, is_one_at_rest: true },
    Shape { name: "one at rest of many", hosts: 1000, due: 1000, collections: 120, is_one_at_rest: true },
];

/// How many entries a shape has.
const PENDING: usize = 4000;

/// The collection that is not to be claimed from.
const AT_REST: &str = "at-rest";

impl Shape {
    /// Collections of clients, for these may say what is due when.
    async fn fill(&self, store: &Postgres) {
        let now = start();
        let names: Vec<String> = (0..self.collections).map(|number| format!("c{number}")).collect();
        let at_rest = self.is_one_at_rest.then(|| AT_REST.to_owned());
        let all = at_rest.iter().chain(&names);
        let added =
            all.map(|name| Change::AddCollection(CollectionSpec::new(name.as_str(), Kind::Plain))).collect();
        let rests = at_rest.iter().map(|name| Change::EnableCollection(name.clone(), false));
        let changes: Vec<Change> = Vec::into_iter(added).chain(rests).collect();
        store.configure(&changes, now.timestamp()).await.unwrap();
        let its = (0..PENDING).map(|number| (AT_REST, number)).filter(|_| self.is_one_at_rest);
        let shared = (0..PENDING).map(|number| (names[number % self.collections].as_str(), number));
        let puts: Vec<Put> = its.chain(shared).map(|(name, number)| self.put(name, number, now)).collect();
        for puts in puts.chunks(500) {
            store.put(puts, now.timestamp()).await.unwrap();
        }
    }

    fn put(&self, collection: &str, number: usize, now: Moment) -> Put {
        let is_due = number % 1000 < self.due;
        let url = format!("https://{collection}-{}.example/{number}", number % self.hosts);
        let word = Word::Due(if is_due { now } else { now.after_millis(3_600_000) });
        Put { collection: collection.to_owned(), items: vec![Item { url, word, ..Item::default() }] }
    }

    /// Claims over all collections, reports, and a claim when nothing is left that is due.
    async fn live(&self, store: &Postgres) {
        let mut now = start();
        for _ in 0..8 {
            let request = LeaseRequest { per_host: 10, ..request(10) };
            let leased = store.lease(&request, now.timestamp()).await.unwrap().leased;
            let reports: Vec<Report> = leased.iter().skip(1).map(report).collect();
            assert!(!reports.is_empty(), "{}", self.name);
            store.complete(&reports, now.timestamp()).await.unwrap();
            now = now.after_millis(2000);
        }
        now = now.after_millis(61_000);
        store.lease(&request(1), now.timestamp()).await.unwrap();
    }
}

#[test]
fn claims_go_by_indexes_whatever_the_queue_looks_like() {
    let cluster = Cluster::start();
    let url = cluster.url.clone();
    apart(async move {
        for shape in &SHAPES {
            let schema = InSchema::at(&url);
            let store = schema.connect(Settings::default());
            shape.fill(&store).await;
            drop(store);
            sql(&url, "ANALYZE").await;
            write_plans(&url).await;
            let from = log(&cluster).len();
            let store = schema.connect(Settings::default());
            shape.live(&store).await;
            drop(store);
            // Far fewer than there are hosts or entries: what was claimed and reported in this while, and dead rows of it.
            judge(shape.name, &log(&cluster)[from..], 300.0);
            schema.is_sound().await;
        }
    });
}

/// How many hosts a job has is counted where they are: all others wait while a job is made or steered.
#[test]
fn what_is_told_of_a_job_takes_no_look_at_each_host() {
    let cluster = Cluster::start();
    let (url, schema) = (cluster.url.clone(), InSchema::at(&cluster.url));
    apart(async move {
        let store = schema.connect(Settings::default());
        begin(&store).await;
        let now = start().timestamp();
        store.discover(&[links(0, 500)], now).await.unwrap();
        drop(store);
        write_plans(&url).await;
        let from = log(&cluster).len();
        let store = schema.connect(Settings::default());
        let urls = vec!["https://j1.example/".to_owned(), "https://j2.example/".to_owned()];
        let (profile, limits) = (Profile::new("j", "j"), Limits::default());
        let job = NewJob { id: "j".to_owned(), urls, profile, limits };
        let made = store.start_job(&job, now).await.unwrap();
        let paused = store.steer_job("j", Steer::Pause, now).await.unwrap();
        let listed = store.jobs(now).await.unwrap();
        for job in [&made, &paused, &listed[0]] {
            assert_eq!((job.progress.hosts, job.progress.active_hosts), (2, 2), "{job:?}");
        }
        let plans = plans(&log(&cluster)[from..]);
        let counted =
            |plan: &&Value| plan["Query Text"].as_str().is_some_and(|text| text.contains("count(*) FILTER"));
        assert!(plans.iter().filter(counted).count() >= 3, "not all was written down");
        for plan in &plans {
            let rows = plan["Plan"]["Actual Rows"].as_f64().unwrap_or_default();
            assert!(rows < 100.0, "{rows} rows of {}", plan["Query Text"]);
        }
    });
}

/// The tables of a new job are such as nobody has ever looked at, and pages are added by the thousand in one statement.
#[test]
fn a_page_that_is_added_by_sql_is_looked_up_without_a_look_at_others() {
    const ADD: &str = "SET search_path TO @; SET jit = off; \
        INSERT INTO domains (name) VALUES ('j.example') ON CONFLICT DO NOTHING; \
        INSERT INTO pages (domain_id, path) SELECT d.id, '/' || n FROM domains d, generate_series(1, 400) n \
            WHERE d.name = 'j.example'; \
        INSERT INTO tasks (job_id, page_id, source_type, source_url) SELECT 'j', p.id, 'link', 'https://j.example/' \
            FROM pages p WHERE p.job_id IS NULL";
    let cluster = Cluster::start();
    let (url, schema) = (cluster.url.clone(), InSchema::at(&cluster.url));
    apart(async move {
        let store = schema.connect(Settings::default());
        let urls = vec!["https://j.example/".to_owned()];
        let (profile, limits) = (Profile::new("j", "j"), Limits::default());
        let job = NewJob { id: "j".to_owned(), urls, profile, limits };
        store.start_job(&job, start().timestamp()).await.unwrap();
        write_plans(&url).await;
        let from = log(&cluster).len();
        sql(&url, &ADD.replace('@', &schema.options.schema)).await;
        let plans = plans(&log(&cluster)[from..]);
        let by_key = |plan: &&Value| plan["Query Text"].as_str().is_some_and(|text| text.contains("e.key ="));
        let lookups: Vec<&Value> = plans.iter().filter(by_key).collect();
        assert!(lookups.len() >= 800, "{} were written down", lookups.len());
        for plan in lookups {
            let faults: Vec<String> =
                nodes(&plan["Plan"]).into_iter().filter_map(|node| fault(node, 10.0)).collect();
            assert!(faults.is_empty(), "{faults:?}\n{plan:#}");
        }
        schema.is_sound().await;
    });
}

/// How many messages the server answers for a call.
async fn trips(cluster: &Cluster, call: impl Future<Output = ()>) -> usize {
    let from = log(cluster).len();
    call.await;
    let log = log(cluster);
    log[from..].lines().filter(|line| line.contains(" execute ") || line.contains(" statement: ")).count()
}

#[test]
fn a_page_with_a_thousand_links_takes_as_many_trips_as_one_with_ten() {
    let cluster = Cluster::start();
    let (url, mut schema) = (cluster.url.clone(), InSchema::at(&cluster.url));
    schema.options.number_block = 4000;
    apart(async move {
        let store = schema.connect(Settings::default());
        begin(&store).await;
        let now = start();
        // So that numbers are set aside and statements prepared.
        store.discover(&[links(900_000, 50)], now.timestamp()).await.unwrap();
        let leased = store.lease(&request(4), now.timestamp()).await.unwrap().leased;
        sql(&url, "ALTER SYSTEM SET log_min_duration_statement = 0").await;
        sql(&url, "SELECT pg_reload_conf()").await;
        let from = log(&cluster).len();
        while !log(&cluster)[from..].contains(" statement: ") {
            store.stats(None, now.timestamp()).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let mut counts = Vec::new();
        // New pages, at some hosts that are there and some that are new.
        for (place, count) in [10, 1000].into_iter().enumerate() {
            let found = trips(&cluster, async {
                store.discover(&[links(place * 20_000 + 45, count)], now.timestamp()).await.unwrap();
            });
            let found = found.await;
            let reported = trips(&cluster, async {
                let links = links(500_045 + place * 20_000, count).links;
                let report = Report { links, ..report(&leased[place]) };
                store.complete(&[report], now.timestamp()).await.unwrap();
            });
            counts.push((found, reported.await));
        }
        let [few, many] = counts[..] else { panic!("two cases") };
        assert!(few.0 > 5 && few.1 > 5, "{counts:?}: not all was written down");
        assert!(many.0 <= few.0 + 2 && many.1 <= few.1 + 2, "10 links and 1000 links: {counts:?}");
        assert!(many.0 < 60 && many.1 < 60, "{counts:?}");
    });
}
