//! Looks for texts of pages that are kept though nobody comes back to those pages.

use std::collections::HashSet;

use super::check::Checked;
use super::inner::Inner;
use super::recover::each;
use super::texts;
use crate::engine::Tx as _;
use crate::entry::State;
use crate::error::Result;
use crate::verbs::{TEXT, page_of_text, text_key};

impl Inner {
    /// What is kept of what a page says goes with the page.
    pub(super) fn check_notes(&self, checked: &mut Checked) -> Result<()> {
        let mut kept: HashSet<String> = self.disk.note_keys(TEXT)?.into_iter().collect();
        kept.retain(|key| page_of_text(key).is_some());
        if kept.is_empty() {
            return Ok(());
        }
        each(&self.disk, &self.disk.urls, "row of texts", |first, row| {
            for (number, text) in (first..).zip(texts::read_chunk(row)) {
                let slot = self.slots.live(number);
                let Some(slot) = slot.filter(|slot| !matches!(slot.state(), State::Done | State::Failed))
                else {
                    continue;
                };
                // One that cannot be read is told elsewhere.
                let Ok(url) = text.and_then(|text| text.url(self.key_of(slot.queue()))) else { continue };
                let (collection, _) = self.queue_parts(slot.queue());
                if let Some(row) = self.catalog.collection_numbered(collection) {
                    kept.remove(&text_key(&row.spec.id, &url));
                }
            }
            Ok(())
        })?;
        let mut kept: Vec<String> = kept.into_iter().collect();
        kept.sort_unstable();
        for key in kept {
            checked.expect(
                false,
                || format!("note {key:?}"),
                "it is the text of a page that does not come back",
            );
        }
        Ok(())
    }
}
