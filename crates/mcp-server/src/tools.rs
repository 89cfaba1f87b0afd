//! The tools and their arguments.

use std::path::PathBuf;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::schema::arguments;

/// The names of the tools.
pub(crate) const RUN: &str = "run";
pub(crate) const START: &str = "start";
pub(crate) const WAIT: &str = "wait";
pub(crate) const EVENTS: &str = "events";
pub(crate) const ANSWER: &str = "answer";
pub(crate) const CANCEL: &str = "cancel";
pub(crate) const LIST_AGENTS: &str = "list_agents";
pub(crate) const USAGE: &str = "usage";

/// The arguments of `run` and `start`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RunInput {
    /// The agent, such as `claude` or `codex`; `list_agents` lists the available ones.
    pub(crate) agent: String,
    /// The task. The agent does not see this conversation: include everything that it needs.
    pub(crate) prompt: String,
    /// The agent's working directory, an absolute path. Default: that of this server, or of the server that carries out its runs.
    pub(crate) working_directory: Option<PathBuf>,
    /// The model, by the agent's own name for it.
    pub(crate) model: Option<String>,
    /// Reasoning effort, such as `low` or `high`.
    pub(crate) effort: Option<String>,
    /// The permission mode: what the agent may do without approval. Default and maximum: that of this server.
    pub(crate) permission: Option<Permission>,
    /// The session of the agent to resume: `sessionId` of an earlier run.
    pub(crate) session_id: Option<String>,
    /// Text that is appended to the agent's system prompt.
    pub(crate) append_system_prompt: Option<String>,
    /// The JSON Schema of the answer, if the agent supports one.
    pub(crate) output_schema: Option<Value>,
    /// Stop the run when it has cost this much, in US dollars.
    pub(crate) max_budget_usd: Option<f64>,
    /// Stop the run when it has used this many tokens.
    pub(crate) max_tokens: Option<u64>,
    /// Stop the run after this many milliseconds.
    pub(crate) max_time_ms: Option<u64>,
}

