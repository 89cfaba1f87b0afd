//! Schemas of tools that the real services refuse. One of them fails the whole request there, so it does here too.
//!
//! The messages are those of the services, as users of theirs have reported them.

use serde_json::Value;

use crate::json::{items, text_of};
use crate::protocol::Protocol;

/// Returns the service's message about the first tool in this request that it refuses.
pub(crate) fn refusal(protocol: Protocol, body: &Value) -> Option<String> {
    let tools = items(body, "tools");
    let mut numbered = tools.iter().enumerate();
    match protocol {
        Protocol::Gemini => numbered.flat_map(of_gemini).next(),
        Protocol::Anthropic => numbered.find_map(|(n, tool)| of_anthropic(n, tool)),
        Protocol::Chat | Protocol::Responses => tools.iter().find_map(of_openai),
    }
}

/// Gemini: a function's `parameters` are a message of a fixed form. `parametersJsonSchema` is a JSON Schema, whose
/// references the service does not follow.
fn of_gemini((n, tool): (usize, &Value)) -> Vec<String> {
    let functions = items(tool, "functionDeclarations").iter().enumerate();
    let refused = functions.filter_map(|(m, function)| {
        let at = format!("tools[{n}].function_declarations[{m}].parameters");
        in_proto(&at, &function["parameters"])
            .or_else(|| reference("", &function["parametersJsonSchema"]))
    });
    refused.collect()
}

fn in_proto(at: &str, schema: &Value) -> Option<String> {
    const UNKNOWN: [&str; 5] = ["$schema", "$ref", "$defs", "definitions", "const"];
    let fields = schema.as_object()?;
    let unknown = |what: &str, why: &str| {
        format!("Invalid JSON payload received. Unknown name \"{what}\" at '{at}': {why}")
    };
    if schema["type"].is_array() {
        let why = "Proto field is not repeating, cannot start list.";
        return Some(unknown("type", why));
    }
    if let Some(name) = UNKNOWN.iter().find(|name| fields.contains_key(**name)) {
        return Some(unknown(name, "Cannot find field."));
    }
    if let Some(value) = items(schema, "enum").iter().find(|it| !it.is_string()) {
        return Some(format!(
            "Invalid value at '{at}.enum[0]' (TYPE_STRING), {value}"
        ));
    }
    within(at, schema, &|at, schema| in_proto(at, schema))
}

/// Finds a reference, or definitions for some.
fn reference(at: &str, schema: &Value) -> Option<String> {
    let has = |name: &str| schema.get(name).is_some();
    if has("$ref") || has("$defs") {
        let at = if at.is_empty() { "" } else { &at[1..] };
        return Some(format!("reference to undefined schema at {at}"));
    }
    within(at, schema, &|at, schema| reference(at, schema))
}

/// Looks at the schemas within a schema, at paths in Gemini's form.
fn within(
    at: &str,
    schema: &Value,
    look: &dyn Fn(&str, &Value) -> Option<String>,
) -> Option<String> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut properties = properties
        .enumerate()
        .map(|(n, (_, schema))| (format!("{at}.properties[{n}].value"), schema));
    properties
        .find_map(|(at, schema)| look(&at, schema))
        .or_else(|| look(&format!("{at}.items"), schema.get("items")?))
        .or_else(|| {
            let mut forms = items(schema, "anyOf").iter().enumerate();
            forms.find_map(|(n, form)| look(&format!("{at}.any_of[{n}]"), form))
        })
}

/// Anthropic: the input is an object, without alternatives at its top.
fn of_anthropic(n: usize, tool: &Value) -> Option<String> {
    // A tool of the service itself has no schema.
    let schema = tool.get("input_schema")?;
    let at = format!("tools.{n}.custom.input_schema");
    if ["oneOf", "allOf", "anyOf"]
        .iter()
        .any(|word| schema.get(word).is_some())
    {
        return Some(format!(
            "{at}: input_schema does not support oneOf, allOf, or anyOf at the top level"
        ));
    }
    schema
        .get("type")
        .is_none()
        .then(|| format!("{at}.type: Field required"))
}

/// OpenAI: an object has properties, and an array has items.
fn of_openai(tool: &Value) -> Option<String> {
    // Chat Completions nests it in a field.
    let tool = tool.get("function").unwrap_or(tool);
    let schema = tool
        .get("parameters")
        .filter(|_| tool["type"] != "custom")?;
    let problem = |context: &str, problem: &str| {
        let name = text_of(tool, "name");
        format!("Invalid schema for function '{name}': In context=({context}), {problem}.")
    };
    if schema["type"] == "object" && schema.get("properties").is_none() {
        return Some(problem("", "object schema missing properties"));
    }
    let context = without_items("", schema)?;
    Some(problem(&context, "array schema missing items"))
}

