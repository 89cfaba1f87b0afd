//! Codex's schema, which its program writes: methods, types of items, and their fields and values.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use serde_json::Value;

use super::{constants, files, values_of};
use crate::install;

/// Notifications whose fields and values are compared between versions: those that become events.
const ROOTS: [&str; 8] = [
    "ErrorNotification",
    "HookCompletedNotification",
    "ItemCompletedNotification",
    "ItemStartedNotification",
    "McpServerStatusUpdatedNotification",
    "ThreadTokenUsageUpdatedNotification",
    "TurnCompletedNotification",
    "TurnPlanUpdatedNotification",
];

/// Names in the schema of an installation.
#[derive(Debug, Default)]
pub(super) struct AppServer {
    /// Notifications, requests, and types of items (`item:agentMessage`).
    pub(super) names: BTreeSet<String>,
    /// Fields and values of what becomes events, such as `ThreadItem/agentMessage.moderation` and
    /// `CodexErrorInfo=bioPolicy`.
    pub(super) fields: BTreeSet<String>,
}

impl AppServer {
    /// Reads the schema that a program writes. It is empty if the program cannot write any.
    pub(super) fn of(program: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let status = Command::new(program)
            .args(["app-server", "generate-json-schema", "--out"])
            .arg(folder.path().join("schema"))
            .env("CODEX_HOME", folder.path())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut found = Self::default();
        if !status.status.success() {
            return Ok(found);
        }
        for path in files(&folder.path().join("schema"))? {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            if ["ServerNotification.json", "ServerRequest.json"].contains(&&*file) {
                let schema: Value = serde_json::from_slice(&fs::read(&path)?)?;
                constants(&schema, "method", &mut found.names);
                let item = &schema["definitions"]["ThreadItem"];
                for variant in item["oneOf"].as_array().into_iter().flatten() {
                    let items = values_of(&variant["properties"]["type"]);
                    found.names.extend(items.map(|item| format!("item:{item}")));
                }
                if file == "ServerNotification.json" {
                    found.fields = fields(&schema);
                }
            }
        }
        Ok(found)
    }
}

/// Returns the fields and values of [`ROOTS`] and of all types in them.
fn fields(schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut seen: BTreeSet<String> = ROOTS.map(str::to_owned).into();
    let mut left: Vec<String> = seen.iter().cloned().collect();
    while let Some(name) = left.pop() {
        let mut types = BTreeSet::new();
        walk(&schema["definitions"][&name], &name, &mut found, &mut types);
        left.extend(types.into_iter().filter(|name| seen.insert(name.clone())));
    }
    found
}

/// Adds the fields and values of a type, and the names of the types in it. The type of a variant is a part of its
/// name.
fn walk(schema: &Value, name: &str, found: &mut BTreeSet<String>, types: &mut BTreeSet<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        types.extend(reference.rsplit('/').next().map(str::to_owned));
    }
    let kind = values_of(&schema["properties"]["type"]).next();
    let name = kind.map_or_else(|| name.to_owned(), |kind| format!("{name}/{kind}"));
    found.extend(values_of(schema).map(|value| format!("{name}={value}")));
    for (field, inner) in schema["properties"].as_object().into_iter().flatten() {
        if kind.is_some() && field == "type" {
            continue;
        }
        let path = format!("{name}.{field}");
        walk(inner, &path, found, types);
        found.insert(path);
    }
    let inner = ["items", "additionalProperties"].map(|field| &schema[field]);
    let lists = ["oneOf", "anyOf", "allOf"].map(|list| schema[list].as_array());
    let variants = lists.into_iter().flatten().flatten();
    let all = inner.into_iter().chain(variants);
    for inner in all.filter(|inner| inner.is_object()) {
        walk(inner, &name, found, types);
    }
}

/// Returns the folder of the fields and values of known versions, one file each.
fn folder() -> PathBuf {
    crate::here().join("schema/codex")
}

/// Keeps the fields and values of a version. Returns the nearest older version that is kept, with the fields and values
/// that it has not.
pub(super) fn keep(
    version: &str,
    fields: &BTreeSet<String>,
) -> anyhow::Result<Option<(String, BTreeSet<String>)>> {
    if fields.is_empty() {
        return Ok(None);
    }
    fs::create_dir_all(folder())?;
    let lines: String = fields.iter().map(|field| field.clone() + "\n").collect();
    fs::write(folder().join(format!("{version}.txt")), lines)?;
    let mut older = Vec::new();
    for path in files(&folder())? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if install::is_older(&name, version) {
            older.push((install::numbers(&name), name.into_owned()));
        }
    }
    let Some((_, older)) = older.into_iter().max() else {
        return Ok(None);
    };
    let before = fs::read_to_string(folder().join(format!("{older}.txt")))?;
    let before: BTreeSet<&str> = before.lines().collect();
    let new = fields
        .iter()
        .filter(|field| !before.contains(field.as_str()));
    Ok(Some((older, new.cloned().collect())))
}

#[cfg(test)]
mod tests {
    //! A hand-made schema, in the form of the CLI's.

    use serde_json::json;

    use super::*;

    #[test]
    fn fields_and_values_of_events_are_named_by_their_types() {
        let schema = json!({"definitions": {
            "ItemCompletedNotification": {"properties": {"item": {"$ref": "#/definitions/ThreadItem"}}},
            "ThreadItem": {"oneOf": [{"properties": {
                "type": {"enum": ["agentMessage"]},
                "text": {"type": "string"},
                "moderation": {"anyOf": [{"$ref": "#/definitions/Moderation"}, {"type": "null"}]},
            }}]},
            "Moderation": {"properties": {"mode": {"enum": ["hide", "show"], "type": "string"}}},
            "Unused": {"properties": {"x": {"type": "string"}}},
        }});
        let found = fields(&schema);
        let found: Vec<_> = found.iter().map(String::as_str).collect();
        assert_eq!(
            found,
            [
                "ItemCompletedNotification.item",
                "Moderation.mode",
                "Moderation.mode=hide",
                "Moderation.mode=show",
                "ThreadItem/agentMessage.moderation",
                "ThreadItem/agentMessage.text",
            ]
        );
    }
}
