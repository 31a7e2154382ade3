//! `forager import`

mod changes;

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::mem;

use anyhow::bail;
use forager_frontier::Frontier;
use forager_frontier::catalog::{Change, Kind};
use forager_frontier::host::HostSettings;
use forager_frontier::verbs::{EventRow, FetchRow, HostChange, HostFilter, Image, Logged};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use self::changes::{Failure, changes};
use super::catalog::ChangeRow;
use super::export::{Header, HostHeader, VERSION};
use super::history;
use super::kept::{Kept, Waiting};
use super::queue::HOST_PAGE;
use crate::Outcome;
use crate::batch::{Batches, Told, for_each_batch};
use crate::cli::ImportArgs;
use crate::input::{Input, Line, Place};
use crate::output::Output;
use crate::record::{BadLine, parse, text};
use crate::store::{self, Lazy, Missing};
use crate::words::counted;

const BATCHES: Batches = Batches { size: 1000, eager: false };

/// A URL of a collection, as a number.
fn hash(collection: &str, url: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (collection, url).hash(&mut hasher);
    hasher.finish()
}

enum Item {
    /// What follows belongs elsewhere if this is not understood.
    Header(Place, Option<Box<Result<Header, BadLine>>>),
    Image(Box<Image>),
    /// What is kept beside entries; none when it was taken in.
    Kept(Option<Box<Kept>>),
    /// What happened, likewise.
    Happened(Option<Box<history::Line>>),
}

impl Item {
    fn is_entry(&self) -> bool {
        matches!(self, Self::Image(_))
    }
}

#[derive(Serialize)]
struct Imported {
    added: u64,
    present: u64,
    bad: u64,
}

pub(super) fn run(args: &ImportArgs) -> anyhow::Result<Outcome> {
    let input = Input::open(&args.files)?.with_progress();
    let mut output = Output::new(args.store.format(), &["change", "kind", "name"]);
    store::with_lazy(&args.store, Missing::Create, |lazy| {
        let mut import = Import::new(args.collection.as_deref());
        let is_alone = |item: &Item| !item.is_entry();
        let call = |items: &mut [Item], told: &mut Told<'_>| match items {
            [Item::Header(place, header)] => match header.take() {
                Some(header) => import.header(lazy, place, *header, told),
                None => Ok(()),
            },
            [Item::Kept(kept)] => match kept.take() {
                Some(kept) => import.keep(lazy, *kept, told),
                None => Ok(()),
            },
            [Item::Happened(line)] => match line.take() {
                Some(line) => import.happened(lazy, *line, told),
                None => Ok(()),
            },
            _ => import.take(lazy, items, told),
        };
        let mut summary = for_each_batch(input, &mut output, BATCHES, read, is_alone, call)?;
        summary.tell(&mut output, |told| {
            import.begin(lazy, told)?;
            import.find_sources(lazy)?;
            if import.kept.is_any() {
                import.kept.write(lazy.get()?)?;
            }
            if import.history.is_any() { import.history.write(lazy.get()?) } else { Ok(()) }
        })?;
        let imported = Imported { added: import.added, present: import.present, bad: summary.bad };
        tell(&imported, &mut output)?;
        Ok(summary.outcome())
    })
}

fn read(line: &Line<'_>) -> Result<Item, BadLine> {
    let header = || Item::Header(line.place(), Some(Box::new(read_header(line))));
    if text(line)?.starts_with("{\"forager\"") {
        return Ok(header());
    }
    if text(line)?.starts_with("{\"kept\"") {
        return Ok(Item::Kept(Some(Box::new(parse(line)?))));
    }
    if text(line)?.starts_with("{\"log") {
        return Ok(Item::Happened(Some(Box::new(parse(line)?))));
    }
    match parse(line) {
        Ok(image) => Ok(Item::Image(Box::new(image))),
        Err(problem) => {
            if parse::<AnyVersion>(line).is_ok() {
                Ok(header())
            } else {
                Err(problem)
            }
        }
    }
}

/// All that every version of a line about a collection has in common.
#[derive(Deserialize)]
struct AnyVersion {
    forager: u32,
}

