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

/// The one list of CLIs: what is particular to each is in the module of its name.
macro_rules! clis {
    ($($(#[$doc:meta])* $cli:ident in $module:ident,)*) => {
        /// A CLI that can be pointed at the server.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Cli {
            $($(#[$doc])* $cli,)*
        }

        impl Cli {
            /// All of them.
            pub const ALL: [Self; [$(stringify!($module)),*].len()] = [$(Self::$cli),*];

            /// Its short name, which is that of its program.
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$cli => stringify!($module),)*
                }
            }

            /// How it is pointed at a server, whose address is `http://HOST:PORT` without a path.
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

            fn own_call(self, part: &Part, place: &CallContext<'_>) -> Option<Call> {
                match self {
                    $(Self::$cli => $module::call(part, place),)*
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
/// All keys in it are made up. Beside the address it has what keeps a CLI from asking others:
/// telemetry, updates and lists of models are off where the CLI lets them be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pointing {
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// Arguments, which can stand before those of the caller.
    pub args: Vec<String>,
    /// The model to ask for (`--model`), where the CLI's own default would not do.
    pub model: Option<String>,
    /// Files for the home folder. Best is a home of its own for the run, so that nothing of the user's
    /// is changed. What the arguments say they say too, for a program that starts the CLI without
    /// them.
    pub files: Vec<HomeFile>,
    /// Variables that would lead the CLI elsewhere and must not be set: to other settings, another
    /// login or service, a proxy, or into the session of another agent.
    pub elsewhere: Vec<&'static str>,
    /// Variables by which the CLI finds its folders where `HOME` has to stay as it is, and where in
    /// the home of the run each of them leads to. They win over [`elsewhere`](Self::elsewhere).
    pub folders: Vec<(&'static str, &'static str)>,
    /// The subcommand that runs a prompt, behind which the model stands.
    pub subcommand: Option<&'static str>,
    /// Arguments before the prompt.
    pub before_prompt: &'static [&'static str],
    /// Where stdin is no terminal, it waits for its end.
    pub waits_for_stdin: bool,
    /// Variables without which it does not do for root what it does for others.
    pub for_root: &'static [(&'static str, &'static str)],
}

/// Variables that lead any CLI elsewhere: to settings outside of its home, or to a proxy, which would
/// be used for `127.0.0.1` too.
const ELSEWHERE: [&str; 10] = [
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

/// The variables that lead one CLI elsewhere, with those that lead any.
fn elsewhere(of_one: &[&'static str]) -> Vec<&'static str> {
    [of_one, &ELSEWHERE].concat()
}

/// A file in the home folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HomeFile {
    /// Where it is, from the home folder.
    pub path: PathBuf,
    /// Its content.
    pub content: String,
}

impl HomeFile {
    /// A file at this path from the home folder.
    pub fn new(path: impl Into<PathBuf>, content: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
        }
    }
}

impl Pointing {
    /// Writes [`files`](Self::files) into a home folder. Files that are there are kept as they are,
    /// and then this is an error: what they say may be another's.
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
    /// The CLI with this short name.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cli| cli.id() == id)
    }

    /// The CLI of a request, by the header `user-agent` and by the names of
    /// the tools that it offers to the model.
    pub(crate) fn who(user_agent: &str, tools: &[String]) -> Option<Self> {
        let with = |tools: &[String]| {
            let mut all = Self::ALL.into_iter();
            all.find(|cli| cli.is_asking(user_agent, tools))
        };
        // What it calls itself counts more: a fork has the tools of what it comes from.
        with(&[]).or_else(|| with(tools))
    }

    /// The call of its own tool that does what a part asks for, if that is a call.
    pub(crate) fn call(self, part: &Part, place: &CallContext<'_>) -> Option<Call> {
        match part {
            Part::Tool { name, input } => Some((self.habits().named_call)(name, input.clone())),
            _ => self.own_call(part, place),
        }
    }

    /// Another call in the same answer, without which a CLI does not all that a part asks for.
    pub(crate) fn call_beside(self, part: &Part, place: &CallContext<'_>) -> Option<Call> {
        (self.habits().call_beside)(part, place)
    }
}

impl fmt::Display for Cli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// Peculiarities of a CLI, beside its tools.
#[derive(Clone, Copy)]
struct Habits {
    /// Requests for its own purposes, outside of a conversation.
    own_request: fn(&ParsedBody<'_>) -> Option<OwnRequest>,
    /// Whether it has put this message into the model's place by itself.
    own_message: fn(Protocol, &Value) -> bool,
    /// For how many turns a summary stands that it has put in their place.
    summarized_turns: fn(&Value) -> usize,
    /// A call of its tool of this name.
    named_call: fn(&str, Value) -> Call,
    /// Another call in the same answer, without which it does not all that a part asks for.
    call_beside: fn(&Part, &CallContext<'_>) -> Option<Call>,
}

impl Habits {
    const NONE: Self = Self {
        own_request: |_| None,
        own_message: |_, _| false,
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
    /// The turn, if it is one of a conversation.
    pub(crate) turn: usize,
}

/// A request of a CLI for its own purposes, independent of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnRequest {
    /// A text, such as a title for the session; it gets this one.
    Text(String),
    /// A search of the web for this by the service.
    Search(String),
}

/// Recognizes a request of any CLI for its own purposes.
pub(crate) fn own_request(request: &ParsedBody<'_>) -> Option<OwnRequest> {
    let mut all = Cli::ALL.into_iter();
    all.find_map(|cli| (cli.habits().own_request)(request))
}

/// Whether a CLI has put this message into the model's place by itself.
pub(crate) fn is_own_message(protocol: Protocol, message: &Value) -> bool {
    let mut all = Cli::ALL.into_iter();
    all.any(|cli| (cli.habits().own_message)(protocol, message))
}

/// For how many turns the summaries in this body stand.
pub(crate) fn summarized_turns(body: &Value) -> usize {
    let all = Cli::ALL.into_iter();
    let turns = all.map(|cli| (cli.habits().summarized_turns)(body));
    turns.max().unwrap_or_default()
}

/// The context that a tool call depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallContext<'a> {
    /// Where the agent works, if that is known.
    pub(crate) directory: Option<&'a Path>,
    /// The names of the tools that the CLI offered with the request.
    pub(crate) tools: &'a [String],
    /// The same tools with what they take.
    pub(crate) offers: &'a [offered::Offer],
}

impl CallContext<'_> {
    /// A path for a tool that wants absolute ones.
    pub(crate) fn absolute(&self, path: &str) -> String {
        match self.directory {
            Some(directory) => directory.join(path).display().to_string(),
            None => path.to_owned(),
        }
    }

    /// The first of these names that is offered, or else the first of them: that of a tool which is
    /// not offered (because it is not allowed, say) is called all the same.
    pub(crate) fn offered<'n>(&self, names: &[&'n str]) -> &'n str {
        names
            .iter()
            .find(|name| self.tools.iter().any(|tool| tool == *name))
            .or(names.first())
            .unwrap_or(&"")
    }
}

/// The choices of a question, as most of the tools that ask one want them.
fn choices() -> Value {
    let choice = |label: &str| json!({"label": label, "description": label});
    json!([choice("Yes"), choice("No")])
}

/// A call of a tool, as it stands on the wire.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// The tool's name.
    pub(crate) name: String,
    /// Beside the name, where the protocol has namespaces (OpenAI Responses, for MCP).
    pub(crate) namespace: Option<String>,
    /// Its input: an object, or a string for a tool that takes free text (OpenAI Responses).
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

    /// A program that starts the CLI gives it none of ours.
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
