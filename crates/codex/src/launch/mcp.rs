//! MCP servers of a run: settings for the CLI, with their secrets in its environment.

mod address;
mod shell;

use std::collections::BTreeMap;
use std::iter;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};
use teamster_core::provider::{
    ConfigEdit, ConfigFormat, ConfigLocation, ConfigTable, FileLocation, RUN_ID_VARIABLE,
    mcp_variable,
};
use teamster_core::{AgentError, ExecuteParams, McpDelivery, McpServer, McpTransport};

use super::toml;
use crate::credentials::in_home;
use crate::transcript::home;

/// The file that a run may lease.
pub(crate) const CONFIG_FILES: &[FileLocation] = &[in_home("config.toml")];

/// The table of the servers in the CLI's configuration.
const TABLE: &str = "mcp_servers";

/// Name of the CLI's own server. The CLI silently ignores a configured server of this name.
const RESERVED: &str = "codex_apps";

/// The CLI's default time for a server to start (measured).
const DEFAULT_STARTUP: Duration = Duration::from_secs(30);
/// Time for which the CLI waits beyond a server's timeout, so that the server's failure is known by then.
const MARGIN: Duration = Duration::from_secs(1);
/// Longest timeout. The CLI panics on one that its clock cannot represent.
const LONGEST_LIMIT: Duration = Duration::from_secs(1_000_000_000);

/// The log target that reports servers which did not start, and its level.
const STARTUP_LOG: &str = "codex_mcp::rmcp_client=warn";
/// The CLI's log level if `RUST_LOG` is not set.
const DEFAULT_LOG: &str = "error";

/// The part of a launch for MCP servers.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    /// Arguments.
    pub(crate) settings: Vec<String>,
    /// Secrets by the variables that the definitions name, and the CLI's log filter.
    pub(crate) env: Vec<(String, String)>,
    /// The servers as an edit of the CLI's own file, if they are delivered there.
    pub(crate) config: Option<ConfigEdit>,
    /// Tables in files whose servers the CLI would merge with servers of the same name.
    pub(crate) names_taken: Vec<ConfigTable>,
}

impl Servers {
    pub(crate) fn of(params: &ExecuteParams) -> Result<Self, AgentError> {
        let mut servers = Self::default();
        if params.mcp_servers.is_empty() {
            return Ok(servers);
        }
        let mut entries = Vec::new();
        for server in &params.mcp_servers {
            let definition = definition(server, &mut servers.env)
                .map_err(|problem| AgentError::refused_server(&server.name, problem))?;
            entries.push((server.name.clone(), Value::Object(definition)));
        }
        servers.keep_from_tools();
        servers.wait_for(&params.mcp_servers);
        let log = log_of(std::env::var("RUST_LOG").ok().as_deref());
        servers.env.push(("RUST_LOG".to_owned(), log));
        let users = home(params).map(|home| home.join("config.toml"));
        servers.names_taken = other_files(params).map(table).collect();
        if params.mcp_delivery == McpDelivery::UserConfig {
            let file = users.ok_or_else(|| {
                AgentError::refused(
                    "mcp_delivery",
                    "neither CODEX_HOME nor HOME is set, so Codex has no \
                     configuration file of the user's",
                )
            })?;
            servers.config = Some(ConfigEdit {
                table: table(file),
                entries,
                new_file: "",
                location: ConfigLocation::Lease,
            });
        } else {
            servers.names_taken.extend(users.map(table));
            for (name, definition) in &entries {
                let key = format!("{TABLE}.{name}");
                servers.settings.push(toml::setting_of(&key, definition));
            }
        }
        Ok(servers)
    }

    /// Hides the secrets from the agent's commands, which inherit the CLI's environment, and from the file in the
    /// CLI's home that records what they inherit. Names set for commands are merged with the user's; lists of
    /// excluded names would replace the user's.
    fn keep_from_tools(&mut self) {
        if self.env.is_empty() {
            return;
        }
        let names: BTreeMap<_, _> = self.env.iter().map(|(name, _)| (name, "")).collect();
        let setting = toml::setting_of("shell_environment_policy.set", &json!(names));
        self.settings.push(setting);
    }

    /// Makes the CLI wait for the servers before it asks the model. By default it waits 1 s, and the model then has
    /// no tools of a slower server.
    fn wait_for(&mut self, servers: &[McpServer]) {
        let longest = servers
            .iter()
            .map(|server| server.startup_timeout.unwrap_or(DEFAULT_STARTUP))
            .max()
            .unwrap_or_default();
        let wait = longest.min(LONGEST_LIMIT) + MARGIN;
        self.settings.push(format!(
            "--config=mcp_optional_startup_grace_ms={}",
            wait.as_millis()
        ));
    }
}

