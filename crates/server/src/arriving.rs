//! Messages on their way: what is kept of those that have begun to arrive is bounded, and the rest is not waited for
//! for ever.
//!
//! The transport keeps what has come of a message until all of it has, in room for the whole, and keeps that room for
//! the next one. So the largest message of a call counts as long as the call goes on, and those of all calls together
//! have a limit. Small ones do not count: every call takes room for one, and there are only so many calls. What comes packed is unpacked into room of
//! its own, which is kept as long: how much that is shows where the message is read ([`Unpacked`]).

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use http_body::{Frame, SizeHint};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;
use tonic::codegen::http::Request;

use crate::budget::{Budget, Largest};
use crate::connections::{Client, Cutter};
use crate::limits::{MAX_MESSAGE_BYTES, MESSAGE_TIME, SMALL_MESSAGE};

/// How many bytes stand before each message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// What says how the messages of a call are packed.
const PACKED: &str = "grpc-encoding";

tokio::task_local! {
    /// What the unpacked messages of the call that is answered count among, for what reads them, which is told nothing of
    /// the call; none if it packs nothing.
    static UNPACKED: Option<Budget>;
}

/// What unpacked messages count among, if a call packs any.
pub(crate) fn packed(request: &Request<Body>, budget: &Budget) -> Option<Budget> {
    let is_packed = request.headers().get(PACKED).is_some_and(|form| form != "identity");
    is_packed.then(|| budget.clone())
}

/// Answers a call whose unpacked messages count among others.
pub(crate) async fn unpacking<F: Future>(budget: Option<Budget>, answer: F) -> F::Output {
    UNPACKED.scope(budget, answer).await
}

/// What is unpacked of a call: its largest message counts as long as the call is read.
#[derive(Debug, Default)]
pub(crate) struct Unpacked(Option<Largest>);

impl Unpacked {
    /// That of the call that is answered.
    pub(crate) fn of_this_call() -> Self {
        let budget = UNPACKED.try_with(Clone::clone).ok().flatten();
        Self(budget.as_ref().map(Largest::of))
    }

    /// A message has so many bytes. An error ends the call, and with it the room that they were unpacked into.
    pub(crate) fn holds(&mut self, bytes: usize) -> Result<(), Status> {
        match &mut self.0 {
            Some(largest) if bytes >= SMALL_MESSAGE => largest.hold(bytes),
            _ => Ok(()),
        }
    }
}

/// A request whose messages count while they arrive.
pub(crate) fn counted(request: Request<Body>, budget: &Budget) -> Request<Body> {
    let cutter = request.extensions().get::<Client>().map(|client| client.cutter.clone());
    request.map(|body| Body::new(Arriving::new(body, budget, cutter)))
}

/// Messages that arrive.
struct Arriving {
    body: Body,
    messages: Messages,
    /// The largest message that was not whole at once.
    largest: Largest,
    cutter: Option<Cutter>,
    /// When the rest of a message has to be there.
    due: Due,
    /// Breaks the connection when it is not. It runs whether anything is read or not: a client that takes no
    /// acknowledgements is not read any more, and would have its room for ever. One runs for all messages of a call, once a
    /// large one has begun.
    watchdog: Option<AbortOnDropHandle<()>>,
}

/// When something has to be there, if it has.
type Due = Arc<Mutex<Option<Instant>>>;

impl Arriving {
    fn new(body: Body, budget: &Budget, cutter: Option<Cutter>) -> Self {
        let (messages, largest) = (Messages::default(), Largest::of(budget));
        Self { body, messages, largest, cutter, due: Due::default(), watchdog: None }
    }

    /// Bytes have come. An error ends the call.
    fn heard(&mut self, bytes: &[u8]) -> Result<(), Status> {
        let is_end = self.messages.heard(bytes);
        let len = self.messages.len;
        // One that is too large is refused as soon as its length is known.
        let is_whole = self.messages.missing == 0;
        let is_waited_for = !is_whole && (SMALL_MESSAGE..=MAX_MESSAGE_BYTES).contains(&len);
        if is_waited_for {
            self.largest.hold(len)?;
        }
        if is_end || is_waited_for {
            self.wait(is_end, is_waited_for);
        }
        Ok(())
    }

