//! The meaning of a configuration file, independent of its formatting.

use serde_json::{Number, Value};

/// A value of a configuration file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Text(String),
    /// For JSON the literal text, for TOML the formatted value.
    Number(String),
    /// A boolean, null or a date.
    Other(String),
    List(Vec<Node>),
    /// For JSON in the order of the text, with duplicates. Sorted for TOML, where a table may have several parts.
    Table(Vec<(String, Node)>),
}

impl Node {
    /// Returns the value of a key of this table.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Node::Table(entries) => entries
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, node)| node),
            _ => None,
        }
    }

    /// Returns the entries with this name in the table `key`. Duplicate names are possible.
    pub(super) fn entries<'a>(
        &'a self,
        key: &str,
        name: &'a str,
    ) -> impl Iterator<Item = &'a Node> {
        let entries = match self.get(key) {
            Some(Node::Table(entries)) => entries.as_slice(),
            _ => &[],
        };
        entries
            .iter()
            .filter(move |(other, _)| other == name)
            .map(|(_, node)| node)
    }

    /// Returns a copy without these entries of the table `key`, and without that table if it is then empty.
    pub(super) fn without(&self, key: &str, names: &[&str]) -> Node {
        let Node::Table(top) = self else {
            return self.clone();
        };
        let mut left = Vec::with_capacity(top.len());
        for (name, node) in top {
            let node = match node {
                Node::Table(entries) if name == key => {
                    let mut entries = entries.clone();
                    entries.retain(|(name, _)| !names.contains(&name.as_str()));
                    if entries.is_empty() {
                        continue;
                    }
                    Node::Table(entries)
                }
                _ => node.clone(),
            };
            left.push((name.clone(), node));
        }
        Node::Table(left)
    }

    /// Returns whether the node is equal to this value, in any order of keys.
    pub(super) fn same_as(&self, value: &Value) -> bool {
        self.holds(value, false)
    }

    /// Returns whether the node is this value, possibly with further keys inside.
    pub(super) fn is_still(&self, value: &Value) -> bool {
        // Every entry contains one without keys, so no further keys are allowed here.
        self.holds(
            value,
            value.as_object().is_some_and(|object| !object.is_empty()),
        )
    }

    fn holds(&self, value: &Value, more_allowed: bool) -> bool {
        match (self, value) {
            (Node::Text(text), Value::String(value)) => text == value,
            (Node::Number(text), Value::Number(value)) => same_number(text, value),
            (Node::Other(text), Value::Bool(value)) => *text == value.to_string(),
            (Node::Other(text), Value::Null) => text == "null",
            (Node::List(nodes), Value::Array(values)) => {
                nodes.len() == values.len()
                    && nodes
                        .iter()
                        .zip(values)
                        .all(|(node, value)| node.holds(value, more_allowed))
            }
            (Node::Table(entries), Value::Object(values)) => {
                (more_allowed || entries.len() == values.len())
                    && values.iter().all(|(key, value)| {
                        let mut found = entries.iter().filter(|(name, _)| name == key);
                        found
                            .next()
                            .is_some_and(|(_, node)| node.holds(value, more_allowed))
                            && found.next().is_none()
                    })
            }
            _ => false,
        }
    }
}

/// Returns whether a literal has this value. Integers are compared exactly.
fn same_number(text: &str, value: &Number) -> bool {
    if text == value.to_string() {
        return true;
    }
    let Ok(number) = text.parse::<Number>() else {
        return false;
    };
    number == *value || (value.is_f64() || number.is_f64()) && number.as_f64() == value.as_f64()
}
