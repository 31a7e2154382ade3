//! Services as they are offered here: what goes wrong is named as other servers name it, and the streams of those that
//! would go on for ever end when the server does.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::Frame;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, HeaderValue, Request, Response};
use tonic::codegen::{BoxFuture, Bytes, Service};
use tonic::server::NamedService;
use tonic::{Code, Status};

use crate::budget::Budget;
use crate::{arriving, status};

/// Where an answer that has nothing else says what went wrong.
const STATUS: &str = "grpc-status";

/// A service as it is offered.
#[derive(Clone)]
pub(crate) struct Offered<S> {
    service: S,
    /// Ends what is still said; none if the service does so by itself.
    end: Option<CancellationToken>,
    /// What counts messages that arrive; none if they are all small.
    arriving: Option<Budget>,
}

impl<S> Offered<S> {
    /// One that ends its streams by itself, and whose messages may be large.
    pub(crate) fn new(service: S, arriving: Budget) -> Self {
        Self { service, end: None, arriving: Some(arriving) }
    }

    /// One whose streams are ended, and whose messages are small.
    pub(crate) fn until(service: S, end: CancellationToken) -> Self {
        Self { service, end: Some(end), arriving: None }
    }
}

impl<S: NamedService> NamedService for Offered<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Offered<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let end = self.end.clone();
        // Who goes on listening would keep the connection, though nothing more is answered.
        let request = match end.clone() {
            None => request,
            Some(end) => request.map(|body| Body::new(Ending::new(body, end, None))),
        };
        let packed = self.arriving.as_ref().and_then(|budget| arriving::packed(&request, budget));
        let request = match &self.arriving {
            None => request,
            Some(budget) => arriving::counted(request, budget),
        };
        let answer = arriving::unpacking(packed, self.service.call(request));
        Box::pin(async move {
            let mut response = answer.await?;
            rename(response.headers_mut());
            Ok(match end {
                None => response,
                Some(end) => response.map(|body| Body::new(Ending::new(body, end, Some(status::closing())))),
            })
        })
    }
}

/// A message that is too large has another name in the library than with other servers.
fn rename(headers: &mut HeaderMap) {
    let is_too_large =
        headers.get(STATUS).is_some_and(|code| Code::from_bytes(code.as_bytes()) == Code::OutOfRange);
    if is_too_large {
        headers.insert(STATUS, HeaderValue::from(Code::ResourceExhausted as i32));
    }
}

/// What is said, until it is told to end; what there is to say already is said before.
struct Ending {
    body: Body,
    end: Pin<Box<WaitForCancellationFutureOwned>>,
    /// How it ends then, if it is an answer.
    status: Option<Status>,
    is_over: bool,
}

impl Ending {
    fn new(body: Body, end: CancellationToken, status: Option<Status>) -> Self {
        Self { body, end: Box::pin(end.cancelled_owned()), status, is_over: false }
    }
}

impl http_body::Body for Ending {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if frame.is_ready() || self.end.as_mut().poll(cx).is_pending() {
            return frame;
        }
        self.is_over = true;
        let Some(status) = self.status.take() else { return Poll::Ready(None) };
        let mut trailers = HeaderMap::new();
        status.add_header(&mut trailers)?;
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }
}
