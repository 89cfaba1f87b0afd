//! Names and values of attributes. Names with `gen_ai` are of the semantic conventions for generative AI, version 0.1.0;
//! what these have no name for begins with `teamster`.

use opentelemetry::{Array, KeyValue, StringValue, Value};
use teamster_core::text::excerpt;
use teamster_core::{CostSource, Usage};

pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const AGENT: &str = "gen_ai.agent.name";
pub(crate) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const RESPONSE_MODEL: &str = "gen_ai.response.model";
const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(crate) const TOOL: &str = "gen_ai.tool.name";
pub(crate) const CALL: &str = "gen_ai.tool.call.id";
pub(crate) const ERROR_TYPE: &str = "error.type";
pub(crate) const RUN: &str = "teamster.run.id";
pub(crate) const STATUS: &str = "teamster.run.status";
pub(crate) const ATTEMPTS: &str = "teamster.run.attempts";
pub(crate) const TURNS: &str = "teamster.run.turns";
pub(crate) const ATTEMPT: &str = "teamster.attempt.number";
pub(crate) const RESUMED: &str = "teamster.attempt.resumed";
pub(crate) const ACCOUNT: &str = "teamster.attempt.account";
pub(crate) const DECISION: &str = "teamster.request.decision";
pub(crate) const KIND: &str = "teamster.tool.kind";
pub(crate) const SERVER: &str = "teamster.tool.mcp_server";

// Content, which is sent on request only.
pub(crate) const INPUT: &str = "gen_ai.input.messages";
pub(crate) const OUTPUT: &str = "gen_ai.output.messages";
pub(crate) const ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const RESULT: &str = "gen_ai.tool.call.result";

/// Values of [`OPERATION`], with which names of spans begin.
pub(crate) const INVOKE_AGENT: &str = "invoke_agent";
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";
pub(crate) const CHAT: &str = "chat";
/// Beginning of the names of attempts, which are no operation of the conventions: their tokens are also those of the run.
pub(crate) const ATTEMPT_SPAN: &str = "attempt";
/// Beginning of the names of requests that wait for an answer.
pub(crate) const REQUEST_SPAN: &str = "request";

/// Maximum number of bytes of a name or id that an agent has reported: a queue has many of them.
const TEXT_BYTES: usize = 256;

/// Returns a name or id that an agent has reported, cut if it is too long for one.
pub(crate) fn short(text: &str) -> String {
    excerpt(text, TEXT_BYTES)
}

/// Returns the attribute of a name or id that an agent has reported.
pub(crate) fn of_text(name: &'static str, text: &str) -> KeyValue {
    KeyValue::new(name, short(text))
}

/// Returns the attributes of tokens and cost.
pub(crate) fn of_usage(
    usage: Option<&Usage>,
    cost_usd: Option<f64>,
    source: Option<CostSource>,
) -> Vec<KeyValue> {
    let usage = usage.copied().unwrap_or_default();
    // The conventions count cached tokens as input.
    let input = [
        usage.input_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
    ];
    let input = input.into_iter().flatten().reduce(u64::saturating_add);
    let tokens = [
        ("gen_ai.usage.input_tokens", input),
        ("gen_ai.usage.output_tokens", usage.output_tokens),
        (
            "gen_ai.usage.cache_read.input_tokens",
            usage.cache_read_tokens,
        ),
        (
            "gen_ai.usage.cache_creation.input_tokens",
            usage.cache_write_tokens,
        ),
        (
            "gen_ai.usage.reasoning.output_tokens",
            usage.reasoning_tokens,
        ),
    ];
    let tokens = tokens
        .into_iter()
        .filter_map(|(name, count)| Some(KeyValue::new(name, number(count?))));
    let cost = cost_usd.map(|usd| KeyValue::new("teamster.cost.usd", usd));
    let source = source
        .filter(|_| cost_usd.is_some())
        .map(|source| KeyValue::new("teamster.cost.source", name_of_source(source)));
    tokens.chain(cost).chain(source).collect()
}

fn name_of_source(source: CostSource) -> &'static str {
    match source {
        CostSource::Reported => "reported",
        _ => "estimated",
    }
}

/// Returns the attribute of the reason why the model stopped.
pub(crate) fn of_stop(reason: &str) -> KeyValue {
    let reasons = vec![StringValue::from(short(reason))];
    KeyValue::new(FINISH_REASONS, Value::Array(Array::String(reasons)))
}

/// Returns a count as the value of an attribute.
pub(crate) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns a message in the JSON form of the conventions.
pub(crate) fn message(role: &str, text: &str, finish_reason: Option<&str>) -> String {
    let mut message = serde_json::json!({
        "role": role,
        "parts": [{"type": "text", "content": text}],
    });
    if let Some(reason) = finish_reason {
        message["finish_reason"] = reason.into();
    }
    serde_json::Value::Array(vec![message]).to_string()
}
