//! Warnings as data.

/// Something that is less than what was requested, such as a run that is not in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// Description for people. Names of parameters in it are between backticks.
    pub text: String,
    /// True if also a user who wants no warnings should see it.
    pub important: bool,
}

impl Warning {
    /// Creates a warning that a quiet command leaves out.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            important: false,
        }
    }

    /// Creates a warning that is always shown.
    pub(crate) fn important(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            important: true,
        }
    }
}
