//! The options of a session: agents, models, reasoning efforts and permission modes.

mod machine;

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionMode,
    SessionModeState,
};
use teamster_core::{ModelChoice, Offers, PermissionMode};

use crate::Setup;

/// Ids of session options.
pub(crate) const AGENT: &str = "agent";
pub(crate) const MODE: &str = "mode";
pub(crate) const MODEL: &str = "model";
pub(crate) const THOUGHT_LEVEL: &str = "thought_level";
/// The value that selects the agent's default.
pub(crate) const DEFAULT: &str = "default";

/// The agents available to sessions.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Catalog {
    /// The agents; the first is the default.
    pub agents: Vec<AgentEntry>,
    /// The agent can be changed in each session before its first prompt.
    pub choose_agent: bool,
}

impl Catalog {
    /// Creates a catalog with one agent for all sessions.
    pub fn one(agent: AgentEntry) -> Self {
        Self {
            agents: vec![agent],
            choose_agent: false,
        }
    }

    /// Creates a catalog from which each session chooses an agent.
    pub fn choice(agents: Vec<AgentEntry>) -> Self {
        Self {
            agents,
            choose_agent: true,
        }
    }

    pub(crate) fn agent(&self, id: &str) -> Option<&AgentEntry> {
        self.agents.iter().find(|agent| agent.id == id)
    }
}

/// An agent and its options.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AgentEntry {
    /// The agent's id, such as `claude`.
    pub id: String,
    /// The display name.
    pub name: String,
    /// The models, in addition to the agent's default.
    pub models: Vec<Choice>,
    /// The reasoning efforts, in addition to the agent's default.
    pub efforts: Vec<Choice>,
    /// The supported permission modes.
    pub modes: Vec<PermissionMode>,
    /// The initial settings of a session.
    pub settings: crate::EditorSettings,
    /// Names of the transports of MCP servers that the agent takes: `stdio`, `http`, `sse`.
    pub transports: Vec<String>,
    /// A prompt `/name` is a command of the agent.
    pub commands: bool,
    /// The agent takes images.
    pub images: bool,
    /// The agent takes folders in addition to its working directory.
    pub add_dirs: bool,
    /// Login instructions in the imperative, such as "log in with `claude`". Empty if there are none.
    pub login: String,
    /// The host can remove the agent's login.
    pub logs_out: bool,
}

impl AgentEntry {
    /// Creates an agent without models and efforts that supports the default permission mode only. It takes commands, images,
    /// additional folders, and MCP servers of every transport.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            models: Vec::new(),
            efforts: Vec::new(),
            modes: vec![PermissionMode::Default],
            settings: crate::EditorSettings::default(),
            transports: ["stdio", "http", "sse"].map(str::to_owned).to_vec(),
            commands: true,
            images: true,
            add_dirs: true,
            login: String::new(),
            logs_out: false,
        }
    }
}

/// A value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// The value.
    pub value: String,
    /// The display name. Default: the value.
    pub name: Option<String>,
    /// A description for users.
    pub about: Option<String>,
}

impl Choice {
    /// Creates a value without a description.
    pub fn new(value: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            name: None,
            about: None,
        }
    }
}

impl From<&ModelChoice> for Choice {
    fn from(model: &ModelChoice) -> Self {
        Self {
            value: model.id.clone(),
            name: model.name.clone(),
            about: model.description.clone(),
        }
    }
}

/// Returns the reasoning efforts that the agent offers for this model, or for any model if it is not known; `None` if the
/// agent has reported none.
fn offered_efforts(offers: &Offers, model: Option<&str>) -> Option<Vec<Choice>> {
    let models = offers.models.as_deref().unwrap_or_default();
    let is_it = |it: &&ModelChoice| Some(&*it.id) == model;
    let of_model = |it: &ModelChoice| match &it.efforts {
        Some(efforts) => described(efforts, &it.effort_descriptions),
        None => Vec::new(),
    };
    match (models.iter().find(is_it), &offers.efforts) {
        (Some(model), None) if models.iter().any(|it| it.efforts.is_some()) => {
            Some(of_model(model))
        }
        (_, Some(of_session)) => Some(described(of_session, &offers.effort_descriptions)),
        (_, None) => {
            let mut efforts: Vec<Choice> = Vec::new();
            for choice in models.iter().flat_map(of_model) {
                if efforts.iter().all(|it| it.value != choice.value) {
                    efforts.push(choice);
                }
            }
            Some(efforts).filter(|it| !it.is_empty())
        }
    }
}

/// Returns reasoning efforts with the agent's descriptions.
fn described(efforts: &[String], texts: &BTreeMap<String, String>) -> Vec<Choice> {
    let choice = |level: &String| {
        let mut choice = effort(level);
        if let Some(text) = texts.get(level) {
            choice.about = Some(text.clone());
        }
        choice
    };
    efforts.iter().map(choice).collect()
}

