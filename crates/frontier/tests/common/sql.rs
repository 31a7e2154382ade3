//! A store in a database, and a person who writes SQL beside it.

use forager_core::order::Order;
use forager_core::scope::Profile;
use forager_core::scope::extent::Kind;
use forager_frontier::catalog::Limits;
use forager_frontier::verbs::{Completed, JobView, LeaseRequest, Leased, Link, NewJob, Page, Report};
use forager_frontier::{Frontier as _, Postgres, Settings};
use jiff::{SignedDuration, Timestamp};
use tokio_postgres::error::DbError;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row};

use super::postgres::{InSchema, apart, server};

/// The site that the tests crawl.
pub const HOME: &str = "https://acme.example/";

/// A store, and a connection whose search path is its schema.
pub struct Beside {
    pub store: Postgres,
    pub sql: Client,
    pub now: Timestamp,
    // Last, so that it goes when nobody uses it any more.
    pub schema: InSchema,
}

async fn connect(schema: &InSchema) -> Client {
    // Apart, so that it ends with a test that fails in the middle of a transaction.
    let sql = apart(async {
        let (sql, connection) = tokio_postgres::connect(&server(), NoTls).await.unwrap();
        tokio::spawn(connection);
        sql
    });
    sql.batch_execute(&format!("SET search_path TO {}", schema.options.schema)).await.unwrap();
    sql
}

impl Beside {
    pub async fn new() -> Self {
        let schema = InSchema::new();
        let store = schema.connect(Settings::default());
        let sql = connect(&schema).await;
        // The clock of the database, which its functions go by.
        let millis = "SELECT (extract(epoch FROM now()) * 1000)::bigint";
        let now = Timestamp::from_millisecond(sql.query_one(millis, &[]).await.unwrap().get(0)).unwrap();
        Self { store, sql, now, schema }
    }

    /// Another person who writes SQL.
    pub async fn another(&self) -> Client {
        connect(&self.schema).await
    }

    /// With a job at the homepage.
    pub async fn with_job(order: Order) -> Self {
        let beside = Self::new().await;
        beside.start("acme", HOME, order).await;
        beside
    }

    pub async fn start(&self, id: &str, url: &str, order: Order) -> JobView {
        self.start_within(id, url, order, Limits::default()).await
    }

    /// A job that ends at the latest as its limits say.
    pub async fn start_within(&self, id: &str, url: &str, order: Order, limits: Limits) -> JobView {
        let profile = Profile { order, scope: Kind::Any, ..Profile::new(id, id) };
        let job = NewJob { id: id.into(), urls: vec![url.into()], profile, limits };
        self.store.start_job(&job, self.now).await.unwrap()
    }

    /// A job that starts at several pages, and stays on their domains.
    pub async fn start_at(&self, id: &str, urls: &[&str]) -> JobView {
        let urls = urls.iter().map(|&url| url.to_owned()).collect();
        let job = NewJob { id: id.into(), urls, profile: Profile::new(id, id), limits: Limits::default() };
        self.store.start_job(&job, self.now).await.unwrap()
    }

    /// What is handed out after a while, if anything.
    pub async fn lease(&mut self) -> Option<Leased> {
        self.now += SignedDuration::from_secs(10);
        self.store.lease(&LeaseRequest::default(), self.now).await.unwrap().leased.pop()
    }

    /// Has the next page fetched: with this status, and these links on it.
    pub async fn fetch(&mut self, status: u16, links: Vec<Link>) -> (Leased, Completed) {
        let leased = self.lease().await.expect("something is handed out");
        let completed = self.report(&leased, status, links).await;
        (leased, completed)
    }

    /// Says what came of a fetch.
    pub async fn report(&self, leased: &Leased, status: u16, links: Vec<Link>) -> Completed {
        let report = Report { token: leased.token.0, status: Some(status), links, ..Report::default() };
        self.store.complete(&[report], self.now).await.unwrap().remove(0)
    }

    pub async fn rows(&self, statement: &str, params: &[&(dyn ToSql + Sync)]) -> Vec<Row> {
        self.sql.query(statement, params).await.unwrap_or_else(|cause| panic!("{statement}: {cause:?}"))
    }