fn read_header(line: &Line<'_>) -> Result<Header, BadLine> {
    let AnyVersion { forager } = parse(line)?;
    if forager > VERSION {
        return Err(BadLine::whole(format_args!(
            "written by a newer version of Forager (export format {forager}, this one knows {VERSION}); \
             import it with that version, or a later one"
        )));
    }
    parse(line)
}

fn tell(imported: &Imported, output: &mut Output) -> anyhow::Result<()> {
    output.flush()?;
    if output.is_for_people() {
        let Imported { added, present, bad } = imported;
        let (added, were) = (counted(*added, "entry", "entries"), if *present == 1 { "was" } else { "were" });
        let bad = counted(*bad, "line was", "lines were");
        output.text(&format!("{added} added, {present} {were} there already, {bad} bad"))?;
    } else {
        output.row(imported)?;
    }
    output.flush()
}

/// Where entries go.
enum Target {
    /// Nothing was said about a collection yet.
    Unknown,
    /// To the collection of this name.
    Collection(String),
    /// Nowhere: what was said of their collection, which has this name if it could be read, was refused.
    Refused(Option<String>),
}

/// An import under way.
struct Import<'a> {
    /// The name that the collection is to have here.
    wanted: Option<&'a str>,
    /// The name that the first collection has in the file.
    first: Option<String>,
    /// Lines about one collection that nothing was made of yet. All of them together are one change of the queue, for
    /// each change costs as much as all seeds there are.
    waiting: Vec<(Place, Header)>,
    target: Target,
    /// Whether anything was done.
    has_begun: bool,
    added: u64,
    present: u64,
    /// The URLs that have come, by their hashes.
    seen: HashSet<u64>,
    /// Entries whose source had not come when they did: several processes number what they find side by side.
    early: Vec<(String, Image)>,
    kept: Waiting,
    /// The name that each collection of the file has here; none if it was refused. What happened comes for all of them together.
    names: HashMap<String, Option<String>>,
    history: history::Waiting,
}

impl<'a> Import<'a> {
    fn new(wanted: Option<&'a str>) -> Self {
        let (waiting, target) = (Vec::new(), Target::Unknown);
        let (seen, early, kept) = (HashSet::new(), Vec::new(), Waiting::default());
        let (names, history) = (HashMap::new(), history::Waiting::default());
        Self {
            wanted,
            first: None,
            waiting,
            target,
            has_begun: false,
            added: 0,
            present: 0,
            seen,
            early,
            kept,
            names,
            history,
        }
    }

    /// Takes in a line about a collection.
    fn header(
        &mut self,
        lazy: &mut Lazy<'_>,
        place: &Place,
        header: Result<Header, BadLine>,
        told: &mut Told<'_>,
    ) -> anyhow::Result<()> {
        let header = match header {
            Ok(header) => header,
            Err(problem) => {
                self.begin(lazy, told)?;
                return self.refuse(None, place, &problem, told);
            }
        };
        let id = &header.collection.id;
        if matches!(&self.target, Target::Refused(Some(refused)) if refused == id) {
            told.pass_over(1);
            return Ok(());
        }
        if self.waiting.first().is_some_and(|(_, earlier)| earlier.collection.id != *id) {
            self.begin(lazy, told)?;
        }
        if self.wanted.is_some() && self.first.as_ref().is_some_and(|first| first != id) {
            let problem =
                format!("this is a second collection, {id:?}; leave --collection out to keep their names");
            return self.refuse(Some(id.clone()), place, &BadLine::whole(problem), told);
        }
        self.first.get_or_insert_with(|| id.clone());
        self.waiting.push((place.clone(), header));
        Ok(())
    }

    /// Makes what the lines that wait speak of, as far as it is not there.
    fn begin(&mut self, lazy: &mut Lazy<'_>, told: &mut Told<'_>) -> anyhow::Result<()> {
        let waiting = mem::take(&mut self.waiting);
        let Some((place, first)) = waiting.first() else { return Ok(()) };
        let from = &first.collection.id;
        let id = self.wanted.unwrap_or(from).to_owned();
        let rehearsed = lazy.rehearse(|memory, now| make(memory, &waiting, &id, now).map(drop));
        let made = rehearsed.and_then(|()| {
            let store = lazy.get()?;
            make(&*store.frontier, &waiting, &id, store.now())
        });
        let changes = match made {
            Ok(changes) => changes,
            Err(error) => match error.downcast::<Failure>() {
                Ok(Failure { place: own, problem }) => {
                    let place = own.as_ref().unwrap_or(place);
                    return self.refuse(Some(from.clone()), place, &problem, told);
                }
                Err(error) => return Err(error),
            },
        };
        self.has_begun = true;
        self.names.insert(from.clone(), Some(id.clone()));
        self.target = Target::Collection(id);
        changes.iter().try_for_each(|change| told.row(0, &ChangeRow::from(change)))
    }