    /// Gives the rest of a message its time, unless that runs already, which it does not if another one has ended.
    fn wait(&mut self, is_end: bool, is_waited_for: bool) {
        let Some(cutter) = &self.cutter else { return };
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let running = due.filter(|_| !is_end);
        *due = is_waited_for.then(|| running.unwrap_or_else(|| Instant::now() + MESSAGE_TIME));
        if is_waited_for && self.watchdog.is_none() {
            let watch = watch(self.due.clone(), cutter.clone());
            self.watchdog = Some(AbortOnDropHandle::new(tokio::spawn(watch)));
        }
    }
}

/// Breaks a connection when something is not there that has to be.
async fn watch(due: Due, cutter: Cutter) {
    loop {
        let now = Instant::now();
        let next = *due.lock().unwrap_or_else(PoisonError::into_inner);
        if next.is_some_and(|next| next <= now) {
            return cutter.cut();
        }
        // What begins meanwhile has as long, too.
        sleep_until(next.unwrap_or(now + MESSAGE_TIME)).await;
    }
}

impl http_body::Body for Arriving {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(bytes) = frame.data_ref()
        {
            self.heard(bytes)?;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Where one message ends and the next begins.
#[derive(Debug, Default)]
struct Messages {
    prefix: [u8; PREFIX],
    /// How much of the prefix has come.
    known: usize,
    /// The length of the message that has begun last.
    len: usize,
    /// How much of it is still to come.
    missing: usize,
}

impl Messages {
    /// Bytes have come. Says whether a message ended with them, or within.
    fn heard(&mut self, mut bytes: &[u8]) -> bool {
        let mut is_end = false;
        while !bytes.is_empty() {
            if self.missing > 0 {
                let taken = self.missing.min(bytes.len());
                self.missing -= taken;
                bytes = &bytes[taken..];
                is_end |= self.missing == 0;
                continue;
            }
            let taken = bytes.len().min(PREFIX - self.known);
            self.prefix[self.known..self.known + taken].copy_from_slice(&bytes[..taken]);
            self.known += taken;
            bytes = &bytes[taken..];
            if self.known == PREFIX {
                let [_, len @ ..] = self.prefix;
                self.len = usize::try_from(u32::from_be_bytes(len)).unwrap_or(usize::MAX);
                (self.known, self.missing) = (0, self.len);
            }
        }
        is_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of so many bytes as it is sent.
    fn message(len: usize) -> Vec<u8> {
        [&[0][..], &u32::try_from(len).unwrap().to_be_bytes(), &vec![7; len]].concat()
    }

    #[test]
    fn where_messages_end_does_not_depend_on_the_pieces_they_come_in() {
        let lens = [3, 0, 70_000, 1, 20_000];
        let bytes = lens.map(message).concat();
        for size in [1, 2, 5, 7, 16 << 10, bytes.len()] {
            let (mut messages, mut ends) = (Messages::default(), 0);
            for piece in bytes.chunks(size) {
                ends += usize::from(messages.heard(piece));
            }
            assert_eq!((messages.known, messages.len, messages.missing), (0, 20_000, 0), "{size}");
            assert!((1..=4).contains(&ends), "{size}: {ends}"); // one that says nothing has no end
        }
        let mut messages = Messages::default();
        assert!(messages.heard(&bytes[..bytes.len() - 1]), "those before it");
        assert_eq!((messages.len, messages.missing), (20_000, 1));
        assert!(messages.heard(&bytes[bytes.len() - 1..]));
    }

    fn arriving(budget: &Budget) -> Arriving {
        arriving_on(budget, None)
    }

    fn arriving_on(budget: &Budget, cutter: Option<Cutter>) -> Arriving {
        Arriving::new(Body::empty(), budget, cutter)
    }

    #[test]
    fn the_largest_message_of_a_call_counts_as_long_as_it_goes_on() {
        let budget = Budget::new(100 << 10, "no room");
        let is_left = |bytes: usize| budget.add(bytes).is_ok();
        let mut call = arriving(&budget);
        for (name, len, left) in [
            ("small", SMALL_MESSAGE - 1, 100 << 10),
            ("larger", 40 << 10, 60 << 10),
            ("less", 30 << 10, 60 << 10),
            ("more", 50 << 10, 50 << 10),
        ] {
            let message = message(len);
            for piece in message.chunks(16 << 10) {
                call.heard(piece).unwrap();
            }
            assert!(is_left(left) && !is_left(left + 1), "{name}");
        }
        call.heard(&message(MAX_MESSAGE_BYTES + 1)[..100]).unwrap();
        assert!(is_left(50 << 10), "the transport refuses that one");
        drop(call);
        assert!(is_left(100 << 10));
    }

    #[tokio::test]
    async fn what_a_call_packs_counts_as_it_is_unpacked() {
        let budget = Budget::new(100 << 10, "no room");
        let is_left = |bytes: usize| budget.add(bytes).is_ok();
        let plain = Request::new(Body::empty());
        assert!(packed(&plain, &budget).is_none());
        unpacking(None, async { Unpacked::of_this_call().holds(200 << 10).unwrap() }).await;
        let request = Request::builder().header(PACKED, "gzip").body(Body::empty()).unwrap();
        let mut call = unpacking(packed(&request, &budget), async { Unpacked::of_this_call() }).await;
        for (name, bytes, left) in [
            ("small", SMALL_MESSAGE - 1, 100 << 10),
            ("larger", 40 << 10, 60 << 10),
            ("less", 20 << 10, 60 << 10),
        ] {
            call.holds(bytes).unwrap();
            assert!(is_left(left) && !is_left(left + 1), "{name}");
        }
        assert_eq!(call.holds(101 << 10).unwrap_err().code(), tonic::Code::ResourceExhausted);
        drop(call);
        assert!(is_left(100 << 10));
    }

    #[test]
    fn one_for_which_there_is_no_room_is_refused_when_its_length_is_known() {
        let budget = Budget::new(100 << 10, "no room");
        let (mut one, mut other) = (arriving(&budget), arriving(&budget));
        one.heard(&message(60 << 10)[..6]).unwrap();
        let refused = other.heard(&message(60 << 10)[..6]).unwrap_err();
        assert_eq!((refused.code(), refused.message()), (tonic::Code::ResourceExhausted, "no room"));
        arriving(&budget).heard(&message(SMALL_MESSAGE - 1)).unwrap();
        drop(one);
        arriving(&budget).heard(&message(60 << 10)[..6]).unwrap();
    }
    /// Whether anybody reads on meanwhile or not.
    #[tokio::test(start_paused = true)]
    async fn the_rest_of_a_large_message_has_to_come_in_time() {
        let just_in_time = MESSAGE_TIME * 9 / 10;
        let (budget, message) = (Budget::new(100 << 10, "no room"), message(60 << 10));
        let (start, end) = message.split_at(message.len() - 1);
        let small = self::message(SMALL_MESSAGE - 1);
        let cases: [(&str, &[u8], &[u8], bool); 4] = [
            ("it comes", start, end, false),
            ("and the next begins", start, &[end, start].concat(), true),
            ("nothing comes", start, &[], true),
            ("it is small", &small[..100], &[], false),
        ];
        for (name, first, then, want) in cases {
            let cutter = Cutter::of(&tokio_util::sync::CancellationToken::new());
            let mut call = arriving_on(&budget, Some(cutter.clone()));
            call.heard(first).unwrap();
            tokio::time::sleep(just_in_time).await;
            assert!(!cutter.has_cut(), "{name}");
            call.heard(then).unwrap();
            tokio::time::sleep(just_in_time).await;
            assert!(then.is_empty() || !cutter.has_cut(), "{name}: each message has its time");
            tokio::time::sleep(just_in_time).await;
            assert_eq!(cutter.has_cut(), want, "{name}");
        }
        let cutter = Cutter::of(&tokio_util::sync::CancellationToken::new());
        let mut call = arriving_on(&budget, Some(cutter.clone()));
        let mut watchdogs = std::collections::HashSet::new();
        for _ in 0..9 {
            call.heard(start).unwrap();
            watchdogs.extend(call.watchdog.as_ref().map(|watchdog| watchdog.abort_handle().id()));
            tokio::time::sleep(just_in_time).await;
            call.heard(end).unwrap();
            tokio::time::sleep(MESSAGE_TIME * 2).await;
        }
        assert!(!cutter.has_cut(), "it is always in time");
        assert_eq!(watchdogs.len(), 1, "one for all messages");
        call.heard(start).unwrap();
        drop(call);
        tokio::time::sleep(MESSAGE_TIME * 2).await;
        assert!(!cutter.has_cut(), "the call is over");
    }
}
