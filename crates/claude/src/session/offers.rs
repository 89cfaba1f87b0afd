//! Commands and models that the CLI offers.

use serde::Deserialize;
use serde_json::{Value, json};
use teamster_core::provider::json_line::{self, or_default};
use teamster_core::provider::{Events, OffersProtocol};
use teamster_core::{ModelChoice, Offers, SlashCommand};

use super::wire::{self, Answer, LineKind, heard};

/// Id of the request for the offers.
pub(super) const REQUEST: &str = "teamster-initialize";

/// Time limit of the answer to a hook, in seconds: 24 days, since a timer of the CLI has at most 2^31 ms. Without
/// one, the CLI denies the call after 10 minutes (2.1.197).
const HOOK_SECONDS: u32 = 24 * 24 * 60 * 60;

/// Creates the request, with the hooks of a session that has some.
pub(super) fn request(has_hooks: bool) -> Value {
    let mut request = json!({"subtype": "initialize"});
    if has_hooks {
        // The CLI calls all of them by one name: each call has its event.
        let hook = json!([{"hookCallbackIds": ["tool"], "timeout": HOOK_SECONDS}]);
        request["hooks"] = json!({
            "PreToolUse": hook,
            "PostToolUse": hook,
            "PostToolUseFailure": hook,
        });
    }
    wire::request(REQUEST, &request)
}

/// Creates the protocol of a process that only answers the request for the offers.
pub(crate) fn query() -> OffersProtocol {
    OffersProtocol::new(&[request(false)], 1, |line| {
        let LineKind::Answer { outcome, .. } = json_line::read(line, heard)?.what else {
            return None;
        };
        let mut reported = Reported::default();
        // A CLI without such a request offers nothing.
        if let Ok(answer) = outcome {
            reported.initialized(answer);
        }
        Some(reported.now)
    })
}

/// The CLI's word for its default model, which callers choose by naming no model.
const DEFAULT_MODEL: &str = "default";

/// A command in the response to `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandLine {
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    description: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    argument_hint: Option<String>,
}

/// A model in the response to `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelLine {
    value: String,
    #[serde(default, deserialize_with = "or_default")]
    display_name: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    description: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    supported_effort_levels: Option<Vec<String>>,
}

/// What the CLI has reported: in its response to `initialize` with descriptions, and by name at the start of each turn.
#[derive(Debug, Default)]
pub(super) struct Reported {
    described: Vec<SlashCommand>,
    names: Vec<String>,
    now: Offers,
    /// What the session has emitted.
    emitted: Offers,
}

impl Reported {
    /// Takes the response to `initialize`.
    pub(super) fn initialized(&mut self, response: Answer) {
        if let Some(commands) = response.commands {
            self.described = commands.into_iter().map(command).collect();
            self.now.commands = Some(self.described.clone());
        }
        if let Some(models) = response.models {
            let models = models.into_iter().filter(|it| it.value != DEFAULT_MODEL);
            self.now.models = Some(models.map(model).collect());
        }
    }

    /// Takes the names at the start of a turn. They replace the commands if they differ from those of the turn before.
    pub(super) fn named(&mut self, names: &[String]) {
        if names == self.names {
            return;
        }
        let is_first = self.names.is_empty();
        self.names = names.to_vec();
        if is_first && self.now.commands.is_some() {
            return;
        }
        let described = |name: &String| {
            let known = self.described.iter().find(|it| it.name == *name);
            known.cloned().unwrap_or_else(|| SlashCommand::new(name))
        };
        self.now.commands = Some(names.iter().map(described).collect());
    }

    /// Emits what has changed.
    pub(super) fn emit(&mut self, out: &mut Events) {
        if self.now != self.emitted {
            self.emitted = self.now.clone();
            out.push(self.now.clone());
        }
    }
}

fn command(line: CommandLine) -> SlashCommand {
    let filled = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    SlashCommand::new(line.name)
        .description(filled(line.description))
        .input_hint(filled(line.argument_hint))
}

fn model(line: ModelLine) -> ModelChoice {
    ModelChoice::new(line.value)
        .name(line.display_name)
        .description(line.description)
        .efforts(line.supported_effort_levels)
}
