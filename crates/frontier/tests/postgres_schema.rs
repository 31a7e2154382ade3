//! The schema: made, refused and taken back.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::postgres::{InSchema, apart, client, server, sql};
use common::shop::{begin, start};
use forager_frontier::{Frontier, PostgresOptions, PostgresSchema, Settings};

fn schema(bare: &InSchema) -> PostgresSchema {
    PostgresSchema::connect(&bare.url, bare.options.clone()).unwrap()
}

#[test]
fn ten_who_migrate_at_once_take_each_step_once() {
    let bare = InSchema::bare(&server());
    apart(async move {
        let all = (0..10).map(|_| {
            let schema = schema(&bare);
            tokio::spawn(async move { schema.migrate(PostgresSchema::newest()).await.unwrap().len() })
        });
        let mut taken = 0;
        for task in all.collect::<Vec<_>>() {
            taken += task.await.unwrap();
        }
        let newest = PostgresSchema::newest();
        assert_eq!(taken, usize::try_from(newest).unwrap());
        assert_eq!(schema(&bare).applied().await.unwrap().len(), taken);
    });
}

/// What there is in a schema, and what hangs on it.
async fn inventory(bare: &InSchema) -> Vec<String> {
    let statement = "SELECT c.relkind::text || ' ' || c.relname FROM pg_class c WHERE c.relnamespace = '@'::regnamespace \
        ORDER BY 1";
    sql(&bare.url, &statement.replace('@', &bare.options.schema)).await
}

#[test]
fn up_and_down_and_up_again_is_where_it_was() {
    let bare = InSchema::bare(&server());
    apart(async move {
        let there = schema(&bare);
        there.migrate(PostgresSchema::newest()).await.unwrap();
        let first = inventory(&bare).await;
        there.migrate(0).await.unwrap();
        let nothing = inventory(&bare).await;
        assert!(nothing.iter().all(|thing| thing.contains("migrations")), "left behind: {nothing:?}");
        there.migrate(PostgresSchema::newest()).await.unwrap();
        assert_eq!(inventory(&bare).await, first);
        let store = InSchema::connect(&bare, Settings::default());
        begin(&store).await;
        bare.is_sound().await;
    });
}

#[test]
fn a_schema_that_does_not_fit_is_refused_and_told_why() {
    let bare = InSchema::bare(&server());
    let error = bare.try_connect(Settings::default()).unwrap_err().to_string();
    assert!(error.contains("nothing in the schema") && error.contains("forager db migrate"), "{error}");
    let newer = InSchema::new();
    let insert =
        format!("INSERT INTO {}.migrations (version, name) VALUES (9999, 'later')", newer.options.schema);
    let url = newer.url.clone();
    apart(async move { sql(&url, &insert).await });
    let error = newer.try_connect(Settings::default()).unwrap_err().to_string();
    assert!(error.contains("newer version of Forager") && error.contains("9999"), "{error}");
    let there = schema(&newer);
    let error = apart(async move { there.migrate(PostgresSchema::newest()).await.unwrap_err().to_string() });
    assert!(error.contains("9999"), "{error}");
}

#[test]
fn nothing_outside_the_schema_is_touched() {
    const OTHERS: &str = "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
        WHERE n.nspname = 'public' ORDER BY 1";
    let schema = InSchema::new();
    apart(async move {
        let before = sql(&schema.url, OTHERS).await;
        let store = schema.connect(Settings::default());
        begin(&store).await;
        assert_eq!(sql(&schema.url, OTHERS).await, before);
    });
}

/// Whoever finds other tables than it knows says so.
fn is_told(error: &forager_frontier::Error) -> bool {
    let error = error.to_string();
    error.contains("nothing in the schema") || error.contains("this program needs")
}

/// A call is under way when somebody migrates: that one waits, and so do later calls; none sees half of a step.
#[test]
fn a_migration_waits_for_calls_and_calls_wait_for_it() {
    let here = InSchema::new();
    let store = Arc::new(here.connect(Settings::default()));
    apart(async move {
        begin(&*store).await;
        let holder = client(&here.url).await;
        let lock = format!("BEGIN; SELECT 1 FROM {}.hosts FOR UPDATE", here.options.schema);
        holder.batch_execute(&lock).await.unwrap();
        let caller = store.clone();
        let early = tokio::spawn(async move {
            let page = forager_frontier::verbs::Page {
                collection: "c".into(),
                seed: Some("https://h0.example/".into()),
                links: vec![forager_frontier::verbs::Link {
                    url: "https://h1.example/new".into(),
                    ..Default::default()
                }],
                ..Default::default()
            };
            caller.discover(&[page], start().timestamp()).await
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        let there = schema(&here);
        let migration = tokio::spawn(async move { there.migrate(0).await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        let caller = store.clone();
        let late = tokio::spawn(async move { caller.stats(None, start().timestamp()).await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!early.is_finished() && !migration.is_finished() && !late.is_finished());
        holder.batch_execute("ROLLBACK").await.unwrap();
        assert_eq!(early.await.unwrap().unwrap().len(), 1, "it was there first");
        migration.await.unwrap().unwrap();
        // It came between two steps, or after the last one.
        let late = late.await.unwrap();
        assert!(late.as_ref().map_or_else(is_told, |_| true), "{late:?}");
        let after = store.stats(None, start().timestamp()).await;
        assert!(is_told(&after.unwrap_err()));
    });
}

#[test]
fn names_and_switches_in_the_address_are_checked() {
    let cases = [
        ("schema=Forager", "small letters"),
        ("schema=a-b", "small letters"),
        ("schema=1a", "small letters"),
        ("prepare=maybe", "true or false"),
        ("connections=many", "connections=many"),
    ];
    for (pair, told) in cases {
        let url = format!("{}&{pair}", server());
        let error = PostgresSchema::connect(&url, PostgresOptions::default()).unwrap_err().to_string();
        assert!(error.contains(told), "{pair}: {error}");
    }
}
