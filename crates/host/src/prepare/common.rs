//! The parts that runs and sessions share, and their worktree.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use teamster_api::{Accepted, KeptSpec, Trusted, Workspace, is_run_id};
use teamster_core::{AgentError, CliInfo, ExecuteParams, McpDelivery};
use teamster_process::{RuntimeConfig, find_program};
use teamster_store::{Conversation, StoreError};
use teamster_workspace::{NewWorktree, UnknownCommit, Wait, Worktree, WorktreeKey};

use super::{repository, upload};
use crate::setup::Setup;
use crate::text::error_chain;
use crate::{Host, Notice, Warning, environment, params, state, store};

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
    /// Makes the workspace, if one is to be made. Returns the working directory, as the spec is to have it.
    pub(super) async fn enter(
        &mut self,
        host: &Host,
        wanted: Wanted,
    ) -> Result<Option<PathBuf>, AgentError> {
        let location = match wanted.location {
            Some(Workspace::Directory { path }) => Some(path),
            None => None,
            Some(_) => {
                let (id, host) = (self.id.clone(), host.clone());
                // Git takes a while.
                let made = tokio::task::spawn_blocking(move || make(&host, &wanted, &id)).await;
                let made = made.unwrap_or_else(|error| match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => Err(AgentError::invalid_params("the program is ending")),
                });
                let worktree = self.worktree.insert(made?);
                let warnings = worktree.take_warnings().into_iter().map(Warning::new);
                self.warnings.extend(warnings);
                Some(worktree.directory().to_owned())
            }
        };
        self.directory = params::absolute(location.as_deref());
        Ok(location)
    }

    /// Returns what sets the workspace up before the agent starts.
    pub(super) fn setup(&self, trusted: &Trusted) -> Result<Option<Arc<Setup>>, AgentError> {
        Setup::of(trusted, self.directory.as_deref(), self.worktree.as_ref())
    }

    /// Notes that an agent is started in the workspace now.
    pub(super) fn begin(&mut self) -> Result<(), AgentError> {
        let Some(worktree) = &mut self.worktree else {
            return Ok(());
        };
        let started = worktree.start();
        started.map_err(|error| AgentError::refused("workspace", error_chain(&error)))
    }

    /// Takes the texts of the warnings until now: the important ones, and the others.
    pub(crate) fn take_warnings(&mut self) -> (Vec<String>, Vec<String>) {
        let texts = self.warning_texts();
        self.warnings.clear();
        texts
    }

    fn warning_texts(&self) -> (Vec<String>, Vec<String>) {
        let (important, others): (Vec<_>, Vec<_>) =
            self.warnings.iter().cloned().partition(|it| it.important);
        let texts = |warnings: Vec<Warning>| warnings.into_iter().map(|it| it.text).collect();
        (texts(important), texts(others))
    }

    /// Adds the warnings until now to what is kept of a description.
    pub(super) fn with_warnings(&self, mut kept: KeptSpec) -> KeptSpec {
        let (important, others) = self.warning_texts();
        let accepted = Accepted::with_important(important, others);
        kept.warnings = accepted.warnings;
        kept.important = accepted.important;
        kept
    }

    pub(super) fn set_mcp(&mut self, params: &ExecuteParams) {
        self.mcp = (!params.mcp_servers.is_empty()).then_some(params.mcp_delivery);
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
                host.notice(Notice::Warning(report.report));
            }
        }
    }

    pub(super) fn branch(&self) -> Option<String> {
        self.worktree.as_ref()?.branch().map(str::to_owned)
    }
}

pub(super) struct Wanted {
    pub(super) location: Option<Workspace>,
    /// The parameter for errors.
    pub(super) parameter: &'static str,
    /// The session key, to which a worktree belongs.
    pub(super) key: Option<WorktreeKey>,
    /// The first session of the conversation.
    pub(super) continues: Option<String>,
}

/// Returns the session key of a run or session, if there is one.
pub(super) fn worktree_key(
    name: Option<&String>,
    trusted: &Trusted,
) -> Result<Option<WorktreeKey>, AgentError> {
    let Some(name) = name else {
        return Ok(None);
    };
    let conversation: Conversation = (name.parse())
        .map_err(|error: StoreError| AgentError::invalid_params(error.to_string()))?;
    let name = conversation.to_string();
    let store = store::location(trusted.store.as_deref()).unwrap_or_default();
    // The location may have a password.
    let id = format!("{:x}", Sha256::digest(format!("{store}\0{name}")));
    Ok(Some(WorktreeKey::new(id, name)))
}

/// Returns the warning of a run whose requests no clients answer.
pub(super) fn no_clients() -> Warning {
    Warning::new("`ask_timeout_ms` is ignored: no clients answer requests")
}

