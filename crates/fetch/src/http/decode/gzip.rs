//! The gzip format, RFC 1952, around the data that [`flate2`] decodes.
//!
//! It is taken apart here because what was decoded before an error is to be kept, and because
//! what follows the end of the data is to be ignored; readers made for files do neither.

use flate2::{Crc, Decompress};

use super::{Step, inflate};

/// The longest header that is read. Most have ten bytes.
const MOST_HEADER_BYTES: usize = 64 * 1024;
const TRAILER_BYTES: usize = 8;

/// A gzip body being decoded.
pub(super) struct Gzip {
    part: Part,
    data: Decompress,
    crc: Crc,
}

enum Part {
    /// What there is of the header.
    Header(Vec<u8>),
    Data,
    /// What there is of the checksum and length.
    Trailer(Vec<u8>),
    /// At the end, where another member or anything else may follow.
    End,
    /// In what follows the end and is not gzip.
    Ignored,
}

impl Default for Gzip {
    fn default() -> Self {
        Self { part: Part::Header(Vec::new()), data: Decompress::new(false), crc: Crc::new() }
    }
}

impl Gzip {
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.part, Part::End | Part::Ignored)
    }

    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        match &mut self.part {
            Part::Header(seen) => {
                let before = seen.len();
                seen.extend_from_slice(input);
                match header_length(seen) {
                    Ok(Some(length)) => {
                        self.part = Part::Data;
                        used(length - before)
                    }
                    Ok(None) if seen.len() <= MOST_HEADER_BYTES => used(input.len()),
                    Ok(None) | Err(NotGzip) => broken(),
                }
            }
            Part::Data => {
                let (step, is_end) = inflate(&mut self.data, input, output);
                self.crc.update(&output[..step.written]);
                if is_end {
                    self.part = Part::Trailer(Vec::new());
                }
                step
            }
            Part::Trailer(seen) => {
                let count = input.len().min(TRAILER_BYTES - seen.len());
                seen.extend_from_slice(&input[..count]);
                if seen.len() < TRAILER_BYTES {
                    return used(count);
                }
                let is_right = *seen == trailer(&self.crc);
                self.part = Part::End;
                if is_right { used(count) } else { broken() }
            }
            Part::End if input.first() == Some(&0x1f) => {
                *self = Self::default();
                self.step(input, output)
            }
            Part::End | Part::Ignored => {
                self.part = Part::Ignored;
                used(input.len())
            }
        }
    }
}

fn used(read: usize) -> Step {
    Step { read, written: 0, is_broken: false }
}

fn broken() -> Step {
    Step { read: 0, written: 0, is_broken: true }
}

/// The checksum and length that have to follow the data.
fn trailer(crc: &Crc) -> [u8; TRAILER_BYTES] {
    let mut bytes = [0; TRAILER_BYTES];
    bytes[..4].copy_from_slice(&crc.sum().to_le_bytes());
    bytes[4..].copy_from_slice(&crc.amount().to_le_bytes());
    bytes
}

struct NotGzip;

/// The length of the header at the start of `seen`, if all of it is there.
fn header_length(seen: &[u8]) -> Result<Option<usize>, NotGzip> {
    const FIXED: usize = 10;
    let start = [0x1f, 0x8b, 8];
    let known = seen.len().min(start.len());
    if seen[..known] != start[..known] {
        return Err(NotGzip);
    }
    let Some(&flags) = seen.get(3) else { return Ok(None) };
    let is_set = |bit: u8| flags & (1 << bit) != 0;
    let mut end = Some(FIXED);
    if is_set(2) {
        end = end.and_then(|at| {
            let length = seen.get(at..at + 2)?;
            Some(at + 2 + usize::from(u16::from_le_bytes([length[0], length[1]])))
        });
    }
    // A file name and a comment, each with a zero behind it.
    for _ in [3, 4].into_iter().filter(|bit| is_set(*bit)) {
        end = end.and_then(|at| Some(at + memchr::memchr(0, seen.get(at..)?)? + 1));
    }
    if is_set(1) {
        end = end.map(|at| at + 2);
    }
    Ok(end.filter(|end| *end <= seen.len()))
}
