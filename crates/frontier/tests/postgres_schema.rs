//! The schema: made, refused and taken back.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::postgres::{Cluster, InSchema, apart, client, new_database, server, sql};
use common::shop::{begin, start};
use forager_core::time::Interval;
use forager_frontier::verbs::LeaseRequest;
use forager_frontier::{Error, Frontier, Postgres, PostgresOptions, PostgresSchema, Settings};

fn schema(bare: &InSchema) -> PostgresSchema {
    PostgresSchema::connect(&bare.url, bare.options.clone()).unwrap()
}

#[test]
fn ten_who_migrate_at_once_take_each_step_once() {
    let bare = InSchema::bare(&server());
    apart(async move {
        let all = (0..10).map(|_| {
            let schema = schema(&bare);
            tokio::spawn(async move { schema.migrate(schema.newest()).await.unwrap().len() })
        });
        let mut taken = 0;
        for task in all.collect::<Vec<_>>() {
            taken += task.await.unwrap();
        }
        let newest = bare.options.newest();
        assert_eq!(taken, usize::try_from(newest).unwrap());
        assert_eq!(schema(&bare).applied().await.unwrap().len(), taken);
    });
}

/// What there is in a schema, and what hangs on it.
async fn inventory(bare: &InSchema) -> Vec<String> {
    sql(&bare.url, &format!("{} ORDER BY 1", EVERYTHING.replace('@', &bare.options.schema))).await
}

/// Everything that lies in a schema, by its kind and name, and the comment it has.
const EVERYTHING: &str = "SELECT kind || ' ' || name AS what, comment FROM pg_namespace n CROSS JOIN LATERAL \
    (SELECT 'schema' AS kind, n.nspname::text AS name, obj_description(n.oid, 'pg_namespace') AS comment \
    UNION ALL SELECT CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' \
            ELSE c.relkind::text END, c.relname, obj_description(c.oid, 'pg_class') FROM pg_class c \
        WHERE c.relnamespace = n.oid \
    UNION ALL SELECT 'column', c.relname || '.' || a.attname, col_description(c.oid, a.attnum) \
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
        WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'v') \
    UNION ALL SELECT 'function', p.oid::regprocedure::text, obj_description(p.oid, 'pg_proc') FROM pg_proc p \
        WHERE p.pronamespace = n.oid \
    UNION ALL SELECT 'trigger', c.relname || '.' || t.tgname, obj_description(t.oid, 'pg_trigger') \
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = n.oid AND NOT t.tgisinternal) x \
    WHERE n.nspname = '@'";

#[test]
fn everything_in_the_schema_has_a_comment() {
    let schema = InSchema::new();
    let everything = EVERYTHING.replace('@', &schema.options.schema);
    let silent = format!("SELECT what FROM ({everything}) e WHERE coalesce(comment, '') = '' ORDER BY 1");
    apart(async move {
        assert_eq!(sql(&schema.url, &silent).await, [""; 0], "these have none");
        let kinds = format!("SELECT DISTINCT split_part(what, ' ', 1) FROM ({everything}) e ORDER BY 1");
        let all = ["column", "function", "index", "schema", "sequence", "table", "trigger", "view"];
        assert_eq!(sql(&schema.url, &kinds).await, all, "all kinds were looked at");
    });
}

#[test]
fn up_and_down_and_up_again_is_where_it_was() {
    let bare = InSchema::bare(&server());
    apart(async move {
        let there = schema(&bare);
        there.migrate(there.newest()).await.unwrap();
        let first = inventory(&bare).await;
        there.migrate(0).await.unwrap();
        assert_eq!(inventory(&bare).await, [""; 0], "left behind");
        assert!(!there.exists().await.unwrap());
        there.migrate(0).await.unwrap();
        assert!(!there.exists().await.unwrap(), "who takes nothing back makes nothing");
        there.migrate(there.newest()).await.unwrap();
        assert_eq!(inventory(&bare).await, first);
        let store = InSchema::connect(&bare, Settings::default());
        begin(&store).await;
        bare.is_sound().await;
    });
}

