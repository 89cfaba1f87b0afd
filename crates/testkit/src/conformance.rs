//! The conformance suite that every provider must pass. Its checks are the same for all CLIs.
//!
//! A provider's test describes its CLI as data and gets one test per check:
//!
//! ```text
//! // crates/<cli>/tests/conformance.rs
//! #![cfg(test)]
//!
//! use teamster_testkit::conformance::{ArgvModel, Parser, Plain, Sent, Suite, Understood};
//!
//! fn suite() -> Suite {
//!     let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/claude");
//!     Suite::new(Claude, fixtures)
//!         // Recognizes the line with the end of the run.
//!         .run_is_over(|lines| lines.iter().any(|line| line["type"] == "result"))
//!         // How the CLI parses its command line.
//!         .command_line(ArgvModel::new(Parser::Commander).one("--model"), understand)
//!         // Values that the CLI takes.
//!         .plain(Plain { model: "sonnet", ..Plain::default() })
//!         // What the recorded runs are known to be.
//!         .text("text", "Hello, world!")
//!         .status("error_401", RunStatus::Failed, Some(ErrorKind::Auth))
//! }
//!
//! teamster_testkit::conformance_tests!(suite());
//! ```
//!
//! | check | requirement |
//! |---|---|
//! | [`Suite::grammar`] | every fixture decodes to a valid stream with one `done`, whose events are read back from JSON |
//! | [`Suite::chunks`] | the chunk boundaries of the output do not change the events |
//! | [`Suite::cut_short`] | truncated output decodes to a valid stream and is never `completed` |
//! | [`Suite::mixed`] | text of another program in a line loses no event of it |
//! | [`Suite::text_once`] | no text is emitted twice; the answer is part of the text |
//! | [`Suite::texts`] | the text of a run is that of the model |
//! | [`Suite::tools`] | calls and results have the known command and outcome |
//! | [`Suite::calls`] | tool calls are announced before their results, as declared by the capabilities |
//! | [`Suite::statuses`] | each run has the known status and kind of error |
//! | [`Suite::truths`] | invariants of the end of any run |
//! | [`Suite::reports`] | capabilities about output match the fixtures |
//! | [`Suite::garbled`] | no line makes the decoder panic, breaks the grammar or makes an event that is not read back |
//! | [`Suite::recorded`] | the model of the command line parses the recorded ones |
//! | [`Suite::parameters`] | a parameter is honoured or refused, as declared by the capabilities |
//! | [`Suite::delivery`] | the prompt is an argument or on stdin, never both; stdin is never left open |
//! | [`Suite::prompts`] | every prompt is accepted and reaches the CLI unchanged |
//! | [`Suite::arguments`] | no value becomes a flag, a sub-command or another value |
//! | [`Suite::mcp`] | MCP servers are accepted or refused as declared by the capabilities; their secrets stay secret |
//!
//! [`garbled`](Suite::garbled) and the last three are also property tests. `PROPTEST_CASES` sets the number
//! of their cases.

mod arbitrary;
mod argv;
mod calls;
mod garbled;
mod launch;
mod mcp;
mod mixed;
mod output;
mod parameters;
mod sent;
mod story;
mod verdict;

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use teamster_core::{
    CliProvider, ErrorKind, ExecuteParams, Image, ImageSource, RunStatus, ToolKind,
};

use crate::fixture::{Fixture, discover};

pub use argv::{ArgvModel, Parsed, Parser};
pub use calls::Announces;
pub use garbled::{Corpus, check_garbled};
pub use sent::{Sent, Understood, toml_value};
pub use verdict::{Failures, Verdict};

