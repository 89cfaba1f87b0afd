//! Fields of requests that have a constraint: each type checks it, and describes it in the `OpenAPI` document.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use teamster_api::history::RunCursor;
use teamster_api::{
    NEW_RUN_ID_RULE, ProblemCode, SESSION_KEY_PATTERN, is_new_run_id, session_key_parts,
};

use crate::ApiError;

/// A text that is not blank.
#[derive(Debug, Clone)]
pub(crate) struct Text(pub(crate) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.trim().is_empty() {
            return Err(de::Error::custom("expected a text that is not blank"));
        }
        Ok(Self(text))
    }
}

/// The key of a conversation, such as `slack:U42`.
#[derive(Debug, Clone)]
pub(crate) struct SessionKey(pub(crate) String);

impl<'de> Deserialize<'de> for SessionKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match session_key_parts(&text) {
            Ok(_) => Ok(Self(text)),
            Err(reason) => Err(de::Error::custom(format!(
                "expected channel:user:thread, of which one has a name: {reason}"
            ))),
        }
    }
}

/// The characters of an id that is the name of a run's folder.
const RUN_ID: &str = "[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,99}";

/// The id of a run, or a beginning that no other one has. What cannot be one is an unknown id.
pub(crate) struct RunId;

/// The id of a new run, which the client makes.
pub(crate) struct NewRunId;

impl NewRunId {
    /// Refuses a text that cannot be the id of a new run.
    pub(crate) fn check(text: &str) -> Result<(), ApiError> {
        if is_new_run_id(text) {
            return Ok(());
        }
        let detail = format!("id: {NEW_RUN_ID_RULE}");
        Err(ApiError::new(ProblemCode::InvalidParams, detail))
    }
}

/// The id of a request. What cannot be one is an unknown id.
pub(crate) struct RequestId;

/// The position in a list, newest first: the time and the id of the last run of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor(pub(crate) RunCursor);

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(de::Error::custom)
    }
}

/// Reads a number of at most 19 decimal digits, which fits 64 bits.
pub(crate) fn number(text: &str) -> Option<u64> {
    let is_number = text.len() <= 19 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// A time to wait, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seconds(f64);

impl Seconds {
    /// Returns the time, `longest` at most.
    pub(crate) fn at_most(self, longest: Duration) -> Duration {
        Duration::from_secs_f64(self.0.min(longest.as_secs_f64()))
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        if seconds.is_finite() && seconds >= 0.0 {
            return Ok(Self(seconds));
        }
        Err(de::Error::custom("expected a number of seconds"))
    }
}

/// Defines the schemas of fields, which stand in that of their object.
macro_rules! inline_schemas {
    ($($name:ident: $schema:expr;)*) => {$(
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    )*};
}

inline_schemas! {
    // `\s` has U+0085 in Rust only.
    Text: json_schema!({"type": "string", "minLength": 1, "pattern": r"[^\s\u0085]"});
    SessionKey: json_schema!({"type": "string", "maxLength": 500, "pattern": SESSION_KEY_PATTERN});
    RunId: json_schema!({
        "type": "string",
        "pattern": format!("^{RUN_ID}$"),
        "description": "The id, or a beginning that no other one has.",
    });
    NewRunId: json_schema!({
        "type": "string",
        "pattern": format!("^{RUN_ID}$"),
        "not": {"pattern": r"\.[0-9]+$"},
        "description": "The id of the client's choice, such as a UUID. A dot and a number at its end are those of a turn.",
    });
    RequestId: json_schema!({"type": "string", "pattern": format!("^{RUN_ID}/[1-9][0-9]{{0,18}}$")});
    Cursor: json_schema!({"type": "string", "pattern": r"^[0-9]{1,19}\."});
    Seconds: json_schema!({"type": "number", "minimum": 0});
}

/// Splits at a character outside of quoted strings.
pub(crate) fn split_unquoted(text: &str, at: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |c: char| {
        if is_escaped {
            is_escaped = false;
        } else if is_quoted && c == '\\' {
            is_escaped = true;
        } else if c == '"' {
            is_quoted = !is_quoted;
        }
        c == at && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    /// Returns whether the type takes the value, and its error if it does not.
    fn takes<T: DeserializeOwned>(value: Value) -> Result<(), String> {
        let read: Result<T, _> = serde_json::from_value(value);
        read.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn described_fields_are_the_accepted_fields() {
        for text in ["x", " x ", "\u{1c}"] {
            assert_eq!(takes::<Text>(text.into()), Ok(()), "{text:?}");
        }
        for text in ["", " ", "\u{85}\u{a0}\n"] {
            let error = takes::<Text>(text.into()).unwrap_err();
            assert_eq!(error, "expected a text that is not blank", "{text:?}");
        }
        for cursor in ["0.", "9999999999999999999.a.b"] {
            assert_eq!(takes::<Cursor>(cursor.into()), Ok(()), "{cursor:?}");
        }
        for cursor in ["", "1", ".x", "+1.x", "-1.x", "10000000000000000000.x"] {
            let error = takes::<Cursor>(cursor.into()).unwrap_err();
            assert_eq!(error, "expected the `next` of another page", "{cursor:?}");
        }
        for key in ["slack", "slack:U42:7", "_::7", ":_x", "__", "a%3Ab"] {
            assert_eq!(takes::<SessionKey>(key.into()), Ok(()), "{key:?}");
        }
        for key in ["", "_", ":_", "_:_:_", "a:b:c:d", "a\0", "a%FF", "a%00"] {
            assert!(takes::<SessionKey>(key.into()).is_err(), "{key:?}");
        }
        assert_eq!(takes::<Seconds>(json!(0)), Ok(()));
        assert_eq!(takes::<Seconds>(json!(1e300)), Ok(()));
        assert_eq!(Seconds(1e300).at_most(Duration::from_secs(5)).as_secs(), 5);
        let error = takes::<Seconds>(json!(-0.1)).unwrap_err();
        assert_eq!(error, "expected a number of seconds");
    }
}
