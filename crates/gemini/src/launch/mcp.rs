//! MCP servers of a run, in the format of Gemini CLI.
//!
//! The CLI has no flag for servers: it reads them only from `settings.json`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};
use teamster_core::provider::{
    Args, ConfigEdit, ConfigFormat, ConfigLocation, ConfigTable, FileLocation, mcp_variable,
};
use teamster_core::{AgentError, ExecuteParams, McpDelivery, McpServer, McpTransport};

use super::locations::Locations;
use super::settings;
use crate::credentials::in_folder;

/// Files that a run may lease.
pub(crate) const CONFIG_FILES: &[FileLocation] = &[
    FileLocation::Project(".gemini/settings.json"),
    in_folder(".gemini/settings.json"),
];

/// Flag that names the servers which may be started. Others are not started.
pub(crate) const ALLOWED_SERVERS: &str = "--allowed-mcp-server-names";

/// Value of that flag if no server may be started. The CLI crashes on an empty name.
const NO_SERVER: &str = "/";

/// Key of the servers' table in the settings.
const TABLE: &str = "mcpServers";

/// Variables that the CLI removes from a server's environment, with a message only on stderr.
const BLOCKED_VARIABLES: &str = "
    BASH_ENV CLASSPATH CORECLR_ENABLE_PROFILING CORECLR_PROFILER_PATH DOTNET_STARTUP_HOOKS
    DYLD_FALLBACK_FRAMEWORK_PATH DYLD_FALLBACK_LIBRARY_PATH DYLD_FORCE_FLAT_NAMESPACE
    DYLD_FRAMEWORK_PATH DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH ELECTRON_RUN_AS_NODE ENV
    JAVA_TOOL_OPTIONS LD_AUDIT LD_DEBUG LD_LIBRARY_PATH LD_PRELOAD LD_PROFILE NODE_CLI_FLAGS
    NODE_OPTIONS NODE_PATH PERL5DB PERL5LIB PERL5OPT PYTHONPATH PYTHONSTARTUP RUBYLIB RUBYOPT
    _FORCE_NODE_OPTIONS _JAVA_OPTIONS
";

/// Requirements of a run's servers on its launch, besides arguments.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    pub(super) config: Option<ConfigEdit>,
    pub(super) names_taken: Vec<ConfigTable>,
    /// Variables for the CLI.
    pub(super) env: Vec<(String, String)>,
}

/// Passes the servers of this run to the CLI, or returns the reason why that is impossible.
pub(super) fn deliver(params: &ExecuteParams, args: &mut Args) -> Result<Delivered, AgentError> {
    if params.mcp_servers.is_empty() {
        if params.mcp_strict {
            args.value(ALLOWED_SERVERS, NO_SERVER);
        }
        return Ok(Delivered::default());
    }
    for server in &params.mcp_servers {
        if let Some(problem) = problem_of(server) {
            return Err(refuse(server, &problem));
        }
    }
    let locations = Locations::of(params)?;
    for name in settings::allowed_servers(params, &locations)? {
        args.value(ALLOWED_SERVERS, name);
    }
    let (file, location) = match params.mcp_delivery {
        McpDelivery::ProjectConfig => (locations.project_settings(), ConfigLocation::Lease),
        McpDelivery::UserConfig => (locations.user_settings(), ConfigLocation::Lease),
        // The default. `check` has refused unknown deliveries.
        _ => (
            locations.user_settings(),
            ConfigLocation::PrivateHome(locations.private_home()),
        ),
    };
    let in_place = location == ConfigLocation::Lease;
    let mut env = Vec::new();
    let entries = params.mcp_servers.iter().map(|server| {
        let secrets = in_place.then_some(&mut env);
        (server.name.clone(), Value::Object(entry(server, secrets)))
    });
    let entries = entries.collect();
    Ok(Delivered {
        names_taken: locations
            .over(params.mcp_delivery)
            .into_iter()
            .filter(|over| !in_place || *over != file)
            .map(table)
            .collect(),
        config: Some(ConfigEdit {
            table: table(file),
            entries,
            new_file: "",
            location,
        }),
        env,
    })
}

fn table(file: PathBuf) -> ConfigTable {
    ConfigTable {
        file,
        format: ConfigFormat::Json,
        key: TABLE,
    }
}

pub(super) fn refuse(server: &McpServer, problem: &str) -> AgentError {
    AgentError::refused_server(&server.name, problem)
}

