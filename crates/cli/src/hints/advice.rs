//! The next step after errors of libraries, which know no commands of this program.

use teamster::agent_loop::supervisor::Error as SupervisorError;
use teamster::agent_loop::supervisor::protocol::ErrorCode;
use teamster_api::{ProblemCode, RefusalCode, ServiceError};
use teamster_client::ClientError;
use teamster_runner::RunsError;

/// Returns the next step after an error, as it is printed after the error's text.
pub(crate) fn advice(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        let of_run = cause.downcast_ref().and_then(of_run);
        of_run
            .or_else(|| cause.downcast_ref().and_then(of_supervisor))
            .or_else(|| cause.downcast_ref().and_then(of_client).map(str::to_owned))
            .or_else(|| cause.downcast_ref().and_then(of_service).map(str::to_owned))
    })
}

fn of_run(error: &RunsError) -> Option<String> {
    Some(match error {
        RunsError::NotFound { .. } => "; `teamster runs list` lists all runs".to_owned(),
        RunsError::Ended { id } => format!(": `teamster attach {id}` shows its log"),
        RunsError::NotAnswering {
            id,
            pid: Some(pid),
            is_stopped: true,
        } => format!(
            "; continue it with `kill -CONT {pid}`, or end it with `teamster cancel --kill {id}`"
        ),
        RunsError::NotAnswering {
            id, pid: Some(_), ..
        } => format!(": try again, or end it with `teamster cancel --kill {id}`"),
        RunsError::Refused {
            code: RefusalCode::UnknownRequest,
            ..
        } => ": list them with `teamster requests`".to_owned(),
        _ => return None,
    })
}

fn of_supervisor(error: &SupervisorError) -> Option<String> {
    Some(match error {
        SupervisorError::AlreadyRunning { .. } => ": control it with `teamster agents`".to_owned(),
        SupervisorError::NotRunning { config } => {
            format!(": start one with `teamster supervise {}`", config.display())
        }
        SupervisorError::Refused {
            code: ErrorCode::NotRunning,
            ..
        } => ": start it with `teamster agents start`".to_owned(),
        _ => return None,
    })
}

/// Returns the next step after the error of a request to a server.
pub(crate) fn of_client(error: &ClientError) -> Option<&'static str> {
    of_problem(error.code?)
}

fn of_service(error: &ServiceError) -> Option<&'static str> {
    of_problem(error.code?)
}

/// Returns the next step after the refusal of a server.
pub(crate) fn of_problem(code: ProblemCode) -> Option<&'static str> {
    Some(match code {
        ProblemCode::Unauthorized => ": check TEAMSTER_REMOTE_TOKEN or --remote-token-file",
        ProblemCode::InsufficientScope => {
            "; `teamster token add NAME --scope SCOPE` on its machine creates one"
        }
        _ => return None,
    })
}
