//! A queue with troubles, when it is told to have them. It stalls, as one in a folder does whose disk is slow: its calls keep
//! the threads that they are made on. And others remove collections just before something is put there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use forager_core::time::Interval;
use forager_frontier::catalog::{Catalog, Change};
use forager_frontier::entry::{EntryId, Token};
use forager_frontier::explain::Explanation;
use forager_frontier::host::Learned;
use forager_frontier::verbs::*;
use forager_frontier::{Frontier, Memory, Result, Settings};
use jiff::Timestamp;
use tokio::sync::watch;

pub(crate) struct Troubled {
    queue: Memory,
    is_stalled: AtomicBool,
    /// Before how many puts their collections go.
    removals: AtomicU32,
}

impl Troubled {
    pub(crate) fn new() -> Self {
        let queue = Memory::new(Settings::default()).unwrap();
        Self { queue, is_stalled: AtomicBool::new(false), removals: AtomicU32::new(0) }
    }

    pub(crate) fn stall(&self, is_stalled: bool) {
        self.is_stalled.store(is_stalled, Ordering::SeqCst);
    }

    pub(crate) fn remove_before(&self, puts: u32) {
        self.removals.store(puts, Ordering::SeqCst);
    }

    fn wait(&self) {
        while self.is_stalled.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Every call waits, and is handed on.
macro_rules! handing_on {
    ($($name:ident($($what:ident: $form:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Frontier for Troubled {
            $(async fn $name(&self, $($what: $form),*) -> Result<$answer> {
                self.wait();
                self.queue.$name($($what),*).await
            })*

            async fn put(&self, puts: &[Put], now: Timestamp) -> Result<Vec<Discovery>> {
                self.wait();
                let one_less = |left: u32| left.checked_sub(1);
                if self.removals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
                    for put in puts {
                        self.queue.remove(&put.collection, None, now).await?;
                    }
                }
                self.queue.put(puts, now).await
            }

            fn arrivals(&self) -> watch::Receiver<u64> {
                self.queue.arrivals()
            }
        }
    };
}

handing_on! {
    configure(changes: &[Change], now: Timestamp) -> ();
    catalog() -> Arc<Catalog>;
    start(targets: &[Target], now: Timestamp) -> Vec<Started>;
    discover(pages: &[Page], now: Timestamp) -> Vec<Discovery>;
    lease(request: &LeaseRequest, now: Timestamp) -> LeaseAnswer;
    complete(reports: &[Report], now: Timestamp) -> Vec<Completed>;
    extend(tokens: &[Token], hold: Interval, now: Timestamp) -> Vec<LeaseChange>;
    release(tokens: &[Token], now: Timestamp) -> Vec<LeaseChange>;
    reclaim(collection: &str, now: Timestamp) -> u64;
    note(notes: &[Note], now: Timestamp) -> ();
    noted(keys: &[String]) -> Vec<Option<Vec<u8>>>;
    fetches(from: u64, limit: usize) -> Vec<FetchRow>;
    visit(host: &str, hold: Interval, now: Timestamp) -> Visit;
    leave(tokens: &[(String, Token)], now: Timestamp) -> ();
    set_hosts(changes: &[HostChange], now: Timestamp) -> Vec<Option<HostView>>;
    remove(collection: &str, key: Option<&str>, now: Timestamp) -> u64;
    purge(purge: &Purge, now: Timestamp) -> Purged;
    start_job(job: &NewJob, now: Timestamp) -> JobView;
    steer_job(id: &str, steer: Steer, now: Timestamp) -> JobView;
    jobs(now: Timestamp) -> Vec<JobView>;
    entry(collection: &str, key: Option<&str>, url: &str, now: Timestamp) -> Option<EntryView>;
    list(filter: &ListFilter, now: Timestamp) -> ListPage;
    hosts(filter: &HostFilter, now: Timestamp) -> Vec<HostView>;
    stats(collection: Option<&str>, now: Timestamp) -> Vec<Stats>;
    plan(filter: &PlanFilter, now: Timestamp) -> Vec<Planned>;
    events(from: u64, limit: usize) -> Vec<EventRow>;
    explain(collection: &str, key: Option<&str>, url: &str, now: Timestamp) -> Explanation;
    export(collection: &str, after: Option<EntryId>, limit: usize, now: Timestamp) -> Vec<Image>;
    learn(collection: &str, tally: Tally, hosts: &[(String, Learned)], now: Timestamp) -> ();
    import(collection: &str, images: &[Image], now: Timestamp) -> Vec<bool>;
    append(rows: &[Logged], now: Timestamp) -> ();
}
