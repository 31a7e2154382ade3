//! What a job was started for: a command that asks for something else does not go on with it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use forager_core::scope::Profile;
use forager_core::url::{FetchUrl, IdentityOptions};
use forager_frontier::Frontier;
use forager_frontier::catalog::Catalog;
use forager_frontier::verbs::{JobState, JobView, MAX_NOTE_BYTES, Note};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::absolute;
use crate::cli::CrawlArgs;
use crate::words::counted;

/// How many URLs are named that are not those of a job.
const NAMED: usize = 3;

/// What a profile has that no option of a crawl says: its name, and what others do with it.
const NOT_ASKED: [&str; 5] = ["id", "collection", "enabled", "every", "length"];

/// What a crawl is asked for. Limits are no part of it: a job goes on within others.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Asked {
    /// The pages to start from.
    urls: BTreeSet<String>,
    /// The options that are not as usual. The others are left out, so that a version with other defaults finds the same.
    options: BTreeMap<String, Value>,
}

impl Asked {
    fn by(args: &CrawlArgs) -> anyhow::Result<Self> {
        Ok(Self {
            urls: identities(&absolute(&args.urls)?),
            options: options(&args.harvest.profile("", ""))?,
        })
    }

    /// What a job of which nothing is noted was started for, as far as its profile and its seeds tell.
    fn of(catalog: &Catalog, job: &str) -> anyhow::Result<Self> {
        let rows = catalog.rows();
        let seeds = rows.seeds.iter().filter(|row| row.seed.profiles.iter().any(|profile| profile == job));
        let urls: Vec<String> = seeds.map(|row| row.seed.url.clone()).collect();
        let profile = rows.profiles.iter().find(|profile| profile.id == job);
        Ok(Self { urls: identities(&urls), options: profile.map(options).transpose()?.unwrap_or_default() })
    }

    /// In which ways a job that was started for this is not what is asked for now.
    fn differences(&self, now: &Self) -> Vec<String> {
        let mut told = Vec::new();
        if self.urls != now.urls {
            let more = named(self.urls.difference(&now.urls));
            let less = named(now.urls.difference(&self.urls));
            told.extend(more.map(|urls| format!("it starts from {urls}, which is not given here")));
            told.extend(less.map(|urls| format!("it does not start from {urls}")));
        }
        let keys: BTreeSet<&String> = self.options.keys().chain(now.options.keys()).collect();
        for key in keys.into_iter().filter(|key| self.options.get(*key) != now.options.get(*key)) {
            let said = |options: &BTreeMap<String, Value>| {
                options.get(key).map_or_else(|| "the default".to_owned(), Value::to_string)
            };
            told.push(format!("its {key} is {}, here {}", said(&self.options), said(&now.options)));
        }
        told
    }
}

/// Writes down what a job is started for, unless that is too long: then its profile and its seeds tell.
pub(super) async fn note(
    args: &CrawlArgs,
    frontier: &dyn Frontier,
    job: &JobView,
    now: Timestamp,
) -> anyhow::Result<()> {
    let value = serde_json::to_vec(&(job.job.started.millisecond(), Asked::by(args)?))?;
    if value.len() <= MAX_NOTE_BYTES {
        frontier.note(&[Note::Keep(key(&job.id), Some(value))], now).await?;
    }
    Ok(())
}

/// Refuses a command that asks for something else than the job of its name was started for: it would go on with that, and
/// leave undone without a word what it is asked for.
pub(super) async fn require_same(
    args: &CrawlArgs,
    frontier: &dyn Frontier,
    job: &JobView,
) -> anyhow::Result<()> {
    let noted = frontier.noted(&[key(&job.id)]).await?.pop().flatten();
    let noted = noted.and_then(|value| serde_json::from_slice::<(u64, Asked)>(&value).ok());
    let asked = match noted {
        // One of the same name may have been there before.
        Some((started, asked)) if started == job.job.started.millisecond() => asked,
        _ => Asked::of(&*frontier.catalog().await?, &job.id)?,
    };
    let differences = asked.differences(&Asked::by(args)?);
    if !differences.is_empty() {
        let (id, place, differences) = (&job.id, args.place.flags(), differences.join("; "));
        let left = match (job.state, job.progress.queued) {
            (JobState::Limited, pages) => {
                format!(" ({} left at its limit)", counted(pages, "page is", "pages are"))
            }
            _ => String::new(),
        };
        bail!(
            "the job {id:?} is not done{left}, and is another crawl: {differences}. Give this one another --name, or go on \
             with the same URLs and options (limits may differ); \"forager job cancel {id}{place}\" gives that one up"
        )
    }
    Ok(())
}

