//! Extracts file diffs from the arguments of editing tools.
//!
//! The arguments of the CLIs' tools take one of three forms: a path with an old and a new text, a path with the
//! whole text, or a patch.

use agent_client_protocol_schema::v1::Diff;
use serde_json::Value;

/// Argument names for the file's path (`PATH`), the replaced text (`OLD`), its replacement (`NEW`), the text of a
/// whole file (`WHOLE`) and a patch (`PATCH`).
const PATH: [&str; 6] = [
    "file_path",
    "filePath",
    "path",
    "absolute_path",
    "filename",
    "file",
];
const OLD: [&str; 4] = ["old_string", "oldString", "old_str", "oldText"];
const NEW: [&str; 4] = ["new_string", "newString", "new_str", "newText"];
const WHOLE: [&str; 4] = ["content", "contents", "file_text", "text"];
const PATCH: [&str; 4] = ["patchText", "patch", "input", "diff"];

/// Returns the diffs in the input of an editing tool.
pub(crate) fn from_input(input: &Value) -> Vec<Diff> {
    let mut found = Vec::new();
    let path = path_of(input);
    if let Some(path) = path {
        if let Some(edits) = input["edits"].as_array() {
            found.extend(edits.iter().filter_map(|edit| replaced(path, edit)));
        } else if let Some(diff) = replaced(path, input) {
            found.push(diff);
        } else if let Some(text) = text_of(input, &WHOLE) {
            found.push(Diff::new(path, text));
        }
    }
    if let Some(changes) = input["changes"].as_array() {
        for change in changes {
            if let (Some(path), Some(diff)) = (path_of(change), change["diff"].as_str()) {
                let kind = change["kind"]["type"].as_str().or(change["kind"].as_str());
                found.extend(match kind {
                    // Codex has the whole text of a deleted file.
                    Some("delete") if !is_unified(diff) => {
                        vec![Diff::new(path, "").old_text(diff.to_owned())]
                    }
                    kind => parse_unified(path, diff, kind == Some("add")),
                });
            }
        }
    }
    if found.is_empty()
        && let Some(patch) = text_of(input, &PATCH)
        && patch.contains("*** Begin Patch")
    {
        found = parse_patch(patch);
    }
    found
}

/// Returns the paths in the input of a tool.
pub(crate) fn paths(input: &Value) -> Vec<&str> {
    let mut found: Vec<&str> = path_of(input).into_iter().collect();
    if let Some(changes) = input["changes"].as_array() {
        found.extend(changes.iter().filter_map(path_of));
    }
    found
}

fn path_of(input: &Value) -> Option<&str> {
    text_of(input, &PATH)
}

fn text_of<'a>(input: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| input[*name].as_str())
}

fn replaced(path: &str, edit: &Value) -> Option<Diff> {
    let (old, new) = (text_of(edit, &OLD)?, text_of(edit, &NEW)?);
    // An empty old text creates a file.
    Some(Diff::new(path, new).old_text(Some(old.to_owned()).filter(|old| !old.is_empty())))
}

/// Parses a unified diff of one file into one diff per hunk. With `is_new`, a text without hunks is a new file.
fn parse_unified(path: &str, diff: &str, is_new: bool) -> Vec<Diff> {
    if is_new && !is_unified(diff) {
        return vec![Diff::new(path, diff)];
    }
    let mut hunks = Hunks::new(path, is_new);
    for line in diff.lines() {
        if line.starts_with("@@") {
            hunks.end();
            hunks.in_hunk = true;
        } else if hunks.in_hunk {
            hunks.line(line);
        }
    }
    hunks.finish()
}

/// Returns whether a text begins as a unified diff does. The text of a file may contain the marks of one elsewhere.
fn is_unified(diff: &str) -> bool {
    ["@@ ", "--- ", "diff "]
        .iter()
        .any(|mark| diff.starts_with(mark))
}

/// Parses a patch in the format of `apply_patch`.
fn parse_patch(patch: &str) -> Vec<Diff> {
    let mut found = Vec::new();
    let mut hunks: Option<Hunks> = None;
    for line in patch.lines() {
        let named = |prefix: &str| line.strip_prefix(prefix).map(str::trim);
        if let Some(path) = named("*** Add File:") {
            found.extend(hunks.take().map(Hunks::finish).unwrap_or_default());
            let mut new = Hunks::new(path, true);
            new.in_hunk = true;
            hunks = Some(new);
        } else if let Some(path) = named("*** Update File:") {
            found.extend(hunks.take().map(Hunks::finish).unwrap_or_default());
            let mut new = Hunks::new(path, false);
            new.in_hunk = true;
            hunks = Some(new);
        } else if line.starts_with("*** ") {
            if !line.starts_with("*** Move to:") && !line.starts_with("*** End of File") {
                found.extend(hunks.take().map(Hunks::finish).unwrap_or_default());
            }
        } else if let Some(hunks) = &mut hunks {
            if line.starts_with("@@") {
                hunks.end();
            } else {
                hunks.line(line);
            }
        }
    }
    found.extend(hunks.map(Hunks::finish).unwrap_or_default());
    found
}

