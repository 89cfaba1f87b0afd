//! Data sent to a CLI, and the CLI's interpretation.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde_json::Value;
use teamster_core::provider::{Launch, PathLocation, PrivateFile, Stdin};
use teamster_core::{ExecuteParams, SubAgent, SystemPrompt};

use super::Parsed;
use super::argv::ArgvModel;

/// Everything sent to a CLI at its start.
#[derive(Debug, Clone)]
pub struct Sent<'a> {
    /// Its command line.
    pub args: Parsed,
    /// Its launch.
    pub launch: &'a Launch,
    params: &'a ExecuteParams,
}

impl<'a> Sent<'a> {
    pub(super) fn read(
        model: &ArgvModel,
        launch: &'a Launch,
        params: &'a ExecuteParams,
    ) -> Result<Self, String> {
        let args = model.parse(&with_private_files(launch))?;
        Ok(Self {
            args,
            launch,
            params,
        })
    }

    /// Returns the input on stdin, or `None` if stdin is closed.
    pub fn stdin(&self) -> Option<String> {
        match &self.launch.stdin {
            Stdin::Bytes(bytes) | Stdin::Open(bytes) => {
                Some(String::from_utf8_lossy(bytes).into_owned())
            }
            _ => None,
        }
    }

    /// Returns a variable of the environment: the value of the provider or the caller in the engine's order,
    /// or the path of a private file.
    pub fn variable(&self, name: &str) -> Option<String> {
        let set_in = |list: &[(String, String)]| {
            let found = list.iter().rev().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        let mut files = self.launch.private_files.iter().enumerate();
        let file = files.find(|(_, file)| file.location == PathLocation::Variable(name.to_owned()));
        file.map(|(index, file)| private_path(index, file))
            .or_else(|| set_in(&self.launch.env_merged))
            .or_else(|| self.params.env.get(name).cloned())
            .or_else(|| set_in(&self.launch.env))
    }

    /// Returns the content of the private file with this path, which is in an argument or a variable.
    pub fn file(&self, path: impl AsRef<OsStr>) -> Option<String> {
        let path = path.as_ref();
        let mut files = self.launch.private_files.iter().enumerate();
        let (_, file) = files.find(|(at, file)| path == OsStr::new(&private_path(*at, file)))?;
        Some(String::from_utf8_lossy(&file.content).into_owned())
    }
}

/// Parses a text as a TOML value, as some CLIs parse the values of their settings. Returns `None` if it is
/// not one.
pub fn toml_value(text: &str) -> Option<Value> {
    let table: toml::Table = toml::from_str(&format!("value = {text}")).ok()?;
    // A text with several values would be several settings.
    let [("value", value)] = table
        .iter()
        .map(|(k, v)| (k.as_str(), v))
        .collect::<Vec<_>>()[..]
    else {
        return None;
    };
    serde_json::to_value(value).ok()
}

/// Returns the path at which the engine would put a private file.
fn private_path(index: usize, file: &PrivateFile) -> String {
    let path = format!("/run/private-file-{index}");
    match file.location {
        PathLocation::ArgumentNamed(_, ending) => path + ending,
        PathLocation::ArgumentDirectory(_, name) => format!("{path}/{name}"),
        _ => path,
    }
}

/// Returns the arguments, with the paths that the engine adds.
fn with_private_files(launch: &Launch) -> Vec<OsString> {
    let mut args = launch.args.clone();
    for (index, file) in launch.private_files.iter().enumerate() {
        let path = PathBuf::from(private_path(index, file));
        let (at, path) = match file.location {
            PathLocation::Argument(at) | PathLocation::ArgumentNamed(at, _) => (at, Some(&*path)),
            PathLocation::ArgumentDirectory(at, _) => (at, path.parent()),
            _ => continue,
        };
        if let (Some(arg), Some(path)) = (args.get_mut(at), path) {
            arg.push(path);
        }
    }
    args
}

/// A CLI's interpretation of what it was [sent](Sent), in terms of [`ExecuteParams`]. The suite
/// compares it with the request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Understood {
    /// The prompt.
    pub prompt: String,
    /// True if the prompt is a command of the CLI or of the user.
    pub slash_command: bool,
    /// The session to resume.
    pub session_id: Option<String>,
    /// The id for a new session.
    pub new_session_id: Option<String>,
    /// True if the resumed session stays unchanged.
    pub fork: bool,
    /// The working directory, if it is passed to the CLI and not only set by the engine. Then it is the full
    /// path, because the CLI already works in it.
    pub working_directory: Option<PathBuf>,
    /// Additional directories.
    pub add_dirs: Vec<PathBuf>,
    /// The skills, which are full paths.
    pub skills: Vec<PathBuf>,
    /// The sub-agents, without further settings.
    pub sub_agents: Vec<SubAgent>,
    /// The hooks.
    pub hooks: Option<Value>,
    /// The system prompt.
    pub system_prompt: Option<SystemPrompt>,
    /// The model.
    pub model: Option<String>,
    /// The effort.
    pub effort: Option<String>,
    /// The tools that may be used.
    pub allowed_tools: Vec<String>,
    /// The tools that may not be used.
    pub denied_tools: Vec<String>,
    /// The limit of turns.
    pub max_turns: Option<u32>,
    /// The limit of cost.
    pub max_budget_usd: Option<f64>,
    /// The schema of the answer.
    pub output_schema: Option<Value>,
    /// The number of images.
    pub images: usize,
    /// The number of times that the CLI repeats a failed request.
    pub cli_retries: Option<u32>,
}

