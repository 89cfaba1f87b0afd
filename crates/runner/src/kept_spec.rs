//! Acceptance of a run, and the spec that is kept of it beside its description.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use teamster_api::{KeptSpec, RunInfo};

use crate::step::{Step, before};
use crate::{AcceptedRun, LogLimits, RunFolder, Runs, RunsError, files};

/// Name of the file in a run's folder.
const FILE: &str = "spec.json";

impl Runs {
    /// Accepts a run: creates its folder, with this process as its runner. After this returns, every reader
    /// finds the run, even after a crash of this process or the machine.
    ///
    /// # Errors
    ///
    /// Fails if the id is invalid or in use, or if the folder cannot be written. Then no run exists.
    pub fn accept(&self, info: &RunInfo, limits: LogLimits) -> Result<AcceptedRun, RunsError> {
        self.accept_with(info, None, limits)
    }

    /// Accepts a run as [`accept`](Self::accept) does, and keeps its spec.
    ///
    /// # Errors
    ///
    /// Fails as [`accept`](Self::accept) does.
    pub fn accept_spec(
        &self,
        info: &RunInfo,
        spec: &KeptSpec,
        limits: LogLimits,
    ) -> Result<AcceptedRun, RunsError> {
        self.accept_with(info, Some(spec), limits)
    }
}

impl RunFolder {
    /// Returns the spec of the run; `None` if it was not kept, as for the ticks of a loop.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or was damaged or written by a later version.
    pub fn spec(&self) -> Result<Option<KeptSpec>, RunsError> {
        let file = self.path().join(FILE);
        let text = match files::read(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(RunsError::io("read", &file))?,
        };
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|error| RunsError::io("read", &file)(error.into()))
    }
}

/// Writes the spec into the draft of a run's folder.
///
/// It is not synced: after a power failure the run is there without it.
pub(crate) fn write(draft: &Path, spec: &KeptSpec) -> Result<(), RunsError> {
    before(Step::WriteSpec);
    let file = draft.join(FILE);
    let written = serde_json::to_vec(spec)
        .map_err(io::Error::from)
        .and_then(|text| {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&file)?;
            file.write_all(&text)
        });
    written.map_err(RunsError::io("write", file))
}