/// Down to the version whose queues were woken when their hosts opened, and up again.
#[test]
fn queues_keep_their_places_in_line_over_a_step_back_and_forth() {
    const WOKEN: i32 = 6;
    let bare = InSchema::bare(&server());
    apart(async move {
        let there = schema(&bare);
        there.migrate(there.newest()).await.unwrap();
        let store = InSchema::connect(&bare, Settings::default());
        begin(&store).await;
        let two = LeaseRequest { max: 2, ..LeaseRequest::default() };
        assert_eq!(store.lease(&two, start().timestamp()).await.unwrap().leased.len(), 2);
        let line = "SELECT (place IS NULL) || ' ' || coalesce(place, 0) || ' ' || coalesce(opens, 0) FROM @.queues ORDER BY id";
        let line = line.replace('@', &bare.options.schema);
        let before = sql(&bare.url, &line).await;
        let served = before.iter().filter(|row| **row != "false 0 0").count();
        assert_eq!(served, 2, "{before:?}");
        there.migrate(WOKEN).await.unwrap();
        there.migrate(there.newest()).await.unwrap();
        assert_eq!(sql(&bare.url, &line).await, before);
        bare.is_sound().await;
        let more = LeaseRequest { max: 100, ..LeaseRequest::default() };
        let leased = store.lease(&more, start().timestamp()).await.unwrap().leased;
        assert_eq!(leased.len(), before.len() - served, "one of each host that is open");
    });
}

/// With nothing of ours in it any more.
#[test]
fn a_schema_that_others_made_or_use_stays() {
    let cases =
        [("others made it", true, ""), ("others use it", false, "CREATE TABLE @.theirs (id integer)")];
    for (name, is_theirs, later) in cases {
        let bare = InSchema::bare(&server());
        apart(async move {
            let run =
                async |statement: &str| sql(&bare.url, &statement.replace('@', &bare.options.schema)).await;
            if is_theirs {
                run("CREATE SCHEMA @").await;
            }
            let there = schema(&bare);
            there.migrate(there.newest()).await.unwrap();
            run(later).await;
            there.migrate(0).await.unwrap();
            assert!(there.exists().await.unwrap(), "{name}");
            let left = inventory(&bare).await;
            assert!(
                left.iter().all(|thing| thing.starts_with("schema") || thing.contains("theirs")),
                "{name}: {left:?}"
            );
            assert!(there.applied().await.unwrap().is_empty(), "{name}");
            there.migrate(there.newest()).await.unwrap();
        });
    }
}

/// Who owns a schema need not be allowed to make one.
#[test]
fn the_owner_of_a_schema_migrates_without_any_other_right() {
    let bare = InSchema::bare(&server());
    apart(async move {
        let role = bare.options.schema.replace("test", "role");
        let make =
            format!("CREATE ROLE {role} LOGIN; CREATE SCHEMA {} AUTHORIZATION {role}", bare.options.schema);
        sql(&bare.url, &make).await;
        let url = bare.url.replacen("forager@", &format!("{role}@"), 1);
        let there = PostgresSchema::connect(&url, bare.options.clone()).unwrap();
        there.migrate(there.newest()).await.unwrap();
        there.migrate(0).await.unwrap();
        assert!(there.exists().await.unwrap(), "it was not made by us");
    });
}

