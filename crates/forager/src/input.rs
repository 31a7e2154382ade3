//! Lines from files or standard input, read in chunks so that memory stays flat.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use crate::progress;

/// How much is read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// The longest line that is read; the rest of a longer one is passed over.
pub(crate) const MAX_LINE_BYTES: usize = 1 << 20;

/// So much of a line is kept: enough to know that it is too long, line break of two characters or not.
const KEPT_BYTES: usize = MAX_LINE_BYTES + 2;

/// The lines of some files, or of standard input if there are none.
pub(crate) struct Input {
    waiting: std::vec::IntoIter<PathBuf>,
    current: Option<Source>,
    /// Bytes of a line that is not complete yet.
    partial: Vec<u8>,
    lines_before: u64,
}

struct Source {
    /// None for standard input.
    path: Option<Arc<Path>>,
    reader: Box<dyn Read + Send>,
    lines: u64,
    /// In the middle of a line that is too long.
    skipping: bool,
}

/// Some whole lines.
pub(crate) struct Chunk {
    path: Option<Arc<Path>>,
    first_line: u64,
    /// How many lines of all files came before.
    lines_before: u64,
    bytes: Vec<u8>,
}

/// One line and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    chunk: &'a Chunk,
    /// Counted from 0 in its chunk.
    index: u64,
    /// Without its line break and the space around it; none if it is not UTF-8.
    pub(crate) text: Option<&'a str>,
    /// Longer than [`MAX_LINE_BYTES`], so that its end was not read.
    pub(crate) is_too_long: bool,
}

/// Where a line stands: the file, if it is one, and the number of the line there.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    path: Option<Arc<Path>>,
    number: u64,
}

impl Line<'_> {
    /// Where it stands.
    pub(crate) fn place(&self) -> Place {
        Place { path: self.chunk.path.clone(), number: self.chunk.first_line + self.index }
    }

    /// Counted from 0 over all files.
    pub(crate) fn sequence(&self) -> u64 {
        self.chunk.lines_before + self.index
    }
}

impl Input {
    /// Opens `files`; a `-` is standard input. A file that cannot be opened is an error at once,
    /// before anything is printed.
    pub(crate) fn open(files: &[PathBuf]) -> anyhow::Result<Self> {
        for path in files.iter().filter(|path| !is_stdin(path)) {
            check_readable(path).with_context(|| format!("cannot read {}", path.display()))?;
        }
        let files = if files.is_empty() { vec![PathBuf::from("-")] } else { files.to_vec() };
        if !io::stdout().is_terminal() {
            progress::start(total_bytes(&files));
        }
        Ok(Self { waiting: files.into_iter(), current: None, partial: Vec::new(), lines_before: 0 })
    }

    /// Shows how far the reading is even if the output goes to the terminal, for a command that
    /// prints nothing before it has read everything.
    pub(crate) fn with_progress(self) -> Self {
        progress::start(total_bytes(self.waiting.as_slice()));
        self
    }

    /// The next whole lines: as soon as there are some, so that a slow writer is answered at once.
    ///
    /// `recycled` is a buffer to read into.
    pub(crate) fn next_chunk(&mut self, mut recycled: Vec<u8>) -> anyhow::Result<Option<Chunk>> {
        loop {
            let Some(source) = &mut self.current else {
                let Some(path) = self.waiting.next() else {
                    progress::finish();
                    return Ok(None);
                };
                self.current = Some(Source::open(&path)?);
                continue;
            };
            recycled.clear();
            recycled.append(&mut self.partial);
            let at_end = source.read_lines(&mut recycled, &mut self.partial)?;
            let (path, first_line) = (source.path.clone(), source.lines + 1);
            if at_end {
                self.current = None;
            }
            if recycled.is_empty() {
                continue;
            }
            let lines_before = self.lines_before;
            let count = count_lines(&recycled);
            self.lines_before += count;
            if let Some(source) = &mut self.current {
                source.lines += count;
            }
            return Ok(Some(Chunk { path, first_line, lines_before, bytes: recycled }));
        }
    }
}

