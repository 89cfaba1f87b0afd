//! Checks of the user's settings, which can hide a server of the run or its tools from the agent, or give the server
//! another definition. The CLI does not report this.

use std::path::Path;

use serde_json::Value;
use teamster_core::{AgentError, ExecuteParams, McpServer, McpTransport, PermissionMode};

use super::is_changed_in_list;
use super::locations::Locations;
use super::mcp::refuse;
use crate::command_line::Flags;

/// Returns the servers that the flag must name so that the run's servers are started, or none if the flag is not
/// needed.
///
/// # Errors
///
/// Fails if the settings hide one of the servers with any value of the flag.
pub(super) fn allowed_servers(
    params: &ExecuteParams,
    locations: &Locations,
) -> Result<Vec<String>, AgentError> {
    check_disabled(params, locations)?;
    check_logins(params, locations)?;
    let servers = &params.mcp_servers;
    let mut allowed: Option<Vec<String>> = None;
    let mut excluded = Vec::new();
    let mut mode = None;
    for file in locations.settings() {
        let Some(settings) = read(&file) else {
            continue;
        };
        let mcp = &settings["mcp"];
        let names = texts(&mcp["excluded"]).unwrap_or_default();
        if let Some(server) = named(servers, &names) {
            return Err(hidden(
                server,
                "mcp.excluded",
                &file,
                "names it",
                "take it out",
            ));
        }
        excluded.extend(names);
        if let Some(core) = texts(&settings["tools"]["core"])
            && let Some(server) = servers.iter().find(|server| !has_tools_of(&core, server))
        {
            let add = format!("add \"mcp_{}_*\"", server.name);
            return Err(hidden(
                server,
                "tools.core",
                &file,
                "leaves out its tools",
                &add,
            ));
        }
        if let Some(names) = texts(&mcp["allowed"]) {
            let both = |name: &String| is_in(name, &names);
            allowed = Some(match allowed {
                None => names.clone(),
                Some(allowed) => allowed.into_iter().filter(both).collect(),
            });
        }
        let configured = settings["general"]["defaultApprovalMode"].as_str();
        mode = configured.map(str::to_owned).or(mode);
    }
    let given = Flags::of(&params.extra_args);
    let asked = params.permission != PermissionMode::Default || given.permission.is_some();
    if mode.as_deref() == Some("plan") && !asked {
        return Err(AgentError::refused(
            "permission",
            "the user's setting general.defaultApprovalMode is `plan`, in which Gemini CLI gives the \
             agent no tools of MCP servers; set another mode for the run",
        ));
    }
    let ours = servers.iter().map(|server| server.name.clone());
    if params.mcp_strict {
        return Ok(ours.collect());
    }
    if !given.servers.is_empty() {
        // The caller's own flag overrides the settings' list.
        return Ok(ours.filter(|name| !given.servers.contains(name)).collect());
    }
    let Some(mut allowed) = allowed.filter(|allowed| !allowed.is_empty()) else {
        return Ok(Vec::new());
    };
    let missing: Vec<_> = ours.filter(|name| !allowed.contains(name)).collect();
    if missing.is_empty() {
        return Ok(missing);
    }
    // The flag overrides exclusions.
    allowed.retain(|name| !excluded.contains(name));
    if let Some(name) = allowed.iter().find(|name| is_changed_in_list(name)) {
        return Err(AgentError::refused_server(
            missing[0].clone(),
            format!(
                "the user's setting mcp.allowed leaves it out; add it there (a run cannot, because of \
                 {name:?} in it)"
            ),
        ));
    }
    allowed.extend(missing);
    Ok(allowed)
}

/// Refuses a server whose name the user has disabled: it would not be started.
fn check_disabled(params: &ExecuteParams, locations: &Locations) -> Result<(), AgentError> {
    let file = locations.users_folder().join("mcp-server-enablement.json");
    let Some(states) = read(&file) else {
        return Ok(());
    };
    let is_disabled =
        |server: &&McpServer| states[server.name.to_lowercase()]["enabled"] == Value::Bool(false);
    match params.mcp_servers.iter().find(is_disabled) {
        None => Ok(()),
        Some(server) => Err(refuse(
            server,
            &format!(
                "name: disabled by `gemini mcp disable`; enable it with `gemini mcp enable {}`, or \
                 choose another name",
                server.name
            ),
        )),
    }
}

/// Refuses a server to which the CLI would send the user's token of another server, because it compares only names. A
/// header of the server itself replaces the token.
fn check_logins(params: &ExecuteParams, locations: &Locations) -> Result<(), AgentError> {
    let logins = read(&locations.users_folder().join("mcp-oauth-tokens.json"));
    let Some(Value::Array(logins)) = logins else {
        return Ok(());
    };
    for server in &params.mcp_servers {
        let (McpTransport::Http { url, headers } | McpTransport::Sse { url, headers }) =
            &server.transport
        else {
            continue;
        };
        let is_other = |login: &Value| {
            login["serverName"] == server.name.as_str() && login["mcpServerUrl"] != url.as_str()
        };
        let is_login = |name: &String| name.eq_ignore_ascii_case("authorization");
        if logins.iter().any(is_other) && !headers.keys().any(is_login) {
            return Err(refuse(
                server,
                "name: the user is logged in to another server of this name, and Gemini CLI would send \
                 its token to this one; choose another name, or set the header Authorization",
            ));
        }
    }
    Ok(())
}

fn hidden(server: &McpServer, setting: &str, file: &Path, how: &str, what: &str) -> AgentError {
    let problem = format!(
        "name: the setting {setting} in {} {how}; {what} there",
        file.display()
    );
    refuse(server, &problem)
}

fn named<'a>(servers: &'a [McpServer], names: &[String]) -> Option<&'a McpServer> {
    let is_named = |server: &&McpServer| names.iter().any(|n| *n == server.name || n == "*");
    servers.iter().find(is_named)
}

/// Compares names like the CLI does in several lists.
fn is_in(name: &str, names: &[String]) -> bool {
    let plain = |name: &str| name.trim().to_lowercase();
    names.iter().any(|other| plain(other) == plain(name))
}

/// Returns whether a list of allowed tools contains tools of the server.
fn has_tools_of(tools: &[String], server: &McpServer) -> bool {
    let begin = format!("mcp_{}_", server.name);
    let is_of = |tool: &String| tool == "*" || tool == "mcp_*" || tool.starts_with(&begin);
    tools.iter().any(is_of)
}

fn texts(value: &Value) -> Option<Vec<String>> {
    let texts = value.as_array()?.iter().filter_map(Value::as_str);
    Some(texts.map(str::to_owned).collect())
}

/// Reads a settings file. An unreadable file is ignored here: the CLI itself refuses it.
fn read(file: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(file).ok()?;
    serde_json::from_str(&without_comments(&text)).ok()
}

/// Removes comments from JSON, which the CLI permits in its settings.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '/']) {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let end = if from.starts_with('"') {
            let end = end_of_string(from);
            plain.push_str(&from[..end]);
            end
        } else if from.starts_with("//") {
            from.find('\n').unwrap_or(from.len())
        } else if from.starts_with("/*") {
            from.find("*/").map_or(from.len(), |end| end + 2)
        } else {
            plain.push('/');
            1
        };
        rest = &from[end..];
    }
    plain.push_str(rest);
    plain
}

/// Returns the position after the string at the beginning of a text.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests;
