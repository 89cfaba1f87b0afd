//! Causes of differences, and their evidence.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use teamster::{AgentEvent, ErrorCode};

use super::check::{self, excerpt, without_stderr};
use super::figures::{cost, pieces, sum_of};
use super::plain;
use crate::json::{find, holds};
use crate::played::Played;
use crate::story::{ANY, Story, in_place};

/// The mock model's words about a request without a tool for what the script wants.
const NO_SUCH_TOOL: &str = "no tool that the request offers is known to do what the script wants";

/// Parameters for which the protocol has a place. Where one is refused, it is the agent that does not take it.
const OF_PROTOCOL: [&str; 3] = ["images", "mcp_servers", "session_id"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cause {
    /// The agent printed the fact, and teamster did not report it.
    Teamster,
    /// The agent violates the protocol.
    Violation,
    /// The agent reports that it lacks the feature.
    Capability,
    /// The agent behaves differently or does not print the fact.
    Agent,
    /// The same of `teamster acp`, where a run of its provider does not differ.
    Server,
    /// The protocol cannot express the fact.
    Protocol,
    /// The agent never called the model: it has no login or uses another address.
    Setup,
}

/// A cause with its evidence.
pub(super) type Reason = (Cause, String);

impl Cause {
    pub(super) fn because(self, evidence: impl Into<String>) -> Reason {
        (self, evidence.into())
    }

    /// Returns the cause of what is not reported: teamster's if the agent has printed it.
    fn of_lost(is_printed: bool) -> Self {
        if is_printed {
            Self::Teamster
        } else {
            Self::Agent
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Teamster => "teamster",
            Self::Violation => "agent, against the protocol",
            Self::Capability => "agent, as it declares",
            Self::Agent => "agent",
            Self::Server => "teamster acp",
            Self::Protocol => "protocol",
            Self::Setup => "setup",
        })
    }
}

/// A fact that differs from the expected one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(crate) fact: String,
    /// The expected and the actual value.
    pub(crate) expected: Option<Value>,
    pub(crate) actual: Option<Value>,
    pub(crate) cause: Cause,
    pub(crate) evidence: String,
}

impl Finding {
    /// Creates the finding of a scenario that could not be played.
    pub(crate) fn not_played(error: &anyhow::Error) -> Self {
        Self {
            fact: "status".to_owned(),
            expected: None,
            actual: None,
            cause: Cause::Agent,
            evidence: format!("{error:#}"),
        }
    }
}

/// Returns the facts that differ from the expected ones, with their causes, except for those in `declared`.
/// `met` has all earlier lines of the same or an earlier process: the agent reports its capabilities in its
/// first. `by_protocol` is false for a run whose output is not of the protocol.
pub(crate) fn findings(
    expected: &Story,
    actual: &Story,
    played: &Played,
    met: &[String],
    by_protocol: bool,
    declared: impl Fn(&str, Option<&Value>, Option<&Value>) -> bool,
) -> Vec<Finding> {
    let mut evidence = Evidence::new(played, met);
    evidence.needs_no_model = !expected.contains_key("prompt");
    evidence.by_protocol = by_protocol;
    let mut facts: Vec<_> = expected.keys().chain(actual.keys()).collect();
    facts.sort_unstable();
    facts.dedup();
    let mut findings = Vec::new();
    for fact in facts {
        let (wanted, found) = (expected.get(fact), actual.get(fact));
        if wanted == found
            || wanted.is_some_and(|wanted| wanted == ANY)
            || declared(fact, wanted, found)
        {
            continue;
        }
        let (cause, evidence) = evidence.cause(fact, wanted, found, actual);
        findings.push(Finding {
            fact: fact.clone(),
            expected: wanted.map(short),
            actual: found.map(short),
            cause,
            evidence,
        });
    }
    findings
}

/// Returns a value in the form that is shown and stored.
fn short(value: &Value) -> Value {
    match value {
        Value::String(text) => excerpt(text).into(),
        other => other.clone(),
    }
}

