//! The demonstration web by itself, for crawlers of others: `demo_site`.
//!
//! It prints one line of JSON when it is ready: its port, and the address of each host. At SIGTERM it prints another:
//! every request that it saw.

use std::io::Write as _;

use forager_site::{Server, demo_site};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let running = Server::start(demo_site(1), Timestamp::now).await?;
    let mut terminated = signal(SignalKind::terminate())?;
    let addresses = running.addresses().iter();
    let hosts: Map<String, Value> =
        addresses.map(|(name, address)| (name.clone(), address.ip().to_string().into())).collect();
    say(&json!({"port": running.port(), "hosts": hosts}))?;
    terminated.recv().await;
    let seen: Vec<Value> = running
        .log()
        .snapshot()
        .iter()
        .map(|seen| json!({"host": &*seen.host, "path": seen.path, "status": seen.status}))
        .collect();
    say(&json!(seen))
}

fn say(line: &Value) -> std::io::Result<()> {
    writeln!(std::io::stdout().lock(), "{line}")
}
