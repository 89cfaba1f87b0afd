//! Settings without a flag. They go to OpenCode in two environment variables.
//!
//! `OPENCODE_CONFIG_CONTENT` is a whole configuration, merged over all files of the user. `OPENCODE_PERMISSION` is
//! merged over its permissions. No file is changed. The caller may use both variables, so our settings are added to
//! the caller's.

mod plan;
mod skills;
mod sub_agents;
mod withheld;

use std::env;
use std::hash::{BuildHasher, RandomState};

use serde_json::{Map, Value, json};
use teamster_core::provider::{PathLocation, PrivateFile};
use teamster_core::{AgentError, ExecuteParams, PermissionMode, SystemPrompt};

use super::{invalid, mcp, option};

pub(crate) use withheld::Withheld;

/// A configuration, merged over the user's files.
const CONFIG: &str = "OPENCODE_CONFIG_CONTENT";
/// Permissions, merged over those of the configuration.
const PERMISSION: &str = "OPENCODE_PERMISSION";

/// Variables that name the files with a system prompt. The CLI reads files literally; in the configuration itself it
/// would expand `{env:NAME}` and `{file:PATH}`.
const PROMPT_FILE: &str = "TEAMSTER_OPENCODE_PROMPT";
const INSTRUCTIONS_FILE: &str = "TEAMSTER_OPENCODE_INSTRUCTIONS";

/// Tools that wait for a user. The CLI withholds them from sessions that `run` begins, but not from a resumed session
/// that began elsewhere. There a question would never be answered, and the run would never end.
const QUESTIONS: &[&str] = &["question", "plan_enter", "plan_exit"];

/// The CLI's own permissions that changes need. `edit` covers all tools that write files; `task` starts other agents,
/// which have their own permissions.
const CHANGES: &[&str] = &["edit", "bash", "task"];

/// Agents that every user has and that run tools.
const AGENTS: &[&str] = &["build", "plan", "general", "explore"];

/// Agents of these with which a run may start; the others only work for them. The CLI treats any agent under its old
/// key `mode` as one to start with.
const PRIMARY_AGENTS: &[&str] = &["build", "plan"];

/// The variables to set, and the files that they name.
#[derive(Debug)]
pub(crate) struct Settings {
    config: Map<String, Value>,
    permission: Map<String, Value>,
    files: Vec<PrivateFile>,
    /// True if the caller's configuration cannot be parsed, so nothing can be added to it.
    opaque: bool,
    /// The agent that the caller named.
    agent: Option<String>,
    /// Suffix of the keys of this run's rules, see [`last_key`].
    stars: String,
}

impl Settings {
    /// Creates the settings of a run.
    pub(crate) fn new(params: &ExecuteParams) -> Result<Self, AgentError> {
        Self::of(params, false)
    }

    /// Creates the settings of a process for many turns.
    pub(super) fn for_session(params: &ExecuteParams) -> Result<Self, AgentError> {
        let mut settings = Self::of(params, true)?;
        if !settings.opaque {
            // Otherwise the model writes a title for each session, and its usage is not reported.
            let title = settings.settings_of("title");
            title.entry("disable").or_insert(json!(true));
        }
        Ok(settings)
    }

    fn of(params: &ExecuteParams, is_session: bool) -> Result<Self, AgentError> {
        check_tools(params)?;
        let config = callers(params, CONFIG);
        let config = config.as_deref().map(str::trim).filter(|c| !c.is_empty());
        let object = config.map(object);
        let opaque = object.as_ref().is_some_and(Option::is_none);
        let config = object.flatten().unwrap_or_default();
        let named = config.get("default_agent").and_then(Value::as_str);
        let agent = option(params, "--agent").or(named).map(str::to_owned);
        let mut settings = Self {
            permission: callers(params, PERMISSION)
                .and_then(|text| object_of(&text))
                .unwrap_or_default(),
            config,
            files: Vec::new(),
            opaque,
            agent,
            stars: "*".repeat(number_of_stars()),
        };
        settings.sub_agents(params)?;
        settings.permissions(params, is_session)?;
        settings.add_dirs(params)?;
        settings.skills(params)?;
        settings.system_prompt(params)?;
        Ok(settings)
    }

    /// Adds servers to the configuration.
    pub(crate) fn add_servers(&mut self, servers: &[(String, Value)]) -> Result<(), AgentError> {
        if servers.is_empty() {
            return Ok(());
        }
        self.must_be_readable("mcp_servers")?;
        object_at(&mut self.config, "mcp").extend(servers.iter().cloned());
        let text = Value::Object(self.config.clone()).to_string();
        mcp::check_size(CONFIG, &text)
    }