/// Returns a field that Gemini CLI would silently change, with the next step.
fn problem_of(server: &McpServer) -> Option<String> {
    let name = server.name.as_str();
    if name == "mcp" || name.starts_with("mcp_") {
        return Some(
            "name: Gemini CLI drops this prefix from the names of the server's tools, and then does not \
             permit them; choose another name"
                .to_owned(),
        );
    }
    if name == "__proto__" {
        return Some("name: Gemini CLI ignores a server of this name".to_owned());
    }
    match &server.transport {
        McpTransport::Stdio { env, cwd, .. } => {
            if let Some(cwd) = cwd.as_ref().filter(|cwd| cwd.to_str().is_none()) {
                return Some(format!(
                    "cwd: {}: Gemini CLI takes paths in UTF-8 only",
                    cwd.display()
                ));
            }
            let is_blocked = |name: &&String| {
                let name = name.to_uppercase();
                let mut blocked = BLOCKED_VARIABLES.split_ascii_whitespace();
                blocked.any(|blocked| blocked == name)
            };
            let name = env.keys().find(is_blocked)?;
            Some(format!(
                "env.{name}: Gemini CLI does not pass this variable to a server; let the server's \
                 command set it"
            ))
        }
        McpTransport::Http { headers, .. } | McpTransport::Sse { headers, .. } => {
            let is_sent = |c: char| matches!(c, '\t' | ' '..='~' | '\u{80}'..='\u{ff}');
            let (name, _) = headers
                .iter()
                .find(|(_, value)| !value.chars().all(is_sent))?;
            Some(format!(
                "headers.{name}: Gemini CLI sends only printable characters of Latin-1; encode the \
                 value"
            ))
        }
        other => Some(format!(
            "type: Gemini CLI does not support {} servers",
            other.as_str()
        )),
    }
}

/// Returns the definition of a server. Without a list for variables, it contains the secrets.
fn entry(
    server: &McpServer,
    mut variables: Option<&mut Vec<(String, String)>>,
) -> Map<String, Value> {
    let mut entry = Map::new();
    let mut secrets = |values: &BTreeMap<String, String>| {
        let secret = |(key, value): (&String, &String)| {
            let value = kept_by_second_reading(value);
            let value = match &mut variables {
                None => kept_by_first_reading(&value),
                Some(variables) => {
                    let name = mcp_variable(&server.name, key);
                    let reference = format!("${{{name}}}");
                    variables.push((name, value));
                    reference
                }
            };
            (key.clone(), Value::from(value))
        };
        Value::Object(values.iter().map(secret).collect())
    };
    let text = |text: &str| Value::from(kept_by_first_reading(text));
    let list = |list: &[String]| Value::Array(list.iter().map(|item| text(item)).collect());
    match &server.transport {
        McpTransport::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            entry.insert("command".into(), text(command));
            entry.insert("args".into(), list(args));
            entry.insert("env".into(), secrets(env));
            if let Some(cwd) = cwd.as_ref().and_then(|cwd| cwd.to_str()) {
                entry.insert("cwd".into(), text(cwd));
            }
        }
        McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
            entry.insert("type".into(), server.transport.as_str().into());
            entry.insert("url".into(), text(url));
            entry.insert("headers".into(), secrets(headers));
        }
        // `problem_of` has refused it.
        _ => {}
    }
    if let Some(limit) = server.tool_timeout {
        /// Longest timeout in milliseconds. Node's timers fire immediately for a longer one.
        const LONGEST: u128 = i32::MAX.unsigned_abs() as u128;
        // The minimum always fits.
        let ms = u64::try_from(limit.as_millis().min(LONGEST)).unwrap_or(u64::MAX);
        entry.insert("timeout".into(), ms.into());
    }
    if let Some(only) = &server.tools.only {
        entry.insert("includeTools".into(), list(only));
    }
    if !server.tools.except.is_empty() {
        entry.insert("excludeTools".into(), list(&server.tools.except));
    }
    // Allows its tools without a permission request.
    entry.insert("trust".into(), true.into());
    entry
}

/// Escapes a text for the CLI's first expansion. When the CLI reads its settings, it replaces `$NAME`, `${NAME}` and
/// `${NAME:-text}` in every value, once. It has no escape, but the default of an impossible variable name is literal.
fn kept_by_first_reading(text: &str) -> String {
    text.replace('$', "${=:-$}")
}

/// Escapes a text for the CLI's second expansion, of the values of a server's environment and headers. It has other
/// rules, is repeated, and has an escape.
fn kept_by_second_reading(text: &str) -> String {
    text.replace('$', r"\$")
}

#[cfg(test)]
mod tests;
