//! Names of lines in the schema of a CLI's program, and those that the provider's code lacks.

mod app_server;
mod zod;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;
use teamster_mock_model::Cli;

use super::no_lines::is_no_line;
use app_server::AppServer;

/// Maximum length of a name, in bytes.
const LONGEST: usize = 64;

/// Returns the types of lines in an installation's own schema, or the reason why there is none.
pub(super) fn names(
    cli: Cli,
    modules: &Path,
    program: &Path,
    unpacked: &Path,
) -> Result<BTreeSet<String>, String> {
    let found = match cli {
        Cli::Claude => all_of(modules, "claude-code", is_program, zod::lines),
        Cli::Codex => AppServer::of(program).map(|found| found.names),
        Cli::Copilot => match all_of(modules, "copilot", is_event_schema, of_json_schema) {
            Ok(names) if names.is_empty() => all_of(unpacked, "", is_event_schema, of_json_schema),
            found => found,
        },
        Cli::Gemini => all_of(modules, "gemini-cli", is_script, of_enum),
        Cli::OpenCode => all_of(modules, "opencode", is_program, of_updates),
        _ => return Err("not read".to_owned()),
    };
    match found {
        Ok(names) if names.is_empty() => Err("no schema was found in the program".to_owned()),
        Ok(names) => Ok(names),
        Err(error) => Err(format!("{error:#}")),
    }
}

/// Returns the fields and values of a version's own schema that the nearest older known version has not, with that
/// version. `None` for a CLI whose schema is read for its lines only.
pub(super) fn new_fields(
    cli: Cli,
    version: &str,
    program: &Path,
) -> anyhow::Result<Option<(String, BTreeSet<String>)>> {
    match cli {
        Cli::Codex => app_server::keep(version, &AppServer::of(program)?.fields),
        _ => Ok(None),
    }
}

/// Returns the names that the provider's code does not contain, as a text or as the name of a variant.
pub(super) fn unhandled(cli: Cli, names: &BTreeSet<String>) -> anyhow::Result<BTreeSet<String>> {
    let crates = crate::root().join("crates");
    let mut sources = String::new();
    for name in [cli.id(), "acp"] {
        let folder = crates.join(name).join("src");
        for path in files(&folder)? {
            let is_test = path.components().any(|part| part.as_os_str() == "tests");
            if path.extension().is_some_and(|end| end == "rs") && !is_test {
                sources.push_str(&fs::read_to_string(&path)?);
            }
        }
    }
    let mut lacking = lacking(cli, &sources, names);
    lacking.retain(|name| !is_no_line(cli, name));
    Ok(lacking)
}

/// Returns the names that some source code does not contain.
fn lacking(cli: Cli, sources: &str, names: &BTreeSet<String>) -> BTreeSet<String> {
    let is_handled = |name: &&String| {
        // For a type with subtypes a line is `system/init`, and code contains the subtype. A method of Codex
        // is `item/started`, which is one name.
        let word = match cli {
            Cli::Codex => name.strip_prefix("item:").unwrap_or(name),
            _ => name.rsplit(['/', ':']).next().unwrap_or(name),
        };
        // Codex's items have different names in sessions and in runs.
        [word, name.as_str(), &*with_underscores(word)]
            .iter()
            .any(|word| sources.contains(&format!("\"{word}\"")))
            || has_word(sources, &variant(word))
    };
    names
        .iter()
        .filter(|name| !is_handled(name))
        .cloned()
        .collect()
}

fn has_word(text: &str, word: &str) -> bool {
    let boundary = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    text.match_indices(word).any(|(at, _)| {
        boundary(text[..at].chars().next_back()) && boundary(text[at + word.len()..].chars().next())
    })
}

/// Converts a name such as `agentMessage` to `agent_message`.
fn with_underscores(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            words.push('_');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

/// Converts a name such as `agent_message` or `agentMessage` to that of an enum variant.
fn variant(name: &str) -> String {
    let mut variant = String::new();
    let mut upper = true;
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            variant.push(if upper { c.to_ascii_uppercase() } else { c });
            upper = false;
        } else {
            upper = true;
        }
    }
    variant
}

/// Reads all wanted files of an installation.
fn all_of(
    folder: &Path,
    package: &str,
    wanted: fn(&Path) -> bool,
    read: fn(&[u8]) -> BTreeSet<String>,
) -> anyhow::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    if !folder.exists() {
        return Ok(names);
    }
    for path in files(folder)? {
        if path.to_string_lossy().contains(package) && wanted(&path) {
            names.extend(read(&fs::read(&path)?));
        }
    }
    Ok(names)
}

/// Returns whether a file is a native program or a bundle of about that size.
fn is_program(path: &Path) -> bool {
    const SMALLEST: u64 = 5_000_000;
    fs::metadata(path).is_ok_and(|it| it.len() > SMALLEST)
}

fn is_script(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "js")
}

fn is_event_schema(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name == "session-events.schema.json")
}

/// Returns all files below a folder, without symbolic links.
pub(super) fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            found.append(&mut files(&entry.path())?);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Returns the name at the beginning of a text: lower case, digits, `_`, `.`, `-`.
fn name(text: &[u8]) -> Option<(String, usize)> {
    let is_name =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.-".contains(byte);
    let length = text.iter().take(LONGEST).position(|byte| !is_name(byte))?;
    let name = std::str::from_utf8(&text[..length]).ok()?;
    (!name.is_empty()).then(|| (name.to_owned(), length))
}

