//! The server over a service in memory, as MCP clients of both protocol versions use it.
#![expect(clippy::unwrap_used, reason = "also in the helpers of tests")]

mod answers;
mod limits;
mod lost;
mod peer;
mod runs;
mod tasks;

use std::sync::Arc;

use serde_json::{Value, json};
use teamster_api::RunService;
use teamster_core::{
    AgentError, AgentEvent, ErrorCode, ErrorKind, PermissionRequest, Text, ToolKind,
};
use teamster_mcp_server::{AgentServer, Limit, Limits};
use teamster_testkit::run_service::{MemoryService, Step};

use peer::{Machine, Peer};

/// What the agent does for a prompt.
fn script(prompt: &str) -> Vec<Step> {
    let text = |text: &str| Step::Emit(AgentEvent::Text(Text::new(text)));
    let request =
        || PermissionRequest::new(1, "Bash", ToolKind::Execute, json!({"command": "touch x"}));
    match prompt {
        "ask" => vec![Step::Ask(request()), text("done")],
        "question" => {
            let mut question = request();
            question.schema = Some(json!({"type": "object"}));
            question.takes_input = true;
            vec![Step::Ask(question), text("done")]
        }
        "hang" => vec![text("…"), Step::Hang],
        "fail" => {
            let error = AgentError::new(ErrorCode::CliError, ErrorKind::Quota, "nothing left");
            vec![text("half"), Step::Fail(error)]
        }
        _ => vec![text("Hello"), text(", world")],
    }
}

fn memory() -> MemoryService {
    MemoryService::new(["mock", "other", "cmd:x"], script)
}

fn hint(limit: Limit) -> Option<&'static str> {
    match limit {
        Limit::Depth => Some("raise the depth"),
        Limit::Permission => Some("raise the permission"),
        _ => None,
    }
}

fn id_of(name: &str) -> Option<String> {
    match name.to_ascii_lowercase().as_str() {
        "mock" | "mock-cli" => Some("mock".to_owned()),
        "none" => None,
        other => Some(other.to_owned()),
    }
}

fn server(service: &MemoryService, limits: Limits) -> AgentServer {
    let runs: Arc<dyn RunService> = Arc::new(service.clone());
    AgentServer::of_program(runs, Arc::new(Machine), limits, hint, id_of)
}

/// A client of before 2026 of a server with these limits.
async fn client(limits: Limits) -> Peer {
    let mut peer = Peer::start(server(&memory(), limits));
    peer.begin().await;
    peer
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}
