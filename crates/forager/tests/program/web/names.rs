//! A name server on loopback, whose answers are those of a test.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

/// What is answered about a name.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Its addresses, and for how many seconds they count.
    Addresses(Vec<IpAddr>, u32),
    /// The same, of the last of these names, each of which is another one for the one before.
    Alias(Vec<&'static str>, Vec<IpAddr>),
    /// There is no such name.
    NoSuchName,
    /// Nothing, ever.
    Silence,
}

/// Addresses that are not to be kept at all.
pub(crate) fn at(addresses: &[&str]) -> Reply {
    Reply::Addresses(parsed(addresses), 0)
}

/// The last of these names has such addresses.
pub(crate) fn alias(names: &[&'static str], addresses: &[&str]) -> Reply {
    Reply::Alias(names.to_vec(), parsed(addresses))
}

fn parsed(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|text| text.parse().unwrap()).collect()
}

/// Answers for as long as the test runs.
pub(crate) struct NameServer {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl NameServer {
    /// `reply` is told the name.
    pub(crate) fn new(reply: impl Fn(&str) -> Reply + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (address, asked) = (socket.local_addr().unwrap(), Arc::<Mutex<Vec<String>>>::default());
        let log = asked.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                let question = Question::read(&buffer[..length]);
                let reply = reply(&question.name);
                // The question for IPv4 is the one that counts; the one for IPv6 comes with it.
                if question.is_v4 {
                    log.lock().unwrap().push(question.name.clone());
                }
                if !matches!(reply, Reply::Silence) {
                    socket.send_to(&question.answered(&reply), from).unwrap();
                }
            }
        });
        Self { address, asked }
    }

    /// The names that were asked for, each time.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

struct Question<'a> {
    id: &'a [u8],
    name: String,
    is_v4: bool,
    bytes: &'a [u8],
}

impl<'a> Question<'a> {
    fn read(packet: &'a [u8]) -> Self {
        let (mut at, mut labels) = (12, Vec::new());
        while packet[at] != 0 {
            let length = usize::from(packet[at]);
            labels.push(String::from_utf8_lossy(&packet[at + 1..=at + length]).to_lowercase());
            at += length + 1;
        }
        let is_v4 = packet[at + 2] == 1;
        Self { id: &packet[..2], name: labels.join("."), is_v4, bytes: &packet[12..at + 5] }
    }

    fn answered(&self, reply: &Reply) -> Vec<u8> {
        let (names, addresses, ttl) = match reply {
            Reply::Addresses(addresses, ttl) => (&[][..], &addresses[..], *ttl),
            Reply::Alias(names, addresses) => (&names[..], &addresses[..], 0),
            Reply::NoSuchName | Reply::Silence => (&[][..], &[][..], 0),
        };
        let addresses: Vec<&IpAddr> = addresses.iter().filter(|ip| ip.is_ipv4() == self.is_v4).collect();
        let count = u8::try_from(names.len() + addresses.len()).unwrap();
        let code = if matches!(reply, Reply::NoSuchName) { 0x83 } else { 0x80 };
        let mut packet = [self.id, &[0x81, code, 0, 1, 0, count, 0, 0, 0, 0], self.bytes].concat();
        // The name that was asked for stands behind the head.
        let mut owner = vec![0xc0, 12];
        for name in names {
            let target = written(name);
            packet.extend(record(&owner, 5, ttl, &target));
            owner = target;
        }
        for address in addresses {
            packet.extend(match address {
                IpAddr::V4(v4) => record(&owner, 1, ttl, &v4.octets()),
                IpAddr::V6(v6) => record(&owner, 28, ttl, &v6.octets()),
            });
        }
        packet
    }
}

/// A name as it stands in a packet.
fn written(name: &str) -> Vec<u8> {
    let labels =
        name.split('.').flat_map(|label| [&[u8::try_from(label.len()).unwrap()], label.as_bytes()].concat());
    labels.chain([0]).collect()
}

fn record(owner: &[u8], kind: u8, ttl: u32, data: &[u8]) -> Vec<u8> {
    let length = u8::try_from(data.len()).unwrap();
    [owner, &[0, kind, 0, 1], &ttl.to_be_bytes(), &[0, length], data].concat()
}
