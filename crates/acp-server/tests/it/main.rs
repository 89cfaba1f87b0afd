//! The server over a service in memory, as an editor uses it.
#![expect(clippy::unwrap_used, reason = "also in the helpers of tests")]

mod editor;
mod ended;
mod folders;
mod input;
mod machine;
mod offers;
mod past;
mod queued;
mod threads;
mod watched;

use std::sync::Arc;

use serde_json::json;
use teamster_acp_server::{AgentEntry, Catalog, EditorServer};
use teamster_api::{RunInfo, RunQuery, RunService, SessionSpec, Spec};
use teamster_core::{
    AgentEvent, ModelChoice, Offers, PermissionChange, PermissionMode, PermissionRequest,
    SlashCommand, Text, ToolKind,
};
use teamster_testkit::run_service::{MemoryService, Step};

use editor::Editor;

/// What the agent does for a prompt.
fn script(prompt: &str) -> Vec<Step> {
    let text = |text: &str| Step::Emit(AgentEvent::Text(Text::new(text)));
    match prompt {
        "ask" => {
            let input = json!({"command": "touch x"});
            let request = PermissionRequest::new(1, "Bash", ToolKind::Execute, input);
            vec![Step::Ask(request), text("asked")]
        }
        "ask early" => {
            let input = json!({"command": "touch x"});
            let mut request = PermissionRequest::new(1, "Bash", ToolKind::Execute, input);
            // Its call is never announced.
            request.tool_id = Some("t".into());
            vec![Step::Ask(request), text("asked")]
        }
        "offer" => {
            let commands = vec![SlashCommand::new("compact")];
            let models = vec![ModelChoice::new("deep").name("Deep")];
            let offers = Offers::new().commands(commands).models(models);
            vec![Step::Emit(offers.into()), text("offered")]
        }
        "take edits" => {
            let change = PermissionChange::new(PermissionMode::AcceptEdits);
            vec![Step::Emit(change.into()), text("taken")]
        }
        "hang" => vec![text("working"), Step::Hang],
        prompt => vec![text(prompt)],
    }
}

fn memory() -> MemoryService {
    MemoryService::new(["mock", "other"], script)
}

fn entry(id: &str) -> AgentEntry {
    let mut entry = AgentEntry::new(id, "Mock");
    entry.modes = vec![PermissionMode::Default, PermissionMode::AcceptEdits];
    entry
}

/// A server of the agent `mock` over this service.
fn server(service: &MemoryService) -> EditorServer {
    server_of(service, SessionSpec::new("mock"))
}

/// The same with this session.
fn server_of(service: &MemoryService, session: SessionSpec) -> EditorServer {
    let runs: Arc<dyn RunService> = Arc::new(service.clone());
    let catalog = Catalog::one(entry(&session.provider));
    EditorServer::new(runs, catalog, session)
}

/// The sessions of a thread, newest first.
async fn runs_of(runs: &impl RunService, thread: &str) -> Vec<RunInfo> {
    let mut query = RunQuery::default();
    query.thread = Some(thread.to_owned());
    let runs = runs.list(query).await.unwrap().runs;
    runs.iter().map(|run| run.info.clone()).collect()
}

/// The spec of a session that was started.
#[track_caller]
fn session(service: &MemoryService, id: &str) -> SessionSpec {
    match service.spec(id) {
        Some(Spec::Session(spec)) => *spec,
        other => panic!("{id}: {other:?}"),
    }
}
