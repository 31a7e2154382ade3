//! Random sequences of calls: the store in PostgreSQL and the plain model agree call by call.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::agree::{Stand, agree, agree_on_random_calls};
use common::postgres::{InSchema, apart};
use forager_frontier::{Postgres, Settings};

impl Stand for InSchema {
    type Store = Postgres;
    // Those that a process has set aside are gone with it.
    const HAS_NO_GAPS: bool = false;

    fn open(&self) -> Postgres {
        self.connect(Settings::default())
    }

    fn close(&self, store: Postgres) {
        drop(store);
    }

    fn check(&self, _store: &Postgres) {
        let schema = self.clone();
        apart(async move { schema.is_sound().await });
    }
}

#[test]
fn the_store_and_the_model_agree_call_by_call() {
    agree_on_random_calls(400, |steps| apart(async move { agree(&InSchema::new(), &steps).await }));
}
