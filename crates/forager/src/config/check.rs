//! What only shows when the parts of a configuration are put to use.

use forager_core::scope::ScopeError;
use forager_core::select::{SelectError, Selector};
use forager_core::sentinel::classify::{Classifier, Row};
use forager_core::time::Interval;
use forager_core::url::Identity;
use forager_fetch::fingerprint::ContentSelector;

use super::Config;
use super::fetch::{AT_ONCE, check_contact};
use super::layers::Layers;
use crate::cli::NO_INTERVAL;

/// Refuses a configuration that cannot be used, naming the place at fault.
pub(super) fn check(config: &Config, layers: &Layers) -> anyhow::Result<()> {
    if let Err(error) = Classifier::new(config.classify.rows.clone()) {
        let alone = |row: &Row| Classifier::new(vec![row.clone()]).is_err();
        let key = match config.classify.rows.iter().position(alone) {
            Some(index) => format!("classify.rows[{index}].pattern"),
            None => "classify.rows".to_owned(),
        };
        return Err(layers.problem(&key, &error.to_string()));
    }
    let selector = Selector::new(config.select.clone());
    selector.map_err(|error| layers.problem(&select_key(&error), &error.to_string()))?;
    check_fetch(config, layers)?;
    check_zeros(config, layers)?;
    check_store(config, layers)?;
    for (index, profile) in config.profiles.iter().enumerate() {
        let problem =
            |key: &str, problem: &str| Err(layers.problem(&format!("profiles[{index}].{key}"), problem));
        if profile.length == Some(0) {
            return problem("length", "0 is less than 1; leave it out where there is no limit");
        }
        if let Some(every) = profile.every.filter(|every| *every == Interval::default()) {
            return problem("every", &format!("{every} {NO_INTERVAL}"));
        }
    }
    for (index, profile) in config.profiles.iter().enumerate() {
        if let Some(Err(error)) = profile.reading.content.as_deref().map(ContentSelector::parse) {
            return Err(layers.problem(&format!("profiles[{index}].reading.content"), &error.to_string()));
        }
    }
    let scopes = config.scopes();
    scopes.map_err(|error| layers.problem(&scope_key(config, &error), &error.to_string()))?;
    Ok(())
}

fn check_fetch(config: &Config, layers: &Layers) -> anyhow::Result<()> {
    if let Some(Err(problem)) = config.fetch.contact.as_deref().map(check_contact) {
        return Err(layers.problem("fetch.contact", &problem));
    }
    if config.fetch.product_token().is_empty() {
        let problem = "it does not begin with a word by which robots.txt could address us, such as Example in \
                       \"Example/1.0\"";
        return Err(layers.problem("fetch.user_agent", problem));
    }
    if !AT_ONCE.contains(&config.fetch.at_once) {
        let (least, most) = (AT_ONCE.start(), AT_ONCE.end());
        let problem = format!("{} is not between {least} and {most}", config.fetch.at_once);
        return Err(layers.problem("fetch.at_once", &problem));
    }
    Ok(())
}

/// With nothing at all of these, no page could be had.
fn check_zeros(config: &Config, layers: &Layers) -> anyhow::Result<()> {
    let fetch = &config.fetch;
    let times = [
        ("connect_timeout", fetch.connect_timeout),
        ("answer_timeout", fetch.answer_timeout),
        ("timeout", fetch.timeout),
    ];
    if let Some((key, _)) = times.iter().find(|(_, time)| *time == Interval::default()) {
        return Err(layers.problem(&format!("fetch.{key}"), "0s is too short to fetch anything"));
    }
    if fetch.max_bytes == 0 {
        return Err(layers.problem("fetch.max_bytes", "with 0 bytes nothing can be read"));
    }
    if config.politeness.in_flight == 0 {
        return Err(layers.problem("politeness.in_flight", "0 is less than 1: nothing would be fetched"));
    }
    Ok(())
}

fn check_store(config: &Config, layers: &Layers) -> anyhow::Result<()> {
    let postgres = &config.store.postgres;
    let problem = |key: &str, problem: &str| layers.problem(&format!("store.postgres.{key}"), problem);
    postgres.options().check().map_err(|(key, told)| problem(key, &told))?;
    if postgres.hold == Interval::default() {
        return Err(problem("hold", "0s is too short to fetch anything"));
    }
    Ok(())
}

fn select_key(error: &SelectError) -> String {
    match error {
        SelectError::EmptyTerm { list }
        | SelectError::NotAPath { list, .. }
        | SelectError::TooLarge { list } => format!("select.{list}"),
        SelectError::Home(_) => "select".to_owned(),
    }
}

fn scope_key(config: &Config, error: &ScopeError) -> String {
    let profile = |id: &str| config.profiles.iter().rposition(|profile| profile.id == id).unwrap_or_default();
    let seed = |url: &str| {
        let is_it =
            |text: &str| text == url || Identity::parse(text).is_ok_and(|known| known.as_str() == url);
        config.seeds.iter().rposition(|seed| is_it(&seed.url)).unwrap_or_default()
    };
    match error {
        ScopeError::Twice { kind: "collection", name } => {
            let index = config.collections.iter().rposition(|collection| collection.id == *name);
            format!("collections[{}].id", index.unwrap_or_default())
        }
        ScopeError::Twice { kind: "profile", name } => format!("profiles[{}].id", profile(name)),
        ScopeError::Twice { name, .. } => format!("seeds[{}].url", seed(name)),
        ScopeError::SeedUrl { url, .. } => format!("seeds[{}].url", seed(url)),
        ScopeError::Pattern { profile: id, list, .. } => format!("profiles[{}].{list}", profile(id)),
        ScopeError::Scheme { profile: id, .. } => format!("profiles[{}].schemes", profile(id)),
        ScopeError::IdentityDiffers { second, .. } => format!("profiles[{}]", profile(second)),
    }
}
