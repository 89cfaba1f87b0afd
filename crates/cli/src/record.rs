//! The version of the CLI, for a recorded run: it is read when the run is over, so that no run
//! begins later for it, and the engine cannot know it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use teamster::CliInfo;
use teamster::process::find_program;
use teamster_process::{FileMode, replace_file};

use crate::args::STORE_VARIABLE;
use crate::tokio_runtime;

/// How long a CLI may take to say its version. The run is over, so this must be short.
const VERSION_LIMIT: Duration = Duration::from_secs(5);

/// A recording that is to be made.
pub(crate) struct Recording {
    meta: PathBuf,
    program: PathBuf,
}

impl Recording {
    /// To be called before the run: what is there already belongs to another one. `program` is the
    /// one that is chosen, if any is.
    pub(crate) fn begin(dir: &Path, program: Option<&Path>, info: &CliInfo) -> Option<Self> {
        let meta = dir.join("meta.json");
        let program = program.unwrap_or(Path::new(info.program)).to_owned();
        let is_new = meta.symlink_metadata().is_err();
        is_new.then_some(Self { meta, program })
    }

    /// Puts the version into the recording. If anything fails it stays without one.
    pub(crate) fn complete(self, info: &CliInfo) {
        if let Some(version) = self.version(info) {
            // As it was is better than not at all.
            let _ = self.put(version);
        }
    }

    fn version(&self, info: &CliInfo) -> Option<String> {
        if !self.meta.exists() {
            return None;
        }
        let path = std::env::var_os("PATH");
        let program = find_program(&self.program.to_string_lossy(), path.as_deref()).ok()?;
        let mut command = tokio::process::Command::new(program);
        command.args(info.version_args).env_remove(STORE_VARIABLE);
        let answer = tokio_runtime()
            .ok()?
            .block_on(teamster::doctor::answer(command, VERSION_LIMIT))
            .ok()?;
        teamster::doctor::version_in(&answer)
    }

    fn put(&self, version: String) -> anyhow::Result<()> {
        let mut about: Map<String, Value> = serde_json::from_slice(&fs::read(&self.meta)?)?;
        about.insert("version".to_owned(), version.into());
        let mut text = serde_json::to_string_pretty(&about)?;
        text.push('\n');
        Ok(replace_file(
            &self.meta,
            text.as_bytes(),
            FileMode::Private,
        )?)
    }
}