    pub(crate) fn into_parts(self) -> (Vec<(String, String)>, Vec<PrivateFile>) {
        let mut variables = Vec::new();
        if !self.opaque && !self.config.is_empty() {
            variables.push((CONFIG.to_owned(), Value::Object(self.config).to_string()));
        }
        variables.push((
            PERMISSION.to_owned(),
            Value::Object(self.permission).to_string(),
        ));
        (variables, self.files)
    }

    fn permissions(&mut self, params: &ExecuteParams, is_session: bool) -> Result<(), AgentError> {
        if params.permission == PermissionMode::Plan {
            self.plan(params)?;
        }
        if params.permission == PermissionMode::AcceptEdits {
            self.allow("permission", "edit")?;
        }
        for tool in &params.allowed_tools {
            self.allow("allowed_tools", permission_of(tool))?;
        }
        // Denials come later, because the last matching rule applies.
        for tool in QUESTIONS {
            self.set_for_all(tool, "deny");
        }
        if (is_session || params.session_id.is_some()) && !self.opaque {
            for agent in self.agents() {
                for tool in QUESTIONS {
                    self.set(&agent, tool, "deny");
                }
            }
        }
        if params.permission == PermissionMode::ReadOnly {
            self.must_be_readable("permission")?;
            let agent = self.fix_agent();
            for tool in CHANGES {
                self.set(&agent, tool, "deny");
            }
        }
        let denied = params.denied_tools.iter();
        let (servers_tools, own): (Vec<_>, Vec<_>) = denied
            .map(|tool| permission_of(tool))
            .partition(|tool| may_be_a_servers(tool));
        for tool in own {
            self.deny_everywhere(tool)?;
        }
        // A server's tools stay allowed, even if its name begins like that of a denied tool.
        for server in &params.mcp_servers {
            self.must_be_readable("mcp_servers")?;
            for (tool, action) in mcp::rules(server) {
                self.set_for_all(&tool, action);
                for agent in self.agents() {
                    self.set(&agent, &tool, action);
                }
                if server.tools.only.is_none() && action == "deny" {
                    self.keep_from_sub_agents(&tool);
                }
            }
        }
        for tool in servers_tools {
            self.deny_everywhere(tool)?;
        }
        if is_session || params.permission != PermissionMode::Bypass {
            // A permission request is denied. By default, that ends the run.
            let experimental = self.config.entry("experimental").or_insert(json!({}));
            if let Some(experimental) = experimental.as_object_mut() {
                experimental
                    .entry("continue_loop_on_deny")
                    .or_insert(Value::Bool(true));
            }
        }
        Ok(())
    }

    /// Denies a tool that the caller has denied.
    fn deny_everywhere(&mut self, tool: &str) -> Result<(), AgentError> {
        self.must_be_readable("denied_tools")?;
        self.set_for_all(tool, "deny");
        for agent in self.agents() {
            self.set(&agent, tool, "deny");
        }
        self.keep_from_sub_agents(tool);
        Ok(())
    }

    /// Sets the rule of all agents without another rule for this tool.
    fn set_for_all(&mut self, tool: &str, action: &str) {
        rule(&mut self.permission, tool, action);
        rule(&mut self.permission, &last_key(tool, &self.stars), action);
    }

    /// Sets an agent's rule, independent of the user's files. Settings under the old key `mode` are merged over those
    /// under `agent`, so they have precedence.
    fn set(&mut self, agent: &str, tool: &str, action: &str) {
        let key = last_key(tool, &self.stars);
        rule(self.permissions_of(agent), tool, action);
        let rules = if self.may_start_with(agent) {
            rules_of(self.mode_of(agent))
        } else {
            self.permissions_of(agent)
        };
        rule(rules, &key, action);
    }

    /// Denies a tool to the sessions of all sub-agents of any name. A session's rules have precedence over those of
    /// its agent.
    fn keep_from_sub_agents(&mut self, tool: &str) {
        let experimental = object_at(&mut self.config, "experimental");
        let tools = experimental.entry("primary_tools").or_insert(json!([]));
        match tools.as_array_mut() {
            Some(tools) => tools.push(json!(tool)),
            None => *tools = json!([tool]),
        }
    }

    /// Allows a tool, for all agents and for the running one.
    fn allow(&mut self, parameter: &str, tool: &str) -> Result<(), AgentError> {
        self.must_be_readable(parameter)?;
        let agent = self.agent.clone().unwrap_or_else(|| "build".to_owned());
        rule(&mut self.permission, tool, "allow");
        rule(self.permissions_of(&agent), tool, "allow");
        Ok(())
    }

