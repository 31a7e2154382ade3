//! Addresses that are not public, however they are written: no connection is made to them.

use crate::web::{Field, page};
use forager_site::{Host, Site};
use serde_json::{Value, json};

const HOST: &str = "a.test";

/// A literal address, and what it is said to be.
const TABLE: [(&str, &str); 27] = [
    ("10.1.2.3", "10.1.2.3 is a private address"),
    ("172.31.255.1", "172.31.255.1 is a private address"),
    ("192.168.0.1", "192.168.0.1 is a private address"),
    ("100.64.0.1", "100.64.0.1 is an address of a provider's internal network"),
    ("100.127.255.254", "100.127.255.254 is an address of a provider's internal network"),
    ("169.254.1.1", "169.254.1.1 is a link-local address"),
    ("169.254.169.254", "169.254.169.254 is the address of a cloud metadata service"),
    ("2852039166", "169.254.169.254 is the address of a cloud metadata service"),
    ("0xa9fea9fe", "169.254.169.254 is the address of a cloud metadata service"),
    ("0251.0376.0251.0376", "169.254.169.254 is the address of a cloud metadata service"),
    ("169.254.43518", "169.254.169.254 is the address of a cloud metadata service"),
    ("0.0.0.0", "0.0.0.0 is an unspecified address"),
    ("224.0.0.1", "224.0.0.1 is a multicast address"),
    ("255.255.255.255", "255.255.255.255 is the broadcast address"),
    ("240.0.0.1", "240.0.0.1 is a reserved address"),
    ("[::]", ":: is an unspecified address"),
    ("[fe80::1]", "fe80::1 is a link-local address"),
    ("[fd00:ec2::254]", "fd00:ec2::254 is the address of a cloud metadata service"),
    ("[fc00::1]", "fc00::1 is a private address"),
    ("[ff02::1]", "ff02::1 is a multicast address"),
    ("[::ffff:10.0.0.1]", "leads to 10.0.0.1, a private address"),
    ("[::ffff:169.254.169.254]", "leads to 169.254.169.254, the address of a cloud metadata service"),
    ("[64:ff9b::169.254.169.254]", "leads to 169.254.169.254, the address of a cloud metadata service"),
    ("[64:ff9b:1::10.0.0.1]", "is an address for local translation"),
    ("[2002:a9fe:a9fe::1]", "leads to 169.254.169.254, the address of a cloud metadata service"),
    ("[2002:6440:1::1]", "leads to 100.64.0.1, an address of a provider's internal network"),
    ("[2001:0:a00:1::1]", "leads to 10.0.0.1, a private address"),
];

/// The crawl has no contact, so that nothing but loopback would be connected to even if one of these were let through.
#[test]
fn no_link_leads_to_an_address_that_is_not_public() {
    let urls: Vec<String> = TABLE.iter().map(|(host, _)| format!("http://{host}/")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let field = Field::strict(Site::new().host(Host::new(HOST).page("/", page("Home", &urls))));
    field.configure("allow_addresses = [\"127.0.0.0/8\"]\n");
    // The only host of a site is at this address.
    let start = field.url("127.0.0.2", "/");
    let ran = field.run(&["crawl", &start, "--scope", "any", "--out", "pages.jsonl", "--json", "--quiet"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_eq!(field.paths(HOST), ["/"]);
    let lines = field.lines("pages.jsonl");
    // Some are one address, written in several ways, and so one page.
    for (host, why) in TABLE {
        let is_told = |line: &&Value| line["error"].as_str().is_some_and(|error| error.contains(why));
        let line = lines.iter().find(is_told).unwrap_or_else(|| panic!("{host} is not in {lines:#?}"));
        assert_eq!(line["notFetched"], "addressRefused", "{host}: {line}");
    }
    let fetched: Vec<&Value> = lines.iter().filter(|line| line["notFetched"].is_null()).collect();
    assert_eq!((fetched.len(), &fetched[0]["url"]), (1, &json!(start)), "{fetched:?}");
    // What was not asked for is in no log of requests.
    let hosts: Vec<Value> = field.run(&["audit", "--json"]).good_rows();
    assert_eq!((hosts.len(), &hosts[0]["host"]), (1, &json!("127.0.0.2")), "{hosts:?}");
}