/// Output and actions of the agent.
struct Evidence<'a> {
    played: &'a Played,
    messages: Vec<Value>,
    /// True if the agent has reported its capabilities.
    is_agent: bool,
    /// True if the output is of the protocol.
    by_protocol: bool,
    /// True if the run is expected to end before any request to a model.
    needs_no_model: bool,
    /// The cost of the session before the run, as last reported by the agent.
    cost_before: Option<Value>,
}

impl<'a> Evidence<'a> {
    fn new(played: &'a Played, met: &[String]) -> Self {
        let read = |line: &String| serde_json::from_str::<Value>(line).ok();
        let before = &met[..met.len().saturating_sub(played.printed.len())];
        Self {
            cost_before: before
                .iter()
                .rev()
                .filter_map(read)
                .find_map(|it| cost(&it)),
            played,
            by_protocol: true,
            needs_no_model: false,
            messages: played.printed.iter().filter_map(read).collect(),
            is_agent: met
                .iter()
                .filter_map(read)
                .any(|message| !message["result"]["protocolVersion"].is_null()),
        }
    }

    fn cause(
        &self,
        fact: &str,
        expected: Option<&Value>,
        found: Option<&Value>,
        actual: &Story,
    ) -> Reason {
        if let Some(cause) = (self.refused())
            .or_else(|| self.never_asked())
            .or_else(|| self.not_offered())
        {
            return cause;
        }
        let base = fact.split('.').next().unwrap_or(fact);
        let is_denied = expected.is_some_and(|it| it == "incomplete" || it.is_number());
        if !self.by_protocol {
            return plain::cause(&self.messages, fact, expected, found);
        }
        match base {
            "unknown_lines" => self.unknown_lines(),
            "other_lines" => (Cause::Violation, self.first_violation()),
            "grammar" => Cause::Teamster.because("the events are its own"),
            "processes" => Cause::Teamster.because("it ends them"),
            "retried" | "warned" => Cause::Protocol.because("the protocol has no message for it"),
            "cost" | "usage" => self.figure(base, expected, found),
            "text" => self.text("agent_message_chunk", expected),
            "thinking" => self.text("agent_thought_chunk", expected),
            "streamed" => {
                let chunks = pieces(&self.messages);
                let evidence = match chunks {
                    0 => "it printed no pieces of the answer".to_owned(),
                    _ => format!("it printed the answer in {chunks} pieces"),
                };
                let cause = Cause::of_lost(chunks > self.played.messages);
                (cause, evidence)
            }
            "status" | "denials" if is_denied => {
                Cause::Protocol.because("the protocol has no message for a denial by the agent itself")
            }
            "status" | "error" => self.end(fact, actual),
            "plan" => match self.updates("plan").next() {
                Some(_) => Cause::Teamster.because("it printed a plan"),
                None => Cause::Agent.because("it printed no plan"),
            },
            "denials" => Cause::Agent.because(
                "it asks its user by a request for permission, and a question without an answer is `denied`",
            ),
            "image" => Cause::Agent.because("the image was not in what it asked the model"),
            "prompt" => {
                Cause::Agent.because("the prompt was not in what it asked the model as it was given")
            }
            _ if base.starts_with("tool") => self.tool(fact, expected, found),
            _ => Cause::Agent.because("it did so"),
        }
    }

    /// Returns the cause if a parameter was refused, by teamster or because the agent lacks it.
    fn refused(&self) -> Option<Reason> {
        let errors = &self.played.result.errors;
        let refused = errors
            .iter()
            .find(|error| error.code == ErrorCode::InvalidParams)?;
        let by_protocol = refused
            .parameter()
            .is_some_and(|it| OF_PROTOCOL.contains(&it));
        let cause = match (self.is_agent, by_protocol) {
            (true, _) => Cause::Capability,
            (false, true) => Cause::Agent,
            (false, false) => Cause::Protocol,
        };
        Some((cause, excerpt(&refused.message)))
    }

    /// Returns the cause if the run ended with an error before any request to a model.
    fn never_asked(&self) -> Option<Reason> {
        let mut requests = self.played.requests.iter();
        let error = self.played.result.errors.last()?;
        let asked = requests.any(|request| request.protocol.is_some());
        if asked || self.played.has_no_listener || self.needs_no_model {
            return None;
        }
        let message = excerpt(without_stderr(&error.message));
        Some(Cause::Setup.because(format!("it did not ask the model: {message}")))
    }

