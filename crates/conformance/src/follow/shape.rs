//! Shapes of output: types of lines and their fields.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::results::ShapeChanges;

/// Fields whose value is the type of a line or of a part of it.
const KINDS: [&str; 2] = ["type", "subtype"];
/// Fields with free content: the input and output of tools.
const FREE: [&str; 6] = [
    "input",
    "arguments",
    "args",
    "parameters",
    "output",
    "result",
];

/// Fields with free field names: those of models.
const MAPS: [&str; 3] = ["models", "modelUsage", "model_usage_since_last_result"];

/// Shapes of some output, each with its JSON types. The shape of a type of line is like `assistant`, that of
/// a field like `assistant: message.content[text].citations`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Shapes(pub(super) BTreeMap<String, BTreeSet<&'static str>>);

impl Shapes {
    /// Returns the shapes of lines of JSON. Other lines have none.
    pub(super) fn of(stdout: &[u8]) -> Self {
        let mut shapes = Self::default();
        for line in stdout.split(|byte| *byte == b'\n') {
            if let Ok(value @ Value::Object(_)) = serde_json::from_slice(line) {
                let kind = kind(&value);
                shapes.add(kind.clone(), &value);
                shapes.walk(&value, &format!("{kind}: "));
            }
        }
        shapes
    }

    /// Adds the shapes of another output.
    pub(super) fn append(&mut self, other: Self) {
        for (shape, types) in other.0 {
            self.0.entry(shape).or_default().extend(types);
        }
    }

    /// Returns the types of lines only.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.0
            .keys()
            .map(String::as_str)
            .filter(|shape| !shape.contains(": "))
    }

    fn add(&mut self, shape: String, value: &Value) {
        self.0.entry(shape).or_default().insert(json_type(value));
    }

    fn walk(&mut self, value: &Value, path: &str) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let path = format!("{path}{name}");
                    self.add(path.clone(), field);
                    if MAPS.contains(&name.as_str())
                        && let Value::Object(named) = field
                    {
                        for one in named.values() {
                            self.walk(one, &format!("{path}.*."));
                        }
                    } else if !FREE.contains(&name.as_str()) {
                        self.walk(field, &format!("{path}."));
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    let path = path.trim_end_matches('.');
                    self.walk(item, &format!("{path}[{}].", kind(item)));
                }
            }
            _ => {}
        }
    }
}

