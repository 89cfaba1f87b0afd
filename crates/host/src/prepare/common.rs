//! The parts that runs and sessions share, and their worktree.

use std::path::{Path, PathBuf};

use teamster_api::Worktree as WantedWorktree;
use teamster_core::{
    AgentError, AgentEvent, CliInfo, ExecuteParams, McpDelivery, NoticeLevel, NoticeSource,
};
use teamster_runner::BeforeDone;

use teamster_workspace::Worktree;

use crate::text::error_chain;
use crate::{Host, Notice, Warning, params, state};

/// Prepared parts that runs and sessions share.
#[non_exhaustive]
pub struct Common {
    /// Id of the run or session.
    pub id: String,
    /// The first agent.
    pub agent: &'static CliInfo,
    /// The agent's working directory, absolute.
    pub directory: Option<PathBuf>,
    /// The worktree that was made for it. Dropped, it is removed unless it has changes.
    pub worktree: Option<Worktree>,
    /// Delivery of the MCP servers; `None` without servers.
    pub mcp: Option<McpDelivery>,
    /// Warnings, such as of parameters without effect.
    pub warnings: Vec<Warning>,
}

impl Common {
    /// Makes the worktree, if one is wanted, and sets the working directory.
    pub(super) async fn enter(
        &mut self,
        working_directory: &mut Option<PathBuf>,
        wanted: Option<&WantedWorktree>,
    ) -> Result<(), AgentError> {
        if let Some(wanted) = wanted {
            let (directory, wanted, id) =
                (working_directory.clone(), wanted.clone(), self.id.clone());
            // Git takes a while.
            let make = move || create(directory.as_deref(), &wanted, &id);
            let made = tokio::task::spawn_blocking(make).await;
            let made = made.unwrap_or_else(|error| match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(AgentError::invalid_params("the program is ending")),
            });
            self.worktree = made?;
        }
        if let Some(worktree) = &mut self.worktree {
            self.warnings
                .extend(worktree.take_warnings().into_iter().map(Warning::new));
            *working_directory = Some(worktree.directory().to_owned());
        }
        self.directory = params::absolute(working_directory.as_deref());
        Ok(())
    }

    pub(super) fn set_mcp(&mut self, params: &ExecuteParams) {
        self.mcp = (!params.mcp_servers.is_empty()).then_some(params.mcp_delivery);
    }

    /// Returns a hook that finishes the worktree once no process is left in it.
    pub(crate) fn before_done(&mut self) -> Option<BeforeDone> {
        let worktree = self.worktree.take()?;
        Some(Box::new(move || {
            AgentEvent::notice(NoticeLevel::Info, NoticeSource::Runtime, worktree.finish())
        }))
    }

    /// Leaves a run or session that is refused. Its warnings until then and the report of its worktree are notices.
    pub(super) async fn leave(self, host: &Host) {
        for warning in self.warnings {
            host.notice(Notice::Warning(warning.text));
        }
        if let Some(worktree) = self.worktree {
            // Git takes a while.
            let report = tokio::task::spawn_blocking(|| worktree.finish()).await;
            // It fails only if the runtime ends, which drops the worktree.
            if let Ok(report) = report {
                host.notice(Notice::Warning(report));
            }
        }
    }

    /// Returns the branch of the worktree.
    pub(super) fn branch(&self) -> Option<String> {
        self.worktree.as_ref().map(|it| it.branch().to_owned())
    }
}

/// The folder of all worktrees in the state directory.
const WORKTREES: &str = "teamster/worktrees";

/// Creates the wanted worktree of a run with this id. Every error leaves nothing behind.
fn create(
    working_directory: Option<&Path>,
    wanted: &WantedWorktree,
    id: &str,
) -> Result<Option<Worktree>, AgentError> {
    let branch = match wanted {
        WantedWorktree::Switch(false) => return Ok(None),
        WantedWorktree::Switch(true) => None,
        WantedWorktree::Branch(branch) => Some(&**branch),
    };
    let directory = params::absolute(working_directory)
        .ok_or_else(|| AgentError::invalid_params("there is no working directory"))?;
    let root = state::file(WORKTREES).ok_or_else(|| {
        AgentError::refused(
            "worktree",
            "no directory for it: set XDG_STATE_HOME or HOME to an absolute path",
        )
    })?;
    let worktree = Worktree::create(&root, &directory, branch, id);
    worktree
        .map(Some)
        .map_err(|error| AgentError::refused("worktree", error_chain(&error)))
}
