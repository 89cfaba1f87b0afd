use super::*;

/// A repository with a file, and a patch that changes it.
fn repository(folder: &Path) -> PathBuf {
    let run = |args: &[&str]| {
        let mut command = git::command(folder);
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        git::run(command.args(identity).args(args)).unwrap()
    };
    run(&["init", "--quiet"]);
    fs::write(folder.join("a"), "one\n").unwrap();
    run(&["add", "a"]);
    run(&["commit", "--quiet", "-m", "first"]);
    fs::write(folder.join("a"), "two\n").unwrap();
    let patch = run(&["diff"]);
    run(&["checkout", "--quiet", "a"]);
    let file = folder.join(".git/patch");
    fs::write(&file, patch + "\n").unwrap();
    file
}

#[test]
fn a_file_that_is_saved_meanwhile_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    let patch = repository(top);
    let git_dir = top.join(".git");
    let mut change = Change::new(top, &git_dir, None).unwrap();
    let files = BTreeSet::from([PathBuf::from("a")]);
    change
        .prepare(&git_dir, &files, &patch, &["apply"])
        .unwrap();

    fs::write(top.join("a"), "of the user\n").unwrap();
    let error = change.carry_out().unwrap_err();

    assert!(
        matches!(&error, TakeError::Git(it) if it.to_string().ends_with("was changed meanwhile")),
        "{error:?}"
    );
    assert_eq!(fs::read_to_string(top.join("a")).unwrap(), "of the user\n");
    assert!(!git_dir.join(FOLDER).exists());
}

#[test]
fn new_files_get_the_group_of_their_folder() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let folder = tempfile::tempdir().unwrap();
    let (new, shared) = (folder.path().join("new"), folder.path().join("shared"));
    fs::write(&new, "x").unwrap();
    fs::create_dir(&shared).unwrap();
    // Only root may give a file to any group.
    if chown(&shared, None, Some(12_345)).is_err() {
        return;
    }
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
    take_group(&new, &shared.join("a/b")).unwrap();
    assert_ne!(fs::metadata(&new).unwrap().gid(), 12_345);
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o2755)).unwrap();
    take_group(&new, &shared.join("a/b")).unwrap();
    assert_eq!(fs::metadata(&new).unwrap().gid(), 12_345);
}
