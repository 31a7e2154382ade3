//! Items that have arrived and go to the queue together.

use std::ops::Add;

use forager_frontier::verbs::{Item, Put, Word};

use crate::limits::{
    MAX_BYTES_IN_FLIGHT, MAX_ID_BYTES, MAX_ITEMS_IN_FLIGHT, MAX_METADATA_BYTES, MAX_UNACKED_BYTES,
};
use crate::metadata;
use crate::names;
use crate::proto::UrlInfo;
use crate::proto::ack_message::Status;

/// Where StormCrawler tells which status a page was fetched with.
const STATUS: &str = "fetch.statusCode";
/// Where it tells what went wrong, if there was no answer.
const EXCEPTION: &str = "fetch.exception";
/// The least number that is a status.
const LEAST_STATUS: u16 = 100;
/// Where it tells which pages led to a URL; the last one links to it.
const PATH: &str = "url.path";

/// A call for so many items takes longer than it takes to wake another thread.
const LONG_CALL: usize = 100;

/// How much has arrived and waits to be acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) messages: usize,
    items: usize,
    pub(crate) bytes: usize,
}

impl Load {
    /// Whether one more message may come in, where there may be so many of them.
    pub(crate) fn has_room(self, messages: usize) -> bool {
        self.messages < messages && self.items < MAX_ITEMS_IN_FLIGHT && self.bytes < MAX_BYTES_IN_FLIGHT
    }

    /// Whether the queue is busy with it for so long that reading on meanwhile is worth another thread.
    pub(crate) fn takes_long(self) -> bool {
        self.items >= LONG_CALL
    }