/// Creates a worktree, or opens that of the key.
pub(super) fn create(
    root: &Path,
    id: &str,
    new: &NewWorktree,
    key: Option<&WorktreeKey>,
) -> anyhow::Result<Worktree> {
    match key {
        Some(key) => Worktree::of_key(root, id, new, key),
        None => Worktree::create(root, id, new),
    }
}

/// Makes the wanted workspace of a run with this id. Every error leaves nothing behind.
fn make(host: &Host, wanted: &Wanted, id: &str) -> Result<Worktree, AgentError> {
    let refused = |problem: String| AgentError::refused(wanted.parameter, problem);
    let root = state::file(state::WORKTREES).ok_or_else(|| {
        let problem = "no directory for it: set XDG_STATE_HOME or HOME to an absolute path";
        refused(problem.to_owned())
    })?;
    let notice = |text| host.notice(Notice::Warning(text));
    let wait = Wait::new(state::git_silence()?, &notice);
    let made = match &wanted.location {
        Some(Workspace::Worktree {
            directory,
            from,
            branch,
        }) => {
            let directory = params::absolute(directory.as_deref()).ok_or_else(|| {
                AgentError::invalid_params("set a working directory: this process has none")
            })?;
            let mut new = NewWorktree::of(directory);
            new.from.clone_from(from);
            new.branch.clone_from(branch);
            create(&root, id, &new, wanted.key.as_ref())
        }
        Some(Workspace::Upload {
            repository,
            commit,
            head,
            included,
            name,
            subdirectory,
            submitted_from: _,
            stays,
        }) => {
            let mut new = NewWorktree::default();
            new.name.clone_from(name);
            new.subdirectory = subdirectory.as_ref().map(Into::into);
            let head = head.as_deref().unwrap_or(commit);
            let included = included.as_deref();
            let made = upload::make(&root, id, (repository, commit), included, new, wait);
            let made = made.map(|made| made.of_upload(head));
            if *stays {
                made.and_then(Worktree::stay)
            } else {
                made
            }
        }
        Some(Workspace::Continued {}) => {
            Worktree::of_session(&root, id, continued(id, wanted.continues.as_deref())?)
        }
        Some(Workspace::Repository {
            url,
            commit,
            subdirectory,
        }) => {
            let mut new = NewWorktree::default();
            new.subdirectory = subdirectory.as_ref().map(Into::into);
            repository::make(&root, id, url, commit, new, wanted.key.as_ref(), wait)
        }
        Some(Workspace::Empty {}) => Worktree::empty(&root, id),
        _ => {
            return Err(refused(
                "this version cannot make such a workspace".to_owned(),
            ));
        }
    };
    made.map_err(|error| {
        let parameter = match &wanted.location {
            _ if !error.is::<UnknownCommit>() => wanted.parameter,
            Some(Workspace::Repository { .. }) => "workspace.commit",
            _ => "workspace.from",
        };
        let error = AgentError::refused(parameter, error_chain(&error));
        // A failed start leaves no folder: another process starts the run, or has done so.
        if root.join(id).exists() {
            error.held_by(id)
        } else {
            error
        }
    })
}

/// Returns the id of the session whose workspace the one with this id continues in. That of another owner is none.
fn continued<'a>(id: &str, first: Option<&'a str>) -> Result<&'a str, AgentError> {
    let owner = |id: &str| id.split_once('@').map(|(owner, _)| owner.to_owned());
    first
        .filter(|first| is_run_id(first) && owner(first) == owner(id))
        .ok_or_else(|| {
            AgentError::refused("continues", "expected the id of a session of this machine")
        })
}

/// Returns an error if the agent's program is missing.
pub(crate) fn missing_program(
    info: &CliInfo,
    path: Option<&String>,
    config: &RuntimeConfig,
) -> Option<AgentError> {
    if info.program.is_empty() || config.container.is_some() {
        // An embedded agent runs in this process, and the program of another one may be in a container.
        return None;
    }
    let program = match &config.program {
        Some(program) => program.to_str()?,
        None => info.program,
    };
    let path = path
        .map(Into::into)
        .or_else(|| environment::variable("PATH"));
    find_program(program, path.as_deref()).err()
}

#[cfg(test)]
mod tests {
    use super::continued;

    #[test]
    fn a_session_continues_in_a_workspace_of_its_owner_only() {
        for (id, first) in [("s2", "s1"), ("ann@s2", "ann@s1")] {
            assert_eq!(continued(id, Some(first)).unwrap(), first);
        }
        let refused = [
            ("ann@s2", Some("bob@s1")),
            ("ann@s2", Some("s1")),
            ("s2", Some("ann@s1")),
            ("s2", Some("../s1")),
            ("s2", None),
        ];
        for (id, first) in refused {
            let error = continued(id, first).unwrap_err().to_string();
            assert!(
                error.contains("expected the id of a session of this machine"),
                "{id} {first:?}: {error}"
            );
        }
    }
}
