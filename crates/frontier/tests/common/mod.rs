//! What several test files need.

#![allow(dead_code, unreachable_pub, reason = "each file of tests needs a part of it")]

pub mod agree;
pub mod audit;
pub mod calls;
pub mod heard;
pub mod postgres;
pub mod shop;
pub mod sql;

use std::path::Path;
use std::sync::{Arc, Mutex};

use forager_frontier::conformance::Place;
use forager_frontier::{Durability, Embedded, Frontier, Options, Result, Settings};
use tempfile::TempDir;

/// A folder for one test, gone with it. In memory where that is possible: no test pulls the plug, and a
/// disk would spend most of the time of all of them on making files.
pub fn new_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// How tests open stores: with small caches, for they open many at once.
pub fn options(durability: Durability) -> Options {
    Options { durability, cache_bytes: 4 * 1024 * 1024, ..Options::default() }
}

/// Opens the store in a folder.
pub fn try_open(path: &Path, settings: Settings) -> Result<Embedded> {
    Embedded::open(path, settings, options(Durability::Process))
}

/// Opens the store in a folder, which must work.
pub fn open(path: &Path, settings: Settings) -> Embedded {
    try_open(path, settings).unwrap_or_else(|error| panic!("{} does not open: {error}", path.display()))
}

/// Everything in the store, in memory and on disk, is as it should be.
pub fn is_sound(store: &Embedded) {
    let findings = store.check().unwrap();
    assert!(findings.is_empty(), "not as it should be: {findings:#?}");
}

/// Ends a store as a process does that is asked to.
pub fn close(store: Embedded) {
    store.close().unwrap_or_else(|error| panic!("the store does not close: {error}"));
}

/// Runs a future to its end.
pub fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A folder with a store that is closed and opened again.
pub struct InFolder {
    folder: TempDir,
    store: Mutex<Option<Arc<Embedded>>>,
}

impl InFolder {
    pub fn new() -> Self {
        Self { folder: new_folder(), store: Mutex::new(None) }
    }
}

impl Place for InFolder {
    fn open(&self, settings: Settings) -> Arc<dyn Frontier> {
        let store = Arc::new(open(self.folder.path(), settings));
        *self.store.lock().unwrap() = Some(store.clone());
        store
    }

    fn close(&self, frontier: Arc<dyn Frontier>) {
        drop(frontier);
        let store = self.store.lock().unwrap().take().expect("the store is open");
        close(Arc::into_inner(store).expect("nobody holds the store any more"));
    }
}

/// A number from the environment, or what is small enough for every day.
pub fn setting(name: &str, everyday: usize) -> usize {
    let Ok(text) = std::env::var(name) else { return everyday };
    text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, which is not a number"))
}
