//! Answers to the questions of a CLI.

use serde_json::{Value, json};
use teamster::{PermissionAnswer, PermissionPolicy, PermissionRequest};

/// Returns the policy that gives this answer to all questions.
pub(crate) fn answering(answer: &str) -> PermissionPolicy {
    let answer = answer.to_owned();
    PermissionPolicy::decide(move |request| answered(request, &answer))
}

/// Answers a request: a question in every field of its form, and anything else by permission.
fn answered(request: &PermissionRequest, answer: &str) -> PermissionAnswer {
    let fields = request
        .schema
        .as_ref()
        .and_then(|schema| schema["properties"].as_object());
    if let Some(fields) = fields {
        let content = fields.iter().map(|(name, schema)| {
            let value = match schema["type"].as_str() {
                Some("boolean") => true.into(),
                Some("array") => json!([answer]),
                _ => answer.into(),
            };
            (name.clone(), value)
        });
        return PermissionAnswer::AllowWith(content.collect());
    }
    match request.input["questions"].as_array() {
        // Claude Code's own form: the tool's input with the answers, by question.
        Some(questions) if request.takes_input => {
            let mut input = request.input.clone();
            let asked = questions.iter().filter_map(|it| it["question"].as_str());
            input["answers"] = asked.map(|it| (it, Value::from(answer))).collect();
            PermissionAnswer::AllowWith(input)
        }
        _ => PermissionAnswer::Allow,
    }
}

#[cfg(test)]
mod tests {
    use teamster::ToolKind;

    use super::*;

    #[test]
    fn an_answer_has_the_form_of_its_question() {
        let mut form = PermissionRequest::new(1, "x", ToolKind::Other, json!(null));
        form.schema =
            Some(json!({"properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}}));
        let content = json!({"a": "Yes", "b": true});
        assert_eq!(answered(&form, "Yes"), PermissionAnswer::AllowWith(content));
        let asked = json!({"questions": [{"question": "Why?"}]});
        let mut tool = PermissionRequest::new(2, "x", ToolKind::Other, asked);
        assert_eq!(answered(&tool, "Yes"), PermissionAnswer::Allow);
        tool.takes_input = true;
        let input = json!({"questions": [{"question": "Why?"}], "answers": {"Why?": "Yes"}});
        assert_eq!(answered(&tool, "Yes"), PermissionAnswer::AllowWith(input));
    }
}
