//! Questions that agents ask their user as permission requests.
//!
//! The protocol has no other request that every client answers, so agents use one option for each choice. Such an
//! option gives no permission: taking one for the user would be an answer that the user never gave.

use serde_json::{Map, Value};
use teamster_core::provider::{ChoiceField, choice_form};

use crate::tool::PermissionOption;

/// A question of an agent to its user.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// The question, for people.
    pub message: String,
    /// JSON Schema of the answer.
    pub schema: Value,
}

/// The answer to a question, in the agent's form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// Id of the option to select.
    pub option: String,
    /// More fields of the response, beside the option.
    pub fields: Map<String, Value>,
}

/// Field of the answer with the name of the chosen option.
const CHOICE: &str = "choice";

impl Question {
    /// Creates a question whose answer has one field for each of these titles, with their choices. The fields have the
    /// [names](teamster_core::provider::form_names) of the titles.
    pub fn new<'a>(
        message: impl Into<String>,
        fields: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>,
    ) -> Self {
        let field = |(title, choices)| ChoiceField::new(title, choices);
        let fields: Vec<_> = fields.into_iter().map(field).collect();
        Self {
            message: message.into(),
            schema: choice_form(&fields),
        }
    }

    /// Returns the question of a request with several options that allow it once. A request for permission has one, or
    /// also one that allows more than this call: nothing is chosen for all later questions.
    pub fn of_options(request: &Value, options: &[PermissionOption]) -> Option<Self> {
        let allows_more = options.iter().any(|option| option.kind == "allow_always");
        let choices: Vec<&str> = choices(options).map(|it| it.name.as_str()).collect();
        (choices.len() > 1 && !allows_more).then(|| Self::of_choices(request, choices))
    }

    /// Creates the question of a request with these choices.
    pub fn of_choices(request: &Value, choices: Vec<&str>) -> Self {
        let title = request["title"].as_str().unwrap_or_default();
        let message = text_of(request).unwrap_or_else(|| title.to_owned());
        Self::new(message, [(CHOICE, choices)])
    }
}

impl Choice {
    /// Creates the choice of an option.
    pub fn new(option: impl Into<String>) -> Self {
        Self {
            option: option.into(),
            fields: Map::new(),
        }
    }

    /// Returns the choice that an answer to [`Question::of_choices`] names, by the name of an option.
    pub fn of_answer(answer: &Value, options: &[PermissionOption]) -> Option<Self> {
        let name = answer[CHOICE].as_str()?;
        let option = choices(options).find(|option| option.name == name)?;
        Some(Self::new(&*option.id))
    }
}

fn choices(options: &[PermissionOption]) -> impl Iterator<Item = &PermissionOption> {
    options.iter().filter(|option| option.kind == "allow_once")
}

/// Returns the text that a request displays.
pub(crate) fn text_of(request: &Value) -> Option<String> {
    let content = request["content"].as_array()?;
    let texts = content
        .iter()
        .filter_map(|item| item["content"]["text"].as_str());
    let text = texts.collect::<Vec<_>>().join("\n");
    Some(text).filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_that_can_be_allowed_for_ever_is_no_question() {
        let option = |id: &str, kind: &str| PermissionOption::new(id, id, kind);
        // The options of OpenHands 1.16.0.
        let permission = [
            option("accept", "allow_once"),
            option("reject", "reject_once"),
            option("always_proceed", "allow_always"),
            option("risk_based", "allow_once"),
        ];
        let request = json!({"title": "Which?"});
        assert_eq!(Question::of_options(&request, &permission), None);
        let choices = [permission[0].clone(), permission[3].clone()];
        let question = Question::of_options(&request, &choices).unwrap();
        let names = json!(["accept", "risk_based"]);
        assert_eq!(question.schema["properties"][CHOICE]["enum"], names);
    }
}
