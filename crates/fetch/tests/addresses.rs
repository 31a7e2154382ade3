//! Which addresses are connected to, whatever they are called.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod servers;

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use forager_fetch::address::{AddressPolicy, Kind};
use forager_fetch::dns::{DnsConfig, DnsError, DnsLimits, Resolver};
use forager_fetch::http::{Class, Failure, Http, HttpConfig};
use proptest::prelude::*;
use servers::{Site, config, name_server, raw_at, request};
use tokio::io::AsyncWriteExt;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn only_public_addresses_are_allowed_by_default() {
    use Kind::{
        Benchmarking, Broadcast, Documentation, LinkLocal, LocalTranslation, Loopback, Metadata, Multicast,
        Private, Reserved, Shared, Unspecified,
    };
    let cases: [(&str, Option<Kind>); 75] = [
        ("1.1.1.1", None),
        ("93.184.215.14", None),
        ("9.255.255.255", None),
        ("11.0.0.0", None),
        ("100.63.255.255", None),
        ("100.128.0.0", None),
        ("126.255.255.255", None),
        ("128.0.0.0", None),
        ("172.15.255.255", None),
        ("172.32.0.0", None),
        ("192.0.1.0", None),
        ("192.167.255.255", None),
        ("198.17.255.255", None),
        ("198.20.0.0", None),
        ("223.255.255.255", None),
        ("0.0.0.0", Some(Unspecified)),
        ("0.1.2.3", Some(Unspecified)),
        ("10.0.0.0", Some(Private)),
        ("10.255.255.255", Some(Private)),
        ("100.64.0.0", Some(Shared)),
        ("100.127.255.255", Some(Shared)),
        ("100.100.100.200", Some(Metadata)),
        ("127.0.0.1", Some(Loopback)),
        ("127.255.255.255", Some(Loopback)),
        ("168.63.129.16", Some(Metadata)),
        ("169.254.0.1", Some(LinkLocal)),
        ("169.254.169.254", Some(Metadata)),
        ("172.16.0.0", Some(Private)),
        ("172.31.255.255", Some(Private)),
        ("192.0.0.192", Some(Reserved)),
        ("192.0.2.1", Some(Documentation)),
        ("192.88.99.1", Some(Reserved)),
        ("192.168.1.1", Some(Private)),
        ("198.18.0.0", Some(Benchmarking)),
        ("198.19.255.255", Some(Benchmarking)),
        ("198.51.100.1", Some(Documentation)),
        ("203.0.113.1", Some(Documentation)),
        ("224.0.0.1", Some(Multicast)),
        ("239.255.255.255", Some(Multicast)),
        ("240.0.0.1", Some(Reserved)),
        ("255.255.255.255", Some(Broadcast)),
        ("2606:4700::1111", None),
        ("2a00:1450:4001:81b::200e", None),
        ("::", Some(Unspecified)),
        ("::1", Some(Loopback)),
        ("fc00::1", Some(Private)),
        ("fdff::1", Some(Private)),
        ("fd00:ec2::254", Some(Metadata)),
        ("fd20:ce::254", Some(Metadata)),
        ("fe80::1", Some(LinkLocal)),
        ("febf::1", Some(LinkLocal)),
        ("fec0::1", Some(Private)),
        ("ff02::1", Some(Multicast)),
        ("100::1", Some(Reserved)),
        ("4000::1", Some(Reserved)),
        ("5f00::1", Some(Reserved)),
        ("2001:db8::1", Some(Documentation)),
        ("3fff::1", Some(Documentation)),
        ("2001:2::1", Some(Benchmarking)),
        ("2001:10::1", Some(Reserved)),
        ("::ffff:1.1.1.1", None),
        ("::ffff:127.0.0.1", Some(Loopback)),
        ("::ffff:169.254.169.254", Some(Metadata)),
        ("::ffff:0:10.0.0.1", Some(Private)),
        ("::10.0.0.1", Some(Private)),
        ("::1.1.1.1", Some(Reserved)),
        ("64:ff9b::1.1.1.1", None),
        ("64:ff9b::10.0.0.1", Some(Private)),
        ("64:ff9b:1::1.1.1.1", Some(LocalTranslation)),
        ("2002:101:101::1", None),
        ("2002:7f00:1::1", Some(Loopback)),
        ("2002:a9fe:a9fe::", Some(Metadata)),
        ("2001:0:101:101::fefe:fefe", None),
        ("2001:0:101:101::80ff:fffe", Some(Loopback)),
        ("2001:0:a00:1::fefe:fefe", Some(Private)),
    ];
    let policy = AddressPolicy::default();
    for (address, want) in cases {
        assert_eq!(policy.check(ip(address)).err().map(|refused| refused.kind), want, "{address}");
        assert_eq!(AddressPolicy::any().check(ip(address)), Ok(()), "{address} with any()");
    }
}

