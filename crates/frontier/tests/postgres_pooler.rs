//! Behind `PgBouncer`, which lends connections for single transactions: nothing may have to be remembered from one to the next.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::collections::BTreeSet;

use common::agree::{Stand, agree, agree_on_random_calls};
use common::postgres::{Cluster, InSchema, apart, sql};
use common::shop::{begin, start};
use forager_frontier::verbs::LeaseRequest;
use forager_frontier::{Frontier as _, Postgres, Settings};
use tokio::task::JoinSet;

/// A schema that is used through a pooler.
struct Pooled(InSchema);

impl Stand for Pooled {
    type Store = Postgres;
    // Those that a process has set aside are gone with it.
    const HAS_NO_GAPS: bool = false;

    fn open(&self) -> Postgres {
        self.0.connect(Settings::default())
    }

    fn close(&self, store: Postgres) {
        drop(store);
    }

    fn check(&self, _store: &Postgres) {
        let schema = self.0.clone();
        apart(async move { schema.is_sound().await });
    }
}

/// Every kind of call is made, and every statement with it.
#[test]
fn the_store_and_the_model_agree_behind_a_pooler() {
    let cluster = Cluster::start();
    let pool = cluster.pool();
    agree_on_random_calls(200, |steps| {
        let schema = InSchema::behind(&pool);
        apart(async move { agree(&Pooled(schema), &steps).await })
    });
}

/// More workers than the pooler has connections: what one leaves behind in a connection, the next would meet.
#[test]
fn workers_share_what_a_pooler_has_and_leave_nothing_behind() {
    let cluster = Cluster::start();
    let schema = InSchema::behind(&cluster.pool());
    let direct = cluster.url.clone();
    let first = schema.connect(Settings::default());
    let stores: Vec<Postgres> = (0..8).map(|_| schema.connect(Settings::default())).collect();
    apart(async move {
        begin(&first).await;
        let mut workers = JoinSet::new();
        for store in stores {
            workers.spawn(async move {
                let request = LeaseRequest { max: 1, ..LeaseRequest::default() };
                store.lease(&request, start().timestamp()).await.unwrap().leased
            });
        }
        let leased: Vec<_> = workers.join_all().await.into_iter().flatten().collect();
        let pages: BTreeSet<&str> = leased.iter().map(|leased| &*leased.url).collect();
        assert!(!leased.is_empty() && pages.len() == leased.len(), "{pages:?}");
        let locks = sql(&direct, "SELECT l.pid FROM pg_locks l WHERE l.locktype = 'advisory'").await;
        assert!(locks.is_empty(), "locks that outlived their transactions: {locks:?}");
        let changed = "SELECT current_setting('enable_seqscan') || current_setting('statement_timeout')";
        for _ in 0..3 {
            assert_eq!(sql(&schema.url, changed).await, ["on0"]);
        }
    });
}
