//! Output of agents.
//!
//! The structs are flat with optional fields, and borrow where possible. Unknown fields are skipped. A missing field,
//! or one of another type, never fails the parse.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use teamster_core::provider::json_line::{or_default, parse};

/// A message: a request, a notification or a response.
#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
pub(crate) struct Message<'a> {
    pub(crate) id: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) method: Option<Cow<'a, str>>,
    pub(crate) params: Option<&'a RawValue>,
    pub(crate) result: Option<&'a RawValue>,
    pub(crate) error: Option<&'a RawValue>,
}

impl Message<'_> {
    /// Returns the id of the request that this responds to. Some agents print it as a string.
    pub(crate) fn number(&self) -> Option<u64> {
        self.id?.get().trim_matches('"').parse().ok()
    }
}

/// Parameters of `session/update`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct UpdateParams<'a> {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) session_id: Option<Cow<'a, str>>,
    pub(crate) update: Option<&'a RawValue>,
    #[serde(rename = "_meta")]
    pub(crate) meta: Option<&'a RawValue>,
}

/// An update. Its kind determines the other fields.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound = "'de: 'a")]
pub(crate) struct Update<'a> {
    #[serde(rename = "sessionUpdate", deserialize_with = "or_default")]
    pub(crate) kind: Option<Cow<'a, str>>,
    pub(crate) content: Option<&'a RawValue>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) message_id: Option<Cow<'a, str>>,
    pub(crate) entries: Option<&'a RawValue>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) used: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) size: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) cost: Option<Cost>,
    #[serde(rename = "_meta")]
    pub(crate) meta: Option<&'a RawValue>,
}

/// Current cost of the session.
#[derive(Deserialize)]
pub(crate) struct Cost {
    pub(crate) amount: f64,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) currency: Option<String>,
}

/// A tool call or an update of one. Missing fields are unchanged.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound = "'de: 'a")]
pub(crate) struct CallUpdate<'a> {
    #[serde(deserialize_with = "or_default")]
    pub(crate) tool_call_id: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) title: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) kind: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: Option<Cow<'a, str>>,
    pub(crate) content: Option<&'a RawValue>,
    pub(crate) locations: Option<&'a RawValue>,
    pub(crate) raw_input: Option<&'a RawValue>,
    pub(crate) raw_output: Option<&'a RawValue>,
    #[serde(rename = "_meta")]
    pub(crate) meta: Option<&'a RawValue>,
}

/// Parameters of `session/request_permission`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionParams<'a> {
    #[serde(borrow, default)]
    pub(crate) tool_call: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) options: Option<&'a RawValue>,
}

/// An option of a permission request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OptionLine {
    pub(crate) option_id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) kind: String,
}

/// Parameters of `elicitation/create`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, bound = "'de: 'a")]
pub(crate) struct ElicitationParams<'a> {
    #[serde(deserialize_with = "or_default")]
    pub(crate) mode: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) message: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) tool_call_id: Option<Cow<'a, str>>,
    pub(crate) requested_schema: Option<&'a RawValue>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) url: Option<Cow<'a, str>>,
}

/// Parameters of `$/cancel_request`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct CancelParams<'a> {
    pub(crate) request_id: Option<&'a RawValue>,
}

/// Response to `initialize`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Initialized {
    #[serde(deserialize_with = "or_default")]
    pub(crate) protocol_version: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) agent_capabilities: AgentCapabilities,
    #[serde(deserialize_with = "or_default")]
    pub(crate) agent_info: AgentInfo,
}

/// An agent's name for itself.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct AgentInfo {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
}

/// Capabilities of an agent.
#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AgentCapabilities {
    #[serde(deserialize_with = "or_default")]
    pub(crate) load_session: bool,
    #[serde(deserialize_with = "or_default")]
    pub(crate) prompt_capabilities: PromptCapabilities,
    #[serde(deserialize_with = "or_default")]
    pub(crate) mcp_capabilities: McpCapabilities,
    #[serde(deserialize_with = "or_default")]
    pub(crate) session_capabilities: SessionWays,
}

/// Content that a prompt can have in addition to text.
#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PromptCapabilities {
    #[serde(deserialize_with = "or_default")]
    pub(crate) image: bool,
}

/// Transports for MCP servers in addition to stdio.
#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct McpCapabilities {
    #[serde(deserialize_with = "or_default")]
    pub(crate) http: bool,
    #[serde(deserialize_with = "or_default")]
    pub(crate) sse: bool,
}

