//! CLI-specific parts: configuration for a server, and names of tools.

mod claude;
mod cline;
mod codex;
mod copilot;
mod embedded;
mod gemini;
mod kilo;
mod kimi;
pub(crate) mod offered;
mod opencode;
mod pi;
mod qwen;

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::Part;
use crate::protocol::Protocol;

/// The list of CLIs. The module of its name has the specifics of each.
macro_rules! clis {
    ($($(#[$doc:meta])* $cli:ident in $module:ident,)*) => {
        /// A CLI that can be pointed at the server.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Cli {
            $($(#[$doc])* $cli,)*
        }

        impl Cli {
            /// All CLIs.
            pub const ALL: [Self; [$(stringify!($module)),*].len()] = [$(Self::$cli),*];

            /// Returns the short name, which is the name of its program.
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$cli => stringify!($module),)*
                }
            }

            /// Returns the configuration for a server. Its address is `http://HOST:PORT` without a path.
            pub fn point_at(self, url: &str) -> Pointing {
                match self {
                    $(Self::$cli => $module::point_at(url),)*
                }
            }

            fn is_asking(self, user_agent: &str, tools: &[String]) -> bool {
                match self {
                    $(Self::$cli => $module::is_asking(user_agent, tools),)*
                }
            }

            fn habits(self) -> Habits {
                match self {
                    $(Self::$cli => $module::HABITS,)*
                }
            }

            fn own_call(self, part: &Part, context: &CallContext<'_>) -> Option<Call> {
                match self {
                    $(Self::$cli => $module::call(part, context),)*
                }
            }
        }
    };
}

clis! {
    /// Claude Code.
    Claude in claude,
    /// Cline.
    Cline in cline,
    /// Codex.
    Codex in codex,
    /// GitHub Copilot CLI.
    Copilot in copilot,
    /// Gemini CLI.
    Gemini in gemini,
    /// Kilo.
    Kilo in kilo,
    /// Kimi Code.
    Kimi in kimi,
    /// OpenCode.
    OpenCode in opencode,
    /// Pi.
    Pi in pi,
    /// Qwen Code.
    Qwen in qwen,
    /// `teamster`'s own model loop, which has no program.
    Embedded in embedded,
}

/// Configuration that points a CLI at this server only.
///
/// All keys in it are made up. In addition to the address it has settings that prevent other requests:
/// telemetry, updates and lists of models are off if the CLI allows that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pointing {
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// Arguments, which may precede those of the caller.
    pub args: Vec<String>,
    /// The model to request (`--model`), if the CLI's default is not suitable.
    pub model: Option<String>,
    /// Files for the home folder. A separate home for the run keeps the user's files unchanged. The files
    /// repeat the settings of the arguments, for programs that start the CLI without these.
    pub files: Vec<HomeFile>,
    /// Variables that must be unset, because they would select other settings, another login or service, a
    /// proxy, or the session of another agent.
    pub elsewhere: Vec<&'static str>,
    /// Variables of the CLI's folders, for runs that keep `HOME`, each with the path in the home of the run.
    /// They take precedence over [`elsewhere`](Self::elsewhere).
    pub folders: Vec<(&'static str, &'static str)>,
    /// The subcommand that runs a prompt. The model follows it.
    pub subcommand: Option<&'static str>,
    /// Arguments before the prompt.
    pub before_prompt: &'static [&'static str],
    /// True if the CLI waits for the end of stdin unless stdin is a terminal.
    pub waits_for_stdin: bool,
    /// Variables that the CLI needs to run as root as it does as another user.
    pub for_root: &'static [(&'static str, &'static str)],
}

/// Variables that misdirect any CLI: to settings outside of its home, or to a proxy, which would be used for
/// `127.0.0.1` too.
const ELSEWHERE: &str = "
    XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME HTTP_PROXY HTTPS_PROXY ALL_PROXY
    http_proxy https_proxy all_proxy
";

/// Returns the variables that misdirect one CLI, with those that misdirect any.
fn elsewhere(of_one: &'static str) -> Vec<&'static str> {
    let lists = [of_one, ELSEWHERE].into_iter();
    lists.flat_map(str::split_ascii_whitespace).collect()
}

/// Returns environment variables in the form of [`Pointing::env`].
fn variables(of: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    of.iter().map(owned).collect()
}

/// A file in the home folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HomeFile {
    /// Path relative to the home folder.
    pub path: PathBuf,
    /// Its content.
    pub content: String,
}

