//! Compaction of a conversation that no longer fits the model's context window.

use teamster_core::text::excerpt;
use teamster_core::{ErrorKind, Notice, NoticeCode, NoticeLevel, NoticeSource, Retract};

use super::Halt;
use crate::context::Context;
use crate::conversation::{CallResult, Input, Message};
use crate::emit::Emitter;
use crate::wire::{Completed, StopReason};

/// Number of messages at the end whose results stay longer.
const RECENT: usize = 2;
/// Maximum bytes that are kept of a result, in recent messages and in others.
const MOST_RECENT: usize = 8 << 10;
const MOST_OLD: usize = 500;
const LEFT_OUT: &str = "[… left out to fit the model's context window …]";

/// Makes room after an answer that the context window was too small for. Returns whether the request can be made
/// again. `has_half` is true if text of a failed answer was emitted.
pub(super) async fn make_room(
    context: &mut Context,
    emit: &mut Emitter,
    asked: &Result<Completed, Halt>,
    has_half: bool,
) -> bool {
    let is_full = match asked {
        Ok(completed) => completed.stop == StopReason::ContextWindow,
        Err(Halt::Failed(error)) => error.kind == ErrorKind::ContextWindow,
        Err(_) => false,
    };
    if !is_full {
        return false;
    }
    let Some(compacted) = compacted(&context.messages) else {
        return false;
    };
    let notice = format!(
        "the conversation does not fit the model's context window, so it was compacted from {} to {} KiB: long \
         results are shortened, and {} messages left out",
        compacted.before >> 10,
        compacted.after >> 10,
        compacted.dropped
    );
    context.messages = compacted.messages;
    let has_text = has_half || matches!(asked, Ok(it) if !it.answer.text().is_empty());
    if has_text {
        let message = emit.message();
        emit.event(Retract::new(message)).await;
    }
    let notice = Notice::new(NoticeLevel::Warning, NoticeSource::Runtime, notice);
    emit.event(notice.code(NoticeCode::Compacted)).await;
    true
}

/// A compacted conversation. Sizes are in bytes.
#[derive(Debug)]
struct Compacted {
    messages: Vec<Message>,
    before: usize,
    after: usize,
    dropped: usize,
}

/// Compacts a conversation to half of its size: shortens results, then leaves out messages after the first one.
/// `None` if there is too little to gain.
fn compacted(messages: &[Message]) -> Option<Compacted> {
    let before = size(messages);
    let mut messages = messages.to_vec();
    let recent = messages.len().saturating_sub(RECENT);
    for (number, message) in messages.iter_mut().enumerate() {
        if let Message::Tool { results } = message {
            let most = if number < recent {
                MOST_OLD
            } else {
                MOST_RECENT
            };
            for result in results {
                shorten(result, most);
            }
        }
    }
    let mut dropped = 0;
    // Size from each message to the end.
    let mut rest = vec![0; messages.len() + 1];
    for (at, message) in messages.iter().enumerate().rev() {
        rest[at] = rest[at + 1] + size_of(message);
    }
    if rest[0] > before / 2 && messages.len() > 2 {
        // Results stay with their calls.
        let starts =
            (1..messages.len()).filter(|at| !matches!(messages[*at], Message::Tool { .. }));
        let starts: Vec<_> = starts.collect();
        let first = rest[0] - rest[1];
        let fits = |at: &&usize| first + rest[**at] <= before / 2;
        let start = starts.iter().find(fits).or(starts.last()).copied()?;
        dropped = start - 1;
        if dropped > 0 {
            let note = format!(
                "[{dropped} messages after this one were left out, because the conversation did not fit the \
                 model's context window.]"
            );
            messages.splice(1..start, [Message::user(note)]);
        }
    }
    let after = size(&messages);
    (after < before / 10 * 9).then_some(Compacted {
        messages,
        before,
        after,
        dropped,
    })
}

fn shorten(result: &mut CallResult, most: usize) {
    for input in &mut result.content {
        match input {
            Input::Text { text } if text.len() > most => {
                *text = format!("{}\n{LEFT_OUT}", excerpt(text, most));
            }
            Input::Text { .. } => {}
            Input::Image { .. } => *input = Input::text(LEFT_OUT),
        }
    }
}

/// Returns the size of messages as they are stored.
fn size(messages: &[Message]) -> usize {
    messages.iter().map(size_of).sum()
}

fn size_of(message: &Message) -> usize {
    serde_json::to_string(message).map_or(0, |text| text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{Answer, Block, Call};
    use serde_json::json;

    fn call(id: &str) -> Message {
        let call = Call {
            id: id.into(),
            name: "bash".into(),
            input: json!({"command": "x".repeat(400)}),
            signature: None,
        };
        Message::Assistant(Answer::new(vec![Block::Call(call)]))
    }

    fn result(id: &str, length: usize) -> Message {
        let text = Input::text("y".repeat(length));
        Message::Tool {
            results: vec![CallResult {
                id: id.into(),
                name: "bash".into(),
                content: vec![text],
                is_error: false,
            }],
        }
    }

    #[test]
    fn long_results_are_shortened_and_the_last_ones_least() {
        let messages = [
            Message::user("Go."),
            call("a"),
            result("a", 40_000),
            call("b"),
            result("b", 40_000),
        ];
        let compacted = compacted(&messages).unwrap();
        assert_eq!((compacted.messages.len(), compacted.dropped), (5, 0));
        assert!(compacted.after < 12_000 && compacted.before > 80_000);
        let length = |at: usize| size(&compacted.messages[at..=at]);
        assert!(length(2) < 1000 && length(4) > MOST_RECENT);
    }

    #[test]
    fn oldest_messages_are_dropped_and_results_keep_their_calls() {
        let mut messages = vec![Message::user("Go.")];
        for number in 0..50 {
            let id = number.to_string();
            messages.extend([call(&id), result(&id, 300)]);
        }
        let compacted = compacted(&messages).unwrap();
        assert!(
            compacted.after <= compacted.before / 2 + 200,
            "{compacted:?}"
        );
        assert_eq!(compacted.messages[0], messages[0]);
        assert!(matches!(&compacted.messages[1], Message::User { .. }));
        assert!(matches!(&compacted.messages[2], Message::Assistant(_)));
        let kept = compacted.messages.len() - 2;
        assert_eq!(compacted.messages[2..], messages[messages.len() - kept..]);
        assert_eq!(compacted.dropped, 100 - kept);
    }

    #[test]
    fn small_gain_compacts_no_messages() {
        assert!(compacted(&[Message::user("x".repeat(90_000))]).is_none());
        assert!(compacted(&[Message::user("Go."), call("a"), result("a", 20)]).is_none());
    }
}
