use super::*;
use serde_json::{Value, json};
use teamster_testkit::proc::wait_until;

fn folder() -> (tempfile::TempDir, AgentFolder) {
    let directory = tempfile::tempdir().unwrap();
    let folder = AgentFolder::open(directory.path()).unwrap();
    (directory, folder)
}

/// Opens a directory that was locked before. A process that another test forks may hold the lock until its
/// `exec`.
fn open_again(directory: &Path) -> AgentFolder {
    let mut opened = AgentFolder::open(directory);
    wait_until(Duration::from_mins(1), || {
        if opened.is_err() {
            opened = AgentFolder::open(directory);
        }
        opened.is_ok()
    });
    opened.unwrap()
}

fn names(folder: &AgentFolder) -> Vec<String> {
    let entries = fs::read_dir(folder.path("")).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "loop.lock")
        .collect();
    names.sort();
    names
}

#[test]
fn open_creates_missing_files_and_keeps_existing_ones() {
    let directory = tempfile::tempdir().unwrap();
    let memory = directory.path().join("MEMORY.md");
    drop(AgentFolder::open(directory.path()).unwrap());
    assert_eq!(fs::read_to_string(&memory).unwrap(), "");
    fs::write(&memory, "keep").unwrap();
    open_again(directory.path());
    assert_eq!(fs::read_to_string(&memory).unwrap(), "keep");
}

#[test]
fn a_missing_or_invalid_directory_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("x");
    let error = AgentFolder::open(&missing).unwrap_err();
    assert!(matches!(error, FolderError::Unreachable { .. }), "{error}");
    let shown = format!(
        "the agent's directory {} cannot be used: ",
        missing.display()
    );
    assert!(error.to_string().starts_with(&shown), "{error}");
    fs::write(&missing, "").unwrap();
    let error = AgentFolder::open(&missing).unwrap_err();
    assert!(matches!(error, FolderError::Unreachable { .. }), "{error}");
}

#[test]
fn a_second_loop_is_refused_and_informed_of_the_first() {
    let (directory, first) = folder();
    let error = AgentFolder::open(directory.path()).unwrap_err().to_string();
    let pid = format!("(pid {})", std::process::id());
    assert!(error.contains(&pid), "{error}");
    let lock = first.path(LOCK);
    drop(first);
    // The process id may be reused.
    assert_eq!(fs::read_to_string(lock).unwrap(), "");
    open_again(directory.path());
}

#[test]
fn restore_brings_back_a_removed_folder_and_its_lock() {
    let (directory, mut first) = folder();
    assert!(!first.restore().unwrap());
    fs::remove_dir_all(first.path("")).unwrap();
    assert!(first.restore().unwrap());
    assert!(!first.restore().unwrap());
    let error = AgentFolder::open(directory.path()).unwrap_err();
    assert!(matches!(error, FolderError::Busy { .. }), "{error}");
    // The loop that comes second gets an error.
    fs::remove_dir_all(first.path("")).unwrap();
    let _second = AgentFolder::open(directory.path()).unwrap();
    let error = first.restore().unwrap_err();
    assert!(matches!(error, FolderError::Busy { .. }), "{error}");
    // An agent's directory that was removed is not restored.
    fs::remove_dir_all(directory.path()).unwrap();
    let error = first.restore().unwrap_err();
    assert!(matches!(error, FolderError::Unreachable { .. }), "{error}");
    assert!(!directory.path().exists());
}

#[test]
fn flag_is_taken_once_and_a_new_one_is_another() {
    let (_directory, folder) = folder();
    let path = folder.path("clear-session");
    assert!(!folder.take(Flag::ClearSession).unwrap());
    fs::write(&path, "").unwrap();
    assert!(folder.is_set(Flag::ClearSession));
    assert!(folder.take(Flag::ClearSession).unwrap());
    assert!(!folder.is_set(Flag::ClearSession));
    fs::write(&path, "").unwrap();
    folder.done(Flag::ClearSession).unwrap();
    assert!(folder.is_set(Flag::ClearSession));
    assert_eq!(names(&folder), ["clear-session"]);
}

#[test]
fn a_flag_that_was_taken_and_not_done_is_set_again() {
    let (_directory, folder) = folder();
    fs::write(folder.path("did-work"), "").unwrap();
    fs::create_dir(folder.path("reset-session")).unwrap();
    assert!(folder.take(Flag::DidWork).unwrap());
    assert!(folder.take(Flag::ResetSession).unwrap());
    assert!(folder.restore_taken_flags().is_empty());
    assert!(folder.is_set(Flag::DidWork) && folder.is_set(Flag::ResetSession));
    fs::write(folder.path("tools.json"), "{}").unwrap();
    assert!(folder.take(Flag::DidWork).unwrap());
    assert!(folder.remove_stale().is_empty());
    assert!(names(&folder).is_empty(), "{:?}", names(&folder));
}

#[test]
fn an_invalid_flag_does_not_prevent_a_start() {
    let (_directory, folder) = folder();
    let errors = |errors: Vec<io::Error>| {
        let text = errors.iter().map(io::Error::to_string);
        text.collect::<Vec<_>>()
    };
    // The flag is set with `mkdir`, and a killed loop had taken a file.
    fs::write(folder.path("clear-session.taken"), "").unwrap();
    fs::create_dir(folder.path("clear-session")).unwrap();
    assert_eq!(errors(folder.restore_taken_flags()), [""; 0]);
    assert_eq!(names(&folder), ["clear-session"]);
    // A flag that cannot be removed is reported.
    fs::create_dir_all(folder.path("did-work/x")).unwrap();
    fs::write(folder.path("tools.json"), "{}").unwrap();
    let reported = errors(folder.remove_stale());
    assert!(
        reported.len() == 1 && reported[0].contains(".orchestrator/did-work: "),
        "{reported:?}"
    );
    assert_eq!(names(&folder), ["did-work"]);
}

#[test]
fn stale_drafts_are_removed() {
    let (directory, first) = folder();
    for (name, seconds) in [(".new-old", 3600), (".new-young", 1), ("old", 3600)] {
        let file = File::create(first.path(name)).unwrap();
        let then = std::time::SystemTime::now() - Duration::from_secs(seconds);
        file.set_modified(then).unwrap();
    }
    drop(first);
    let folder = open_again(directory.path());
    assert_eq!(names(&folder), [".new-young", "old"]);
}

#[test]
fn json_is_replaced_as_a_whole_and_lines_are_appended_whole() {
    let (_directory, folder) = folder();
    for n in [1, 2] {
        folder.write_json("x.json", &json!({ "n": n })).unwrap();
    }
    let read: Value = folder.read_json("x.json").unwrap();
    assert_eq!(read, json!({ "n": 2 }));
    fs::write(folder.path("y.json"), "{").unwrap();
    assert_eq!(folder.read_json::<Value>("y.json"), None);
    fs::write(folder.path("u.jsonl"), "{\"cut").unwrap();
    let lines = [json!(1), json!(2)];
    folder.append_json_lines("u.jsonl", &lines).unwrap();
    folder.append_json_lines("u.jsonl", &lines[..1]).unwrap();
    let text = fs::read_to_string(folder.path("u.jsonl")).unwrap();
    assert_eq!(text, "{\"cut\n1\n2\n1\n");
    assert_eq!(names(&folder), ["u.jsonl", "x.json", "y.json"]);
}
