//! Schemas of tools in the form that every model service takes.
//!
//! Clients pass the schemas of all their tools to their model in each request, so a keyword that its service refuses
//! fails every request, not a call. Gemini's API takes one `type` for a value, string enumerations, and neither
//! references nor formats of numbers; others refuse an object without `properties` or an array without `items`.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// Returns the schema of a tool's arguments: `type`, `description`, `properties`, `required`, `items` and `enum` alone.
/// An optional argument is one that is not in `required`.
pub(crate) fn arguments<T: JsonSchema>() -> Arc<JsonObject> {
    let settings = SchemaSettings::default().with(|it| it.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    Arc::new(object(plain(&schema.to_value())))
}

/// Reduces a schema without references to the keywords that every service takes.
fn plain(schema: &Value) -> Value {
    let mut out = JsonObject::new();
    // An optional value is the form that is not null.
    let forms = schema["anyOf"].as_array().into_iter().flatten();
    if let Some(form) = forms.filter(|it| it["type"] != "null").map(plain).next() {
        out.extend(object(form));
    }
    let described = out.remove("description");
    for word in ["type", "description", "required", "enum"] {
        if let Some(value) = schema.get(word) {
            out.insert(word.to_owned(), value.clone());
        }
    }
    if let Some(form) = described {
        // The form's description has the meanings of its values.
        let both = match out.get("description") {
            Some(own) => json!([words(own), words(&form)].join("\n")),
            None => form,
        };
        out.insert("description".to_owned(), both);
    }
    if let Some(types) = schema["type"].as_array() {
        let mut types = types.iter().filter(|it| *it != "null");
        out.insert("type".to_owned(), types.next().cloned().unwrap_or_default());
    }
    if let Some(constants) = schema["oneOf"].as_array() {
        out.extend(choice(schema, constants));
    }
    if let Some(properties) = schema["properties"].as_object() {
        let properties = properties.iter();
        let properties = properties.map(|(name, schema)| (name.clone(), plain(schema)));
        out.insert(
            "properties".to_owned(),
            properties.collect::<JsonObject>().into(),
        );
    }
    if let Some(items) = schema.get("items") {
        out.insert("items".to_owned(), plain(items));
    }
    // The schema of any JSON value has no type. Here it is that of another schema or of an input: an object.
    let kind = out.entry("type").or_insert_with(|| json!("object"));
    if kind == "object" {
        out.entry("properties").or_insert_with(|| json!({}));
    }
    out.into()
}

/// Returns the enumeration of these constants. The description lists theirs.
fn choice(schema: &Value, constants: &[Value]) -> JsonObject {
    let lines = constants.iter().map(|it| match &it["description"] {
        Value::String(about) => format!("{}: {about}", words(&it["const"])),
        _ => words(&it["const"]),
    });
    let lines: Vec<_> = std::iter::once(words(&schema["description"]))
        .chain(lines)
        .collect();
    let names: Value = constants.iter().map(|it| it["const"].clone()).collect();
    object(json!({"type": "string", "enum": names, "description": lines.join("\n").trim()}))
}

fn words(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the object that a value is, or an empty one.
pub(crate) fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// A choice.
    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    enum Mode {
        /// The first.
        OneWay,
        /// The second.
        Other,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Input {
        /// Needed.
        name: String,
        names: Option<Vec<String>>,
        /// A number.
        most: Option<u64>,
        #[serde(default)]
        usd: f64,
        /// How.
        mode: Option<Mode>,
        any: Option<Value>,
    }

    #[test]
    fn a_schema_is_reduced_to_what_every_service_takes() {
        let about = "How.\nA choice.\none-way: The first.\nother: The second.";
        let expected = json!({
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "description": "Needed."},
                "names": {"type": "array", "items": {"type": "string"}},
                "most": {"type": "integer", "description": "A number."},
                "usd": {"type": "number"},
                "mode": {"type": "string", "enum": ["one-way", "other"], "description": about},
                "any": {"type": "object", "properties": {}},
            },
        });
        assert_eq!(Value::Object((*arguments::<Input>()).clone()), expected);
    }
}
