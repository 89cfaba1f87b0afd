//! What the events of a run say, for assertions.

use teamster_core::{
    AgentEvent, ContextUse, ErrorEvent, FileChange, Notice, Offers, PermissionChange,
    PermissionEvent, Plan, RateLimit, Retract, Retry, SessionStarted, Text, Thinking, ToolOutput,
    ToolResult, ToolUse, TurnEnd, Usage, UsageReport,
};

/// The payload of one type of event.
pub trait Payload: 'static {
    /// Returns the payload of an event of this type.
    fn of(event: &AgentEvent) -> Option<&Self>;
}

macro_rules! payloads {
    ($($payload:ident = $variant:ident),+ $(,)?) => {
        $(impl Payload for $payload {
            fn of(event: &AgentEvent) -> Option<&Self> {
                match event {
                    AgentEvent::$variant(payload) => Some(payload),
                    _ => None,
                }
            }
        })+
    };
}

payloads! {
    ContextUse = Context, ErrorEvent = Error, FileChange = FileChange, Notice = Notice, Offers = Offers,
    PermissionChange = PermissionMode, PermissionEvent = Permission, Plan = Plan,
    RateLimit = RateLimit, Retract = Retract, Retry = Retry, SessionStarted = SessionStarted,
    Text = Text, Thinking = Thinking, ToolOutput = ToolOutput, ToolResult = ToolResult,
    ToolUse = ToolUse, TurnEnd = TurnEnd, UsageReport = Usage,
}

/// Returns the payloads of the events of one type, in order.
///
/// ```
/// use teamster_core::{AgentEvent, NoticeLevel, NoticeSource, Text};
/// use teamster_testkit::events::payloads;
///
/// let notice = AgentEvent::notice(NoticeLevel::Info, NoticeSource::Runtime, "ready");
/// let events = [notice, Text::new("Hi.").into()];
/// let texts: Vec<_> = payloads::<Text>(&events).map(|it| &*it.text).collect();
/// assert_eq!(texts, ["Hi."]);
/// ```
pub fn payloads<T: Payload>(events: &[AgentEvent]) -> impl DoubleEndedIterator<Item = &T> {
    events.iter().filter_map(T::of)
}

/// Returns the names of the events' types, in order.
pub fn names(events: &[AgentEvent]) -> Vec<&'static str> {
    events.iter().map(AgentEvent::type_name).collect()
}

/// Asserts that these are the types of the events, in order, separated by spaces.
///
/// # Panics
///
/// Panics with the events if they are others.
#[track_caller]
pub fn assert_types(events: &[AgentEvent], expected: &str) {
    assert_eq!(names(events).join(" "), expected, "{events:#?}");
}

/// Returns the input and output tokens, if both are known.
pub fn tokens(usage: Option<Usage>) -> Option<(u64, u64)> {
    let usage = usage?;
    usage.input_tokens.zip(usage.output_tokens)
}
