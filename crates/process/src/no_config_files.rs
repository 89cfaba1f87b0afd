//! Replacement of `config_files` in a build without the feature `mcp-files`: no file is changed.
#![expect(clippy::unused_self, reason = "the same calls as of `config_files`")]

use std::path::Path;

use teamster_core::provider::ConfigEdit;
use teamster_core::{AgentError, ErrorCode, ErrorKind};

use crate::launch::{Env, Plan};
use crate::notice::Notice;
use crate::run_folder::RunFolder;

#[derive(Debug, Default)]
pub(crate) struct ConfigFiles;

impl ConfigFiles {
    pub(crate) fn is_leased(_: &Path) -> bool {
        false
    }

    pub(crate) fn look_after(
        &self,
        plan: &mut Plan,
        _: &mut Vec<Notice>,
    ) -> Result<(), AgentError> {
        if plan.launch.config.is_none() && plan.launch.names_taken.is_empty() {
            Ok(())
        } else {
            Err(absent(plan.cli))
        }
    }

    pub(crate) fn change<'a>(
        &mut self,
        _: ConfigEdit,
        _: &mut Env,
        _: impl FnOnce() -> Result<&'a RunFolder, AgentError>,
    ) -> Result<(), AgentError> {
        Err(absent("the CLI"))
    }

    pub(crate) fn is_nothing(&self) -> bool {
        true
    }

    pub(crate) fn give_back(&mut self, _: &mut Vec<Notice>) {}
}

fn absent(cli: &str) -> AgentError {
    AgentError::new(
        ErrorCode::ConfigLease,
        ErrorKind::Internal,
        format!(
            "this build cannot change configuration files of {cli}: turn on the feature `mcp-files` of \
             teamster-process, or of teamster"
        ),
    )
}