/// Returns a reasoning effort with a description, for agents that have none. They have the same words for efforts.
fn effort(level: &str) -> Choice {
    let about = match level {
        "none" | "off" => "No reasoning",
        "minimal" => "Hardly any reasoning: for the fastest answers",
        "low" => "Little reasoning: fast, for simple tasks",
        "medium" => "Speed and depth in balance",
        "high" => "Much reasoning: for difficult tasks",
        "xhigh" => "More than high: slower, for the most difficult tasks",
        "max" => "As much as the model can: the slowest",
        _ => "",
    };
    let mut choice = Choice::new(level);
    choice.about = Some(about.to_owned()).filter(|it| !it.is_empty());
    choice
}

/// Returns the options of a session. `reported` is the model that the agent reported, and `offers` what it offers.
pub(crate) fn options(
    catalog: &Catalog,
    setup: &Setup,
    agent_is_fixed: bool,
    reported: Option<&str>,
    offers: &Offers,
) -> Vec<SessionConfigOption> {
    let mut options = Vec::new();
    let chosen = setup.agent.as_deref().unwrap_or_default();
    if catalog.choose_agent {
        let is_open = |agent: &&AgentEntry| !agent_is_fixed || agent.id == chosen;
        let agents = catalog.agents.iter().filter(is_open);
        let values = agents
            .map(|agent| SessionConfigSelectOption::new(agent.id.clone(), agent.name.clone()))
            .collect::<Vec<_>>();
        options.push(
            SessionConfigOption::select(AGENT, "Agent", chosen.to_owned(), values)
                .description("The agent of this session; fixed after the first prompt".to_owned())
                .category(SessionConfigOptionCategory::Other("_agent".to_owned())),
        );
    }
    let Some(agent) = catalog.agent(chosen) else {
        return options;
    };
    let settings = &setup.settings;
    if agent.modes.len() > 1 {
        let values = agent.modes.iter().map(|mode| {
            let (name, about) = mode_text(*mode);
            SessionConfigSelectOption::new(mode.as_str(), name).description(about.to_owned())
        });
        options.push(
            SessionConfigOption::select(
                MODE,
                "Mode",
                settings.mode.as_str(),
                values.collect::<Vec<_>>(),
            )
            .description("What the agent may do without approval".to_owned())
            .category(SessionConfigOptionCategory::Mode),
        );
    }
    let default = match reported {
        Some(model) if settings.model.is_none() => format!("Default ({model})"),
        _ => "Default".to_owned(),
    };
    let list = |default: String, known: &[Choice], current: Option<&String>| {
        let about = "What the agent's own settings name".to_owned();
        let mut values = vec![SessionConfigSelectOption::new(DEFAULT, default).description(about)];
        values.extend(known.iter().map(|choice| {
            let name = choice.name.as_ref().unwrap_or(&choice.value);
            SessionConfigSelectOption::new(choice.value.clone(), name.clone())
                .description(choice.about.clone())
        }));
        if let Some(current) = current.filter(|it| known.iter().all(|choice| choice.value != **it))
        {
            values.push(SessionConfigSelectOption::new(
                current.clone(),
                current.clone(),
            ));
        }
        values
    };
    let offered = offers.models.as_ref();
    let offered: Option<Vec<_>> = offered.map(|models| models.iter().map(Choice::from).collect());
    let models = offered.as_ref().unwrap_or(&agent.models);
    options.push(
        SessionConfigOption::select(
            MODEL,
            "Model",
            settings.model.clone().unwrap_or_else(|| DEFAULT.to_owned()),
            list(default, models, settings.model.as_ref()),
        )
        .category(SessionConfigOptionCategory::Model),
    );
    let model = settings.model.as_deref().or(reported);
    // An agent that takes no efforts here may offer them.
    let offered = offered_efforts(offers, model).filter(|_| !agent.efforts.is_empty());
    let efforts = offered.as_ref().unwrap_or(&agent.efforts);
    if !efforts.is_empty() || settings.effort.is_some() {
        options.push(
            SessionConfigOption::select(
                THOUGHT_LEVEL,
                "Thought level",
                settings
                    .effort
                    .clone()
                    .unwrap_or_else(|| DEFAULT.to_owned()),
                list("Default".to_owned(), efforts, settings.effort.as_ref()),
            )
            .category(SessionConfigOptionCategory::ThoughtLevel),
        );
    }
    options
}

/// Returns the modes, for editors without support for session options.
pub(crate) fn modes(catalog: &Catalog, setup: &Setup) -> Option<SessionModeState> {
    let agent = catalog.agent(setup.agent.as_deref()?)?;
    if agent.modes.len() < 2 {
        return None;
    }
    let modes = agent.modes.iter().map(|mode| {
        let (name, about) = mode_text(*mode);
        SessionMode::new(mode.as_str(), name).description(about.to_owned())
    });
    Some(SessionModeState::new(
        setup.settings.mode.as_str(),
        modes.collect::<Vec<_>>(),
    ))
}

/// Returns the display name and the description of a mode.
pub(crate) fn mode_text(mode: PermissionMode) -> (&'static str, &'static str) {
    match mode {
        PermissionMode::ReadOnly => ("Read only", "No changes and no permission requests"),
        PermissionMode::AcceptEdits => ("Accept edits", "Edits files without asking"),
        PermissionMode::Plan => (
            "Plan",
            "Reads, and answers with a plan before it changes anything",
        ),
        PermissionMode::Bypass => ("Bypass", "Does everything without asking"),
        _ => ("Ask", "Asks before changes"),
    }
}