/// A backslash in a text is one, whatever the role has set.
#[test]
fn a_role_that_reads_backslashes_as_of_old_migrates_and_works() {
    let bare = InSchema::bare(&server());
    apart(async move {
        let role = bare.options.schema.replace("test", "role");
        let make = format!(
            "CREATE ROLE {role} LOGIN; ALTER ROLE {role} SET standard_conforming_strings TO off; \
             CREATE SCHEMA {} AUTHORIZATION {role}",
            bare.options.schema
        );
        sql(&bare.url, &make).await;
        let url = bare.url.replacen("forager@", &format!("{role}@"), 1);
        let theirs = InSchema { url, ..bare };
        let there = schema(&theirs);
        there.migrate(there.newest()).await.unwrap();
        let store =
            Postgres::connect(&theirs.url, Settings::default(), theirs.options.clone()).await.unwrap();
        begin(&store).await;
        assert!(!store.lease(&lease_of(1), start().timestamp()).await.unwrap().leased.is_empty());
    });
}

fn lease_of(max: usize) -> LeaseRequest {
    LeaseRequest { max, hold: Interval::from_secs_f64(60.0), ..LeaseRequest::default() }
}

#[test]
fn a_database_that_cannot_keep_every_text_is_refused() {
    let name = format!("test_{:016x}", rand::random::<u64>());
    let create =
        format!("CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
    apart(async move {
        sql(&server(), &create).await;
        let bare = InSchema::bare(&server().replacen("/postgres?", &format!("/{name}?"), 1));
        let there = schema(&bare);
        let error = there.migrate(there.newest()).await.unwrap_err();
        assert!(matches!(error, Error::Unfit { .. }), "{error:?}");
        let told = error.to_string();
        assert!(told.contains("LATIN1") && told.contains("ENCODING 'UTF8'"), "{told}");
        assert!(!there.exists().await.unwrap(), "nothing was made");
    });
}

/// Trying again does not help.
#[test]
fn who_may_not_write_is_told_that_it_is_about_rights() {
    let here = InSchema::new();
    apart(async move {
        let (schema, role) = (&here.options.schema, here.options.schema.replace("test", "role"));
        let make = format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}; \
             GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
        );
        sql(&here.url, &make).await;
        let owner = Postgres::connect(&here.url, Settings::default(), here.options.clone()).await.unwrap();
        begin(&owner).await;
        let url = here.url.replacen("forager@", &format!("{role}@"), 1);
        let reader = Postgres::connect(&url, Settings::default(), here.options.clone()).await.unwrap();
        reader.stats(None, start().timestamp()).await.unwrap();
        let error = reader.lease(&lease_of(1), start().timestamp()).await.unwrap_err();
        assert!(matches!(error, Error::Unfit { .. }), "{error:?}");
        assert!(error.to_string().contains("permission denied"), "{error}");
    });
}

#[test]
fn a_password_that_is_missing_is_no_server_that_is_away() {
    let cluster = Cluster::start();
    let here = InSchema::at(&cluster.url);
    let rules = "local all all scram-sha-256\nhost all all all scram-sha-256\n";
    std::fs::write(format!("{}/data/pg_hba.conf", cluster.folder), rules).unwrap();
    apart(async move {
        sql(&here.url, "SELECT pg_reload_conf()").await;
        let config: tokio_postgres::Config = here.url.parse().unwrap();
        while config.connect(tokio_postgres::NoTls).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let error =
            Postgres::connect(&here.url, Settings::default(), here.options.clone()).await.unwrap_err();
        assert!(matches!(error, Error::Unfit { .. }), "{error:?}");
        assert!(error.to_string().contains("password missing"), "{error}");
        let there = schema(&here);
        assert!(matches!(there.applied().await.unwrap_err(), Error::Unfit { .. }));
    });
    drop(cluster);
}

