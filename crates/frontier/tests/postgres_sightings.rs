//! Whatever is found, and however it goes on meanwhile, SQL makes the same of it as Forager does.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that cannot go on has failed, and the names say it"
)]

mod common;

use common::sql::{Beside, HOME, link};
use forager_core::order::Order;
use forager_core::scope::Profile;
use forager_core::scope::extent::{Kind, Traps};
use forager_core::time::Interval;
use forager_frontier::catalog::Limits;
use forager_frontier::entry::How;
use forager_frontier::verbs::{Action, LeaseRequest, Leased, Link, NewJob, Page, PlanFilter, Target};
use forager_frontier::{Frontier as _, Settings};
use jiff::SignedDuration;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const SEEDS: [&str; 3] = [HOME, "https://acme.example/a", "https://other.example/"];
const HOSTS: [&str; 3] = ["acme.example", "www.acme.example", "other.example"];
const PATHS: [&str; 6] = ["/", "/a", "/a/b", "/a/c", "/b", "/b?q=1"];
const WAYS: [&str; 7] = ["seed", "link", "header", "sitemap", "redirect", "listing", "somewhere"];
const ORDERS: [Order; 3] = [Order::Hierarchy, Order::Fifo, Order::Linked];

/// A page, by host and path.
type At = (usize, usize);

/// How many ways there are to write a page on which something was found.
const SPELLINGS: usize = 8;

/// A page as somebody writes it; the last ones are at other ports, and so are other pages.
fn spelled((host, path): At, way: usize) -> String {
    let (host, path) = (HOSTS[host], PATHS[path]);
    match way {
        0 => format!("http://{host}{path}"),
        1 => format!("{host}{path}"),
        2 => format!("//{host}{path}"),
        3 => format!("HTTP://{}:80{path}#top", host.to_uppercase()),
        4 => format!("http://{host}:443{path}"),
        5 => format!("{host}:8080{path}"),
        6 => format!("https://{host}:80{path}"),
        _ => format!("https://{host}{path}"),
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// A page is found: in which way, and on which page, written in which way.
    Find(At, usize, Option<(At, usize)>),
    /// The next page is fetched, with this status.
    Fetch(u16),
    /// The next page is taken, and stays so.
    Take,
    /// Its seeds are started anew, so that what it is through with is fetched again.
    Start,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let page = || (0..HOSTS.len(), 0..PATHS.len());
    // Many of them the homepage, which is known from the start.
    let source = prop_oneof![1 => Just((0, 0)), 2 => page()];
    // Half of them as they are known.
    let spelling = prop_oneof![Just(SPELLINGS), 0..SPELLINGS];
    let source = prop::option::weighted(0.8, (source, spelling));
    let step = prop_oneof![
        8 => (page(), 0..WAYS.len(), source).prop_map(|(page, way, source)| Step::Find(page, way, source)),
        2 => prop::sample::select(vec![200, 200, 404, 503]).prop_map(Step::Fetch),
        1 => Just(Step::Take),
        1 => Just(Step::Start),
    ];
    prop::collection::vec(step, 1..30)
}

/// What a job is like.
#[derive(Clone, Copy, Debug)]
struct Look {
    order: Order,
    seeds: usize,
    /// How often each page is fetched; once if not said.
    every: Option<Interval>,
    /// The most pages of one host; 0 if any number.
    most: u64,
}

fn looks() -> impl Strategy<Value = Look> {
    let every =
        prop::option::weighted(0.3, (1..400_u32).prop_map(|seconds| Interval::from_secs_f64(seconds.into())));
    let most = prop_oneof![2 => Just(0), 1 => 2..6_u64];
    let order = prop::sample::select(ORDERS.to_vec());
    (order, 1..=SEEDS.len(), every, most).prop_map(|(order, seeds, every, most)| Look {
        order,
        seeds,
        every,
        most,
    })
}

fn url((host, path): At) -> String {
    format!("https://{}{}", HOSTS[host], PATHS[path])
}

/// The seed that a page belongs to if nobody says where it was found: on its domain, and then by the longest path.
fn nearest(page: At) -> &'static str {
    match (HOSTS[page.0], PATHS[page.1]) {
        ("other.example", _) => SEEDS[2],
        (_, path) if path.starts_with("/a") => SEEDS[1],
        _ => SEEDS[0],
    }
}

/// The same job in two schemas: what is found is told to Forager in one, and to SQL in the other.
struct Both {
    rust: Beside,
    sql: Beside,
    job: String,
    taken: Vec<(Leased, Leased)>,
}

