//! `teamster mcp list`: lists configured MCP servers.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use teamster::mcp::edit;
use teamster::{ErrorDetail, ExecuteParams, McpServer, McpTransport};
use teamster_core::provider::{ConfigTable, without_credentials};

use super::Failure;
use super::args::McpListArgs;
use crate::mcp_servers::parse_servers;
use crate::mcp_servers::{own_variable, sources_or_default};
use crate::{exit_code, words};

/// The output of `--json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    servers: Vec<Listed>,
    /// Settings without effect.
    ignored: Vec<String>,
}

/// A server without potential secrets.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    transport: &'static str,
    /// The command or the address.
    reached_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    /// The names of the environment variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    env: Vec<String>,
    /// The names of the headers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    only_tools: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    except_tools: Vec<String>,
    /// The configuration that defines the server.
    source: String,
    not_for: Vec<NotFor>,
}

/// A CLI that does not support the server's configuration.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NotFor {
    provider: &'static str,
    reason: String,
}

pub(super) fn main(args: &McpListArgs) -> Result<u8, Failure> {
    let sources = sources_or_default(&args.servers).map_err(Failure::Usage)?;
    let real = parse_servers(&sources, &own_variable).map_err(Failure::Usage)?;
    // Parse again with the variables' names in place of their values, which may be secret.
    let shown = parse_servers(&sources, &name_of_variable).map(|given| given.servers);
    let shown = shown.unwrap_or_default();
    let servers = real.servers.iter().zip(&real.origins);
    let report = Report {
        servers: servers
            .map(|(server, origin)| {
                let shown = shown.iter().find(|it| it.name == server.name);
                listed(server, shown, origin)
            })
            .collect(),
        ignored: real.ignored,
    };
    let printed = if args.json {
        serde_json::to_string_pretty(&report)
            .map_err(io::Error::from)
            .and_then(|text| writeln!(io::stdout(), "{text}"))
    } else {
        crate::report::warn(&report.ignored);
        print(&report, &mut anstream::stdout())
    };
    exit_code::of_printed(printed).map_err(Failure::Other)
}

/// Returns `${NAME}` for a set variable, with the scheme of its value so that a URL stays valid.
fn name_of_variable(name: &str) -> Option<String> {
    let value = own_variable(name)?;
    let scheme = ["https://", "http://"]
        .into_iter()
        .find(|it| value.starts_with(it));
    Some(format!("{}${{{name}}}", scheme.unwrap_or_default()))
}

fn listed(server: &McpServer, shown: Option<&McpServer>, origin: &str) -> Listed {
    let names = |map: &BTreeMap<String, String>| map.keys().map(|it| words::one_line(it)).collect();
    let (cwd, env, headers) = match &server.transport {
        McpTransport::Stdio { env, cwd, .. } => {
            let shown = shown.map(|it| &it.transport);
            let cwd = cwd.as_ref().map(|_| match shown {
                Some(McpTransport::Stdio { cwd: Some(cwd), .. }) => {
                    words::one_line(&cwd.to_string_lossy())
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
    Listed {
        name: words::one_line(&server.name),
        transport: server.transport.as_str(),
        reached_by: shown.map_or_else(|| "…".to_owned(), |it| reached_by(&it.transport)),
        cwd,
        env,
        headers,
        only_tools: server.tools.only.clone(),
        except_tools: server.tools.except.clone(),
        source: origin.to_owned(),
        not_for: not_for(server),
    }
}

/// Returns the command or URL in one line, without potential secrets.
pub(super) fn reached_by(transport: &McpTransport) -> String {
    match transport {
        McpTransport::Stdio { command, args, .. } => {
            let list = std::iter::once(command).chain(args).map(String::as_str);
            words::one_line(&without_secrets(list).join(" "))
        }
        McpTransport::Http { url, .. } | McpTransport::Sse { url, .. } => {
            words::one_line(&without_credentials(url))
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
fn not_for(server: &McpServer) -> Vec<NotFor> {
    let mut params = ExecuteParams::new("x");
    params.mcp_servers = vec![server.clone()];
    let providers = crate::global::providers().all().into_iter();
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
                reason: words::one_line(&reason),
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

fn print(report: &Report, out: &mut impl Write) -> io::Result<()> {
    if report.servers.is_empty() {
        return writeln!(out, "No MCP servers.");
    }
    let bold = Style::new().bold();
    let dim = Style::new().dimmed();
    let warn = Style::new().fg_color(Some(AnsiColor::Yellow.into()));
    let width = report
        .servers
        .iter()
        .map(|it| console::measure_text_width(&it.name));
    let width = width.max().unwrap_or_default();
    for server in &report.servers {
        let name = &server.name;
        let pad = " ".repeat(width - console::measure_text_width(name));
        writeln!(
            out,
            "{bold}{name}{bold:#}{pad}  {:<5}  {}",
            server.transport, server.reached_by
        )?;
        let mut line = |what: &str, text: &str| writeln!(out, "    {dim}{what:<8}{dim:#} {text}");
        if let Some(cwd) = &server.cwd {
            line("cwd", cwd)?;
        }
        for (what, names) in [("env", &server.env), ("headers", &server.headers)] {
            if !names.is_empty() {
                line(what, &names.join(", "))?;
            }
        }
        if let Some(only) = &server.only_tools {
            let only = if only.is_empty() {
                "none".to_owned()
            } else {
                only.join(", ")
            };
            line("tools", &format!("only {only}"))?;
        }
        if !server.except_tools.is_empty() {
            line("tools", &format!("not {}", server.except_tools.join(", ")))?;
        }
        for NotFor { provider, reason } in &server.not_for {
            writeln!(
                out,
                "    {warn}{:<8}{warn:#} {provider}: {reason}",
                "not for"
            )?;
        }
    }
    Ok(())
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