fn key(job: &str) -> String {
    format!("asked {job}")
}

fn identities(urls: &[String]) -> BTreeSet<String> {
    let identity = |url: &String| {
        FetchUrl::parse(url)
            .map_or_else(|_| url.clone(), |url| url.identity(&IdentityOptions::default()).to_string())
    };
    urls.iter().map(identity).collect()
}

/// The options of a profile that are not as usual, each by its name.
fn options(profile: &Profile) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut options = flat(serde_json::to_value(profile)?);
    let usual = flat(serde_json::to_value(Profile::new("", ""))?);
    options.retain(|key, value| !NOT_ASKED.contains(&key.as_str()) && usual.get(key) != Some(value));
    Ok(options)
}

/// The values of an object by the names of options, those of objects in it too.
fn flat(value: Value) -> BTreeMap<String, Value> {
    let Value::Object(fields) = value else { return BTreeMap::new() };
    let fields = fields.into_iter().flat_map(|(key, value)| match value {
        Value::Object(_) => flat(value),
        value => BTreeMap::from([(key.replace('_', "-"), value)]),
    });
    fields.collect()
}

/// The first of some URLs, if there are any.
fn named<'u>(urls: impl Iterator<Item = &'u String>) -> Option<String> {
    let urls: Vec<&str> = urls.map(String::as_str).collect();
    let more = urls.len().saturating_sub(NAMED);
    let first = urls.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match (urls.len(), more) {
        (0, _) => None,
        (_, 0) => Some(first),
        _ => Some(format!("{first} and {more} more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(urls: &[&str], options: Value) -> Asked {
        let urls: Vec<String> = urls.iter().map(|url| (*url).to_owned()).collect();
        Asked { urls: identities(&urls), options: serde_json::from_value(options).unwrap() }
    }

    #[test]
    fn only_options_that_are_not_as_usual_count() {
        let mut profile = Profile::new("job", "job");
        profile.length = Some(1);
        assert_eq!(options(&profile).unwrap(), BTreeMap::new());
        (profile.depth, profile.traps.max_segments, profile.reading.sitemaps) = (Some(2), 7, false);
        let told: Vec<String> =
            options(&profile).unwrap().iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(told, ["depth=2", "max-segments=7", "sitemaps=false"]);
    }

    #[test]
    fn every_difference_is_named() {
        let job = asked(&["http://a.test/", "http://b.test/"], serde_json::json!({"depth": 2}));
        let table: [(&str, Asked, &[&str]); 4] = [
            ("the same", asked(&["http://b.test/", "http://A.test"], serde_json::json!({"depth": 2})), &[]),
            (
                "another depth",
                asked(&["http://a.test/", "http://b.test/"], serde_json::json!({"depth": 3})),
                &["its depth is 2, here 3"],
            ),
            (
                "other options",
                asked(&["http://a.test/", "http://b.test/"], serde_json::json!({"exclude": ["x"]})),
                &["its depth is 2, here the default", "its exclude is the default, here [\"x\"]"],
            ),
            (
                "other pages",
                asked(
                    &[
                        "http://a.test/",
                        "http://c.test/1",
                        "http://c.test/2",
                        "http://c.test/3",
                        "http://c.test/4",
                    ],
                    serde_json::json!({"depth": 2}),
                ),
                &[
                    "it starts from http://b.test/, which is not given here",
                    "it does not start from http://c.test/1, http://c.test/2, http://c.test/3 and 1 more",
                ],
            ),
        ];
        for (name, now, want) in table {
            assert_eq!(job.differences(&now), want, "{name}");
        }
    }
}
