//! Files of lines that crawls add to, one after the other.
//!
//! A process that is killed, or whose disk is full, may leave a line behind that is not whole. What comes next must not
//! be glued to it.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::de::IgnoredAny;

use super::log;
use crate::output;

/// The longest line that is read; ours are shorter.
pub(super) const LONGEST_LINE: usize = 16 << 20;

/// What the lines of a file are.
#[derive(Clone, Copy)]
pub(super) enum Lines {
    /// Objects of JSON.
    Json,
    /// As Heritrix writes its `crawl.log`.
    Log,
}

impl Lines {
    fn is_whole(self, line: &[u8]) -> bool {
        match self {
            Self::Json => serde_json::from_slice::<IgnoredAny>(line).is_ok(),
            Self::Log => log::is_whole(line),
        }
    }

    /// Whether that is the beginning of a line of ours, or what a disk that lost power makes of one.
    fn is_begun(self, line: &[u8]) -> bool {
        line.first().is_some_and(|first| match self {
            Self::Json => matches!(first, b'{' | 0),
            Self::Log => first.is_ascii_digit() || *first == 0,
        })
    }
}

/// A file to which lines are added.
pub(super) struct Appended {
    path: PathBuf,
    lines: Lines,
    file: BufWriter<File>,
    /// Whether it ends with a whole line, as far as that can be had. That is seen to before the first line is added, and no
    /// sooner: until a crawl has its queue, another one may be writing.
    is_mended: bool,
    /// After a line that could not be written none is: it would follow what there is of that one.
    is_broken: bool,
}

impl Appended {
    pub(super) fn open(path: &Path, lines: Lines) -> anyhow::Result<Self> {
        let file = File::options().create(true).append(true).open(path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        let (path, file) = (path.to_owned(), BufWriter::new(file));
        Ok(Self { path, lines, file, is_mended: false, is_broken: false })
    }

    /// Lets the file end with a whole line: one that is not is cut away, one that lacks only its end gets it. What is no
    /// file on a disk stays as it is.
    fn mend(&mut self) -> io::Result<()> {
        let file = self.file.get_mut();
        let is_file = file.metadata()?.is_file();
        // Whoever may write to it need not be allowed to read it.
        let Some(end) = File::open(&self.path).ok().filter(|_| is_file).map(unfinished).transpose()? else {
            return Ok(());
        };
        let Some((starts, line)) = end else { return Ok(()) };
        if self.lines.is_begun(&line) && !self.lines.is_whole(&line) {
            file.set_len(starts)?;
            let (path, bytes) = (self.path.display(), line.len());
            output::complain(format_args!(
                "{path} ended with a line that is not whole, as a crawl leaves it that is killed or whose disk is full; \
                 its {bytes} bytes are cut away"
            ));
            return Ok(());
        }
        file.write_all(b"\n")
    }

    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_mended {
            self.mend()?;
            self.is_mended = true;
        }
        self.file.write_all(bytes)
    }
}

impl Write for Appended {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_broken {
            return Err(io::Error::other("a line before could not be written"));
        }
        let added = self.add(bytes);
        self.is_broken = added.is_err();
        added
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// What follows the last end of a line of a file, if anything does: where it starts, and as much of it as is read.
fn unfinished(mut file: File) -> io::Result<Option<(u64, Vec<u8>)>> {
    const CHUNK: u64 = 64 << 10;
    let length = file.seek(SeekFrom::End(0))?;
    let (mut starts, mut line) = (length, Vec::new());
    while starts > 0 && line.len() < LONGEST_LINE {
        let from = starts.saturating_sub(CHUNK);
        file.seek(SeekFrom::Start(from))?;
        let mut chunk = Vec::new();
        (&mut file).take(starts - from).read_to_end(&mut chunk)?;
        let end = memchr::memrchr(b'\n', &chunk);
        let rest = chunk.split_off(end.map_or(0, |end| end + 1));
        starts -= rest.len() as u64;
        line.splice(..0, rest);
        if end.is_some() {
            break;
        }
    }
    Ok((!line.is_empty()).then_some((starts, line)))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    fn mended(before: &[u8], lines: Lines) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        std::fs::write(&path, before).unwrap();
        let mut file = Appended::open(&path, lines).unwrap();
        file.write_all(b"next\n").unwrap();
        file.write_all(b"last\n").unwrap();
        drop(file);
        let text = std::fs::read(&path).unwrap();
        text.strip_suffix(b"next\nlast\n").unwrap().to_owned()
    }

    #[test]
    fn what_is_not_whole_does_not_swallow_what_follows() {
        let long = format!("{{\"a\":1}}\n{{\"a\":\"{}", "x".repeat(200_000));
        let whole = format!("{long}\"}}");
        let trace =
            "2026-01-01T00:00:00.000Z   200         10 http://a.test/ - - text/html #001 2026+1 blake3:0 -";
        let whole_trace = format!("{trace} -");
        let table: [(Lines, &str, &str); 11] = [
            (Lines::Json, "", ""),
            (Lines::Json, "{\"a\":1}\n", "{\"a\":1}\n"),
            (Lines::Json, "{\"a\":1}\n{\"a\"", "{\"a\":1}\n"),
            (Lines::Json, "{\"a\":1}\n\0\0\0", "{\"a\":1}\n"),
            (Lines::Json, "{\"a\"", ""),
            (Lines::Json, "{\"a\":1}", "{\"a\":1}\n"),
            (Lines::Json, &long, "{\"a\":1}\n"),
            (Lines::Json, &whole, &(whole.clone() + "\n")),
            // What is not ours stays.
            (Lines::Json, "a note", "a note\n"),
            (Lines::Log, trace, ""),
            (Lines::Log, &whole_trace, &(whole_trace.clone() + "\n")),
        ];
        for (lines, before, want) in table {
            let got = mended(before.as_bytes(), lines);
            assert_eq!(String::from_utf8_lossy(&got), want, "{before:.60?}");
        }
    }

    /// A line is longer than what is kept back, so that the disk has the first part of it.
    #[test]
    fn nothing_follows_a_line_that_could_not_be_written() {
        let mut file = Appended::open(Path::new("/dev/full"), Lines::Json).unwrap();
        let line = vec![b'x'; 100_000];
        assert_eq!(file.write_all(&line).unwrap_err().kind(), ErrorKind::StorageFull);
        assert!(file.write_all(b"{}\n").is_err());
        assert_eq!(file.file.buffer(), b"");
    }
}
