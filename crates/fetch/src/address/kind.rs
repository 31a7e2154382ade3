//! The kinds of address that are not public, after the registries of special-purpose addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::network::is_within;

/// Why an address may not be connected to: what keeps it from being one that the whole Internet can reach, or that it is
/// one of strangers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `0.0.0.0/8` and `::`, which mean this machine to many systems.
    Unspecified,
    /// This machine.
    Loopback,
    /// A private network: RFC 1918, and unique local addresses of IPv6.
    Private,
    /// The network that the machine is plugged into.
    LinkLocal,
    /// The network of an Internet provider, behind its address translation.
    Shared,
    /// The service by which a cloud tells its machines their secrets.
    Metadata,
    /// Many machines at once.
    Multicast,
    /// All machines of the network.
    Broadcast,
    /// Set aside for examples in text.
    Documentation,
    /// Set aside for measuring equipment.
    Benchmarking,
    /// IPv4 inside IPv6 in a form that only one network understands.
    LocalTranslation,
    /// Set aside for protocols or for the future.
    Reserved,
    /// Not this machine, where whoever is asked could not learn by whom; no address is it by itself.
    Stranger,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Shared => "an address of a provider's internal network",
            Self::Metadata => "the address of a cloud metadata service",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "the broadcast address",
            Self::Documentation => "an address for documentation",
            Self::Benchmarking => "an address for benchmarking",
            Self::LocalTranslation => "an address for local translation",
            Self::Reserved => "a reserved address",
            Self::Stranger => "the address of others, who could not learn who asks",
        })
    }
}

type Row = (IpAddr, u8, Kind);

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8, kind: Kind) -> Row {
    (IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix, kind)
}

const fn v6(start: [u16; 4], end: u16, prefix: u8, kind: Kind) -> Row {
    let [a, b, c, d] = start;
    (IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, end)), prefix, kind)
}

/// The first row that holds an address names its kind.
const SPECIAL_V4: [Row; 19] = [
    v4(169, 254, 169, 254, 32, Kind::Metadata),
    // A public address in form, but every machine in Azure finds its host there.
    v4(168, 63, 129, 16, 32, Kind::Metadata),
    v4(100, 100, 100, 200, 32, Kind::Metadata),
    v4(0, 0, 0, 0, 8, Kind::Unspecified),
    v4(10, 0, 0, 0, 8, Kind::Private),
    v4(100, 64, 0, 0, 10, Kind::Shared),
    v4(127, 0, 0, 0, 8, Kind::Loopback),
    v4(169, 254, 0, 0, 16, Kind::LinkLocal),
    v4(172, 16, 0, 0, 12, Kind::Private),
    v4(192, 0, 0, 0, 24, Kind::Reserved),
    v4(192, 0, 2, 0, 24, Kind::Documentation),
    v4(192, 88, 99, 0, 24, Kind::Reserved),
    v4(192, 168, 0, 0, 16, Kind::Private),
    v4(198, 18, 0, 0, 15, Kind::Benchmarking),
    v4(198, 51, 100, 0, 24, Kind::Documentation),
    v4(203, 0, 113, 0, 24, Kind::Documentation),
    v4(224, 0, 0, 0, 4, Kind::Multicast),
    v4(255, 255, 255, 255, 32, Kind::Broadcast),
    v4(240, 0, 0, 0, 4, Kind::Reserved),
];

const SPECIAL_V6: [Row; 13] = [
    v6([0, 0, 0, 0], 0, 128, Kind::Unspecified),
    v6([0, 0, 0, 0], 1, 128, Kind::Loopback),
    v6([0xfd00, 0x0ec2, 0, 0], 0x254, 128, Kind::Metadata),
    v6([0xfd20, 0x00ce, 0, 0], 0x254, 128, Kind::Metadata),
    v6([0xfc00, 0, 0, 0], 0, 7, Kind::Private),
    v6([0xfe80, 0, 0, 0], 0, 10, Kind::LinkLocal),
    v6([0xfec0, 0, 0, 0], 0, 10, Kind::Private),
    v6([0xff00, 0, 0, 0], 0, 8, Kind::Multicast),
    // Where in it the IPv4 address stands is up to the network, so what it leads to cannot be told.
    v6([0x0064, 0xff9b, 1, 0], 0, 48, Kind::LocalTranslation),
    v6([0x2001, 0x0db8, 0, 0], 0, 32, Kind::Documentation),
    v6([0x3fff, 0, 0, 0], 0, 20, Kind::Documentation),
    v6([0x2001, 0x0002, 0, 0], 0, 48, Kind::Benchmarking),
    v6([0x2001, 0, 0, 0], 0, 23, Kind::Reserved),
];

/// Forms that are public by themselves, though the rows and rules below would say otherwise; what
/// they carry is judged apart.
const CARRIERS: [(Ipv6Addr, u8); 3] = [(MAPPED, 96), (NAT64, 96), (TEREDO, 32)];

const MAPPED: Ipv6Addr = Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0);
const TRANSLATED: Ipv6Addr = Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0);
const NAT64: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0);
const SIX_TO_FOUR: Ipv6Addr = Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0);
const TEREDO: Ipv6Addr = Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0);
/// The part of IPv6 that has been given out for public addresses.
const GLOBAL: Ipv6Addr = Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0);

/// What kind of special address this is by its own bits; none for public ones.
pub(super) fn special(address: IpAddr) -> Option<Kind> {
    let within = |network: Ipv6Addr, prefix| is_within(address, network.into(), prefix);
    let rows: &[Row] = if address.is_ipv4() { &SPECIAL_V4 } else { &SPECIAL_V6 };
    if CARRIERS.iter().any(|&(network, prefix)| within(network, prefix)) {
        return None;
    }
    let listed = rows.iter().find(|(network, prefix, _)| is_within(address, *network, *prefix));
    let outside = || (address.is_ipv6() && !within(GLOBAL, 3)).then_some(Kind::Reserved);
    listed.map(|&(_, _, kind)| kind).or_else(outside)
}

/// The IPv4 addresses that an IPv6 address carries. Teredo has two: a server and a client.
pub(super) fn carried(address: IpAddr) -> [Option<IpAddr>; 2] {
    let IpAddr::V6(v6) = address else { return [None; 2] };
    let within = |network: Ipv6Addr, prefix| is_within(address, network.into(), prefix);
    let bits = v6.to_bits();
    // `::` and `::1` have their own rows, and are no IPv4 address in disguise.
    let is_compatible = bits >> 32 == 0 && bits > 1;
    let is_last = is_compatible || [MAPPED, TRANSLATED, NAT64].into_iter().any(|network| within(network, 96));
    if is_last {
        [Some(from_bits(bits)), None]
    } else if within(SIX_TO_FOUR, 16) {
        [Some(from_bits(bits >> 80)), None]
    } else if within(TEREDO, 32) {
        [Some(from_bits(bits >> 64)), Some(from_bits(!bits))]
    } else {
        [None; 2]
    }
}

/// The IPv4 address in the low 32 bits.
fn from_bits(bits: u128) -> IpAddr {
    let [.., a, b, c, d] = bits.to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}
