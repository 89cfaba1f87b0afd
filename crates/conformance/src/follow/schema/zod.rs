//! Claude Code's schema: the zod objects in its minified program.

use std::collections::BTreeSet;

use super::{LONGEST, matches, name};

/// Maximum length of an object, in bytes of the minified program. The longest has 5 KB.
const LONGEST_OBJECT: usize = 20_000;

/// Returns the lines in the zod schemas of a minified program: `type:E("system"),subtype:E("init")`, or with
/// `E.literal(`.
///
/// A type without a subtype is also that of many other objects: parts of lines, messages to the CLI, messages of its
/// service. What it prints is known by its shape: the same object has `uuid` and `session_id`, and both always.
pub(super) fn lines(bytes: &[u8]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for at in matches(bytes, b"type:") {
        // `subtype:` and `event_type:` have the same ending.
        if bytes[..at].last().copied().is_some_and(is_word) {
            continue;
        }
        let after = &bytes[at + b"type:".len()..];
        let Some((kind, length)) = literal(after) else {
            continue;
        };
        let rest = &after[length..];
        let subtype = rest.strip_prefix(b",subtype:").and_then(literal);
        if let Some((subtype, _)) = subtype {
            names.insert(format!("{kind}/{subtype}"));
        } else {
            let always = always_there(&rest[..rest.len().min(LONGEST_OBJECT)]);
            if [&b"uuid"[..], b"session_id"]
                .iter()
                .all(|field| always.contains(field))
            {
                names.insert(kind);
            }
        }
    }
    names
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_$".contains(&byte)
}

/// Returns the fields that follow in the same object and are not optional.
fn always_there(rest: &[u8]) -> BTreeSet<&[u8]> {
    let mut fields: Vec<(&[u8], usize)> = Vec::new();
    let mut depth = 0_usize;
    let mut quote = None;
    let mut begun: Option<(&[u8], usize)> = None;
    let is_optional = |start: usize, end: usize| {
        let value = rest.get(start..end).unwrap_or_default();
        !matches(value, b".optional()").is_empty()
    };
    let mut at = 0;
    while let Some(byte) = rest.get(at) {
        match (byte, quote) {
            (b'\\', Some(_)) => at += 1,
            (byte, Some(open)) if *byte == open => quote = None,
            (b'"' | b'\'' | b'`', None) => quote = Some(*byte),
            (b'(' | b'{' | b'[', None) => depth += 1,
            (b')' | b'}' | b']', None) => match depth.checked_sub(1) {
                Some(outer) => depth = outer,
                None => break,
            },
            (b',', None) if depth == 0 => {
                let before = begun.take();
                fields.extend(before.filter(|(_, start)| !is_optional(*start, at)));
                let field = &rest[at + 1..];
                let length = field.iter().take_while(|byte| is_word(**byte)).count();
                if field.get(length) == Some(&b':') {
                    begun = Some((&field[..length], at + 1 + length));
                }
            }
            _ => {}
        }
        at += 1;
    }
    fields.extend(begun.filter(|(_, start)| !is_optional(*start, at.min(rest.len()))));
    fields.into_iter().map(|(field, _)| field).collect()
}

/// Returns the name in `E("name")` or `E.literal("name")`, and the length of the expression.
fn literal(text: &[u8]) -> Option<(String, usize)> {
    let is_word = |byte: &u8| is_word(*byte) || *byte == b'.';
    let open = text.iter().take(LONGEST).position(|byte| !is_word(byte))?;
    let function = std::str::from_utf8(&text[..open]).ok()?;
    if function.is_empty() || function.contains('.') && !function.ends_with(".literal") {
        return None;
    }
    let rest = text[open..].strip_prefix(b"(\"")?;
    let (name, length) = name(rest)?;
    rest[length..].starts_with(b"\")").then_some(())?;
    Some((name, open + 2 + length + 2))
}

#[cfg(test)]
mod tests {
    //! Hand-made pieces of programs.

    use super::*;

    fn list(names: &BTreeSet<String>) -> Vec<&str> {
        names.iter().map(String::as_str).collect()
    }

    #[test]
    fn schemas_of_both_forms_give_types_and_subtypes() {
        let program = br#"x=c({type:E("system"),subtype:E("init"),agents:A()}),
            y=d.object({type:d.literal("system"),subtype:d.literal("task_started")}),
            z=c({type:E("tool_progress"),tool:n(),uuid:g(),session_id:n()}),part=c({type:E("image"),source:n()}),
            f({type:"system",subtype:"internal"}),g={mimetype:E("no"),uuid:1,session_id:1},
            h={event_type:E("abandoned"),uuid:1,session_id:1}"#;
        assert_eq!(
            list(&lines(program)),
            ["system/init", "system/task_started", "tool_progress"]
        );
    }

    /// The names are those of parts and messages of 2.1.332.
    #[test]
    fn a_message_that_is_not_printed_is_known_by_its_shape() {
        let program =
            br#"a=c({type:E("api_metrics"),event:d([u({type:E("thinking_signature"),chars:v()})]).describe("a ( and \" in it"),uuid:g(),session_id:r()}),
            b=c({type:E("bash_command"),command:r(),uuid:g().optional(),session_id:r().optional()}),
            e=c({type:E("session_notice"),uuid:r(),from_session_id:r(),content:r()}),
            f=c({type:E("queued_notification"),notification:u({uuid:g(),session_id:r()})})"#;
        assert_eq!(list(&lines(program)), ["api_metrics"]);
    }
}
