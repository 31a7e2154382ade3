//! Items that have arrived and go to the queue together.

use std::ops::Add;

use forager_frontier::verbs::{Action, Discovery, Item, Put, Word};

use crate::limits::{MAX_BYTES_IN_FLIGHT, MAX_ITEMS_IN_FLIGHT, MAX_METADATA_BYTES};
use crate::metadata;
use crate::names;
use crate::proto::UrlInfo;
use crate::proto::ack_message::Status;

/// Where StormCrawler tells which status a page was fetched with.
const STATUS: &str = "fetch.statusCode";
/// Where it tells which pages led to a URL; the last one links to it.
const PATH: &str = "url.path";

/// How much has arrived and waits to be acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) messages: usize,
    items: usize,
    bytes: usize,
}

impl Load {
    /// Whether one more message may come in, where there may be so many of them.
    pub(crate) fn has_room(self, messages: usize) -> bool {
        self.messages < messages && self.items < MAX_ITEMS_IN_FLIGHT && self.bytes < MAX_BYTES_IN_FLIGHT
    }
}

impl Add for Load {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            items: self.items + other.items,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// Items that have arrived and go to the queue together, as one call.
#[derive(Default)]
pub(crate) struct Gathered {
    /// What the queue is asked: runs of items of one collection.
    pub(crate) puts: Vec<Put>,
    /// The messages that they came with.
    messages: Vec<Message>,
    /// For each item whether the queue is asked; what is malformed is skipped without.
    asked: Vec<bool>,
    /// Roughly how much memory all of them hold.
    bytes: usize,
    /// How many items were found on a page.
    pub(crate) found: u64,
    /// How many items are never to be fetched again.
    pub(crate) completed: u64,
}

/// A message that waits to be acknowledged.
struct Message {
    id: String,
    items: usize,
}

impl Gathered {
    /// How many messages there are.
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// How much there is.
    pub(crate) fn load(&self) -> Load {
        Load { messages: self.messages.len(), items: self.asked.len(), bytes: self.bytes }
    }

    /// A message has arrived; its items follow.
    pub(crate) fn message(&mut self, id: String) {
        self.bytes += id.len();
        self.messages.push(Message { id, items: 0 });
    }

    /// An item of the last message.
    pub(crate) fn item(&mut self, info: UrlInfo, word: Word) {
        self.found += u64::from(word == Word::Found);
        let item = self.taken(info, word);
        self.completed += u64::from(word == Word::Done && item.is_some());
        self.asked.push(item.is_some());
        if let Some(message) = self.messages.last_mut() {
            message.items += 1;
        }
        if let (Some(item), Some(put)) = (item, self.puts.last_mut()) {
            self.bytes += size(&item);
            put.items.push(item);
        }
    }

    /// The item as the queue has it, when its collection is the last that is asked; none if it is malformed.
    fn taken(&mut self, info: UrlInfo, word: Word) -> Option<Item> {
        // As what is left of one that cannot be read: no collection is made for it.
        if info.url.is_empty() {
            return None;
        }
        let metadata = metadata::to_text(&info.metadata);
        if metadata.as_ref().is_some_and(|text| text.len() > MAX_METADATA_BYTES) {
            return None;
        }
        let crawl = names::crawl(&info.crawl_id);
        if self.puts.last().is_none_or(|put| put.collection != crawl) {
            if !names::is_crawl(crawl) {
                return None;
            }
            self.bytes += crawl.len();
            self.puts.push(Put { collection: crawl.to_owned(), items: Vec::new() });
        }
        let key = Some(info.key).filter(|key| !key.is_empty());
        let status = metadata::first(&info.metadata, STATUS).and_then(|text| text.parse().ok());
        let source = metadata::last(&info.metadata, PATH).map(str::to_owned);
        Some(Item { url: info.url, key, word, metadata, source, status })
    }

    /// The status of each item, when the queue has answered; none means that it could not.
    pub(crate) fn statuses(&self, told: Option<&[Discovery]>) -> Vec<Status> {
        let Some(told) = told else { return vec![Status::Fail; self.asked.len()] };
        let mut told = told.iter();
        let status = |asked: &bool| match asked.then(|| told.next()).flatten() {
            Some(discovery) => status_of(discovery.action),
            None => Status::Skipped,
        };
        self.asked.iter().map(status).collect()
    }

    /// The messages with the statuses of their items.
    pub(crate) fn acknowledge<A>(self, statuses: &[Status], ack: impl Fn(String, &[Status]) -> A) -> Vec<A> {
        let mut left = statuses;
        let of_message = |message: Message| {
            let (own, others) = left.split_at(message.items);
            left = others;
            ack(message.id, own)
        };
        self.messages.into_iter().map(of_message).collect()
    }
}

/// Roughly how much memory it holds.
fn size(item: &Item) -> usize {
    let texts = [&item.key, &item.metadata, &item.source];
    let texts: usize = texts.into_iter().flatten().map(String::len).sum();
    size_of::<Item>() + item.url.len() + texts
}

fn status_of(action: Action) -> Status {
    match action {
        Action::Added | Action::Improved => Status::Ok,
        Action::Kept | Action::Removed | Action::Ignored | Action::Invalid => Status::Skipped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_holds_so_much_and_no_more() {
        let cases = [
            ("nothing yet", (0, 0, 0), true),
            ("a little", (1, 19_999, (8 << 20) - 1), true),
            ("as many messages as may be", (2, 0, 0), false),
            ("as many items", (1, 20_000, 0), false),
            ("as many bytes", (1, 1, 8 << 20), false),
        ];
        for (name, (messages, items, bytes), want) in cases {
            assert_eq!(Load { messages, items, bytes }.has_room(2), want, "{name}");
        }
    }

    #[test]
    fn all_that_arrives_counts() {
        let mut gathered = Gathered::default();
        gathered.message("one".to_owned());
        for crawl in ["a", "b\n"] {
            let info = UrlInfo {
                url: "http://a.example/".to_owned(),
                crawl_id: crawl.to_owned(),
                ..UrlInfo::default()
            };
            gathered.item(info, Word::Found);
        }
        // The second is malformed, so that nothing of it is held.
        let bytes = "one".len() + "a".len() + size_of::<Item>() + "http://a.example/".len();
        assert_eq!(gathered.load(), Load { messages: 1, items: 2, bytes });
        let twice = gathered.load() + gathered.load();
        assert_eq!(twice, Load { messages: 2, items: 4, bytes: 2 * bytes });
    }
}