impl Understood {
    /// Checks that this matches the request, with this prompt.
    pub(super) fn check(&self, params: &ExecuteParams, prompt: &str) -> Result<(), String> {
        let directory = params.working_directory.as_deref();
        let directory = std::path::absolute(directory.unwrap_or(Path::new("."))).ok();
        // A relative path and its absolute form are equal.
        let base = directory.clone().unwrap_or_default();
        let full = |dirs: &[PathBuf]| dirs.iter().map(|dir| base.join(dir)).collect::<Vec<_>>();
        let expected = Self {
            prompt: prompt.to_owned(),
            slash_command: self.slash_command && params.slash_commands,
            session_id: params.session_id.clone(),
            new_session_id: params.new_session_id.clone(),
            fork: params.fork,
            working_directory: self.working_directory.as_ref().and(directory),
            add_dirs: full(&params.add_dirs),
            skills: params.skills.clone(),
            sub_agents: params.sub_agents.clone(),
            hooks: params.hooks.clone(),
            system_prompt: params.system_prompt.clone(),
            model: params.model.clone(),
            effort: params.effort.clone(),
            allowed_tools: params.allowed_tools.clone(),
            denied_tools: params.denied_tools.clone(),
            max_turns: params.max_turns,
            max_budget_usd: params.max_budget_usd,
            output_schema: params.output_schema.clone(),
            images: params.images.len(),
            cli_retries: params.cli_retries,
        };
        let understood = Self {
            add_dirs: full(&self.add_dirs),
            ..self.clone()
        };
        let mut different = understood.fields().into_iter().zip(expected.fields());
        let Some(((name, is), (_, asked))) = different.find(|(is, asked)| is != asked) else {
            return Ok(());
        };
        let short = |text: &str| teamster_core::text::excerpt(text, 300);
        let (is, asked) = (short(&is), short(&asked));
        Err(format!(
            "the CLI understands {name} {is}, asked was {asked}"
        ))
    }

    /// Returns each field as text, for comparison. Paths that are not UTF-8 stay distinct.
    fn fields(&self) -> [(&'static str, String); 20] {
        fn text(value: &impl std::fmt::Debug) -> String {
            format!("{value:?}")
        }
        /// Does not compile if a field is missing.
        macro_rules! fields {
            ($($name:ident),* $(,)?) => {{
                let Self { $($name),* } = self;
                [$((stringify!($name), text($name))),*]
            }};
        }
        fields! {
            prompt, slash_command, session_id, new_session_id, fork, working_directory, add_dirs,
            skills, sub_agents, hooks, system_prompt, model, effort, allowed_tools, denied_tools,
            max_turns, max_budget_usd, output_schema, images, cli_retries,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_of_toml_is_one_value() {
        assert_eq!(toml_value(r#""a\"b""#), Some(json!("a\"b")));
        assert_eq!(toml_value("[1, 2]"), Some(json!([1, 2])));
        assert_eq!(toml_value("no quotes"), None);
        assert_eq!(toml_value("1\nother = 2"), None);
    }
}
