use std::time::{Duration, Instant};

use serde::Serialize;
use teamster_core::provider::without_credentials;
use teamster_core::text::{excerpt, one_line};
use teamster_core::time::millis;
use teamster_core::{McpServer, McpTools, McpTransport};

use crate::options::ConnectOptions;
use crate::probe::probe;
use crate::tool_list::ServerTool;

/// The maximum length of a server's text in a report, in bytes.
const LONGEST_TEXT: usize = 300;

/// Report about a server. Its texts are one line each, without control characters.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerReport {
    /// Name of the server.
    pub name: String,
    /// Name of its transport.
    pub transport: &'static str,
    /// Whether the server works.
    pub state: ServerState,
    /// The protocol version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The name that the server reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// The version that the server reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_version: Option<String>,
    /// Time until the answer or the failure, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The server's tools.
    pub tools: Vec<ReportedTool>,
    /// Problems that are not failures.
    pub warnings: Vec<String>,
    /// Why the server failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The last lines of the server's stderr, if it failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
}

/// Result of checking a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerState {
    /// The server has listed its tools.
    Ok,
    /// The server is missing, failed or did not answer.
    Failed,
    /// Its transport, HTTP with server-sent events, is not supported.
    NotContacted,
}

/// A tool of a server in a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReportedTool {
    /// Name of the tool.
    pub name: String,
    /// The first line of the tool's description.
    pub description: String,
    /// True if the configuration offers the tool to agents.
    pub offered: bool,
}

/// Starts a server or connects to it, lists its tools, and ends it, as [`probe`] does.
///
/// Without a `limit` for that, the server's own one ([`McpServer::startup_timeout`]) applies, else that of the options.
pub async fn check(
    server: &McpServer,
    mut options: ConnectOptions,
    limit: Option<Duration>,
) -> ServerReport {
    if let Some(limit) = limit.or(server.startup_timeout) {
        options.limit = limit;
    }
    let mut report = ServerReport {
        name: one_line(&server.name),
        transport: server.transport.as_str(),
        state: ServerState::NotContacted,
        protocol: None,
        server_name: None,
        server_version: None,
        duration_ms: None,
        tools: Vec::new(),
        warnings: Vec::new(),
        problem: None,
        stderr: Vec::new(),
    };
    if let McpTransport::Sse { url, .. } = &server.transport {
        let url = one_line(&without_credentials(url));
        let warning = format!("{url} is not contacted: sse is not supported");
        report.warnings.push(warning);
        return report;
    }
    let start = Instant::now();
    let probed = probe(server, &options).await;
    report.duration_ms = Some(millis(start.elapsed()));
    if let Some(line) = probed.garbage {
        let what = format!("it prints lines on stdout that are not MCP messages, such as: {line}");
        report.warnings.push(what);
    }
    report.stderr = probed.stderr;
    match probed.answer {
        Err(error) => {
            report.state = ServerState::Failed;
            report.problem = Some(error.to_string());
        }
        Ok(answer) => {
            report.state = ServerState::Ok;
            report.protocol = answer.protocol.map(|it| text(&it));
            let (name, version) = answer.server.unzip();
            report.server_name = name.map(|it| text(&it));
            report.server_version = version.map(|it| text(&it));
            let left_out = answer.left_out;
            let warning = left_out.map(|tools| format!("malformed tools are left out: {tools}"));
            report.warnings.extend(warning);
            let unknown = unknown_tools(&server.tools, &answer.tools);
            report.warnings.extend(unknown);
            let tools = answer.tools.iter();
            report.tools = tools.map(|tool| describe(tool, &server.tools)).collect();
        }
    }
    report
}

fn describe(tool: &ServerTool, filter: &McpTools) -> ReportedTool {
    let description = tool.description.as_deref().unwrap_or_default();
    let first = description.lines().map(text).find(|it| !it.is_empty());
    ReportedTool {
        name: text(&tool.name),
        description: first.unwrap_or_default(),
        offered: is_offered(&tool.name, filter),
    }
}

/// Shortens a server's text to one line of at most [`LONGEST_TEXT`] bytes.
fn text(text: &str) -> String {
    excerpt(&one_line(text), LONGEST_TEXT)
}

fn is_offered(tool: &str, filter: &McpTools) -> bool {
    let is = |it: &String| it == tool;
    filter.only.as_ref().is_none_or(|only| only.iter().any(is)) && !filter.except.iter().any(is)
}

/// Returns a warning about names in the filter that are not tools of the server.
fn unknown_tools(filter: &McpTools, tools: &[ServerTool]) -> Option<String> {
    let named = filter.only.iter().flatten().chain(&filter.except);
    let missing: Vec<_> = named
        .filter(|name| !tools.iter().any(|tool| tool.name == **name))
        .map(|name| one_line(name))
        .collect();
    (!missing.is_empty()).then(|| format!("it has no tool {}", missing.join(", ")))
}
