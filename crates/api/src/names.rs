//! Names: of runs, of conversations, and of fields.

use percent_encoding::percent_decode_str;

/// The maximum length of a part of a conversation's key, in bytes.
const LONGEST_PART: usize = 500;

/// The maximum length of an owner, in bytes.
const LONGEST_OWNER: usize = 64;

/// Returns whether this text can be the id of a run: 1 to 100 ASCII letters, digits and `_`, `-`, `:`, `.`, `~`, of which
/// `.` and `~` are not first, after the [owner](is_owned_run_id) if it has one. It is the name of a folder.
pub fn is_run_id(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-~".contains(&byte);
    let is_id = |id: &str| {
        (1..=100).contains(&id.len()) && id.bytes().all(is_part) && !id.starts_with(['.', '~'])
    };
    let is_owner = |owner: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        (1..=LONGEST_OWNER).contains(&owner.len()) && owner.bytes().all(is_part)
    };
    match text.split_once('@') {
        Some((owner, id)) => is_owner(owner) && is_id(id),
        None => is_id(text),
    }
}

/// Returns whether this is the id of a run of another owner than the user of this machine, such as `ann@fix-1`. Only what
/// carries out runs for others gives such ids: [`is_new_run_id`] refuses them.
pub fn is_owned_run_id(text: &str) -> bool {
    text.contains('@') && is_run_id(text) && !is_turn_id(text)
}

/// Returns whether this id has the form of a turn's: a text, a dot and digits. No run can have one.
pub fn is_turn_id(id: &str) -> bool {
    split_turn_id(id).is_some()
}

/// Returns the session's id, which may be a prefix of it, and the number in the id of a turn. Turns are counted from 1, so
/// `0` and `03` are no numbers of turns.
pub fn session_of_turn(id: &str) -> Option<(&str, &str)> {
    split_turn_id(id).filter(|(_, number)| !number.starts_with('0'))
}

fn split_turn_id(id: &str) -> Option<(&str, &str)> {
    let is_number =
        |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    id.rsplit_once('.').filter(|(_, number)| is_number(number))
}

/// The rule for the ids of new runs, for errors.
pub const NEW_RUN_ID_RULE: &str = "use up to 100 letters, digits, `-`, `_`, `.` and `:`, with no dot at the beginning, \
    and no dot and number at the end: such ids are those of turns";

/// Returns whether a new run or session can have this id: one that [can be an id](is_run_id) and is none of a
/// [turn](is_turn_id), which the history has among its runs. Every service refuses others, and those with the `@` of an
/// [owner](is_owned_run_id) or the `~` of a run that was started over.
pub fn is_new_run_id(text: &str) -> bool {
    is_run_id(text) && !is_turn_id(text) && !text.contains(['@', '~'])
}

