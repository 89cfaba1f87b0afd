//! The events of a run.
//!
//! On the wire an event is a JSON object with a `type` in snake case and fields in camelCase. Absent optional
//! fields are omitted. The CLI's native line is not part of the event, but of the
//! [`LogEntry`](crate::LogEntry) around it.

mod new;
mod newer;
mod notice;
mod offers;
mod payload;
mod progress;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::AgentError;

pub use newer::NewerEvent;
pub use notice::{Notice, NoticeCode, NoticeLevel, NoticeSource};
pub use offers::{ModelChoice, Offers, SlashCommand};
pub use payload::{
    ChangeKind, Decision, Done, ErrorEvent, FileChange, Id, McpServerStatus, McpTool,
    PermissionEvent, Plan, PlanEntry, PlanStatus, RateLimit, Retract, Retry, SessionStarted, Text,
    Thinking, ToolKind, ToolResult, ToolUse, TurnEnd, Unknown, UsageReport,
};
pub use progress::{ContextUse, PermissionChange, ToolOutput};

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent {
    /// The session is known, for the first time or under a new id.
    #[serde(rename = "session")]
    SessionStarted(Box<SessionStarted>),
    /// The commands and models of the session.
    Offers(Box<Offers>),
    /// A piece of the agent's answer.
    Text(Text),
    /// An unfinished message is withdrawn.
    Retract(Retract),
    /// A piece of the model's reasoning.
    Thinking(Thinking),
    /// The agent calls a tool.
    ToolUse(Box<ToolUse>),
    /// A piece of the output of a tool call that has not ended.
    ToolOutput(Box<ToolOutput>),
    /// A tool call ended.
    ToolResult(Box<ToolResult>),
    /// A file was changed.
    FileChange(Box<FileChange>),
    /// The agent's complete to-do list.
    Plan(Plan),
    /// A permission was requested, granted or denied.
    Permission(Box<PermissionEvent>),
    /// The agent has changed the session's permission mode by itself.
    PermissionMode(PermissionChange),
    /// Usage of the run so far.
    Usage(Box<UsageReport>),
    /// How full the model's context is.
    Context(ContextUse),
    /// The CLI itself retries a request.
    Retry(Box<Retry>),
    /// The account's limits.
    RateLimit(Box<RateLimit>),
    /// A message for a person.
    Notice(Box<Notice>),
    /// A JSON line of a type that the decoder does not know.
    Unknown(Unknown),
    /// The CLI's own end of a turn.
    TurnEnd(Box<TurnEnd>),
    /// A final error.
    Error(Box<ErrorEvent>),
    /// The run is over. Always the last event, and the only one of its type.
    Done(Done),
    /// An event that only a newer version knows, in its wire format. It is never in a stream.
    #[serde(untagged)]
    #[cfg_attr(feature = "schema", schemars(skip, !untagged))]
    Newer(NewerEvent),
}

impl<'de> Deserialize<'de> for AgentEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        Self::from_fields(fields).map_err(D::Error::custom)
    }
}

impl AgentEvent {
    /// Creates a notice.
    pub fn notice(
        level: NoticeLevel,
        source: NoticeSource,
        message: impl Into<String>,
    ) -> AgentEvent {
        Self::Notice(Box::new(Notice {
            level,
            message: message.into(),
            source,
            code: None,
        }))
    }

    /// Creates an error event.
    pub fn error(error: AgentError) -> AgentEvent {
        Self::Error(Box::new(ErrorEvent { error }))
    }

    /// Returns the approximate size of the event in memory, in bytes. It bounds the queue between the engine and
    /// the consumer.
    #[inline]
    pub fn approximate_bytes(&self) -> usize {
        // Most events are text.
        let own = match self {
            Self::Text(e) => e.text.len(),
            _ => self.approximate_bytes_within(),
        };
        own + size_of::<Self>()
    }

    fn approximate_bytes_within(&self) -> usize {
        match self {
            Self::Thinking(e) => e.text.len(),
            Self::ToolUse(e) => e.tool_name.len() + approximate_value_bytes(&e.input),
            Self::ToolOutput(e) => e.text.len(),
            Self::ToolResult(e) => e.output.len(),
            Self::Notice(e) => e.message.len(),
            Self::Error(e) => e.error.message.len(),
            Self::SessionStarted(e) => e.tools.iter().flatten().map(|t| t.len() + 24).sum(),
            Self::Offers(e) => offers_bytes(e),
            Self::Plan(e) => e.entries.iter().map(|p| p.content.len() + 32).sum(),
            Self::Unknown(e) => e.native.get().len(),
            Self::Text(_) | Self::Done(_) => 0,
            _ => 64,
        }
    }
}

fn offers_bytes(offers: &Offers) -> usize {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let commands = offers.commands.iter().flatten();
    let models = offers.models.iter().flatten();
    commands
        .map(|it| it.name.len() + length(&it.description) + 96)
        .chain(models.map(|it| it.id.len() + length(&it.description) + 128))
        .sum()
}

