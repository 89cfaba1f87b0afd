use teamster_api::ServiceFuture;
use teamster_api::history::{RunFilter, RunRecord};
use teamster_api::usage::{LimitList, UsageQuery, UsageSummary};
use teamster_api::{ProviderReport, agents::AgentState, agents::AgentStatus, agents::Status};

use super::*;

fn unused<T>() -> ServiceFuture<'static, T> {
    Box::pin(async {
        let message = "the commands do not use this";
        Err(ServiceError::new(ProblemCode::Unsupported, message))
    })
}

/// A machine whose supervisor lives and does not answer.
struct Hanging;

impl MachineService for Hanging {
    fn loops(&self, command: Command) -> ServiceFuture<'_, AgentList> {
        assert_eq!(command, Command::Status, "it would be carried out later");
        let agent = AgentStatus::new("a", "/a", AgentState::Running);
        let mut supervisor = SupervisorStatus::new(7, 0);
        supervisor.not_answering = true;
        let mut status = Status::new("/c", vec![agent]);
        status.supervisor = Some(supervisor);
        Box::pin(async { Ok(status.into()) })
    }

    fn agents(&self) -> ServiceFuture<'_, Vec<ProviderReport>> {
        unused()
    }

    fn usage(&self, _: UsageQuery) -> ServiceFuture<'_, UsageSummary> {
        unused()
    }

    fn limits(&self) -> ServiceFuture<'_, LimitList> {
        unused()
    }

    fn history(&self, _: RunFilter) -> ServiceFuture<'_, Vec<RunRecord>> {
        unused()
    }

    fn history_of<'a>(&'a self, _: &'a str) -> ServiceFuture<'a, RunRecord> {
        unused()
    }

    fn loop_log<'a>(&'a self, _: &'a str, _: usize) -> ServiceFuture<'a, String> {
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
