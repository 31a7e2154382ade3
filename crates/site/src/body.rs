//! A body on its way to a client.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use crate::log::Open;

/// How long a body that is cut waits, so that what came before is sent and not lost with the connection.
const BEFORE_THE_CUT: Duration = Duration::from_millis(20);

/// The body of an answer. The request is over when it is dropped.
pub(crate) struct Sending {
    rest: Bytes,
    /// How long the body says it is.
    length: u64,
    cut: Option<Cut>,
    open: Open,
}

enum Cut {
    /// The rest is still to come.
    Ahead,
    Now(Pin<Box<Sleep>>),
}

impl Sending {
    pub(crate) fn new(body: Bytes, cut_after: Option<usize>, mut open: Open) -> Self {
        let (length, mut rest) = (body.len() as u64, body);
        let cut = cut_after.filter(|bytes| *bytes < rest.len());
        open.whole = rest.is_empty();
        if let Some(bytes) = cut {
            rest.truncate(bytes);
        }
        Self { rest, length, cut: cut.map(|_| Cut::Ahead), open }
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        if !this.rest.is_empty() {
            this.open.whole = this.cut.is_none();
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.rest)))));
        }
        if let Some(cut) = &mut this.cut {
            if let Cut::Ahead = cut {
                *cut = Cut::Now(Box::pin(tokio::time::sleep(BEFORE_THE_CUT)));
            }
            if let Cut::Now(sleep) = cut {
                std::task::ready!(sleep.as_mut().poll(context));
            }
            return Poll::Ready(Some(Err(io::Error::other("cut, as the description asks"))));
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.cut.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}