/// Returns the CLI's log filter: the inherited one, plus the failed starts of servers, which are reported only there.
/// The agent's commands inherit the variable, as they would inherit the user's own.
fn log_of(inherited: Option<&str>) -> String {
    let log = inherited.filter(|log| !log.trim().is_empty());
    format!("{},{STARTUP_LOG}", log.unwrap_or(DEFAULT_LOG))
}

/// Returns a server's definition for the CLI, without secrets. Secrets are added to `env` by the variables that the
/// definition names. The error names the field.
fn definition(
    server: &McpServer,
    env: &mut Vec<(String, String)>,
) -> Result<Map<String, Value>, String> {
    if server.name == RESERVED {
        return Err("name: reserved by Codex; choose another".to_owned());
    }
    let mut table = Map::new();
    let mut secret = |key: &str, value: &str| {
        let variable = mcp_variable(&server.name, key);
        env.push((variable.clone(), value.to_owned()));
        variable
    };
    match &server.transport {
        McpTransport::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            let variables: Vec<_> = env
                .iter()
                .map(|(key, value)| (key.as_str(), secret(key, value)))
                .collect();
            let program = shell::with_variables(&server.name, command, args, &variables)?;
            table.insert("command".to_owned(), program.command.into());
            table.insert("args".to_owned(), program.args.into());
            // Codex passes a server only the variables named here, and may leave it running when it is killed. The
            // mark identifies it then.
            let names = variables.into_iter().map(|(_, name)| name);
            let names: Vec<_> = [RUN_ID_VARIABLE.to_owned()]
                .into_iter()
                .chain(names)
                .collect();
            table.insert("env_vars".to_owned(), names.into());
            if let Some(cwd) = cwd {
                let cwd = cwd
                    .to_str()
                    .ok_or("cwd: it is not UTF-8; use a path that is")?;
                table.insert("cwd".to_owned(), cwd.into());
            }
        }
        McpTransport::Http { url, headers } => {
            address::check(url)?;
            table.insert("url".to_owned(), url.as_str().into());
            let (empty, full) = address::sorted(headers)?;
            if !empty.is_empty() {
                let empty: BTreeMap<_, _> = empty.into_iter().map(|name| (name, "")).collect();
                table.insert("http_headers".to_owned(), json!(empty));
            }
            if !full.is_empty() {
                let full: BTreeMap<_, _> = full
                    .into_iter()
                    .map(|(name, value)| (name, secret(name, value)))
                    .collect();
                table.insert("env_http_headers".to_owned(), json!(full));
            }
        }
        other => {
            return Err(format!(
                "type: Codex does not support {} servers",
                other.as_str()
            ));
        }
    }
    // Without this, no tool of the server runs: a run cannot ask for approval.
    table.insert("default_tools_approval_mode".to_owned(), "approve".into());
    for (key, limit) in [
        ("startup_timeout_sec", server.startup_timeout),
        ("tool_timeout_sec", server.tool_timeout),
    ] {
        if let Some(limit) = limit {
            table.insert(
                key.to_owned(),
                limit.min(LONGEST_LIMIT).as_secs_f64().into(),
            );
        }
    }
    if let Some(only) = &server.tools.only {
        table.insert("enabled_tools".to_owned(), json!(only));
    }
    if !server.tools.except.is_empty() {
        table.insert("disabled_tools".to_owned(), json!(server.tools.except));
    }
    Ok(table)
}

/// Returns the files, besides the user's own, from which the CLI takes servers: the machine's, and the project's if
/// it is trusted. The project's root is not determined: every parent directory counts.
fn other_files(params: &ExecuteParams) -> impl Iterator<Item = PathBuf> {
    let directory = match &params.working_directory {
        Some(directory) => std::path::absolute(directory).ok(),
        None => std::env::current_dir().ok(),
    };
    let above: Vec<_> = directory
        .iter()
        .flat_map(|directory| directory.ancestors())
        .map(|directory| directory.join(".codex/config.toml"))
        .collect();
    iter::once(PathBuf::from("/etc/codex/config.toml")).chain(above)
}

fn table(file: PathBuf) -> ConfigTable {
    ConfigTable {
        file,
        format: ConfigFormat::Toml,
        key: TABLE,
    }
}

#[cfg(test)]
mod tests;
