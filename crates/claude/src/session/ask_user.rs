//! The tool with which the model asks its user to choose.

use serde_json::{Map, Value, json};
use teamster_core::PermissionAnswer;
use teamster_core::provider::{ChoiceField, choice_form, form_names};

/// Name of the tool.
pub(crate) const ASK_USER: &str = "AskUserQuestion";

/// Reason for the agent if a question has no answer.
const UNANSWERED: &str = "The user did not answer.";

/// Returns the text of the questions in the tool's input, and the JSON Schema of their answer.
pub(super) fn form(input: &Value) -> (String, Value) {
    let questions = questions(input);
    let texts = questions.iter().filter_map(|it| it["question"].as_str());
    let fields: Vec<_> = questions.iter().map(field).collect();
    (texts.collect::<Vec<_>>().join("\n"), choice_form(&fields))
}

/// Returns the response to the CLI: the tool runs with the answers in its input, or is denied.
pub(super) fn response(input: &Value, answer: &PermissionAnswer) -> Value {
    let reason = match answer {
        PermissionAnswer::AllowWith(content) => {
            if let Some(input) = answered(input, content) {
                return json!({"behavior": "allow", "updatedInput": input});
            }
            None
        }
        PermissionAnswer::Deny(reason) => reason.as_deref(),
        _ => None,
    };
    json!({"behavior": "deny", "message": reason.unwrap_or(UNANSWERED)})
}

/// Returns whether the answer has one of a question.
pub(super) fn is_answered(input: &Value, answer: &PermissionAnswer) -> bool {
    matches!(answer, PermissionAnswer::AllowWith(content) if answered(input, content).is_some())
}

/// Returns the tool's input with the answers, by the texts of the questions. Returns `None` if none is answered.
fn answered(input: &Value, content: &Value) -> Option<Value> {
    let questions = questions(input);
    let names = form_names(questions.iter().map(title));
    let answers: Map<String, Value> = (questions.iter().zip(&names))
        .filter_map(|(question, name)| {
            let chosen = match content.get(name)? {
                Value::String(text) => text.clone(),
                Value::Array(several) => {
                    let several = several.iter().filter_map(Value::as_str);
                    several.collect::<Vec<_>>().join(", ")
                }
                _ => return None,
            };
            let question = question["question"].as_str()?;
            Some((question.to_owned(), chosen.into()))
        })
        .collect();
    if answers.is_empty() {
        return None;
    }
    let mut input = input.as_object()?.clone();
    input.insert("answers".to_owned(), answers.into());
    Some(input.into())
}

fn questions(input: &Value) -> &[Value] {
    let questions = input["questions"].as_array();
    questions.map(Vec::as_slice).unwrap_or_default()
}

fn field(question: &Value) -> ChoiceField<'_> {
    let options = question["options"].as_array().into_iter().flatten();
    let labels = options.filter_map(|option| option["label"].as_str());
    let mut field = ChoiceField::new(title(question), labels.collect());
    field.multiple = question["multiSelect"] == true;
    field
}

/// Returns the heading of a question, or the question if it has none.
fn title(question: &Value) -> &str {
    let header = question["header"].as_str().filter(|it| !it.is_empty());
    header
        .or_else(|| question["question"].as_str())
        .unwrap_or_default()
}
