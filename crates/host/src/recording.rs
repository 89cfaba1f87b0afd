//! Adds the CLI's version to a recording. It is queried after the run, so that it does not delay the start.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use teamster_api::Trusted;
use teamster_core::CliInfo;
use teamster_process::{FileMode, find_program, replace_file};
use teamster_providers::doctor;

use crate::environment::{self, STORE_VARIABLE, program_variable};
use crate::params;

/// The time limit for the CLI's version. It delays the end of the command.
const VERSION_LIMIT: Duration = Duration::from_secs(5);

/// A recording whose version is to be added.
pub struct Recording {
    meta: PathBuf,
    program: PathBuf,
}

impl Recording {
    /// Prepares for the recording of a run, if one is wanted. Returns `None` if the folder already has a recording.
    pub(crate) fn of(trusted: &Trusted, info: &CliInfo) -> Option<Self> {
        if !matches!(params::container(trusted), Ok(None)) {
            // The CLI of a container is not on this machine.
            return None;
        }
        let program = trusted.program.clone().or_else(|| program_variable(info));
        Self::begin(trusted.record_to.as_deref()?, program.as_deref(), info)
    }

    /// Prepares for a recording; call it before the run. Returns `None` if the folder already has a recording.
    /// `program` is the chosen program, if any.
    fn begin(dir: &Path, program: Option<&Path>, info: &CliInfo) -> Option<Self> {
        let meta = dir.join("meta.json");
        let program = program.unwrap_or(Path::new(info.program)).to_owned();
        let is_new = meta.symlink_metadata().is_err();
        is_new.then_some(Self { meta, program })
    }

    /// Adds the version to the recording. On an error, the recording stays without a version.
    pub async fn complete(self, info: &CliInfo) {
        if let Some(version) = self.version(info).await {
            // On an error, the recording stays as it is.
            let _ = self.put(version);
        }
    }

    async fn version(&self, info: &CliInfo) -> Option<String> {
        if !self.meta.exists() {
            return None;
        }
        let path = environment::variable("PATH");
        let program = find_program(&self.program.to_string_lossy(), path.as_deref()).ok()?;
        let mut command = tokio::process::Command::new(program);
        command.args(info.version_args).env_remove(STORE_VARIABLE);
        doctor::version_of(info, command, VERSION_LIMIT).await.ok()
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
