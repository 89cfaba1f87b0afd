//! Errors of a service as errors of an agent, which the protocol's errors are made of.

use teamster_api::{ProblemCode, ServiceError};
use teamster_core::{AgentError, ErrorCode, ErrorKind};

use super::Shared;

impl Shared {
    /// Converts an error of the service, with the next step.
    pub(super) fn agent_error(&self, error: ServiceError) -> AgentError {
        let hint = error.code.and_then(self.hint).unwrap_or_default();
        let mut error = agent_error(error);
        error.message.push_str(hint);
        error
    }
}

fn agent_error(error: ServiceError) -> AgentError {
    if let Some(error) = error.agent_error {
        return *error;
    }
    let (code, kind) = match error.code {
        Some(ProblemCode::OverBudget | ProblemCode::OutOfTime) => {
            (ErrorCode::InvalidParams, ErrorKind::Budget)
        }
        Some(ProblemCode::RunNotFound | ProblemCode::SessionNotFound) => {
            (ErrorCode::CliError, ErrorKind::SessionNotFound)
        }
        Some(
            ProblemCode::Unauthorized
            | ProblemCode::InsufficientScope
            | ProblemCode::HostNotAllowed
            | ProblemCode::BypassNotAllowed
            | ProblemCode::CommandNotAllowed,
        ) => (ErrorCode::Unknown, ErrorKind::Permission),
        Some(ProblemCode::SessionInUse) => (ErrorCode::SessionInUse, ErrorKind::Invalid),
        Some(ProblemCode::RunnerNotResponding | ProblemCode::TooManyConnections) => {
            (ErrorCode::Unknown, ErrorKind::Overloaded)
        }
        Some(ProblemCode::Internal) => (ErrorCode::Io, ErrorKind::Internal),
        Some(_) => (ErrorCode::InvalidParams, ErrorKind::Invalid),
        None => (ErrorCode::Unknown, ErrorKind::Network),
    };
    AgentError::new(code, error.kind.unwrap_or(kind), error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_s_error_keeps_its_fields_and_a_problem_gets_a_kind() {
        let refused = AgentError::refused("model", "no such model");
        assert_eq!(agent_error(refused.clone().into()), refused);
        for (code, kind) in [
            (ProblemCode::OutOfTime, ErrorKind::Budget),
            (ProblemCode::RunNotFound, ErrorKind::SessionNotFound),
            (ProblemCode::BypassNotAllowed, ErrorKind::Permission),
            (ProblemCode::InvalidParams, ErrorKind::Invalid),
        ] {
            assert_eq!(agent_error(ServiceError::new(code, "x")).kind, kind);
        }
        let lost = agent_error(ServiceError::unreachable("no route"));
        assert_eq!(
            (lost.kind, &*lost.message),
            (ErrorKind::Network, "no route")
        );
    }
}
