//! The figures, by HTTP, and whether the server is there for those who look after it.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use axum::serve::Listener;
use tokio::net::TcpListener;

use crate::connections::{Connection, Door};
use crate::limits::MAX_WATCHERS;
use crate::metrics::Metrics;

/// The format of the figures.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves the figures at `/metrics`, `/healthz` and whether calls are answered at `/readyz`, until it is told to stop. It
/// answers though the queue stalls if it runs beside the calls: a queue in a folder may hold every thread that they have.
pub async fn export(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let readiness = metrics.clone();
    let figures = move || async move { ([(CONTENT_TYPE, OPEN_METRICS)], metrics.text()) };
    let ready = move || async move {
        if readiness.is_ready.load(Ordering::Relaxed) {
            (StatusCode::OK, "ready\n")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
        }
    };
    let router = Router::new()
        .route("/metrics", get(figures))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready));
    let door = Door::new(listener, MAX_WATCHERS);
    axum::serve(door, router).with_graceful_shutdown(stop).await
}

/// Whoever looks after a server asks now and then, and has no need to stay.
impl Listener for Door {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, place) = self.next().await;
        let address = stream.peer_addr().unwrap_or_else(|_| SocketAddr::from(([0; 4], 0)));
        (Connection::brief(stream, place), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.address()
    }
}
