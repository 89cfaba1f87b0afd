//! Starts of runs and sessions: checks of their bodies.

use axum::http::HeaderMap;
use teamster_api::{ServiceError, Spec, TraceContext, Trusted, Workspace, either, json_name};
use teamster_core::text::one_line;
use teamster_core::{McpServer, McpTransport};

use crate::keys::Caller;
use crate::outgoing::check_target;
use crate::rights::{self, Demand, Right};
use crate::{ApiError, ServerConfig};

impl Demand for Spec {
    fn rights(&self) -> Vec<Right> {
        either!(self, spec => {
            let agents = spec.fallback.iter().chain([&spec.provider]);
            rights::of_agent(Some(spec.permission), agents, &spec.allowed_tools)
        })
    }
}

/// Returns the place of a request in a trace (the headers `traceparent` and `tracestate` of the W3C), if the server lets runs
/// set the variables that name it.
pub(crate) fn trace_of(headers: &HeaderMap, config: &ServerConfig) -> Option<TraceContext> {
    let header = |name: &str, variable| {
        let value = headers.get(name)?.to_str().ok()?;
        allows(config, variable).then(|| value.to_owned())
    };
    let parent = header("traceparent", TraceContext::PARENT)?;
    TraceContext::new(parent, header("tracestate", TraceContext::STATE))
}

/// Adds the place of a request in a trace to the variables of its run or session. A place that the body has comes first: the
/// state of another one is not its own.
fn take_trace(spec: &mut Spec, headers: &HeaderMap, config: &ServerConfig) {
    let trusted = either!(spec, spec => &mut spec.trusted);
    if !trusted.env.contains_key(TraceContext::PARENT)
        && let Some(trace) = trace_of(headers, config)
    {
        trusted.env.extend(trace.variables());
    }
}

/// Returns whether the server lets runs set this variable.
fn allows(config: &ServerConfig, name: &str) -> bool {
    let mut allowed = config.allow_env.iter();
    allowed.any(|allowed| allowed == "*" || allowed == name)
}

/// Checks the body of a run or session before it is started, and the rights of its caller. Returns it with the place of the
/// request in a trace.
pub(crate) async fn checked(
    mut spec: Spec,
    headers: &HeaderMap,
    config: &ServerConfig,
    caller: &Caller,
) -> Result<Spec, ApiError> {
    rights::check(&spec, config, caller)?;
    either!(&spec, spec => spec.check()).map_err(ServiceError::from)?;
    let (location, is_long) = either!(&spec, spec => (spec.location(), spec.workspace.is_some()));
    let (callback, trusted) = either!(&spec, spec => (spec.callback.as_deref(), &spec.trusted));
    if let Some(error) = refused(trusted, config) {
        return Err(error);
    }
    let directory = location.as_ref().and_then(Workspace::path);
    if directory.is_some_and(|path| !path.is_absolute()) {
        let field = if is_long {
            "workspace"
        } else {
            "workingDirectory"
        };
        return Err(ApiError::refused(field, "expected an absolute path"));
    }
    if callback.is_some() && !config.allow_callbacks {
        let problem = "this server ends with its client, so it sends none: start the run on a server that stays";
        return Err(ApiError::refused("callback", problem));
    }
    if let Some(url) = callback
        && let Err(error) = check_target(url, config.allow_private_callbacks).await
    {
        return Err(ApiError::refused("callback", error));
    }
    take_trace(&mut spec, headers, config);
    Ok(spec)
}

/// Returns the refusal of the part that no stranger may choose. What the server's owner allows is let through.
fn refused(trusted: &Trusted, config: &ServerConfig) -> Option<ApiError> {
    let servers = &trusted.mcp_servers;
    let not_here = || "not over HTTP: start the run on the server's machine".to_owned();
    let problem = trusted.names().into_iter().find_map(|name| {
        let reason = match name {
            name if !Trusted::GRANTABLE.contains(&name) => not_here(),
            "container" => {
                let container = trusted.container.as_ref()?;
                let text = container.to_string();
                if !container.mounts.is_empty() || container.program.is_some() {
                    "mounts and the engine's program cannot be chosen over HTTP: the server's owner sets them".to_owned()
                } else if (config.allow_containers.iter()).any(|it| *it == "*" || *it == text) {
                    return None;
                } else {
                    format!(
                        "the server does not let a run use {}: allow it with `teamster serve --allow-in ENGINE:IMAGE`",
                        one_line(&text)
                    )
                }
            }
            "env" => {
                let name = trusted.env.keys().find(|name| !allows(config, name))?;
                format!(
                    "the server does not let a run set {}: allow it with `teamster serve --allow-env NAME`",
                    one_line(name)
                )
            }
            "mcp_servers" => {
                let is_command =
                    |server: &McpServer| matches!(server.transport, McpTransport::Stdio { .. });
                let (flag, what) = if servers.iter().any(is_command) && !config.allow_commands {
                    ("--allow-commands", "MCP servers that are commands")
                } else if !servers.iter().all(is_command) && !config.allow_mcp {
                    ("--allow-mcp", "MCP servers")
                } else {
                    return None;
                };
                format!("{what} need a server that was started with {flag}")
            }
            "push" if config.allow_push => return None,
            "push" => "it needs a server that was started with --allow-push".to_owned(),
            // The others say how the servers are used.
            _ if servers.is_empty() => not_here(),
            _ => return None,
        };
        Some((name, reason))
    });
    problem.map(|(name, reason)| ApiError::refused(format!("trusted.{}", json_name(name)), reason))
}
