//! `teamster mcp serve`: agents as tools of an MCP server on stdio.
//!
//! Runs are detached runs, started like those of `teamster serve`. This server reads their logs and sends them
//! commands.

mod budget;
mod handler;
mod progress;
mod report;
mod runs;
mod schema;
mod tools;

use std::sync::Arc;

use anyhow::Context;
use rmcp::ServiceExt;
use teamster_core::PermissionMode;

use super::Failure;
use teamster_host::state;

use crate::args::McpServeArgs;
use crate::signals::Source;
use crate::{exit_code, tokio_runtime};
use handler::Handler;
use runs::AgentRuns;

/// The limits of a server.
#[derive(Debug, Clone)]
struct Limits {
    agents: Vec<String>,
    permission: PermissionMode,
    max_depth: u32,
    max_budget_usd: Option<f64>,
    max_tokens: Option<u64>,
    max_time: std::time::Duration,
    max_runs: usize,
    keep_runs: bool,
}

impl From<McpServeArgs> for Limits {
    fn from(args: McpServeArgs) -> Self {
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
        Self {
            agents,
            permission,
            max_depth,
            max_budget_usd,
            max_tokens,
            max_time,
            max_runs,
            keep_runs,
        }
    }
}

/// Serves until the client disconnects, and returns the exit code.
pub(super) fn main(args: McpServeArgs) -> Result<u8, Failure> {
    let limits = Limits::from(args);
    let runs = state::runs().map_err(|error| Failure::Usage(error.into()))?;
    let runtime = (tokio_runtime().context("cannot start the runtime")).map_err(Failure::Other)?;
    let code = runtime.block_on(async {
        let mut signals = Source::new().context("cannot listen for signals")?;
        let runs = Arc::new(AgentRuns::new(runs, limits));
        let handler = Handler::new(runs.clone());
        let service = tokio::select! {
            service = handler.serve((tokio::io::stdin(), tokio::io::stdout())) => service,
            () = signals.next() => return Ok(exit_code::SUCCESS),
        };
        // A client that disconnects before its first message is not an error.
        if let Ok(service) = service {
            let stop = service.cancellation_token();
            tokio::select! {
                _ = service.waiting() => {}
                () = signals.next() => stop.cancel(),
            }
        }
        runs.end().await;
        anyhow::Ok(exit_code::SUCCESS)
    });
    // Do not wait for the thread that reads stdin.
    runtime.shutdown_background();
    code.map_err(Failure::Other)
}
