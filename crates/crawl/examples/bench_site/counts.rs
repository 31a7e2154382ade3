//! What was asked of the site.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use serde_json::{Value, json};

/// Requests, counted as they come.
pub(crate) struct Counts {
    /// Of each page, host by host.
    pages: Vec<AtomicU32>,
    pages_a_host: usize,
    /// Of the robots.txt of each host.
    robots: Vec<AtomicU32>,
    /// Of what is not there.
    missing: AtomicU32,
    /// Connections of each host: open now, and the most that were.
    connections: Vec<(AtomicU32, AtomicU32)>,
}

impl Counts {
    pub(crate) fn new(hosts: usize, pages: usize) -> Self {
        let zeros = |count: usize| std::iter::repeat_with(AtomicU32::default).take(count).collect();
        Self {
            pages: zeros(hosts * pages),
            pages_a_host: pages,
            robots: zeros(hosts),
            missing: AtomicU32::default(),
            connections: std::iter::repeat_with(Default::default).take(hosts).collect(),
        }
    }

    pub(crate) fn page(&self, host: usize, page: usize) {
        self.pages[host * self.pages_a_host + page].fetch_add(1, Relaxed);
    }

    pub(crate) fn robots(&self, host: usize) {
        self.robots[host].fetch_add(1, Relaxed);
    }

    pub(crate) fn missing(&self) {
        self.missing.fetch_add(1, Relaxed);
    }

    pub(crate) fn connected(&self, host: usize) {
        let (open, most) = &self.connections[host];
        most.fetch_max(open.fetch_add(1, Relaxed) + 1, Relaxed);
    }

    pub(crate) fn disconnected(&self, host: usize) {
        self.connections[host].0.fetch_sub(1, Relaxed);
    }

    /// Starts anew. Connections that are open stay counted.
    pub(crate) fn reset(&self) {
        self.pages.iter().chain(&self.robots).for_each(|count| count.store(0, Relaxed));
        self.missing.store(0, Relaxed);
        self.connections.iter().for_each(|(open, most)| most.store(open.load(Relaxed), Relaxed));
    }

    /// The counts as a report.
    pub(crate) fn to_json(&self) -> Value {
        let sum =
            |counts: &[AtomicU32]| counts.iter().map(|count| u64::from(count.load(Relaxed))).sum::<u64>();
        let pages_with = |least: u32| self.pages.iter().filter(|count| count.load(Relaxed) >= least).count();
        json!({
            "requests": sum(&self.pages),
            "pages": pages_with(1),
            "twice": pages_with(2),
            "never": self.pages.len() - pages_with(1),
            "robots": sum(&self.robots),
            "hostsWithoutRobots": self.robots.iter().filter(|count| count.load(Relaxed) == 0).count(),
            "missing": self.missing.load(Relaxed),
            "mostConnections": self.connections.iter().map(|(_, most)| most.load(Relaxed)).max(),
        })
    }
}