impl HomeFile {
    /// Creates a file with this path relative to the home folder.
    pub fn new(path: impl Into<PathBuf>, content: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
        }
    }
}

impl Pointing {
    /// Writes [`files`](Self::files) into a home folder.
    ///
    /// # Errors
    ///
    /// A file cannot be written, or exists: an existing file is never changed, because its settings may be
    /// the user's.
    pub fn write_files(&self, home: &Path) -> std::io::Result<()> {
        use std::io::Write;
        for file in &self.files {
            let path = home.join(&file.path);
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::File::create_new(&path)?.write_all(file.content.as_bytes())?;
        }
        Ok(())
    }
}

impl Cli {
    /// Returns the CLI with this short name.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cli| cli.id() == id)
    }

    /// Identifies the CLI of a request by the header `user-agent` and by the names of the tools that it
    /// offers to the model.
    pub(crate) fn who(user_agent: &str, tools: &[String]) -> Option<Self> {
        let with = |tools: &[String]| {
            let mut all = Self::ALL.into_iter();
            all.find(|cli| cli.is_asking(user_agent, tools))
        };
        // The header takes precedence: a fork has the tools of its origin.
        with(&[]).or_else(|| with(tools))
    }

    /// Returns the call of the CLI's tool for a part, if the part is a call.
    pub(crate) fn call(self, part: &Part, context: &CallContext<'_>) -> Option<Call> {
        match part {
            Part::Tool { name, input } => Some((self.habits().named_call)(name, input.clone())),
            _ => self.own_call(part, context),
        }
    }

    /// Returns a second call for the same answer, if the CLI needs it to complete a part.
    pub(crate) fn call_beside(self, part: &Part, context: &CallContext<'_>) -> Option<Call> {
        (self.habits().call_beside)(part, context)
    }
}

impl fmt::Display for Cli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// Behaviour of a CLI, except for its tools.
#[derive(Clone, Copy)]
struct Habits {
    /// Recognizes requests for the CLI's own purposes, outside of a conversation.
    own_request: fn(&ParsedBody<'_>) -> Option<OwnRequest>,
    /// Returns whether the CLI itself wrote this message in the model's role.
    own_message: fn(Protocol, &Value) -> bool,
    /// Returns whether the CLI itself wrote this message in its user's role, so that the model continues an answer
    /// that broke off.
    continuation: fn(&Value) -> bool,
    /// Returns the number of turns that the CLI replaced by a summary.
    summarized_turns: fn(&Value) -> usize,
    /// Creates a call of the tool with this name.
    named_call: fn(&str, Value) -> Call,
    /// Creates a second call for the same answer, if the CLI needs it to complete a part.
    call_beside: fn(&Part, &CallContext<'_>) -> Option<Call>,
}

impl Habits {
    const NONE: Self = Self {
        own_request: |_| None,
        own_message: |_, _| false,
        continuation: |_| false,
        summarized_turns: |_| 0,
        named_call: |name, input| Call::new(name, input),
        call_beside: |_, _| None,
    };
}

/// A request to a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParsedBody<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) body: &'a Value,
    pub(crate) stream: bool,
    /// The names of the tools that the model may call.
    pub(crate) tools: &'a [String],
    /// The turn, for a request in a conversation.
    pub(crate) turn: usize,
}

/// A request of a CLI for its own purposes, independent of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnRequest {
    /// A request for text, such as a title for the session, with the answer.
    Text(String),
    /// A web search by the service, with its query.
    Search(String),
}

/// Recognizes a request of any CLI for its own purposes.
pub(crate) fn own_request(request: &ParsedBody<'_>) -> Option<OwnRequest> {
    let mut all = Cli::ALL.into_iter();
    all.find_map(|cli| (cli.habits().own_request)(request))
}

/// Returns whether a CLI itself wrote this message in the model's role.
pub(crate) fn is_own_message(protocol: Protocol, message: &Value) -> bool {
    let mut all = Cli::ALL.into_iter();
    all.any(|cli| (cli.habits().own_message)(protocol, message))
}

