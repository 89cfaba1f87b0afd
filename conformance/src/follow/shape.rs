//! The shape of output: which types of lines there are, and which fields they have.

use std::collections::BTreeSet;

use serde_json::Value;

/// Fields whose value tells what a line, or a part of it, is.
const KINDS: [&str; 3] = ["type", "subtype", "status"];
/// What is inside these is free: the input of tools, and what they give.
const FREE: [&str; 6] = [
    "input",
    "arguments",
    "args",
    "parameters",
    "output",
    "result",
];

/// One entry for each field of each type of line: `assistant: message.content[text].citations`.
pub(super) fn shapes(stdout: &[u8]) -> BTreeSet<String> {
    let mut shapes = BTreeSet::new();
    for line in stdout.split(|byte| *byte == b'\n') {
        if let Ok(value @ Value::Object(_)) = serde_json::from_slice(line) {
            let kind = kind(&value);
            shapes.insert(kind.clone());
            walk(&value, &format!("{kind}: "), &mut shapes);
        }
    }
    shapes
}

fn kind(value: &Value) -> String {
    let words: Vec<_> = KINDS
        .iter()
        .take(2)
        .filter_map(|field| value.get(field)?.as_str())
        .collect();
    words.join("/")
}

fn walk(value: &Value, path: &str, shapes: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = format!("{path}{name}");
                shapes.insert(path.clone());
                if !FREE.contains(&name.as_str()) {
                    walk(field, &format!("{path}."), shapes);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                let path = path.trim_end_matches('.');
                walk(item, &format!("{path}[{}].", kind(item)), shapes);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_its_place() {
        let line = br#"{"type":"a","subtype":"b","list":[{"type":"t","x":1}],"input":{"free":1}}"#;
        let shapes: Vec<_> = shapes(line).into_iter().collect();
        assert_eq!(
            shapes,
            [
                "a/b",
                "a/b: input",
                "a/b: list",
                "a/b: list[t].type",
                "a/b: list[t].x",
                "a/b: subtype",
                "a/b: type"
            ]
        );
    }

    #[test]
    fn what_is_no_json_has_no_shape() {
        assert!(shapes(b"plain\n[1]\n").is_empty());
    }
}
