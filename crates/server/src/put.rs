//! `PutURLs` and `PutDiscovered`: what clients say of URLs.

use forager_frontier::Moment;
use forager_frontier::verbs::Word;

use crate::exchange::Exchange;
use crate::gathered::Gathered;
use crate::limits::MAX_ID_BYTES;
use crate::proto::ack_message::Status;
use crate::proto::url_item::Item;
use crate::proto::{AckMessage, BatchAck, DiscoveredBatch, UrlInfo, UrlItem};

/// `PutURLs`: each item is acknowledged by itself.
pub(crate) struct Items;

impl Exchange for Items {
    type Message = UrlItem;
    type Ack = AckMessage;

    fn gather(message: UrlItem, gathered: &mut Gathered) {
        let (info, word) = match message.item {
            Some(Item::Discovered(item)) => (item.info, Word::Found),
            Some(Item::Known(item)) => (item.info, known(item.refetchable_from_date)),
            None => (None, Word::Done), // without a URL, so that it is skipped
        };
        let mut info: UrlInfo = info.unwrap_or_default();
        if message.id.len() > MAX_ID_BYTES {
            info = UrlInfo::default(); // so that it is skipped
        }
        gathered.message(if message.id.is_empty() { info.url.clone() } else { message.id });
        gathered.item(info, word);
    }

    fn ack(id: String, statuses: &[Status]) -> AckMessage {
        let status = statuses.first().copied().unwrap_or(Status::Skipped);
        AckMessage { id, status: status.into() }
    }
}

/// `PutDiscovered`: a batch is acknowledged as one, with a status for each of its items.
pub(crate) struct Batches;

impl Exchange for Batches {
    type Message = DiscoveredBatch;
    type Ack = BatchAck;

    fn gather(message: DiscoveredBatch, gathered: &mut Gathered) {
        let is_named = message.id.len() <= MAX_ID_BYTES;
        gathered.message(message.id);
        gathered.expect(message.items.len());
        for info in message.items {
            gathered.item(if is_named { info } else { UrlInfo::default() }, Word::Found);
        }
    }

    fn ack(id: String, statuses: &[Status]) -> BatchAck {
        BatchAck { id, statuses: statuses.iter().map(|&status| status.into()).collect() }
    }
}

/// What a client says of a URL that it knows: when it may be fetched again, or that it never is.
fn known(date: u64) -> Word {
    match date {
        0 => Word::Done,
        second => Word::Due(moment(second)),
    }
}

/// A time of a client. What lies further off than the queue can keep is as far as it can.
pub(crate) fn moment(second: u64) -> Moment {
    Moment::from_millisecond(second.saturating_mul(1000))
}
