use teamster_api::ProviderReport;
use teamster_api::agents::{AgentState, AgentStatus, Selection, Status};

use super::*;

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
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn a_supervisor_that_does_not_answer_gets_no_command() {
    let supervisor = Supervisor {
        machine: Arc::new(Hanging),
        url: Some("http://m".to_owned()),
    };
    let all = Selection::all;
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
