//! Keys of sessions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use teamster_api::session_key_parts;

use crate::StoreError;
use crate::column::{check_given, check_id, printable};

/// Key of a program's sessions: channel, user and thread. Every part is optional, and an empty part counts as absent.
///
/// The text form is `channel:user:thread` with `_` for an absent part. `:` and `%` in a part are encoded as `%3A` and
/// `%25`. Trailing parts may be omitted.
///
/// ```
/// use teamster_store::Conversation;
///
/// let conversation: Conversation = "slack:U42".parse()?;
/// assert_eq!(conversation, Conversation::new().channel("slack").user("U42"));
/// assert_eq!(conversation.to_string(), "slack:U42:_");
/// assert_eq!(conversation.thread("1:2").to_string(), "slack:U42:1%3A2");
/// # Ok::<(), teamster_store::StoreError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Conversation {
    /// The channel, such as `slack` or the name of a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The thread of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

impl Conversation {
    /// Creates a key without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the channel.
    #[must_use]
    pub fn channel(mut self, channel: impl Into<String>) -> Self {
        self.channel = part(channel.into());
        self
    }

    /// Sets the user.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = part(user.into());
        self
    }

    /// Sets the thread.
    #[must_use]
    pub fn thread(mut self, thread: impl Into<String>) -> Self {
        self.thread = part(thread.into());
        self
    }

    /// Returns the key of the conversation's session with a provider. Each provider has its own session.
    pub fn with(&self, provider: impl Into<String>) -> SessionKey {
        SessionKey {
            conversation: self.clone(),
            provider: provider.into(),
        }
    }

    /// Returns the parts as stored in columns.
    pub(crate) fn columns(&self) -> [&str; 3] {
        [&self.channel, &self.user, &self.thread].map(|part| part.as_deref().unwrap_or_default())
    }

    pub(crate) fn from_columns(channel: String, user: String, thread: String) -> Self {
        Self {
            channel: part(channel),
            user: part(user),
            thread: part(thread),
        }
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let names = ["channel", "user", "thread"];
        for (what, part) in names.into_iter().zip(self.columns()) {
            check_id(what, part)?;
        }
        Ok(())
    }
}

fn part(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

impl fmt::Display for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.columns().into_iter().enumerate() {
            if i > 0 {
                f.write_str(":")?;
            }
            match part {
                "" => f.write_str("_")?,
                "_" => f.write_str("%5F")?,
                _ => {
                    for c in part.chars() {
                        if matches!(c, ':' | '%') || c.is_ascii_control() {
                            write!(f, "%{:02X}", u32::from(c))?;
                        } else {
                            write!(f, "{c}")?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

impl FromStr for Conversation {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let wrong = |reason: &str| {
            let shown = printable(text);
            StoreError::invalid("session key", format!("`{shown}`: {reason}"))
        };
        let [channel, user, thread] = session_key_parts(text)
            .map_err(|reason| wrong(&reason))?
            .map(|it| it.and_then(part));
        Ok(Self {
            channel,
            user,
            thread,
        })
    }
}

/// Key of a session: a conversation and a provider, such as `claude`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionKey {
    /// The conversation.
    pub conversation: Conversation,
    /// The provider of the session.
    pub provider: String,
}

impl SessionKey {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        check_given("provider", &self.provider)?;
        self.conversation.check()
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {}", self.conversation, self.provider)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_conversation_is_read_back_as_it_was(
            channel in "[^\0]{0,20}", user in "[:%_a]{0,4}", thread in ".{0,8}"
        ) {
            prop_assume!(!thread.contains('\0'));
            let one = Conversation::new().channel(channel).user(user).thread(thread);
            prop_assume!(one != Conversation::new());
            prop_assert_eq!(one.to_string().parse::<Conversation>().unwrap(), one);
        }

        #[test]
        fn different_conversations_have_different_texts(
            a in prop::array::uniform3("[:%_a5F]{0,4}"), b in prop::array::uniform3("[:%_a5F]{0,4}")
        ) {
            let of = |[channel, user, thread]: [String; 3]| {
                Conversation::new().channel(channel).user(user).thread(thread)
            };
            let same = a == b;
            prop_assert_eq!(of(a).to_string() == of(b).to_string(), same);
        }
    }

    #[test]
    fn invalid_keys_are_refused_with_the_reason() {
        for (text, reason) in [
            ("", "names nothing"),
            ("_:_", "names nothing"),
            ("a:b:c:d", "%3A"),
            ("a%FF", "not UTF-8"),
            ("a%00", "NUL"),
        ] {
            let error = text.parse::<Conversation>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let long = "x".repeat(501).parse::<Conversation>().unwrap_err();
        assert!(long.to_string().contains("500"), "{long}");
    }
}