/// A permission mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Permission {
    /// Change nothing.
    ReadOnly,
    /// Do what the settings of the agent's CLI allow, and request the rest.
    Default,
    /// Edit files, too.
    AcceptEdits,
    /// Do everything.
    Bypass,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WaitInput {
    /// The runs. Waiting ends when one of them ends or needs an answer.
    pub(crate) run_ids: Vec<String>,
    /// The maximum wait in milliseconds. Default: 45000.
    pub(crate) timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct EventsInput {
    /// The run.
    pub(crate) run_id: String,
    /// Only events after the one with this number. Default: 0.
    #[serde(default)]
    pub(crate) after: u64,
    /// The maximum number of events, up to 1000. Default: 100.
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AnswerInput {
    /// The request's id, as in the report of `wait`.
    pub(crate) request_id: String,
    /// Allow or deny the request.
    pub(crate) decision: Decision,
    /// The reason for a denial, for the agent.
    pub(crate) reason: Option<String>,
    /// The answer to a question, by its `schema`.
    pub(crate) input: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decision {
    Allow,
    Deny,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CancelInput {
    /// The run.
    pub(crate) run_id: String,
    /// Kill the run at once, without a cleanup by its CLI. Default: false.
    #[serde(default)]
    pub(crate) kill: bool,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoInput {}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageInput {
    /// The grouping: day, model, agent and others. Default: day.
    pub(crate) by: Option<String>,
    /// Start of the period: a date, or a duration such as 7d. Default: 1d.
    pub(crate) since: Option<String>,
}

/// All tools. With `is_read_only`, runs change nothing.
pub(crate) fn all(is_read_only: bool) -> Vec<Tool> {
    let reads = || ToolAnnotations::new().read_only(true).open_world(false);
    let runs = || {
        (ToolAnnotations::new())
            .read_only(is_read_only)
            .destructive(!is_read_only)
            .open_world(true)
    };
    let changes = || ToolAnnotations::new().read_only(false).destructive(false);
    let tool = |name: &'static str, about: &'static str, schema: Arc<JsonObject>, annotations| {
        Tool::new(name, about, schema)
            .with_raw_output_schema(output_schema(name))
            .with_annotations(annotations)
    };
    vec![
        tool(
            RUN,
            "Runs another coding agent on a prompt, waits for its end and returns its answer. For work of more than \
            a minute, use start and wait, to which time limits of tool calls do not apply.",
            arguments::<RunInput>(),
            runs(),
        ),
        tool(
            START,
            "Starts another coding agent on a prompt and returns the id of the run at once. Several agents can work \
            at the same time. wait returns their answers.",
            arguments::<RunInput>(),
            runs(),
        ),
        tool(
            WAIT,
            "Waits until one of these runs has ended or needs an answer, and reports all of them.",
            arguments::<WaitInput>(),
            reads(),
        ),
        tool(
            EVENTS,
            "Returns a page of a run's events so far: text, tools, changed files.",
            arguments::<EventsInput>(),
            reads(),
        ),
        tool(
            ANSWER,
            "Answers a request of a run: a permission or a question, as reported by wait.",
            arguments::<AnswerInput>(),
            changes(),
        ),
        tool(
            CANCEL,
            "Stops a run.",
            arguments::<CancelInput>(),
            changes(),
        ),
        tool(
            LIST_AGENTS,
            "Lists the available agents: whether they are installed and logged in, and what they support.",
            arguments::<NoInput>(),
            reads(),
        ),
        tool(
            USAGE,
            "Returns tokens and cost of the runs of this server, and of all agents on this machine.",
            arguments::<UsageInput>(),
            reads(),
        ),
    ]
}

/// The schema of an answer. Some clients show their model only answers that have one.
fn output_schema(tool: &str) -> Arc<JsonObject> {
    let run = json!({
        "runId": {"type": "string"},
        "agent": {"type": "string"},
        "state": {"type": "string", "enum": ["running", "waiting", "ended"]},
        "status": {"type": "string", "description": "the outcome: completed, failed, aborted, timed_out, incomplete"},
        "text": {"type": "string", "description": "the answer"},
    });
    let any = json!({"type": "object"});
    let properties = match tool {
        RUN | START => run,
        WAIT => json!({"runs": {"type": "array", "items": {"type": "object", "properties": run}}}),
        EVENTS => {
            json!({"events": {"type": "array", "items": any}, "next": {"type": "integer"}, "ended": {"type": "boolean"}})
        }
        LIST_AGENTS => json!({"agents": {"type": "array", "items": any}}),
        _ => json!({}),
    };
    let schema = json!({"type": "object", "properties": properties});
    match schema {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that a schema and all schemas in it have one type, and no keyword that a service refuses.
    fn is_plain(at: &str, schema: &Value) {
        const TAKEN: [&str; 6] = [
            "type",
            "description",
            "properties",
            "required",
            "items",
            "enum",
        ];
        let words = schema.as_object().unwrap();
        let refused = words.keys().find(|it| !TAKEN.contains(&it.as_str()));
        assert_eq!(refused, None, "{at}: {schema}");
        assert!(schema["type"].is_string(), "{at}: {schema}");
        assert!(
            schema["enum"].is_null() || schema["type"] == "string",
            "{at}"
        );
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            is_plain(&format!("{at}/{name}"), schema);
        }
        assert_eq!(
            schema["type"] == "array",
            schema["items"].is_object(),
            "{at}"
        );
        if let Some(items) = schema.get("items") {
            is_plain(&format!("{at}/items"), items);
        }
    }

    #[test]
    fn every_model_service_takes_the_schemas_of_all_tools() {
        for tool in all(true) {
            let schema = Value::Object((*tool.input_schema).clone());
            assert_eq!(schema["type"], "object", "{}", tool.name);
            assert!(schema["properties"].is_object(), "{}", tool.name);
            is_plain(&tool.name, &schema);
            for (name, argument) in schema["properties"].as_object().into_iter().flatten() {
                let is_described = argument["description"].is_string();
                assert!(is_described, "{}: {name} {argument}", tool.name);
            }
            let output = tool.output_schema.as_deref().cloned().unwrap();
            is_plain(&format!("{} output", tool.name), &Value::Object(output));
        }
    }

    #[test]
    fn an_optional_argument_is_one_that_is_not_required() {
        let tools = all(true);
        let run = tools.iter().find(|tool| tool.name == RUN).unwrap();
        let schema = &run.input_schema;
        assert_eq!(schema["required"], json!(["agent", "prompt"]));
        let permission = &schema["properties"]["permission"];
        let modes = json!(["read-only", "default", "accept-edits", "bypass"]);
        assert_eq!(permission["enum"], modes);
        assert_eq!(schema["properties"]["outputSchema"]["type"], "object");
        assert_eq!(schema["properties"]["maxTokens"]["type"], "integer");
    }

    #[test]
    fn an_unknown_argument_is_an_error() {
        let wrong = json!({"agent": "claude", "prompt": "x", "cwd": "/"});
        let error = serde_json::from_value::<RunInput>(wrong).unwrap_err();
        assert!(error.to_string().contains("unknown field `cwd`"), "{error}");
        assert!(Permission::ReadOnly < Permission::Default);
        assert!(Permission::AcceptEdits < Permission::Bypass);
    }
}