#[test]
fn a_refusal_says_what_the_address_is() {
    let cases = [
        ("127.0.0.1", "127.0.0.1 is a loopback address"),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.1 leads to 10.0.0.1, a private address"),
        ("169.254.169.254", "169.254.169.254 is the address of a cloud metadata service"),
    ];
    for (address, want) in cases {
        assert_eq!(AddressPolicy::default().check(ip(address)).unwrap_err().to_string(), want);
    }
}

#[test]
fn whoever_does_not_say_who_asks_is_left_with_this_machine() {
    use Kind::{Loopback, Private, Stranger, Unspecified};
    let loopback = ["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap(), "10.0.0.0/8".parse().unwrap()];
    let open = AddressPolicy::allowing(&loopback);
    // By the address: what those say who allow nothing, loopback and a private network, and everything.
    let cases = [
        ("127.0.0.1", [Some(Loopback), None, None]),
        ("::1", [Some(Loopback), None, None]),
        ("::ffff:127.9.9.9", [Some(Loopback), None, None]),
        ("1.1.1.1", [Some(Stranger); 3]),
        ("::ffff:1.1.1.1", [Some(Stranger); 3]),
        ("2606:4700::1111", [Some(Stranger); 3]),
        ("10.0.0.1", [Some(Private), Some(Stranger), Some(Stranger)]),
        ("192.168.0.1", [Some(Private), Some(Private), Some(Stranger)]),
        ("0.0.0.0", [Some(Unspecified), Some(Unspecified), Some(Stranger)]),
        // A gateway might unpack it, and then it is not this machine.
        ("64:ff9b::127.0.0.1", [Some(Loopback), Some(Stranger), Some(Stranger)]),
    ];
    for (address, want) in cases {
        let policies = [AddressPolicy::default(), open.clone(), AddressPolicy::any()];
        let told =
            policies.map(|policy| policy.anonymous().check(ip(address)).err().map(|refused| refused.kind));
        assert_eq!(told, want, "{address}");
    }
    let refused = AddressPolicy::any().anonymous().check(ip("1.1.1.1")).unwrap_err();
    assert_eq!(refused.to_string(), "1.1.1.1 is the address of others, who could not learn who asks");
    assert!(refused.remedy().contains("--contact") && refused.remedy().contains("[fetch]"));
}

#[test]
fn ranges_can_be_opened_and_open_nothing_else() {
    let policy = AddressPolicy::allowing(&["127.0.0.0/8".parse().unwrap(), "fd12::/16".parse().unwrap()]);
    let cases = [
        ("127.0.0.1", true),
        ("127.9.9.9", true),
        ("::ffff:127.0.0.1", true),
        ("64:ff9b::127.0.0.1", true),
        ("::127.0.0.1", true),
        ("fd12::1", true),
        ("1.1.1.1", true),
        ("::1", false),
        ("10.0.0.1", false),
        ("::ffff:10.0.0.1", false),
        ("64:ff9b:1::127.0.0.1", false),
        ("2001:0:7f00:1::f5ff:fffe", false), // Teredo: the server is allowed, the client is 10.0.0.1
        ("fd13::1", false),
    ];
    for (address, want) in cases {
        assert_eq!(policy.check(ip(address)).is_ok(), want, "{address}");
    }
}

proptest! {
    /// What carries an address is never more allowed than that address.
    #[test]
    fn no_spelling_of_an_address_is_more_allowed_than_it(bits: u32, open in 0..=32_u8) {
        let inner = std::net::Ipv4Addr::from_bits(bits);
        let network = format!("{}/{open}", std::net::Ipv4Addr::from_bits(0x7f00_0000 & u32::MAX.checked_shl(32 - u32::from(open)).unwrap_or(0)));
        for policy in [AddressPolicy::default(), AddressPolicy::allowing(&[network.parse().unwrap()])] {
            if policy.check(inner.into()).is_err() {
                let [a, b, c, d] = inner.octets();
                for spelling in [
                    format!("::ffff:{inner}"),
                    format!("::ffff:0:{inner}"),
                    format!("64:ff9b::{inner}"),
                    format!("64:ff9b:1::{inner}"),
                    format!("2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1"),
                    format!("2001:0:{a:02x}{b:02x}:{c:02x}{d:02x}::fefe:fefe"),
                    format!("2001:0:101:101::{:02x}{:02x}:{:02x}{:02x}", !a, !b, !c, !d),
                ] {
                    prop_assert!(policy.check(ip(&spelling)).is_err(), "{}", spelling);
                }
            }
        }
    }
}

/// A client that may connect to nothing but what is public.
fn strict() -> HttpConfig {
    HttpConfig { addresses: AddressPolicy::default(), ..config() }
}

/// The kind of address that a URL was refused for.
async fn refused(http: &Http, url: &str) -> Kind {
    match http.get(&request(url)).await {
        Err(Failure::AddressRefused { refused, .. }) => refused.kind,
        other => panic!("{url}: {other:?}"),
    }
}

#[tokio::test]
async fn no_spelling_of_an_address_gets_past() {
    let site = Site::new(|_| hyper::Response::default()).await;
    let port = site.address.port();
    let http = Http::new(strict()).unwrap();
    let cases = [
        ("127.0.0.1", Kind::Loopback),
        ("127.1", Kind::Loopback),
        ("2130706433", Kind::Loopback),
        ("0x7f000001", Kind::Loopback),
        ("0x7f.1", Kind::Loopback),
        ("0177.0.0.1", Kind::Loopback),
        ("017700000001", Kind::Loopback),
        ("127.0.0.1.", Kind::Loopback),
        ("%31%32%37.0.0.1", Kind::Loopback),
        ("\u{ff11}\u{ff12}\u{ff17}.0.0.1", Kind::Loopback),
        ("127\u{3002}0\u{3002}0\u{3002}1", Kind::Loopback),
        ("me@127.0.0.1", Kind::Loopback),
        ("0", Kind::Unspecified),
        ("0.0.0.0", Kind::Unspecified),
        ("[::1]", Kind::Loopback),
        ("[0:0:0:0:0:0:0:1]", Kind::Loopback),
        ("[::]", Kind::Unspecified),
        ("[::ffff:127.0.0.1]", Kind::Loopback),
        ("[::ffff:7f00:1]", Kind::Loopback),
        ("[::127.0.0.1]", Kind::Loopback),
        ("[64:ff9b::127.0.0.1]", Kind::Loopback),
        ("[2002:7f00:1::]", Kind::Loopback),
        ("localhost", Kind::Loopback),
        ("LOCALHOST", Kind::Loopback),
        ("localhost.", Kind::Loopback),
        ("a.b.localhost", Kind::Loopback),
    ];
    for (host, want) in cases {
        assert_eq!(refused(&http, &format!("http://{host}:{port}/")).await, want, "{host}");
    }
    assert_eq!(site.connections.load(Ordering::SeqCst), 0, "nothing was connected to");
}

#[tokio::test]
async fn a_failure_names_the_host_and_the_address() {
    let overrides = [("inside.example".to_owned(), vec![ip("10.0.0.1")])].into();
    let http = Http::new(HttpConfig { overrides, ..strict() }).unwrap();
    let failure = http.get(&request("http://inside.example/")).await.unwrap_err();
    assert_eq!(failure.class(), Class::AddressRefused);
    let told = "inside.example may not be connected to: 10.0.0.1 is a private address; \
                `allow_addresses` of [fetch] in the configuration, or --allow-private, opens it";
    assert_eq!(failure.to_string(), told);
}

#[tokio::test]
async fn names_are_judged_by_their_addresses() {
    let site = Site::new(|_| hyper::Response::default()).await;
    let (nameserver, _) = name_server(|name, _| match name {
        "inside.example" => vec![ip("127.0.0.1")],
        "inside6.example" => vec![ip("::1")],
        "mapped.example" => vec![ip("::ffff:127.0.0.1")],
        _ => vec![],
    })
    .await;
    let http = Http::new(HttpConfig { nameserver: Some(nameserver), ..strict() }).unwrap();
    for host in ["inside.example", "INSIDE.example.", "inside6.example", "mapped.example"] {
        let url = format!("http://{host}:{}/", site.address.port());
        assert_eq!(refused(&http, &url).await, Kind::Loopback, "{host}");
    }
    assert_eq!(site.connections.load(Ordering::SeqCst), 0);
}

/// 127.0.0.2 stands for a public address here, and 127.0.0.1 for one that is not.
fn one_allowed() -> AddressPolicy {
    AddressPolicy::allowing(&["127.0.0.2".parse().unwrap()])
}

#[tokio::test]
async fn of_good_and_bad_addresses_only_good_ones_are_tried() {
    let bad = Site::new(|_| hyper::Response::default()).await;
    let port = bad.address.port();
    let (nameserver, _) = name_server(|_, _| vec![ip("127.0.0.1"), ip("127.0.0.2"), ip("::1")]).await;
    let addresses = one_allowed();
    let http = Http::new(HttpConfig { nameserver: Some(nameserver), addresses, ..config() }).unwrap();
    let failure = http.get(&request(&format!("http://both.example:{port}/"))).await.unwrap_err();
    match failure {
        Failure::Connect { address, .. } => assert_eq!(address, (ip("127.0.0.2"), port).into()),
        other => panic!("{other:?}"),
    }
    assert_eq!(bad.connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_judged_again() {
    let site = raw_at("0.0.0.0", |mut stream| async move {
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").await
    })
    .await;
    let (nameserver, asked) =
        name_server(|_, before| vec![ip(if before == 0 { "127.0.0.2" } else { "127.0.0.1" })]).await;
    let addresses = one_allowed();
    let http = Http::new(HttpConfig { nameserver: Some(nameserver), addresses, ..config() }).unwrap();
    let url = format!("http://rebinding.example:{}/", site.port());
    let first = http.get(&request(&url)).await.unwrap();
    assert_eq!(first.address.ip(), ip("127.0.0.2"));
    // The answer says not to keep it; it is kept for a second.
    tokio::time::sleep(DnsLimits::default().least_ttl).await;
    assert_eq!(refused(&http, &url).await, Kind::Loopback);
    assert_eq!(asked.load(Ordering::SeqCst), 2, "the second look-up gave the second address");
}

#[tokio::test]
async fn another_address_is_tried_where_one_does_not_answer() {
    let site = Site::new(|_| hyper::Response::default()).await;
    let overrides = [("two.example".to_owned(), vec![ip("127.0.0.9"), ip("127.0.0.1")])].into();
    let http = Http::new(HttpConfig { overrides, ..config() }).unwrap();
    let url = format!("http://two.example:{}/", site.address.port());
    assert_eq!(http.get(&request(&url)).await.unwrap().address, site.address);
}

fn resolver(nameserver: std::net::SocketAddr, limits: DnsLimits) -> Resolver {
    Resolver::new(DnsConfig { nameserver: Some(nameserver), limits, ..DnsConfig::default() }).unwrap()
}

#[tokio::test]
async fn one_question_serves_all_who_ask_at_once_and_soon_after() {
    let (nameserver, asked) = name_server(|_, _| vec![ip("192.0.2.1")]).await;
    let limits = DnsLimits { least_ttl: servers::LONG, ..DnsLimits::default() };
    let resolver = resolver(nameserver, limits);
    let (a, b, c) = tokio::join!(
        resolver.lookup("a.example"),
        resolver.lookup("a.example"),
        resolver.lookup("a.example.")
    );
    assert!(a.is_ok() && a == b && b == c);
    assert_eq!(resolver.lookup("a.example").await, a);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn names_that_do_not_exist_are_remembered_too() {
    let (nameserver, asked) = name_server(|_, _| vec![]).await;
    let resolver = resolver(nameserver, DnsLimits::default());
    for _ in 0..3 {
        let error = resolver.lookup("nowhere.example").await.unwrap_err();
        assert_eq!(error, DnsError::NoAddress { host: "nowhere.example".to_owned() });
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn only_so_many_addresses_of_a_name_are_kept() {
    let (nameserver, _) =
        name_server(|_, _| (0..50).map(|last| ip(&format!("192.0.2.{last}"))).collect()).await;
    let resolver = resolver(nameserver, DnsLimits { addresses: 3, ..DnsLimits::default() });
    assert_eq!(resolver.lookup("many.example").await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_name_server_that_is_silent_is_not_waited_for() {
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let limit = Duration::from_millis(50);
    let resolver = resolver(silent.local_addr().unwrap(), DnsLimits { time: limit, ..DnsLimits::default() });
    let error = resolver.lookup("slow.example").await.unwrap_err();
    assert_eq!(error, DnsError::TimedOut { host: "slow.example".to_owned(), limit });
}

#[tokio::test]
async fn addresses_and_localhost_are_never_asked_for() {
    let (nameserver, asked) = name_server(|_, _| vec![ip("192.0.2.1")]).await;
    let overrides = [
        ("Given.Example.".to_owned(), vec![ip("192.0.2.7")]),
        ("localhost".to_owned(), vec![ip("192.0.2.8")]),
        ("127.0.0.1".to_owned(), vec![ip("192.0.2.9")]),
    ];
    let config =
        DnsConfig { nameserver: Some(nameserver), overrides: overrides.into(), ..DnsConfig::default() };
    let resolver = Resolver::new(config).unwrap();
    let cases: [(&str, &[&str]); 6] = [
        ("127.0.0.1", &["127.0.0.1"]),
        ("[::1]", &["::1"]),
        ("localhost", &["127.0.0.1", "::1"]),
        ("a.localhost.", &["127.0.0.1", "::1"]),
        ("given.example", &["192.0.2.7"]),
        ("given.example.", &["192.0.2.7"]),
    ];
    for (host, want) in cases {
        let want: Vec<_> = want.iter().map(|text| ip(text)).collect();
        assert_eq!(*resolver.lookup(host).await.unwrap(), *want, "{host}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}