/// Returns a field's name in JSON, such as `sessionId` for `session_id`.
pub fn json_name(field: &str) -> String {
    let mut words = field.split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

/// Returns a text with the fields between backticks in it as they are named in JSON. [`with_field_names`] reverses it.
pub fn with_json_names(text: &str) -> String {
    with_names(text, |word| {
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
        word.chars().all(is_name).then(|| json_name(word))
    })
}

/// Returns a text with the fields between backticks in it as they are named in Rust, from their names in JSON.
pub fn with_field_names(text: &str) -> String {
    with_names(text, |word| {
        let is_name = word.chars().all(|c| c.is_ascii_alphabetic())
            && word.starts_with(|c: char| c.is_ascii_lowercase());
        is_name.then(|| {
            let mut name = String::new();
            for c in word.chars() {
                if c.is_ascii_uppercase() {
                    name.push('_');
                }
                name.push(c.to_ascii_lowercase());
            }
            name
        })
    })
}

fn with_names(text: &str, name_of: impl Fn(&str) -> Option<String>) -> String {
    let parts: Vec<_> = (text.split('`').enumerate())
        .map(|(index, part)| match index % 2 {
            1 => name_of(part).unwrap_or_else(|| part.to_owned()),
            _ => part.to_owned(),
        })
        .collect();
    parts.join("`")
}

/// Returns the parts of a conversation's key: the channel, the user and the thread, of which one has a name.
///
/// The text form is `channel:user:thread` with `_` or nothing for an absent part. `:` and `%` in a part are encoded as
/// `%3A` and `%25`. Trailing parts may be omitted.
///
/// # Errors
///
/// Fails with the reason if the text is no key.
pub fn session_key_parts(text: &str) -> Result<[Option<String>; 3], String> {
    let encoded: Vec<_> = text.split(':').collect();
    if encoded.len() > 3 {
        return Err("it is channel:user:thread; write `%3A` for a `:` within a part".to_owned());
    }
    let mut parts = [const { None }; 3];
    for (part, encoded) in parts.iter_mut().zip(encoded) {
        let decoded = percent_decode_str(encoded)
            .decode_utf8()
            .map_err(|_| "what is percent-encoded is not UTF-8")?;
        if decoded.contains('\0') {
            return Err("there is a NUL in it".to_owned());
        }
        if decoded.len() > LONGEST_PART {
            return Err(format!(
                "a part has {} bytes, and {LONGEST_PART} are the most",
                decoded.len()
            ));
        }
        *part = (!matches!(encoded, "" | "_")).then(|| decoded.into_owned());
    }
    if parts.iter().all(Option::is_none) {
        return Err("it names nothing".to_owned());
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_between_backticks_are_renamed_and_nothing_else_is() {
        let text = "`fallback` max_turns ignores `max_budget_usd`, see `git log` and `A_B`";
        let json = "`fallback` max_turns ignores `maxBudgetUsd`, see `git log` and `A_B`";
        assert_eq!(with_json_names(text), json);
        assert_eq!(with_field_names(json), text);
    }

    #[test]
    fn run_id_is_a_folder_name_and_turn_id_ends_with_a_number() {
        for (id, is_id, is_turn) in [
            ("nightly-1", true, false),
            ("a:b_c.d", true, false),
            ("a.2", true, true),
            ("a.1.x", true, false),
            ("a.", true, false),
            (".a", false, false),
            ("-", true, false),
            ("", false, false),
            ("..", false, false),
            ("../a", false, false),
            ("a/b", false, false),
            ("a b", false, false),
            ("a\0", false, false),
            ("ü", false, false),
            (&*"a".repeat(100), true, false),
            (&*"a".repeat(101), false, false),
        ] {
            assert_eq!((is_run_id(id), is_turn_id(id)), (is_id, is_turn), "{id:?}");
            assert_eq!(is_new_run_id(id), is_id && !is_turn, "{id:?}");
        }
        assert!(is_run_id(&"a".repeat(100)) && !is_run_id(&"a".repeat(101)));
    }

    #[test]
    fn an_id_with_an_owner_is_none_that_a_person_can_give() {
        for (id, is_id, is_owned) in [
            ("ann@fix-1", true, true),
            ("a_b-1@a:b.c~2", true, true),
            ("ann@fix-1.2", true, false),
            ("fix-1~2", true, false),
            ("@fix-1", false, false),
            ("ann@", false, false),
            ("ann@.x", false, false),
            ("ann@~2", false, false),
            ("a.b@x", false, false),
            ("ann@bob@x", false, false),
            ("~x", false, false),
            (&*format!("{}@x", "a".repeat(65)), false, false),
            (&*format!("ann@{}", "x".repeat(100)), true, true),
            (&*format!("ann@{}", "x".repeat(101)), false, false),
        ] {
            assert_eq!(
                (is_run_id(id), is_owned_run_id(id)),
                (is_id, is_owned),
                "{id}"
            );
            assert!(!is_new_run_id(id), "{id}");
        }
    }

    #[test]
    fn a_turn_has_one_id() {
        assert_eq!(session_of_turn("a.b.30"), Some(("a.b", "30")));
        for id in ["a.03", "a.0", "a.", "a", "a.+3"] {
            assert_eq!(session_of_turn(id), None, "{id}");
        }
        assert!(!is_new_run_id("a.03"));
    }

    #[test]
    fn a_field_has_its_name_in_json() {
        for (field, name) in [
            ("prompt", "prompt"),
            ("max_budget_usd", "maxBudgetUsd"),
            ("a__ü", "aü"),
        ] {
            assert_eq!(json_name(field), name);
        }
    }

    #[test]
    fn a_key_has_parts_and_is_refused_with_the_reason() {
        let parts = session_key_parts("slack:_:1%3A2").unwrap();
        assert_eq!(
            parts,
            [Some("slack".to_owned()), None, Some("1:2".to_owned())]
        );
        let long = "x".repeat(501);
        for (text, reason) in [
            ("", "names nothing"),
            ("_:_", "names nothing"),
            ("a:b:c:d", "%3A"),
            ("a%FF", "not UTF-8"),
            ("a%00", "NUL"),
            (&*long, "500"),
        ] {
            let error = session_key_parts(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
