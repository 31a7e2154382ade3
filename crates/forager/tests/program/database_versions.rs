//! Two versions of the program at one database, while its schema is brought from one to the other.
//!
//! The older one is the real binary; the newer one is this program, which knows one step more.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::server::Schema;
use crate::web::{Field, LONG, Started, plain_host};
use forager_core::time::Interval;
use forager_frontier::entry::State;
use forager_frontier::verbs::{LeaseRequest, Report};
use forager_frontier::{Frontier as _, Migration, Postgres, PostgresOptions, PostgresSchema, Settings};
use forager_site::Site;
use jiff::Timestamp;

const HOST: &str = "a.test";
const PAGES: usize = 120;

/// The version of the older program.
fn older() -> i32 {
    PostgresOptions::default().newest()
}

/// What the newer program knows: all that the older one does, and a step that changes a table which everybody writes to.
fn options() -> PostgresOptions {
    const UP: &str = "ALTER TABLE entries ADD COLUMN later integer NOT NULL DEFAULT 7; \
        COMMENT ON COLUMN entries.later IS 'What only a later version knows'";
    const DOWN: &str = "ALTER TABLE entries DROP COLUMN later";
    let known = PostgresOptions::default();
    let later = [known.steps, &[Migration::new(older() + 1, "later", UP, DOWN)]].concat();
    PostgresOptions { steps: later.leak(), ..known }
}

async fn open(url: &str) -> forager_frontier::Result<Postgres> {
    let mut settings = Settings::default();
    (settings.politeness.delay, settings.politeness.max_delay) = (Interval::default(), Interval::default());
    Postgres::connect(url, settings, options()).await
}

/// The pages that the older program has told of, each once.
fn told(field: &Field) -> BTreeSet<String> {
    let lines = field.lines("pages.jsonl");
    let urls: BTreeSet<String> = lines.iter().map(|line| line["url"].as_str().unwrap().to_owned()).collect();
    assert_eq!(urls.len(), lines.len(), "none twice");
    urls
}

/// Has so many pages of a job fetched; which.
async fn fetch(store: &Postgres, job: &str, count: usize) -> BTreeSet<String> {
    let (mut fetched, start) = (BTreeSet::new(), std::time::Instant::now());
    let request = LeaseRequest { max: 1, collection: Some(job.to_owned()), ..LeaseRequest::default() };
    while fetched.len() < count {
        assert!(start.elapsed() < LONG, "nothing is handed out");
        for leased in store.lease(&request, Timestamp::now()).await.unwrap().leased {
            let report = Report { token: leased.token.0, status: Some(200), ..Report::default() };
            store.complete(&[report], Timestamp::now()).await.unwrap();
            assert!(fetched.insert(leased.url.clone()), "{} is handed out twice", leased.url);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fetched
}

#[test]
fn a_newer_program_takes_over_under_load_and_gives_back() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let field = Field::new(Site::new().host(plain_host(HOST, PAGES)));
    let schema = Schema::new();
    let url = schema.url();
    let place = ["--store", url.as_str()];

    let told_newer = runtime.block_on(open(&url)).unwrap_err().to_string();
    assert!(
        told_newer.contains(&format!("has version {}, and this program needs {}", older(), older() + 1)),
        "{told_newer}"
    );
    assert!(told_newer.contains("run `forager db migrate`"), "{told_newer}");

    // The older one is at work when the newer one comes.
    let started = Started::new(&mut field.crawl_command(HOST, &place));
    field.wait_for(HOST, 10);
    let newer = runtime.block_on(async { PostgresSchema::connect(&url, options()) }).unwrap();
    let steps = runtime.block_on(newer.migrate(newer.newest())).unwrap();
    assert_eq!(steps.iter().map(|step| step.name).collect::<Vec<_>>(), ["later"]);
    let ended = started.end();
    assert_eq!(ended.status, 4, "trying again does not help: {ended:?}");
    let problem = format!(
        "was made by a newer version of Forager (version {}, this one knows {}); use that one",
        older() + 1,
        older()
    );
    assert!(ended.stderr.contains(&problem), "{}", ended.stderr);
    for args in [["db", "migrate"], ["queue", "stats"]] {
        let ran = schema.run(&args, "");
        assert!(ran.status == 2 && ran.stderr.contains(&problem), "{args:?}: {ran:?}");
    }
    assert_eq!(schema.run(&["db", "status"], "").status, 1);

    // What it has told of is in the queue, and the newer one goes on with the rest.
    let first = told(&field);
    assert!(!first.is_empty() && first.len() <= PAGES, "it was stopped in the middle: {}", first.len());
    let store = runtime.block_on(open(&url)).unwrap();
    let job = runtime.block_on(store.jobs(Timestamp::now())).unwrap().remove(0).id;
    for page in &first {
        let entry = runtime.block_on(store.entry(&job, None, page, Timestamp::now())).unwrap();
        assert_eq!(entry.map(|entry| entry.state), Some(State::Done), "{page}");
    }
    runtime.block_on(store.reclaim(&job, Timestamp::now())).unwrap();
    let second = runtime.block_on(fetch(&store, &job, 10));
    assert!(first.is_disjoint(&second), "what was told of is not fetched again");

    // Back again, the older one does the rest, and the newer one says what to do.
    runtime.block_on(newer.migrate(older())).unwrap();
    assert_eq!(runtime.block_on(store.stats(None, Timestamp::now())).unwrap_err().to_string(), told_newer);
    drop(store);
    let ran = field.crawl(HOST, &place);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{ran:?}");
    let third = told(&field);
    assert!(first.is_subset(&third) && third.is_disjoint(&second));
    assert_eq!(third.len() + second.len(), PAGES + 1, "every page once, by one or the other");
    let counts = field.counts(HOST);
    for page in &first {
        let path = &page[page.find(HOST).unwrap()..];
        assert_eq!(counts[&path[path.find('/').unwrap()..]], 1, "{page} was told of, and asked for again");
    }
    schema.good(&["db", "check"]);
}

#[test]
fn ten_programs_that_migrate_at_once_all_succeed() {
    let schema = Schema::unmade();
    let started: Vec<Started> =
        (0..10).map(|_| Started::new(&mut schema.command(&["db", "migrate"]))).collect();
    let taken: usize = started.into_iter().map(|program| program.end().good_rows().len()).sum();
    assert_eq!(taken, usize::try_from(older()).unwrap(), "each step once");
    schema.good(&["db", "status"]);
}
