//! The service in memory keeps the contract of all services.

use std::sync::Arc;

use serde_json::json;
use teamster_api::{RunService, RunSpec, SessionSpec, Spec, Worktree};
use teamster_core::{AgentEvent, PermissionRequest, Text, ToolKind};
use teamster_testkit::run_service::{Behavior, MemoryService, Step, Subject, contract};

struct Memory(MemoryService);

fn script(prompt: &str) -> Vec<Step> {
    let text = |text: &str| Step::Emit(AgentEvent::Text(Text::new(text)));
    match prompt {
        "ask" => vec![Step::Ask(PermissionRequest::new(
            1,
            "Bash",
            ToolKind::Execute,
            json!({"command": "ls"}),
        ))],
        "hang" => vec![text("…"), Step::Hang],
        "write" => vec![Step::Write("new.txt".into(), "new".into())],
        _ => vec![text("Hello"), text(", world")],
    }
}

impl Subject for Memory {
    fn service(&self) -> Arc<dyn RunService> {
        Arc::new(self.0.clone())
    }

    fn run(&self, behavior: Behavior) -> Spec {
        RunSpec::new("mock", self.prompt(behavior)).into()
    }

    fn session(&self) -> Option<SessionSpec> {
        Some(SessionSpec::new("mock"))
    }

    fn writing(&self) -> Option<RunSpec> {
        let mut spec = RunSpec::new("mock", "write");
        spec.worktree = Some(Worktree::Switch(true));
        Some(spec)
    }

    fn prompt(&self, behavior: Behavior) -> String {
        let prompt = match behavior {
            Behavior::Asks => "ask",
            Behavior::Hangs => "hang",
            _ => "answer",
        };
        prompt.to_owned()
    }
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    contract(&Memory(MemoryService::new(["mock"], script))).await;
}
