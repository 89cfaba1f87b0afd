//! A command as a provider: its words, and what takes the place of the placeholders.

use std::path::Path;
use std::sync::Arc;

use teamster_core::provider::{Args, Decoder, Launch, Stdin};
use teamster_core::text::excerpt;
use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, ExecuteParams, PermissionMode,
};

use crate::CommandSettings;
use crate::decoder::TextDecoder;

/// The prompt as an argument.
const PROMPT: &str = "{prompt}";
/// The path of a private file with the prompt.
const PROMPT_FILE: &str = "{prompt_file}";
/// The model.
const MODEL: &str = "{model}";

/// The longest prompt that becomes an argument, in bytes: Linux takes none of 128 KiB.
const LONGEST_ARGUMENT: usize = 100_000;

/// A program that prints text, by the command that starts it.
///
/// In the command, `{prompt}` is the prompt as an argument, `{prompt_file}` the path of a private file with
/// it, and `{model}` the model. Without either of the first two the prompt is written to stdin.
/// No shell reads the command.
///
/// ```
/// use teamster_command::TextCommand;
/// use teamster_core::CliProvider;
///
/// let agent = TextCommand::new("my-agent --message-file {prompt_file}")?;
/// assert_eq!(agent.info().id, "cmd:my-agent --message-file {prompt_file}");
/// # Ok::<(), teamster_core::AgentError>(())
/// ```
#[derive(Debug, Clone)]
pub struct TextCommand {
    info: &'static CliInfo,
    args: Vec<String>,
    settings: Arc<CommandSettings>,
}

static CAPABILITIES: Capabilities = {
    let mut can = Capabilities::none();
    can.model = true;
    // It cannot ask, and nothing can be forbidden.
    can.permission_modes = &[PermissionMode::Default, PermissionMode::Bypass];
    can.prompt_on_stdin = true;
    can.text_deltas = true;
    can.final_text = true;
    // Its tool calls are not reported, so any of them may have changed something.
    can.announces_tools = false;
    // Whether the program reads files that a prompt names is not known.
    can.file_mentions = true;
    can
};

impl TextCommand {
    /// Prefix of the names of such agents: `cmd:my-agent {prompt_file}`.
    pub const PREFIX: &'static str = "cmd:";

    /// The agent that this command starts: a program and its arguments, with quotation marks and
    /// backslashes as in a shell, but without one.
    pub fn new(command: &str) -> Result<Self, AgentError> {
        let settings = CommandSettings {
            command: command.to_owned(),
            ..CommandSettings::default()
        };
        Self::build(None, settings)
    }

    /// The agent of this name, if it begins with [`PREFIX`](Self::PREFIX).
    pub fn named(name: &str) -> Option<Result<Self, AgentError>> {
        let command = name.trim_start().strip_prefix(Self::PREFIX)?;
        Some(Self::new(command))
    }

