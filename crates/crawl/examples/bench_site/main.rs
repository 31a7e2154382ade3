//! The site that crawlers are compared on: `bench_site HOSTS PAGES BYTES PORT`.
//!
//! Host `n` is 127.0.0.`n`, all on one port (0 takes a free one). Every page is rendered before the first
//! request, so that a request costs little more than the copy to the socket. The server counts what was
//! asked for, page by page: whether a crawler fetched something twice is not for the crawler to say.
//!
//! It prints one line of JSON with its port when it is ready. `/-/counts` tells the counts, `/-/reset` starts
//! them anew; at SIGTERM they are printed.

mod counts;
mod pages;

use std::convert::Infallible;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};

use counts::Counts;
use pages::Plan;

const ROBOTS: Bytes = Bytes::from_static(b"User-agent: *\nDisallow: /private/\n");

/// The whole site and what was asked of it.
struct Site {
    plan: Plan,
    /// Host by host.
    pages: Vec<Bytes>,
    counts: Counts,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let [hosts @ 1..=250, pages @ 1..=usize::MAX, bytes, port @ 0..=65535] = numbers[..] else {
        anyhow::bail!("takes: hosts (1 to 250), pages of each, bytes of each, port");
    };
    let first = TcpListener::bind((address(0), u16::try_from(port)?)).await?;
    let port = first.local_addr()?.port();
    let plan = Plan { hosts, pages, bytes, port };
    let site = Arc::new(Site { plan, pages: plan.render(), counts: Counts::new(hosts, pages) });
    tokio::spawn(listen(first, 0, site.clone()));
    for host in 1..hosts {
        tokio::spawn(listen(TcpListener::bind((address(host), port)).await?, host, site.clone()));
    }
    let mut terminated = signal(SignalKind::terminate())?;
    writeln!(std::io::stdout(), "{{\"port\":{port}}}")?;
    terminated.recv().await;
    writeln!(std::io::stdout(), "{}", site.counts.to_json())?;
    Ok(())
}

/// The address of a host, counted from zero.
fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, u8::try_from(host + 1).unwrap_or(u8::MAX))
}

async fn listen(listener: TcpListener, host: usize, site: Arc<Site>) {
    // A connection that could not be accepted is the crawler's loss; others go on.
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, host, site.clone()));
        }
    }
}

async fn serve(stream: TcpStream, host: usize, site: Arc<Site>) {
    let _ = stream.set_nodelay(true);
    site.counts.connected(host);
    let answer = |request: Request<Incoming>| {
        let response = site.answer(host, request.uri().path());
        async move { Ok::<_, Infallible>(response) }
    };
    // Crawlers close connections as they like.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), hyper::service::service_fn(answer))
        .await;
    site.counts.disconnected(host);
}

impl Site {
    fn answer(&self, host: usize, path: &str) -> Response<Full<Bytes>> {
        if let Some(page) = self.plan.page_at(path) {
            self.counts.page(host, page);
            return response("text/html; charset=utf-8", self.pages[host * self.plan.pages + page].clone());
        }
        match path {
            "/robots.txt" => {
                self.counts.robots(host);
                response("text/plain; charset=utf-8", ROBOTS)
            }
            "/-/counts" => response("application/json", self.counts.to_json().to_string().into()),
            "/-/reset" => {
                self.counts.reset();
                response("application/json", Bytes::from_static(b"{}"))
            }
            _ => {
                self.counts.missing();
                let mut response = response("text/plain", Bytes::new());
                *response.status_mut() = StatusCode::NOT_FOUND;
                response
            }
        }
    }
}

fn response(media_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
