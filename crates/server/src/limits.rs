//! Every bound on what comes from clients.

use std::time::Duration;

/// The most bytes of one message; what is larger ends its stream.
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// The most URLs and values of metadata in one message, with their names; of what has more, only what fits is taken in.
/// That is one for every 16 bytes of the largest message: whatever says something has fewer.
pub const MAX_MESSAGE_PARTS: usize = 1 << 18;
/// The most bytes of the headers of one call.
pub const MAX_HEADER_BYTES: u32 = 16 << 10;
/// The most bytes of the metadata of one URL, as they are kept; a URL with more is skipped.
pub const MAX_METADATA_BYTES: usize = 256 << 10;
/// The most bytes of the name of a crawl; a URL of another is skipped.
pub const MAX_CRAWL_BYTES: usize = 1024;
/// The most collections that clients can make; URLs of more fail.
pub const MAX_COLLECTIONS: usize = 10_000;

/// How many items of one stream may have arrived and wait to be acknowledged.
pub const ITEMS_IN_FLIGHT: usize = 1024;
/// How many batches may.
pub const BATCHES_IN_FLIGHT: usize = 16;
/// How many of either, where an operator wants no limit.
pub const MOST_IN_FLIGHT: usize = 1 << 16;

/// How many items of one stream may, however many come in a message. One message may always come in. More of them would not fit
/// into the caches of a processor together, and be taken in more slowly, each looked at from memory again at every step.
pub const MAX_ITEMS_IN_FLIGHT: usize = 2_000;
/// How many bytes of them may.
pub const MAX_BYTES_IN_FLIGHT: usize = 8 << 20;

/// The most URLs that one call hands out.
pub const MAX_HANDED_OUT: usize = 50_000;
/// The most bytes of URLs and their metadata that one call hands out, but for the last of them.
pub const MAX_HANDED_OUT_BYTES: usize = 32 << 20;
/// The most bytes that are handed out or listed and wait for their readers, of all calls.
pub const MAX_UNSENT_BYTES: usize = 256 << 20;
/// The most bytes that have arrived and wait to be acknowledged, of all streams, but for one message of each.
pub const MAX_UNACKED_BYTES: usize = 256 << 20;
/// The least bytes of a message that is not small. The transport has room for one that is with every call, whatever comes:
/// 2 GiB with as many calls as there can be, and as much again if all of them are packed.
pub const SMALL_MESSAGE: usize = 8 << 10;
/// The most bytes of messages that have begun to arrive, of all calls, but for small ones.
pub const MAX_ARRIVING_BYTES: usize = 128 << 20;
/// The most bytes of the name of a message; one with a longer name is skipped. Clients take URLs for names, with the
/// name of a crawl before them.
pub const MAX_ID_BYTES: usize = 128 << 10;
/// The most bytes of the names of queues that one call lists, as they are sent: clients take no larger answer.
pub const MAX_QUEUES_LISTED_BYTES: usize = MAX_MESSAGE_BYTES - (64 << 10);
/// The most queues that one call lists.
pub const MAX_QUEUES_LISTED: usize = 100_000;
/// How many entries are looked at in one go when many are removed.
pub const PAGE: usize = 1000;
/// How many entries are listed in one go.
pub const LIST_PAGE: usize = 250;
/// The most bytes of their URLs and metadata, but for the last of them.
pub const LIST_PAGE_BYTES: usize = 256 << 10;

/// The most connections at a time, where so many files may be open; others wait.
pub const MAX_CONNECTIONS: usize = 1024;
/// The most connections at a time of those who read figures, each of which is given up after [`FIRST_WORD`].
pub const MAX_WATCHERS: usize = 32;
/// The most calls at a time on one connection.
pub const MAX_STREAMS: u32 = 256;
/// How long a connection may take to say who it is: for its handshake, and for the words by which HTTP/2 begins.
pub const FIRST_WORD: Duration = Duration::from_secs(10);
/// How long a message that has begun may take to arrive, unless it is small; then its connection is broken.
pub const MESSAGE_TIME: Duration = Duration::from_mins(1);
/// The most calls at a time on one connection that need no token and are answered at once.
pub const MAX_QUESTIONS: usize = 4;
/// The most of those that go on until the client leaves.
pub const MAX_WATCHES: usize = 4;
/// The most bytes of a message of such a call, and of one that asks what there is.
pub const MAX_QUESTION_BYTES: usize = 4 << 10;
/// How long the queue may take to answer before it counts as away.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How often a silent client is asked whether it is still there, and how long it may take to answer.
pub const KEEPALIVE: Duration = Duration::from_secs(30);
/// How long a client is heard out that has been told all there is.
pub const LAST_WORD: Duration = Duration::from_secs(2);
/// How long the queue may take to answer for what has arrived when the server is stopped; then it fails, while there is
/// still time to say so.
pub const LAST_ANSWER: Duration = Duration::from_secs(8);
/// How long calls may take to end when the server is stopped, and then how long what they leave behind may take.
pub const GRACE: Duration = Duration::from_secs(10);