fn approximate_value_bytes(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(s) => s.len(),
            Value::Array(items) => items.iter().map(approximate_value_bytes).sum(),
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| key.len() + 48 + approximate_value_bytes(value))
                .sum(),
            _ => 0,
        }
}

/// Defines what follows from the names and payloads of the types.
macro_rules! types {
    ($($name:literal => $variant:ident($payload:ident),)+) => {
        $(impl From<$payload> for AgentEvent {
            #[inline]
            fn from(payload: $payload) -> Self {
                // Some are boxed.
                Self::$variant(payload.into())
            }
        })+

        impl AgentEvent {
            /// Reads an event from the fields of its JSON object.
            ///
            /// Every reader ends here. The derived code would be compiled once more for each of them, and copy the
            /// fields first.
            pub(crate) fn from_fields(fields: Map<String, Value>) -> serde_json::Result<Self> {
                type Read = fn(Map<String, Value>) -> serde_json::Result<AgentEvent>;
                fn read<T: DeserializeOwned + Into<AgentEvent>>(
                    fields: Map<String, Value>,
                ) -> serde_json::Result<AgentEvent> {
                    T::deserialize(Value::Object(fields)).map(Into::into)
                }
                let Some(name) = fields.get("type").and_then(Value::as_str) else {
                    return Err(serde_json::Error::missing_field("type"));
                };
                let read: Read = match name {
                    $($name => read::<$payload>,)+
                    _ => |fields| Ok(NewerEvent::of(fields).into()),
                };
                read(fields)
            }

            /// Returns the `type` of the wire format, and `newer` for [`Newer`](Self::Newer), whose own type is in its
            /// fields.
            pub fn type_name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                    Self::Newer(_) => "newer",
                }
            }
        }
    };
}

types! {
    "session" => SessionStarted(SessionStarted),
    "offers" => Offers(Offers),
    "text" => Text(Text),
    "retract" => Retract(Retract),
    "thinking" => Thinking(Thinking),
    "tool_use" => ToolUse(ToolUse),
    "tool_output" => ToolOutput(ToolOutput),
    "tool_result" => ToolResult(ToolResult),
    "file_change" => FileChange(FileChange),
    "plan" => Plan(Plan),
    "permission" => Permission(PermissionEvent),
    "permission_mode" => PermissionMode(PermissionChange),
    "usage" => Usage(UsageReport),
    "context" => Context(ContextUse),
    "retry" => Retry(Retry),
    "rate_limit" => RateLimit(RateLimit),
    "notice" => Notice(Notice),
    "unknown" => Unknown(Unknown),
    "turn_end" => TurnEnd(TurnEnd),
    "error" => Error(ErrorEvent),
    "done" => Done(Done),
}

impl From<NewerEvent> for AgentEvent {
    fn from(event: NewerEvent) -> Self {
        Self::Newer(event)
    }
}

