//! Without anything that a connection would have to remember from one transaction to the next, as behind a pooler
//! that hands out connections for single transactions.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::agree::{Stand, agree, agree_on_random_calls};
use common::postgres::{InSchema, apart};
use forager_frontier::{Postgres, Settings};

/// A schema that is used as through a pooler.
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
fn the_store_and_the_model_agree_without_prepared_statements() {
    agree_on_random_calls(200, |steps| {
        let mut schema = InSchema::new();
        (schema.options.prepares, schema.options.listens) = (false, false);
        apart(async move { agree(&Pooled(schema), &steps).await })
    });
}

/// A lock that outlived its transaction would stay with a connection that others are given.
#[test]
fn no_lock_outlives_its_transaction() {
    use common::postgres::sql;
    use common::shop::{begin, start};
    use forager_frontier::Frontier as _;
    use forager_frontier::verbs::LeaseRequest;
    let mut schema = InSchema::new();
    schema.options.prepares = false;
    let store = schema.connect(Settings::default());
    apart(async move {
        begin(&store).await;
        store.lease(&LeaseRequest::default(), start().timestamp()).await.unwrap();
        let locks = "SELECT l.locktype FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid \
            WHERE l.locktype = 'advisory' AND a.query LIKE '%@%'";
        let locks = sql(&schema.url, &locks.replace('@', &schema.options.schema)).await;
        assert!(locks.is_empty(), "{locks:?}");
    });
}