    /// Refuses a collection. If nothing was done yet, that ends the import; if something was, all that belongs to
    /// this one is passed over.
    fn refuse(
        &mut self,
        id: Option<String>,
        place: &Place,
        problem: &BadLine,
        told: &mut Told<'_>,
    ) -> anyhow::Result<()> {
        if !self.has_begun {
            bail!("{place}: {problem}");
        }
        self.names.extend(id.clone().map(|id| (id, None)));
        self.target = Target::Refused(id);
        told.refuse(place, &BadLine::whole(format_args!("{problem}; what belongs to it is passed over")))
    }

    /// The collection that what comes now goes to; none if that was refused.
    fn goes_to(&mut self, lazy: &mut Lazy<'_>, told: &mut Told<'_>) -> anyhow::Result<Option<String>> {
        self.begin(lazy, told)?;
        Ok(match &self.target {
            Target::Collection(id) => Some(id.clone()),
            Target::Unknown => Some(self.without_header(lazy)?.to_owned()),
            Target::Refused(_) => None,
        })
    }

    /// Takes in what is kept beside entries.
    fn keep(&mut self, lazy: &mut Lazy<'_>, kept: Kept, told: &mut Told<'_>) -> anyhow::Result<()> {
        let goes_to = if kept.is_evidence() {
            self.expect_header(lazy, told)?;
            Some(String::new())
        } else {
            self.goes_to(lazy, told)?
        };
        let Some(id) = goes_to else {
            told.pass_over(1);
            return Ok(());
        };
        if let Err(problem) = self.kept.take(kept, &id) {
            return told.bad(0, &problem);
        }
        if self.kept.is_enough() { self.kept.write(lazy.get()?) } else { Ok(()) }
    }

    /// Takes in what happened.
    fn happened(
        &mut self,
        lazy: &mut Lazy<'_>,
        line: history::Line,
        told: &mut Told<'_>,
    ) -> anyhow::Result<()> {
        self.expect_header(lazy, told)?;
        let mut row = match self.history.read(line) {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(()),
            Err(problem) => return told.bad(0, &problem),
        };
        let (Logged::Fetch(FetchRow { collection, .. }) | Logged::Event(EventRow { collection, .. })) =
            &mut row;
        // What was fetched for no collection was fetched for a host of one.
        if !collection.is_empty() {
            let Some(id) = self.name_here(collection) else {
                told.pass_over(1);
                return Ok(());
            };
            *collection = id;
        }
        self.history.add(row, lazy.get()?)
    }

    /// Refuses what belongs to all collections of a file where nothing was said of any, and there is none to take it in.
    fn expect_header(&mut self, lazy: &mut Lazy<'_>, told: &mut Told<'_>) -> anyhow::Result<()> {
        self.begin(lazy, told)?;
        if let Target::Unknown = self.target {
            self.without_header(lazy)?;
        }
        Ok(())
    }

    /// The name that a collection of the file has here; none if it was refused, or never spoken of.
    fn name_here(&self, name: &str) -> Option<String> {
        match self.target {
            Target::Unknown => self.wanted.map(str::to_owned),
            _ => self.names.get(name).cloned().flatten(),
        }
    }

    /// Takes in entries.
    fn take(&mut self, lazy: &mut Lazy<'_>, items: &[Item], told: &mut Told<'_>) -> anyhow::Result<()> {
        let Some(id) = self.goes_to(lazy, told)? else {
            told.pass_over(items.len());
            return Ok(());
        };
        let images = items.iter().filter_map(|item| match item {
            Item::Image(image) => Some((**image).clone()),
            Item::Header(..) | Item::Kept(_) | Item::Happened(_) => None,
        });
        let images: Vec<Image> = images.collect();
        for image in &images {
            if image.source.as_ref().is_some_and(|source| !self.seen.contains(&hash(&id, source))) {
                self.early.push((id.clone(), image.clone()));
            }
            self.seen.insert(hash(&id, &image.url));
        }
        let store = lazy.get()?;
        let new = store::ask(store.frontier.import(&id, &images, store.now()))?;
        let added = new.iter().filter(|&&is_new| is_new).count() as u64;
        self.has_begun = true;
        self.added += added;
        self.present += new.len() as u64 - added;
        Ok(())
    }

