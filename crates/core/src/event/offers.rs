//! What a session offers: commands and models.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::setters::setters;

/// Payload of `offers`: what the session offers, as the CLI reports it. Each list is complete and replaces the
/// list of an earlier event; an absent list is unchanged. Only sessions have this event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Offers {
    /// The CLI's own commands and skills. A prompt `/name` runs one, if the session was opened with `slash_commands`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<SlashCommand>>,
    /// The models that can be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<ModelChoice>>,
    /// The reasoning efforts of the current model. Those of a model in `models` are with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efforts: Option<Vec<String>>,
    /// The CLI's descriptions of `efforts`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub effort_descriptions: BTreeMap<String, String>,
}

/// A command or skill of the CLI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SlashCommand {
    /// The name, without the leading `/`.
    pub name: String,
    /// The CLI's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The CLI's description of the text after the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_hint: Option<String>,
}

/// A model that a session can be set to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelChoice {
    /// The name that the CLI takes.
    pub id: String,
    /// The CLI's name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The CLI's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The reasoning efforts of this model, if the CLI reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efforts: Option<Vec<String>>,
    /// The CLI's descriptions of `efforts`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub effort_descriptions: BTreeMap<String, String>,
}

impl Offers {
    /// Creates offers without any list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether no list is there.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Replaces the lists that a later event has.
    pub fn update(&mut self, later: &Self) {
        if later.commands.is_some() {
            self.commands.clone_from(&later.commands);
        }
        if later.models.is_some() {
            self.models.clone_from(&later.models);
        }
        if later.efforts.is_some() {
            self.efforts.clone_from(&later.efforts);
            (self.effort_descriptions).clone_from(&later.effort_descriptions);
        }
    }
}

impl SlashCommand {
    /// Creates a command without a description.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: None,
            input_hint: None,
        }
    }
}

impl ModelChoice {
    /// Creates a model without a description.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: None,
            description: None,
            efforts: None,
            effort_descriptions: BTreeMap::new(),
        }
    }
}

setters! {
    #[doc(hidden)]
    Offers {
        option commands: Vec<SlashCommand>,
        option models: Vec<ModelChoice>,
        option efforts: Vec<String>,
        set effort_descriptions: BTreeMap<String, String>,
    }
    #[doc(hidden)]
    SlashCommand { option description: String, option input_hint: String }
    #[doc(hidden)]
    ModelChoice {
        option name: String,
        option description: String,
        option efforts: Vec<String>,
        set effort_descriptions: BTreeMap<String, String>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AgentEvent;
    use serde_json::json;

    #[test]
    fn later_lists_replace_earlier_ones() {
        let mut offers = Offers::new().commands(vec![SlashCommand::new("a")]);
        let models = vec![ModelChoice::new("m").name("M")];
        offers.update(&Offers::new().models(models));
        let described = |effort: &str| {
            let texts = [(effort.to_owned(), "fast".to_owned())].into();
            let efforts = Offers::new().efforts(vec![effort.to_owned()]);
            efforts.effort_descriptions(texts)
        };
        offers.update(&described("low"));
        offers.update(&described("high"));
        offers.update(&Offers::new().commands(Vec::new()));
        let event = serde_json::to_value(AgentEvent::from(offers)).unwrap();
        assert_eq!(
            event,
            json!({"type": "offers", "commands": [], "models": [{"id": "m", "name": "M"}],
                "efforts": ["high"], "effortDescriptions": {"high": "fast"}})
        );
    }
}
