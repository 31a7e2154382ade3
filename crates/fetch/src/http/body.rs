//! Reading a body, as far as it may be read.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ::http::HeaderMap;
use ::http::header::CONTENT_ENCODING;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

use super::decode::{Coding, Decoder};
use super::{CutOff, Limits};
use crate::robots;

/// How many encodings are undone. Nobody needs two; a few are read, so that nobody can ask for many.
const MOST_CODINGS: usize = 3;

/// As much as this every body may have, however little pages may: a robots.txt waits for no list.
const LEAST_USUAL: u64 = robots::MAX_BYTES as u64 + 1;

/// What was read.
pub(super) struct Body {
    pub(super) bytes: Bytes,
    pub(super) wire_bytes: u64,
    pub(super) cut_off: Option<CutOff>,
    pub(super) undecoded: Option<String>,
}

/// What a body may take of memory: as much as all may, or one of a few places for more.
pub(super) struct Room<'a> {
    places: &'a Arc<Semaphore>,
    /// Up to so many bytes no place is needed.
    usual: u64,
    place: Option<OwnedSemaphorePermit>,
    /// How long a body waits for one.
    patience: Duration,
    /// When the body is late. While it waits for a place, it is not.
    clock: Pin<&'a mut Sleep>,
}

impl<'a> Room<'a> {
    pub(super) fn new(places: &'a Arc<Semaphore>, of_client: &Limits, clock: Pin<&'a mut Sleep>) -> Self {
        let usual = of_client.body_bytes.max(LEAST_USUAL);
        Self { places, usual, place: None, patience: of_client.whole, clock }
    }

    /// Waits for a place, if so many bytes need one. Nothing is read or decoded meanwhile. Says whether there is one now, and
    /// was none before: then it is time to get hold of all the memory.
    pub(super) async fn grows_to(&mut self, bytes: usize) -> Result<bool, CutOff> {
        if bytes as u64 <= self.usual || self.place.is_some() {
            return Ok(false);
        }
        let from = Instant::now();
        let place = tokio::time::timeout(self.patience, self.places.clone().acquire_owned()).await;
        // The places are never closed.
        self.place = place.map_err(|_| CutOff::NoRoom)?.ok();
        let end = self.clock.deadline() + from.elapsed();
        self.clock.as_mut().reset(end);
        Ok(true)
    }

    /// The place that the body has, for as long as it is kept.
    pub(super) fn taken(self) -> Option<Arc<OwnedSemaphorePermit>> {
        self.place.map(Arc::new)
    }
}

