//! Encrypted connections, with an authority of our own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod servers;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use forager_fetch::http::{
    Class, ConfigError, Failure, Http, HttpConfig, Limits, Response, TlsReason, authorities_from_pem,
};
use http_body_util::Full;
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use servers::{config, request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const NAME: &str = "secure.example";
/// No headers but the usual ones; else how many, and how long.
const NONE: (usize, usize) = (0, 0);

fn params(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = params(&[]);
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate and its key.
type Identity = (CertificateDer<'static>, PrivateKeyDer<'static>);

fn signed(authority: &Authority, params: &CertificateParams) -> Identity {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    (certificate.der().clone(), PrivateKeyDer::Pkcs8(key.serialize_der().into()))
}

fn signed_by_itself(params: &CertificateParams) -> Identity {
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    (certificate.der().clone(), PrivateKeyDer::Pkcs8(key.serialize_der().into()))
}

/// A server that speaks the first of `protocols` that the client knows, and counts connections.
async fn serve(
    identity: Identity,
    protocols: &[&str],
    headers: (usize, usize),
) -> (SocketAddr, Arc<AtomicUsize>) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let (certificate, key) = identity;
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    tls.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = service_fn(move |_| async move { Ok::<_, Infallible>(page(headers)) });
                let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    (address, connections)
}

fn page((count, length): (usize, usize)) -> hyper::Response<Full<Bytes>> {
    let mut answer = hyper::Response::new(Full::from("secret page"));
    let value = HeaderValue::from_str(&"a".repeat(length)).unwrap();
    for number in 0..count {
        let name = HeaderName::from_bytes(format!("x-{number}").as_bytes()).unwrap();
        answer.headers_mut().insert(name, value.clone());
    }
    answer
}

/// A client that trusts `authority` and finds the server under a name.
fn trusting(authority: &Authority) -> HttpConfig {
    let loopback: IpAddr = "127.0.0.1".parse().unwrap();
    HttpConfig {
        overrides: [(NAME.to_owned(), vec![loopback]), ("other.example".to_owned(), vec![loopback])].into(),
        extra_authorities: authorities_from_pem(authority.pem().as_bytes()).unwrap(),
        ..config()
    }
}

async fn get(config: HttpConfig, host: &str, server: SocketAddr) -> Result<Response, Failure> {
    Http::new(config).unwrap().get(&request(&format!("https://{host}:{}/", server.port()))).await
}

#[tokio::test]
async fn both_versions_of_http_are_spoken() {
    let cases: [(&str, &[&str], hyper::Version); 4] = [
        ("HTTP/2", &["h2", "http/1.1"], hyper::Version::HTTP_2),
        ("HTTP/2 only", &["h2"], hyper::Version::HTTP_2),
        ("HTTP/1.1", &["http/1.1"], hyper::Version::HTTP_11),
        ("nothing agreed", &[], hyper::Version::HTTP_11),
    ];
    let authority = authority("ours");
    for (name, protocols, want) in cases {
        let (server, _) = serve(signed(&authority, &params(&[NAME])), protocols, NONE).await;
        let page = get(trusting(&authority), NAME, server).await.unwrap();
        assert_eq!((page.version, page.status), (want, 200), "{name}");
        assert_eq!(
            (&page.body[..], page.address, page.cut_off),
            (&b"secret page"[..], server, None),
            "{name}"
        );
        assert!(page.timings.connect.is_some(), "{name}");
    }
}

#[tokio::test]
async fn one_connection_of_http_2_serves_many_requests_at_once() {
    let authority = authority("ours");
    let (server, connections) = serve(signed(&authority, &params(&[NAME])), &["h2"], NONE).await;
    let http = Http::new(trusting(&authority)).unwrap();
    let url = format!("https://{NAME}:{}/", server.port());
    assert!(http.get(&request(&url)).await.unwrap().timings.connect.is_some());
    let pages = (0..20).map(|_| {
        let (http, url) = (http.clone(), url.clone());
        tokio::spawn(async move { http.get(&request(&url)).await.unwrap() })
    });
    for page in pages.collect::<Vec<_>>() {
        assert!(page.await.unwrap().timings.connect.is_none());
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn bad_certificates_are_refused_by_name() {
    let (ours, theirs) = (authority("ours"), authority("theirs"));
    let mut expired = params(&[NAME]);
    (expired.not_before, expired.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(2001, 1, 1));
    let mut too_early = params(&[NAME]);
    (too_early.not_before, too_early.not_after) = (date_time_ymd(3000, 1, 1), date_time_ymd(3001, 1, 1));
    let cases = [
        ("expired", signed(&ours, &expired), TlsReason::Expired, "its certificate has expired"),
        ("too early", signed(&ours, &too_early), TlsReason::NotYetValid, "its certificate is not valid yet"),
        (
            "another authority",
            signed(&theirs, &params(&[NAME])),
            TlsReason::UnknownAuthority,
            "its certificate is from an unknown authority",
        ),
        (
            "signed by itself",
            signed_by_itself(&params(&[NAME])),
            TlsReason::UnknownAuthority,
            "its certificate is from an unknown authority",
        ),
        (
            "another name",
            signed(&ours, &params(&["other.example"])),
            TlsReason::WrongName,
            "its certificate is for another name",
        ),
    ];
    for (name, identity, reason, text) in cases {
        let (server, _) = serve(identity, &["h2"], NONE).await;
        let failure = get(trusting(&ours), NAME, server).await.unwrap_err();
        assert_eq!(failure.class(), Class::Tls, "{name}");
        assert_eq!(failure.to_string(), format!("no secure connection to {NAME}: {text}"), "{name}");
        assert_eq!(failure, Failure::Tls { host: NAME.to_owned(), reason }, "{name}");
    }
}

#[tokio::test]
async fn a_good_certificate_of_an_unknown_authority_is_refused() {
    let authority = authority("ours");
    let (server, _) = serve(signed(&authority, &params(&[NAME])), &["h2"], NONE).await;
    let untrusting = HttpConfig { extra_authorities: Vec::new(), ..trusting(&authority) };
    let failure = get(untrusting, NAME, server).await.unwrap_err();
    assert_eq!(failure, Failure::Tls { host: NAME.to_owned(), reason: TlsReason::UnknownAuthority });
}

#[tokio::test]
async fn a_certificate_can_be_for_an_address() {
    let authority = authority("ours");
    let (server, _) = serve(signed(&authority, &params(&["127.0.0.1"])), &["h2"], NONE).await;
    assert_eq!(get(trusting(&authority), "127.0.0.1", server).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_name_with_a_dot_behind_it_is_the_same_name() {
    let authority = authority("ours");
    let (server, _) = serve(signed(&authority, &params(&[NAME])), &["http/1.1"], NONE).await;
    assert_eq!(get(trusting(&authority), &format!("{NAME}."), server).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_server_without_encryption_is_no_secure_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        // Kept open until the client goes: to close with bytes unread would be another failure.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let failure = get(trusting(&authority("ours")), NAME, server).await.unwrap_err();
    assert_eq!(failure.class(), Class::Tls, "{failure}");
}

#[tokio::test]
async fn floods_of_headers_are_refused_over_http_2_too() {
    let authority = authority("ours");
    let cases = [("count", (101, 1), Limits::default()), ("size", (90, 1000), Limits::default())];
    for (name, headers, limits) in cases {
        let (server, _) = serve(signed(&authority, &params(&[NAME])), &["h2"], headers).await;
        let failure = get(HttpConfig { limits, ..trusting(&authority) }, NAME, server).await.unwrap_err();
        assert_eq!(failure.class(), Class::HeadersTooLarge, "{name}: {failure}");
    }
}

#[test]
fn authorities_are_read_from_pem() {
    let (one, two) = (authority("ours"), authority("theirs"));
    let both = format!("some text\n{}\n{}", one.pem(), two.pem());
    assert_eq!(authorities_from_pem(both.as_bytes()).unwrap().len(), 2);
    for (name, pem) in
        [("empty", ""), ("something else", "hello"), ("a key", &KeyPair::generate().unwrap().serialize_pem())]
    {
        let error = authorities_from_pem(pem.as_bytes()).unwrap_err();
        assert!(matches!(error, ConfigError::Authority { .. }), "{name}: {error}");
    }
    let broken = "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n";
    assert!(authorities_from_pem(broken.as_bytes()).is_err());
}
