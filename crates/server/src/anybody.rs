//! What is answered without a token: soon, and to so many at a time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{BoxFuture, Bytes, Service};
use tonic::server::NamedService;

use crate::limits::{FIRST_WORD, MAX_STRANGERS};

/// A service for anybody.
#[derive(Clone)]
pub(crate) struct ForAnybody<S> {
    service: S,
    room: Arc<Semaphore>,
}

impl<S> ForAnybody<S> {
    pub(crate) fn new(service: S) -> Self {
        Self { service, room: Arc::new(Semaphore::new(MAX_STRANGERS)) }
    }
}

impl<S: NamedService> NamedService for ForAnybody<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for ForAnybody<S>
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
        let Ok(place) = self.room.clone().try_acquire_owned() else {
            let refused = Status::resource_exhausted("too many ask at a time");
            return Box::pin(async move { Ok(refused.into_http()) });
        };
        // There is an answer when all of the question has come.
        let answer = tokio::time::timeout(FIRST_WORD, self.service.call(request));
        Box::pin(async move {
            let Ok(answer) = answer.await else {
                return Ok(Status::deadline_exceeded("the question did not come in time").into_http());
            };
            Ok(answer?.map(|body| Body::new(Answer { body, _place: place })))
        })
    }
}

/// An answer, which has its place as long as it goes on.
struct Answer {
    body: Body,
    _place: OwnedSemaphorePermit,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
