//! Undoing the encodings of a body, piece by piece and no further than it may grow.

mod gzip;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, InBuffer, Operation, OutBuffer};

use self::gzip::Gzip;
use super::body::Room;
use super::{CutOff, Limits};

/// How much is decoded at once.
const SCRATCH: usize = 32 * 1024;

/// The window of a zstd body: 8 MiB, which is what RFC 9659 allows in HTTP.
const ZSTD_WINDOW_LOG: u32 = 23;

/// An encoding that can be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    /// The encoding of that name, in any case.
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        let names: [(&[u8], Self); 5] = [
            (b"gzip", Self::Gzip),
            (b"br", Self::Brotli),
            (b"zstd", Self::Zstd),
            (b"deflate", Self::Deflate),
            (b"x-gzip", Self::Gzip),
        ];
        names.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, coding)| coding)
    }
}

/// One step of decoding.
struct Step {
    /// How much of the input was used.
    read: usize,
    /// How much of the output was written.
    written: usize,
    /// Whether the input has an error behind what was written.
    is_broken: bool,
}

/// The state of undoing one encoding.
enum Codec {
    Gzip(Box<Gzip>),
    /// Not begun: whether the data has a header shows in its first byte.
    Deflate(Option<Decompress>),
    Brotli(Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>),
    Zstd(zstd::stream::raw::Decoder<'static>),
    /// Could not be made.
    Unusable,
}

impl Codec {
    fn new(coding: Coding) -> Self {
        match coding {
            Coding::Gzip => Self::Gzip(Box::default()),
            Coding::Deflate => Self::Deflate(None),
            Coding::Brotli => {
                let alloc = StandardAlloc::default;
                Self::Brotli(Box::new(BrotliState::new(alloc(), alloc(), alloc())))
            }
            Coding::Zstd => zstd_decoder().map_or(Self::Unusable, Self::Zstd),
        }
    }

    /// Decodes some of `input`. Says whether the encoded data has come to its end, too.
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> (Step, bool) {
        match self {
            Self::Gzip(gzip) => (gzip.step(input, output), gzip.is_complete()),
            Self::Deflate(state) => {
                let has_header = input.first().is_some_and(|byte| byte & 0x0f == 8);
                inflate(state.get_or_insert_with(|| Decompress::new(has_header)), input, output)
            }
            Self::Brotli(state) => brotli(state, input, output),
            Self::Zstd(decoder) => zstd(decoder, input, output),
            Self::Unusable => (Step { read: 0, written: 0, is_broken: true }, false),
        }
    }

    /// Whether more data may follow the end of some.
    fn goes_on(&self) -> bool {
        matches!(self, Self::Gzip(_) | Self::Zstd(_))
    }
}

fn zstd_decoder() -> std::io::Result<zstd::stream::raw::Decoder<'static>> {
    let mut decoder = zstd::stream::raw::Decoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))?;
    Ok(decoder)
}

fn inflate(state: &mut Decompress, input: &[u8], output: &mut [u8]) -> (Step, bool) {
    let (read, written) = (state.total_in(), state.total_out());
    let status = state.decompress(input, output, FlushDecompress::None);
    let moved = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(0);
    let (read, written) = (moved(state.total_in(), read), moved(state.total_out(), written));
    (Step { read, written, is_broken: status.is_err() }, matches!(status, Ok(Status::StreamEnd)))
}

fn brotli(
    state: &mut BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    input: &[u8],
    output: &mut [u8],
) -> (Step, bool) {
    let (mut read, mut written, mut total) = (0, 0, 0);
    let (mut left, mut room) = (input.len(), output.len());
    let result = BrotliDecompressStream(
        &mut left,
        &mut read,
        input,
        &mut room,
        &mut written,
        output,
        &mut total,
        state,
    );
    let is_broken = matches!(result, BrotliResult::ResultFailure);
    (Step { read, written, is_broken }, matches!(result, BrotliResult::ResultSuccess))
}

fn zstd(decoder: &mut zstd::stream::raw::Decoder<'static>, input: &[u8], output: &mut [u8]) -> (Step, bool) {
    let (mut input, mut output) = (InBuffer::around(input), OutBuffer::around(output));
    let result = decoder.run(&mut input, &mut output);
    let step = Step { read: input.pos(), written: output.pos(), is_broken: result.is_err() };
    (step, matches!(result, Ok(0)))
}

