//! Sub-agents of a run, beside the user's.

use serde_json::json;
use teamster_core::provider::{PathLocation, PrivateFile};
use teamster_core::{AgentError, ExecuteParams, PermissionMode};

use super::super::invalid;
use super::Settings;

/// Beginning of the names of variables that name the files with the prompts. The CLI reads files literally.
const PROMPT_FILE: &str = "TEAMSTER_OPENCODE_SUB_AGENT";

impl Settings {
    /// Adds the sub-agents. Rules of the run come after their own, and so are stronger.
    pub(super) fn sub_agents(&mut self, params: &ExecuteParams) -> Result<(), AgentError> {
        if params.sub_agents.is_empty() {
            return Ok(());
        }
        self.must_be_readable("sub_agents")?;
        if params.permission == PermissionMode::ReadOnly {
            return invalid(
                "sub_agents",
                "in read-only, OpenCode has no tool that starts one; use another permission mode",
            );
        }
        let known = self.agents();
        for (index, agent) in params.sub_agents.iter().enumerate() {
            let refused = |problem: &str| {
                Err(AgentError::refused_item(
                    "sub_agents",
                    &*agent.name,
                    problem,
                ))
            };
            if known.contains(&agent.name) {
                return refused("OpenCode has an agent of this name; use another");
            }
            let mut settings = agent.settings.clone();
            settings.insert("description".to_owned(), json!(agent.description));
            settings.insert("mode".to_owned(), json!("subagent"));
            let text = json!([agent.name, settings]).to_string();
            if text.contains("{env:") || text.contains("{file:") {
                return refused(
                    "OpenCode would replace {env:…} and {file:…} in its head; remove them",
                );
            }
            let variable = format!("{PROMPT_FILE}_{index}");
            let prompt = format!("{{file:{{env:{variable}}}}}");
            settings.insert("prompt".to_owned(), json!(prompt));
            *self.settings_of(&agent.name) = settings;
            self.files.push(PrivateFile {
                location: PathLocation::Variable(variable),
                content: agent.prompt.clone().into_bytes(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use teamster_core::SubAgent;

    use super::*;

    fn params(agent: SubAgent) -> ExecuteParams {
        ExecuteParams::new("hi").sub_agents([agent])
    }

    #[test]
    fn sub_agent_has_a_private_prompt_and_the_rules_of_the_run() {
        let mut agent = SubAgent::new("reviewer", "Reviews code", "You review {env:HOME}.");
        let rules = json!({"bash": "allow", "edit": "deny"});
        agent.settings.insert("permission".to_owned(), rules);
        let params = params(agent).denied_tools(["bash"]);
        let settings = Settings::new(&params).unwrap();
        let reviewer = &settings.config["agent"]["reviewer"];
        assert_eq!(reviewer["description"], "Reviews code");
        assert_eq!(reviewer["mode"], "subagent");
        assert_eq!(
            reviewer["prompt"],
            "{file:{env:TEAMSTER_OPENCODE_SUB_AGENT_0}}"
        );
        assert_eq!(reviewer["permission"]["bash"], "deny");
        assert_eq!(reviewer["permission"]["edit"], "deny");
        assert_eq!(
            settings.files,
            [PrivateFile {
                location: PathLocation::Variable("TEAMSTER_OPENCODE_SUB_AGENT_0".to_owned()),
                content: b"You review {env:HOME}.".to_vec(),
            }]
        );
    }

    #[test]
    fn sub_agent_that_would_be_mixed_or_changed_is_refused() {
        let refused = |params: &ExecuteParams| Settings::new(params).unwrap_err().message;
        assert_eq!(
            refused(&params(SubAgent::new("build", "b", "c"))),
            "sub_agents: build: OpenCode has an agent of this name; use another"
        );
        assert!(
            refused(&params(SubAgent::new("a", "{env:HOME}", "c")))
                .starts_with("sub_agents: a: OpenCode would replace")
        );
        let read_only = params(SubAgent::new("a", "b", "c")).permission(PermissionMode::ReadOnly);
        assert!(refused(&read_only).starts_with("sub_agents: in read-only"));
    }
}
