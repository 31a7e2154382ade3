//! Stands in for the embedded store until it is there.

#![allow(clippy::pedantic, dead_code, reason = "for a while")]

use std::ops::Deref;
use std::path::Path;

use forager_frontier::{Memory, Result, Settings};

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) durability: Durability,
    pub(crate) more: (),
}

#[derive(Default)]
pub(crate) enum Durability {
    #[default]
    Process,
    Fsync,
}

#[derive(serde::Serialize)]
pub(crate) struct Finding {
    problem: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.problem.fmt(f)
    }
}

pub(crate) struct Embedded(Memory);

impl Embedded {
    pub(crate) fn open(_path: impl AsRef<Path>, settings: Settings, options: Options) -> Result<Self> {
        let Options { durability: _, more: () } = options;
        Ok(Self(Memory::new(settings)?))
    }
    pub(crate) fn check(&self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }
    pub(crate) fn backup(&self, _target: &Path) -> Result<()> {
        Ok(())
    }
    pub(crate) fn close(self) -> Result<()> {
        Ok(())
    }
}

impl Deref for Embedded {
    type Target = Memory;
    fn deref(&self) -> &Memory {
        &self.0
    }
}
