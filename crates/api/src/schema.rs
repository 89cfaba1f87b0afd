//! Constraints of fields in the JSON Schema, which [`check`](crate::RunSpec::check) or the reader of the field enforces.

use serde_json::{Value, json};

/// The pattern of the key of a conversation: one to three parts, of which one has a name. `_` and nothing have none.
pub const SESSION_KEY_PATTERN: &str = concat!(
    r"^(([^:\x00]{2,}|[^:_\x00])(:[^:\x00]*){0,2}",
    r"|_?:([^:\x00]{2,}|[^:_\x00])(:[^:\x00]*)?",
    r"|_?:_?:([^:\x00]{2,}|[^:_\x00]))$"
);

/// Returns the schema of the objects that are no run, because of fields that exclude each other.
pub(crate) fn excluded_in_run() -> Value {
    excluded(&[("fork", "sessionId"), ("newSession", "sessionKey")])
}

/// Returns the schema of the objects that are no session, because of fields that exclude each other.
pub(crate) fn excluded_in_session() -> Value {
    excluded(&[("fork", "sessionId")])
}

fn excluded(switches: &[(&str, &str)]) -> Value {
    let mut excluded: Vec<_> = (switches.iter())
        .map(|(switch, field)| alone(switch, field))
        .collect();
    excluded.extend([
        both("worktree", "sessionId"),
        both("workspace", "workingDirectory"),
        both("workspace", "worktree"),
        made("sessionId"),
        both("sessionKey", "sessionId"),
        with_workspace("sessionKey", &json!({"enum": ["empty", "upload"]})),
        both("systemPrompt", "appendSystemPrompt"),
    ]);
    json!({ "anyOf": excluded })
}

/// Returns the schema of objects that have both fields.
fn both(one: &str, other: &str) -> Value {
    let given = json!({"not": {"enum": [null, false]}});
    json!({"type": "object", "required": [one, other], "properties": {one: given, other: given}})
}

/// Returns the schema of objects that have the field beside a workspace that is made for it.
fn made(field: &str) -> Value {
    with_workspace(field, &json!({"not": {"const": "directory"}}))
}

/// Returns the schema of objects that have the field beside a workspace of such a kind.
fn with_workspace(field: &str, kind: &Value) -> Value {
    let given = json!({"not": {"enum": [null, false]}});
    let workspace = json!({"type": "object", "required": ["kind"], "properties": {"kind": kind}});
    json!({
        "type": "object",
        "required": ["workspace", field],
        "properties": {"workspace": workspace, field: given},
    })
}

/// Returns the schema of objects that have the switch without the field that it belongs to.
fn alone(switch: &str, field: &str) -> Value {
    json!({
        "type": "object",
        "required": [switch],
        "properties": {switch: {"const": true}, field: {"type": "null"}},
    })
}
