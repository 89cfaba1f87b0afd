//! The CLI's agent for plans.

use teamster_core::{AgentError, ExecuteParams};

use super::{CHANGES, Settings, option, permission_of};

/// The agent that makes a plan.
const PLAN: &str = "plan";

impl Settings {
    /// Makes the CLI's agent for plans the one that runs. It may change no files but its plans; what else changes something
    /// needs permission.
    pub(super) fn plan(&mut self, params: &ExecuteParams) -> Result<(), AgentError> {
        self.must_be_readable("permission")?;
        if option(params, "--agent").is_some_and(|agent| agent != PLAN) {
            let problem = "OpenCode plans with its agent `plan`; leave out --agent";
            return Err(AgentError::refused("permission", problem));
        }
        self.agent = None;
        let agent = self.fix_agent_to(PLAN);
        let is_allowed = |tool: &str| {
            params
                .allowed_tools
                .iter()
                .any(|it| permission_of(it) == tool)
        };
        for tool in CHANGES {
            // The agent's own rules deny edits.
            if *tool != "edit" && !is_allowed(tool) {
                self.set(&agent, tool, "ask");
            }
        }
        self.agent = Some(agent);
        Ok(())
    }
}
