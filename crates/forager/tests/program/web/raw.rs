//! Servers that answer with bytes of their own, where a proper one would not.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What answers a request for a path.
type Serve = dyn Fn(&str, &mut TcpStream) -> std::io::Result<()> + Send + Sync;

/// A server at an address of its own. Every connection serves one request.
pub(crate) struct Raw {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Raw {
    /// Serves for as long as the test runs.
    pub(crate) fn new(
        ip: &str,
        serve: impl Fn(&str, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let (address, asked) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<String>>>::default());
        let (serve, log): (Arc<Serve>, _) = (Arc::new(serve), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (serve, log) = (serve.clone(), log.clone());
                std::thread::spawn(move || answer(stream, &*serve, &log));
            }
        });
        Self { address, asked }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The paths that were asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, serve: &Serve, log: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let head: Vec<String> =
        lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let Some(path) = head.first().and_then(|line| line.split(' ').nth(1)) else { return };
    log.lock().unwrap().push(path.to_owned());
    if path == "/robots.txt" {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
    }
    // A client that has seen enough closes; that is what is tested.
    let _ = serve(path, &mut stream);
}
