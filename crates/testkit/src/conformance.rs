//! The suite of checks that every provider must pass: the same for all CLIs.
//!
//! A provider's test describes its CLI as data, and gets one test for each
//! check:
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
//!         .command_line(ArgvModel::new(Parser::Commander).one(&["--model"]), understand)
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
//! | check | what must hold |
//! |---|---|
//! | [`Suite::grammar`] | every fixture keeps the grammar of a stream, with one `done` |
//! | [`Suite::chunks`] | how the output is cut into chunks never shows |
//! | [`Suite::cut_short`] | output that ends too early is a stream, and never `completed` |
//! | [`Suite::text_once`] | no text is there twice; the answer is part of it |
//! | [`Suite::texts`] | the text of a run is that of the model |
//! | [`Suite::tools`] | calls and results: what was run, and whether it failed |
//! | [`Suite::calls`] | tool calls are announced before their results, as declared by the capabilities |
//! | [`Suite::statuses`] | how each run ended, and the kind of its error |
//! | [`Suite::truths`] | what holds for the end of any run |
//! | [`Suite::reports`] | capabilities that are about output are true of the fixtures |
//! | [`Suite::garbled`] | no line makes the decoder panic or breaks the grammar |
//! | [`Suite::recorded`] | the model of the command line is true to the recorded runs |
//! | [`Suite::parameters`] | a parameter is honoured or refused, as the capabilities say |
//! | [`Suite::delivery`] | the prompt is an argument or on stdin, never both, never left open |
//! | [`Suite::prompts`] | every prompt is taken, and is what the CLI gets |
//! | [`Suite::arguments`] | no value becomes a flag, a sub-command or another value |
//! | [`Suite::mcp`] | MCP servers are taken or refused as the capabilities say; their secrets stay secret |
//!
//! [`garbled`](Suite::garbled) and the last three are property tests too; `PROPTEST_CASES` sets how
//! many cases they try.

mod arbitrary;
mod argv;
mod calls;
mod garbled;
mod launch;
mod mcp;
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

/// A provider, its fixtures and what is known of both. See the [module](self) docs.
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
    leaves_open: Vec<&'static str>,
    changed_prompts: Vec<&'static str>,
}

struct CommandLine {
    model: ArgvModel,
    understand: fn(&Sent<'_>) -> Understood,
}

/// Values that the CLI takes, where not every text will do.
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
    /// Variables of the environment without which something plain is refused.
    pub env: &'static [(&'static str, &'static str)],
}

impl Default for Plain {
    fn default() -> Self {
        /// The 8 bytes with which every PNG begins: enough to be looked at.
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

/// A tool call that a recorded run is known to have.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Kind of the tool.
    pub kind: ToolKind,
    /// A part of its input, such as the command.
    pub input: &'static str,
    /// A part of its output.
    pub output: &'static str,
    /// Whether its result is an error: `None` where the CLI does not report it.
    pub is_error: Option<bool>,
}

impl Tool {
    /// A shell command that went well, whether or not that is reported.
    pub fn shell(command: &'static str, output: &'static str) -> Self {
        Self {
            kind: ToolKind::Execute,
            input: command,
            output,
            is_error: Some(false),
        }
    }

    /// A shell command that ended with another exit code than 0.
    pub fn failed_shell(command: &'static str, output: &'static str) -> Self {
        Self {
            is_error: Some(true),
            ..Self::shell(command, output)
        }
    }

    /// Where the CLI gives no way to know whether it went well.
    #[must_use]
    pub fn without_outcome(self) -> Self {
        Self {
            is_error: None,
            ..self
        }
    }
}

impl Suite {
    /// A suite for a provider and all fixtures below a folder.
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
            leaves_open: Vec::new(),
            changed_prompts: Vec::new(),
        }
    }

    /// Recognizes the CLI's end of a run: whether it is in these lines, which are all complete
    /// lines of JSON so far. Mind a turn that begins after it, as of work in the background: then the
    /// run is not over yet. For a CLI without such a line: the best that there is.
    #[must_use]
    pub fn run_is_over(mut self, is_over: fn(&[Value]) -> bool) -> Self {
        self.is_over = Some(is_over);
        self
    }

    /// How the CLI reads its command line, and what it makes of it, its environment and its stdin.
    /// `understand` is written from what was measured of the CLI, not from the provider's code.
    #[must_use]
    pub fn command_line(
        mut self,
        model: ArgvModel,
        understand: fn(&Sent<'_>) -> Understood,
    ) -> Self {
        self.command_line = Some(CommandLine { model, understand });
        self
    }

    /// The prompt as sent to the CLI, where the provider changes it on purpose.
    #[must_use]
    pub fn prompt_becomes(mut self, becomes: fn(&ExecuteParams) -> String) -> Self {
        self.prompt_becomes = becomes;
        self
    }

    /// Values that the CLI takes.
    #[must_use]
    pub fn plain(mut self, plain: Plain) -> Self {
        self.plain = plain;
        self
    }

    /// The text of the run in the fixtures of this name.
    #[must_use]
    pub fn text(mut self, scenario: &'static str, text: &'static str) -> Self {
        self.texts.push((scenario, text));
        self
    }

    /// How the run in the fixtures of this name ended, and what its last error means; `None` if
    /// there is no error.
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

    /// A tool call in the fixtures of this name.
    #[must_use]
    pub fn tool(mut self, scenario: &'static str, tool: Tool) -> Self {
        self.tools.push((scenario, tool));
        self
    }

    /// Which calls the CLI announces before their results [default: all].
    #[must_use]
    pub fn announces(mut self, announces: Announces) -> Self {
        self.announces = announces;
        self
    }

    /// A call of this kind, which can change things, ended in the fixtures of this name.
    #[must_use]
    pub fn call(mut self, scenario: &'static str, kind: ToolKind) -> Self {
        self.calls.push((scenario, kind));
        self
    }

    /// The only call in the fixtures of this name was of this kind and running when the run broke off.
    #[must_use]
    pub fn cut_off(mut self, scenario: &'static str, kind: ToolKind) -> Self {
        self.cut_off.push((scenario, kind));
        self
    }

    /// Fixtures in which text is rightly there twice: because the model repeated it, or because
    /// nothing in the output shows that it is stale.
    #[must_use]
    pub fn repeats(mut self, scenarios: &[&'static str]) -> Self {
        self.repeats.extend(scenarios);
        self
    }

    /// Fixtures of completed runs in which a tool call rightly has no result.
    #[must_use]
    pub fn leaves_tools_open(mut self, scenarios: &[&'static str]) -> Self {
        self.leaves_open.extend(scenarios);
        self
    }

    /// Fixtures in which the CLI itself changed the prompt that was in its arguments.
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

/// One `#[test]` for each check of the [suite](crate::conformance).
///
/// Give it an expression that makes the [`Suite`](crate::conformance::Suite).
#[macro_export]
macro_rules! conformance_tests {
    ($suite:expr) => {
        $crate::conformance_tests!(@ $suite;
            grammar chunks cut_short text_once texts tools calls statuses truths reports garbled
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