impl Source {
    fn open(path: &Path) -> anyhow::Result<Self> {
        if is_stdin(path) {
            return Ok(Self { path: None, reader: Box::new(io::stdin()), lines: 0, skipping: false });
        }
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { path: Some(path.into()), reader: Box::new(file), lines: 0, skipping: false })
    }

    /// Reads into `buffer` until it holds a line break or the input ends, and moves what follows
    /// the last line break to `partial`. Tells whether the input has ended.
    fn read_lines(&mut self, buffer: &mut Vec<u8>, partial: &mut Vec<u8>) -> anyhow::Result<bool> {
        loop {
            let known = buffer.len();
            let count = self.read_some(buffer)?;
            progress::advance(count as u64);
            if count == 0 {
                self.skipping = false;
                return Ok(true);
            }
            if self.skipping {
                self.skip_rest_of_line(buffer, known);
            }
            if let Some(end) = memchr::memrchr(b'\n', &buffer[known..]) {
                partial.extend_from_slice(&buffer[known + end + 1..]);
                buffer.truncate(known + end + 1);
                return Ok(false);
            }
            if buffer.len() > KEPT_BYTES {
                buffer.truncate(KEPT_BYTES);
                self.skipping = true;
            }
        }
    }

    /// Drops what belongs to a line that is too long: everything up to the next line break.
    fn skip_rest_of_line(&mut self, buffer: &mut Vec<u8>, from: usize) {
        let end = memchr::memchr(b'\n', &buffer[from..]);
        buffer.drain(from..end.map_or(buffer.len(), |end| from + end));
        self.skipping = end.is_none();
    }

    fn read_some(&mut self, buffer: &mut Vec<u8>) -> anyhow::Result<usize> {
        let known = buffer.len();
        buffer.resize(known + CHUNK_BYTES, 0);
        let count = loop {
            match self.reader.read(&mut buffer[known..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let name = || self.path.as_ref().map_or("standard input".into(), |path| path.display().to_string());
        let count = count.with_context(|| format!("cannot read {}", name()))?;
        buffer.truncate(known + count);
        Ok(count)
    }
}

impl Chunk {
    /// The lines, without empty ones.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let bytes = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        let texts = match std::str::from_utf8(bytes) {
            Ok(text) => Texts::Valid(split(text)),
            Err(_) => Texts::Mixed(bytes.split(|&byte| byte == b'\n')),
        };
        let may_have_mark = self.first_line == 1;
        let lines = (0..).zip(texts).map(move |(index, (length, text))| {
            let has_mark = may_have_mark && index == 0;
            let text = text.map(|text| if has_mark { text.trim_start_matches('\u{feff}') } else { text });
            let is_too_long = length > MAX_LINE_BYTES;
            Line { chunk: self, index, text: text.map(str::trim_ascii), is_too_long }
        });
        lines.filter(|line| line.text != Some("") || line.is_too_long)
    }

    /// The buffer, to be read into again.
    pub(crate) fn recycle(self) -> Vec<u8> {
        self.bytes
    }
}

/// The lines of a chunk: how long each is, and its text.
///
/// Checking a whole chunk at once is much faster than line by line, which is left for chunks that
/// hold something else than UTF-8.
enum Texts<V, M> {
    Valid(V),
    Mixed(M),
}

impl<'a, V, M> Iterator for Texts<V, M>
where
    V: Iterator<Item = &'a str>,
    M: Iterator<Item = &'a [u8]>,
{
    type Item = (usize, Option<&'a str>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Valid(texts) => texts.next().map(|text| (length(text.as_bytes()), Some(text))),
            Self::Mixed(lines) => lines.next().map(|line| (length(line), std::str::from_utf8(line).ok())),
        }
    }
}

/// The length of a line without what is left of a line break of two characters.
fn length(line: &[u8]) -> usize {
    line.len() - usize::from(line.ends_with(b"\r"))
}

/// As `str::split`, with a search made for long texts.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]);
    ends.scan(0, |start, end| {
        let line = &text[*start..end];
        *start = end + 1;
        Some(line)
    })
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}:{}", path.display(), self.number),
            None => write!(f, "line {}", self.number),
        }
    }
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn count_lines(bytes: &[u8]) -> u64 {
    let breaks = memchr::memchr_iter(b'\n', bytes).count() as u64;
    breaks + u64::from(!bytes.ends_with(b"\n"))
}

/// Whether a file can be read, as far as that shows without reading it: opening a pipe twice would
/// lose what its writer sent to the first reader.
fn check_readable(path: &Path) -> io::Result<()> {
    let metadata = path.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.is_file() {
        File::open(path)?;
    }
    Ok(())
}

/// How much there is to read; none if that is not known, as of standard input.
fn total_bytes(files: &[PathBuf]) -> Option<u64> {
    files
        .iter()
        .map(|path| path.metadata().ok().filter(std::fs::Metadata::is_file))
        .map(|file| Some(file?.len()))
        .sum()
}