/// Reads until the end, a limit, an error or the time is over.
pub(super) async fn read(
    incoming: Incoming,
    headers: &HeaderMap,
    (limits, room): (&Limits, &mut Room<'_>),
) -> Body {
    let (codings, undecoded) = codings(headers);
    let mut kept = if codings.is_empty() {
        Kept::Plain(Plain::new(&incoming, limits))
    } else {
        Kept::Decoded(Decoder::new(&codings, limits))
    };
    let (wire_bytes, stopped) = drain(incoming, &mut kept, room).await;
    let (bytes, unfinished) = kept.finish();
    Body { bytes, wire_bytes, cut_off: stopped.or(unfinished), undecoded }
}

/// Moves what comes to `kept`. Says how much came, and why not all of it.
async fn drain(mut incoming: Incoming, kept: &mut Kept, room: &mut Room<'_>) -> (u64, Option<CutOff>) {
    let mut wire_bytes = 0;
    loop {
        let frame = tokio::select! {
            biased;
            frame = incoming.frame() => frame,
            () = room.clock.as_mut() => return (wire_bytes, Some(CutOff::Time)),
        };
        let chunk = match frame.map(|frame| frame.map(hyper::body::Frame::into_data)) {
            Some(Ok(Ok(chunk))) => chunk,
            Some(Ok(Err(_trailers))) => continue,
            Some(Err(_)) => return (wire_bytes, Some(CutOff::Broken)),
            None => return (wire_bytes, None),
        };
        wire_bytes += chunk.len() as u64;
        if let Err(cut_off) = kept.push(chunk, room).await {
            return (wire_bytes, Some(cut_off));
        }
    }
}

enum Kept {
    Plain(Plain),
    Decoded(Decoder),
}

impl Kept {
    async fn push(&mut self, chunk: Bytes, room: &mut Room<'_>) -> Result<(), CutOff> {
        match self {
            Self::Plain(plain) => plain.push(chunk, room).await,
            Self::Decoded(decoder) => decoder.push(&chunk, room).await,
        }
    }

    fn finish(self) -> (Bytes, Option<CutOff>) {
        match self {
            Self::Plain(plain) => (plain.finish(), None),
            Self::Decoded(decoder) => decoder.finish(),
        }
    }
}

/// A body without an encoding. One that comes in one piece is never copied.
struct Plain {
    first: Bytes,
    rest: Vec<u8>,
    /// How long the body says it is; not believed beyond the limit.
    expected: usize,
    limit: usize,
    /// Which limit that is.
    beyond: CutOff,
}

impl Plain {
    fn new(incoming: &Incoming, limits: &Limits) -> Self {
        let is_body_less = limits.body_bytes <= limits.wire_bytes;
        let beyond = if is_body_less { CutOff::BodyLimit } else { CutOff::WireLimit };
        let bounded = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
        let limit = bounded(limits.body_bytes.min(limits.wire_bytes));
        let expected = incoming.size_hint().exact().map_or(0, bounded).min(limit);
        Self { first: Bytes::new(), rest: Vec::new(), expected, limit, beyond }
    }

    async fn push(&mut self, mut chunk: Bytes, room: &mut Room<'_>) -> Result<(), CutOff> {
        let left = self.limit - self.len();
        let is_too_much = chunk.len() > left;
        chunk.truncate(left);
        if room.grows_to(self.len() + chunk.len()).await? {
            self.reserve_all();
        }
        if self.first.is_empty() && self.rest.is_empty() {
            self.first = chunk;
        } else {
            self.append(&chunk);
        }
        if is_too_much { Err(self.beyond) } else { Ok(()) }
    }

    fn len(&self) -> usize {
        self.first.len().max(self.rest.len())
    }

    /// At once and not bit by bit, which would leave pieces of all sizes behind. What is not used takes no memory.
    fn reserve_all(&mut self) {
        self.expected = self.limit;
        self.rest.reserve_exact(self.limit - self.rest.len());
    }

    fn append(&mut self, chunk: &[u8]) {
        if self.rest.is_empty() {
            self.rest.reserve(self.expected.max(self.first.len() + chunk.len()));
            self.rest.extend_from_slice(&self.first);
            self.first = Bytes::new();
        }
        self.rest.extend_from_slice(chunk);
    }

    fn finish(self) -> Bytes {
        if self.rest.is_empty() { self.first } else { self.rest.into() }
    }
}

/// The encodings of a body in the order in which they were applied; or, if they cannot all be
/// undone, none of them and what the server called them.
fn codings(headers: &HeaderMap) -> (Vec<Coding>, Option<String>) {
    let mut known = Vec::new();
    let mut is_known = true;
    for value in headers.get_all(CONTENT_ENCODING) {
        for name in value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            match Coding::named(name) {
                _ if name.is_empty() || name.eq_ignore_ascii_case(b"identity") => {}
                Some(coding) if known.len() < MOST_CODINGS => known.push(coding),
                _ => is_known = false,
            }
        }
    }
    if is_known { (known, None) } else { (Vec::new(), Some(shown(headers))) }
}

fn shown(headers: &HeaderMap) -> String {
    const SHOWN: usize = 100;
    let values =
        headers.get_all(CONTENT_ENCODING).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    values.collect::<Vec<_>>().join(", ").chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use ::http::HeaderValue;

    use super::*;

    #[tokio::test]
    async fn a_body_is_not_late_for_its_wait() {
        const A_WHILE: Duration = Duration::from_millis(50);
        const USUAL: usize = 1_000_000;
        let limits = Limits { body_bytes: USUAL as u64, ..Limits::default() };
        let places = Arc::new(Semaphore::new(0));
        let clock = std::pin::pin!(tokio::time::sleep(Duration::from_mins(1)));
        let end = clock.deadline();
        let mut room = Room::new(&places, &limits, clock);
        assert_eq!(room.grows_to(USUAL).await, Ok(false), "that is as much as all may have");
        let (grows, ()) = tokio::join!(room.grows_to(USUAL + 1), async {
            tokio::time::sleep(A_WHILE).await;
            places.add_permits(1);
        });
        assert_eq!(grows, Ok(true));
        assert!(room.clock.deadline() >= end + A_WHILE);
        assert_eq!(room.grows_to(USUAL + 2).await, Ok(false), "it has its place already");
    }

    #[test]
    fn encodings_are_known_by_their_names() {
        use Coding::{Brotli, Deflate, Gzip, Zstd};
        let cases: [(&[&str], &[Coding], Option<&str>); 12] = [
            (&[], &[], None),
            (&["gzip"], &[Gzip], None),
            (&["x-gzip"], &[Gzip], None),
            (&[" GZIP "], &[Gzip], None),
            (&["br"], &[Brotli], None),
            (&["zstd"], &[Zstd], None),
            (&["identity"], &[], None),
            (&["", ","], &[], None),
            (&["deflate, gzip"], &[Deflate, Gzip], None),
            (&["gzip", "br"], &[Gzip, Brotli], None),
            (&["gzip, snappy"], &[], Some("gzip, snappy")),
            (&["gzip, gzip, gzip, gzip"], &[], Some("gzip, gzip, gzip, gzip")),
        ];
        for (values, want, undecoded) in cases {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_ENCODING, HeaderValue::from_static(value));
            }
            assert_eq!(codings(&headers), (want.to_vec(), undecoded.map(str::to_owned)), "{values:?}");
        }
    }
}