    /// Returns the cause if the mock model found no tool for what the script wants.
    fn not_offered(&self) -> Option<Reason> {
        let errors = &self.played.result.errors;
        let is_it = |error: &teamster::AgentError| error.message.contains(NO_SUCH_TOOL);
        errors
            .iter()
            .any(is_it)
            .then(|| Cause::Agent.because("it offers the model no tool for it"))
    }

    fn unknown_lines(&self) -> Reason {
        let mut events = self.played.events.iter();
        let native = events.find_map(|event| match event {
            AgentEvent::Unknown(unknown) => Some(unknown.native.get().to_owned()),
            _ => None,
        });
        let native = native.unwrap_or_default();
        match check::violation(&native) {
            Some(problem) => (Cause::Violation, problem),
            None => Cause::Teamster.because(format!("it is not read: {}", excerpt(&native))),
        }
    }

    fn first_violation(&self) -> String {
        let mut lines = self.played.printed.iter();
        let found = lines.find_map(|line| check::violation(line));
        found.unwrap_or_else(|| "a line that is no message".to_owned())
    }

    /// Returns the cause for tokens or a cost: whether the expected value occurs in the output, either
    /// literally or as a sum over several requests.
    fn figure(&self, what: &str, expected: Option<&Value>, found: Option<&Value>) -> Reason {
        if expected.is_none() {
            return Cause::Agent.because("it prints what it used");
        }
        let number = |value: Option<&Value>| value.and_then(Value::as_u64);
        if number(found) > number(expected) {
            let requests = self.played.requests.iter();
            let asked = requests.filter(|it| it.protocol.is_some()).count();
            let evidence = format!("it used that much: it asked the model {asked} times");
            return (Cause::Agent, evidence);
        }
        let is_it = |key: &str, value: &Value| match expected {
            Some(Value::Number(_)) => Some(value) == expected,
            _ => key == "cost",
        };
        let found = self
            .messages
            .iter()
            .find_map(|message| find(message, "", &is_it));
        let added_up = || sum_of(&self.messages, expected?.as_u64()?);
        let mut costs = self.messages.iter().filter_map(cost);
        match (found, what) {
            (Some(_), "cost") if costs.all(|cost| self.cost_before.as_ref() == Some(&cost)) => {
                Cause::Agent
                    .because("it prints what the session has cost, which is what it was before")
            }
            (Some(path), _) => Cause::Teamster.because(format!("it is printed in `{path}`")),
            (None, "cost") => Cause::Agent.because("it prints no cost"),
            (None, _) => match added_up() {
                Some(path) => Cause::Teamster.because(format!("it is the sum of `{path}`")),
                None => Cause::Agent.because("it prints no such number"),
            },
        }
    }

    fn updates<'e>(&'e self, kind: &'e str) -> impl Iterator<Item = &'e Value> {
        let updates = self.messages.iter().map(|it| &it["params"]["update"]);
        updates.filter(move |update| update["sessionUpdate"] == kind)
    }

    fn text(&self, kind: &str, expected: Option<&Value>) -> Reason {
        let printed: String = self
            .updates(kind)
            .filter_map(|update| update["content"]["text"].as_str())
            .collect();
        let cause = Cause::of_lost(expected.and_then(Value::as_str) == Some(&printed));
        let printed = excerpt(&format!("{printed:?}"));
        cause.because(format!("it printed as `{kind}`: {printed}"))
    }

