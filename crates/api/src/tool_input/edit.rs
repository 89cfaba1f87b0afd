//! Changes of files in the input of a tool.
//!
//! The inputs of the CLIs' editing tools take one of three forms: a path with an old and a new text, a path with the
//! whole text, or a patch; one of them may be in a list.

use serde_json::{Map, Value};

use super::patch::{self, is_patch};

/// Argument names for the file's path (`PATH`), the replaced text (`OLD`), its replacement (`NEW`), the text of a
/// whole file (`WHOLE`), a patch (`PATCH`) and lists of changes (`LISTS`).
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
const WHOLE: [&str; 3] = ["content", "contents", "file_text"];
const PATCH: [&str; 4] = ["patchText", "patch", "input", "diff"];
const LISTS: [&str; 2] = ["edits", "changes"];

/// A change in the input of a tool, as texts of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change<'a> {
    /// The replacement of a part of a file.
    Replaced {
        /// The text that is replaced; empty to create a file.
        old: &'a str,
        /// Its replacement.
        new: &'a str,
    },
    /// The whole text of a file that is written.
    Written(&'a str),
    /// The whole text of a file that is deleted.
    Deleted(&'a str),
    /// A patch: a unified diff, or one in the format of `apply_patch`.
    Patch(&'a str),
}

/// The input of a tool as a person is shown it: its changes, and every other argument. Nothing is left out, because a
/// person allows what is shown.
///
/// ```
/// use serde_json::json;
/// use teamster_api::tool_input::{Change, Shown};
///
/// let input = json!({"file_path": "/a", "old_string": "x", "new_string": "y", "replace_all": true});
/// let shown = Shown::of(input.as_object().unwrap());
/// assert_eq!(shown.change, Some(Change::Replaced { old: "x", new: "y" }));
/// assert_eq!(shown.path(), Some("/a"));
/// let rest: Vec<_> = shown.rest.iter().map(|(name, _)| *name).collect();
/// assert_eq!(rest, ["file_path", "replace_all"]);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Shown<'a> {
    /// The change of the input itself.
    pub change: Option<Change<'a>>,
    /// The elements of its lists of changes.
    pub parts: Vec<Self>,
    /// The arguments that are in neither.
    pub rest: Vec<(&'a str, &'a Value)>,
}

impl<'a> Shown<'a> {
    /// Divides the input of a tool.
    pub fn of(input: &'a Map<String, Value>) -> Self {
        Self::divide(input, None)
    }

    /// Divides an input, or an element of a list of changes of this kind.
    fn divide(input: &'a Map<String, Value>, kind: Option<&str>) -> Self {
        let (change, mut names) = change_of(input, kind);
        let mut parts = Vec::new();
        for name in LISTS {
            let list = input.get(name).and_then(Value::as_array);
            let list: Option<Vec<_>> =
                list.and_then(|it| it.iter().map(Value::as_object).collect());
            if let Some(list) = list.filter(|it| !it.is_empty()) {
                names.push(name);
                parts.extend((list.into_iter()).map(|one| Self::divide(one, kind_of(one))));
            }
        }
        let rest = input.iter().map(|(name, value)| (name.as_str(), value));
        Self {
            change,
            parts,
            rest: rest.filter(|(name, _)| !names.contains(name)).collect(),
        }
    }

    /// Shows the whole text of a file that is written as its difference from the text before. Every other change is shown
    /// as it is.
    #[must_use]
    pub fn over(mut self, old: Option<&'a str>) -> Self {
        if let (Some(Change::Written(new)), Some(old)) = (self.change, old) {
            self.change = Some(Change::Replaced { old, new });
        }
        self
    }

    /// Returns the path of the file, which is one of the other arguments.
    pub fn path(&self) -> Option<&'a str> {
        let named = |name: &str| self.rest.iter().find(|(it, _)| *it == name);
        PATH.iter().find_map(|name| named(name)?.1.as_str())
    }

    /// Returns the tool's word for an element of a list, such as `add`.
    pub fn kind(&self) -> Option<&'a str> {
        let kind = self.rest.iter().find(|(name, _)| *name == "kind")?.1;
        kind["type"].as_str().or(kind.as_str())
    }
}

