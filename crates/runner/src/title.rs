//! The title that a run got after its start: a file beside its description, which never changes.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use teamster_core::text::one_line;
use teamster_core::time::epoch_ms;
use teamster_process::{FileMode, create_file, replace_file};

use crate::{RunFolder, Runs, RunsError, files};

/// Name of the file in a run's folder.
const FILE: &str = "title";
/// Name of the file beside the folders of runs that has another content after each change of a title.
const CHANGES: &str = ".titles";

impl Runs {
    /// Returns a text that differs from an earlier one if a person has changed the title of any run since; `None` before the
    /// first change.
    ///
    /// A reader that has kept titles reads them again when it differs.
    pub fn title_changes(&self) -> Option<Vec<u8>> {
        files::read(&self.root().join(CHANGES)).ok()
    }
}

impl RunFolder {
    /// Returns the title of the run: the one that it got after its start, else that of its description.
    pub fn title(&self) -> Option<String> {
        let text = files::read(&self.path().join(FILE)).ok();
        let given = text.and_then(|text| String::from_utf8(text).ok());
        let given = given.map(|text| one_line(&text));
        given
            .filter(|title| !title.is_empty())
            .or_else(|| self.info().title.clone())
    }

    /// Gives the run another title; with `None`, that of its description again.
    ///
    /// # Errors
    ///
    /// Fails if the run was removed, or its file cannot be written: then the title stays as it was. Also fails if
    /// readers that keep titles cannot be notified: then the run has the new title, and a repetition notifies them.
    pub fn set_title(&self, title: Option<&str>) -> Result<(), RunsError> {
        let file = self.path().join(FILE);
        let changed = match title {
            Some(title) => replace_file(&file, title.as_bytes(), FileMode::Private),
            None => match fs::remove_file(&file) {
                // Without a file the run has no title of its own, unless the run itself is gone.
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    fs::symlink_metadata(self.path()).map(drop)
                }
                removed => removed,
            },
        };
        changed.map_err(|error| match error.kind() {
            ErrorKind::NotFound => RunsError::NotFound {
                id: self.id().to_owned(),
            },
            _ => RunsError::io("write", &file)(error),
        })?;
        let root = self.path().parent().unwrap_or(Path::new(""));
        let changes = root.join(CHANGES);
        replace_file(&changes, unique().as_bytes(), FileMode::Private)
            .map_err(RunsError::io("write", changes))
    }

    /// Gives the run this title unless it has one. A failure leaves it without a title.
    pub(crate) fn set_first_title(&self, title: &str) {
        let file = self.path().join(FILE);
        if self.info().title.is_none() && fs::symlink_metadata(&file).is_err() {
            // A title that a person has given meanwhile stays.
            let _ = create_file(&file, title.as_bytes(), FileMode::Private);
        }
    }
}

/// Returns a text that no other call returns.
fn unique() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{}-{}-{number}", epoch_ms(), std::process::id())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use teamster_api::RunInfo;

    use super::*;
    use crate::LogLimits;

    #[test]
    fn a_title_is_a_file_beside_the_description_which_stays() {
        let dir = tempfile::tempdir().unwrap();
        let runs = Runs::at(dir.path());
        let mut info = RunInfo::new("r", "claude");
        info.title = Some("Fix it".to_owned());
        let new = runs.accept(&info, LogLimits::default()).unwrap();
        let (folder, path) = (&new.folder, new.folder.path().to_owned());
        let described = fs::read(path.join("run.json")).unwrap();
        assert_eq!(folder.title().as_deref(), Some("Fix it"));
        assert_eq!(runs.title_changes(), None);
        folder.set_first_title("too late");
        assert_eq!(folder.title().as_deref(), Some("Fix it"));

        folder.set_title(Some("The login")).unwrap();
        let first = runs.title_changes().unwrap();
        assert_eq!(folder.title().as_deref(), Some("The login"));
        assert_eq!(fs::metadata(path.join(FILE)).unwrap().mode() & 0o777, 0o600);
        folder.set_title(None).unwrap();
        assert_ne!(runs.title_changes().unwrap(), first);
        assert_eq!(folder.title().as_deref(), Some("Fix it"));
        folder.set_title(None).unwrap();
        assert_eq!(fs::read(path.join("run.json")).unwrap(), described);
        // The changes are no run, and no draft is left.
        assert_eq!(runs.ids().unwrap(), ["r"]);
        for entry in fs::read_dir(&path).unwrap() {
            let name = entry.unwrap().file_name();
            assert!(!name.to_str().unwrap().starts_with('.'), "{name:?}");
        }
    }

    #[test]
    fn a_title_is_changed_even_if_readers_cannot_be_notified() {
        let dir = tempfile::tempdir().unwrap();
        let runs = Runs::at(dir.path());
        let info = RunInfo::new("r", "claude");
        let new = runs.accept(&info, LogLimits::default()).unwrap();
        fs::create_dir(dir.path().join(CHANGES)).unwrap();
        assert!(new.folder.set_title(Some("Mine")).is_err());
        assert_eq!(new.folder.title().as_deref(), Some("Mine"));
        fs::remove_dir(dir.path().join(CHANGES)).unwrap();
        new.folder.set_title(Some("Mine")).unwrap();
        assert!(runs.title_changes().is_some());
    }

    #[test]
    fn the_first_prompt_gives_a_title_only_to_a_run_without_one() {
        let dir = tempfile::tempdir().unwrap();
        let runs = Runs::at(dir.path());
        let info = RunInfo::new("s", "claude");
        let new = runs.accept(&info, LogLimits::default()).unwrap();
        for title in ["Fix it", "And that"] {
            new.folder.set_first_title(title);
            assert_eq!(new.folder.title().as_deref(), Some("Fix it"));
        }
        new.folder.set_title(Some("Mine")).unwrap();
        new.folder.set_first_title("Fix it");
        assert_eq!(new.folder.title().as_deref(), Some("Mine"));
        new.folder.set_title(None).unwrap();
        new.folder.set_first_title("And that");
        assert_eq!(new.folder.title().as_deref(), Some("And that"));
    }

    #[test]
    fn a_damaged_title_is_none_and_a_removed_run_gets_none() {
        let dir = tempfile::tempdir().unwrap();
        let runs = Runs::at(dir.path());
        let info = RunInfo::new("r", "claude");
        let new = runs.accept(&info, LogLimits::default()).unwrap();
        let file = new.folder.path().join(FILE);
        for content in [&b"\xff"[..], b"", b" \n"] {
            fs::write(&file, content).unwrap();
            assert_eq!(new.folder.title(), None, "{content:?}");
        }
        fs::write(&file, "two\nlines\x1b").unwrap();
        assert_eq!(new.folder.title().as_deref(), Some("two lines"));
        fs::remove_file(&file).unwrap();
        let elsewhere = dir.path().join("elsewhere");
        fs::write(&elsewhere, "secret").unwrap();
        symlink(&elsewhere, &file).unwrap();
        assert_eq!(new.folder.title(), None);
        fs::remove_dir_all(new.folder.path()).unwrap();
        for title in [Some("x"), None] {
            let error = new.folder.set_title(title).unwrap_err();
            assert!(matches!(error, RunsError::NotFound { .. }), "{error:?}");
        }
    }
}
