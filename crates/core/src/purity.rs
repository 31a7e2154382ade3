//! Proof that the bans in `clippy.toml` work: each function below does what core must not, and
//! *expects* the lint. A ban that no longer fires leaves an unfulfilled expectation, which
//! `make lint` reports as an error.
#![allow(dead_code, reason = "these are read by clippy, never run")]

#[expect(clippy::disallowed_methods)]
fn reads_the_monotonic_clock() {
    let _ = std::time::Instant::now();
}

#[expect(clippy::disallowed_methods)]
fn reads_the_wall_clock() {
    let _ = std::time::SystemTime::now();
}

#[expect(clippy::disallowed_methods)]
fn starts_a_thread() {
    std::thread::spawn(|| {});
}

#[expect(clippy::disallowed_methods)]
fn scopes_a_thread() {
    std::thread::scope(|_| {});
}

#[expect(clippy::disallowed_methods)]
fn sleeps() {
    std::thread::sleep(core::time::Duration::ZERO);
}

#[expect(clippy::disallowed_methods)]
fn reads_a_variable() {
    let _ = std::env::var("HOME");
}

#[expect(clippy::disallowed_methods)]
fn reads_arguments() {
    let _ = std::env::args();
}

#[expect(clippy::disallowed_methods)]
fn reads_a_file() {
    let _ = std::fs::read("x");
}

#[expect(clippy::disallowed_methods)]
fn reads_a_text_file() {
    let _ = std::fs::read_to_string("x");
}

#[expect(clippy::disallowed_methods)]
fn writes_a_file() {
    let _ = std::fs::write("x", "y");
}

#[expect(clippy::disallowed_methods)]
fn reads_input() {
    let _ = std::io::stdin();
}

#[expect(clippy::disallowed_methods)]
fn writes_output() {
    let _ = std::io::stdout();
}

#[expect(clippy::disallowed_methods)]
fn writes_errors() {
    let _ = std::io::stderr();
}

#[expect(clippy::disallowed_methods)]
fn starts_a_process() {
    let _ = std::process::Command::new("true");
}

#[expect(clippy::disallowed_methods)]
fn ends_the_process() {
    std::process::exit(0);
}

#[expect(clippy::print_stdout)]
fn prints() {
    println!();
}

#[expect(clippy::disallowed_types)]
type Opens = std::fs::File;

#[expect(clippy::disallowed_types)]
type Connects = std::net::TcpStream;

#[expect(clippy::disallowed_types)]
type Listens = std::net::TcpListener;

#[expect(clippy::disallowed_types)]
type Sends = std::net::UdpSocket;

#[expect(clippy::disallowed_types)]
type Locks = std::sync::Mutex<()>;

#[expect(clippy::disallowed_types)]
type LocksToRead = std::sync::RwLock<()>;

#[expect(clippy::disallowed_types)]
type HashesAtRandom = std::hash::RandomState;

#[expect(clippy::disallowed_types)]
type MapsAtRandom = std::collections::HashMap<u8, u8>;

#[expect(clippy::disallowed_types)]
type CollectsAtRandom = std::collections::HashSet<u8>;