    fn end(&self, fact: &str, actual: &Story) -> Reason {
        let error = self
            .messages
            .iter()
            .find(|message| message["error"].is_object());
        if let Some(problem) = self
            .played
            .printed
            .iter()
            .find_map(|line| check::violation(line))
        {
            return (Cause::Violation, problem);
        }
        let stop = self
            .messages
            .iter()
            .find_map(|message| message["result"]["stopReason"].as_str());
        match (error, stop) {
            (Some(message), _) => {
                let error = excerpt(&message["error"].to_string());
                // Checks whether the error has more information than the reported kind.
                let is_known = actual.get("error").is_some_and(|kind| kind != "internal");
                let cause = Cause::of_lost(fact == "error" && !is_known && names_a_status(&error));
                cause.because(format!("it printed the error {error}"))
            }
            (None, Some(stop)) => {
                Cause::Agent.because(format!("it ended the turn with `stopReason` {stop:?}"))
            }
            (None, None) => {
                let errors = &self.played.result.errors;
                let last = errors.last().map(|error| excerpt(&error.message));
                Cause::Agent.because(format!(
                    "it did not end the turn: {}",
                    last.as_deref().unwrap_or("there was no error")
                ))
            }
        }
    }

    fn tool(&self, fact: &str, expected: Option<&Value>, found: Option<&Value>) -> Reason {
        let calls: Vec<_> = self
            .updates("tool_call")
            .chain(self.updates("tool_call_update"))
            .collect();
        let Some(first) = calls.first() else {
            return Cause::Agent.because("it printed no tool call");
        };
        if fact.ends_with(".failed") {
            if expected.is_none() {
                let ends =
                    |call: &&&Value| call["status"] == "completed" || call["status"] == "failed";
                return match calls.iter().find(ends) {
                    Some(call) => Cause::Agent.because(format!(
                        "it printed its end: {}",
                        excerpt(&call.to_string())
                    )),
                    None => Cause::Teamster.because("it printed no end of a call"),
                };
            }
            let failed = calls.iter().any(|call| call["status"] == "failed");
            let cause = Cause::of_lost(failed == (expected == Some(&true.into())));
            let word = if failed { "a" } else { "no" };
            return cause.because(format!("it printed {word} call whose status is `failed`"));
        }
        if let Some(wanted) = expected.and_then(Value::as_str)
            && fact.ends_with(".output")
        {
            let printed = |text: &str| {
                let is_it = |_: &str, value: &Value| {
                    let value = value
                        .as_str()
                        .map(|text| in_place(text, &self.played.directory));
                    value.as_deref().map(str::trim) == Some(text)
                };
                // A diff belongs to a file that the call changed, not to its output.
                let contents = calls.iter().flat_map(|call| {
                    let content = call["content"].as_array().into_iter().flatten();
                    content.filter(|part| part["type"] != "diff")
                });
                let outputs = calls.iter().map(|call| &call["rawOutput"]);
                let mut results = contents.chain(outputs);
                results.find_map(|result| find(result, "", &is_it))
            };
            let reported = found.and_then(Value::as_str).map(str::trim);
            return match (printed(wanted), reported.and_then(printed)) {
                (Some(_), Some(_)) => Cause::Agent
                    .because("it prints the result twice; the one that the model gets is reported"),
                (Some(path), None) => Cause::Teamster.because(format!("it is printed in `{path}`")),
                (None, _) => Cause::Agent.because("it prints the result with more, or less"),
            };
        }
        // The expected part of a call is its last word: a command, a path or a text.
        let wanted = expected.and_then(Value::as_str).unwrap_or_default();
        let wanted = wanted.split_once(' ').map_or(wanted, |(_, rest)| rest);
        let is_printed = !wanted.is_empty() && calls.iter().any(|call| holds(call, wanted));
        if is_printed && found.is_none_or(|found| !found.to_string().contains(wanted)) {
            return Cause::Teamster
                .because(format!("{wanted:?} is in what it printed of the call"));
        }
        if is_printed {
            return Cause::Agent
                .because("it prints that with more around it, or as another kind of tool");
        }
        Cause::Agent.because(format!(
            "not in what it printed of its calls, such as {}",
            excerpt(&first.to_string())
        ))
    }
}

/// Returns whether an error contains an HTTP status that classifies it.
fn names_a_status(error: &str) -> bool {
    let numbers = error.split(|c: char| !c.is_ascii_digit());
    let mut statuses = numbers.filter_map(|number| number.parse::<u16>().ok());
    statuses.any(|status| (400..600).contains(&status))
}
