//! The meaning of a configuration file, independent of its formatting.

use serde_json::{Number, Value};

/// A value of a configuration file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Text(String),
    /// As it is written in JSON; as it is shown for TOML.
    Number(String),
    /// A boolean, null or a date.
    Other(String),
    List(Vec<Node>),
    /// As it is written in JSON, with what is there twice; sorted for TOML, where a table may be in many places.
    Table(Vec<(String, Node)>),
}

impl Node {
    /// The value of a key of this table.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Node::Table(entries) => entries
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, node)| node),
            _ => None,
        }
    }

    /// The entries of this name in the table `key`: more than one if it is there twice.
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

    /// This without these entries of the table `key`, and without that table if nothing is left in it.
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

    /// Whether it is equal to this value, in any order of keys.
    pub(super) fn same_as(&self, value: &Value) -> bool {
        self.holds(value, false)
    }

    /// It is this value, perhaps with further keys inside.
    pub(super) fn is_still(&self, value: &Value) -> bool {
        // An entry without keys is in every other one, so here nothing may have come.
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

/// The same number, however it is written: whole numbers exactly.
fn same_number(text: &str, value: &Number) -> bool {
    if text == value.to_string() {
        return true;
    }
    let Ok(number) = text.parse::<Number>() else {
        return false;
    };
    number == *value || (value.is_f64() || number.is_f64()) && number.as_f64() == value.as_f64()
}
