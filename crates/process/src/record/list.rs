//! Reader of a file with one JSON object that the CLI writes as a whole, again with each record in a list of it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

use serde_json::Value;
use serde_json::value::RawValue;
use teamster_core::provider::json_line;

/// Limit of the size of a file, in bytes.
const LARGEST_FILE: u64 = 64 << 20;

/// State of a file.
#[derive(Default)]
pub(super) struct List {
    /// Modification time and length when the file was last read.
    read: Option<(SystemTime, u64)>,
    /// Hashes of the items that were read.
    items: HashSet<u64>,
}

impl List {
    /// Creates the state of a file whose items are of earlier runs.
    pub(super) fn of_earlier_runs(path: &Path, field: &str) -> Self {
        let mut list = Self::default();
        list.new_items(path, field, |_| false);
        list
    }

    /// Returns the items that were not in the list before and that are requested, each as a line. A file that is being
    /// written has none until it is complete.
    pub(super) fn new_items(
        &mut self,
        path: &Path,
        field: &str,
        is_requested: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        self.read(path, field, is_requested).unwrap_or_default()
    }

    fn read(
        &mut self,
        path: &Path,
        field: &str,
        is_requested: impl Fn(&str) -> bool,
    ) -> Option<Vec<String>> {
        let mut file = File::open(path).ok()?;
        let data = file.metadata().ok()?;
        let state = Some((data.modified().ok()?, data.len()));
        if self.read == state || data.len() > LARGEST_FILE {
            return None;
        }
        let mut text = String::new();
        // The file may be growing.
        file.by_ref()
            .take(LARGEST_FILE)
            .read_to_string(&mut text)
            .ok()?;
        let fields: HashMap<String, &RawValue> = serde_json::from_str(&text).ok()?;
        let items: Vec<&RawValue> = match fields.get(field) {
            Some(list) => serde_json::from_str(list.get()).ok()?,
            None => Vec::new(),
        };
        self.read = state;
        let mut new = Vec::new();
        for item in items {
            let mut hasher = DefaultHasher::new();
            item.get().hash(&mut hasher);
            if self.items.insert(hasher.finish()) && is_requested(item.get()) {
                // An item may be written in several lines. One that is no value here is left out.
                let line = json_line::read(item.get().as_bytes(), |item| {
                    Some(json_line::parse::<Value>(item)?.to_string())
                });
                new.extend(line);
            }
        }
        Some(new)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use teamster_core::provider::RecordFiles;

    use super::super::{Record, TICK};
    use super::*;

    // Made by hand: a list as Cline writes it, in several lines, shortened.
    fn write(path: &Path, items: &[u32]) {
        let items: Vec<_> = items
            .iter()
            .map(|n| format!("{{\n  \"id\": {n},\n  \"usage\": [{n}]\n}}"))
            .collect();
        let text = format!(
            "{{\n\"messages\": [{},{{\"id\": \"asked\"}}], \"more\": [{{\"usage\": 0}}]}}",
            items.join(",")
        );
        fs::write(path, text).unwrap();
    }

    fn files(path: &Path) -> RecordFiles {
        let (folder, name) = (path.parent().unwrap(), path.file_name().unwrap());
        let name = name.to_str().unwrap().to_owned();
        RecordFiles::new(folder, vec![name], &["\"usage\""]).in_list("messages")
    }

    fn file(dir: &tempfile::TempDir) -> PathBuf {
        dir.path().join("session.json")
    }

    #[test]
    fn each_new_item_of_the_list_is_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(&dir);
        write(&path, &[1]);
        let mut record = Record::begin(files(&path));
        assert_eq!(record.lines(false), [""; 0]);
        write(&path, &[1, 2, 3]);
        let new = [r#"{"id":2,"usage":[2]}"#, r#"{"id":3,"usage":[3]}"#];
        assert_eq!(record.lines(false), new);
        assert_eq!(record.lines(false), [""; 0]);
        // The earlier items were summarised.
        write(&path, &[3, 4]);
        assert_eq!(record.lines(true), [r#"{"id":4,"usage":[4]}"#]);
        // The CLI is about to write it.
        fs::write(&path, r#"{"messages": [{"id": 5, "usage": [5]"#).unwrap();
        assert_eq!(record.lines(false), [""; 0]);
        write(&path, &[3, 4, 5]);
        assert_eq!(record.lines(true), [r#"{"id":5,"usage":[5]}"#]);
        fs::write(&path, r#"{"messages": 6}"#).unwrap();
        assert_eq!(record.lines(true), [""; 0]);
        fs::remove_file(&path).unwrap();
        assert_eq!(record.lines(true), [""; 0]);
    }

    // Made by hand.
    #[test]
    fn an_item_that_cannot_be_read_leaves_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(&dir);
        write(&path, &[1]);
        let mut record = Record::begin(files(&path));
        let deep = format!("{}0{}", "[".repeat(500), "]".repeat(500));
        let text = format!(
            r#"{{"messages": [{{"usage": {deep}}}, {{"usage": "\ud83d"}}, {{"usage": 2}}]}}"#
        );
        fs::write(&path, text).unwrap();
        let read = ["{\"usage\":\"\u{fffd}\"}", r#"{"usage":2}"#];
        assert_eq!(record.lines(true), read);
    }

    #[test]
    fn items_of_a_file_from_before_the_run_are_old() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(&dir);
        write(&path, &[1]);
        // Not every file system stores creation times.
        let Ok(made) = path.metadata().unwrap().created() else {
            return;
        };
        let mut late = Record::since(files(&path), made + 10 * TICK);
        assert_eq!(late.lines(false), [""; 0]);
        write(&path, &[1, 2]);
        assert_eq!(late.lines(false), [r#"{"id":2,"usage":[2]}"#]);
        let mut new = Record::since(files(&path), made);
        assert_eq!(new.lines(false).len(), 2);
    }
}
