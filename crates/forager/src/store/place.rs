//! Where the queue is: the flags say so, or variables of the environment, or the configuration.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use anyhow::bail;

use crate::cli::QueuePlace;
use crate::config::{Config, DatabaseUrl};

/// Where the queue is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Folder(PathBuf),
    Database(Database),
}

/// A database, and what named it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Database {
    pub(crate) url: DatabaseUrl,
    named_by: String,
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use {} (named by {})", self.url, self.named_by)
    }
}

impl Place {
    /// The place that is meant. Flags go before variables, and these before the configuration.
    pub(crate) fn of(place: &QueuePlace, config: &Config) -> anyhow::Result<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let as_url = |value: OsString| DatabaseUrl::from(value.to_string_lossy().as_ref());
        let by_flags = choose(place.data.clone(), "--data", place.store.clone(), "--store")?;
        let chosen = match by_flags {
            Some(place) => place,
            None => choose(
                variable("FORAGER_DATA").map(PathBuf::from),
                "FORAGER_DATA",
                variable("FORAGER_STORE").map(as_url),
                "FORAGER_STORE",
            )?
            .unwrap_or_else(|| Self::configured(config)),
        };
        match &chosen {
            Self::Database(Database { url, named_by }) if !url.is_known() => {
                bail!("{named_by}: not the address of a database such as postgres://user@host/name")
            }
            _ => Ok(chosen),
        }
    }

    fn configured(config: &Config) -> Self {
        match &config.store.url {
            Some(url) => {
                Self::Database(Database { url: url.clone(), named_by: config.store.url_origin.clone() })
            }
            None => Self::Folder(config.store.data.clone()),
        }
    }
}

fn choose(
    folder: Option<PathBuf>,
    folder_by: &'static str,
    url: Option<DatabaseUrl>,
    named_by: &'static str,
) -> anyhow::Result<Option<Place>> {
    match (folder, url) {
        (Some(_), Some(_)) => {
            bail!(
                "{folder_by} and {named_by} name two queues, one in a folder and one in a database; give one of them"
            )
        }
        (Some(path), None) => Ok(Some(Place::Folder(path))),
        (None, Some(url)) => Ok(Some(Place::Database(Database { url, named_by: named_by.to_owned() }))),
        (None, None) => Ok(None),
    }
}
