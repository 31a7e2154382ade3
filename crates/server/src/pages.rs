//! Entries as clients see them, a page at a time.

use std::sync::Arc;

use forager_frontier::entry::State;
use forager_frontier::verbs::{EntryView, ListFilter};
use tonic::Status;

use crate::limits::{LIST_PAGE, LIST_PAGE_BYTES};
use crate::metadata;
use crate::names;
use crate::proto::url_item::Item;
use crate::proto::{KnownUrlItem, UrlInfo, UrlItem};
use crate::shared::Shared;

/// The entries of a crawl or queue, and how far they have been looked at.
pub(crate) struct Pages {
    shared: Arc<Shared>,
    filter: ListFilter,
    is_over: bool,
}

impl Pages {
    /// The entries that a client asks for. A filter of white space is none.
    pub(crate) fn new(
        shared: Arc<Shared>,
        crawl: &str,
        key: String,
        contains: Option<String>,
        any_case: Option<bool>,
    ) -> Self {
        let filter = ListFilter {
            collection: Some(names::crawl(crawl).to_owned()),
            host: Some(key).filter(|key| !key.is_empty()),
            contains: contains.filter(|text| !text.trim().is_empty()),
            any_case: any_case.unwrap_or_default(),
            limit: LIST_PAGE,
            bytes: Some(LIST_PAGE_BYTES),
            ..ListFilter::default()
        };
        Self { shared, filter, is_over: false }
    }

    /// The next entries; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<EntryView>>, Status> {
        if self.is_over {
            return Ok(None);
        }
        if let (Some(crawl), Some(key)) = (&self.filter.collection, self.filter.host.take()) {
            let key = self.shared.queue_key(crawl, key).await?;
            self.filter.host = Some(key);
        }
        let answer = self.shared.frontier.list(&self.filter, self.shared.now()).await;
        let Some(page) = self.shared.or_none(answer)? else { return Ok(None) };
        self.is_over = page.next.is_none();
        self.filter.after = page.next;
        Ok(Some(page.entries))
    }
}

/// Roughly how much memory an entry holds.
pub(crate) fn size(entry: &EntryView) -> usize {
    size_of::<EntryView>()
        + entry.url.len()
        + entry.record.origin.metadata.as_ref().map_or(0, |text| text.len())
}

/// An entry as a client sees it: always as one that is known.
pub(crate) fn item(entry: EntryView) -> UrlItem {
    let date = match entry.state {
        State::Queued | State::Leased => u64::from(entry.due.second()).max(1), // 0 would say that it is completed
        State::Done | State::Failed => 0,
    };
    let origin = entry.record.origin;
    let info = UrlInfo {
        url: entry.url,
        key: entry.host,
        metadata: origin.metadata.as_deref().map(metadata::to_map).unwrap_or_default(),
        crawl_id: entry.collection,
    };
    UrlItem {
        item: Some(Item::Known(KnownUrlItem { info: Some(info), refetchable_from_date: date })),
        id: String::new(),
        creation_date: origin.created.second().into(),
    }
}