#[test]
fn a_schema_that_does_not_fit_is_refused_and_told_why() {
    let bare = InSchema::bare(&server());
    let error = bare.try_connect(Settings::default()).unwrap_err().to_string();
    assert!(error.contains("nothing in the schema") && error.contains("forager db migrate"), "{error}");
    let newer = InSchema::new();
    let before = newer.connect(Settings::default());
    let insert =
        format!("INSERT INTO {}.migrations (version, name) VALUES (9999, 'later')", newer.options.schema);
    let url = newer.url.clone();
    apart(async move { sql(&url, &insert).await });
    let error = newer.try_connect(Settings::default()).unwrap_err().to_string();
    assert!(error.contains("newer version of Forager") && error.contains("9999"), "{error}");
    let late = apart(async move { before.stats(None, start().timestamp()).await.unwrap_err().to_string() });
    assert_eq!(late, error, "also who was there before");
    let there = schema(&newer);
    let told = apart(async move { there.migrate(there.newest()).await.unwrap_err().to_string() });
    assert_eq!(told, error, "the same, whoever is too old");
}

#[test]
fn nothing_outside_the_schema_is_touched() {
    const OTHERS: &str = "SELECT x.what || ' ' || n.nspname || '.' || x.name FROM pg_namespace n JOIN (\
            SELECT relnamespace, 'relation', relname FROM pg_class UNION ALL \
            SELECT pronamespace, 'function', proname FROM pg_proc UNION ALL \
            SELECT typnamespace, 'type', typname FROM pg_type UNION ALL \
            SELECT oid, 'schema', '' FROM pg_namespace UNION ALL \
            SELECT extnamespace, 'extension', extname FROM pg_extension) x (namespace, what, name) ON x.namespace = n.oid \
        WHERE n.nspname <> '@' AND n.nspname NOT LIKE 'pg\\_toast%' AND n.nspname NOT LIKE 'pg\\_temp%' ORDER BY 1";
    // In a database that no other test changes.
    let schema = InSchema::bare(&new_database());
    let others = OTHERS.replace('@', &schema.options.schema);
    let (url, asked) = (schema.url.clone(), others.clone());
    let before = apart(async move { sql(&url, &asked).await });
    let schema = schema.migrated();
    let store = schema.connect(Settings::default());
    apart(async move {
        begin(&store).await;
        assert!(sql(&schema.url, &others).await == before, "something else is not as it was");
    });
}

/// Whoever finds other tables than it knows says so.
fn is_told(error: &forager_frontier::Error) -> bool {
    let error = error.to_string();
    error.contains("nothing in the schema") || error.contains("this program needs")
}

/// A call is under way when somebody migrates: that one waits, later calls go on or wait, and none sees half of a step.
#[test]
fn a_migration_waits_for_calls_and_no_call_sees_half_of_it() {
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
        assert!(!early.is_finished() && !migration.is_finished());
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
        ("schema=", "small letters"),
        ("schema=information_schema", "schema: \"information_schema\": the server keeps this name"),
        ("schema=pg_forager", "schema: \"pg_forager\": the server keeps this name"),
        ("prepare=maybe", "true or false"),
        ("connections=many", "connections=many"),
        ("connections=0", "connections: 0 is less than 1"),
    ];
    for (pair, told) in cases {
        let url = format!("{}&{pair}", server());
        let error = PostgresSchema::connect(&url, PostgresOptions::default()).unwrap_err().to_string();
        assert!(error.contains(told), "{pair}: {error}");
    }
    let options = PostgresOptions { statement_timeout: Duration::ZERO, ..PostgresOptions::default() };
    let error = PostgresSchema::connect(&server(), options).unwrap_err().to_string();
    assert!(error.contains("statement_timeout: "), "{error}");
}

#[test]
fn values_in_the_address_are_read_as_they_are_written_there() {
    let url = format!("{}&schema=%66or%61ger&connections=%33", server());
    assert_eq!(PostgresSchema::connect(&url, PostgresOptions::default()).unwrap().name(), "forager");
    let url = "postgres://ann@127.0.0.1/crawl?sslmode=require&sslrootcert=%2Fno%20where%2Fca.pem";
    let error = PostgresSchema::connect(url, PostgresOptions::default()).unwrap_err().to_string();
    assert!(error.contains("/no where/ca.pem"), "{error}");
}
