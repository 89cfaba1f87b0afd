//! Texts and files that arguments name.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::args::{EnvVar, StdinMode, SystemArgs};
use crate::stdin;

/// Reads the prompt, and adds the text on stdin.
pub(crate) fn read_prompt(
    prompt: Option<String>,
    file: Option<&Path>,
    mode: StdinMode,
    warnings: &mut Vec<String>,
) -> anyhow::Result<String> {
    let is_stdin = file.is_none() && prompt.as_deref() == Some("-");
    let mut text = match (file, prompt) {
        (Some(file), _) => read_text(file, "the prompt")?,
        (None, Some(prompt)) if prompt == "-" => {
            let mut bytes = Vec::new();
            io::stdin()
                .lock()
                .read_to_end(&mut bytes)
                .context("cannot read the prompt from stdin")?;
            String::from_utf8(bytes)
                .ok()
                .context("the prompt on stdin is not UTF-8 text")?
        }
        (None, prompt) => prompt.unwrap_or_default(),
    };
    if text.trim().is_empty() {
        bail!("the prompt is empty");
    }
    if !is_stdin {
        warnings.extend(stdin::add_to(&mut text, mode)?);
    }
    Ok(text)
}

/// Returns the system prompt that replaces the CLI's own, and the text that is appended to it.
pub(crate) fn system_prompts(args: SystemArgs) -> anyhow::Result<(Option<String>, Option<String>)> {
    let SystemArgs {
        system_prompt,
        system_prompt_file,
        append_system_prompt,
        append_system_prompt_file,
    } = args;
    let text = |text: Option<String>, file: Option<PathBuf>| match file {
        Some(file) => read_text(&file, "the system prompt").map(Some),
        None => Ok(text),
    };
    Ok((
        text(system_prompt, system_prompt_file)?,
        text(append_system_prompt, append_system_prompt_file)?,
    ))
}

pub(super) fn read_text(file: &Path, what: &str) -> anyhow::Result<String> {
    let bytes =
        fs::read(file).with_context(|| format!("cannot read {what} from {}", file.display()))?;
    String::from_utf8(bytes)
        .ok()
        .with_context(|| format!("{what} in {} is not UTF-8 text", file.display()))
}

pub(crate) fn schema(value: &str) -> anyhow::Result<Value> {
    json(value, "the schema", "--output-schema")
}

/// Returns the hooks of a CLI's settings that have nothing else.
pub(super) fn hooks(value: &str) -> anyhow::Result<Value> {
    let mut settings = json(value, "the file of hooks", "--hooks")?;
    let hooks = (settings.get_mut("hooks").map(Value::take)).unwrap_or_default();
    let mut names = settings.as_object().into_iter().flat_map(|it| it.keys());
    if let Some(other) = names.find(|name| *name != "hooks") {
        bail!("--hooks takes hooks alone, and there is {other:?} too: leave it out");
    }
    if !hooks.is_object() {
        bail!(r#"--hooks: expected {{"hooks": {{…}}}}, as in the CLI's settings"#);
    }
    Ok(hooks)
}

/// Returns JSON, or that of a file. `what` and `option` are for errors.
fn json(value: &str, what: &str, option: &str) -> anyhow::Result<Value> {
    let (text, location) = if value.trim_start().starts_with('{') {
        (value.to_owned(), format!("in {option}"))
    } else {
        (read_text(Path::new(value), what)?, format!("in {value}"))
    };
    serde_json::from_str(&text).with_context(|| format!("{what} {location} is not JSON"))
}

pub(crate) fn environment(vars: &[EnvVar]) -> anyhow::Result<BTreeMap<String, String>> {
    vars.iter()
        .map(|EnvVar { name, value }| {
            if name.is_empty() {
                bail!("--env needs KEY=VALUE or KEY");
            }
            let value = match value {
                Some(value) => value.clone(),
                None => match env::var(name) {
                    Ok(value) => value,
                    Err(env::VarError::NotPresent) => {
                        bail!("--env {name}: no such variable in teamster's environment")
                    }
                    Err(env::VarError::NotUnicode(_)) => {
                        bail!("--env {name}: the variable's value is not UTF-8 text")
                    }
                },
            };
            Ok((name.clone(), value))
        })
        .collect()
}
