//! Streams in which every message is acknowledged.
//!
//! What has arrived is gathered and goes to the queue in one call; the next messages are gathered while that call is
//! under way. Nothing is read that could not be acknowledged within the budget of the stream, and no acknowledgement is
//! made before its reader has room for it: whoever is slow is made to wait by the transport.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::vec;

use futures_util::Stream;
use tokio::task::JoinHandle;
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::{Code, Status, Streaming};

use crate::gathered::{Gathered, Load};
use crate::proto::ack_message;
use crate::shared::Shared;
use crate::status;

/// What goes in and what comes back.
pub(crate) trait Exchange: Send + 'static {
    /// What a client sends.
    type Message: Send + 'static;
    /// What it gets for it.
    type Ack: Unpin + Send + 'static;

    /// Takes in a message.
    fn gather(message: Self::Message, gathered: &mut Gathered);
    /// The acknowledgement of a message, with the statuses of its items.
    fn ack(id: String, statuses: &[ack_message::Status]) -> Self::Ack;
}

/// The acknowledgements of a stream.
pub(crate) struct Answers<E: Exchange> {
    shared: Arc<Shared>,
    /// None when nothing more is read: what was kept for the rest goes with it, however slowly answers are taken.
    inbound: Option<Streaming<E::Message>>,
    /// How many messages may be here.
    most: usize,
    gathered: Gathered,
    /// The call that is under way, and how much it is for.
    writing: Option<(Load, JoinHandle<Vec<E::Ack>>)>,
    ready: vec::IntoIter<E::Ack>,
    /// How much those that are ready are for, until the last of them is sent.
    answered: Load,
    /// How many bytes of this stream count among those of all.
    counted: usize,
    /// Set when nothing more is read.
    end: Option<Result<(), Status>>,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<E: Exchange> Answers<E> {
    pub(crate) fn new(shared: Arc<Shared>, inbound: Streaming<E::Message>, most: usize) -> Self {
        let closing = Box::pin(shared.closing.clone().cancelled_owned());
        Self {
            shared,
            inbound: Some(inbound),
            most,
            gathered: Gathered::default(),
            writing: None,
            ready: Vec::new().into_iter(),
            answered: Load::default(),
            counted: 0,
            end: None,
            closing,
        }
    }

    /// Reads what has arrived, as far as there is room.
    fn read(&mut self, cx: &mut Context<'_>) {
        if self.end.is_none() && self.closing.as_mut().poll(cx).is_ready() {
            self.refuse(cx);
        }
        let under_way = self.under_way();
        while self.end.is_none() && self.has_room(self.gathered.load() + under_way) {
            match self.poll_message(cx) {
                Poll::Ready(Some(Ok(message))) => E::gather(message, &mut self.gathered),
                Poll::Ready(Some(Err(status))) => self.end = Some(end_of(status)),
                Poll::Ready(None) => self.end = Some(Ok(())),
                Poll::Pending => return,
            }
        }
        if self.end.is_some() {
            self.inbound = None;
        }
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<E::Message, Status>>> {
        match &mut self.inbound {
            Some(inbound) => Pin::new(inbound).poll_next(cx),
            None => Poll::Ready(None),
        }
    }

    /// Whether one more message may come in.
    fn has_room(&self, load: Load) -> bool {
        let others = self.shared.unacked.load(Ordering::Relaxed).saturating_sub(self.counted);
        load.has_room(self.most) && load.has_room_beside(others)
    }

    /// Counts what this stream holds now.
    fn count(&mut self) {
        let bytes = (self.gathered.load() + self.under_way()).bytes;
        let (all, before) = (&self.shared.unacked, std::mem::replace(&mut self.counted, bytes));
        if bytes > before {
            all.fetch_add(bytes - before, Ordering::Relaxed);
        } else if bytes < before {
            all.fetch_sub(before - bytes, Ordering::Relaxed);
        }
    }

    /// How much has been gathered before and is not acknowledged yet.
    fn under_way(&self) -> Load {
        let writing = self.writing.as_ref().map(|(load, _)| *load).unwrap_or_default();
        if self.ready.len() == 0 { writing } else { writing + self.answered }
    }

    /// The server is being stopped: what was gathered is kept, what else has arrived fails, and the stream ends.
    fn refuse(&mut self, cx: &mut Context<'_>) {
        let mut refused = Gathered::default();
        self.end = Some(Err(status::closing()));
        while refused.load().has_room(self.most) {
            match self.poll_message(cx) {
                Poll::Ready(Some(Ok(message))) => E::gather(message, &mut refused),
                Poll::Ready(None) => {
                    self.end = Some(Ok(()));
                    break;
                }
                Poll::Ready(Some(Err(_))) | Poll::Pending => break,
            }
        }
        let statuses = refused.statuses(None);
        self.shared.metrics.put(&refused, &statuses);
        let earlier = std::mem::take(&mut self.ready);
        self.ready = earlier.chain(refused.acknowledge(&statuses, E::ack)).collect::<Vec<_>>().into_iter();
    }

    /// Has the queue asked for what was gathered.
    fn write(&mut self) {
        if self.writing.is_some() || self.gathered.len() == 0 {
            return;
        }
        let (gathered, shared) = (std::mem::take(&mut self.gathered), self.shared.clone());
        let load = gathered.load();
        // Of its own, so that a client that leaves cannot end it half-way.
        let task = self.shared.tasks.spawn(async move { written::<E>(&shared, gathered).await });
        self.writing = Some((load, task));
    }

    /// Takes over the acknowledgements of a call that has ended.
    fn take_written(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((load, task)) = &mut self.writing else { return Poll::Pending };
        let Poll::Ready(written) = Pin::new(task).poll(cx) else { return Poll::Pending };
        self.answered = *load;
        self.writing = None;
        if let Ok(acks) = written {
            self.ready = acks.into_iter();
        } else {
            let words = "the server failed; what was not acknowledged may be sent again";
            self.end = Some(Err(Status::internal(words)));
        }
        Poll::Ready(())
    }
}

/// Asks the queue, and acknowledges what it says.
async fn written<E: Exchange>(shared: &Shared, gathered: Gathered) -> Vec<E::Ack> {
    let told =
        if gathered.puts.is_empty() { Ok(Vec::new()) } else { shared.put_in_time(&gathered.puts).await };
    if let Err(error) = &told {
        shared.failed(error);
    }
    let statuses = gathered.statuses(told.as_deref().ok());
    shared.metrics.put(&gathered, &statuses);
    gathered.acknowledge(&statuses, E::ack)
}

/// How a stream ends whose messages cannot be read any more.
fn end_of(status: Status) -> Result<(), Status> {
    match status.code() {
        Code::Cancelled => Ok(()), // the client has left
        Code::OutOfRange => Err(Status::resource_exhausted(status.message())), // as other servers call it
        _ => Err(status),
    }
}

impl<E: Exchange> Stream for Answers<E> {
    type Item = Result<E::Ack, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(ack) = this.ready.next() {
                return Poll::Ready(Some(Ok(ack)));
            }
            let came = this.take_written(cx);
            // The next call is under way before the acknowledgements of the last are sent.
            this.read(cx);
            let is_new = this.writing.is_none() && this.gathered.len() > 0;
            let is_long = is_new && this.gathered.load().takes_long();
            this.write();
            this.count();
            if is_long {
                // The call waits for this thread, on which no other can take it over. It goes first, and whoever has time
                // goes on with the stream: else what arrives meanwhile would be read before, and not beside it.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if came.is_ready() || is_new || this.ready.len() > 0 {
                continue;
            }
            if this.writing.is_some() {
                return Poll::Pending;
            }
            return match &mut this.end {
                None => Poll::Pending,
                Some(end) => Poll::Ready(std::mem::replace(end, Ok(())).err().map(Err)),
            };
        }
    }
}

impl<E: Exchange> Drop for Answers<E> {
    fn drop(&mut self) {
        self.shared.unacked.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

// Nothing in it is pinned but what is boxed.
impl<E: Exchange> Unpin for Answers<E> {}
