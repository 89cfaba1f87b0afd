//! Fields with more than one possible type.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::Value;
use serde_json::value::RawValue;
use teamster_core::provider::json_line::{parse, part, repaired, value};
use teamster_core::provider::mcp_content;

use super::wire::{ToolError, ToolResult};

/// A text, borrowed if possible. Other types count as missing.
#[derive(Debug, Default, Clone)]
pub(crate) struct Str<'a>(Option<Cow<'a, str>>);

impl Str<'_> {
    pub(crate) fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Returns the text, or an empty one.
    pub(crate) fn text(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StrVisitor;

        impl<'de> Visitor<'de> for StrVisitor {
            type Value = Str<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Str<'de>, E> {
                Ok(Str(Some(Cow::Borrowed(text))))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Str<'de>, E> {
                Ok(Str(Some(Cow::Owned(text.to_owned()))))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Str<'de>, E> {
                Ok(Str(None))
            }

            fn visit_bool<E: de::Error>(self, _: bool) -> Result<Str<'de>, E> {
                Ok(Str(None))
            }

            fn visit_i64<E: de::Error>(self, _: i64) -> Result<Str<'de>, E> {
                Ok(Str(None))
            }

            fn visit_u64<E: de::Error>(self, _: u64) -> Result<Str<'de>, E> {
                Ok(Str(None))
            }

            fn visit_f64<E: de::Error>(self, _: f64) -> Result<Str<'de>, E> {
                Ok(Str(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Str<'de>, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Str(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Str<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Str(None))
            }
        }

        deserializer.deserialize_any(StrVisitor)
    }
}

impl<'a> Str<'a> {
    fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self(Some(text.into()))
    }
}

/// Content of a message: a text, or blocks of text. Anything else is kept as its JSON.
#[derive(Debug, Default)]
pub(crate) struct Content<'a> {
    text: Str<'a>,
    /// True if the content is JSON of another shape.
    pub(crate) is_odd: bool,
}

impl<'a> Content<'a> {
    pub(crate) fn text(&self) -> &str {
        self.text.text()
    }

    fn of(raw: &'a RawValue) -> Self {
        let plain = |text| Self {
            text,
            is_odd: false,
        };
        match raw.get().as_bytes().first() {
            Some(b'"') => plain(parse(raw.get()).unwrap_or_else(|| {
                let text: String = parse(repaired(raw).get()).unwrap_or_default();
                Str::new(text)
            })),
            Some(b'n') => Self::default(),
            Some(b'[') => match text_of_blocks(repaired(raw).get()) {
                Some(text) => plain(Str::new(text)),
                None => Self::odd(raw),
            },
            _ => Self::odd(raw),
        }
    }

    fn odd(raw: &'a RawValue) -> Self {
        Self {
            text: Str::new(raw.get()),
            is_odd: true,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of(<&RawValue>::deserialize(deserializer)?))
    }
}

/// Returns the text of blocks; `None` if one of them is not a text block.
fn text_of_blocks(raw: &str) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Block {
        Plain(String),
        Text { text: String },
    }
    let blocks: Vec<Block> = serde_json::from_str(raw).ok()?;
    let texts = blocks.into_iter().map(|block| match block {
        Block::Plain(text) | Block::Text { text } => text,
    });
    Some(texts.collect())
}

/// Deserializes any value. A value nested too deeply is kept as its text.
pub(crate) fn value_or_text<'de, D>(deserializer: D) -> Result<Option<Value>, D::Error>
where
    D: Deserializer<'de>,
{
    let value = value(<&RawValue>::deserialize(deserializer)?);
    Ok(Some(value).filter(|value| !value.is_null()))
}

/// Deserializes a number, or a text that contains one.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    Ok(raw.trim_matches('"').parse().ok())
}

/// Deserializes the result of a tool: usually an object, else a text or MCP content blocks.
pub(crate) fn tool_result<'de: 'a, 'a, D>(deserializer: D) -> Result<ToolResult<'a>, D::Error>
where
    D: Deserializer<'de>,
{
    let raw = <&'de RawValue>::deserialize(deserializer)?;
    let text = raw.get();
    let mut result = ToolResult::default();
    match text.as_bytes().first() {
        Some(b'{') => result = part::<_, D::Error>(raw)?,
        Some(b'[') => result.contents = part::<_, D::Error>(raw)?,
        _ => result.content = Content::of(raw),
    }
    if result.content.is_odd
        && let Ok(blocks) = serde_json::from_str::<Vec<Value>>(result.content.text())
    {
        result.content.text = Str::new(mcp_content(&blocks));
    } else if result.is_empty() && !matches!(text, "null" | "\"\"" | "{}" | "[]") && !is_known(text)
    {
        result.content = Content::odd(raw);
    }
    Ok(result)
}

/// Returns whether it is an object with a field of results, which may be empty.
fn is_known(raw: &str) -> bool {
    #[derive(Deserialize)]
    struct Known {
        content: Option<IgnoredAny>,
    }
    serde_json::from_str::<Known>(raw).is_ok_and(|known| known.content.is_some())
}

/// Deserializes the reason of a tool's or server's failure: usually an object, else a text.
pub(crate) fn tool_error<'de: 'a, 'a, D>(deserializer: D) -> Result<Option<ToolError<'a>>, D::Error>
where
    D: Deserializer<'de>,
{
    let raw = <&'de RawValue>::deserialize(deserializer)?;
    let message = match raw.get() {
        "null" | "false" | "\"\"" => return Ok(None),
        text if text.starts_with('{') => {
            return Ok(Some(part::<_, D::Error>(raw)?));
        }
        _ => Content::of(raw).text,
    };
    Ok(Some(ToolError {
        message,
        ..ToolError::default()
    }))
}