fn kind(value: &Value) -> String {
    let words: Vec<_> = KINDS
        .iter()
        .filter_map(|field| value.get(field)?.as_str())
        .collect();
    if !words.is_empty() {
        return words.join("/");
    }
    // A message of JSON-RPC has a method, and its updates have names.
    let Some(method) = value.get("method").and_then(Value::as_str) else {
        return String::new();
    };
    let update = &value["params"]["update"]["sessionUpdate"];
    match update.as_str() {
        Some(update) => format!("{method}/{update}"),
        None => method.to_owned(),
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Compares the shapes of a version with `known`, those of all known versions, and with `same`, those of a
/// known version in the same scenarios. Only the latter can reveal missing shapes.
pub(super) fn compare(now: &Shapes, known: &Shapes, same: &Shapes) -> ShapeChanges {
    let mut changed = BTreeSet::new();
    for (shape, types) in &now.0 {
        let Some(before) = known.0.get(shape) else {
            continue;
        };
        let typed = |types: &BTreeSet<&'static str>| -> BTreeSet<&'static str> {
            types
                .iter()
                .copied()
                .filter(|name| *name != "null")
                .collect()
        };
        let (types, before) = (typed(types), typed(before));
        if !types.is_empty() && !before.is_empty() && types.is_disjoint(&before) {
            let words = |types: BTreeSet<&str>| types.into_iter().collect::<Vec<_>>().join(" or ");
            changed.insert(format!("{shape}: {}, was {}", words(types), words(before)));
        }
    }
    ShapeChanges {
        unknown: BTreeSet::new(),
        new: missing(now, known),
        changed,
        vanished: missing(same, now),
    }
}

/// Returns the types of lines, and fields by name with their types of lines, that are in `all` but not in
/// `there`. Fields of missing types of lines and fields within missing fields are omitted.
fn missing(all: &Shapes, there: &Shapes) -> BTreeSet<String> {
    let is_missing = |shape: &str| all.0.contains_key(shape) && !there.0.contains_key(shape);
    let mut fields: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for shape in all.0.keys().filter(|shape| is_missing(shape)) {
        let Some((kind, field)) = shape.split_once(": ") else {
            continue;
        };
        let outer = field
            .match_indices(['.', '['])
            .any(|(at, _)| is_missing(&format!("{kind}: {}", &field[..at])));
        if !outer && !is_missing(kind) {
            fields.entry(field).or_default().insert(kind);
        }
    }
    let lines = all.lines().filter(|shape| is_missing(shape));
    let lines = lines.map(|line| format!("line {line}"));
    let fields = fields.into_iter().map(|(field, kinds)| {
        let kinds: Vec<_> = kinds.into_iter().collect();
        format!("field {field} of {}", kinds.join(", "))
    });
    lines.chain(fields).collect()
}

#[cfg(test)]
mod tests {
    //! Hand-made lines.

    use super::*;

    fn names(set: &BTreeSet<String>) -> Vec<&str> {
        set.iter().map(String::as_str).collect()
    }

    #[test]
    fn every_field_has_its_path_and_its_type() {
        let line = br#"{"type":"a","subtype":"b","list":[{"type":"t","x":1}],"input":{"free":1}}"#;
        let shapes = Shapes::of(line);
        let shapes: Vec<_> = shapes
            .0
            .iter()
            .map(|(shape, types)| (shape.as_str(), types.iter().copied().collect::<Vec<_>>()))
            .collect();
        assert_eq!(
            shapes,
            [
                ("a/b", vec!["object"]),
                ("a/b: input", vec!["object"]),
                ("a/b: list", vec!["array"]),
                ("a/b: list[t].type", vec!["string"]),
                ("a/b: list[t].x", vec!["number"]),
                ("a/b: subtype", vec!["string"]),
                ("a/b: type", vec!["string"]),
            ]
        );
        assert_eq!(Shapes::of(b"plain\n[1]\n"), Shapes::default());
        let update = br#"{"method":"session/update","params":{"update":{"sessionUpdate":"plan"}}}"#;
        assert_eq!(
            Shapes::of(update).lines().collect::<Vec<_>>(),
            ["session/update/plan"]
        );
        let stats = Shapes::of(br#"{"type":"result","models":{"m-1":{"in":1}}}"#);
        assert!(stats.0.contains_key("result: models.*.in"));
    }

    #[test]
    fn new_and_vanished_fields_are_reported_once() {
        let known = Shapes::of(
            b"{\"type\":\"a\",\"x\":1,\"old\":{\"in\":1}}\n{\"type\":\"b\",\"x\":1}\n{\"type\":\"gone\",\"y\":1}\n\
              {\"type\":\"elsewhere\"}\n",
        );
        let same = Shapes::of(
            b"{\"type\":\"a\",\"x\":1,\"old\":{\"in\":1}}\n{\"type\":\"b\",\"x\":1}\n{\"type\":\"gone\",\"y\":1}\n",
        );
        let now = Shapes::of(
            b"{\"type\":\"a\",\"x\":1,\"cost\":{\"in\":[{\"type\":\"t\"}]}}\n{\"type\":\"b\",\"x\":1,\"cost\":2}\n\
              {\"type\":\"new\",\"z\":1}\n",
        );
        let changes = compare(&now, &known, &same);
        assert_eq!(names(&changes.new), ["field cost of a, b", "line new"]);
        assert_eq!(names(&changes.vanished), ["field old of a", "line gone"]);
        assert!(changes.changed.is_empty());
        assert!(compare(&now, &now, &now).is_empty());
    }

    #[test]
    fn another_json_type_is_a_change_and_null_is_none() {
        let known = Shapes::of(b"{\"type\":\"a\",\"x\":1,\"y\":null,\"z\":\"s\"}\n");
        let now = Shapes::of(b"{\"type\":\"a\",\"x\":{},\"y\":2,\"z\":null}\n");
        let changes = compare(&now, &known, &known);
        assert_eq!(names(&changes.changed), ["a: x: object, was number"]);
    }
}
