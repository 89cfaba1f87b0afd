//! Detection of a model that repeats a call.

use teamster_core::{AgentError, ErrorCode, ErrorKind};

use crate::conversation::{Call, CallResult};

/// Number of consecutive identical calls with the same result after which the model gets a hint.
const HINT_AFTER: u32 = 3;
/// Number of such calls after which the run fails.
const ENOUGH: u32 = 6;

/// Counts consecutive identical calls.
#[derive(Debug, Default)]
pub(super) struct LoopGuard {
    last: Option<(String, String, String)>,
    count: u32,
}

#[derive(Debug, PartialEq)]
pub(super) enum Advice {
    None,
    /// Add this text to the result.
    Hint(String),
    /// Fail the run with this error.
    Enough(AgentError),
}

impl LoopGuard {
    pub(super) fn note(&mut self, call: &Call, result: &CallResult) -> Advice {
        let now = (call.name.clone(), call.input.to_string(), result.text());
        if self.last.as_ref() == Some(&now) {
            self.count += 1;
        } else {
            self.last = Some(now);
            self.count = 1;
        }
        let (count, name) = (self.count, &call.name);
        if count >= ENOUGH {
            let message = format!(
                "the model called {name} {count} times in a row in the same way with the same result; ask \
                 more precisely, or use another model"
            );
            let error = AgentError::new(ErrorCode::CliError, ErrorKind::Protocol, message);
            return Advice::Enough(error.retryable(false));
        }
        if count >= HINT_AFTER {
            return Advice::Hint(format!(
                "[These were {count} calls in a row that are the same, with the same result. Do something else, \
                 or say what is in the way.]"
            ));
        }
        Advice::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Input;
    use serde_json::json;

    fn note(guard: &mut LoopGuard, argument: u32, text: &str) -> Advice {
        let call = Call {
            id: "x".into(),
            name: "read".into(),
            input: json!({"offset": argument}),
            signature: None,
        };
        let mut result = CallResult::none(&call);
        result.content = vec![Input::text(text)];
        guard.note(&call, &result)
    }

    #[test]
    fn another_call_or_another_result_is_progress() {
        let mut guard = LoopGuard::default();
        for round in 0..20 {
            assert_eq!(note(&mut guard, round % 2, "a"), Advice::None);
        }
        for round in 0..20 {
            assert_eq!(note(&mut guard, 7, &round.to_string()), Advice::None);
        }
    }
}
