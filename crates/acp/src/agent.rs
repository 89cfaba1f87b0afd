//! Any ACP agent, given the command that starts it.

use teamster_core::provider::{Decoder, Launch, SessionProtocol, Stdin};
use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, ExecuteParams, McpDelivery, PermissionMode,
    SessionCapabilities, SessionOptions, SessionProvider,
};

use crate::dialect::PlainDialect;
use crate::protocol::AcpProtocol;
use crate::recorded::RecordedRun;
use crate::settings::{AcpSettings, Approve, SESSION_CAPABILITIES};

/// An ACP agent that is known only by the command that starts it.
///
/// It supports only sessions: a run is a session of one turn (`teamster_process::OneTurn`). The agent reports its
/// capabilities when it starts, so an unsupported feature is an error of the first turn.
///
/// ```
/// use teamster_acp::AcpAgent;
/// use teamster_core::CliProvider;
///
/// let agent = AcpAgent::new("my-agent --acp")?;
/// assert_eq!(agent.info().id, "acp:my-agent --acp");
/// # Ok::<(), teamster_core::AgentError>(())
/// ```
#[derive(Debug, Clone)]
pub struct AcpAgent {
    info: &'static CliInfo,
    args: Vec<String>,
    /// True if the agent is another teamster (`teamster acp`), local or remote.
    is_teamster: bool,
}

static CAPABILITIES: Capabilities = capabilities();

const fn capabilities() -> Capabilities {
    let mut can = Capabilities::none();
    can.resume = true;
    can.fork = true;
    can.add_dirs = true;
    can.model = true;
    can.effort = true;
    // The protocol has no read-only mode.
    can.permission_modes = &[
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::Bypass,
    ];
    can.images = true;
    can.mcp.transports = &["stdio", "http", "sse"];
    can.mcp.deliveries = &[McpDelivery::Private];
    can.prompt_on_stdin = true;
    can.text_deltas = true;
    can.thinking = true;
    can.slash_commands = true;
    can.session_commands = true;
    // Unknown for an arbitrary agent.
    can.file_mentions = true;
    can
}

/// Capabilities of another teamster, whose modes have the same names.
static OF_TEAMSTER: Capabilities = {
    let mut can = capabilities();
    can.permission_modes = PermissionMode::ALL;
    can
};

impl AcpAgent {
    /// Prefix of the names of these agents, as in `acp:my-agent --acp`.
    pub const PREFIX: &'static str = "acp:";

    /// Creates the agent that this command starts.
    ///
    /// The command is a program and its arguments. Quotation marks and backslashes work as in a shell, but no shell
    /// runs it. The command is visible in the process list and in the agent's name, so secrets belong in the
    /// environment.
    ///
    /// # Errors
    ///
    /// Fails if the command is empty, has an unclosed quotation mark or a NUL byte, or begins with a variable
    /// assignment.
    pub fn new(command: &str) -> Result<Self, AgentError> {
        let invalid = |problem: &str| {
            let shown = teamster_core::text::excerpt(command.trim(), 100);
            let problem = format!("{}{shown}: {problem}", Self::PREFIX);
            Err(AgentError::invalid_params(problem).about("provider"))
        };
        let Ok(words) = shell_words::split(command) else {
            return invalid("a quotation mark is not closed");
        };
        if words.iter().any(|word| word.contains('\0')) {
            return invalid("it has a NUL byte, which an argument cannot contain");
        }
        match words.split_first() {
            None => invalid("the command is missing, as in `acp:my-agent --acp`"),
            Some((program, _)) if program.is_empty() => invalid("the program has no name"),
            Some((program, _)) if is_assignment(program) => {
                invalid("no shell reads it; variables go to the agent's environment")
            }
            Some((_, args)) => Ok(Self {
                info: info_of(&words)?,
                args: args.to_vec(),
                is_teamster: is_teamster(&words),
            }),
        }
    }

    /// Returns the agent of this name. `None` if the name does not begin with [`PREFIX`](Self::PREFIX).
    pub fn named(name: &str) -> Option<Result<Self, AgentError>> {
        let command = name.trim_start().strip_prefix(Self::PREFIX)?;
        Some(Self::new(command))
    }

    fn talk(&self, options: &SessionOptions) -> AcpProtocol {
        let dialect = PlainDialect::new(self.info.name).teamster(self.is_teamster);
        AcpProtocol::new(Box::new(dialect), self.settings(options))
    }

    fn settings(&self, options: &SessionOptions) -> AcpSettings {
        let params = &options.params;
        let mut settings = AcpSettings::of(options);
        let directories = params.add_dirs.iter();
        settings.add_dirs = directories
            .map(|dir| settings.directory.join(dir))
            .collect();
        settings.mcp_servers.clone_from(&params.mcp_servers);
        settings.model.clone_from(&params.model);
        settings.effort.clone_from(&params.effort);
        settings.approve = Approve::of(params.permission).unwrap_or_default();
        // The other teamster keeps these modes itself.
        let holds_back = self.is_teamster && Approve::of(params.permission).is_none();
        settings.mode = holds_back.then(|| params.permission.as_str().to_owned());
        settings
    }
}

/// Returns static facts about the agent started by these words. The first word is the program.
fn info_of(words: &[String]) -> Result<&'static CliInfo, AgentError> {
    let id = format!("{}{}", AcpAgent::PREFIX, shell_words::join(words));
    let program = words.first().map_or("", String::as_str);
    let name = std::path::Path::new(program)
        .file_name()
        .unwrap_or_default();
    CliInfo::of_command(&id, &name.to_string_lossy(), program)
}

/// Returns whether the command starts `teamster acp`, directly or through another program such as `ssh`.
fn is_teamster(words: &[String]) -> bool {
    let is_program = |word: &str| std::path::Path::new(word).ends_with("teamster");
    words
        .windows(2)
        .any(|pair| is_program(&pair[0]) && pair[1] == "acp")
}

/// Returns whether a word has the form `NAME=value`, which a shell reads as a variable assignment.
fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else {
        return false;
    };
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

impl CliProvider for AcpAgent {
    fn info(&self) -> &'static CliInfo {
        self.info
    }

    fn capabilities(&self) -> &Capabilities {
        if self.is_teamster {
            &OF_TEAMSTER
        } else {
            &CAPABILITIES
        }
    }

    /// Always fails: a run cannot answer the agent's requests.
    fn launch(&self, _: &ExecuteParams) -> Result<Launch, AgentError> {
        Err(AgentError::invalid_params(format!(
            "{} only supports sessions: open one, or run it with `OneTurn`",
            self.info.id
        )))
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        let protocol = self.talk(&SessionOptions::new(params.clone()).one_turn(true));
        Box::new(RecordedRun::new(protocol, params.prompt.clone()))
    }
}

impl SessionProvider for AcpAgent {
    fn session_capabilities(&self) -> &SessionCapabilities {
        &SESSION_CAPABILITIES
    }

    fn only_sessions(&self) -> bool {
        true
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        let mut params = options.params.clone();
        // A placeholder: each turn has its own prompt.
        "-".clone_into(&mut params.prompt);
        params.check(self.info, self.capabilities())?;
        let args = self.args.iter().chain(&params.extra_args);
        Ok(Launch {
            args: args.map(Into::into).collect(),
            stdin: Stdin::Open(Vec::new()),
            ..Launch::default()
        })
    }

    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol> {
        Box::new(self.talk(options))
    }
}

#[cfg(test)]
mod tests;