/// A provider, its fixtures and the known facts about both. See the [module](self) docs.
pub struct Suite {
    provider: Arc<dyn CliProvider>,
    fixtures: Vec<Fixture>,
    is_over: Option<fn(&[Value]) -> bool>,
    command_line: Option<CommandLine>,
    prompt_becomes: fn(&ExecuteParams) -> String,
    plain: Plain,
    texts: Vec<(&'static str, &'static str)>,
    statuses: Vec<(&'static str, RunStatus, Option<ErrorKind>)>,
    tools: Vec<(&'static str, Tool)>,
    announces: Announces,
    calls: Vec<(&'static str, ToolKind)>,
    cut_off: Vec<(&'static str, ToolKind)>,
    repeats: Vec<&'static str>,
    changed_prompts: Vec<&'static str>,
}

struct CommandLine {
    model: ArgvModel,
    understand: fn(&Sent<'_>) -> Understood,
}

/// Valid values for parameters that do not accept every text.
#[derive(Debug, Clone)]
pub struct Plain {
    /// A session to resume.
    pub session_id: &'static str,
    /// An id for a new session.
    pub new_session_id: &'static str,
    /// A model.
    pub model: &'static str,
    /// An effort.
    pub effort: &'static str,
    /// A tool, as in `allowed_tools`.
    pub tool: &'static str,
    /// An image.
    pub image: Image,
    /// Environment variables that the provider needs to accept plain parameters.
    pub env: &'static [(&'static str, &'static str)],
}

impl Default for Plain {
    fn default() -> Self {
        /// The 8 bytes of the PNG signature, which are enough to detect the type.
        const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
        Self {
            session_id: "0190b0b6-1f4e-7cc3-98c4-dc0c0c07398f",
            new_session_id: "11111111-2222-4333-8444-555555555555",
            model: "some-model",
            effort: "high",
            tool: "some_tool",
            image: Image {
                media_type: "image/png".into(),
                source: ImageSource::Bytes(PNG.to_vec()),
            },
            env: &[],
        }
    }
}

/// A known tool call of a recorded run.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Kind of the tool.
    pub kind: ToolKind,
    /// A part of its input, such as the command.
    pub input: &'static str,
    /// A part of its output.
    pub output: &'static str,
    /// True if its result is an error; `None` if the CLI does not report that.
    pub is_error: Option<bool>,
}

impl Tool {
    /// Returns a shell command that succeeded, with or without a report of its success.
    pub fn shell(command: &'static str, output: &'static str) -> Self {
        Self {
            kind: ToolKind::Execute,
            input: command,
            output,
            is_error: Some(false),
        }
    }

    /// Returns a shell command that ended with a non-zero exit code.
    pub fn failed_shell(command: &'static str, output: &'static str) -> Self {
        Self {
            is_error: Some(true),
            ..Self::shell(command, output)
        }
    }

    /// Expects no outcome, for a CLI that does not report it.
    #[must_use]
    pub fn without_outcome(self) -> Self {
        Self {
            is_error: None,
            ..self
        }
    }
}

teamster_core::setters! {
    Suite {
        /// Sets the function that recognizes the CLI's end of a run.
        ///
        /// The function gets all complete lines of JSON so far. It MUST return false while a further turn
        /// follows, such as one about work in the background. For a CLI without such a line, use the best
        /// approximation.
        some is_over as run_is_over: fn(&[Value]) -> bool,
        /// Sets the expected prompt, for a provider that changes it on purpose.
        set prompt_becomes: fn(&ExecuteParams) -> String,
        /// Sets the values that the CLI accepts.
        set plain: Plain,
        /// Sets the calls that the CLI announces before their results. Default: all.
        set announces: Announces,
    }
}

impl Suite {
    /// Creates a suite for a provider and all fixtures below a folder.
    ///
    /// # Panics
    ///
    /// If there is no fixture, or one of them cannot be read.
    pub fn new(provider: impl CliProvider, fixtures: impl AsRef<Path>) -> Self {
        let folder = fixtures.as_ref();
        let found = discover(folder);
        assert!(found.errors.is_empty(), "{:?}", found.errors);
        let load = |dir: &std::path::PathBuf| match Fixture::load(dir) {
            Ok(fixture) => fixture,
            Err(error) => panic!("{}: {error}", dir.display()),
        };
        let fixtures: Vec<_> = found.fixtures.iter().map(load).collect();
        assert!(!fixtures.is_empty(), "no fixtures in {}", folder.display());
        Self {
            provider: Arc::new(provider),
            fixtures,
            is_over: None,
            command_line: None,
            prompt_becomes: |params| params.prompt.clone(),
            plain: Plain::default(),
            texts: Vec::new(),
            statuses: Vec::new(),
            tools: Vec::new(),
            announces: Announces::Every,
            calls: Vec::new(),
            cut_off: Vec::new(),
            repeats: Vec::new(),
            changed_prompts: Vec::new(),
        }
    }

    /// Sets the parser model of the CLI's command line, and the CLI's interpretation of its command line,
    /// environment and stdin.
    ///
    /// `understand` MUST be derived from the CLI's measured behaviour, not from the provider's code.
    #[must_use]
    pub fn command_line(
        mut self,
        model: ArgvModel,
        understand: fn(&Sent<'_>) -> Understood,
    ) -> Self {
        self.command_line = Some(CommandLine { model, understand });
        self
    }

    /// Adds the expected text of the run in the fixtures of this name.
    #[must_use]
    pub fn text(mut self, scenario: &'static str, text: &'static str) -> Self {
        self.texts.push((scenario, text));
        self
    }

    /// Adds the expected status of the run in the fixtures of this name, and the kind of its last error
    /// (`None` for no error).
    #[must_use]
    pub fn status(
        mut self,
        scenario: &'static str,
        status: RunStatus,
        error: Option<ErrorKind>,
    ) -> Self {
        self.statuses.push((scenario, status, error));
        self
    }

    /// Adds an expected tool call in the fixtures of this name.
    #[must_use]
    pub fn tool(mut self, scenario: &'static str, tool: Tool) -> Self {
        self.tools.push((scenario, tool));
        self
    }

    /// Expects a completed call of this kind, which has side effects, in the fixtures of this name.
    #[must_use]
    pub fn call(mut self, scenario: &'static str, kind: ToolKind) -> Self {
        self.calls.push((scenario, kind));
        self
    }

    /// Expects that the only call in the fixtures of this name has this kind and was running when the run
    /// broke off.
    #[must_use]
    pub fn cut_off(mut self, scenario: &'static str, kind: ToolKind) -> Self {
        self.cut_off.push((scenario, kind));
        self
    }

    /// Allows repeated text in these fixtures: the model repeated it, or nothing in the output marks the
    /// first copy as stale.
    #[must_use]
    pub fn repeats(mut self, scenarios: &[&'static str]) -> Self {
        self.repeats.extend(scenarios);
        self
    }

    /// Marks fixtures in which the CLI itself changed the prompt of its arguments.
    #[must_use]
    pub fn changes_prompts(mut self, scenarios: &[&'static str]) -> Self {
        self.changed_prompts.extend(scenarios);
        self
    }

    fn named(&self, scenario: &str) -> Vec<&Fixture> {
        let fixtures = self.fixtures.iter();
        fixtures.filter(|f| f.meta.scenario == scenario).collect()
    }
}

/// Defines one `#[test]` for each check of the [suite](crate::conformance).
///
/// The argument is an expression that creates the [`Suite`](crate::conformance::Suite).
#[macro_export]
macro_rules! conformance_tests {
    ($suite:expr) => {
        $crate::conformance_tests!(@ $suite;
            grammar chunks cut_short mixed text_once texts tools calls statuses truths reports garbled
            recorded parameters delivery prompts arguments mcp);
    };
    (@ $suite:expr; $($check:ident)*) => {
        $(
            #[test]
            fn $check() -> $crate::conformance::Verdict {
                $suite.$check()
            }
        )*
    };
}
