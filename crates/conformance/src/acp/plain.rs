//! Evidence in the output of a run that does not use the protocol.

use serde_json::Value;

use super::cause::{Cause, Reason};
use super::figures::sum_of;
use crate::json::{find, holds};

/// Returns the cause of a difference, and the evidence: whether the expected value is in the output.
pub(super) fn cause(
    messages: &[Value],
    fact: &str,
    expected: Option<&Value>,
    found: Option<&Value>,
) -> Reason {
    let Some(expected) = expected else {
        return Cause::Agent.because("it did so");
    };
    let base = fact.split('.').next().unwrap_or(fact);
    match expected {
        Value::Number(number) if base == "usage" => {
            let printed = messages
                .iter()
                .find_map(|message| find(message, "", &|_, value| value == expected));
            let printed = printed.or_else(|| sum_of(messages, number.as_u64()?));
            match printed {
                Some(path) => Cause::Teamster.because(format!("it is printed in `{path}`")),
                None => Cause::Agent.because("it prints no such number"),
            }
        }
        Value::String(text) if base == "text" || base == "thinking" || base.starts_with("tool") => {
            // The expected part of a call is its last word: a command, a path or a text.
            let is_call = base == fact && base.starts_with("tool");
            let rest = text.split_once(' ').filter(|_| is_call);
            let wanted = rest.map_or(text.as_str(), |(_, rest)| rest);
            if found.is_some() && fact.ends_with(".output") {
                let evidence = "it prints the result with more, or less".to_owned();
                return (Cause::Agent, evidence);
            }
            let reported = found.and_then(Value::as_str);
            let is_reported = reported.is_some_and(|reported| reported.contains(wanted));
            if messages.iter().any(|message| holds(message, wanted)) && !is_reported {
                return Cause::Teamster.because(format!("{wanted:?} is in its output"));
            }
            Cause::Agent.because("it does not print it so")
        }
        _ => Cause::Agent.because("its output does not show it"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Made by hand, in the form of OpenCode's lines.
    #[test]
    fn output_of_a_finding_should_have_been_reported() {
        let messages = [
            json!({"type": "tool_use", "part": {"input": {"command": "echo a"}, "output": "a"}}),
            json!({"type": "step_finish", "part": {"tokens": {"input": 100, "output": 20}}}),
            json!({"type": "step_finish", "part": {"tokens": {"input": 60, "output": 9}}}),
        ];
        let of = |fact, expected: Value, found: Value| {
            let found = (!found.is_null()).then_some(&found);
            cause(&messages, fact, Some(&expected), found).0
        };
        let none = || Value::Null;
        for (fact, expected, found, by) in [
            ("tool1", json!("execute: echo a"), none(), Cause::Teamster),
            ("tool1", json!("execute: echo b"), none(), Cause::Agent),
            (
                "tool1",
                json!("execute: echo a"),
                json!("other: echo a"),
                Cause::Agent,
            ),
            ("tool1.output", json!("a"), none(), Cause::Teamster),
            ("tool1.output", json!("a"), json!("1: a"), Cause::Agent),
            ("usage.input", json!(160), json!(100), Cause::Teamster),
            ("usage.input", json!(161), none(), Cause::Agent),
            ("tools", json!(100), none(), Cause::Agent),
            ("streamed", json!(true), none(), Cause::Agent),
        ] {
            assert_eq!(of(fact, expected.clone(), found), by, "{fact} {expected}");
        }
        assert_eq!(cause(&messages, "processes", None, None).0, Cause::Agent);
    }
}
