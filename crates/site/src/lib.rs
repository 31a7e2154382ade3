//! A small web on loopback, with its own log of who asked for what and when.
//!
//! Crawlers are judged here from the other side: what a server saw is no matter of opinion. The same
//! server stands behind `forager demo`, behind the benchmark of whole crawls, and behind tests.
//!
//! 1. A [`Site`] is described: hosts, and for each path what is answered, always or at a certain time.
//! 2. [`Server::start`] serves it, every host at a loopback address of its own.
//! 3. The [`Log`] tells what was asked, and [`checks`] whether it was asked politely.
//!
//! ```
//! # use forager_site::{Answer, Host, Server, Site};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let site = Site::new().host(Host::new("shop.demo").page("/", Answer::html("<h1>Open</h1>")));
//! let running = Server::start(site, jiff::Timestamp::now).await?;
//! assert_eq!(running.url("shop.demo", "/"), format!("http://shop.demo:{}/", running.port()));
//! assert!(running.log().snapshot().is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! What is deliberately absent: TLS, and anything that would need a look at the crawler. Names such as
//! `shop.demo` exist nowhere; a client is told where they lead by [`Running::overrides`].

mod answer;
mod body;
pub mod changes;
pub mod checks;
pub mod demo;
pub mod listing;
mod log;
mod markup;
mod respond;
mod server;
mod site;
pub mod traps;

pub use answer::{Answer, RetryAfter};
pub use demo::demo_site;
pub use log::{Log, Seen};
pub use markup::{Markup, escaped};
pub use server::{Running, Server};
pub use site::{Asked, Host, Make, MakeVersion, Page, Site};
