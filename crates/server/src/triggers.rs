//! Triggers: runs that a request of another program starts, such as the webhook of a forge.

mod sender;
mod template;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::Value;
use teamster_api::RunSpec;
use teamster_core::sync::lock;

use sender::RawSender;
pub(crate) use sender::Sender;
use template::{Template, Values};

use crate::token::FileVersion;

/// The names of triggers, in URLs.
pub(crate) const NAME_PATTERN: &str = "^[A-Za-z0-9._-]{1,64}$";

/// The triggers of a configuration file, which is read again when it has changed. Default: none.
#[derive(Debug, Default)]
pub struct Triggers {
    file: PathBuf,
    read: Mutex<ReadTriggers>,
}

/// Content of the file, as it was read last.
#[derive(Debug, Default)]
struct ReadTriggers {
    /// The file, and those of its secrets.
    files: Vec<ReadFile>,
    /// Why the file that is there now cannot be used. It is read again at each request.
    problem: Option<String>,
    all: Vec<Arc<Trigger>>,
}

/// A file as it was when it was read.
#[derive(Debug)]
struct ReadFile {
    path: PathBuf,
    version: Option<FileVersion>,
}

impl ReadFile {
    /// Describes a file that is read next.
    fn of(path: PathBuf) -> Self {
        let version = FileVersion::of(&path);
        Self { path, version }
    }

    fn has_changed(&self) -> bool {
        FileVersion::of(&self.path) != self.version
    }
}

impl Triggers {
    /// Reads the triggers (`triggers`) of a configuration, from whose folder paths count.
    ///
    /// # Errors
    ///
    /// Fails with the problem and its fix if the file, a trigger or its secret cannot be used.
    pub fn of_file(file: &Path) -> Result<Self, String> {
        let about = |problem: String| format!("{}: {problem}", file.display());
        let file = std::path::absolute(file).map_err(|error| about(error.to_string()))?;
        let read = Mutex::new(read(&file).map_err(about)?);
        Ok(Self { file, read })
    }

    /// Returns the trigger with this name. If the file or a secret has changed and cannot be used, that is one warning, and
    /// what was read before holds.
    pub(crate) fn find(&self, name: &str, warn: fn(&str)) -> Option<Arc<Trigger>> {
        let mut state = lock(&self.read);
        if state.problem.is_some() || state.files.iter().any(ReadFile::has_changed) {
            match read(&self.file) {
                Ok(read) => *state = read,
                Err(problem) => {
                    if state.problem.as_ref() != Some(&problem) {
                        let file = self.file.display();
                        warn(&format!(
                            "{file}: {problem}; the triggers that it had before hold"
                        ));
                    }
                    state.problem = Some(problem);
                }
            }
        }
        (state.all.iter())
            .find(|trigger| trigger.name == name)
            .cloned()
    }
}

fn read(file: &Path) -> Result<ReadTriggers, String> {
    let mut files = vec![ReadFile::of(file.to_owned())];
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let mut all = Trigger::of_config(&text, folder)?;
    files.extend(all.iter_mut().filter_map(|trigger| trigger.secret.take()));
    Ok(ReadTriggers {
        files,
        problem: None,
        all: all.into_iter().map(Arc::new).collect(),
    })
}

/// A run that a request starts: `POST /v1/triggers/{name}`.
#[derive(Debug)]
pub(crate) struct Trigger {
    pub(crate) name: String,
    pub(crate) sender: Sender,
    /// The file of the sender's secret.
    secret: Option<ReadFile>,
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
    /// Reads the triggers (`triggers`) of a configuration. `folder` is that of its file, from which paths count. Fails
    /// with the problem and its fix if a trigger or its secret cannot be used.
    pub(crate) fn of_config(json: &str, folder: &Path) -> Result<Vec<Self>, String> {
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
        let secret = raw.sender.as_ref().map(RawSender::secret_file);
        let secret = secret.map(|file| ReadFile::of(folder.join(file)));
        let sender = match raw.sender {
            Some(sender) => sender.read(folder)?,
            None => Sender::Token,
        };
        let mut when = Vec::new();
        for (location, expected) in raw.when {
            template::check_location(&location).map_err(|problem| format!("when: {problem}"))?;
            let texts = match expected {
                Value::Array(values) => values.iter().map(template::text).collect(),
                value => vec![template::text(&value)],
            };
            when.push((location, texts));
        }
        let mut run = raw.run;
        run.directories_from(folder);
        run.check().map_err(|error| format!("run: {error}"))?;
        let prompt =
            Template::parse(&run.prompt).map_err(|problem| format!("prompt: {problem}"))?;
        Ok(Self {
            name: raw.id,
            sender,
            secret,
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
        let meets = |(location, texts): &(String, Vec<String>)| {
            values
                .get(location)
                .is_some_and(|text| texts.contains(&text))
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
