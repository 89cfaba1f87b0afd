//! Processes that are killed while they take what a run has brought back.

use std::fs;
use std::path::{Path, PathBuf};

use teamster_workspace::Target;

use super::{CHANGED, Place, at_each_change};
use crate::it::repository::{Files, files_of};

/// Returns the files of the user's and of git that say what is where; which objects there are does not matter.
fn state(place: &Place) -> Files {
    files_of(place.repository.path(), |name| {
        !name.starts_with(".git/objects")
    })
}

#[test]
fn killed_apply_is_complete_or_undone() {
    let template = Place::template();
    template.bring();
    for action in ["apply", "apply-index"] {
        let mut restored = 0;
        let kills = at_each_change(&template, |place, at| {
            let before = state(place);
            let is_killed = place.is_killed(action, at);
            let mut target = Target::find(place.repository.path()).unwrap();
            let warnings = target.take_warnings();
            let context = format!("{action} at {at}: {warnings:?}");
            if place.repository.path().join("d/e/moved").exists() {
                assert_eq!(warnings, [""; 0], "{context}");
                let changed = ["diff", "--name-only", "--no-renames", "HEAD"];
                let changed = place.repository.git(changed);
                assert!(changed.contains("gone"), "{context}: {changed}");
            } else {
                assert!(state(place) == before, "{context}: something was changed");
                restored += warnings.len();
                let again = match action {
                    "apply" => target.apply(&patch(place)),
                    _ => target.apply_with_index(&patch(place)),
                };
                assert_eq!(again.unwrap(), CHANGED, "{context}");
            }
            let own = place.repository.path().join(".git/teamster-apply");
            assert!(!own.exists(), "{context}");
            let staged = place.repository.git(["diff", "--cached", "--name-only"]);
            let is_staged = staged.contains("d/e/moved");
            assert_eq!(is_staged, action == "apply-index", "{context}: {staged}");
            is_killed
        });
        assert!(kills >= 8, "{action}: {kills}");
        assert!(restored > 4, "{action}: {restored}");
    }
}

fn patch(place: &Place) -> PathBuf {
    place.root().with_extension("brought").join("patch")
}

#[test]
fn user_changes_since_a_kill_are_kept() {
    let template = Place::template();
    template.bring();
    let mut is_seen = false;
    at_each_change(&template, |place, at| {
        if !place.is_killed("apply", at) {
            return false;
        }
        let path = place.repository.path();
        let changed = path.join(".gitignore");
        if fs::read_to_string(&changed).is_ok_and(|text| text.contains("more")) {
            is_seen = true;
            fs::write(&changed, "mine\n").unwrap();
            let before = state(place);
            let mut target = Target::find(path).unwrap();
            let warning = target.take_warnings().join("");
            let own = path.canonicalize().unwrap().join(".git/teamster-apply");
            if own.exists() {
                let own = own.display();
                assert!(warning.contains("changed since: .gitignore"), "{warning}");
                assert!(warning.contains(&format!("{own}/before")), "{warning}");
                assert!(state(place) == before, "{at}");
                assert!(target.apply(&patch(place)).is_err());
            }
            assert_eq!(fs::read_to_string(&changed).unwrap(), "mine\n");
        }
        true
    });
    assert!(is_seen);
}

#[test]
fn killed_fetch_has_the_branch_or_not() {
    let template = Place::template();
    template.bring();
    let kills = at_each_change(&template, |place, at| {
        let is_ours = |name: &Path| {
            let refs = [
                ".git/objects",
                ".git/refs/teamster",
                ".git/refs/heads/brought",
                ".git/logs/refs/heads/brought",
            ];
            refs.iter().any(|it| name.starts_with(it))
                || name.starts_with(".git/refs/teamster-fetch")
        };
        let users = || files_of(place.repository.path(), |name| !is_ours(name));
        let before = users();
        let is_killed = place.is_killed("fetch", at);
        assert!(users() == before, "{at}: something was changed");
        let refs = [
            "for-each-ref",
            "--format=%(refname)",
            "refs/heads/brought",
            "refs/teamster",
        ];
        let all = "refs/heads/brought\nrefs/teamster/done/wip";
        let there = place.repository.git(refs);
        assert!(
            ["", "refs/heads/brought", all].contains(&&*there),
            "{at}: {there}"
        );
        // The next one brings it, and leaves nothing else.
        assert!(!place.is_killed("fetch", u64::MAX));
        let refs = place
            .repository
            .git(["for-each-ref", "--format=%(refname)"]);
        assert_eq!(
            refs,
            format!(
                "refs/heads/brought\nrefs/heads/main\nrefs/stash\n{}",
                &all[19..]
            ),
            "{at}"
        );
        is_killed
    });
    assert!(kills >= 3, "{kills}");
}