/// Collects the hunks of a file as diffs.
struct Hunks {
    path: String,
    is_new: bool,
    in_hunk: bool,
    old: String,
    new: String,
    done: Vec<Diff>,
}

impl Hunks {
    fn new(path: &str, is_new: bool) -> Self {
        Self {
            path: path.to_owned(),
            is_new,
            in_hunk: false,
            old: String::new(),
            new: String::new(),
            done: Vec::new(),
        }
    }

    fn line(&mut self, line: &str) {
        let (mark, text) = match line.split_at_checked(1) {
            Some((mark, text)) => (mark, text),
            None => (" ", ""),
        };
        let mut push = |old: bool, new: bool| {
            for (included, side) in [(old, &mut self.old), (new, &mut self.new)] {
                if included {
                    side.push_str(text);
                    side.push('\n');
                }
            }
        };
        match mark {
            "+" => push(false, true),
            "-" => push(true, false),
            " " => push(true, true),
            _ => {}
        }
    }

    fn end(&mut self) {
        let (old, new) = (std::mem::take(&mut self.old), std::mem::take(&mut self.new));
        if !(old.is_empty() && new.is_empty()) {
            let old = Some(old).filter(|_| !self.is_new);
            self.done
                .push(Diff::new(self.path.clone(), new).old_text(old));
        }
    }

    fn finish(mut self) -> Vec<Diff> {
        self.end();
        self.done
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::needless_pass_by_value,
        reason = "JSON is given as it is written"
    )]

    use super::*;
    use serde_json::json;

    fn shown(input: Value) -> Vec<(String, Option<String>, String)> {
        let diffs = from_input(&input).into_iter();
        diffs
            .map(|diff| {
                (
                    diff.path.display().to_string(),
                    diff.old_text,
                    diff.new_text,
                )
            })
            .collect()
    }

    fn one(path: &str, old: Option<&str>, new: &str) -> (String, Option<String>, String) {
        (path.to_owned(), old.map(str::to_owned), new.to_owned())
    }

    #[test]
    fn texts_in_the_arguments() {
        for (input, expected) in [
            (
                json!({"file_path": "/a", "old_string": "x", "new_string": "y"}),
                vec![one("/a", Some("x"), "y")],
            ),
            (
                json!({"filePath": "/a", "oldString": "", "newString": "y"}),
                vec![one("/a", None, "y")],
            ),
            (
                json!({"path": "/a", "file_text": "all\n"}),
                vec![one("/a", None, "all\n")],
            ),
            (
                json!({"file_path": "/a", "edits": [
                    {"old_string": "1", "new_string": "2"}, {"old_string": "3", "new_string": "4"}]}),
                vec![one("/a", Some("1"), "2"), one("/a", Some("3"), "4")],
            ),
            (json!({"command": "ls"}), vec![]),
            (json!("x"), vec![]),
        ] {
            assert_eq!(shown(input.clone()), expected, "{input}");
        }
    }

    #[test]
    fn patches() {
        let patch = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** Update File: there.txt\n@@ fn a\n one\n-two\n+2\n@@\n-3\n+4\n*** End Patch";
        let expected = [
            one("new.txt", None, "x\n"),
            one("there.txt", Some("one\ntwo\n"), "one\n2\n"),
            one("there.txt", Some("3\n"), "4\n"),
        ];
        assert_eq!(shown(json!({"patchText": patch})), expected);
        let changes = json!({"changes": [
            {"path": "/u", "kind": {"type": "update"}, "diff": "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n"},
            {"path": "/n", "kind": {"type": "add"}, "diff": "whole @@ text\n"},
            {"path": "/m", "kind": "update"},
            {"path": "/d", "kind": {"type": "delete"}, "diff": "gone\n"},
        ]});
        assert_eq!(
            shown(changes.clone()),
            [
                one("/u", Some("a\n"), "b\n"),
                one("/n", None, "whole @@ text\n"),
                one("/d", Some("gone\n"), ""),
            ]
        );
        assert_eq!(paths(&changes), ["/u", "/n", "/m", "/d"]);
    }
}
