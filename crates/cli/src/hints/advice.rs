//! The next step after errors of libraries, which know no commands of this program.

use teamster::agent_loop::supervisor::Error as SupervisorError;
use teamster_api::agents::ErrorCode;
use teamster_api::{ProblemCode, ServiceError};

use crate::global::{typed, uses_fleet};

/// Returns the next step after an error, as it is printed after the error's text.
pub(crate) fn advice(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        let of_service = cause.downcast_ref().and_then(of_service);
        of_service.or_else(|| cause.downcast_ref().and_then(of_supervisor))
    })
}

/// Returns the next step after the error of a run, or of a request to a server.
fn of_service(error: &ServiceError) -> Option<String> {
    let id = error.run_id.as_deref();
    let teamster = typed();
    Some(match error.code? {
        ProblemCode::RunNotFound => format!("; `{teamster} runs list` lists all runs"),
        ProblemCode::RunEnded => format!(": `{teamster} attach {}` shows its log", id?),
        ProblemCode::RunnerNotResponding => {
            let (id, runner) = (id?, error.runner?);
            if runner.is_stopped {
                format!(
                    "; continue it with `kill -CONT {}`, or end it with `{teamster} cancel --kill {id}`",
                    runner.pid
                )
            } else {
                format!(": try again, or end it with `{teamster} cancel --kill {id}`")
            }
        }
        ProblemCode::RequestNotFound => format!(": list them with `{teamster} requests`"),
        ProblemCode::AgentRefused if error.refusal == Some(ErrorCode::NotRunning) => {
            format!(": start it with `{teamster} agents start`")
        }
        code => of_problem(code)?.to_owned(),
    })
}

fn of_supervisor(error: &SupervisorError) -> Option<String> {
    let is_other = matches!(error, SupervisorError::AlreadyRunning { .. });
    is_other.then(|| ": control it with `teamster agents`".to_owned())
}

/// Returns the next step after the refusal of a server.
pub(crate) fn of_problem(code: ProblemCode) -> Option<&'static str> {
    Some(match code {
        // The fleet's server knows no tokens.
        ProblemCode::Unauthorized | ProblemCode::InsufficientScope if uses_fleet() => return None,
        ProblemCode::Unauthorized => ": check TEAMSTER_REMOTE_TOKEN or --remote-token-file",
        ProblemCode::FleetNotInitialized => ": `teamster fleet init`",
        ProblemCode::InsufficientScope => {
            "; `teamster token add NAME --scope SCOPE` on its machine creates one"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use teamster_api::RunnerProcess;

    use super::*;

    #[test]
    fn the_next_step_follows_from_the_code() {
        let step = |error: ServiceError| {
            let error = anyhow::Error::from(error).context("the run was not stopped");
            advice(&error)
        };
        let error = |code| ServiceError::new(code, "x");
        assert_eq!(
            step(ServiceError::ended("r")).as_deref(),
            Some(": `teamster attach r` shows its log")
        );
        assert_eq!(step(error(ProblemCode::RunEnded)), None);
        assert_eq!(
            step(error(ProblemCode::RunNotFound)).as_deref(),
            Some("; `teamster runs list` lists all runs")
        );
        assert_eq!(
            step(error(ProblemCode::RequestNotFound)).as_deref(),
            Some(": list them with `teamster requests`")
        );
        assert_eq!(step(ServiceError::unreachable("x")), None);
        let mut silent = error(ProblemCode::RunnerNotResponding).about("r");
        // It is on another machine, or its process is unknown.
        assert_eq!(step(silent.clone()), None);
        let mut runner = RunnerProcess::new(7);
        silent.runner = Some(runner);
        assert_eq!(
            step(silent.clone()).as_deref(),
            Some(": try again, or end it with `teamster cancel --kill r`")
        );
        runner.is_stopped = true;
        silent.runner = Some(runner);
        assert_eq!(
            step(silent).as_deref(),
            Some("; continue it with `kill -CONT 7`, or end it with `teamster cancel --kill r`")
        );
    }
}
