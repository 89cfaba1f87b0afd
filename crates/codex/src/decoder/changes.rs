//! Changed files in an item.

use serde_json::Value;
use teamster_core::ChangeKind;

use crate::wire::Object;

/// Returns the changed files: from a list of objects, or from an object keyed by path, which the CLI uses elsewhere.
pub(super) fn of(item: &Object<'_>) -> Vec<(String, ChangeKind)> {
    if let Some(by_path) = item.object("changes") {
        let change = |(path, raw): (&str, &str)| Some((path.to_owned(), change_kind(raw)?));
        return by_path.entries().filter_map(change).collect();
    }
    let change = |change: &Object<'_>| {
        let kind = change_kind(change.raw("kind").unwrap_or_default());
        // A change of an unknown kind counts as an update.
        let kind = kind.unwrap_or(ChangeKind::Update);
        Some((change.text("path")?.into_owned(), kind))
    };
    let list = item.objects("changes");
    list.iter().filter_map(change).collect()
}

/// Parses the kind of a change: a word, or an object with the word as its `type`.
fn change_kind(raw: &str) -> Option<ChangeKind> {
    let word = match Object::parse(raw) {
        Some(kind) => kind.text("type")?.into_owned(),
        None => serde_json::from_str(raw).ok()?,
    };
    match word.as_str() {
        "add" => Some(ChangeKind::Add),
        "delete" => Some(ChangeKind::Delete),
        // A moved file is an update of its old path.
        "update" => Some(ChangeKind::Update),
        _ => None,
    }
}

/// Converts file changes to the form of a run, which has a word for the kind. `codex app-server` has an object for
/// it, and the text of the change.
pub(super) fn in_run_form(changes: &mut Value) {
    let list = changes.as_array_mut().into_iter().flatten();
    for change in list.filter_map(Value::as_object_mut) {
        let word = change
            .get("kind")
            .and_then(|kind| kind.get("type"))
            .cloned();
        if let Some(word) = word {
            change.insert("kind".to_owned(), word);
            change.remove("diff");
        }
    }
}
