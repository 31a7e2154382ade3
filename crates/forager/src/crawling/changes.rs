//! Changes that a crawl finds: written down, printed, or handed to a command.

use std::io::{self, Write};
use std::path::Path;

use forager_crawl::{PageLine, Stop};
use forager_frontier::verbs::Difference;
use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;

use super::appended::Lines;
use super::hook::Hook;
use super::view::open;
use crate::output;
use crate::progress;

/// How changes are shown.
pub(crate) enum Shown {
    /// As lines of JSON.
    Json(Box<dyn Write + Send>),
    /// For people.
    Text,
    /// Not at all.
    Nowhere,
}

/// A change, as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Change<'a> {
    at: Timestamp,
    url: &'a str,
    collection: &'a str,
    title: Option<&'a str>,
    fingerprint: Option<&'a str>,
    /// Where it redirects to now, and where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect_before: Option<&'a str>,
    #[serde(flatten)]
    difference: Option<&'a Difference>,
    /// Whether that is not all of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

/// Where changes go.
pub(crate) struct Changes {
    shown: Shown,
    hook: Option<Hook>,
}

impl Changes {
    pub(crate) fn new(shown: Shown, command: Option<&str>) -> Self {
        Self { shown, hook: command.map(Hook::new) }
    }

    /// Changes as lines of a file, and for a command.
    pub(crate) fn to_file(file: Option<&Path>, command: Option<&str>) -> anyhow::Result<Option<Self>> {
        if file.is_none() && command.is_none() {
            return Ok(None);
        }
        let shown = file.map(|file| open(file, Lines::Json)).transpose()?.map_or(Shown::Nowhere, Shown::Json);
        Ok(Some(Self::new(shown, command)))
    }

    /// Tells of a change.
    pub(crate) fn tell(&mut self, page: &PageLine) -> io::Result<()> {
        let change = Change {
            at: page.at,
            url: &page.url,
            collection: &page.collection,
            title: page.title.as_deref(),
            fingerprint: page.fingerprint.as_deref(),
            redirect: page.redirect.as_deref(),
            redirect_before: page.redirect_before.as_deref(),
            difference: page.difference.as_ref(),
            more: page.more,
        };
        let mut line = serde_json::to_vec(&change)?;
        line.push(b'\n');
        if let Some(hook) = &mut self.hook {
            hook.tell(line.clone());
        }
        match &mut self.shown {
            Shown::Json(file) => {
                file.write_all(&line)?;
                file.flush()
            }
            Shown::Text => print(page),
            Shown::Nowhere => Ok(()),
        }
    }

    /// Waits for the command to have seen every change, unless everything is to stop at once.
    pub(crate) async fn finish(self, stop: &watch::Receiver<Stop>) {
        if let Some(hook) = self.hook {
            hook.finish(stop).await;
        }
    }
}

/// What is told of a change that no line shows, such as that of a picture, or of a PDF.
const ONLY_BYTES: &str = "  its bytes have changed; there is no line of text to show it";

fn print(page: &PageLine) -> io::Result<()> {
    let mut lines = vec![format!("{} {}", page.at.strftime("%Y-%m-%d %H:%M:%S UTC"), page.url)];
    if let Some(Difference { added, removed }) = &page.difference {
        if added.is_empty() && removed.is_empty() {
            lines.push(ONLY_BYTES.to_owned());
        }
        lines.extend(removed.iter().map(|line| format!("  - {}", output::harmless(line))));
        lines.extend(added.iter().map(|line| format!("  + {}", output::harmless(line))));
    }
    let mut written = Ok(());
    progress::aside(|| written = writeln!(io::stdout(), "{}", lines.join("\n")));
    written
}
