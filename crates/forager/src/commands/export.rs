//! `forager export`

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use forager_core::scope::Seed;
use forager_frontier::catalog::{Catalog, CollectionSpec, Kind};
use forager_frontier::host::{HostSettings, Learned};
use forager_frontier::verbs::{HostFilter, HostView, Tally};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::catalog::entries;
use super::history::{self, Owners};
use super::kept;
use super::queue::HOST_PAGE;
use crate::Outcome;
use crate::cli::ExportArgs;
use crate::input::MAX_LINE_BYTES;
use crate::names::in_camel_case;
use crate::output::Output;
use crate::progress;
use crate::runtime;
use crate::store::{self, Missing, Store};

/// What an export is written as.
pub(super) const VERSION: u32 = 1;

/// How many entries are read at a time, and how many seeds or hosts stand on one line.
const PAGE: usize = 1000;

/// How many bytes of seeds stand on one line: much less than an import reads of one.
const MOST_SEED_BYTES: usize = MAX_LINE_BYTES / 4;

/// The line that a collection begins with. One with many seeds or hosts has several, for a line has
/// a limit.
#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    /// The version of the format.
    pub(super) forager: u32,
    pub(super) collection: CollectionSpec,
    #[serde(default)]
    pub(super) profiles: Vec<Value>,
    #[serde(default)]
    pub(super) seeds: Vec<Seed>,
    #[serde(default)]
    pub(super) hosts: Vec<HostHeader>,
    #[serde(default)]
    pub(super) tally: Tally,
}

impl Header {
    fn empty(spec: &CollectionSpec) -> Self {
        let collection = spec.clone();
        Self {
            forager: VERSION,
            collection,
            profiles: Vec::new(),
            seeds: Vec::new(),
            hosts: Vec::new(),
            tally: Tally::default(),
        }
    }
}

/// What is set for a host, and what was learned of it.
#[derive(Serialize, Deserialize)]
pub(super) struct HostHeader {
    pub(super) host: String,
    #[serde(default)]
    pub(super) settings: HostSettings,
    #[serde(default)]
    pub(super) learned: Learned,
}

#[derive(Serialize)]
struct Exported {
    collection: String,
    entries: u64,
}

pub(super) fn run(args: &ExportArgs) -> anyhow::Result<Outcome> {
    let mut target = Target::open(args.file.as_deref())?;
    let mut output = Output::new(args.store.format(), &["collection", "entries"]);
    let exported = store::with(&args.store, Missing::Refuse, |store| {
        let catalog = store::ask(store.frontier.catalog())?;
        let collections = catalog.rows().collections.iter().map(|row| &row.spec);
        let is_wanted = |id: &str| args.collection.as_ref().is_none_or(|name| name == id);
        let wanted: Vec<_> = collections.filter(|spec| is_wanted(&spec.id)).collect();
        if let (Some(name), []) = (&args.collection, &*wanted) {
            bail!("there is no collection {name:?}");
        }
        history::number(store)?;
        let stats = store::ask(store.frontier.stats(args.collection.as_deref(), store.now()))?;
        if args.file.is_some() {
            progress::start_counting(stats.iter().map(entries).sum());
        }
        let (mut owners, mut exported) = (Owners::default(), Vec::new());
        for spec in wanted {
            let told = headers(store, &catalog, spec, &mut target)?;
            owners.add(&spec.id);
            let entries = images(store, spec, told, &mut owners, &mut target)?;
            exported.push(Exported { collection: spec.id.clone(), entries });
        }
        owners.write(store, |written| match written {
            history::Written::Line(line) => target.line(line),
            history::Written::Evidence(of) => kept::write_all(store, "", &[of], |line| target.line(line)),
        })?;
        Ok(exported)
    })?;
    target.finish()?;
    if args.file.is_some() {
        exported.iter().try_for_each(|collection| output.row(collection))?;
    }
    progress::finish();
    output.flush()?;
    Ok(Outcome::Complete)
}

/// Writes what a collection begins with.
fn headers(
    store: &Store,
    catalog: &Catalog,
    spec: &CollectionSpec,
    target: &mut Target,
) -> anyhow::Result<HashSet<String>> {
    let own: Vec<_> =
        catalog.rows().profiles.iter().filter(|profile| profile.collection == spec.id).collect();
    let profile = |profile| Ok(in_camel_case(serde_json::to_value(profile)?));
    let profiles: anyhow::Result<Vec<Value>> = own.iter().map(profile).collect();
    let is_own = |name: &str| own.iter().any(|profile| profile.id == name);
    let seeds = seeds(catalog, is_own);
    let told = seeds.iter().map(|seed| seed.url.clone()).collect();
    let (mut seeds, mut hosts) = (seeds.into_iter().peekable(), hosts(store, &spec.id)?.into_iter());
    let tally = store::ask(store.frontier.stats(Some(&spec.id), store.now()))?.pop().map(|stats| stats.tally);
    let mut header = Header { profiles: profiles?, tally: tally.unwrap_or_default(), ..Header::empty(spec) };
    loop {
        header.seeds = some_of(&mut seeds);
        header.hosts = hosts.by_ref().take(PAGE).collect();
        target.line(&header)?;
        if seeds.len() == 0 && hosts.len() == 0 {
            return Ok(told);
        }
        header.profiles.clear();
        header.tally = Tally::default();
    }
}

/// The next seeds, as many as fit on a line.
fn some_of(seeds: &mut Peekable<impl Iterator<Item = Seed>>) -> Vec<Seed> {
    let (mut some, mut bytes) = (Vec::new(), 0);
    while let Some(seed) = seeds.next_if(|_| some.len() < PAGE && bytes < MOST_SEED_BYTES) {
        bytes += seed.url.len() + seed.profiles.iter().map(String::len).sum::<usize>();
        some.push(seed);
    }
    some
}