    /// Lets the tools use these directories in addition to the working directory.
    fn add_dirs(&mut self, params: &ExecuteParams) -> Result<(), AgentError> {
        for dir in &params.add_dirs {
            self.must_be_readable("add_dirs")?;
            let Some(text) = dir.to_str().filter(|_| dir.is_absolute()) else {
                return invalid("add_dirs", "OpenCode takes absolute paths in UTF-8");
            };
            if text.contains(['*', '?', '{', '}', '\\']) {
                return invalid(
                    "add_dirs",
                    "a path with * ? { } or \\ would be a pattern here",
                );
            }
            let all_in_it = format!("{}/*", text.trim_end_matches('/'));
            for agent in self.agents() {
                let rules = self.permissions_of(&agent);
                let outside = rules.entry("external_directory").or_insert(json!({}));
                if let Value::String(action) = outside {
                    *outside = json!({"*": action});
                }
                if let Some(outside) = outside.as_object_mut() {
                    rule(outside, text, "allow");
                    rule(outside, &all_in_it, "allow");
                }
            }
        }
        Ok(())
    }

    fn system_prompt(&mut self, params: &ExecuteParams) -> Result<(), AgentError> {
        let (variable, text) = match &params.system_prompt {
            Some(SystemPrompt::Append(text)) => (INSTRUCTIONS_FILE, text),
            Some(SystemPrompt::Replace(text)) => (PROMPT_FILE, text),
            _ => return Ok(()),
        };
        self.must_be_readable("system_prompt")?;
        if text.trim().is_empty() {
            return invalid("system_prompt", "it is empty; leave it out");
        }
        if variable == PROMPT_FILE {
            let agent = self.fix_agent();
            let file = json!(format!("{{file:{{env:{variable}}}}}"));
            self.settings_of(&agent)
                .insert("prompt".into(), file.clone());
            self.mode_of(&agent).insert("prompt".into(), file);
        } else {
            let file = json!(format!("{{env:{variable}}}"));
            let all = self.config.entry("instructions").or_insert(json!([]));
            match all.as_array_mut() {
                Some(all) => all.push(file),
                None => *all = json!([file]),
            }
        }
        self.files.push(PrivateFile {
            location: PathLocation::Variable(variable.to_owned()),
            content: text.clone().into_bytes(),
        });
        Ok(())
    }

    /// Fixes the agent that runs: the caller's, or the CLI's own `build`, independent of the user's files.
    fn fix_agent(&mut self) -> String {
        match &self.agent {
            Some(agent) => agent.clone(),
            None => self.fix_agent_to("build"),
        }
    }

    /// Makes one of the CLI's own agents the one that runs.
    fn fix_agent_to(&mut self, agent: &str) -> String {
        let agent = agent.to_owned();
        self.config
            .insert("default_agent".into(), Value::String(agent.clone()));
        // A user who has disabled it uses an unknown agent instead.
        self.mode_of(&agent).insert("disable".into(), json!(false));
        agent
    }

    /// Returns whether a run may start with this agent, as far as known.
    fn may_start_with(&self, agent: &str) -> bool {
        let in_mode = |modes: &Value| modes.get(agent).is_some();
        PRIMARY_AGENTS.contains(&agent)
            || self.agent.as_deref() == Some(agent)
            || self.config.get("mode").is_some_and(in_mode)
    }

    /// Returns an agent's settings under the key of older versions.
    fn mode_of(&mut self, agent: &str) -> &mut Map<String, Value> {
        object_at(object_at(&mut self.config, "mode"), agent)
    }

    /// Returns all known agents. Rules of an agent have precedence over those for all.
    fn agents(&self) -> Vec<String> {
        let mut agents: Vec<String> = AGENTS.iter().map(ToString::to_string).collect();
        let own = ["agent", "mode"].into_iter();
        let own = own.filter_map(|key| self.config.get(key)?.as_object());
        let own = own.flat_map(Map::keys);
        for agent in own.chain(&self.agent) {
            if !agents.contains(agent) {
                agents.push(agent.clone());
            }
        }
        agents
    }

    fn settings_of(&mut self, agent: &str) -> &mut Map<String, Value> {
        object_at(object_at(&mut self.config, "agent"), agent)
    }

    fn permissions_of(&mut self, agent: &str) -> &mut Map<String, Value> {
        rules_of(self.settings_of(agent))
    }