    /// Whether one more may, where other streams hold so many bytes. Where all of them hold too much, one that holds
    /// nothing still goes on, so that nobody has to wait for others to read.
    pub(crate) fn has_room_beside(self, others: usize) -> bool {
        self.messages == 0 || others.saturating_add(self.bytes) < MAX_UNACKED_BYTES
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
    /// What is to be known of each item when the queue has answered.
    asked: Vec<Asked>,
    /// Roughly how much memory all of them hold.
    bytes: usize,
    /// How many items were found on a page.
    pub(crate) found: u64,
    /// How many the first collection that is asked may have.
    expected: usize,
}

/// Whether the queue is asked of an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// It is malformed, and skipped without.
    No,
    Yes,
    /// It is, and the item is never to be fetched again.
    AsDone,
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
        // What holds a long name until it is acknowledged could be kept for ever by who reads nothing.
        let id = if id.len() > MAX_ID_BYTES { String::new() } else { id };
        self.bytes += id.len();
        self.messages.push(Message { id, items: 0 });
    }

    /// So many items follow, most likely of the collection that is asked already.
    pub(crate) fn expect(&mut self, items: usize) {
        let items = items.min(MAX_ITEMS_IN_FLIGHT); // those of a batch that says nothing are none in the end
        self.asked.reserve(items);
        if let Some(put) = self.puts.last_mut() {
            put.items.reserve(items);
        } else {
            self.expected = items;
        }
    }

    /// An item of the last message.
    pub(crate) fn item(&mut self, info: UrlInfo, word: Word) {
        self.found += u64::from(word == Word::Found);
        let item = self.taken(info, word);
        self.asked.push(match &item {
            None => Asked::No,
            Some(_) if word == Word::Done => Asked::AsDone,
            Some(_) => Asked::Yes,
        });
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
            let items = Vec::with_capacity(std::mem::take(&mut self.expected));
            self.puts.push(Put { collection: crawl.to_owned(), items });
        }
        let key = Some(info.key).filter(|key| !key.is_empty());
        let told = metadata::first(&info.metadata, STATUS);
        let status = told.and_then(|text| text.parse().ok()).filter(|status| *status >= LEAST_STATUS);
        // Who got no answer says so with a number that is none, such as -1, or says what went wrong.
        let failed = (told.is_some() && status.is_none()) || info.metadata.contains_key(EXCEPTION);
        let source = metadata::last(&info.metadata, PATH).map(str::to_owned);
        Some(Item { url: info.url, key, word, metadata, source, status, failed })
    }

    /// The status of each item, when the queue has answered; none means that it could not.
    pub(crate) fn statuses(&self, told: Option<&[Status]>) -> Vec<Status> {
        let mut answers = told.unwrap_or_default().iter();
        let status = |asked: &Asked| match asked {
            Asked::No => Status::Skipped,
            Asked::Yes | Asked::AsDone if told.is_none() => Status::Fail,
            _ => answers.next().copied().unwrap_or(Status::Skipped),
        };
        self.asked.iter().map(status).collect()
    }

    /// How many items are never to be fetched again.
    pub(crate) fn completed(&self, statuses: &[Status]) -> u64 {
        let is_done =
            |(asked, status): &(&Asked, &Status)| **asked == Asked::AsDone && **status == Status::Ok;
        self.asked.iter().zip(statuses).filter(is_done).count() as u64
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::StringList;

    #[test]
    fn a_stream_holds_so_much_and_no_more() {
        let cases = [
            ("nothing yet", (0, 0, 0), true),
            ("a little", (1, 1_999, (8 << 20) - 1), true),
            ("as many messages as may be", (2, 0, 0), false),
            ("as many items", (1, 2_000, 0), false),
            ("as many bytes", (1, 1, 8 << 20), false),
        ];
        for (name, (messages, items, bytes), want) in cases {
            assert_eq!(Load { messages, items, bytes }.has_room(2), want, "{name}");
        }
    }

    #[test]
    fn all_streams_hold_so_much_and_no_more_but_for_a_message_of_each() {
        let cases = [
            ("the others hold nothing", (9, 9), 0, true),
            ("there is room for a byte", (9, 9), MAX_UNACKED_BYTES - 10, true),
            ("there is none", (9, 9), MAX_UNACKED_BYTES - 9, false),
            ("it holds nothing itself", (0, 0), MAX_UNACKED_BYTES, true),
        ];
        for (name, (messages, bytes), others, want) in cases {
            assert_eq!(Load { messages, items: 0, bytes }.has_room_beside(others), want, "{name}");
        }
    }

    fn item_of(url: &str, pairs: &[(&str, &str)]) -> UrlInfo {
        let list = |value: &str| StringList { values: vec![value.to_owned()] };
        let metadata = pairs.iter().map(|(key, value)| ((*key).to_owned(), list(value))).collect();
        UrlInfo { url: url.to_owned(), metadata, ..UrlInfo::default() }
    }

    #[test]
    fn what_cannot_be_kept_is_not_to_be_sent_again() {
        let mut gathered = Gathered::default();
        gathered.message("batch".to_owned());
        for (url, word) in
            [("http://a.example/", Word::Done), ("", Word::Done), ("http://b.example/", Word::Found)]
        {
            gathered.item(item_of(url, &[]), word);
        }
        let statuses = gathered.statuses(None);
        assert_eq!(statuses, [Status::Fail, Status::Skipped, Status::Fail]);
        assert_eq!(gathered.completed(&statuses), 0, "it failed");
        let statuses = gathered.statuses(Some(&[Status::Ok; 2]));
        assert_eq!(statuses, [Status::Ok, Status::Skipped, Status::Ok]);
        assert_eq!(gathered.completed(&statuses), 1);
    }

    #[test]
    fn a_fetch_without_an_answer_failed() {
        /// What is told of a fetch, and the status and whether it failed.
        type Case = (&'static str, &'static [(&'static str, &'static str)], (Option<u16>, bool));
        let cases: [Case; 6] = [
            ("nothing is told", &[], (None, false)),
            ("a status", &[(STATUS, "404")], (Some(404), false)),
            ("no status", &[(STATUS, "-1")], (None, true)),
            ("nor is this", &[(STATUS, "0")], (None, true)),
            ("an exception", &[(EXCEPTION, "timeout")], (None, true)),
            ("both", &[(STATUS, "200"), (EXCEPTION, "timeout")], (Some(200), true)),
        ];
        for (name, pairs, want) in cases {
            let mut gathered = Gathered::default();
            gathered.item(item_of("http://a.example/", pairs), Word::Done);
            let item = &gathered.puts[0].items[0];
            assert_eq!((item.status, item.failed), want, "{name}");
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
