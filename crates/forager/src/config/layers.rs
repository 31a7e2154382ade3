//! The layers of the configuration: the file, then the environment over it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use serde::Deserialize as _;
use serde_json::Value as Schema;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::keys::{self, below};
use super::{Config, DatabaseUrl};
use crate::words::in_words;

/// What variables of the environment start with; sections and keys follow, two underscores apart.
const PREFIX: &str = "FORAGER_";

/// Variables that stand for flags rather than keys.
const FLAGS: [&str; 5] = ["CONFIG", "DATA", "STORE", "TOKEN", "TOKEN_FILE"];

/// The variable by which many programs know their database, and the key that it stands for.
const DATABASE: (&str, &str) = ("DATABASE_URL", "store.url");

/// The values of all layers, and where each came from.
#[derive(Default)]
pub(crate) struct Layers {
    values: Table,
    origins: BTreeMap<String, Origin>,
}

/// Where a value was written.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    File { path: PathBuf, line: usize },
    Variable(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "environment {name}"),
        }
    }
}

impl Layers {
    /// Puts the values of a file over what is there.
    pub(super) fn add_file(&mut self, path: &Path, text: &str) -> anyhow::Result<()> {
        let mut file = File { path, text, origins: BTreeMap::new(), unknown: Vec::new() };
        let tree = DeTable::parse(text).map_err(|error| file.syntax_error(&error))?;
        file.record(tree.get_ref(), "", &keys::example());
        if !file.unknown.is_empty() {
            return Err(file.unknown_keys());
        }
        self.values = text.parse().map_err(|error| file.syntax_error(&error))?;
        self.origins.append(&mut file.origins);
        Ok(())
    }

    /// Puts variables such as `FORAGER_SELECT__PAGE_CAP` over what is there.
    pub(super) fn add_environment(
        &mut self,
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> anyhow::Result<()> {
        let schema = keys::example();
        let mut database = None;
        for (name, text) in variables {
            // Names that are not UTF-8 are none of ours.
            let Some(name) = name.to_str() else { continue };
            if name == DATABASE.0 {
                database = text.into_string().ok();
                continue;
            }
            let Some(rest) = name.strip_prefix(PREFIX).filter(|rest| !FLAGS.contains(rest)) else { continue };
            let text = text.to_str().with_context(|| format!("environment {name}: not UTF-8"))?;
            let key = rest.to_ascii_lowercase().replace("__", ".");
            check_variable(name, &key, text, &schema)?;
            set(&mut self.values, &key, parse_value(text));
            // What the file had below this key is gone.
            self.origins
                .retain(|other, _| !other.starts_with(&key) || !other[key.len()..].starts_with(['.', '[']));
            self.origins.insert(key, Origin::Variable(name.to_owned()));
        }
        // A variable of our own says more than one that others share, which may name a database of another kind.
        let is_own = |url: &String| DatabaseUrl::from(url.as_str()).is_known();
        if let Some(url) = database.filter(is_own).filter(|_| !self.is_variable(DATABASE.1)) {
            set(&mut self.values, DATABASE.1, Value::String(url));
            self.origins.insert(DATABASE.1.to_owned(), Origin::Variable(DATABASE.0.to_owned()));
        }
        Ok(())
    }

    /// Whether the value of a key came from the environment.
    fn is_variable(&self, key: &str) -> bool {
        matches!(self.origins.get(key), Some(Origin::Variable(_)))
    }

    /// All layers as one configuration.
    pub(super) fn config(&self) -> anyhow::Result<Config> {
        let values = Value::Table(self.values.clone());
        let mut track = serde_path_to_error::Track::new();
        Config::deserialize(serde_path_to_error::Deserializer::new(values, &mut track))
            .map_err(|error| self.problem(&track.path().to_string(), &in_words(error.message())))
    }

    /// The error that the value of a key is at fault, and where it was written.
    pub(super) fn problem(&self, key: &str, problem: &str) -> anyhow::Error {
        match self.nearest_origin(key) {
            Some(origin) => anyhow!("{origin}: {key}: {problem}"),
            None => anyhow!("{key}: {problem}"),
        }
    }

    /// Where the value of a key was written, for people, if anywhere. A variable sets everything below its key; a
    /// section of the file only what it names.
    pub(super) fn origin(&self, key: &str) -> Option<String> {
        let own = self.origins.get(key);
        let above = || self.nearest_origin(key).filter(|origin| matches!(origin, Origin::Variable(_)));
        own.or_else(above).map(ToString::to_string)
    }

    /// Where a key, or the nearest one above it, was written.
    fn nearest_origin(&self, key: &str) -> Option<&Origin> {
        let mut key = key;
        loop {
            if let Some(origin) = self.origins.get(key) {
                return Some(origin);
            }
            key = &key[..key.rfind(['.', '['])?];
        }
    }
}

/// A file that is being read.
struct File<'a> {
    path: &'a Path,
    text: &'a str,
    /// Where each key stands.
    origins: BTreeMap<String, Origin>,
    /// Keys that there are not: their line, and what is wrong.
    unknown: Vec<(usize, String)>,
}

