//! Where the queue is kept.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use forager_core::time::Interval;
use forager_frontier::PostgresOptions;
use serde::{Deserialize, Serialize, Serializer};

/// Where the queue is kept, and how safely.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StoreConfig {
    pub(crate) data: PathBuf,
    pub(crate) durability: Durability,
    /// The database that the queue is in; the folder counts where there is none.
    pub(crate) url: Option<DatabaseUrl>,
    /// Where the address of the database was written, for people.
    #[serde(skip)]
    pub(crate) url_origin: String,
    pub(crate) postgres: PostgresConfig,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            data: "forager-data".into(),
            durability: Durability::default(),
            url: None,
            url_origin: String::new(),
            postgres: PostgresConfig::default(),
        }
    }
}

/// What acknowledged work survives.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durability {
    /// The death of the process.
    #[default]
    Process,
    /// A loss of power too.
    Fsync,
}

/// How a database is used. What its address says counts before this.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PostgresConfig {
    pub(crate) schema: String,
    pub(crate) connections: usize,
    pub(crate) statement_timeout: Interval,
    /// How long a call waits for a server that cannot be reached.
    pub(crate) patience: Interval,
    /// How long a crawl has pages without a word: so long those of one that was killed stay away, and so long the
    /// database may be away before pages are fetched twice.
    pub(crate) hold: Interval,
    pub(crate) prepare: bool,
    pub(crate) listen: bool,
    /// A file (PEM) with the certificates of the authority that the server is known by.
    pub(crate) authority: Option<PathBuf>,
}

impl Default for PostgresConfig {
    fn default() -> Self {
        let PostgresOptions { schema, connections, statement_timeout, patience, prepares, listens, .. } =
            PostgresOptions::default();
        let interval = |duration: Duration| Interval::from_secs_f64(duration.as_secs_f64());
        Self {
            schema,
            connections,
            statement_timeout: interval(statement_timeout),
            patience: interval(patience),
            hold: Interval::from_secs_f64(120.0),
            prepare: prepares,
            listen: listens,
            authority: None,
        }
    }
}

impl PostgresConfig {
    /// The same for the store.
    pub(crate) fn options(&self) -> PostgresOptions {
        let duration = |interval: Interval| Duration::from_secs_f64(interval.as_secs_f64());
        PostgresOptions {
            schema: self.schema.clone(),
            connections: self.connections,
            statement_timeout: duration(self.statement_timeout),
            patience: duration(self.patience),
            prepares: self.prepare,
            listens: self.listen,
            authority: self.authority.clone(),
            ..PostgresOptions::default()
        }
    }
}

/// The address of a database. However it is shown, its password is not.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(crate) struct DatabaseUrl(String);

impl DatabaseUrl {
    /// The address with its password, for who connects.
    pub(crate) fn with_password(&self) -> &str {
        &self.0
    }

    /// Whether it is the address of a database that Forager knows.
    pub(crate) fn is_known(&self) -> bool {
        ["postgres://", "postgresql://"].iter().any(|scheme| self.0.starts_with(scheme))
    }
}

impl From<String> for DatabaseUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl From<&str> for DatabaseUrl {
    fn from(url: &str) -> Self {
        Self(url.to_owned())
    }
}

/// Never fails: whoever says that a text is no address would have to show it.
impl FromStr for DatabaseUrl {
    type Err = Infallible;

    fn from_str(url: &str) -> Result<Self, Infallible> {
        Ok(url.into())
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scheme, rest)) = self.0.split_once("://") else {
            return f.write_str("(not an address)");
        };
        let (user, rest) = match rest.rsplit_once('@') {
            // One of them was not written as it should be: nobody can tell where it ends.
            Some((user, _)) if user.contains(['/', '?']) => return write!(f, "{scheme}://***"),
            Some((user, rest)) => (Some(user), rest),
            None => (None, rest),
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        write!(f, "{scheme}://")?;
        match user.map(|user| user.split_once(':').ok_or(user)) {
            Some(Ok((user, _password))) => write!(f, "{user}:***@")?,
            Some(Err(user)) => write!(f, "{user}@")?,
            None => {}
        }
        f.write_str(place)?;
        for (index, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
            let sign = if index == 0 { '?' } else { '&' };
            match pair.split_once('=') {
                Some((name, _)) if name.to_ascii_lowercase().contains("pass") => {
                    write!(f, "{sign}{name}=***")?;
                }
                _ => write!(f, "{sign}{pair}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for DatabaseUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let table = [
            (
                "as it should be",
                "postgres://ann:s3cret@db.example/crawl",
                "postgres://ann:***@db.example/crawl",
            ),
            ("without one", "postgres://ann@db.example/crawl", "postgres://ann@db.example/crawl"),
            ("without a user", "postgresql:///crawl?host=/run", "postgresql:///crawl?host=/run"),
            ("with @ and : in it", "postgres://ann:s3:c@ret@db.example/", "postgres://ann:***@db.example/"),
            ("with ? in it", "postgres://ann:s3?cret@db.example/", "postgres://***"),
            (
                "as a parameter",
                "postgres://db.example/crawl?user=ann&password=s3cret&schema=a",
                "postgres://db.example/crawl?user=ann&password=***&schema=a",
            ),
            ("as a parameter with @ in it", "postgres://db.example/crawl?password=s3@cret", "postgres://***"),
            ("no address at all", "host=db.example password=s3cret", "(not an address)"),
        ];
        for (name, url, want) in table {
            let url = DatabaseUrl::from(url);
            assert_eq!(url.to_string(), want, "{name}");
            assert_eq!(format!("{url:?}"), want, "{name}");
            assert_eq!(serde_json::to_value(&url).ok(), Some(want.into()), "{name}");
        }
    }
}