impl Both {
    async fn begin(&mut self, job: String, look: Look) {
        let Look { order, seeds, every, most } = look;
        self.rust.now = self.rust.now.max(self.sql.now);
        self.sql.now = self.rust.now;
        self.taken.clear();
        let urls = SEEDS[..seeds].iter().map(|&url| url.to_owned()).collect();
        let length = every.map(|_| 3);
        let traps = Traps { max_per_host: most, ..Traps::default() };
        let profile = Profile { order, scope: Kind::Any, every, length, traps, ..Profile::new(&job, &job) };
        let job = NewJob { id: job, urls, profile, limits: Limits::default() };
        for beside in [&self.rust, &self.sql] {
            beside.store.start_job(&job, beside.now).await.unwrap();
        }
        self.job = job.id;
        self.set_clock().await;
    }

    async fn take(&mut self, step: &Step) {
        match *step {
            Step::Find(page, way, source) => self.find(page, way, source).await,
            Step::Fetch(status) => {
                let Some(leased) = self.lease().await else { return };
                for (beside, leased) in [(&self.rust, &leased.0), (&self.sql, &leased.1)] {
                    beside.report(leased, status, Vec::new()).await;
                }
            }
            Step::Take => {
                let leased = self.lease().await;
                self.taken.extend(leased);
            }
            Step::Start => {
                for beside in [&self.rust, &self.sql] {
                    beside.store.start(&[Target::Collection(self.job.clone())], beside.now).await.unwrap();
                }
            }
        }
    }

    /// The next page of the job, which is the same in both.
    async fn lease(&mut self) -> Option<(Leased, Leased)> {
        let hold = Interval::from_secs_f64(1e6);
        let request = LeaseRequest { collection: Some(self.job.clone()), hold, ..LeaseRequest::default() };
        let mut leased = Vec::new();
        for beside in [&mut self.rust, &mut self.sql] {
            beside.now += SignedDuration::from_secs(10);
            leased.push(beside.store.lease(&request, beside.now).await.unwrap().leased.pop());
        }
        let seen = |leased: &Option<Leased>| {
            leased
                .as_ref()
                .map(|leased| (leased.url.clone(), leased.priority, leased.depth, leased.seed.clone()))
        };
        assert_eq!(seen(&leased[1]), seen(&leased[0]), "what comes next in SQL, and in Rust");
        leased.pop().flatten().zip(leased.pop().flatten()).map(|(sql, rust)| (rust, sql))
    }

    async fn find(&mut self, page: At, way: usize, source: Option<(At, usize)>) {
        for beside in [&mut self.rust, &mut self.sql] {
            beside.now += SignedDuration::from_secs(1);
        }
        self.set_clock().await;
        let written = source.map(|(page, spelling)| spelled(page, spelling));
        self.sql.offer(&self.job, HOSTS[page.0], PATHS[page.1], (WAYS[way], written.as_deref())).await;
        let way = WAYS[way];
        let how = match way {
            "seed" => How::Seed,
            "link" | "header" => How::Link,
            "sitemap" => How::Sitemap,
            "redirect" => How::Redirect,
            "listing" => How::Listing,
            _ => How::Other,
        };
        let links = vec![Link { how, in_header: way == "header", ..link(&url(page)) }];
        let seeds = self.rust.store.catalog().await.unwrap();
        let has = |seed: &str| {
            seeds.rows().seeds.iter().any(|row| row.seed.url == seed && row.seed.profiles.contains(&self.job))
        };
        let seed = if has(nearest(page)) { nearest(page) } else { HOME };
        let page =
            Page { collection: self.job.clone(), source: written, seed: Some(seed.into()), depth: 0, links };
        let found = self.rust.store.discover(&[page], self.rust.now).await.unwrap();
        assert_ne!(found[0].action, Action::Invalid);
    }

    /// The functions of the schema find this clock before that of the database.
    async fn has_a_clock(&self) {
        const CLOCK: &str = "CREATE TABLE clock (millis bigint); INSERT INTO clock VALUES (0); \
            CREATE FUNCTION now() RETURNS timestamptz LANGUAGE plpgsql STABLE \
                AS 'BEGIN RETURN to_timestamp((SELECT c.millis FROM clock c) / 1000.0); END'";
        self.sql.sql.batch_execute(CLOCK).await.unwrap();
    }

    async fn set_clock(&self) {
        self.sql.rows("UPDATE clock SET millis = $1", &[&self.sql.now.as_millisecond()]).await;
    }