/// Returns the change of an input and the names of its arguments.
fn change_of<'a>(
    input: &'a Map<String, Value>,
    kind: Option<&str>,
) -> (Option<Change<'a>>, Vec<&'static str>) {
    let named = |names: &[&'static str]| {
        (names.iter()).find_map(|name| Some((*name, input.get(*name)?.as_str()?)))
    };
    let has_path = named(&PATH).is_some();
    match (named(&OLD), named(&NEW)) {
        // Of two empty texts there is nothing to show.
        (Some((_, "")), Some((_, ""))) => {}
        (Some((old_name, old)), Some((new_name, new))) => {
            return (
                Some(Change::Replaced { old, new }),
                vec![old_name, new_name],
            );
        }
        _ => {}
    }
    let one = |change, name| (Some(change), vec![name]);
    match (named(&WHOLE), named(&PATCH), named(&["diff"])) {
        (Some((name, text)), ..) if has_path && !text.is_empty() => {
            one(Change::Written(text), name)
        }
        (_, Some((name, text)), _) if is_patch(text) => one(Change::Patch(text), name),
        // Codex has the whole text of an added or deleted file.
        (.., Some((name, text))) if has_path && !text.is_empty() => match kind {
            Some("add") => one(Change::Written(text), name),
            Some("delete") => one(Change::Deleted(text), name),
            _ => (None, Vec::new()),
        },
        _ => (None, Vec::new()),
    }
}

fn kind_of(change: &Map<String, Value>) -> Option<&str> {
    let kind = change.get("kind")?;
    kind["type"].as_str().or(kind.as_str())
}

/// A change of a file as two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edit {
    /// The file, as the tool names it.
    pub path: String,
    /// The text before; `None` for a file that is created or overwritten.
    pub old: Option<String>,
    /// The text after.
    pub new: String,
}

impl Edit {
    pub(super) fn new(path: &str, old: Option<String>, new: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            old,
            new: new.into(),
        }
    }
}

/// Returns the changes in the input of an editing tool, of a patch one for each hunk.
pub fn edits(input: &Value) -> Vec<Edit> {
    let Some(fields) = input.as_object() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    collect(&Shown::of(fields), None, &mut found);
    if found.is_empty()
        && let (Some(path), Some(text)) = (path_of(input), input["text"].as_str())
    {
        found.push(Edit::new(path, None, text));
    }
    found
}

fn collect(shown: &Shown<'_>, parent: Option<&str>, found: &mut Vec<Edit>) {
    let path = shown.path().or(parent);
    match (shown.change, path) {
        (Some(Change::Patch(text)), path) => {
            let is_new = shown.kind() == Some("add");
            found.extend(patch::edits(text, path, is_new));
        }
        (Some(Change::Replaced { old, new }), Some(path)) => {
            // An empty old text creates a file.
            let old = Some(old.to_owned()).filter(|old| !old.is_empty());
            found.push(Edit::new(path, old, new));
        }
        (Some(Change::Written(text)), Some(path)) => found.push(Edit::new(path, None, text)),
        (Some(Change::Deleted(text)), Some(path)) => {
            found.push(Edit::new(path, Some(text.to_owned()), ""));
        }
        _ => {}
    }
    for part in &shown.parts {
        collect(part, path, found);
    }
}

/// Returns the path of the file of which the input has the whole text.
pub fn written_file(input: &Value) -> Option<&str> {
    let shown = Shown::of(input.as_object()?);
    let is_whole = matches!(shown.change, Some(Change::Written(_))) && shown.parts.is_empty();
    shown.path().filter(|_| is_whole)
}

/// Returns the paths in the input of a tool: its own, and those in its list of changes.
pub fn paths(input: &Value) -> Vec<&str> {
    let mut found: Vec<&str> = path_of(input).into_iter().collect();
    if let Some(changes) = input["changes"].as_array() {
        found.extend(changes.iter().filter_map(path_of));
    }
    found
}

