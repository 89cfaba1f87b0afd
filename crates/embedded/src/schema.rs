//! Validation of a value against a JSON Schema: types, required and additional properties, items, enumerations and
//! bounds. Other keywords are ignored.

use serde_json::Value;

/// Maximum depth of validation.
const DEPTH: usize = 64;

/// Returns a description of the first mismatch. `None` if the value is valid.
pub(crate) fn misfit(schema: &Value, value: &Value) -> Option<String> {
    at("", schema, value, schema, DEPTH)
}

fn at(path: &str, schema: &Value, value: &Value, root: &Value, depth: usize) -> Option<String> {
    let fields = schema.as_object()?;
    let depth = depth.checked_sub(1)?;
    if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(reference.strip_prefix('#')?)?;
        return at(path, target, value, root, depth);
    }
    let name = if path.is_empty() { "the input" } else { path };
    if let Some(types) = fields.get("type") {
        let is = |word: &Value| word.as_str().is_none_or(|word| is_type(word, value));
        let fits = match types {
            Value::Array(words) => words.iter().any(is),
            word => is(word),
        };
        if !fits {
            let wanted = types.to_string().replace('"', "");
            return Some(format!(
                "{name} must be of type {wanted}, not {}",
                type_of(value)
            ));
        }
    }
    if let Some(choices) = fields.get("enum").and_then(Value::as_array)
        && !choices.contains(value)
    {
        let choices: Vec<_> = choices.iter().map(Value::to_string).collect();
        return Some(format!("{name} must be one of {}", choices.join(", ")));
    }
    if let Some(only) = fields.get("const")
        && only != value
    {
        return Some(format!("{name} must be {only}"));
    }
    for (word, all) in [("anyOf", false), ("oneOf", false), ("allOf", true)] {
        let Some(schemas) = fields.get(word).and_then(Value::as_array) else {
            continue;
        };
        let mut misfits = schemas.iter().map(|it| at(path, it, value, root, depth));
        if all {
            if let Some(misfit) = misfits.flatten().next() {
                return Some(misfit);
            }
        } else if !schemas.is_empty() && misfits.all(|misfit| misfit.is_some()) {
            return Some(format!("{name} matches none of the allowed forms"));
        }
    }
    match value {
        Value::Object(object) => in_object(path, fields, object, root, depth),
        Value::Array(items) => {
            let bound = |name: &str| fields.get(name).and_then(Value::as_u64);
            let count = items.len() as u64;
            if bound("minItems").is_some_and(|least| count < least)
                || bound("maxItems").is_some_and(|most| count > most)
            {
                return Some(format!("{name} has {count} items, which is not allowed"));
            }
            let schema = fields.get("items")?;
            let mut items = items.iter().enumerate();
            items.find_map(|(index, item)| {
                at(&format!("{path}[{index}]"), schema, item, root, depth)
            })
        }
        Value::Number(number) => {
            let number = number.as_f64()?;
            let bound = |name: &str| fields.get(name).and_then(Value::as_f64);
            let fits = bound("minimum").is_none_or(|least| number >= least)
                && bound("maximum").is_none_or(|most| number <= most);
            (!fits).then(|| format!("{name} is {number}, which is not allowed"))
        }
        Value::String(text) => {
            let least = fields.get("minLength").and_then(Value::as_u64)?;
            ((text.chars().count() as u64) < least).then(|| format!("{name} is too short"))
        }
        _ => None,
    }
}

fn in_object(
    path: &str,
    fields: &serde_json::Map<String, Value>,
    object: &serde_json::Map<String, Value>,
    root: &Value,
    depth: usize,
) -> Option<String> {
    let of = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    let required = fields.get("required").and_then(Value::as_array);
    let mut required = required.into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.find(|name| !object.contains_key(*name)) {
        return Some(format!("{} is missing", of(missing)));
    }
    let properties = fields.get("properties").and_then(Value::as_object);
    for (name, value) in object {
        match properties.and_then(|properties| properties.get(name)) {
            Some(schema) => {
                if let Some(misfit) = at(&of(name), schema, value, root, depth) {
                    return Some(misfit);
                }
            }
            None => match fields.get("additionalProperties") {
                Some(Value::Bool(false)) => {
                    let known: Vec<_> = properties
                        .into_iter()
                        .flat_map(|properties| properties.keys())
                        .map(String::as_str)
                        .collect();
                    let known = known.join(", ");
                    return Some(format!("unknown field {}; available: {known}", of(name)));
                }
                Some(schema @ Value::Object(_)) => {
                    if let Some(misfit) = at(&of(name), schema, value, root, depth) {
                        return Some(misfit);
                    }
                }
                _ => {}
            },
        }
    }
    None
}

fn is_type(word: &str, value: &Value) -> bool {
    match word {
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0)
        }
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_mismatch_is_described() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1},
                "limit": {"type": "integer", "minimum": 1},
                "kind": {"enum": ["a", "b"]},
                "items": {"type": "array", "items": {"type": "object", "required": ["x"]}},
                "either": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/n"}]},
            },
            "required": ["path"],
            "additionalProperties": false,
            "$defs": {"n": {"type": "number"}},
        });
        let of = |value: Value| misfit(&schema, &value);
        assert_eq!(
            of(json!({"path": "p", "limit": 1, "kind": "a", "either": 2})),
            None
        );
        for (value, message) in [
            (json!("x"), "the input must be of type object, not string"),
            (json!({}), "path is missing"),
            (
                json!({"path": 1}),
                "path must be of type string, not number",
            ),
            (json!({"path": ""}), "path is too short"),
            (
                json!({"path": "p", "limit": 1.5}),
                "limit must be of type integer, not number",
            ),
            (
                json!({"path": "p", "limit": 0}),
                "limit is 0, which is not allowed",
            ),
            (
                json!({"path": "p", "kind": "c"}),
                "kind must be one of \"a\", \"b\"",
            ),
            (
                json!({"path": "p", "items": [{"x": 1}, {}]}),
                "items[1].x is missing",
            ),
            (
                json!({"path": "p", "either": []}),
                "either matches none of the allowed forms",
            ),
            (
                json!({"path": "p", "y": 1}),
                "unknown field y; available: path, limit, kind, items, either",
            ),
        ] {
            assert_eq!(of(value.clone()).as_deref(), Some(message), "{value}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_has_an_end() {
        let schema = json!({"$ref": "#"});
        assert_eq!(misfit(&schema, &json!({})), None);
    }
}
