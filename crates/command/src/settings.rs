//! Settings of a text program.

use std::fmt;

use regex::Regex;
use serde::{Deserialize, Deserializer};
use teamster_core::{AgentError, ErrorKind};

/// A text program, as an entry of a configuration file.
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
///
/// The same settings in code:
///
/// ```
/// use teamster_command::{CommandSettings, ErrorPattern, Pattern};
/// use teamster_core::ErrorKind;
///
/// let settings = CommandSettings::new("my-agent --file {prompt_file}")
///     .tokens(Pattern::new(r"used (?<input>\d+) in, (?<output>\d+) out")?)
///     .error(ErrorPattern::new(Pattern::new("^ERROR: .*key")?).kind(ErrorKind::Auth))
///     .error(ErrorPattern::new(Pattern::new("^ERROR: ")?));
/// assert_eq!(settings.errors.len(), 2);
/// # Ok::<(), teamster_core::AgentError>(())
/// ```
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CommandSettings {
    /// The command, with placeholders.
    pub command: String,
    /// Default model, for `{model}`.
    #[serde(default)]
    pub model: Option<String>,
    /// Pattern of lines with token counts. The groups `input`, `output`, `cache_read` and `cache_write` are numbers
    /// such as `1200` or `1.2k`. Several lines add up.
    #[serde(default)]
    pub tokens: Option<Pattern>,
    /// Pattern of lines with a cost in USD, in the group `cost`. Several lines add up.
    #[serde(default)]
    pub cost: Option<Pattern>,
    /// Patterns of lines that report a failure, even if the exit code is 0. The first match counts.
    #[serde(default)]
    pub errors: Vec<ErrorPattern>,
    /// Patterns of lines that are not part of the answer, such as a banner. They become notices.
    #[serde(default)]
    pub notices: Vec<Pattern>,
}

teamster_core::setters! {
    CommandSettings {
        into command: String,
        some_into model: String,
        some tokens: Pattern,
        some cost: Pattern,
    }
}

impl CommandSettings {
    /// Creates the settings of a program with this command and no patterns.
    pub fn new(command: impl Into<String>) -> Self {
        Self::default().command(command)
    }

    /// Adds a pattern of lines that report a failure.
    #[must_use]
    pub fn error(mut self, error: ErrorPattern) -> Self {
        self.errors.push(error);
        self
    }

    /// Adds a pattern of lines that are not part of the answer.
    #[must_use]
    pub fn notice(mut self, notice: Pattern) -> Self {
        self.notices.push(notice);
        self
    }
}

/// Pattern of a line that reports a failure.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ErrorPattern {
    /// Pattern of the line.
    pub pattern: Pattern,
    /// Kind of the failure, such as `auth` or `rate_limit`. By default, the line's text decides.
    #[serde(default)]
    pub kind: Option<ErrorKind>,
}

teamster_core::setters! {
    ErrorPattern {
        set pattern: Pattern,
        some kind: ErrorKind,
    }
}

impl ErrorPattern {
    /// Creates a pattern whose failures are classified by the line's text.
    pub fn new(pattern: Pattern) -> Self {
        Self {
            pattern,
            kind: None,
        }
    }
}

/// A valid regular expression.
#[derive(Clone)]
pub struct Pattern(pub(crate) Regex);

impl Pattern {
    /// Parses a regular expression.
    ///
    /// # Errors
    ///
    /// Returns an [`InvalidParams`](teamster_core::ErrorCode::InvalidParams) error with the reason if it is invalid.
    pub fn new(text: &str) -> Result<Self, AgentError> {
        let wrong = |error: regex::Error| AgentError::refused("pattern", error.to_string());
        Regex::new(text).map(Self).map_err(wrong)
    }

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
