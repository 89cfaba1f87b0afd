//! Arguments and environment with which an agent was launched.

use std::collections::BTreeMap;
use std::path::Path;

use nix::unistd;
use serde::{Deserialize, Serialize};

use super::Stop;

/// Content of the JSON file that the step `report` writes. Text that is not UTF-8 is replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// The working directory.
    pub cwd: String,
    /// Process id.
    pub pid: u32,
    /// Process id of the parent.
    pub ppid: u32,
    /// Process group id.
    pub pgid: u32,
    /// Session id.
    pub sid: u32,
}

impl Report {
    /// Reads a report. The file appears atomically, so an existing one is complete.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not a report.
    pub fn read(file: impl AsRef<Path>) -> std::io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(file)?)?)
    }

    pub(super) fn of_this_process() -> Result<Self, Stop> {
        let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let cwd = std::env::current_dir()
            .map_err(|error| Stop::failed("cannot find the working directory", error))?;
        let sid =
            unistd::getsid(None).map_err(|error| Stop::failed("cannot find the session", error))?;
        Ok(Self {
            argv: std::env::args_os().map(lossy).collect(),
            env: std::env::vars_os()
                .map(|(name, value)| (lossy(name), lossy(value)))
                .collect(),
            cwd: lossy(cwd.into()),
            pid: std::process::id(),
            ppid: unistd::getppid().as_raw().cast_unsigned(),
            pgid: unistd::getpgrp().as_raw().cast_unsigned(),
            sid: sid.as_raw().cast_unsigned(),
        })
    }
}
