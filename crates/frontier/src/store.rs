//! Where the queue is kept.

mod embedded;
mod memory;
mod postgres;

use std::sync::Arc;

use async_trait::async_trait;
use forager_core::time::Interval;
use jiff::Timestamp;
use tokio::sync::watch;

pub use embedded::{Checked, Durability, Embedded, Finding, Options, WriteBuffers};
pub use memory::Memory;
pub use postgres::{Applied, Migration, Postgres, PostgresOptions, PostgresSchema};

use crate::catalog::{Catalog, Change};
use crate::engine::{self, Tx};
use crate::entry::{EntryId, Token};
use crate::error::Result;
use crate::explain::Explanation;
use crate::host::Learned;
use crate::moment::Moment;
use crate::verbs::{
    Completed, Discovery, EntryView, EventRow, FetchRow, Frontier, HostChange, HostFilter, HostView, Image,
    JobView, LeaseAnswer, LeaseChange, LeaseRequest, ListFilter, ListPage, Logged, NewJob, Note, Page,
    PlanFilter, Planned, Purge, Purged, Put, Report, Started, Stats, Steer, Tally, Target, Visit,
};

/// A store: it runs a function of the engine as one transaction.
pub(crate) trait Store: Send + Sync {
    /// What the engine sees.
    type Tx: Tx;

    /// Runs `call` as if it were alone, and makes what it changed durable before it returns. The call is told the
    /// time that counts, by [`Moment::advanced`]. A store that has far to go for what the call looks at may run it
    /// more than once; only what the last run changed counts.
    fn transact<R: Send>(
        &self,
        now: Option<Moment>,
        call: impl Fn(&mut Self::Tx, Moment) -> Result<R> + Send + Sync,
    ) -> impl Future<Output = Result<R>> + Send;

    /// Counts up whenever there may be something new to lease.
    fn bell(&self) -> watch::Receiver<u64>;
}

#[async_trait]
impl<S: Store> Frontier for S {
    async fn configure(&self, changes: &[Change], now: Timestamp) -> Result<()> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::configure(tx, changes, now)).await
    }

    async fn catalog(&self) -> Result<Arc<Catalog>> {
        self.transact(None, |tx, _| Ok(tx.catalog().clone())).await
    }

    async fn start(&self, targets: &[Target], now: Timestamp) -> Result<Vec<Started>> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::start(tx, targets, now)).await
    }

    async fn discover(&self, pages: &[Page], now: Timestamp) -> Result<Vec<Discovery>> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::discover(tx, pages, now)).await
    }

    async fn put(&self, puts: &[Put], now: Timestamp) -> Result<Vec<Discovery>> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::put(tx, puts, now)).await
    }

    async fn lease(&self, request: &LeaseRequest, now: Timestamp) -> Result<LeaseAnswer> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::lease(tx, request, now)).await
    }

    async fn complete(&self, reports: &[Report], now: Timestamp) -> Result<Vec<Completed>> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::complete(tx, reports, now)).await
    }

    async fn extend(&self, tokens: &[Token], hold: Interval, now: Timestamp) -> Result<Vec<LeaseChange>> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::extend(tx, tokens, hold, now)).await
    }

    async fn release(&self, tokens: &[Token], now: Timestamp) -> Result<Vec<LeaseChange>> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::release(tx, tokens, now)).await
    }

    async fn reclaim(&self, collection: &str, now: Timestamp) -> Result<u64> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::reclaim(tx, collection, now)).await
    }

    async fn note(&self, notes: &[Note], now: Timestamp) -> Result<()> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::note(tx, notes, now)).await
    }

    async fn noted(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        self.transact(None, |tx, _| engine::noted(tx, keys)).await
    }

    async fn fetches(&self, from: u64, limit: usize) -> Result<Vec<FetchRow>> {
        self.transact(None, |tx, _| tx.fetches(from, limit)).await
    }

    async fn visit(&self, host: &str, hold: Interval, now: Timestamp) -> Result<Visit> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::visit(tx, host, hold, now)).await
    }

    async fn leave(&self, tokens: &[(String, Token)], now: Timestamp) -> Result<()> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::leave(tx, tokens, now)).await
    }

    async fn set_hosts(&self, changes: &[HostChange], now: Timestamp) -> Result<Vec<Option<HostView>>> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::set_hosts(tx, changes, now)).await
    }

    async fn remove(&self, collection: &str, key: Option<&str>, now: Timestamp) -> Result<u64> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::remove(tx, collection, key, now)).await
    }

    async fn purge(&self, purge: &Purge, now: Timestamp) -> Result<Purged> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::purge(tx, purge, now)).await
    }

    async fn start_job(&self, job: &NewJob, now: Timestamp) -> Result<JobView> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::start_job(tx, job, now)).await
    }

    async fn steer_job(&self, id: &str, steer: Steer, now: Timestamp) -> Result<JobView> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::steer_job(tx, id, steer, now)).await
    }

    async fn jobs(&self, now: Timestamp) -> Result<Vec<JobView>> {
        self.transact(Some(Moment::of(now)), engine::jobs).await
    }

    async fn entry(
        &self,
        collection: &str,
        key: Option<&str>,
        url: &str,
        now: Timestamp,
    ) -> Result<Option<EntryView>> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::entry(tx, collection, key, url, now)).await
    }

    async fn list(&self, filter: &ListFilter, now: Timestamp) -> Result<ListPage> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::list(tx, filter, now)).await
    }

    async fn hosts(&self, filter: &HostFilter, now: Timestamp) -> Result<Vec<HostView>> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::hosts(tx, filter, now)).await
    }

    async fn stats(&self, collection: Option<&str>, now: Timestamp) -> Result<Vec<Stats>> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::stats(tx, collection, now)).await
    }

    async fn plan(&self, filter: &PlanFilter, now: Timestamp) -> Result<Vec<Planned>> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::plan(tx, filter, now)).await
    }

    async fn events(&self, from: u64, limit: usize) -> Result<Vec<EventRow>> {
        self.transact(None, |tx, _| tx.events(from, limit)).await
    }

    async fn explain(
        &self,
        collection: &str,
        key: Option<&str>,
        url: &str,
        now: Timestamp,
    ) -> Result<Explanation> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::explain(tx, collection, key, url, now)).await
    }

    async fn export(
        &self,
        collection: &str,
        after: Option<EntryId>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<Image>> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::export(tx, collection, after, limit, now))
            .await
    }

    async fn learn(
        &self,
        collection: &str,
        tally: Tally,
        hosts: &[(String, Learned)],
        now: Timestamp,
    ) -> Result<()> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::learn(tx, collection, tally, hosts, now)).await
    }

    async fn import(&self, collection: &str, images: &[Image], now: Timestamp) -> Result<Vec<bool>> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::import(tx, collection, images, now)).await
    }

    async fn append(&self, rows: &[Logged], now: Timestamp) -> Result<()> {
        self.transact(Some(Moment::of(now)), |tx, now| engine::append(tx, rows, now)).await
    }

    fn arrivals(&self) -> watch::Receiver<u64> {
        self.bell()
    }
}
