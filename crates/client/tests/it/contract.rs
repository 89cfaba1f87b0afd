//! The client keeps the contract of all services of runs, over a server of a service in memory.

use std::sync::Arc;

use serde_json::json;
use teamster_api::agents::{AgentList, Command as LoopCommand};
use teamster_api::history::{RunFilter, RunRecord};
use teamster_api::usage::{LimitList, UsageQuery};
use teamster_api::{
    Command, FleetQueue, FleetStatus, MachineService, ProblemCode, ProviderReport, Reply,
    RunService, RunSpec, ServiceError, SessionSpec, Spec, Worktree,
};
use teamster_client::Client;
use teamster_core::{AgentEvent, Capabilities, PermissionMode, PermissionRequest, Text, ToolKind};
use teamster_server::{OwnerToken, Server, ServerConfig, Tokens};
use teamster_testkit::run_service::{Behavior, MemoryService, Step, Subject, contract};
use tempfile::TempDir;

pub(crate) fn script(prompt: &str) -> Vec<Step> {
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

/// Runs over a client.
pub(crate) struct Over(pub(crate) Client);

struct Http {
    over: Over,
    _folder: TempDir,
}

impl Http {
    /// Starts a server on a free port.
    async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let owner = OwnerToken::read_or_make(&folder.path().join("token")).unwrap();
        let token = owner.secret().to_owned();
        let mut config = ServerConfig::new(Tokens::at(folder.path()));
        config.owner = Some(owner);
        let runs = MemoryService::new(["mock"], script);
        runs.set_warnings(["`max_turns` is ignored"]);
        let server = Server::new(config, Arc::new(runs), Arc::new(Machine));
        let bound = server.bind(&"127.0.0.1:0".parse().unwrap()).await.unwrap();
        let client = Client::new(&bound.url(), Some(&token)).unwrap();
        tokio::spawn(bound.serve());
        Self {
            over: Over(client),
            _folder: folder,
        }
    }
}

impl Subject for Over {
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

/// A machine with one agent.
pub(crate) struct Machine;

#[async_trait::async_trait]
impl MachineService for Machine {
    async fn agents(&self) -> Result<Vec<ProviderReport>, ServiceError> {
        let facts = json!({
            "id": "mock", "name": "Mock", "usable": true, "inProcess": false, "tested": true,
            "testedVersions": ["1"], "tooOld": false, "install": "-", "login": {"state": "yes"},
        });
        let mut capabilities = Capabilities::none();
        capabilities.permission_modes = PermissionMode::ALL;
        capabilities.uncounted_tools = &["task"];
        let facts = serde_json::from_value(facts).unwrap();
        let mut report = ProviderReport::new(facts, capabilities);
        report.sessions = true;
        Ok(vec![report])
    }

    async fn fleet(&self) -> Result<Option<FleetStatus>, ServiceError> {
        let mut status = FleetStatus::default();
        status.queues = vec![FleetQueue::default()];
        Ok(Some(status))
    }

    async fn history(&self, filter: RunFilter) -> Result<Vec<RunRecord>, ServiceError> {
        let record = |id: &str, session: &str| {
            let mut record = RunRecord::new(
                id,
                "mock",
                serde_json::from_value(json!("success")).unwrap(),
                1,
            );
            record.session_id = Some(session.to_owned());
            record
        };
        let records = vec![record("r2", "s2"), record("r1", "s1")];
        assert_eq!(filter.provider.as_deref(), Some("mock"));
        Ok(records)
    }

    async fn loops(&self, command: LoopCommand) -> Result<AgentList, ServiceError> {
        assert_eq!(command, LoopCommand::Status);
        Ok(AgentList::none())
    }

    async fn loop_log(&self, agent: &str, lines: usize) -> Result<String, ServiceError> {
        let log = format!("{agent}\n").repeat(lines);
        Ok(log)
    }
}

#[tokio::test]
async fn http_keeps_the_contract() {
    contract(&Http::start().await.over).await;
}

#[tokio::test]
async fn a_machine_is_the_same_over_http() {
    let http = Http::start().await;
    let machine: &dyn MachineService = &http.over.0;
    let there = machine.agents().await.unwrap();
    let here = Machine.agents().await.unwrap();
    let json = |reports| serde_json::to_value::<Vec<ProviderReport>>(reports).unwrap();
    assert_eq!(json(there), json(here));
    assert_eq!(
        machine.fleet().await.unwrap(),
        Machine.fleet().await.unwrap()
    );
    assert_eq!(machine.limits().await.unwrap(), LimitList::new(Vec::new()));
    let filter = RunFilter::default().provider("mock").session_id("s1");
    let runs = machine.history(filter).await.unwrap();
    let ids: Vec<_> = runs.iter().map(|run| &*run.run_id).collect();
    assert_eq!(ids, ["r1"]);
    assert_eq!(machine.loop_log("qa", 2).await.unwrap(), "qa\nqa\n");
    let loops = machine.loops(LoopCommand::Status).await.unwrap();
    assert_eq!(loops, AgentList::none());
    let usage = machine.usage(UsageQuery::default()).await.unwrap_err();
    assert_eq!(usage.code, Some(ProblemCode::Unsupported));
}

#[tokio::test]
async fn commands_are_those_of_a_runner() {
    let http = Http::start().await;
    let service = http.over.service();
    let session = Spec::from(SessionSpec::new("mock"));
    service.start("s", session.clone()).await.unwrap();
    for command in [
        Command::SetModel {
            model: "m".to_owned(),
        },
        Command::SetPermission {
            mode: PermissionMode::ReadOnly,
        },
        Command::Clear,
    ] {
        let reply = service.send("s", command).await;
        assert!(matches!(reply, Ok(Reply::Done)), "{reply:?}");
    }
    let status = service.send("s", Command::Status).await.unwrap();
    assert!(matches!(status, Reply::Status { .. }), "{status:?}");
    let requests = service.send("s", Command::Requests).await.unwrap();
    assert_eq!(
        requests,
        Reply::Requests {
            requests: Vec::new()
        }
    );
    service
        .start("r", http.over.run(Behavior::Hangs))
        .await
        .unwrap();
    let steer = Command::Steer {
        text: "x".to_owned(),
        from: None,
    };
    let refused = service.send("r", steer).await.unwrap_err();
    assert_eq!(refused.code, Some(ProblemCode::Unsupported));
    // What cannot be an id is one of no run, and starts none.
    for id in ["", "..", "a/b"] {
        let missing = service.show(id).await.unwrap_err();
        assert_eq!(missing.code, Some(ProblemCode::RunNotFound), "{id:?}");
        let refused = service.start(id, session.clone()).await.unwrap_err();
        assert_eq!(refused.code, Some(ProblemCode::InvalidParams), "{id:?}");
        assert!(!refused.retryable);
    }
}
