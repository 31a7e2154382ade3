//! Items that have arrived and go to the queue together.

use forager_frontier::verbs::{Action, Discovery, Item, Put, Word};

use crate::limits::MAX_METADATA_BYTES;
use crate::metadata;
use crate::names;
use crate::proto::UrlInfo;
use crate::proto::ack_message::Status;

/// Where StormCrawler tells which status a page was fetched with.
const STATUS: &str = "fetch.statusCode";
/// Where it tells which pages led to a URL; the last one links to it.
const PATH: &str = "url.path";

/// Items that have arrived and go to the queue together, as one call.
#[derive(Default)]
pub(crate) struct Gathered {
    /// What the queue is asked: runs of items of one collection.
    pub(crate) puts: Vec<Put>,
    /// The messages that they came with.
    messages: Vec<Message>,
    /// For each item whether the queue is asked; what is malformed is skipped without.
    asked: Vec<bool>,
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

    /// A message has arrived; its items follow.
    pub(crate) fn message(&mut self, id: String) {
        self.messages.push(Message { id, items: 0 });
    }

    /// An item of the last message.
    pub(crate) fn item(&mut self, info: UrlInfo, word: Word) {
        match word {
            Word::Found => self.found += 1,
            Word::Done => self.completed += 1,
            Word::Due(_) => {}
        }
        let item = self.taken(info, word);
        self.asked.push(item.is_some());
        if let Some(message) = self.messages.last_mut() {
            message.items += 1;
        }
        if let (Some(item), Some(put)) = (item, self.puts.last_mut()) {
            put.items.push(item);
        }
    }

    /// The item as the queue has it, when its collection is the last that is asked; none if it is malformed.
    fn taken(&mut self, info: UrlInfo, word: Word) -> Option<Item> {
        let metadata = metadata::to_text(&info.metadata);
        if metadata.as_ref().is_some_and(|text| text.len() > MAX_METADATA_BYTES) {
            return None;
        }
        let crawl = names::crawl(&info.crawl_id);
        if self.puts.last().is_none_or(|put| put.collection != crawl) {
            if !names::is_crawl(crawl) {
                return None;
            }
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

fn status_of(action: Action) -> Status {
    match action {
        Action::Added | Action::Improved => Status::Ok,
        Action::Kept | Action::Removed | Action::Ignored | Action::Invalid => Status::Skipped,
    }
}
