use teamster_api::history::{RunFilter, RunRecord};
use teamster_api::usage::{LimitList, UsageQuery, UsageSummary};
use teamster_api::{ProviderReport, agents::AgentState, agents::AgentStatus, agents::Status};

use super::*;

fn unused<T>() -> Result<T, ServiceError> {
    let message = "the commands do not use this";
    Err(ServiceError::new(ProblemCode::Unsupported, message))
}

/// A machine whose supervisor lives and does not answer.
struct Hanging;

#[async_trait::async_trait]
impl MachineService for Hanging {
    async fn loops(&self, command: Command) -> Result<AgentList, ServiceError> {
        assert_eq!(command, Command::Status, "it would be carried out later");
        let agent = AgentStatus::new("a", "/a", AgentState::Running);
        let mut supervisor = SupervisorStatus::new(7, 0);
        supervisor.not_answering = true;
        let mut status = Status::new("/c", vec![agent]);
        status.supervisor = Some(supervisor);
        Ok(status.into())
    }

    async fn agents(&self) -> Result<Vec<ProviderReport>, ServiceError> {
        unused()
    }

    async fn usage(&self, _: UsageQuery) -> Result<UsageSummary, ServiceError> {
        unused()
    }

    async fn limits(&self) -> Result<LimitList, ServiceError> {
        unused()
    }

    async fn history(&self, _: RunFilter) -> Result<Vec<RunRecord>, ServiceError> {
        unused()
    }

    async fn history_of(&self, _: &str) -> Result<RunRecord, ServiceError> {
        unused()
    }

    async fn loop_log(&self, _: &str, _: usize) -> Result<String, ServiceError> {
        unused()
    }
}

#[tokio::test]
async fn a_supervisor_that_does_not_answer_gets_no_command() {
    let supervisor = Supervisor {
        machine: Arc::new(Hanging),
        url: Some("http://m".to_owned()),
    };
    let all = teamster_api::agents::Selection::all;
    for command in [
        Command::Start(all()),
        Command::Stop(all()),
        Command::Restart(all()),
        Command::Wake(all()),
        Command::Reload,
    ] {
        let error = supervisor.control(command).await.unwrap_err();
        let expected = "the supervisor does not answer (pid 7)";
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
