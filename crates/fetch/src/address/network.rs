//! Ranges of addresses, as people write them: `127.0.0.0/8`, `10.1.2.3`, `::1/128`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A range of addresses that begin with the same bits.
///
/// ```
/// # use forager_fetch::address::Network;
/// let network: Network = "10.0.0.0/8".parse()?;
/// assert!(network.contains("10.1.2.3".parse()?));
/// assert!(!network.contains("11.1.2.3".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    start: IpAddr,
    prefix: u8,
}

/// Why a text is not a [`Network`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// It is not an address, or not one with a length after a slash.
    #[error("{text:?} is not a range of addresses such as \"127.0.0.0/8\" or \"::1\"")]
    Invalid {
        /// What was written, shortened.
        text: String,
    },
    /// The length is more than an address has bits.
    #[error("{text:?} is not a range of addresses: at most /{most} is possible")]
    TooLong {
        /// What was written.
        text: String,
        /// How many bits there are.
        most: u8,
    },
    /// Bits are set beyond the length, so that it is not clear what is meant.
    #[error("{text:?} is not the start of a range; write {start:?}, or the address alone")]
    NotTheStart {
        /// What was written.
        text: String,
        /// The range that holds it.
        start: String,
    },
}

impl Network {
    /// Whether an address is in this range.
    pub fn contains(&self, address: IpAddr) -> bool {
        is_within(address, self.start, self.prefix)
    }
}

/// Whether an address begins with the first `prefix` bits of another of its family.
pub(super) fn is_within(address: IpAddr, start: IpAddr, prefix: u8) -> bool {
    address.is_ipv4() == start.is_ipv4() && masked(address, prefix) == masked(start, prefix)
}

/// An address with only its first `prefix` bits.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let invalid = || NetworkError::Invalid { text: text.chars().take(100).collect() };
        let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
        let start: IpAddr = address.parse().map_err(|_| invalid())?;
        let most = if start.is_ipv4() { 32 } else { 128 };
        let prefix = length.map_or(Ok(most), |length| digits(length).ok_or_else(invalid))?;
        if prefix > most {
            return Err(NetworkError::TooLong { text: text.to_owned(), most });
        }
        let network = Self { start: masked(start, prefix), prefix };
        if network.start != start {
            return Err(NetworkError::NotTheStart { text: text.to_owned(), start: network.to_string() });
        }
        Ok(network)
    }
}

/// A number of at most three digits, and nothing else: no sign, no space.
fn digits(text: &str) -> Option<u8> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok())?
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.start, self.prefix)
    }
}

impl TryFrom<String> for Network {
    type Error = NetworkError;

    fn try_from(text: String) -> Result<Self, NetworkError> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_read_as_people_write_them() {
        let cases: [(&str, Result<&str, &str>); 13] = [
            ("127.0.0.0/8", Ok("127.0.0.0/8")),
            ("10.1.2.3", Ok("10.1.2.3/32")),
            ("0.0.0.0/0", Ok("0.0.0.0/0")),
            ("::1/128", Ok("::1/128")),
            ("fd00::/8", Ok("fd00::/8")),
            ("::/0", Ok("::/0")),
            ("10.1.2.3/8", Err("write \"10.0.0.0/8\"")),
            ("10.0.0.0/33", Err("at most /32")),
            ("::/129", Err("at most /128")),
            ("10.0.0.0/", Err("is not a range")),
            ("10.0.0.0/+8", Err("is not a range")),
            ("10.0.0/8", Err("is not a range")),
            ("example.org", Err("is not a range")),
        ];
        for (text, want) in cases {
            match (text.parse::<Network>(), want) {
                (Ok(network), Ok(want)) => assert_eq!(network.to_string(), want),
                (Err(error), Err(want)) => assert!(error.to_string().contains(want), "{text}: {error}"),
                (got, want) => panic!("{text}: {got:?}, wanted {want:?}"),
            }
        }
    }

    proptest! {
        #[test]
        fn a_range_holds_its_start_and_reads_back(bits: u128, prefix in 0..=128_u8) {
            let start = masked(Ipv6Addr::from_bits(bits).into(), prefix);
            let network: Network = format!("{start}/{prefix}").parse().unwrap();
            prop_assert!(network.contains(start) && network.contains(Ipv6Addr::from_bits(bits).into()));
            prop_assert_eq!(network.to_string().parse(), Ok(network));
        }
    }
}
