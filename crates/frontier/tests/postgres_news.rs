//! Idle workers hear of what others add, where the connection allows it; through a pooler they look now and then.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::postgres::{InSchema, apart, sql};
use common::shop::{begin, start};
use common::sql::Beside;
use forager_core::order::Order;
use forager_frontier::verbs::{LeaseRequest, Link, Page};
use forager_frontier::{Frontier, Postgres, Settings};

fn request() -> LeaseRequest {
    LeaseRequest { host: Some("new.example".into()), ..LeaseRequest::default() }
}

async fn add(store: &Postgres) {
    let links = vec![Link { url: "https://new.example/".into(), ..Link::default() }];
    let (collection, seed) = ("c".to_owned(), Some("https://h0.example/".to_owned()));
    let page = Page { collection, seed, links, ..Page::default() };
    store.discover(&[page], start().timestamp()).await.unwrap();
}

/// How long an idle worker takes to get what another process has added.
fn time_to_hear(schema: InSchema) -> Duration {
    let (idle, busy) = (schema.connect(Settings::default()), schema.connect(Settings::default()));
    apart(async move {
        begin(&busy).await;
        let mut bell = idle.arrivals();
        if schema.options.listens {
            let listening = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%@%'";
            let listening = listening.replace('@', &schema.options.schema);
            while sql(&schema.url, &listening).await.len() < 2 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        assert!(idle.lease(&request(), start().timestamp()).await.unwrap().leased.is_empty());
        // What was added by the other one before is heard of, too; then it is quiet.
        while tokio::time::timeout(Duration::from_millis(300), bell.changed()).await.is_ok() {
            bell.borrow_and_update();
        }
        let added = Instant::now();
        add(&busy).await;
        loop {
            bell.changed().await.unwrap();
            bell.borrow_and_update();
            if !idle.lease(&request(), start().timestamp()).await.unwrap().leased.is_empty() {
                return added.elapsed();
            }
        }
    })
}

#[test]
fn an_idle_worker_hears_at_once_of_what_another_process_adds() {
    let mut schema = InSchema::new();
    schema.options.listens = true;
    let took = time_to_hear(schema);
    assert!(took < Duration::from_secs(4), "it took {took:?}: as long as if it had looked by itself");
}

/// Who adds a task by SQL tells workers, as Forager does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_hears_at_once_of_what_sql_adds() {
    let mut beside = Beside::with_job(Order::Hierarchy).await;
    let mut listening = beside.schema.clone();
    listening.options.listens = true;
    let idle = listening.connect(Settings::default());
    beside.fetch(200, Vec::new()).await;
    let mut bell = idle.arrivals();
    let is_listening =
        format!("FROM pg_stat_activity WHERE query LIKE 'LISTEN%{}%'", beside.schema.options.schema);
    while beside.told("pid", &is_listening).await.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    beside.now += jiff::SignedDuration::from_secs(10);
    assert!(idle.lease(&LeaseRequest::default(), beside.now).await.unwrap().leased.is_empty());
    // A while without a ring that is shorter than it takes until a worker looks by itself.
    while tokio::time::timeout(Duration::from_millis(300), bell.changed()).await.is_ok() {
        bell.borrow_and_update();
    }
    let added = Instant::now();
    beside.add("acme", "acme.example", "/late", ("sitemap", None)).await;
    bell.changed().await.unwrap();
    let took = added.elapsed();
    assert!(took < Duration::from_secs(2), "it took {took:?}: as long as if it had looked by itself");
    let leased = idle.lease(&LeaseRequest::default(), beside.now).await.unwrap().leased;
    assert_eq!(leased[0].url, "https://acme.example/late");
}

#[test]
fn an_idle_worker_that_cannot_be_told_looks_now_and_then() {
    let took = time_to_hear(InSchema::new());
    assert!(took < Duration::from_secs(20), "it took {took:?}");
}

/// Workers of as many processes who have nothing to do, and then something: each asks when it is told, and not before.
#[test]
fn sixty_four_idle_workers_are_quiet() {
    const WORKERS: usize = 64;
    let mut schema = InSchema::new();
    schema.options.listens = true;
    schema.options.connections = 1;
    apart(async move {
        let busy = schema.connect(Settings::default());
        begin(&busy).await;
        let (calls, found) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..WORKERS {
            let (store, calls, found) = (schema.connect(Settings::default()), calls.clone(), found.clone());
            tokio::spawn(async move {
                let mut bell = store.arrivals();
                loop {
                    bell.borrow_and_update();
                    let answer = store.lease(&request(), start().timestamp()).await.unwrap();
                    calls.fetch_add(1, Ordering::Relaxed);
                    found.fetch_add(answer.leased.len(), Ordering::Relaxed);
                    bell.changed().await.unwrap();
                }
            });
        }
        // Until all have heard that they are listening, and that there is nothing.
        let quiet = async || loop {
            let before = calls.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(2)).await;
            if calls.load(Ordering::Relaxed) == before && before >= WORKERS {
                return before;
            }
        };
        let before = quiet().await;
        add(&busy).await;
        let asked = quiet().await - before;
        assert_eq!(found.load(Ordering::Relaxed), 1, "one of them got what was added");
        // That it was added, and that it was leased: both may be news.
        assert!((WORKERS..=WORKERS * 3).contains(&asked), "{WORKERS} workers asked {asked} times");
    });
}

/// The connection that listens is cut: news come again after a while.
#[test]
fn a_worker_that_was_cut_off_listens_again() {
    let mut schema = InSchema::new();
    schema.options.listens = true;
    let idle = Arc::new(schema.connect(Settings::default()));
    apart(async move {
        let listening = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%@%'";
        let listening = listening.replace('@', &schema.options.schema);
        let find = async || loop {
            if let Some(pid) = sql(&schema.url, &listening).await.pop() {
                return pid;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let first = find().await;
        sql(&schema.url, &format!("SELECT pg_terminate_backend({first})")).await;
        while sql(&schema.url, &listening).await.contains(&first) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_ne!(find().await, first);
        drop(idle);
    });
}