    /// Takes in once more what came before its source, so that it is known where it was found.
    fn find_sources(&mut self, lazy: &mut Lazy<'_>) -> anyhow::Result<()> {
        let early = mem::take(&mut self.early);
        for run in early.chunk_by(|(one, _), (other, _)| one == other) {
            for images in run.chunks(BATCHES.size) {
                let id = &images[0].0;
                let images: Vec<Image> = images.iter().map(|(_, image)| image.clone()).collect();
                let store = lazy.get()?;
                store::ask(store.frontier.import(id, &images, store.now()))?;
            }
        }
        Ok(())
    }

    /// Where entries go that come without a line about their collection: to one that is there.
    fn without_header(&self, lazy: &mut Lazy<'_>) -> anyhow::Result<&str> {
        const BEGINS: &str = "an export begins with a line about its collection";
        let Some(id) = self.wanted else { bail!("{BEGINS}; name one with --collection") };
        let missing =
            || anyhow::anyhow!("{BEGINS}, and there is no collection {id:?} to take in what has none");
        lazy.rehearse(|_, _| Err(missing()))?;
        match store::ask(lazy.get()?.frontier.catalog())?.collection(id) {
            Some(_) => Ok(id),
            None => Err(missing()),
        }
    }
}

/// Makes what lines about one collection speak of, under the name `id`. An error of what they say is a [`Failure`].
fn make(
    frontier: &dyn Frontier,
    headers: &[(Place, Header)],
    id: &str,
    now: Timestamp,
) -> anyhow::Result<Vec<Change>> {
    let changes = changes(&*store::ask(frontier.catalog())?, headers, id)?;
    store::ask(frontier.configure(&changes, now)).map_err(|error| {
        if store::is_about_input(&error) { Failure::of_all(&error).into() } else { error }
    })?;
    let is_plain = headers.iter().any(|(_, header)| header.collection.kind == Kind::Plain);
    let hosts = headers.iter().flat_map(|(_, header)| &header.hosts);
    let hosts: Vec<&HostHeader> = hosts.collect();
    let learned: Vec<_> = hosts.iter().map(|header| (header.host.clone(), header.learned.clone())).collect();
    let tally = headers.first().map(|(_, header)| header.tally).unwrap_or_default();
    store::ask(frontier.learn(id, tally, &learned, now))?;
    let is_set = |header: &&HostHeader| header.settings != HostSettings::default();
    set_hosts(frontier, hosts.into_iter().filter(is_set).collect(), is_plain.then_some(id), now)?;
    Ok(changes)
}

/// Sets hosts as they were set, except those that have settings here.
fn set_hosts(
    frontier: &dyn Frontier,
    hosts: Vec<&HostHeader>,
    plain: Option<&str>,
    now: Timestamp,
) -> anyhow::Result<()> {
    if hosts.is_empty() {
        return Ok(());
    }
    let mut set = std::collections::HashSet::new();
    let mut filter = HostFilter { limit: HOST_PAGE, ..HostFilter::default() };
    loop {
        let page = store::ask(frontier.hosts(&filter, now))?;
        filter.skip += page.len();
        let is_last = page.len() < HOST_PAGE;
        let own = page.into_iter().filter(|view| view.collection.as_deref() == plain);
        set.extend(own.filter(|view| view.settings != HostSettings::default()).map(|view| view.host));
        if is_last {
            break;
        }
    }
    let missing = hosts.into_iter().filter(|header| !set.contains(&header.host));
    let change = |header: &HostHeader| HostChange {
        key: header.host.clone(),
        collection: plain.map(str::to_owned),
        sets: header.settings.all(),
        only_known: false,
    };
    let changes: Vec<HostChange> = missing.map(change).collect();
    store::ask(frontier.set_hosts(&changes, now))?;
    Ok(())
}