/// Returns whether a message continues an answer that broke off, and so begins no turn.
pub(crate) fn is_continuation(message: &Value) -> bool {
    let mut all = Cli::ALL.into_iter();
    all.any(|cli| (cli.habits().continuation)(message))
}

/// Returns the number of turns that the summaries in this body replace.
pub(crate) fn summarized_turns(body: &Value) -> usize {
    let all = Cli::ALL.into_iter();
    let turns = all.map(|cli| (cli.habits().summarized_turns)(body));
    turns.max().unwrap_or_default()
}

/// The context that a tool call depends on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallContext<'a> {
    /// Working directory of the agent, if known.
    pub(crate) directory: Option<&'a Path>,
    /// The names of the tools that the CLI offered with the request.
    pub(crate) tools: &'a [String],
    /// The same tools with their schemas.
    pub(crate) offers: &'a [offered::Offer],
}

impl CallContext<'_> {
    /// Returns the path for a tool that requires absolute ones.
    pub(crate) fn absolute(&self, path: &str) -> String {
        match self.directory {
            Some(directory) => directory.join(path).display().to_string(),
            None => path.to_owned(),
        }
    }

    /// Returns the first of these names that is offered, or else the first. A tool that is not offered, for
    /// example because it is denied, is still called.
    pub(crate) fn offered<'n>(&self, names: &[&'n str]) -> &'n str {
        names
            .iter()
            .find(|name| self.tools.iter().any(|tool| tool == *name))
            .or(names.first())
            .unwrap_or(&"")
    }
}

/// Returns the choices of a question, in the form that most tools expect.
fn choices() -> Value {
    let choice = |label: &str| json!({"label": label, "description": label});
    json!([choice("Yes"), choice("No")])
}

/// A tool call on the wire.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// The tool's name.
    pub(crate) name: String,
    /// Namespace of the tool, if the protocol has them (OpenAI Responses, for MCP).
    pub(crate) namespace: Option<String>,
    /// Its input: an object, or a string for a tool with free text (OpenAI Responses).
    pub(crate) input: Value,
}

impl Call {
    pub(crate) fn new(name: impl Into<String>, input: Value) -> Self {
        Self {
            name: name.into(),
            namespace: None,
            input,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that starts the CLI does not pass the arguments.
    #[test]
    fn settings_in_arguments_are_in_a_file_too() {
        for cli in Cli::ALL {
            let pointing = cli.point_at("http://127.0.0.1:1");
            assert!(
                pointing.args.is_empty() || !pointing.files.is_empty(),
                "{cli}"
            );
        }
    }

    #[test]
    fn a_fork_is_known_by_its_own_name() {
        let tools = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        let shell = tools(&["run_shell_command"]);
        assert_eq!(
            Cli::who("QwenCode/0.24.4 (linux; x64)", &shell),
            Some(Cli::Qwen)
        );
        assert_eq!(Cli::who("node", &shell), Some(Cli::Gemini));
        let own = tools(&["bash", "todowrite"]);
        assert_eq!(Cli::who("node", &own), Some(Cli::OpenCode));
        let own = tools(&["Bash", "ReadMediaFile", "TodoList"]);
        assert_eq!(Cli::who("Anthropic/JS 0.95.2", &own), Some(Cli::Kimi));
        assert_eq!(Cli::who("node", &own[..1]), Some(Cli::Claude));
        let kilo = "Kilo-Code/7.7.7 ai-sdk/provider-utils/4.0.27 runtime/bun/1.3.14";
        assert_eq!(Cli::who(kilo, &[]), Some(Cli::Kilo));
        assert_eq!(Cli::who("node", &[]), None);
    }

    #[test]
    fn folders_are_led_into_the_home() {
        for cli in Cli::ALL {
            let pointing = cli.point_at("http://127.0.0.1:1");
            assert!(!pointing.folders.is_empty(), "{cli}");
            for (variable, folder) in &pointing.folders {
                assert!(Path::new(folder).is_relative(), "{cli}: {variable}");
                assert!(pointing.elsewhere.contains(variable), "{cli}: {variable}");
            }
        }
    }
}
