//! What is answered without a token: soon, and so much at a time on each connection, so that nobody takes the place of
//! others. Who watches stays, and does not take the place of questions.

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

use crate::connections::Client;
use crate::limits::{FIRST_WORD, MAX_QUESTIONS, MAX_WATCHES};

/// What goes on until the client leaves; all else is answered at once.
const WATCH: &str = "/Watch";

/// The room that a connection has for calls without a token.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    questions: Arc<Semaphore>,
    watches: Arc<Semaphore>,
}

impl Room {
    pub(crate) fn new() -> Self {
        let [questions, watches] = [MAX_QUESTIONS, MAX_WATCHES].map(|most| Arc::new(Semaphore::new(most)));
        Self { questions, watches }
    }
}

/// A service for anybody.
#[derive(Clone)]
pub(crate) struct ForAnybody<S> {
    service: S,
}

impl<S> ForAnybody<S> {
    pub(crate) fn new(service: S) -> Self {
        Self { service }
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
        let stays = request.uri().path().ends_with(WATCH);
        let room = request.extensions().get::<Client>().map(|client| client.room.clone());
        let room = room.map(|room| if stays { room.watches } else { room.questions });
        let Some(Ok(place)) = room.map(Semaphore::try_acquire_owned) else {
            let refused =
                Status::resource_exhausted("too many calls without a token on one connection at a time");
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
