//! Answers that the service keeps from the user.
//!
//! In a session, a message has `moderation` where the CLI knows what its service decided about the answer. The CLI
//! itself shows its own text in place of such a message. The fields are those of the schemas of 0.169.0 and 0.171.0;
//! a run (`codex exec`) prints a message without them.

use crate::wire::Object;

/// Returns why a message must not be shown, or `None` if it may be.
pub(super) fn withheld(message: &Object<'_>) -> Option<String> {
    let moderation = message.object("moderation")?;
    let display = moderation.object("display")?;
    let reason = match display.text("mode") {
        Some(mode) => match &*mode {
            "hide" => display.object("replacement"),
            "block" => display.object("reason"),
            // An annotated answer, and a mode of a later version.
            _ => return None,
        },
        // Before 0.171.0; other actions are for the client that made them.
        None if display.text("block_type").is_some() => None,
        None => return None,
    };
    let words = |of: &Object<'_>| {
        let kind = of.text("kind")?;
        Some(match of.text("protection_type") {
            Some(kind_of) => format!("{kind}, {kind_of}"),
            None => kind.into_owned(),
        })
    };
    let why = reason.as_ref().and_then(words);
    let why = why.or_else(|| Some(display.text("block_type")?.into_owned()));
    Some(match why {
        Some(why) => format!("the service withheld an answer ({why})"),
        None => "the service withheld an answer".to_owned(),
    })
}