    /// Refuses to add settings to a configuration that is not plain JSON.
    fn must_be_readable(&self, parameter: &str) -> Result<(), AgentError> {
        if self.opaque {
            return Err(AgentError::refused(
                parameter,
                format!(
                    "{CONFIG} is not a plain JSON object, so nothing can be added to it; remove its \
                 comments and trailing commas"
                ),
            ));
        }
        Ok(())
    }
}

/// Returns the MCP servers that the caller has configured in the environment: their names, and whether they are
/// enabled.
pub(super) fn configured_servers(params: &ExecuteParams) -> Vec<(String, bool)> {
    let config = callers(params, CONFIG).and_then(|text| object_of(&text));
    let servers = config
        .as_ref()
        .and_then(|config| config.get("mcp")?.as_object());
    let is_on = |server: &Value| server.get("enabled") != Some(&Value::Bool(false));
    let servers = servers.into_iter().flatten();
    servers
        .map(|(name, server)| (name.clone(), is_on(server)))
        .collect()
}

/// Returns the value of a variable from the caller or our own environment.
pub(super) fn callers(params: &ExecuteParams, name: &str) -> Option<String> {
    params
        .env
        .get(name)
        .cloned()
        .or_else(|| env::var(name).ok())
}

fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

fn object_of(text: &str) -> Option<Map<String, Value>> {
    object(text.trim())
}

/// Returns the object at this key, which is created if missing.
fn object_at<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let value = map.entry(key).or_insert(Value::Null);
    if !value.is_object() {
        *value = json!({});
    }
    match value {
        Value::Object(object) => object,
        _ => unreachable!("it was just made an object"),
    }
}

/// Returns the rules in an agent's settings.
fn rules_of(settings: &mut Map<String, Value>) -> &mut Map<String, Value> {
    if let Some(Value::String(action)) = settings.get("permission") {
        // One action for all tools.
        let all = json!({"*": action});
        settings.insert("permission".into(), all);
    }
    object_at(settings, "permission")
}

/// Adds a rule after all others: the last matching rule applies.
fn rule(rules: &mut Map<String, Value>, name: &str, action: &str) {
    rules.shift_remove(name);
    rules.insert(name.to_owned(), Value::String(action.to_owned()));
}

/// Returns a key for a rule about this tool that no file has, so that the rule comes after all others. If two
/// configurations have the same key, the CLI keeps its first position, and the last matching rule applies. Stars
/// match any text, including none.
///
/// Names with `_` are those of MCP servers' tools. Another tool may begin with the same name and would be denied,
/// too. For these names, and for the tools denied in every run, the key ends in a blank and a star, which match
/// nothing, or text that begins with a blank. So it matches only this name.
fn last_key(tool: &str, stars: &str) -> String {
    if may_be_a_servers(tool) || QUESTIONS.contains(&tool) {
        format!("{tool} *")
    } else {
        format!("{tool}{stars}")
    }
}

/// Returns whether a name can be that of an MCP server's tool.
fn may_be_a_servers(tool: &str) -> bool {
    tool.contains(['_', '*'])
}

/// Returns a number that differs between runs, so that a project's file cannot have the key. It is small, because the
/// stars are in a variable of limited size.
fn number_of_stars() -> usize {
    let random = RandomState::new().hash_one(std::process::id());
    16 + usize::try_from(random % 256).unwrap_or_default()
}

/// Returns the permission that a tool requires. All tools that write files require `edit`.
fn permission_of(tool: &str) -> &str {
    match tool {
        "write" | "patch" | "multiedit" | "apply_patch" => "edit",
        other => other,
    }
}

fn check_tools(params: &ExecuteParams) -> Result<(), AgentError> {
    for (parameter, tools) in [
        ("allowed_tools", &params.allowed_tools),
        ("denied_tools", &params.denied_tools),
    ] {
        for tool in tools {
            let is_a_name = |c: char| c.is_ascii_alphanumeric() || "_-*.".contains(c);
            if tool.is_empty() || !tool.chars().all(is_a_name) {
                return Err(AgentError::refused(
                    parameter,
                    "OpenCode takes names of permissions, such as bash, edit or \
                     server_tool, in which * stands for anything; rules for single commands go into \
                     `permission` of its configuration",
                ));
            }
        }
    }
    let denied: Vec<&str> = params
        .denied_tools
        .iter()
        .map(|t| permission_of(t))
        .collect();
    if let Some(both) = params
        .allowed_tools
        .iter()
        .find(|tool| denied.contains(&permission_of(tool)))
    {
        return Err(AgentError::refused(
            "allowed_tools",
            format!("{both} is denied as well"),
        ));
    }
    Ok(())
}
