//! The figures, by HTTP, and whether the server is there for those who look after it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// The format of the figures.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves the figures at `/metrics`, `/healthz` and whether calls are answered at `/readyz`, until it is told to stop.
pub async fn export(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
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
    axum::serve(listener, router).with_graceful_shutdown(stop).await
}
