//! `forager seed import`

use std::collections::{HashMap, HashSet};

use anyhow::bail;
use forager_core::scope::Seed;
use forager_core::url::Identity;
use forager_frontier::catalog::{Catalog, Change};
use serde::{Deserialize, Serialize};

use super::catalog::check_profiles;
use crate::Outcome;
use crate::batch::{Batches, Told, for_each_batch};
use crate::cli::SeedImportArgs;
use crate::input::{Input, Line};
use crate::output::Output;
use crate::record::{BadLine, parse, text};
use crate::store::{self, Missing, Store};

/// Every call writes the list of seeds, so calls are few.
const BATCHES: Batches = Batches { size: 10_000, eager: false };

#[derive(Deserialize)]
struct Record {
    url: String,
    #[serde(default)]
    profiles: Option<Vec<String>>,
    #[serde(default)]
    enabled: Option<bool>,
}

#[derive(Serialize)]
struct Imported {
    added: u64,
    present: u64,
    bad: u64,
}

pub(super) fn import(args: &SeedImportArgs) -> anyhow::Result<Outcome> {
    let input = Input::open(&args.files)?.with_progress();
    let mut output = Output::new(args.store.format(), &["added", "present", "bad"]);
    store::with_lazy(&args.store, Missing::Refuse, |lazy| {
        let mut import = Import { known: None, added: 0, present: 0 };
        let parse = |line: &Line<'_>| read(line, &args.profile);
        let add = |seeds: &mut [Seed], told: &mut Told<'_>| {
            for (index, problem) in import.add(lazy.get()?, seeds, &args.profile)? {
                told.bad(index, &problem)?;
            }
            Ok(())
        };
        let summary = for_each_batch(input, &mut output, BATCHES, parse, |_| false, add)?;
        output.row(&Imported { added: import.added, present: import.present, bad: summary.bad })?;
        output.flush()?;
        Ok(summary.outcome())
    })
}

/// An import under way.
struct Import {
    known: Option<Known>,
    added: u64,
    present: u64,
}

impl Import {
    /// Adds the seeds that are new. Returns those that were refused, and why.
    fn add(
        &mut self,
        store: &Store,
        seeds: &[Seed],
        profiles: &[String],
    ) -> anyhow::Result<Vec<(usize, BadLine)>> {
        let known = match &mut self.known {
            Some(known) => known,
            unread @ None => {
                let catalog = store::ask(store.frontier.catalog())?;
                check_profiles(&catalog, profiles)?;
                unread.insert(Known::of(&catalog))
            }
        };
        let (mut changes, mut new, mut refused) = (Vec::new(), HashSet::new(), Vec::new());
        for (index, seed) in seeds.iter().enumerate() {
            match known.check(seed) {
                Err(problem) => refused.push((index, problem)),
                Ok(key) => {
                    if !known.seeds.contains(&key) && new.insert(key) {
                        changes.push(Change::AddSeed(seed.clone()));
                    }
                }
            }
        }
        store::ask(store.frontier.configure(&changes, store.now()))?;
        known.seeds.extend(new);
        self.added += changes.len() as u64;
        self.present += (seeds.len() - changes.len() - refused.len()) as u64;
        Ok(refused)
    }
}

fn read(line: &Line<'_>, profiles: &[String]) -> Result<Seed, BadLine> {
    let text = text(line)?;
    let record = if text.starts_with('{') {
        parse(line)?
    } else {
        Record { url: text.to_owned(), profiles: None, enabled: None }
    };
    let profiles = record.profiles.filter(|names| !names.is_empty()).unwrap_or_else(|| profiles.to_vec());
    if profiles.is_empty() {
        return Err(BadLine::field("profiles", "missing, and no --profile says which"));
    }
    Ok(Seed { url: record.url, profiles, enabled: record.enabled.unwrap_or(true) })
}

/// What the queue has already.
struct Known {
    profiles: HashSet<String>,
    seeds: HashSet<String>,
}

impl Known {
    fn of(catalog: &Catalog) -> Self {
        let rows = catalog.rows();
        let live = rows.seeds.iter().filter(|row| !row.is_gone);
        Self {
            profiles: rows.profiles.iter().map(|profile| profile.id.clone()).collect(),
            seeds: live.filter_map(|row| Identity::parse(&row.seed.url).ok()).map(|url| key(&url)).collect(),
        }
    }

    /// What a seed is told apart by.
    fn check(&self, seed: &Seed) -> Result<String, BadLine> {
        if let Some(name) = seed.profiles.iter().find(|name| !self.profiles.contains(*name)) {
            return Err(BadLine::field("profiles", format_args!("there is no profile {name:?}")));
        }
        Identity::parse(&seed.url).map(|url| key(&url)).map_err(|error| BadLine::field("url", error))
    }
}

/// Refuses seeds that are there, or are given twice.
pub(super) fn check_new(catalog: &Catalog, urls: &[String]) -> anyhow::Result<()> {
    check_once("seed", urls, key_of)?;
    let known = Stored::of(catalog);
    for url in urls {
        match known.url(url) {
            Some(stored) if stored == url => bail!("seed {url:?} is there already"),
            Some(stored) => bail!("seed {url:?} is there already, as {stored:?}"),
            None => {}
        }
    }
    Ok(())
}

/// Refuses things that are given twice.
pub(super) fn check_once(kind: &str, names: &[String], key: impl Fn(&str) -> String) -> anyhow::Result<()> {
    let mut given = HashMap::new();
    for name in names {
        match given.insert(key(name), name) {
            Some(earlier) if earlier == name => bail!("{kind} {name:?} is given twice"),
            Some(earlier) => bail!("{kind} {name:?} is given twice: it is one with {earlier:?}"),
            None => {}
        }
    }
    Ok(())
}

/// The seeds of a queue, by what they are told apart by.
pub(super) struct Stored<'a>(HashMap<String, &'a str>);

impl<'a> Stored<'a> {
    pub(super) fn of(catalog: &'a Catalog) -> Self {
        let live = catalog.rows().seeds.iter().filter(|row| !row.is_gone);
        Self(live.map(|row| (key_of(&row.seed.url), &*row.seed.url)).collect())
    }

    /// How a seed is written in the queue.
    pub(super) fn url(&self, url: &str) -> Option<&'a str> {
        self.0.get(&key_of(url)).copied()
    }

    /// How seeds are written in the queue; those that are not there, as they are.
    pub(super) fn urls(&self, urls: &[String]) -> Vec<String> {
        urls.iter().map(|url| self.url(url).unwrap_or(url).to_owned()).collect()
    }
}

/// What a seed is told apart by; the text itself if it is no URL.
pub(super) fn key_of(url: &str) -> String {
    Identity::parse(url).map_or_else(|_| url.to_owned(), |url| key(&url))
}

/// As scopes compare seeds: neither the scheme nor a slash at the end counts.
fn key(url: &Identity) -> String {
    let path = url.path();
    let path = path.strip_suffix('/').unwrap_or(path);
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}{path}{query}", url.authority())
}
