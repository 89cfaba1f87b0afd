//! MCP servers as they are shown: without secrets, and with the agents that cannot use them.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;
use teamster_core::provider::{ConfigTable, without_credentials};
use teamster_core::text::one_line;
use teamster_core::{ErrorDetail, ExecuteParams, McpServer, McpTransport};
use teamster_mcp_config::edit;
use teamster_mcp_config::source::{MergeError, Source, merge};
use teamster_providers::Providers;

/// MCP servers without potential secrets.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerList {
    /// The servers, in the order of their sources.
    pub servers: Vec<ListedServer>,
    /// Settings without effect, for people.
    pub ignored: Vec<String>,
}

/// A server without potential secrets.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListedServer {
    /// Name of the server.
    pub name: String,
    /// Name of its transport.
    pub transport: &'static str,
    /// The command or the address.
    pub reached_by: String,
    /// Working directory of its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The names of the environment variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The names of the headers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// The only tools that agents get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_tools: Option<Vec<String>>,
    /// Tools that agents do not get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub except_tools: Vec<String>,
    /// The configuration that defines the server.
    pub source: String,
    /// The agents that cannot use the server.
    pub not_for: Vec<NotFor>,
}

/// A CLI that does not support the server's configuration.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotFor {
    /// Id of the provider.
    pub provider: &'static str,
    /// The reason.
    pub reason: String,
}

/// Lists the servers of these sources. `variables` returns the value of a variable that is set. Starts nothing.
///
/// # Errors
///
/// Fails as [`merge`] does.
pub fn list_servers(
    providers: &Providers,
    sources: &[Source],
    variables: &dyn Fn(&str) -> Option<String>,
) -> Result<ServerList, MergeError> {
    let real = merge(sources, variables)?;
    // Parse again with the variables' names in place of their values, which may be secret.
    let shown = merge(sources, &|name| {
        Some(name_of_variable(name, &variables(name)?))
    });
    let shown = shown.map(|merged| merged.servers).unwrap_or_default();
    let servers = real.servers.iter().zip(&real.origins);
    let servers = servers.map(|(server, origin)| {
        let shown = shown.iter().find(|it| it.name == server.name);
        listed(providers, server, shown, origin)
    });
    Ok(ServerList {
        servers: servers.collect(),
        ignored: real.ignored,
    })
}

/// Returns `${NAME}` for a variable, with the scheme of its value so that a URL stays valid.
fn name_of_variable(name: &str, value: &str) -> String {
    let scheme = ["https://", "http://"]
        .into_iter()
        .find(|it| value.starts_with(it));
    format!("{}${{{name}}}", scheme.unwrap_or_default())
}

fn listed(
    providers: &Providers,
    server: &McpServer,
    shown: Option<&McpServer>,
    origin: &str,
) -> ListedServer {
    let names = |map: &BTreeMap<String, String>| map.keys().map(|it| one_line(it)).collect();
    let (cwd, env, headers) = match &server.transport {
        McpTransport::Stdio { env, cwd, .. } => {
            let shown = shown.map(|it| &it.transport);
            let cwd = cwd.as_ref().map(|_| match shown {
                Some(McpTransport::Stdio { cwd: Some(cwd), .. }) => {
                    one_line(&cwd.to_string_lossy())
                }
                _ => "…".to_owned(),
            });
            (cwd, names(env), Vec::new())
        }
        McpTransport::Http { headers, .. } | McpTransport::Sse { headers, .. } => {
            (None, Vec::new(), names(headers))
        }
        _ => (None, Vec::new(), Vec::new()),
    };
    ListedServer {
        name: one_line(&server.name),
        transport: server.transport.as_str(),
        reached_by: shown.map_or_else(|| "…".to_owned(), |it| reached_by(&it.transport)),
        cwd,
        env,
        headers,
        only_tools: server.tools.only.clone(),
        except_tools: server.tools.except.clone(),
        source: origin.to_owned(),
        not_for: not_for(providers, server),
    }
}

/// Returns the command or URL in one line, without potential secrets.
fn reached_by(transport: &McpTransport) -> String {
    match transport {
        McpTransport::Stdio { command, args, .. } => {
            let list = std::iter::once(command).chain(args).map(String::as_str);
            one_line(&without_secrets(list).join(" "))
        }
        McpTransport::Http { url, .. } | McpTransport::Sse { url, .. } => {
            one_line(&without_credentials(url))
        }
        _ => "…".to_owned(),
    }
}

/// Quotes arguments for a shell. Replaces the values of flags with secret-sounding names, and credentials in URLs,
/// by `…`.
fn without_secrets<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut secret_next = false;
    words
        .map(|word| {
            if std::mem::take(&mut secret_next) {
                return "…".to_owned();
            }
            match word.split_once('=') {
                Some((name, value)) if is_secret(name) && !value.is_empty() => {
                    return format!("{name}=…");
                }
                None if word.starts_with('-') && is_secret(word) => secret_next = true,
                _ => {}
            }
            if word.contains("://") {
                without_credentials(word)
            } else {
                shell_words::quote(word).into_owned()
            }
        })
        .collect()
}

fn is_secret(name: &str) -> bool {
    const SECRET_WORDS: [&str; 8] = [
        "key",
        "token",
        "secret",
        "password",
        "passwd",
        "auth",
        "header",
        "credential",
    ];
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Returns the CLIs that do not support the server, each with the reason.
fn not_for(providers: &Providers, server: &McpServer) -> Vec<NotFor> {
    let mut params = ExecuteParams::new("x");
    params.mcp_servers = vec![server.clone()];
    let providers = providers.all().into_iter();
    providers
        .filter_map(|provider| {
            let reason = match provider.launch(&params) {
                Ok(launch) => {
                    let taken = launch.names_taken.iter();
                    let table = taken
                        .into_iter()
                        .find(|table| defines_server(table, &server.name))?;
                    let file = table.file.display();
                    format!("{file} has a server of this name too, and the two would be merged")
                }
                // Other errors concern this machine, not the server.
                Err(error) => match error.detail.as_deref() {
                    Some(ErrorDetail::Parameter {
                        name,
                        item,
                        problem,
                        ..
                    }) if name.starts_with("mcp_") => {
                        // The report already names the server.
                        item.as_ref().map_or(&error.message, |_| problem).clone()
                    }
                    _ => return None,
                },
            };
            Some(NotFor {
                provider: provider.info().id,
                reason: one_line(&reason),
            })
        })
        .collect()
}

/// Returns `true` if a CLI's configuration file has a server of this name. Ignores files that cannot be read.
fn defines_server(table: &ConfigTable, name: &str) -> bool {
    let names = fs::read_to_string(&table.file)
        .ok()
        .and_then(|text| edit::names(&text, table.format, table.key).ok());
    names.is_some_and(|names| names.iter().any(|it| it == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_with_secret_names_are_hidden() {
        for (words, shown) in [
            (&["npx", "-y", "a b"][..], "npx -y 'a b'"),
            (&["x", "--api-key", "sk-1", "y"], "x --api-key … y"),
            (&["x", "--token=sk-1"], "x --token=…"),
            (&["env", "API_KEY=sk-1", "x"], "env API_KEY=… x"),
            (
                &[
                    "npx",
                    "mcp-remote",
                    "https://me:sk-1@h/p?k=sk-2",
                    "--header",
                    "A: sk-3",
                ],
                "npx mcp-remote https://h/p?… --header …",
            ),
        ] {
            assert_eq!(without_secrets(words.iter().copied()).join(" "), shown);
        }
    }
}