    /// The rows of a question as text: what `concat_ws` makes of the columns.
    pub async fn told(&self, columns: &str, rest: &str) -> Vec<String> {
        let rows = self.rows(&format!("SELECT concat_ws(' ', {columns}) {rest}"), &[]).await;
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Adds a page to a job as SQL users do; returns the number of its task.
    pub async fn add(&self, job: &str, host: &str, path: &str, source: (&str, Option<&str>)) -> i32 {
        self.offer(job, host, path, source).await.expect("the page is added")
    }

    /// The same, with a page that may be passed over.
    pub async fn offer(
        &self,
        job: &str,
        host: &str,
        path: &str,
        source: (&str, Option<&str>),
    ) -> Option<i32> {
        const DOMAIN: &str = "INSERT INTO domains (name) VALUES ($1) RETURNING id";
        const PAGE: &str = "INSERT INTO pages (domain_id, path) VALUES ($1, $2) RETURNING id";
        const TASK: &str = "INSERT INTO tasks (job_id, page_id, status, source_type, source_url) \
            VALUES ($1, $2, 'pending', $3, $4) RETURNING id";
        let domain: i32 = self.rows(DOMAIN, &[&host]).await[0].get(0);
        let page: i32 = self.rows(PAGE, &[&domain, &path]).await[0].get(0);
        self.rows(TASK, &[&job, &page, &source.0, &source.1]).await.first().map(|row| row.get(0))
    }

    /// Runs a statement that must fail; returns what the database says.
    pub async fn refused(&self, statement: &str) -> String {
        self.refusal(statement).await.message().to_owned()
    }

    /// What to do about a statement that is refused.
    pub async fn hint(&self, statement: &str) -> String {
        self.refusal(statement).await.hint().unwrap_or_default().to_owned()
    }

    async fn refusal(&self, statement: &str) -> DbError {
        match self.sql.batch_execute(statement).await {
            Ok(()) => panic!("{statement} is accepted"),
            Err(cause) => cause.as_db_error().expect("the database says it").clone(),
        }
    }

    /// Has Forager find a link on the homepage of a job.
    pub async fn find(&self, job: &str, url: &str) {
        let (collection, source) = (job.to_owned(), Some(HOME.to_owned()));
        let page = Page { collection, source, links: vec![link(url)], ..Page::default() };
        self.store.discover(&[page], self.now).await.unwrap();
    }

    /// What is counted and worked out is what a scan over everything finds.
    pub async fn is_sound(&self) {
        const WRONG: &str = "SELECT q.id FROM queues q LEFT JOIN LATERAL (SELECT \
                count(*) FILTER (WHERE e.state = 0) AS queued, count(*) FILTER (WHERE e.state = 1) AS leased, \
                count(*) FILTER (WHERE e.state = 2) AS done, count(*) FILTER (WHERE e.state = 3) AS failed \
                FROM entries e WHERE e.queue = q.id) n ON true \
            WHERE (q.queued, q.leased, q.done, q.failed) IS DISTINCT FROM (n.queued, n.leased, n.done, n.failed)";
        const MISCOUNTED: &str = "SELECT 1 FROM (SELECT q.collection, sum(q.queued) AS queued, sum(q.leased) AS leased, \
                sum(q.done) AS done, sum(q.failed) AS failed FROM queues q GROUP BY 1) q \
            FULL JOIN (SELECT c.collection, sum(c.queued) AS queued, sum(c.leased) AS leased, sum(c.done) AS done, \
                sum(c.failed) AS failed FROM counters c GROUP BY 1) c USING (collection) \
            WHERE (q.queued, q.leased, q.done, q.failed) IS DISTINCT FROM (c.queued, c.leased, c.done, c.failed)";
        assert!(self.rows(WRONG, &[]).await.is_empty(), "queues count something else");
        assert!(self.rows(MISCOUNTED, &[]).await.is_empty(), "counters count something else");
    }
}

/// A link.
pub fn link(url: &str) -> Link {
    Link { url: url.into(), ..Link::default() }
}