/// Returns the context of an array without items.
fn without_items(at: &str, schema: &Value) -> Option<String> {
    let is_array =
        schema["type"] == "array" || items(schema, "type").iter().any(|it| it == "array");
    if is_array && schema.get("items").is_none() {
        return Some(at.to_owned());
    }
    let join = |step: String| match at {
        "" => step,
        at => format!("{at}, {step}"),
    };
    let mut properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .find_map(|(name, schema)| without_items(&join(format!("'properties', '{name}'")), schema))
        .or_else(|| without_items(&join("'items'".to_owned()), schema.get("items")?))
        .or_else(|| {
            let mut forms = items(schema, "anyOf").iter().enumerate();
            forms.find_map(|(n, form)| without_items(&join(format!("'anyOf', '{n}'")), form))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gemini(field: &str, schema: &Value) -> Option<String> {
        let function = json!({"name": "f", field: schema});
        let body = json!({"tools": [{"functionDeclarations": [function]}]});
        refusal(Protocol::Gemini, &body)
    }

    #[test]
    fn gemini_refuses_lists_of_types_and_references() {
        let object = |property: Value| json!({"type": "object", "properties": {"a": {"type": "string"}, "b": property}});
        let at = "tools[0].function_declarations[0].parameters";
        for (property, expected) in [
            (
                json!({"type": ["string", "null"]}),
                Some(
                    "Unknown name \"type\" at 'AT.properties[1].value': Proto field is not repeating, cannot start list.",
                ),
            ),
            (
                json!({"type": "array", "items": {"type": ["object", "null"]}}),
                Some(
                    "Unknown name \"type\" at 'AT.properties[1].value.items': Proto field is not repeating, cannot start list.",
                ),
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"const": "x"}]}),
                Some(
                    "Unknown name \"const\" at 'AT.properties[1].value.any_of[1]': Cannot find field.",
                ),
            ),
            (
                json!({"$ref": "#/$defs/X"}),
                Some("Unknown name \"$ref\" at 'AT.properties[1].value': Cannot find field."),
            ),
            (json!({"type": "string", "nullable": true}), None),
            (json!({"type": "string", "enum": ["a"]}), None),
        ] {
            let expected = expected
                .map(|it| format!("Invalid JSON payload received. {}", it.replace("AT", at)));
            assert_eq!(gemini("parameters", &object(property)), expected);
        }
        let number = gemini(
            "parameters",
            &object(json!({"type": "integer", "enum": [1]})),
        );
        assert!(number.unwrap().contains("TYPE_STRING"));
        // A JSON Schema may have lists of types, and no references.
        let schema = object(json!({"type": ["string", "null"]}));
        assert_eq!(gemini("parametersJsonSchema", &schema), None);
        let schema = object(json!({"$ref": "#/$defs/X"}));
        let refused = gemini("parametersJsonSchema", &schema).unwrap();
        assert_eq!(
            refused,
            "reference to undefined schema at properties[1].value"
        );
        let schema = json!({"type": "object", "properties": {}, "$defs": {}});
        assert!(gemini("parametersJsonSchema", &schema).is_some());
        assert_eq!(
            refusal(Protocol::Gemini, &json!({"tools": [{"googleSearch": {}}]})),
            None
        );
    }

    #[test]
    fn openai_refuses_objects_without_properties_or_array_items() {
        let array = json!({"type": "object", "properties": {"a": {"type": "array"}}});
        let nested = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "array"}}}});
        for (schema, context) in [
            (
                json!({"type": "object"}),
                Some("(), object schema missing properties"),
            ),
            (
                array,
                Some("('properties', 'a'), array schema missing items"),
            ),
            (
                nested,
                Some("('properties', 'a', 'items'), array schema missing items"),
            ),
            (json!({"type": "object", "properties": {}}), None),
            (json!({}), None),
        ] {
            let function = json!({"name": "f", "parameters": schema});
            let chat = json!({"tools": [{"type": "function", "function": function}]});
            let responses =
                json!({"tools": [{"type": "function", "name": "f", "parameters": schema}]});
            let expected =
                context.map(|it| format!("Invalid schema for function 'f': In context={it}."));
            assert_eq!(refusal(Protocol::Chat, &chat), expected);
            assert_eq!(refusal(Protocol::Responses, &responses), expected);
        }
    }

    #[test]
    fn anthropic_refuses_alternatives_at_the_top() {
        let of = |schema: Value| {
            let tools = json!([{"type": "web_search_20250305", "name": "w"}, {"name": "f", "input_schema": schema}]);
            refusal(Protocol::Anthropic, &json!({"tools": tools}))
        };
        let any = json!({"type": "object", "anyOf": [{"required": ["a"]}]});
        let expected = "tools.1.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level";
        assert_eq!(of(any).as_deref(), Some(expected));
        assert_eq!(
            of(json!({"properties": {}})).as_deref(),
            Some("tools.1.custom.input_schema.type: Field required")
        );
        assert_eq!(of(json!({"type": "object"})), None);
        assert_eq!(refusal(Protocol::Anthropic, &json!({})), None);
    }
}
