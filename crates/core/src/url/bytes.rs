//! Which bytes may stand where in a URL.

/// A set of bytes.
pub(super) type Bytes = [bool; 256];

/// Letters, digits and what else never needs an escape.
pub(super) const UNRESERVED: Bytes = {
    let mut set = with(&[false; 256], b"-._~");
    let mut byte = 0_u8;
    while byte < 128 {
        set[byte as usize] |= byte.is_ascii_alphanumeric();
        byte += 1;
    }
    set
};

/// What stands unescaped in the path of an identity: all that RFC 3986 allows.
pub(super) const PATH: Bytes = with(&UNRESERVED, b"/!$&'()*+,;=:@");

/// What stands unescaped in the query of an identity.
pub(super) const QUERY: Bytes = with(&PATH, b"?");

/// What the WHATWG parser leaves alone in a path, percent signs included.
pub(super) const PLAIN_PATH: Bytes = with(&PATH, b"%");

/// What the WHATWG parser leaves alone in a query: all that it does in a path, but the apostrophe.
pub(super) const PLAIN_QUERY: Bytes = with(&UNRESERVED, b"/!$&()*+,;=:@%?");

/// How many bytes of `text` are in `set` before the first that is not.
pub(super) fn leading(text: &str, set: &Bytes) -> usize {
    text.bytes().position(|byte| !set[usize::from(byte)]).unwrap_or(text.len())
}

/// Whether every byte of `text` is in `set`.
pub(super) fn are_all(text: &str, set: &Bytes) -> bool {
    leading(text, set) == text.len()
}

const fn with(set: &Bytes, more: &[u8]) -> Bytes {
    let mut set = *set;
    let mut index = 0;
    while index < more.len() {
        set[more[index] as usize] = true;
        index += 1;
    }
    set
}