fn path_of(input: &Value) -> Option<&str> {
    PATH.iter().find_map(|name| input[*name].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn one(path: &str, old: Option<&str>, new: &str) -> Edit {
        Edit::new(path, old.map(str::to_owned), new)
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
                json!({"path": "/a", "text": "all\n"}),
                vec![one("/a", None, "all\n")],
            ),
            (
                json!({"file_path": "/a", "edits": [
                    {"old_string": "1", "new_string": "2"}, {"old_string": "3", "new_string": "4"}]}),
                vec![one("/a", Some("1"), "2"), one("/a", Some("3"), "4")],
            ),
            (
                json!({"path": "/a", "diff": "@@ -1 +1 @@\n-a\n+b\n"}),
                vec![one("/a", Some("a\n"), "b\n")],
            ),
            (json!({"command": "ls"}), vec![]),
            (json!("x"), vec![]),
        ] {
            assert_eq!(edits(&input), expected, "{input}");
        }
    }

    #[test]
    fn file_that_is_written_whole_is_shown_as_what_differs() {
        let input = json!({"file_path": "/a", "content": "b\n"});
        assert_eq!(written_file(&input), Some("/a"));
        let change = |input: &Value, old| {
            let change = Shown::of(input.as_object().unwrap()).over(old).change;
            format!("{:?}", change.unwrap())
        };
        assert_eq!(
            change(&input, Some("a\n")),
            r#"Replaced { old: "a\n", new: "b\n" }"#
        );
        assert_eq!(change(&input, None), r#"Written("b\n")"#);
        let edit = json!({"file_path": "/a", "old_string": "x", "new_string": "y"});
        assert_eq!(change(&edit, Some("all")), change(&edit, None));
        for other in [
            edit,
            json!({"command": "ls"}),
            json!({"to": "eve@example.com", "content": "x"}),
            json!({"path": "/a", "content": "x", "edits": [{"oldText": "a", "newText": "b"}]}),
            json!("x"),
        ] {
            assert_eq!(written_file(&other), None, "{other}");
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
        assert_eq!(edits(&json!({"patchText": patch})), expected);
        let changes = json!({"changes": [
            {"path": "/u", "kind": {"type": "update"}, "diff": "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n"},
            {"path": "/n", "kind": {"type": "add"}, "diff": "whole @@ text\n"},
            {"path": "/m", "kind": "update"},
            {"path": "/d", "kind": {"type": "delete"}, "diff": "gone\n"},
        ]});
        assert_eq!(
            edits(&changes),
            [
                one("/u", Some("a\n"), "b\n"),
                one("/n", None, "whole @@ text\n"),
                one("/d", Some("gone\n"), ""),
            ]
        );
        assert_eq!(paths(&changes), ["/u", "/n", "/m", "/d"]);
    }

    /// Puts the arguments of a divided input together again.
    fn counted(shown: &Shown<'_>) -> usize {
        let change = match shown.change {
            Some(Change::Replaced { .. }) => 2,
            Some(_) => 1,
            None => 0,
        };
        change + shown.rest.len() + shown.parts.iter().map(counted).sum::<usize>()
    }

    #[test]
    fn no_argument_of_an_input_is_left_out() {
        let rest_of = |input: Value| {
            let shown = Shown::of(input.as_object().unwrap());
            let lists = LISTS.iter().filter_map(|name| input[*name].as_array());
            let in_lists: usize = (lists.flatten())
                .map(|one| one.as_object().map_or(0, Map::len))
                .sum();
            let lists = usize::from(!shown.parts.is_empty());
            let all = input.as_object().unwrap().len();
            if shown.parts.is_empty() {
                assert_eq!(counted(&shown), all, "{input}");
            } else {
                assert_eq!(counted(&shown), all - lists + in_lists, "{input}");
            }
            let rest = shown.rest.iter().map(|(name, _)| (*name).to_owned());
            (shown.change.is_some(), rest.collect::<Vec<_>>())
        };
        // A mail is no file.
        let mail = json!({"to": "eve@example.com", "subject": "x", "content": "the secret"});
        assert!(!rest_of(mail).0);
        // Half of an edit, texts that are empty, and two names for one thing.
        for (input, is_change) in [
            (
                json!({"file_path": "/a", "new_string": "b", "content": ""}),
                false,
            ),
            (
                json!({"path": "/a", "old_string": "", "new_string": ""}),
                false,
            ),
            (
                json!({"path": "/a", "content": "x", "contents": "y", "old_string": "z"}),
                true,
            ),
            (
                json!({"path": "/a", "old_string": "a", "new_string": "b", "newText": "c"}),
                true,
            ),
            (
                json!({"path": "/a", "edits": [{"oldText": "a", "newText": "b", "all": 1}], "dry": false}),
                false,
            ),
            (json!({"path": "/a", "edits": []}), false),
            (json!({"path": "/a", "edits": [{"oldText": "a"}, 1]}), false),
            (
                json!({"changes": [{"path": "/a", "kind": {"type": "update", "move_path": "/c"}, "diff": "@@ -1 +1 @@\n-a\n+b\n"}]}),
                false,
            ),
            (json!({"changes": {"a": 1}}), false),
            (json!({"path": "/a", "diff": "not a patch"}), false),
            (json!({"input": "please", "path": 1}), false),
        ] {
            assert_eq!(rest_of(input.clone()).0, is_change, "{input}");
        }
    }
}
