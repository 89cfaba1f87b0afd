//! Checker of the grammar of a stream.

use std::collections::HashSet;
use std::error::Error;
use std::fmt;

use crate::{AgentEvent, Id};

/// A violation of the grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// An event came after `done`.
    AfterDone(&'static str),
    /// The stream ended without `done`.
    NoDone,
    /// A tool id was used twice.
    ToolUseTwice(Id),
    /// A tool result came without its call, or came twice.
    ResultWithoutUse(Id),
    /// The open tool calls of the result are not those of the stream.
    OpenTools {
        /// Ids in the result.
        listed: Vec<Id>,
        /// Ids in the stream.
        open: Vec<Id>,
    },
    /// The text of the result is not that of the stream.
    Text {
        /// Length in the result, in bytes.
        result: usize,
        /// Length in the stream, in bytes.
        stream: usize,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AfterDone(event) => write!(f, "`{event}` came after `done`"),
            Self::NoDone => f.write_str("the stream ended without `done`"),
            Self::ToolUseTwice(id) => write!(f, "tool id {id:?} was used twice"),
            Self::ResultWithoutUse(id) => write!(f, "the tool result {id:?} has no open call"),
            Self::OpenTools { listed, open } => write!(
                f,
                "the result lists {listed:?} as open tool calls, the stream has {open:?}"
            ),
            Self::Text { result, stream } => write!(
                f,
                "the text of the result ({result} bytes) is not that of the stream ({stream} bytes)"
            ),
        }
    }
}

impl Error for Violation {}

/// Checks one stream, event by event, independently of the assembler.
#[derive(Debug, Default)]
pub struct Checker {
    done: bool,
    text: Vec<(Option<Id>, String)>,
    used: HashSet<Id>,
    open: Vec<Id>,
}

impl Checker {
    /// Creates a checker for one stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks the next event.
    ///
    /// # Errors
    ///
    /// Fails if the event violates the grammar.
    pub fn event(&mut self, event: &AgentEvent) -> Result<(), Violation> {
        if self.done {
            return Err(Violation::AfterDone(event.type_name()));
        }
        match event {
            AgentEvent::Text(e) if e.parent_tool_id.is_none() => {
                self.text.push((e.message_id.clone(), e.text.clone()));
            }
            AgentEvent::Retract(e) => {
                self.text
                    .retain(|(id, _)| id.as_ref() != Some(&e.message_id));
            }
            AgentEvent::ToolUse(e) => {
                if !self.used.insert(e.tool_id.clone()) {
                    return Err(Violation::ToolUseTwice(e.tool_id.clone()));
                }
                self.open.push(e.tool_id.clone());
            }
            AgentEvent::ToolResult(e) => {
                let Some(index) = self.open.iter().position(|id| *id == e.tool_id) else {
                    return Err(Violation::ResultWithoutUse(e.tool_id.clone()));
                };
                self.open.remove(index);
            }
            AgentEvent::Done(e) => {
                self.done = true;
                if e.result.open_tool_ids != self.open {
                    return Err(Violation::OpenTools {
                        listed: e.result.open_tool_ids.clone(),
                        open: self.open.clone(),
                    });
                }
                let text: String = self.text.iter().map(|(_, text)| text.as_str()).collect();
                if text != e.result.text {
                    return Err(Violation::Text {
                        result: e.result.text.len(),
                        stream: text.len(),
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks the end of the stream.
    ///
    /// # Errors
    ///
    /// Fails if there was no `done`.
    pub fn finish(self) -> Result<(), Violation> {
        if self.done {
            Ok(())
        } else {
            Err(Violation::NoDone)
        }
    }
}

/// Checks a whole stream.
///
/// # Errors
///
/// Fails with the first violation of the grammar.
pub fn check<'a>(events: impl IntoIterator<Item = &'a AgentEvent>) -> Result<(), Violation> {
    let mut checker = Checker::new();
    for event in events {
        checker.event(event)?;
    }
    checker.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Done, Retract, RunResult, Text, ToolKind, ToolResult, ToolUse};

    fn text(text: &str) -> AgentEvent {
        AgentEvent::Text(Text::new(text))
    }

    fn done(text: &str) -> AgentEvent {
        AgentEvent::Done(Done {
            result: Box::new(RunResult {
                text: text.into(),
                ..RunResult::default()
            }),
        })
    }

    #[test]
    fn finds_each_violation() {
        assert_eq!(check(&[text("a"), done("a")]), Ok(()));
        assert_eq!(check(&[text("a")]), Err(Violation::NoDone));
        assert_eq!(
            check(&[done(""), done("")]),
            Err(Violation::AfterDone("done"))
        );
        assert_eq!(
            check(&[text("a"), text("a"), done("a")]),
            Err(Violation::Text {
                result: 1,
                stream: 2
            })
        );
        let begins = || {
            let call = ToolUse::new("Read", "t", ToolKind::Read, serde_json::json!({}));
            AgentEvent::ToolUse(Box::new(call))
        };
        let ends = || AgentEvent::ToolResult(Box::new(ToolResult::new("t", "")));
        let t = || Id::from("t");
        assert_eq!(check(&[begins(), ends(), done("")]), Ok(()));
        assert_eq!(
            check(&[begins(), ends(), begins()]),
            Err(Violation::ToolUseTwice(t()))
        );
        let twice = [begins(), ends(), ends()];
        assert_eq!(check(&twice), Err(Violation::ResultWithoutUse(t())));
        assert_eq!(
            check(&[begins(), done("")]),
            Err(Violation::OpenTools {
                listed: Vec::new(),
                open: vec![t()]
            })
        );
    }

    #[test]
    fn text_of_sub_agents_and_retracted_text_is_not_in_the_result() {
        let of_tool = Text::new("a").parent_tool_id("t");
        let retracted = Text::new("b").message_id("m");
        let events = [
            AgentEvent::Text(of_tool),
            AgentEvent::Text(retracted),
            text("c"),
            AgentEvent::Retract(Retract::new("m")),
            done("c"),
        ];
        assert_eq!(check(&events), Ok(()));
    }
}
