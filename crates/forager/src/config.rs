//! The configuration: one TOML file for the whole product, under variables of the environment.
//!
//! [`Loaded::read`] puts the layers together, remembers where each value came from, and refuses
//! what it does not know, naming the line and the nearest key that it does.

mod check;
mod fetch;
mod keys;
mod layers;
mod store;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use forager_core::scope::{Collection, Profile, ScopeError, ScopeOptions, Scopes, Seed};
use forager_core::select::SelectConfig;
use forager_core::sentinel::classify::Row;
use forager_core::sentinel::manifest::ManifestConfig;
use forager_core::sentinel::schedule::ScheduleConfig;
use forager_frontier::Settings;
use forager_frontier::settings::{Politeness, Reserved, Retry};
use serde::{Deserialize, Serialize};

use crate::cli::ConfigFile;
pub(crate) use fetch::{AT_ONCE, FetchConfig, check_contact};
#[cfg(test)]
pub(crate) use keys::example;
use layers::Layers;
pub(crate) use store::{DatabaseUrl, Durability, StoreConfig};

/// The file that is read where none is named.
const DEFAULT_FILE: &str = "forager.toml";

/// Every setting of Forager.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) select: SelectConfig,
    pub(crate) classify: ClassifyConfig,
    pub(crate) sentinel: ScheduleConfig,
    pub(crate) manifest: ManifestConfig,
    pub(crate) scope: ScopeOptions,
    pub(crate) politeness: Politeness,
    pub(crate) retry: Retry,
    pub(crate) store: StoreConfig,
    pub(crate) fetch: FetchConfig,
    pub(crate) collections: Vec<Collection>,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) seeds: Vec<Seed>,
}

/// The rows that come before the default table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ClassifyConfig {
    pub(crate) rows: Vec<Row>,
}

impl Config {
    /// The configuration in force.
    pub(crate) fn load(file: &ConfigFile) -> anyhow::Result<Self> {
        Ok(Loaded::read(file)?.config)
    }

    /// The configuration in force, for a command that can do nothing without one.
    pub(crate) fn load_required(file: &ConfigFile) -> anyhow::Result<Self> {
        let loaded = Loaded::read(file)?;
        if loaded.file.is_none() {
            bail!("there is no configuration; give one with --config FILE");
        }
        Ok(loaded.config)
    }

    /// What holds for the whole queue.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            scope: self.scope,
            classify: self.classify.rows.clone(),
            select: self.select.clone(),
            sentinel: self.sentinel,
            politeness: self.politeness,
            retry: self.retry,
            reserved: Reserved(self.manifest.reserved_percent),
        }
    }

    /// The collections, profiles and seeds, ready for verdicts.
    pub(crate) fn scopes(&self) -> Result<Scopes, ScopeError> {
        Scopes::new(&self.collections, &self.profiles, &self.seeds, self.scope)
    }
}

/// A configuration and where its values came from.
pub(crate) struct Loaded {
    pub(crate) config: Config,
    file: Option<PathBuf>,
    layers: Layers,
}

/// A value in force.
pub(crate) struct Shown {
    /// The key and its value, as in the file.
    pub(crate) assignment: String,
    /// Where it came from.
    pub(crate) origin: String,
}

impl Loaded {
    /// Reads the file that is named, or the default one if it is there, and the environment.
    pub(crate) fn read(file: &ConfigFile) -> anyhow::Result<Self> {
        let file =
            file.path.clone().or_else(|| Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.exists()));
        let mut layers = Layers::default();
        if let Some(path) = &file {
            let failed = || format!("cannot read the configuration {}", path.display());
            let text = std::fs::read_to_string(path).with_context(failed)?;
            layers.add_file(path, &text)?;
        }
        layers.add_environment(std::env::vars_os())?;
        let mut config = layers.config()?;
        config.store.url_origin = layers.origin("store.url").unwrap_or_default();
        check::check(&config, &layers)?;
        Ok(Self { config, file, layers })
    }

    /// The file, by name.
    pub(crate) fn name(&self) -> String {
        self.file.as_ref().map_or("built-in defaults".to_owned(), |path| path.display().to_string())
    }

    /// Where a value came from that nobody wrote.
    fn unwritten(&self, key: &str, value: &str) -> String {
        let is_of_preset = self.config.sentinel.preset.is_some()
            && key.starts_with("sentinel.max_interval.")
            && value != keys::NOT_SET;
        if is_of_preset { "sentinel.preset".to_owned() } else { "default".to_owned() }
    }

    /// Every value in force, and where it came from.
    pub(crate) fn values(&self) -> anyhow::Result<Vec<Shown>> {
        let tree = serde_json::to_value(&self.config)?;
        let mut shown = Vec::new();
        keys::for_each_value(&tree, &mut |key, value| {
            let origin = self.layers.origin(key).unwrap_or_else(|| self.unwritten(key, value));
            shown.push(Shown { assignment: format!("{key} = {value}"), origin });
        });
        Ok(shown)
    }
}
