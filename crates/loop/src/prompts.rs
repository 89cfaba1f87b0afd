//! Prompts of a tick.

use std::fs;
use std::io;
use std::path::Path;

use crate::settings::{Settings, SettingsError};
use teamster_api::agents::Prompt;

/// Placeholder for the names of the instruction files in the full prompt.
const INSTRUCTIONS: &str = "{instructions}";

/// Full prompt, for an empty context.
const FULL: &str = "\
Polling tick in a fresh session. Your instructions file ({instructions}) says what your work is; this message says only what surrounds it.

BEFORE THE WORK, without a word about it:
1. Read ./MEMORY.md, your memory from one session to the next. It has to stay under 2 KB: it holds lasting \
facts and no diary. If you learn one worth keeping, consolidate: merge it into what is there, replace what \
is no longer true, delete what does not matter. If the file is larger, make it smaller first.
2. Look at ./.orchestrator/tools.json. If it is missing, or its `generated_at` is older than 60 minutes, \
overwrite it with the names of all mcp__* tools that you have, by server and with nothing but the names, in \
this shape: {\"generated_at\": \"<ISO time>\", \"total_tools\": <number>, \"servers\": [{\"name\": \"<server>\", \
\"tools\": [{\"name\": \"<full name of the tool>\"}]}]}

THEN run your polling loop as your instructions file says.

AT THE END OF THE TICK:
- Overwrite ./status.json.
- If the task is finished and nothing follows from it at once, run `touch ./.orchestrator/clear-session`: the \
next tick then begins with an empty context.
- If you did anything meaningful in this tick (sent a message, moved a card, committed, posted), run \
`touch ./.orchestrator/did-work`: the next tick then comes soon. After a tick in which nothing was to be \
done, do not.
";

/// Short prompt, for a context that has the instructions.
const LIGHT: &str = "\
Next polling tick. Your instructions, your memory and your tools are in the context already: read nothing of \
that again unless it has changed. Run your polling loop.

AT THE END OF THE TICK: overwrite ./status.json. If the task is finished, run \
`touch ./.orchestrator/clear-session`. If you did anything meaningful, run `touch ./.orchestrator/did-work`.
";

/// Full and short prompt of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompts {
    full: String,
    light: String,
}

impl Prompts {
    /// Reads the prompt files of the settings, relative to the agent's directory. Default: the built-in
    /// prompts.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or is empty. The error has the variable and the path.
    pub fn read(settings: &Settings, directory: &Path) -> Result<Self, SettingsError> {
        let text = |name: &str, file: &Option<_>, usual: &str| match file {
            None => Ok(usual.to_owned()),
            Some(file) => {
                let path = directory.join(file);
                let text = fs::read_to_string(&path).and_then(|text| match text.trim() {
                    "" => Err(io::Error::other("it is empty")),
                    _ => Ok(text),
                });
                text.map_err(|error| {
                    SettingsError::new(name, format!("{}: {error}", path.display()))
                })
            }
        };
        let full = FULL.replace(INSTRUCTIONS, &settings.instructions.join(" or "));
        Ok(Self {
            full: text("FULL_PROMPT_FILE", &settings.full_prompt, &full)?,
            light: text("LIGHT_PROMPT_FILE", &settings.light_prompt, LIGHT)?,
        })
    }

    /// Returns the text of a prompt.
    pub fn text(&self, prompt: Prompt) -> &str {
        match prompt {
            Prompt::Light => &self.light,
            _ => &self.full,
        }
    }
}

#[cfg(test)]
mod tests {
    use teamster_core::CliInfo;

    use super::*;

    static INFO: CliInfo = {
        let mut info = CliInfo::new("a", "A", "a");
        info.instructions = &["A.md"];
        info
    };

    #[test]
    fn the_usual_ones_name_every_duty() {
        let prompts = Prompts::read(&Settings::new(&INFO), Path::new("/")).unwrap();
        for (prompt, words) in [
            (
                Prompt::Full,
                &[
                    "./MEMORY.md",
                    "2 KB",
                    "./.orchestrator/tools.json",
                    "60 minutes",
                    "mcp__*",
                    "(A.md or AGENTS.md)",
                    "./status.json",
                    "touch ./.orchestrator/clear-session",
                    "touch ./.orchestrator/did-work",
                ][..],
            ),
            (
                Prompt::Light,
                &[
                    "./status.json",
                    "touch ./.orchestrator/clear-session",
                    "touch ./.orchestrator/did-work",
                ],
            ),
        ] {
            for word in words {
                assert!(prompts.text(prompt).contains(word), "{prompt:?}: {word}");
            }
        }
    }

    #[test]
    fn files_take_their_place() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("light.md"), "go on").unwrap();
        let mut settings = Settings::new(&INFO);
        settings.light_prompt = Some("light.md".into());
        let prompts = Prompts::read(&settings, directory.path()).unwrap();
        assert_eq!(prompts.text(Prompt::Light), "go on");
        let full = prompts.text(Prompt::Full);
        assert!(full.starts_with("Polling tick in a fresh session."));
        settings.full_prompt = Some("none.md".into());
        let error = Prompts::read(&settings, directory.path()).unwrap_err();
        assert_eq!(error.name, "FULL_PROMPT_FILE");
        assert!(error.problem.contains("none.md: "), "{error}");
        fs::write(directory.path().join("none.md"), " \n").unwrap();
        let error = Prompts::read(&settings, directory.path()).unwrap_err();
        assert!(error.problem.ends_with("it is empty"), "{error}");
    }
}