    /// All pages, and all that is counted of them, are the same.
    async fn are_same(&self) -> Result<(), TestCaseError> {
        const PAGES: &str = "e.url, e.state, e.priority, coalesce(e.best, -1), e.tie, e.due, e.created, e.depth, e.hops, e.how, e.length, e.tries, e.last_fetch, \
            coalesce(s.url, '-'), c.body -> 'seed' ->> 'url', e.harvest, coalesce(e.record ->> 'bestLink', '-'), \
            (SELECT coalesce(json_agg(l ORDER BY l::text), '[]') FROM json_array_elements(e.record -> 'linkedFrom') l)";
        let from = format!(
            "FROM entries e JOIN job_queues() j ON j.queue = e.queue LEFT JOIN entries s ON s.id = e.source \
             LEFT JOIN catalog_rows c ON c.kind = 2 AND c.number = e.seed WHERE j.job_id = '{}' ORDER BY e.url",
            self.job
        );
        prop_assert_eq!(self.sql.told(PAGES, &from).await, self.rust.told(PAGES, &from).await);
        let jobs = format!("FROM jobs WHERE id = '{}'", self.job);
        let counts = "status, total_pages, completed_tasks, failed_tasks";
        prop_assert_eq!(self.sql.told(counts, &jobs).await, self.rust.told(counts, &jobs).await);
        let order = format!(
            "FROM pages p JOIN tasks t USING (id) JOIN domains d ON d.id = p.domain_id WHERE t.job_id = '{}' ORDER BY p.priority_score DESC, t.created_at, d.name, p.path",
            self.job
        );
        let seen = "p.path, p.priority_score, p.rank, t.source_type, t.source_url";
        prop_assert_eq!(self.sql.told(seen, &order).await, self.rust.told(seen, &order).await);
        Ok(())
    }
}

#[test]
fn what_is_found_is_the_same_by_sql_and_in_rust() {
    agree(24, &[]);
}

/// What the document defines in place of ours changes nothing of that.
#[test]
fn so_it_is_with_the_definitions_of_the_document() {
    const REPLACED: [&str; 4] =
        ["view", "update_page_priority", "update_job_page_priorities", "task_created_update_priority"];
    let parts = include_str!("cases/document-001.sql").split("\n--- ");
    let named = parts.filter_map(|part| part.split_once('\n'));
    let replaced: Vec<&str> =
        named.filter(|(name, _)| REPLACED.contains(name)).map(|(_, statement)| statement).collect();
    assert_eq!(replaced.len(), REPLACED.len());
    agree(8, &replaced);
}

fn agree(cases: u32, replaced: &[&str]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (rust, sql) = runtime.block_on(async { (Beside::new().await, Beside::new().await) });
    let both = Both { rust, sql, job: String::new(), taken: Vec::new() };
    runtime.block_on(async {
        for statement in replaced {
            both.sql.sql.batch_execute(statement).await.unwrap();
        }
        both.has_a_clock().await;
    });
    let both = std::cell::RefCell::new(both);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let jobs = std::cell::Cell::new(0);
    let ran = runner.run(&(steps(), looks()), |(steps, look)| {
        jobs.set(jobs.get() + 1);
        let mut both = both.borrow_mut();
        runtime.block_on(async {
            both.begin(format!("job {}", jobs.get()), look).await;
            for step in &steps {
                both.take(step).await;
                both.are_same().await?;
            }
            // To the end, so that the order of all that is left is compared.
            while both.lease().await.is_some() {}
            both.are_same().await
        })
    });
    ran.unwrap_or_else(|failure| panic!("{failure}"));
    runtime.block_on(both.borrow().sql.is_sound());
    runtime.block_on(both.borrow().sql.schema.is_sound());
}

/// What a store makes of pages of a job that stays near its seed: too far away, a page gains nothing.
#[tokio::test]
async fn what_is_found_too_far_away_changes_nothing() {
    let mut beside = Beside::new().await;
    let profile = Profile { depth: Some(2), ..Profile::new("acme", "acme") };
    let job = NewJob { id: "acme".into(), urls: vec![HOME.into()], profile, limits: Limits::default() };
    beside.store.start_job(&job, beside.now).await.unwrap();
    beside.fetch(200, vec![link("https://acme.example/a")]).await;
    beside.add("acme", "acme.example", "/low", ("other", None)).await;
    beside.add("acme", "acme.example", "/b", ("link", Some("acme.example/a"))).await;
    let seen = "p.path, p.priority_score";
    let low = "FROM pages p WHERE p.path = '/low'";
    assert_eq!(beside.told(seen, low).await, ["/low 0.100"]);
    beside.add("acme", "acme.example", "/low", ("link", Some("acme.example/b"))).await;
    assert_eq!(beside.told(seen, low).await, ["/low 0.100"], "three links away from the seed");
    beside.add("acme", "acme.example", "/low", ("link", Some("acme.example/a"))).await;
    assert_eq!(beside.told(seen, low).await, ["/low 0.640"], "two links away");
    beside.is_sound().await;
}

