//! A command as a provider: its words and placeholders.

use std::path::Path;
use std::sync::Arc;

use teamster_core::provider::{Args, Decoder, Launch, Stdin};
use teamster_core::text::excerpt;
use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, ExecuteParams, PermissionMode,
};

use crate::CommandSettings;
use crate::decoder::TextDecoder;

/// Placeholder for the prompt as an argument.
const PROMPT: &str = "{prompt}";
/// Placeholder for the path of a private file with the prompt.
const PROMPT_FILE: &str = "{prompt_file}";
/// Placeholder for the model.
const MODEL: &str = "{model}";

/// Maximum length of a prompt that is passed as an argument, in bytes. Linux limits an argument to 128 KiB.
const LONGEST_ARGUMENT: usize = 100_000;

/// A program that prints text, given the command that starts it.
///
/// The command can contain placeholders: `{prompt}` is the prompt as an argument, `{prompt_file}` is the path of a
/// private file with the prompt, and `{model}` is the model. A command with neither prompt placeholder gets the
/// prompt on stdin. No shell reads the command.
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
    // The program cannot request permission, and no tool of it can be denied.
    can.permission_modes = &[PermissionMode::Default, PermissionMode::Bypass];
    can.prompt_on_stdin = true;
    can.text_deltas = true;
    can.final_text = true;
    // Its tool calls are not reported, so any of them may have had side effects.
    can.announces_tools = false;
    // Unknown: the program may read files that a prompt names.
    can.file_mentions = true;
    can
};

impl TextCommand {
    /// Prefix of the names of these agents, as in `cmd:my-agent {prompt_file}`.
    pub const PREFIX: &'static str = "cmd:";

    /// Creates the agent that this command starts.
    ///
    /// The command is a program and its arguments. Quotation marks and backslashes work as in a shell, but no shell
    /// runs it.
    ///
    /// # Errors
    ///
    /// Fails if the command is empty, has an unclosed quotation mark or a NUL byte, or misuses a placeholder.
    pub fn new(command: &str) -> Result<Self, AgentError> {
        let settings = CommandSettings {
            command: command.to_owned(),
            ..CommandSettings::default()
        };
        Self::build(None, settings)
    }

    /// Returns the agent of this name. `None` if the name does not begin with [`PREFIX`](Self::PREFIX).
    pub fn named(name: &str) -> Option<Result<Self, AgentError>> {
        let command = name.trim_start().strip_prefix(Self::PREFIX)?;
        Some(Self::new(command))
    }

    /// Creates the agent that these settings describe. Its name consists of lower-case letters, digits, `-` and `_`.
    ///
    /// # Errors
    ///
    /// Fails if the name or the settings' command is invalid.
    pub fn with_settings(name: &str, settings: CommandSettings) -> Result<Self, AgentError> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        if name.is_empty() || !name.chars().all(is_plain) {
            let problem = format!(
                "{:?} is not an agent name: use lower-case letters, digits, `-` and `_`",
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
            return invalid("the command is missing, as in `cmd:my-agent {prompt_file}`");
        };
        if words.iter().any(|word| word.contains('\0')) {
            return invalid("it has a NUL byte, which an argument cannot contain");
        }
        if program.is_empty() || program.contains('{') {
            return invalid("the name of the program is missing");
        }
        let files = args.iter().filter(|arg| arg.contains(PROMPT_FILE));
        if files.clone().count() > 1 || files.clone().any(|arg| !arg.ends_with(PROMPT_FILE)) {
            return invalid("use `{prompt_file}` once, at the end of a word");
        }
        if args.iter().any(|arg| arg.contains(PROMPT)) && files.count() > 0 {
            return invalid("the prompt is given twice: `{prompt}` and `{prompt_file}`");
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

    /// Returns the arguments with the placeholders replaced, and the stdin of the program.
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
                    return refused("model", "required, because the command has `{model}`");
                };
                if model.starts_with('-') && word.starts_with(MODEL) {
                    return refused("model", "a name that begins with `-` would be a flag");
                }
                word = word.replace(MODEL, model);
            }
            if word.contains(PROMPT) {
                let prompt = argument(params)?;
                // Insert a space, or the prompt would be parsed as a flag.
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
            return refused("model", "the command has no `{model}` to put it in");
        }
        for arg in &params.extra_args {
            args.add(arg);
        }
        Ok((args, stdin))
    }
}

/// Returns the prompt if it can be an argument.
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

/// Returns whether this program reads an argument as a script.
fn is_shell(program: &str) -> bool {
    const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "busybox"];
    let name = Path::new(program)
        .file_name()
        .and_then(|name| name.to_str());
    name.is_some_and(|name| SHELLS.contains(&name))
}

#[cfg(test)]
mod tests;
