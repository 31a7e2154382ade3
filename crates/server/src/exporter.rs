//! The figures, by HTTP.

use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// The format of the figures.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves the figures at `/metrics` until it is told to stop.
pub async fn export(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let figures = move || async move { ([(CONTENT_TYPE, OPEN_METRICS)], metrics.text()) };
    let router = Router::new().route("/metrics", get(figures));
    axum::serve(listener, router).with_graceful_shutdown(stop).await
}
