//! What a claim locks and writes: the rows that it takes, and none that all have in common.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that cannot go on has failed, and the names say it"
)]

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use common::postgres::{InSchema, apart, client};
use common::shop::start;
use common::sql::{Beside, link};
use forager_core::order::Order;
use forager_frontier::catalog::{Change, CollectionSpec, Kind};
use forager_frontier::verbs::{Item, LeaseRequest, Page, Put};
use forager_frontier::{Frontier as _, Settings};

const HOSTS: usize = 20;

/// A job with five pages at each host.
async fn with_pages() -> Beside {
    let mut beside = Beside::with_job(Order::Hierarchy).await;
    let urls = (0..HOSTS).flat_map(|host| (0..5).map(move |page| format!("https://h{host}.example/{page}")));
    let page = Page {
        collection: "acme".into(),
        source: Some(common::sql::HOME.into()),
        links: urls.map(|url| link(&url)).collect(),
        ..Page::default()
    };
    beside.store.discover(&[page], beside.now).await.unwrap();
    // What is due is made ready by whoever comes first, for all.
    beside.lease().await.unwrap();
    beside
}

/// Each row of a table by its number, with who wrote it last and who locked it last.
async fn rows(beside: &Beside, table: &str) -> BTreeMap<i32, String> {
    let rows = beside.rows(&format!("SELECT id, concat(ctid, ' ', xmin, ' ', xmax) FROM {table}"), &[]).await;
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test]
async fn a_claim_locks_the_rows_it_takes_and_no_others() {
    let beside = with_pages().await;
    for max in [1, 3, 7] {
        let mut before = BTreeMap::new();
        for table in ["hosts", "queues", "entries"] {
            before.insert(table, rows(&beside, table).await);
        }
        let request = LeaseRequest { max, ..LeaseRequest::default() };
        let leased = beside.store.lease(&request, beside.now).await.unwrap().leased;
        assert_eq!(leased.len(), max);
        for (table, before) in before {
            let after = rows(&beside, table).await;
            assert_eq!(before.len(), after.len(), "{table}");
            let touched = before.iter().filter(|(id, row)| after[id] != **row).count();
            assert_eq!(touched, max, "{table} of {max}");
        }
    }
}

/// What is counted of a job is spread over rows, of which each connection has its own: one whose transaction stays open
/// keeps nobody at other hosts.
/// Others are at all that comes first, in as many collections as are looked into at first.
#[test]
fn a_claim_goes_on_to_collections_that_nobody_is_at() {
    let schema = InSchema::new();
    let store = schema.connect(Settings::default());
    apart(async move {
        let names: Vec<String> = (0..30).map(|number| format!("c{number}")).collect();
        // One that is stopped has the others asked one by one.
        let mut changes: Vec<Change> = ["stopped"]
            .into_iter()
            .chain(names.iter().map(String::as_str))
            .map(|name| Change::AddCollection(CollectionSpec::new(name, Kind::Plain)))
            .collect();
        changes.push(Change::EnableCollection("stopped".to_owned(), false));
        store.configure(&changes, start().timestamp()).await.unwrap();
        let put = |name: &String| {
            let item = Item { url: format!("https://{name}.example/"), ..Item::default() };
            Put { collection: name.clone(), items: vec![item] }
        };
        let puts: Vec<Put> = names.iter().map(put).collect();
        store.put(&puts, start().timestamp()).await.unwrap();
        let holder = client(&schema.url).await;
        let hold =
            format!("BEGIN; SELECT 1 FROM {}.hosts ORDER BY id LIMIT 10 FOR UPDATE", schema.options.schema);
        holder.batch_execute(&hold).await.unwrap();
        let request = LeaseRequest { max: 10, ..LeaseRequest::default() };
        let leased = store.lease(&request, start().timestamp()).await.unwrap().leased;
        let from: Vec<&str> = leased.iter().map(|leased| leased.collection.as_str()).collect();
        assert_eq!(from, names[10..20].iter().map(String::as_str).collect::<Vec<_>>());
        holder.batch_execute("ROLLBACK").await.unwrap();
    });
}

#[tokio::test]
async fn no_row_is_written_by_all() {
    let mut beside = with_pages().await;
    let stores: Vec<_> = (0..8).map(|_| beside.schema.connect(Settings::default())).collect();
    beside.now += jiff::SignedDuration::from_secs(10);
    for store in &stores {
        let leased = store.lease(&LeaseRequest::default(), beside.now).await.unwrap().leased;
        assert_eq!(leased.len(), 1);
    }
    let spread: i64 = beside.rows("SELECT count(*) FROM counters", &[]).await[0].get(0);
    assert!(spread >= 4, "nine connections count in {spread} rows");
    // Somebody adds a page, and has not committed.
    let pid = "SELECT pg_backend_pid() % 64";
    let shard: i32 = beside.rows(pid, &[]).await[0].get(0);
    beside.sql.batch_execute("BEGIN").await.unwrap();
    beside.add("acme", "elsewhere.example", "/", ("link", None)).await;
    beside.now += jiff::SignedDuration::from_secs(10);
    let mut went_on = 0;
    for store in &stores {
        let one = LeaseRequest::default();
        let lease = store.lease(&one, beside.now);
        if let Ok(lease) = tokio::time::timeout(Duration::from_secs(2), lease).await {
            assert_eq!(lease.unwrap().leased.len(), 1);
            went_on += 1;
        }
    }
    // Two connections may have the same row, but not all of them.
    assert!(went_on >= 5, "only {went_on} of 8 went on beside shard {shard}");
    beside.sql.batch_execute("ROLLBACK").await.unwrap();
}
