//! `teamster mcp serve`: agents as tools of an MCP server on stdio.

use anyhow::Context;
use teamster_api::AgentDepth;
use teamster_host::state;
use teamster_mcp_server::{AgentServer, Limit, Limits};

use super::args::McpServeArgs;
use crate::exit_code;
use crate::global::host;
use crate::remote::Machine;
use crate::runtime::wait_only_for;
use crate::signals::Source;

fn limits(args: McpServeArgs) -> Limits {
    // Exhaustive: a new argument has no effect until it has a place here.
    let McpServeArgs {
        agents,
        permission,
        max_depth,
        max_budget_usd,
        max_tokens,
        max_time,
        max_runs,
        keep_runs,
    } = args;
    let mut limits = Limits::default();
    limits.agents = agents;
    limits.permission = permission;
    // A server within a run is also bound by the limit of that run's server.
    limits.depth = teamster_host::agent_depth().and(AgentDepth::new(0, Some(max_depth)));
    limits.max_budget_usd = max_budget_usd;
    limits.max_tokens = max_tokens;
    limits.max_time = max_time;
    limits.max_runs = max_runs;
    limits.keep_runs = keep_runs;
    limits
}

/// Returns how the user raises a limit.
fn hint(limit: Limit) -> Option<&'static str> {
    Some(match limit {
        Limit::Depth => "`teamster mcp serve --max-depth` sets the limit",
        Limit::Permission => "the user can start it with more (`teamster mcp serve --permission`)",
        _ => return None,
    })
}

/// Returns the id of the agent with this name or alias. A command is its own, and an agent that only another machine has
/// may be one of its server.
#[expect(
    clippy::unnecessary_wraps,
    reason = "a server without a registry of agents knows no name"
)]
fn id_of(name: &str) -> Option<String> {
    let known = Some(name).filter(|name| !name.contains(':'));
    let known = known.and_then(|name| host().providers().get(name));
    Some(known.map_or_else(|| name.to_owned(), |agent| agent.info().id.to_string()))
}

/// Serves until the client disconnects, and returns the exit code.
pub(super) fn main(args: McpServeArgs, machine: &Machine) -> anyhow::Result<u8> {
    let limits = limits(args);
    if machine.is_here() {
        state::runs().map_err(exit_code::misuse)?;
    }
    wait_only_for(async {
        let mut signals = Source::new().context("cannot listen for signals")?;
        let server = AgentServer::of_program(machine.runs(), machine.agents(), limits, hint, id_of);
        tokio::select! {
            () = server.serve(tokio::io::stdin(), tokio::io::stdout()) => {}
            () = signals.next() => {}
        }
        tokio::select! {
            () = server.end() => {}
            // A second signal does not wait for the ends of the runs, which are being stopped.
            () = signals.next() => {}
        }
        Ok(exit_code::SUCCESS)
    })
}