impl From<AgentError> for AgentEvent {
    fn from(error: AgentError) -> Self {
        Self::error(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunResult;
    use serde_json::json;

    #[test]
    fn a_payload_becomes_its_event() {
        let notice = Notice {
            level: NoticeLevel::Info,
            message: "m".into(),
            source: NoticeSource::Runtime,
            code: None,
        };
        let event = AgentEvent::notice(notice.level, notice.source, "m");
        assert_eq!(AgentEvent::from(notice), event);
        let text = Text::new("a");
        assert_eq!(AgentEvent::from(text.clone()), AgentEvent::Text(text));
    }

    #[test]
    fn wire_form() {
        let event = AgentEvent::ToolUse(Box::new(ToolUse {
            tool_name: "mcp__db__query".into(),
            tool_id: "t1".into(),
            input: json!({"z": 1, "a": [2]}),
            kind: ToolKind::Mcp,
            mcp: Some(McpTool {
                server: "db".into(),
                tool: "query".into(),
            }),
            parent_tool_id: None,
        }));
        let wire = serde_json::to_string(&event).unwrap();
        assert_eq!(
            wire,
            r#"{"type":"tool_use","toolName":"mcp__db__query","toolId":"t1","input":{"z":1,"a":[2]},"kind":"mcp","mcp":{"server":"db","tool":"query"}}"#
        );
        assert_eq!(serde_json::from_str::<AgentEvent>(&wire).unwrap(), event);
    }

    #[test]
    fn only_known_read_only_kinds_have_no_side_effects() {
        let harmless = ["read", "search", "think", "fetch"];
        let names = "read edit delete move search execute think fetch task mcp other a_kind_of_a_newer_version";
        for name in names.split_ascii_whitespace() {
            let kind: ToolKind = serde_json::from_value(json!(name)).unwrap();
            assert_eq!(kind.has_side_effects(), !harmless.contains(&name), "{name}");
        }
    }

    #[test]
    fn an_error_is_flat_and_comes_back() {
        let event = AgentEvent::error(AgentError::invalid_params("no such thing"));
        let wire = serde_json::to_value(&event).unwrap();
        assert_eq!(
            wire,
            json!({"type": "error", "message": "no such thing", "code": "INVALID_PARAMS",
                   "kind": "invalid", "retryable": false})
        );
        assert_eq!(serde_json::from_value::<AgentEvent>(wire).unwrap(), event);
    }

    #[test]
    fn values_of_newer_versions_are_read() {
        for (wire, read) in [
            (
                json!({"type": "notice", "level": "fatal", "source": "moon", "message": "x"}),
                AgentEvent::notice(NoticeLevel::Warning, NoticeSource::Runtime, "x"),
            ),
            (
                json!({"type": "error", "message": "x", "code": "NEW", "kind": "odd", "retryable": false,
                       "detail": {"type": "colour", "of": "sky"}}),
                AgentEvent::error(
                    AgentError::new(crate::ErrorCode::Unknown, crate::ErrorKind::Internal, "x")
                        .detail(crate::ErrorDetail::Other),
                ),
            ),
        ] {
            let event: AgentEvent = serde_json::from_value(wire.clone()).unwrap();
            assert_eq!(event, read, "{wire}");
        }
        let result: RunResult = serde_json::from_value(json!({
            "status": "paused", "text": "", "durationMs": 1, "aborted": false, "diagnostics":
            {"lines": 0, "malformed": 0, "oversize": 0, "unknown": 0},
        }))
        .unwrap();
        assert!(!result.is_success());
        let entry = json!({"seq": 1, "atMs": 2, "attempt": 1, "type": "hologram", "x": 1});
        let entry: crate::LogEntry = serde_json::from_value(entry).unwrap();
        assert_eq!(entry.seq, 1);
        assert!(matches!(&entry.event, AgentEvent::Newer(it) if it.fields()["x"] == 1));
    }

    #[test]
    fn an_event_of_a_newer_version_keeps_its_fields() {
        let wire = json!({"type": "hologram", "shape": {"of": ["many", 1]}});
        let event: AgentEvent = serde_json::from_value(wire.clone()).unwrap();
        let AgentEvent::Newer(newer) = &event else {
            panic!("{event:?}");
        };
        assert_eq!(newer.fields()["shape"]["of"][0], "many");
        assert_eq!(serde_json::to_value(&event).unwrap(), wire);
    }

    #[test]
    fn a_known_event_that_lacks_a_field_is_none_of_a_newer_version() {
        for (wire, problem) in [
            (json!({"type": "text"}), "missing field `text`"),
            (json!({"text": "x"}), "missing field `type`"),
            (json!({"type": 1}), "missing field `type`"),
            (json!([]), "invalid type: sequence, expected a map"),
        ] {
            let error = serde_json::from_value::<AgentEvent>(wire.clone()).unwrap_err();
            assert_eq!(error.to_string(), problem, "{wire}");
        }
    }

    #[cfg(feature = "schema")]
    #[test]
    fn every_type_of_the_schema_is_known() {
        let schema = schemars::schema_for!(AgentEvent).to_value();
        let variants = schema["oneOf"].as_array().unwrap().iter();
        let types: Vec<_> = variants
            .map(|variant| variant["properties"]["type"]["const"].as_str().unwrap())
            .collect();
        assert_eq!(types.len(), 21);
        for name in types {
            let read = serde_json::from_value::<AgentEvent>(json!({"type": name}));
            assert!(!matches!(read, Ok(AgentEvent::Newer(_))), "{name}");
        }
    }

    #[test]
    fn an_event_is_small() {
        assert!(size_of::<AgentEvent>() <= 64, "{}", size_of::<AgentEvent>());
    }

    #[test]
    fn the_size_of_an_event_grows_with_what_it_holds() {
        let x = "x".repeat(100);
        let native = crate::RawJson::new(format!("\"{x}\"")).unwrap();
        let input = |value: Value| ToolUse::new("Bash", "t", ToolKind::Execute, value);
        let value = size_of::<Value>();
        let plan = Plan::new([PlanEntry::new(&*x, PlanStatus::Pending)]);
        let session = SessionStarted::new("s").tools(vec![x.clone(), "y".to_owned()]);
        for (event, bytes) in [
            (AgentEvent::from(Text::new(&*x)), 100),
            (Thinking::new(&*x).into(), 100),
            (ToolOutput::new("t", &*x).into(), 100),
            (ToolResult::new("t", &*x).into(), 100),
            (
                Notice::new(NoticeLevel::Info, NoticeSource::Runtime, &*x).into(),
                100,
            ),
            (AgentError::invalid_params(&*x).into(), 100),
            (Unknown::new(native).into(), 102),
            (plan.into(), 132),
            (session.into(), 101 + 48),
            (input(json!(null)).into(), 4 + value),
            (input(json!(x)).into(), 104 + value),
            (input(json!([x, 1])).into(), 104 + 3 * value),
            (input(json!({"ab": x})).into(), 4 + 2 * value + 50 + 100),
            (Done::new(RunResult::default()).into(), 0),
            (TurnEnd::new(false).into(), 64),
        ] {
            let own = event.approximate_bytes() - size_of::<AgentEvent>();
            assert_eq!(own, bytes, "{}", event.type_name());
        }
    }
}
