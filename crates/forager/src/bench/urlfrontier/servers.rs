//! The servers that are measured: processes of their own, so that what they need is not ours.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};

use super::super::figures::{Figures, folder_bytes, peak_memory_of};

/// A server that is there.
pub(super) struct Started {
    pub(super) address: String,
    own: Option<Own>,
}

/// One of our own, which goes when the run ends, and the folder it works in.
struct Own {
    process: Child,
    folder: tempfile::TempDir,
}

/// Which one to start.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// One that only acknowledges.
    Echo,
    /// One that keeps what it acknowledges.
    Queue,
}

impl Started {
    /// The server that is given, as a URL or by its name and port, or one of our own.
    pub(super) fn or_given(address: Option<&str>) -> anyhow::Result<Self> {
        match address {
            Some(address) if address.contains("://") => Ok(Self { address: address.to_owned(), own: None }),
            Some(address) => Ok(Self { address: format!("http://{address}"), own: None }),
            None => Self::new(Kind::Queue),
        }
    }

    /// Starts one of our own.
    pub(super) fn new(kind: Kind) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a folder to work in")?;
        let mut command = Command::new(std::env::current_exe()?);
        match kind {
            Kind::Echo => command.args(["bench", "urlfrontier", "--echo", "0"]),
            Kind::Queue => command.args(["serve", "--port", "0", "--data"]).arg(folder.path().join("queue")),
        };
        let mut process = command.stdout(Stdio::piped()).spawn().context("cannot start a server")?;
        let stdout = process.stdout.take().context("the server has no output")?;
        let own = Own { process, folder };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let port = line.trim().strip_prefix("Started URLFrontierServer on port ");
        let Some(port) = port else { bail!("the server did not start: {line}") };
        Ok(Self { address: format!("http://127.0.0.1:{port}"), own: Some(own) })
    }

    /// Tells what it needs, where it is our own.
    pub(super) fn tell(&self, figures: &mut Figures, urls: u64) -> anyhow::Result<()> {
        let Some(own) = &self.own else { return Ok(()) };
        let memory = peak_memory_of(&own.process.id().to_string())?;
        figures.size(&format!("peak memory of the server, {urls} URLs"), memory, urls);
        figures.size(&format!("disk, {urls} URLs"), folder_bytes(own.folder.path())?, urls);
        Ok(())
    }

    /// Ends it, where it is our own.
    pub(super) fn end(self) -> anyhow::Result<()> {
        self.own.map_or(Ok(()), Own::end)
    }
}

impl Own {
    fn end(mut self) -> anyhow::Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // It has ended already, or a run that failed leaves it behind.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
