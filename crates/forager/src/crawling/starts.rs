//! Pages to start from that are not queued.

use forager_core::scope::start::{Target, start};
use forager_frontier::catalog::Catalog;
use jiff::Timestamp;

use crate::output;

/// A page to start from that its own profile does not want.
#[derive(Clone, Debug)]
pub(crate) struct LeftOut {
    pub(crate) url: String,
    /// The rule that keeps it out.
    pub(crate) rule: String,
}

impl LeftOut {
    /// Names it: whoever asked for this page would wait for it in vain.
    pub(crate) fn tell(&self) {
        output::complain(format_args!("{} is not fetched: {}", self.url, self.rule));
    }
}

/// The seeds of a collection that starting it leaves out.
pub(crate) fn left_out(catalog: &Catalog, collection: &str, now: Timestamp) -> anyhow::Result<Vec<LeftOut>> {
    let started = start(catalog.scopes(), Target::Collection(collection), now)?;
    let left_out = started.into_iter().filter_map(|started| {
        let seed = catalog.seed_number(started.seed).and_then(|number| catalog.seed(number));
        let url = seed.map_or_else(|| started.url.to_string(), |row| row.seed.url.clone());
        Some(LeftOut { url, rule: started.action.obstacle()? })
    });
    Ok(left_out.collect())
}
