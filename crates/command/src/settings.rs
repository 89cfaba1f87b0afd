//! What is known of a program beside its command.

use std::fmt;

use regex::Regex;
use serde::{Deserialize, Deserializer};
use teamster_core::ErrorKind;

/// A program that prints text, as an entry of a configuration file.
///
/// ```
/// use teamster_command::CommandSettings;
///
/// let settings: CommandSettings = toml::from_str(
///     r#"
///     command = "my-agent --file {prompt_file}"
///     tokens = 'used (?<input>\d+) in, (?<output>\d+) out'
///     errors = [{ pattern = '^ERROR: .*key', kind = "auth" }, { pattern = '^ERROR: ' }]
///     "#,
/// )
/// # .unwrap();
/// # assert_eq!(settings.errors.len(), 2);
/// ```
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CommandSettings {
    /// The command, with placeholders.
    pub command: String,
    /// The model where the caller names none, for `{model}`.
    #[serde(default)]
    pub model: Option<String>,
    /// Lines with tokens. The groups `input`, `output`, `cache_read` and `cache_write` are figures such as
    /// `1200` or `1.2k`. Several lines add up.
    #[serde(default)]
    pub tokens: Option<Pattern>,
    /// Lines with a cost in US dollars: the group `cost`. Several lines add up.
    #[serde(default)]
    pub cost: Option<Pattern>,
    /// Lines that say that the run failed, whatever the exit code is. The first that matches counts.
    #[serde(default)]
    pub errors: Vec<ErrorPattern>,
    /// Lines that are no part of the answer, such as a banner: they become notices.
    #[serde(default)]
    pub notices: Vec<Pattern>,
}

/// A line that says that the run failed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ErrorPattern {
    /// What the line is like.
    pub pattern: Pattern,
    /// What the failure means, such as `auth` or `rate_limit`. Without it the line's words decide.
    #[serde(default)]
    pub kind: Option<ErrorKind>,
}

/// A regular expression that was understood.
#[derive(Clone)]
pub struct Pattern(pub(crate) Regex);

impl Pattern {
    pub(crate) fn is_match(&self, line: &str) -> bool {
        self.0.is_match(line)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.0.as_str()).finish()
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Regex::new(&text)
            .map(Self)
            .map_err(serde::de::Error::custom)
    }
}