    /// The agent that these settings describe, under a name of its own: letters, digits, `-` and `_`.
    pub fn with_settings(name: &str, settings: CommandSettings) -> Result<Self, AgentError> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        if name.is_empty() || !name.chars().all(is_plain) {
            let problem = format!(
                "{:?} is no name for an agent: it takes lower-case letters, digits, `-` and `_`",
                excerpt(name, 100)
            );
            return Err(AgentError::invalid_params(problem).about("name"));
        }
        Self::build(Some(name), settings)
    }

    fn build(name: Option<&str>, settings: CommandSettings) -> Result<Self, AgentError> {
        let shown = match name {
            Some(name) => format!("the agent {name}"),
            None => format!("{}{}", Self::PREFIX, excerpt(settings.command.trim(), 100)),
        };
        let invalid = |problem: &str| {
            Err(AgentError::invalid_params(format!("{shown}: {problem}")).about("command"))
        };
        let Ok(words) = shell_words::split(&settings.command) else {
            return invalid("a quotation mark is not closed");
        };
        let Some((program, args)) = words.split_first() else {
            return invalid("there is no command, as in `cmd:my-agent {prompt_file}`");
        };
        if words.iter().any(|word| word.contains('\0')) {
            return invalid("it holds a NUL byte, which no argument can");
        }
        if program.is_empty() || program.contains('{') {
            return invalid("the program has no name");
        }
        let files = args.iter().filter(|arg| arg.contains(PROMPT_FILE));
        if files.clone().count() > 1 || files.clone().any(|arg| !arg.ends_with(PROMPT_FILE)) {
            return invalid("`{prompt_file}` stands once, at the end of its word");
        }
        if args.iter().any(|arg| arg.contains(PROMPT)) && files.count() > 0 {
            return invalid("the prompt is there twice: `{prompt}` and `{prompt_file}`");
        }
        if is_shell(program) && args.iter().any(|arg| arg.contains(PROMPT) && arg != PROMPT) {
            return invalid(
                "a shell would read the prompt as a part of its script: write \"$1\" there, and `sh \
                 {prompt}` behind the script",
            );
        }
        let id = match name {
            Some(name) => name.to_owned(),
            None => format!("{}{}", Self::PREFIX, shell_words::join(&words)),
        };
        let file = Path::new(program).file_name().unwrap_or_default();
        let file = file.to_string_lossy();
        let info = CliInfo::of_command(&id, name.unwrap_or(&file), program)?;
        Ok(Self {
            info,
            args: args.to_vec(),
            settings: Arc::new(settings),
        })
    }

    /// The words of the command, with the placeholders replaced.
    fn args(&self, params: &ExecuteParams) -> Result<(Args, Stdin), AgentError> {
        let mut args = Args::new();
        let mut stdin = Stdin::Bytes(params.prompt.clone().into_bytes());
        let mut is_behind_dashes = false;
        let model = params.model.as_ref().or(self.settings.model.as_ref());
        let mut takes_model = false;
        for word in &self.args {
            is_behind_dashes |= word == "--";
            if let Some(prefix) = word.strip_suffix(PROMPT_FILE) {
                args.private_file(prefix, params.prompt.as_bytes());
                stdin = Stdin::Closed;
                continue;
            }
            let mut word = word.clone();
            if word.contains(MODEL) {
                takes_model = true;
                let Some(model) = model else {
                    return refused("model", "the command has `{model}`, and none was named");
                };
                if model.starts_with('-') && word.starts_with(MODEL) {
                    return refused("model", "a name that begins with `-` would be a flag");
                }
                word = word.replace(MODEL, model);
            }
            if word.contains(PROMPT) {
                let prompt = argument(params)?;
                // A blank before it: else it would be a flag.
                let is_flag =
                    word.starts_with(PROMPT) && prompt.starts_with('-') && !is_behind_dashes;
                word = word.replace(PROMPT, prompt);
                if is_flag {
                    word.insert(0, ' ');
                }
                stdin = Stdin::Closed;
            }
            args.add(word);
        }
        if params.model.is_some() && !takes_model {
            return refused("model", "the command has no place for it: `{model}`");
        }
        for arg in &params.extra_args {
            args.add(arg);
        }
        Ok((args, stdin))
    }
}

/// The prompt as an argument.
fn argument(params: &ExecuteParams) -> Result<&str, AgentError> {
    let prompt = &params.prompt;
    if prompt.contains('\0') || prompt.len() > LONGEST_ARGUMENT {
        return refused(
            "prompt",
            "it cannot be an argument: write `{prompt_file}` in the command in place of `{prompt}`",
        );
    }
    Ok(prompt)
}

impl CliProvider for TextCommand {
    fn info(&self) -> &'static CliInfo {
        self.info
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        params.check(self.info, &CAPABILITIES)?;
        if params.prompt.trim().is_empty() {
            return refused("prompt", "it is empty");
        }
        let (args, stdin) = self.args(params)?;
        let (args, private_files) = args.into_parts();
        Ok(Launch {
            args,
            private_files,
            stdin,
            ..Launch::default()
        })
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        let model = params.model.clone().or_else(|| self.settings.model.clone());
        Box::new(TextDecoder::new(self.settings.clone(), model))
    }
}

fn refused<T>(parameter: &str, problem: &str) -> Result<T, AgentError> {
    Err(AgentError::refused(parameter, problem))
}

/// Whether this program reads an argument as a script.
fn is_shell(program: &str) -> bool {
    const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "busybox"];
    let name = Path::new(program)
        .file_name()
        .and_then(|name| name.to_str());
    name.is_some_and(|name| SHELLS.contains(&name))
}

#[cfg(test)]
mod tests;
