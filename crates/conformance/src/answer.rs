//! Answers to the questions of a CLI.

use serde_json::json;
use teamster::{PermissionAnswer, PermissionPolicy, PermissionRequest};

/// Returns the policy that gives this answer to all questions.
pub(crate) fn answering(answer: &str) -> PermissionPolicy {
    let answer = answer.to_owned();
    PermissionPolicy::decide(move |request| answered(request, &answer))
}

/// Answers a request: a question in every field of its form, and anything else by permission.
fn answered(request: &PermissionRequest, answer: &str) -> PermissionAnswer {
    let form = request.schema.as_ref();
    let fields = form.and_then(|schema| schema["properties"].as_object());
    let Some(fields) = fields else {
        return PermissionAnswer::Allow;
    };
    let content = fields.iter().map(|(name, schema)| {
        let value = match schema["type"].as_str() {
            Some("boolean") => true.into(),
            Some("array") => json!([answer]),
            _ => answer.into(),
        };
        (name.clone(), value)
    });
    PermissionAnswer::AllowWith(content.collect())
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
        let tool = PermissionRequest::new(2, "x", ToolKind::Other, json!({"command": "ls"}));
        assert_eq!(answered(&tool, "Yes"), PermissionAnswer::Allow);
    }
}