/// Optional session methods. A supported method is present as an object.
#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SessionWays {
    #[serde(deserialize_with = "or_default")]
    pub(crate) resume: Option<Value>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) fork: Option<Value>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) additional_directories: Option<Value>,
}

/// Response to creating or resuming a session.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Opened {
    #[serde(deserialize_with = "or_default")]
    pub(crate) session_id: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) modes: Option<Modes>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) models: Option<Models>,
    #[serde(deserialize_with = "readable_items")]
    pub(crate) config_options: Vec<ConfigOption>,
}

/// Deserializes a field with [`list`].
fn readable_items<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: for<'a> Deserialize<'a>,
{
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(list(Some(&raw)))
}

/// Modes of a session.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Modes {
    #[serde(deserialize_with = "or_default")]
    pub(crate) current_mode_id: Option<String>,
    #[serde(deserialize_with = "readable_items")]
    pub(crate) available_modes: Vec<ModeLine>,
}

/// A mode of a session.
#[derive(Deserialize)]
pub(crate) struct ModeLine {
    pub(crate) id: String,
}

/// Models of a session.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Models {
    #[serde(deserialize_with = "or_default")]
    pub(crate) current_model_id: Option<String>,
    #[serde(deserialize_with = "readable_items")]
    pub(crate) available_models: Vec<ModelLine>,
}

/// A model of a session.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelLine {
    pub(crate) model_id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) name: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) description: Option<String>,
}

/// `available_commands_update`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
pub(crate) struct Commands<'a> {
    pub(crate) available_commands: Option<&'a RawValue>,
}

/// A command of the agent.
#[derive(Deserialize)]
pub(crate) struct CommandLine {
    pub(crate) name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) description: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) input: Option<CommandInput>,
}

/// The text after a command's name.
#[derive(Deserialize)]
pub(crate) struct CommandInput {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) hint: Option<String>,
}

/// A setting of a session.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ConfigOption {
    #[serde(deserialize_with = "or_default")]
    pub(crate) id: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) category: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) current_value: Option<String>,
    /// The values, also those in groups.
    #[serde(deserialize_with = "with_groups")]
    pub(crate) options: Vec<ValueLine>,
}

/// A value of a setting.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct ValueLine {
    #[serde(deserialize_with = "or_default")]
    pub(crate) value: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) description: Option<String>,
}

impl ConfigOption {
    /// Returns the values, also those in groups.
    pub(crate) fn values(&self) -> impl Iterator<Item = &ValueLine> {
        self.options.iter().filter(|it| it.value.is_some())
    }
}

/// Deserializes values and groups of values. The protocol has no groups in groups, and their depth would have no limit.
fn with_groups<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ValueLine>, D::Error> {
    #[derive(Deserialize)]
    struct Group<'a> {
        #[serde(borrow)]
        options: Option<&'a RawValue>,
    }

    let raw = Box::<RawValue>::deserialize(deserializer)?;
    let items: Vec<&RawValue> = parse(raw.get()).unwrap_or_default();
    let mut values = Vec::new();
    for item in items {
        values.extend(parse::<ValueLine>(item.get()));
        let group: Option<Group<'_>> = parse(item.get());
        values.extend(list::<ValueLine>(group.and_then(|group| group.options)));
    }
    Ok(values)
}

/// An entry of a plan.
#[derive(Deserialize)]
pub(crate) struct PlanLine {
    pub(crate) content: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) status: Option<String>,
}

/// Parses a list of a part that is repaired, and skips items that are unreadable.
pub(crate) fn list<T: for<'a> Deserialize<'a>>(raw: Option<&RawValue>) -> Vec<T> {
    raw.and_then(list_of).unwrap_or_default()
}

/// Parses a list as [`list`]; `None` if it is none.
pub(crate) fn list_of<T: for<'a> Deserialize<'a>>(raw: &RawValue) -> Option<Vec<T>> {
    let items: Vec<&RawValue> = parse(raw.get())?;
    Some(items.iter().filter_map(|item| parse(item.get())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read_one_level_deep() {
        // Made by hand.
        let deep = [r#"{"options":["#.repeat(50_000), "]}".repeat(50_000)].concat();
        let line = format!(
            r#"{{"configOptions":[{{"options":[{{"value":"a"}},{{"options":[{{"value":"b"}},{deep}]}},{deep},7]}}]}}"#
        );
        let opened: Opened = parse(&line).unwrap();
        let values = opened.config_options[0].values();
        let values: Vec<_> = values.filter_map(|line| line.value.as_deref()).collect();
        assert_eq!(values, ["a", "b"]);
    }
}
