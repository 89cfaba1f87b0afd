//! End of a run, with its usage.

use teamster_core::provider::{DecodedResult, Events};
use teamster_core::{AgentError, ErrorCode, ErrorKind, TurnEnd, Usage};

use super::errors;

/// The CLI's own end of the run, if it was printed.
#[derive(Debug, Default)]
pub(super) struct End(Option<(bool, Usage)>);

impl End {
    pub(super) fn line(
        &mut self,
        error: Option<String>,
        input: u64,
        output: u64,
        out: &mut Events,
    ) {
        let usage = Usage::default().input_tokens(input).output_tokens(output);
        let failed = error.is_some();
        if let Some(message) = error {
            let kind = errors::kind_of(&message).unwrap_or(ErrorKind::Internal);
            out.error(AgentError::new(ErrorCode::CliError, kind, message));
        }
        out.push(TurnEnd::new(failed).usage(usage));
        self.0 = Some((failed, usage));
    }

    pub(super) fn summary(&self) -> DecodedResult {
        DecodedResult {
            ended_with_error: self.0.map(|(failed, _)| failed),
            usage: self.0.map(|(_, usage)| usage),
            ..DecodedResult::default()
        }
    }
}
