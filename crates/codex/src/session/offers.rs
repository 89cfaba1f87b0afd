//! Models that the CLI offers, and its commands: some of its requests, and its skills.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value, json};
use teamster_core::provider::{Events, OffersProtocol};
use teamster_core::{AgentError, ModelChoice, Offers, SessionOptions, SlashCommand, Turn};

use super::goals::GoalCommand;
use super::opening::{about_client, initialized};
use super::state::{CodexSession, Lookup};
use crate::wire::Object;

const COMPACT: &str = "compact";
const GOAL: &str = "goal";
const REVIEW: &str = "review";
const REVIEW_BRANCH: &str = "review-branch";
const REVIEW_COMMIT: &str = "review-commit";

/// The commands for which the CLI has a request: their names, their descriptions, and what follows the name.
const BUILT_IN: [(&str, &str, Option<&str>); 5] = [
    (COMPACT, "Compact the conversation", None),
    (
        REVIEW,
        "Review the changes that are not committed, or what the text names",
        Some("what to review"),
    ),
    (
        REVIEW_BRANCH,
        "Review the changes since a branch",
        Some("branch"),
    ),
    (REVIEW_COMMIT, "Review a commit", Some("commit")),
    (
        GOAL,
        "Set a goal that Codex pursues by itself, or show it",
        Some("objective, pause, resume or clear"),
    ),
];

/// A command for which the CLI has a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BuiltIn {
    Compact,
    /// Reviews this target, in the CLI's terms.
    Review(Value),
    Goal(GoalCommand),
}

impl BuiltIn {
    /// Returns the method and the parameters of the request.
    pub(super) fn request(&self) -> (&'static str, Value) {
        match self {
            Self::Compact => ("thread/compact/start", json!({})),
            Self::Review(target) => ("review/start", json!({"target": target})),
            Self::Goal(command) => command.request(),
        }
    }
}

/// Ids of the requests for the models and the skills. Other requests have numbers.
const MODELS: &str = "models";
const SKILLS: &str = "skills";

impl CodexSession {
    /// Requests the models and the skills, once in a process.
    pub(super) fn request_offers(&mut self) {
        if std::mem::take(&mut self.wants_models) {
            self.outbox.write(&models_request());
        }
        if self.takes_commands && matches!(self.skills, Lookup::Not) {
            self.outbox.write(&skills_request());
            self.skills = Lookup::Waiting;
        }
    }

    /// Returns whether a turn waits for the skills, because its prompt may be one. Requests them if necessary.
    pub(super) fn awaits_skills(&mut self, turn: &Turn) -> bool {
        let is_command = self.takes_commands && turn.prompt.starts_with('/');
        if !is_command || self.built_in(turn).is_some() {
            return false;
        }
        self.request_offers();
        matches!(self.skills, Lookup::Waiting)
    }

    /// Returns the command of a turn if the CLI has a request for it, or the reason why the request would be wrong.
    pub(super) fn built_in(&self, turn: &Turn) -> Option<Result<BuiltIn, AgentError>> {
        let prompt = turn.prompt.strip_prefix('/');
        let prompt = prompt.filter(|_| self.takes_commands)?;
        let name = prompt.split(char::is_whitespace).next()?;
        let (name, ..) = *BUILT_IN.iter().find(|(known, ..)| *known == name)?;
        let text = prompt[name.len()..].trim();
        let is_name = !text.starts_with('-') && text.split_whitespace().count() == 1;
        let problem = match name {
            COMPACT if !text.is_empty() || !turn.images.is_empty() => "takes no text and no image",
            _ if !turn.images.is_empty() => "takes no image",
            REVIEW_BRANCH if !is_name => "needs the name of a branch",
            REVIEW_COMMIT if !is_name => "needs a commit",
            GOAL if text.eq_ignore_ascii_case("edit") => {
                "has no `edit` here: `/goal OBJECTIVE` replaces the goal"
            }
            COMPACT => return Some(Ok(BuiltIn::Compact)),
            GOAL => return Some(Ok(BuiltIn::Goal(GoalCommand::of(text)))),
            _ => {
                let target = match name {
                    REVIEW_BRANCH => json!({"type": "baseBranch", "branch": text}),
                    REVIEW_COMMIT => json!({"type": "commit", "sha": text, "title": null}),
                    _ if text.is_empty() => json!({"type": "uncommittedChanges"}),
                    _ => json!({"type": "custom", "instructions": text}),
                };
                return Some(Ok(BuiltIn::Review(target)));
            }
        };
        let problem = format!("/{name} of Codex {problem}");
        Some(Err(AgentError::refused("prompt", problem)))
    }