/// As in Rust, ten redirects in a row are followed, and no more.
#[tokio::test]
async fn redirects_without_end_are_passed_over() {
    let beside = Beside::with_job(Order::Hierarchy).await;
    let mut source = HOME.to_owned();
    for hop in 1..=10 {
        beside.add("acme", "acme.example", &format!("/{hop}"), ("redirect", Some(&source))).await;
        source = format!("{HOME}{hop}");
    }
    let all = "FROM tasks";
    assert_eq!(beside.told("count(*)", all).await, ["11"]);
    let one_more = format!(
        "INSERT INTO pages (domain_id, path) SELECT domain_id, '/11' FROM jobs; \
         INSERT INTO tasks (job_id, page_id, source_type, source_url) \
            SELECT 'acme', id, 'redirect', '{source}' FROM pages WHERE path = '/11'"
    );
    beside.sql.batch_execute(&one_more).await.unwrap();
    assert_eq!(beside.told("count(*)", all).await, ["11"]);
    beside.sql.batch_execute(&one_more.replace("'redirect'", "'link'")).await.unwrap();
    assert_eq!(
        beside.told("max(depth)", "FROM entries").await,
        ["1"],
        "no redirect is a step away from the seed"
    );
    beside.is_sound().await;
}

/// A worker that has nothing to do until later has something at once.
#[tokio::test]
async fn a_page_that_waits_is_brought_forward_by_sql() {
    let mut beside = Beside::with_job(Order::Hierarchy).await;
    // As it is left by a worker that was lost too often: not fetched, and not due.
    beside.sql.batch_execute("UPDATE entries SET due = due + 3600, ready = false").await.unwrap();
    beside
        .sql
        .batch_execute("UPDATE queues q SET place = NULL, first_due = e.due, opens = e.due * 1000, wake_at = e.due * 1000 FROM entries e")
        .await
        .unwrap();
    assert_eq!(beside.lease().await, None);
    beside.add("acme", "acme.example", "/", ("link", None)).await;
    beside.schema.is_sound().await;
    assert_eq!(beside.lease().await.unwrap().url, HOME);
}

/// Beyond what one host may have nothing is added, and it is said why; what is there already is found all the same.
#[tokio::test]
async fn a_host_takes_no_more_pages_by_sql_than_by_forager() {
    let beside = Beside::new().await;
    let traps = Traps { max_per_host: 4, ..Traps::default() };
    let profile = Profile { traps, ..Profile::new("acme", "acme") };
    let job = NewJob { id: "acme".into(), urls: vec![HOME.into()], profile, limits: Limits::default() };
    beside.store.start_job(&job, beside.now).await.unwrap();
    let (notices, said) = notices(&beside).await;
    let many = "INSERT INTO pages (domain_id, path) SELECT domain_id, '/' || n FROM jobs, generate_series(1, 9) n; \
        INSERT INTO tasks (job_id, page_id, source_type) SELECT 'acme', id, 'other' FROM pages WHERE job_id IS NULL ORDER BY id";
    said.batch_execute(many).await.unwrap();
    assert_eq!(beside.told("count(*)", "FROM tasks").await, ["4"]);
    let notices: Vec<String> = notices.try_iter().collect();
    assert_eq!(notices.len(), 6, "{notices:?}");
    assert_eq!(notices[0], "https://acme.example/4 is passed over: trap: more than 4 URLs of one host");
    let page = Page {
        collection: "acme".into(),
        source: Some(HOME.into()),
        links: vec![link("https://acme.example/x")],
        ..Page::default()
    };
    let found = beside.store.discover(&[page], beside.now).await.unwrap();
    assert_eq!((found[0].action, &*found[0].rule), (Action::Ignored, "trap: more than 4 URLs of one host"));
    beside.add("acme", "acme.example", "/3", ("link", Some(HOME))).await;
    assert_eq!(beside.told("priority_score", "FROM pages WHERE path = '/3'").await, ["0.800"]);
    beside.sql.batch_execute("DELETE FROM tasks WHERE path = '/1'").await.unwrap();
    assert!(beside.offer("acme", "acme.example", "/4", ("other", None)).await.is_some());
    assert!(beside.offer("acme", "acme.example", "/5", ("other", None)).await.is_none());
    beside.is_sound().await;
}