/// The seeds of a collection, each with its profiles there; the others come with theirs.
fn seeds(catalog: &Catalog, is_own: impl Fn(&str) -> bool) -> Vec<Seed> {
    let live = catalog.rows().seeds.iter().filter(|row| !row.is_gone);
    let seed = |seed: &Seed| {
        let profiles: Vec<String> = seed.profiles.iter().filter(|name| is_own(name)).cloned().collect();
        (!profiles.is_empty()).then(|| Seed { profiles, ..seed.clone() })
    };
    live.filter_map(|row| seed(&row.seed)).collect()
}

/// The hosts of a collection of which something is set or known.
fn hosts(store: &Store, collection: &str) -> anyhow::Result<Vec<HostHeader>> {
    let mut filter =
        HostFilter { collection: Some(collection.to_owned()), limit: HOST_PAGE, ..HostFilter::default() };
    let (mut hosts, now) = (Vec::new(), store.now());
    loop {
        let page = store::ask(store.frontier.hosts(&filter, now))?;
        filter.skip += page.len();
        let is_last = page.len() < HOST_PAGE;
        let is_any =
            |host: &HostView| host.settings != HostSettings::default() || host.learned != Learned::default();
        let header = |view: HostView| {
            let HostView { host, settings, learned, .. } = view;
            HostHeader { host, settings, learned }
        };
        hosts.extend(page.into_iter().filter(is_any).map(header));
        if is_last {
            return Ok(hosts);
        }
    }
}

/// Writes the entries of a collection, after some of them what is kept beside them, and before some of them those of their seeds that are not `told` yet: these were
/// removed, or are harvested elsewhere only, and the entries still are their own.
fn images(
    store: &Store,
    spec: &CollectionSpec,
    mut told: HashSet<String>,
    owners: &mut Owners,
    target: &mut Target,
) -> anyhow::Result<u64> {
    let (mut after, mut count, mut kept) = (None, 0, kept::Written::default());
    let now = store.now();
    loop {
        let page = store::ask(store.frontier.export(&spec.id, after, PAGE, now))?;
        let seeds = page.iter().filter_map(|image| image.seed.as_ref());
        let untold: Vec<Seed> = seeds
            .filter(|url| told.insert((*url).clone()))
            .map(|url| Seed { url: url.clone(), profiles: Vec::new(), enabled: true })
            .collect();
        let mut untold = untold.into_iter().peekable();
        while untold.peek().is_some() {
            target.line(&Header { seeds: some_of(&mut untold), ..Header::empty(spec) })?;
        }
        page.iter().try_for_each(|image| target.line(image))?;
        if spec.kind != Kind::Plain {
            kept::write_all(store, &spec.id, &kept.of_entries(&page), |line| target.line(line))?;
        }
        owners.add_hosts(&page);
        count += page.len() as u64;
        progress::advance(page.len() as u64);
        match page.last() {
            Some(last) if page.len() == PAGE => after = Some(last.id),
            _ => return Ok(count),
        }
    }
}

/// Standard output, or a file that is put in place when it is complete.
struct Target {
    writer: BufWriter<Box<dyn Write>>,
    file: Option<(File, PathBuf, PathBuf)>,
}

impl Target {
    fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else {
            return Ok(Self { writer: BufWriter::new(Box::new(io::stdout())), file: None });
        };
        let failed = |path: &Path| format!("cannot write {}", path.display());
        let known = std::fs::metadata(path).ok();
        if known.as_ref().is_some_and(|known| !known.is_file()) {
            // A pipe or device is written to, and not put in place of.
            let file = File::options().write(true).open(path).with_context(|| failed(path))?;
            return Ok(Self { writer: BufWriter::new(Box::new(file)), file: None });
        }
        // Where a link leads is what is meant.
        let path = if known.is_some() { path.canonicalize()? } else { path.to_owned() };
        let mut part = path.clone().into_os_string();
        part.push(format!(".{}.part", std::process::id()));
        let part = PathBuf::from(part);
        remove_when_stopped(part.clone())?;
        let file = File::create_new(&part).with_context(|| failed(&part))?;
        let writer = BufWriter::new(Box::new(file.try_clone()?) as Box<dyn Write>);
        Ok(Self { writer, file: Some((file, part, path)) })
    }

    fn line(&mut self, line: &impl Serialize) -> anyhow::Result<()> {
        serde_json::to_writer(&mut self.writer, line).map_err(io::Error::from).context(CANNOT_WRITE)?;
        self.writer.write_all(b"\n").context(CANNOT_WRITE)
    }

    fn finish(mut self) -> anyhow::Result<()> {
        self.writer.flush().context(CANNOT_WRITE)?;
        let Some((file, part, path)) = &self.file else { return Ok(()) };
        file.sync_all().and_then(|()| std::fs::rename(part, path)).context(CANNOT_WRITE)?;
        self.file = None;
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some((_, part, _)) = &self.file {
            // It was never completed. What cannot be removed is left for its owner to see.
            let _ = std::fs::remove_file(part);
        }
    }
}

/// Has Ctrl-C and SIGTERM remove a file that is not complete before they end the process.
fn remove_when_stopped(part: PathBuf) -> anyhow::Result<()> {
    let listening = async { Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)) };
    let listening: io::Result<_> = runtime::wait(listening)?;
    let (mut interrupt, mut terminate) = listening.context("cannot wait for Ctrl-C")?;
    runtime::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        progress::finish();
        // One that has just been completed has its own name already.
        let _ = std::fs::remove_file(part);
        std::process::exit(i32::from(Outcome::Interrupted.status()));
    })?;
    Ok(())
}

const CANNOT_WRITE: &str = "cannot write the export";