    /// Returns a prompt in which `/NAME` of a skill is the CLI's own form, `$NAME`.
    pub(super) fn with_skill<'a>(&self, prompt: &'a str) -> Cow<'a, str> {
        let Lookup::Answered(skills) = &self.skills else {
            return Cow::Borrowed(prompt);
        };
        let rest = prompt.strip_prefix('/').filter(|rest| {
            let name = rest.split(char::is_whitespace).next();
            skills.iter().any(|skill| Some(&**skill) == name)
        });
        rest.map_or(Cow::Borrowed(prompt), |rest| Cow::Owned(format!("${rest}")))
    }

    /// Handles the response with this id. Returns `None` if the requests for the offers have other ids.
    pub(super) fn offers_answered(
        &mut self,
        id: &Value,
        message: &Object<'_>,
        out: &mut Events,
    ) -> Option<()> {
        let offers = answer(id, message)?;
        if id == SKILLS {
            let skills = offers.commands.iter().flatten().skip(BUILT_IN.len());
            self.skills = Lookup::Answered(skills.map(|skill| skill.name.clone()).collect());
        }
        if !offers.is_empty() {
            out.push(offers);
        }
        Some(())
    }
}

/// Creates the protocol of a process that only answers the requests for the offers. No thread is started.
pub(super) fn query(options: &SessionOptions) -> OffersProtocol {
    let mut messages = vec![
        json!({"id": 1, "method": "initialize", "params": about_client()}),
        initialized(),
        models_request(),
    ];
    if options.params.slash_commands {
        messages.push(skills_request());
    }
    let answers = messages.len() - 2;
    OffersProtocol::new(&messages, answers, |line| {
        let text = String::from_utf8_lossy(line);
        let message = Object::parse(&text)?;
        answer(&message.value("id")?, &message)
    })
}

fn models_request() -> Value {
    json!({"id": MODELS, "method": "model/list", "params": {}})
}

/// Asks for the skills of the working directory and of the user.
fn skills_request() -> Value {
    json!({"id": SKILLS, "method": "skills/list", "params": {}})
}

/// Returns what the response with this id offers, the CLI's requests before the skills. `None` if the requests for the offers
/// have other ids.
fn answer(id: &Value, message: &Object<'_>) -> Option<Offers> {
    // A CLI without such a request answers with an error.
    let data = || message.object("result").map(|it| it.objects("data"));
    if id == MODELS {
        let models = data().unwrap_or_default();
        let models: Vec<_> = models.iter().filter_map(model).collect();
        return Some(Offers::new().models(Some(models).filter(|it| !it.is_empty())));
    }
    if id == SKILLS {
        let folders = data().unwrap_or_default();
        let skills = folders.iter().flat_map(|folder| folder.objects("skills"));
        let skills = skills.filter_map(|line| skill(&line));
        let built_in = BUILT_IN.iter().map(|(name, about, hint)| {
            SlashCommand::new(*name)
                .description(*about)
                .input_hint(hint.map(str::to_owned))
        });
        let commands = built_in.chain(skills).collect::<Vec<_>>();
        return Some(Offers::new().commands(commands));
    }
    None
}

fn skill(line: &Object<'_>) -> Option<SlashCommand> {
    if line.get("enabled") == Some(false) {
        return None;
    }
    let interface = line.object("interface");
    let short = interface
        .as_ref()
        .and_then(|it| it.text("short_description"));
    let description = short.or_else(|| line.text("description"));
    let name = line.text("name")?.into_owned();
    Some(SlashCommand::new(name).description(description.map(Cow::into_owned)))
}

fn model(line: &Object<'_>) -> Option<ModelChoice> {
    if line.get("hidden") == Some(true) {
        return None;
    }
    let text = |name: &str| line.text(name).map(Cow::into_owned);
    let (mut efforts, mut described) = (Vec::new(), BTreeMap::new());
    for effort in line.objects("supported_reasoning_efforts") {
        let Some(name) = effort.text("reasoning_effort").map(Cow::into_owned) else {
            continue;
        };
        if let Some(text) = effort.text("description").filter(|it| !it.is_empty()) {
            described.insert(name.clone(), text.into_owned());
        }
        efforts.push(name);
    }
    Some(
        ModelChoice::new(text("model").or_else(|| text("id"))?)
            .name(text("display_name"))
            .description(text("description"))
            .efforts(Some(efforts).filter(|efforts| !efforts.is_empty()))
            .effort_descriptions(described),
    )
}
