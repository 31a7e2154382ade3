//! Figures for Prometheus: under the names that dashboards of URLFrontier know, and under our own.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::gathered::Gathered;
use crate::proto::ack_message::Status;

/// One name and one value, both of a few.
type Label = [(&'static str, &'static str); 1];

/// The end of what Prometheus reads.
const END: &str = "# EOF\n";

/// How many there were and how long they took together, as dashboards know it. The library has no such kind.
#[derive(Debug, Default)]
struct Summary {
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Summary {
    fn observe(&self, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    fn text(&self, name: &str, help: &str) -> String {
        let seconds = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
        let count = self.count.load(Ordering::Relaxed);
        format!(
            "# HELP {name} {help}.\n# TYPE {name} summary\n{name}_count {count}\n{name}_sum {seconds:?}\n"
        )
    }
}

/// What is counted.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    get_calls: Counter,
    got: Counter,
    get_latency: Summary,
    get_latencies: Histogram,
    put_calls: Counter,
    batch_calls: Counter,
    put: Counter,
    by_kind: Family<Label, Counter>,
    ignored: Counter,
    completed: Counter,
    by_status: Family<Label, Counter>,
    calls: Family<Label, Counter>,
    errors: Counter,
    pub(crate) connections: Gauge,
    /// Whether calls are answered.
    pub(crate) is_ready: AtomicBool,
}

impl Default for Metrics {
    fn default() -> Self {
        // From a tenth of a millisecond to some seconds.
        let get_latencies = Histogram::new(exponential_buckets(0.0001, 4.0, 9));
        let mut metrics = Self {
            registry: Registry::default(),
            get_calls: Counter::default(),
            got: Counter::default(),
            get_latency: Summary::default(),
            get_latencies,
            put_calls: Counter::default(),
            batch_calls: Counter::default(),
            put: Counter::default(),
            by_kind: Family::default(),
            ignored: Counter::default(),
            completed: Counter::default(),
            by_status: Family::default(),
            calls: Family::default(),
            errors: Counter::default(),
            connections: Gauge::default(),
            is_ready: AtomicBool::new(false),
        };
        metrics.register_theirs();
        metrics.register_ours();
        metrics
    }
}

impl Metrics {
    /// The names of the reference, of which dashboards exist.
    fn register_theirs(&mut self) {
        let all = &mut self.registry;
        all.register("frontier_getURLs_calls", "Calls of GetURLs", self.get_calls.clone());
        all.register("frontier_getURLs", "URLs that were handed out", self.got.clone());
        all.register("frontier_putURLs_calls", "Streams of PutURLs", self.put_calls.clone());
        all.register("frontier_putDiscovered_calls", "Streams of PutDiscovered", self.batch_calls.clone());
        all.register("frontier_putURLs", "URLs that were put", self.put.clone());
        let by_kind = self.by_kind.clone();
        all.register("frontier_putURLs_discovered", "URLs that were put, by kind", by_kind);
        all.register("frontier_putURLs_ignored", "URLs that were put and skipped", self.ignored.clone());
        all.register(
            "frontier_putURLs_completed",
            "URLs that are never fetched again",
            self.completed.clone(),
        );
        all.register(
            "frontier_putURLs_forward_notready",
            "URLs for other nodes that were not ready: always 0, for there are none",
            Counter::<u64>::default(),
        );
    }

    fn register_ours(&mut self) {
        let ours = self.registry.sub_registry_with_prefix("forager_urlfrontier");
        ours.register("calls", "Calls, by name", self.calls.clone());
        ours.register("put_items", "URLs that were put, by status", self.by_status.clone());
        let latencies = self.get_latencies.clone();
        ours.register("get_latency_seconds", "Time until GetURLs has its answer", latencies);
        ours.register("errors", "Calls that the queue could not answer", self.errors.clone());
        ours.register("connections", "Connections that are open", self.connections.clone());
    }

    /// All figures, as Prometheus reads them.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a text cannot fail.
        let _ = text::encode(&mut text, &self.registry);
        text.truncate(text.trim_end_matches(END).len());
        let latency =
            self.get_latency.text("frontier_getURLs_latency_seconds", "Time until GetURLs has its answer");
        let _ = write!(text, "{latency}{END}");
        text
    }

    /// A call has come.
    pub(crate) fn called(&self, name: &'static str) {
        self.calls.get_or_create(&[("call", name)]).inc();
        match name {
            "GetURLs" => self.get_calls.inc(),
            "PutURLs" => self.put_calls.inc(),
            "PutDiscovered" => self.batch_calls.inc(),
            _ => 0,
        };
    }

    /// URLs were handed out.
    pub(crate) fn got(&self, urls: usize, took: Duration) {
        self.got.inc_by(urls as u64);
        self.get_latency.observe(took);
        self.get_latencies.observe(took.as_secs_f64());
    }

    /// Items were put.
    pub(crate) fn put(&self, gathered: &Gathered, statuses: &[Status]) {
        let count = |wanted| statuses.iter().filter(|status| **status == wanted).count() as u64;
        let (ok, skipped, failed) = (count(Status::Ok), count(Status::Skipped), count(Status::Fail));
        for (status, count) in [("ok", ok), ("skipped", skipped), ("fail", failed)] {
            self.by_status.get_or_create(&[("status", status)]).inc_by(count);
        }
        self.put.inc_by(statuses.len() as u64);
        self.ignored.inc_by(skipped);
        self.completed.inc_by(gathered.completed(statuses));
        let known = (statuses.len() as u64).saturating_sub(gathered.found);
        for (kind, count) in [("true", gathered.found), ("false", known)] {
            self.by_kind.get_or_create(&[("discovered", kind)]).inc_by(count);
        }
    }

    /// The queue could not answer.
    pub(crate) fn failed(&self) {
        self.errors.inc();
    }
}
