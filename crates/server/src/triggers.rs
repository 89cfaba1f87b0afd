//! Triggers: runs that a request of another program starts, such as the webhook of a forge.

mod sender;
mod template;

use std::collections::BTreeMap;
use std::path::Path;

use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::Value;
use teamster_api::RunSpec;

use sender::RawSender;
pub(crate) use sender::Sender;
use template::{Template, Values};

/// The names of triggers, in URLs.
pub(crate) const NAME_PATTERN: &str = "^[A-Za-z0-9._-]{1,64}$";

/// A run that a request starts: `POST /v1/triggers/{name}`.
#[derive(Debug)]
pub struct Trigger {
    pub(crate) name: String,
    pub(crate) sender: Sender,
    /// Places of a request with the texts that they may have.
    when: Vec<(String, Vec<String>)>,
    prompt: Template,
    run: RunSpec,
}

/// The triggers of a configuration, whose other fields are those of other parts.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct RawConfig {
    #[serde(default)]
    triggers: Vec<RawTrigger>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
struct RawTrigger {
    id: String,
    sender: Option<RawSender>,
    #[serde(default)]
    when: BTreeMap<String, Value>,
    run: RunSpec,
}

impl Trigger {
    /// Reads the triggers (`triggers`) of a configuration. `folder` is that of its file, from which paths count.
    ///
    /// # Errors
    ///
    /// Fails with the problem and its fix if a trigger or its secret cannot be used.
    pub fn of_config(json: &str, folder: &Path) -> Result<Vec<Self>, String> {
        let json = json.strip_prefix('\u{feff}').unwrap_or(json);
        let config: RawConfig = serde_json::from_str(json).map_err(|error| {
            format!(
                "{error}: write a trigger such as {}",
                r#"{"id": "review", "run": {"provider": "claude", "prompt": "Review {{body.url}}"}}"#
            )
        })?;
        let mut triggers: Vec<Self> = Vec::new();
        for raw in config.triggers {
            let name = raw.id.clone();
            let trigger = Self::of(raw, folder);
            let trigger = trigger.map_err(|problem| format!("trigger {name:?}: {problem}"))?;
            if triggers.iter().any(|other| other.name == name) {
                return Err(format!(
                    "trigger {name:?}: another one has this id: choose another"
                ));
            }
            triggers.push(trigger);
        }
        Ok(triggers)
    }

    fn of(raw: RawTrigger, folder: &Path) -> Result<Self, String> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !(1..=64).contains(&raw.id.len()) || !raw.id.chars().all(is_name) {
            return Err("use up to 64 letters, digits, `-`, `_` and `.` as its id".to_owned());
        }
        let sender = match raw.sender {
            Some(sender) => sender.read(folder)?,
            None => Sender::Token,
        };
        let mut when = Vec::new();
        for (place, expected) in raw.when {
            template::check_place(&place).map_err(|problem| format!("when: {problem}"))?;
            let texts = match expected {
                Value::Array(values) => values.iter().map(template::text).collect(),
                value => vec![template::text(&value)],
            };
            when.push((place, texts));
        }
        let mut run = raw.run;
        if let Some(directory) = &mut run.working_directory {
            *directory = folder.join(&*directory);
        }
        if let Some(workspace) = &mut run.workspace
            && let Some(path) = workspace.path().map(|path| folder.join(path))
        {
            workspace.set_path(path);
        }
        run.check().map_err(|error| format!("run: {error}"))?;
        let prompt =
            Template::parse(&run.prompt).map_err(|problem| format!("prompt: {problem}"))?;
        Ok(Self {
            name: raw.id,
            sender,
            when,
            prompt,
            run,
        })
    }

    /// Returns the run that a request starts; `None` if it does not meet the conditions. The error names what the prompt
    /// takes of the request, and the request has not.
    ///
    /// Values are text of the prompt, and nothing else: no field of the run depends on the request.
    pub(crate) fn run(&self, headers: &HeaderMap, body: &Value) -> Result<Option<RunSpec>, String> {
        let values = Values { headers, body };
        let meets = |(place, texts): &(String, Vec<String>)| {
            values.get(place).is_some_and(|text| texts.contains(&text))
        };
        if !self.when.iter().all(meets) {
            return Ok(None);
        }
        let mut run = self.run.clone();
        run.prompt = self.prompt.fill(&values)?;
        Ok(Some(run))
    }
}

#[cfg(test)]
mod tests;