/// Returns the types of Gemini's events: `JsonStreamEventType2["INIT"] = "init"`.
fn of_enum(bytes: &[u8]) -> BTreeSet<String> {
    const ASSIGNED: &[u8] = b"] = \"";
    let all = matches(bytes, b"JsonStreamEventType").into_iter();
    all.filter_map(|at| {
        let near = &bytes[at..bytes.len().min(at + LONGEST)];
        let then = *matches(near, ASSIGNED).first()?;
        Some(name(&near[then + ASSIGNED.len()..])?.0)
    })
    .collect()
}

/// Returns OpenCode's updates of the Agent Client Protocol: `sessionUpdate:"plan"`.
fn of_updates(bytes: &[u8]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for at in matches(bytes, b"sessionUpdate:") {
        let rest = bytes[at + b"sessionUpdate:".len()..].trim_ascii_start();
        if let Some((name, _)) = rest.strip_prefix(b"\"").and_then(name) {
            names.insert(name);
        }
    }
    names
}

/// Returns the events of a JSON schema: each constant of a field `type`.
fn of_json_schema(bytes: &[u8]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if let Ok(schema) = serde_json::from_slice(bytes) {
        constants(&schema, "type", &mut names);
    }
    // Parts of events have types, too. The type of an event contains a dot.
    names.retain(|name| name.contains('.'));
    names
}

/// Adds the constants of a field with this name anywhere in a schema.
fn constants(schema: &Value, field: &str, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            let property = fields.get("properties").and_then(|all| all.get(field));
            let values = property.into_iter().flat_map(values_of);
            names.extend(values.map(str::to_owned));
            for inner in fields.values() {
                constants(inner, field, names);
            }
        }
        Value::Array(items) => {
            for item in items {
                constants(item, field, names);
            }
        }
        _ => {}
    }
}

/// Returns the constants that a schema allows.
fn values_of(schema: &Value) -> impl Iterator<Item = &str> {
    let one = schema.get("const").into_iter();
    let several = schema["enum"].as_array().into_iter().flatten();
    one.chain(several).filter_map(Value::as_str)
}

/// Returns the offsets of a text, in bytes.
fn matches(bytes: &[u8], text: &[u8]) -> Vec<usize> {
    memchr::memmem::find_iter(bytes, text).collect()
}

#[cfg(test)]
mod tests {
    //! Hand-made pieces of programs and schemas.

    use serde_json::json;

    use super::*;

    fn list(names: &BTreeSet<String>) -> Vec<&str> {
        names.iter().map(String::as_str).collect()
    }

    #[test]
    fn the_decoder_covers_claude_codes_own_schema() {
        // Types of 2.1.330, also for its own screens.
        let names = [
            "active_goal",
            "apply_flag_settings",
            "attachment",
            "autocompact_state",
            "hint_clears",
            "interruptible_tool_in_progress",
            "open_message_selector",
            "os_notification",
            "refusal_continuation",
            "response_length",
            "set_expanded_view",
            "set_in_progress_tool_use_ids",
            "stream_mode",
            "one_that_is_new",
        ]
        .map(str::to_owned)
        .into();
        let lacking = unhandled(Cli::Claude, &names).unwrap();
        assert_eq!(list(&lacking), ["one_that_is_new"]);
    }

    #[test]
    fn enums_and_updates_give_their_names() {
        let bundle =
            br#"JsonStreamEventType2["INIT"] = "init"; JsonStreamEventType2["RESULT"] = "result";
            if (x === JsonStreamEventType.INIT) {}"#;
        assert_eq!(list(&of_enum(bundle)), ["init", "result"]);
        let program = br#"{sessionUpdate:"plan"},{sessionUpdate: "tool_call"},{sessionUpdate:x}"#;
        assert_eq!(list(&of_updates(program)), ["plan", "tool_call"]);
    }

    #[test]
    fn json_schemas_give_the_constants_of_a_type() {
        let schema = json!({"anyOf": [
            {"properties": {"type": {"const": "session.start"}}},
            {"properties": {"type": {"enum": ["tool.done"]}, "data": {"properties": {"type": {"const": "text"}}}}},
        ]});
        let bytes = schema.to_string().into_bytes();
        assert_eq!(
            list(&of_json_schema(&bytes)),
            ["session.start", "tool.done"]
        );
    }

    #[test]
    fn a_name_is_handled_as_a_text_or_as_a_variant() {
        let sources =
            r#"match kind { "task_started" => 1, Kind::AgentMessage => 2, "item/started" => 3 }"#;
        let names = [
            "system/task_started",
            "system/new_one",
            "item:agentMessage",
            "item:agentMessageNew",
            "agent_message",
            "item/started",
        ]
        .map(str::to_owned)
        .into();
        assert_eq!(
            list(&lacking(Cli::Claude, sources, &names)),
            ["item:agentMessageNew", "system/new_one"]
        );
        // A method of Codex must occur with its full name.
        let sources = r#""item/started" | "started" | "web_search""#;
        let names = ["item/started", "turn/started", "item:webSearch"];
        assert_eq!(
            list(&lacking(
                Cli::Codex,
                sources,
                &names.map(str::to_owned).into()
            )),
            ["turn/started"]
        );
    }
}