impl File<'_> {
    /// Notes where each key of `table` stands, and which ones are not in `schema`.
    fn record(&mut self, table: &DeTable<'_>, parent: &str, schema: &Schema) {
        for (name, value) in table {
            let (line, name) = (self.line(name.span().start), &**name.get_ref());
            let chosen = (!is_section(schema)).then_some(&Schema::Null);
            let Some(known) = schema.get(name).or(chosen) else {
                let place = if parent.is_empty() { String::new() } else { format!(" in [{parent}]") };
                let suggestion = keys::suggestion(schema, name);
                self.unknown.push((line, format!("unknown key {name:?}{place}; {suggestion}")));
                continue;
            };
            self.record_value(value, line, &below(parent, name), known);
        }
    }

    fn record_value(&mut self, value: &Spanned<DeValue<'_>>, line: usize, key: &str, schema: &Schema) {
        self.origins.insert(key.to_owned(), Origin::File { path: self.path.to_owned(), line });
        match value.get_ref() {
            DeValue::Table(table) if schema.is_object() => self.record(table, key, schema),
            DeValue::Array(items) => {
                let item_schema = schema.get(0).unwrap_or(&Schema::Null);
                for (index, item) in items.iter().enumerate() {
                    let line = self.line(item.span().start);
                    self.record_value(item, line, &format!("{key}[{index}]"), item_schema);
                }
            }
            _ => {}
        }
    }

    fn unknown_keys(mut self) -> anyhow::Error {
        self.unknown.sort();
        let path = self.path.display();
        let messages: Vec<String> =
            self.unknown.iter().map(|(line, problem)| format!("{path}:{line}: {problem}")).collect();
        anyhow!(messages.join("\n"))
    }

    fn syntax_error(&self, error: &toml::de::Error) -> anyhow::Error {
        let line = error.span().map_or(1, |span| self.line(span.start));
        anyhow!("{}:{line}: {}", self.path.display(), error.message())
    }

    fn line(&self, offset: usize) -> usize {
        memchr::memchr_iter(b'\n', &self.text.as_bytes()[..offset.min(self.text.len())]).count() + 1
    }
}

/// Whether keys are known here. Those of an empty table are names that the user chooses.
fn is_section(schema: &Schema) -> bool {
    schema.as_object().is_some_and(|table| !table.is_empty())
}

fn check_variable(name: &str, key: &str, text: &str, schema: &Schema) -> anyhow::Result<()> {
    let mut table = schema;
    for part in key.split('.') {
        if table.is_array() {
            bail!("environment {name}: a list is set as a whole, not element by element");
        }
        let Some(below) = table.get(part) else {
            let hint = keys::suggestion(table, part);
            bail!("environment {name}: unknown key {part:?}; {hint} (two underscores part section and key)");
        };
        table = below;
    }
    if is_section(table) {
        bail!("environment {name}: {key:?} is a section, not a key");
    }
    let mut value = File { path: Path::new(name), text, origins: BTreeMap::new(), unknown: Vec::new() };
    if let Ok(tree) = DeValue::parse(text) {
        value.record_value(&tree, 1, key, table);
    }
    match value.unknown.first() {
        Some((_, problem)) => bail!("environment {name}: {problem}"),
        None => Ok(()),
    }
}

/// A value as in the file, or a text that needs no quotes.
fn parse_value(text: &str) -> Value {
    text.parse().unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn set(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
        }
        Some((section, rest)) => {
            let below = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(below) = below {
                set(below, rest, value);
            }
        }
    }
}