/// A connection, and what the server says beside its answers.
async fn notices(beside: &Beside) -> (std::sync::mpsc::Receiver<String>, tokio_postgres::Client) {
    let (client, mut connection) =
        tokio_postgres::connect(&beside.schema.url, tokio_postgres::NoTls).await.unwrap();
    let (sender, notices) = std::sync::mpsc::channel();
    tokio::spawn(async move {
        while let Some(message) = std::future::poll_fn(|context| connection.poll_message(context)).await {
            if let Ok(tokio_postgres::AsyncMessage::Notice(notice)) = message {
                let _ = sender.send(notice.message().to_owned());
            }
        }
    });
    client.batch_execute(&format!("SET search_path TO {}", beside.schema.options.schema)).await.unwrap();
    (notices, client)
}

/// Numbers are set aside by each process, and a page may have its number long before its task: what counts among equals is when
/// a page came.
#[tokio::test]
async fn who_came_first_goes_first_whoever_found_it() {
    for order in [Order::Hierarchy, Order::Fifo] {
        let mut beside = Beside::new().await;
        beside.now -= SignedDuration::from_secs(600);
        beside.start("acme", HOME, order).await;
        let page = "INSERT INTO pages (domain_id, path) SELECT domain_id, '/sql' FROM jobs";
        beside.sql.batch_execute(page).await.unwrap();
        let mut many = beside.schema.clone();
        many.options.number_block = 256;
        let stores = [0, 1].map(|_| many.connect(Settings::default()));
        // The first one sets its numbers aside with the second page, and uses them after the other one.
        for (path, store) in [("one", 0), ("two", 0), ("three", 1), ("four", 0), ("five", 1), ("six", 0)] {
            beside.now += SignedDuration::from_secs(1);
            let links = vec![link(&format!("{HOME}{path}"))];
            let page =
                Page { collection: "acme".into(), source: Some(HOME.into()), links, ..Page::default() };
            stores[store].discover(&[page], beside.now).await.unwrap();
        }
        beside.add("acme", "acme.example", "/sql", ("link", Some(HOME))).await;
        let by_number = beside.told("path", "FROM tasks ORDER BY id").await;
        let expected = ["/", "/one", "/two", "/three", "/four", "/five", "/six", "/sql"];
        assert_ne!(by_number, expected, "numbers are not in the order of arrival");
        let shown = "FROM prioritized_pending_tasks ORDER BY effective_priority DESC, created_at, id";
        assert_eq!(beside.told("path", shown).await, expected, "{order}");
        beside.now += SignedDuration::from_secs(600);
        let plan = PlanFilter { limit: 9, ..PlanFilter::default() };
        let planned = beside.store.plan(&plan, beside.now).await.unwrap();
        let planned: Vec<&str> =
            planned.iter().map(|planned| &planned.url["https://acme.example".len()..]).collect();
        assert_eq!(planned, expected, "{order}");
        let told = beside.store.explain("acme", None, "https://acme.example/sql", beside.now).await.unwrap();
        assert_eq!(told.place_in_queue, Some(8), "{order}");
        for path in expected {
            let (leased, _) = beside.fetch(200, Vec::new()).await;
            assert_eq!(leased.url, format!("https://acme.example{path}"), "{order}");
        }
        beside.is_sound().await;
        assert_eq!(beside.store.check().await.unwrap().findings, []);
    }
}

/// Where a job has a page by both schemes, a link is taken to stand on the one that is written.
#[tokio::test]
async fn a_source_that_is_there_by_both_schemes_is_the_one_that_is_written() {
    let beside = Beside::with_job(Order::Hierarchy).await;
    let both = vec![link("https://acme.example/a"), link("http://acme.example/a")];
    let page = Page { collection: "acme".into(), source: Some(HOME.into()), links: both, ..Page::default() };
    beside.store.discover(&[page], beside.now).await.unwrap();
    for (number, (written, known)) in [
        ("https://acme.example/a", "https://acme.example/a"),
        ("http://acme.example/a", "http://acme.example/a"),
        ("acme.example/a", "http://acme.example/a"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/sql/{number}");
        beside.add("acme", "acme.example", &path, ("link", Some(written))).await;
        let url = format!("https://acme.example/rust/{number}");
        let page = Page {
            collection: "acme".into(),
            source: Some(written.into()),
            links: vec![link(&url)],
            ..Page::default()
        };
        beside.store.discover(&[page], beside.now).await.unwrap();
        let sources = format!(
            "FROM entries e JOIN entries s ON s.id = e.source WHERE e.url LIKE '%/{number}' ORDER BY e.url"
        );
        assert_eq!(beside.told("s.url", &sources).await, [known; 2], "{written}");
    }
    beside.is_sound().await;
}
