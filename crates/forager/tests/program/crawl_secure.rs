//! Certificates: what is not vouched for is not fetched, and an authority of one's own can vouch.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use crate::web::secure::{Identity, NAME, authority, field, params, server_config, signed, signed_by_itself};
use rcgen::date_time_ymd;
use rustls::{ServerConnection, StreamOwned};

/// A server that has a home page and nothing else, for as long as the test runs.
fn serve(identity: Identity) -> SocketAddr {
    let (config, listener) = (Arc::new(server_config(identity)), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(config.clone()).unwrap();
            std::thread::spawn(move || answer(StreamOwned::new(connection, stream)));
        }
    });
    address
}

/// Answers one request. A client that does not trust us says nothing, and goes.
fn answer(mut stream: StreamOwned<ServerConnection, std::net::TcpStream>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let (status, body) =
        if head.starts_with(b"GET / ") { ("200 OK", "<title>Safe</title>") } else { ("404 Not Found", "") };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let _ = stream.write_all((head + body).as_bytes());
    stream.conn.send_close_notify();
    let _ = stream.flush();
}

#[test]
fn a_page_is_fetched_whose_authority_is_trusted() {
    let authority = authority();
    let server = serve(signed(&authority, &params(NAME)));
    let field = field(Some(&authority));
    let url = format!("https://{NAME}:{}/", server.port());
    let ran = field.run(&["crawl", &url, "--out", "pages.jsonl", "--json", "--quiet"]);
    assert_eq!(ran.good_rows()[0]["outcomes"]["200"], 1, "{ran:?}");
    assert_eq!(field.lines("pages.jsonl")[0]["title"], "Safe");
    assert_eq!(field.run(&["links", &url]).good_rows().len(), 0);
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused_by_name() {
    let ours = authority();
    let mut expired = params(NAME);
    (expired.not_before, expired.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(2001, 1, 1));
    let table = [
        (
            "signed by itself",
            signed_by_itself(&params(NAME)),
            true,
            "its certificate is from an unknown authority",
        ),
        (
            "ours, not trusted",
            signed(&ours, &params(NAME)),
            false,
            "its certificate is from an unknown authority",
        ),
        ("another name", signed(&ours, &params("other.test")), true, "its certificate is for another name"),
        ("expired", signed(&ours, &expired), true, "its certificate has expired"),
    ];
    for (name, identity, is_trusted, problem) in table {
        let server = serve(identity);
        let field = field(Some(&ours).filter(|_| is_trusted));
        let url = format!("https://{NAME}:{}/", server.port());
        let ran = field.run(&["crawl", &url, "--out", "pages.jsonl", "--json", "--quiet"]);
        assert_eq!(ran.status, 9, "{name}: {ran:?}");
        assert!(ran.stderr.contains(problem) && ran.stderr.contains(&url), "{name}: {ran:?}");
        let lines = field.lines("pages.jsonl");
        assert!(lines.iter().all(|line| line["status"].is_null()), "{name}: {lines:?}");
        let ran = field.run(&["links", &url]);
        assert_eq!((ran.status, ran.stdout.as_str()), (9, ""), "{name}: {ran:?}");
        assert!(ran.stderr.contains(problem), "{name}: {ran:?}");
    }
}

#[test]
fn a_file_without_authorities_is_refused_by_name() {
    let field = field(None);
    let text = std::fs::read_to_string(field.file("forager.toml")).unwrap();
    std::fs::write(field.file("forager.toml"), text + "authorities = [\"none.pem\"]\n").unwrap();
    for (content, problem) in [(None, "No such file"), (Some("words"), "none.pem")] {
        content.inspect(|content| std::fs::write(field.file("none.pem"), content).unwrap());
        let ran = field.run(&["crawl", &format!("https://{NAME}/")]);
        assert_eq!((ran.status, ran.stdout.as_str()), (4, ""), "{ran:?}");
        assert!(ran.stderr.contains("cannot read the authorities in none.pem"), "{ran:?}");
        assert!(ran.stderr.contains(problem), "{ran:?}");
    }
}