/// One encoding, its output on the way to the next.
struct Stage {
    codec: Codec,
    scratch: Box<[u8]>,
    /// How much has come out so far.
    written: u64,
    /// Whether the data may end here.
    is_complete: bool,
}

/// A body being decoded.
pub(super) struct Decoder {
    stages: Vec<Stage>,
    body: Vec<u8>,
    limits: Limits,
    /// How much has come in so far.
    wire_bytes: u64,
}

impl Decoder {
    /// Undoes encodings, the last one first.
    pub(super) fn new(codings: &[Coding], limits: &Limits) -> Self {
        let stage = |coding: &Coding| Stage {
            codec: Codec::new(*coding),
            scratch: vec![0; SCRATCH].into(),
            written: 0,
            is_complete: false,
        };
        let stages = codings.iter().rev().map(stage).collect();
        Self { stages, body: Vec::new(), limits: *limits, wire_bytes: 0 }
    }

    /// Decodes what came; what needs more than the usual room, when there is room.
    pub(super) async fn push(&mut self, chunk: &[u8], room: &mut Room<'_>) -> Result<(), CutOff> {
        let left = usize::try_from(self.limits.wire_bytes - self.wire_bytes).unwrap_or(usize::MAX);
        let fits = chunk.len().min(left);
        if fits > 0 {
            self.decode(&chunk[..fits], room).await?;
        }
        if fits < chunk.len() { Err(CutOff::WireLimit) } else { Ok(()) }
    }

    async fn decode(&mut self, chunk: &[u8], room: &mut Room<'_>) -> Result<(), CutOff> {
        self.wire_bytes += chunk.len() as u64;
        let growth = self.wire_bytes.saturating_mul(self.limits.decompression_ratio);
        let most = growth.max(self.limits.ratio_floor_bytes);
        let limit = usize::try_from(self.limits.body_bytes).unwrap_or(usize::MAX);
        run(&mut self.stages, chunk, most, &mut Sink { body: &mut self.body, limit, room }).await
    }

    /// The body, and whether its encoding ended too early. Nothing at all is not too early: some
    /// servers name an encoding for an empty body.
    pub(super) fn finish(self) -> (Bytes, Option<CutOff>) {
        let is_whole = self.wire_bytes == 0 || self.stages.iter().all(|stage| stage.is_complete);
        (self.body.into(), (!is_whole).then_some(CutOff::BadEncoding))
    }
}

/// Where the decoded body goes.
struct Sink<'s, 'r> {
    body: &'s mut Vec<u8>,
    limit: usize,
    room: &'s mut Room<'r>,
}

impl Sink<'_, '_> {
    async fn take(&mut self, bytes: &[u8]) -> Result<(), CutOff> {
        let left = self.limit - self.body.len();
        let fits = bytes.len().min(left);
        if self.room.grows_to(self.body.len() + fits).await? {
            // At once, as for a body without an encoding.
            self.body.reserve_exact(left);
        }
        self.body.extend_from_slice(&bytes[..fits]);
        if fits < bytes.len() { Err(CutOff::BodyLimit) } else { Ok(()) }
    }
}

/// Sends `input` through all stages. None of them may put out more than `most` bytes in all: the
/// work between two stages counts too, even if nothing comes out in the end.
///
/// However much comes of a little input, it comes bit by bit, so that all stages wait when the body has to wait for room.
async fn run(
    stages: &mut [Stage],
    mut input: &[u8],
    most: u64,
    sink: &mut Sink<'_, '_>,
) -> Result<(), CutOff> {
    let Some((stage, rest)) = stages.split_first_mut() else { return sink.take(input).await };
    loop {
        // What follows the end is ignored, as browsers do.
        if stage.is_complete && (input.is_empty() || !stage.codec.goes_on()) {
            return Ok(());
        }
        let (step, is_complete) = stage.codec.step(input, &mut stage.scratch);
        stage.is_complete = is_complete;
        stage.written += step.written as u64;
        if stage.written > most {
            return Err(CutOff::RatioLimit);
        }
        // Nothing is no input: the next stage may have to tell its kind from the first byte.
        if step.written > 0 {
            Box::pin(run(rest, &stage.scratch[..step.written], most, sink)).await?;
        }
        if step.is_broken {
            return Err(CutOff::BadEncoding);
        }
        input = &input[step.read..];
        let is_idle = step.read == 0 && step.written == 0;
        if is_idle || (input.is_empty() && step.written < SCRATCH) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
