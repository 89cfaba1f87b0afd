//! Processes that are killed while they push what a run has committed.

use std::fs;

use teamster_workspace::{Kept, SILENCE};

use super::{Place, at_each_change, is_users};
use crate::it::repository::{files_of, git};

#[test]
fn a_push_that_is_killed_leaves_the_result_and_can_be_repeated() {
    let template = Place::template();
    let mut kills = 0;
    at_each_change(&template, |place, at| {
        let remote = place.state.path().join("remote.git");
        let path = remote.to_str().unwrap();
        let source = place.repository.path().to_str().unwrap();
        let clone = ["clone", "--quiet", "--bare", source, path];
        git(place.state.path(), clone);
        place.repository.git(["remote", "add", "origin", path]);
        let refs = || {
            git(
                &remote,
                ["for-each-ref", "--format=%(refname) %(objectname)"],
            )
        };
        let (users, others) = (
            || {
                files_of(place.repository.path(), |path| {
                    is_users(path)
                        && !path.starts_with(".git/logs/refs/remotes")
                        && !path.starts_with(".git/refs/remotes")
                })
            },
            refs(),
        );
        let before = users();
        let is_killed = place.is_killed("push", at);
        let context = format!("push at {at}");
        assert!(users() == before, "{context}: something was changed");
        if let Ok(head) = fs::read_to_string(place.root().with_extension("worked")) {
            let mut kept = Kept::find(&place.root(), "r").unwrap().unwrap();
            let result = kept.result().unwrap();
            assert_eq!(result.head.as_deref(), Some(&*head), "{context}");
            // Pushed is what is known to be there.
            let pushed = format!("refs/heads/fix {head}\n{others}");
            if result.pushed.is_some() || !is_killed {
                assert_eq!(refs(), pushed, "{context}");
            } else {
                assert!(
                    [&pushed, &others].contains(&&refs()),
                    "{context}: {}",
                    refs()
                );
            }
            let again = kept.push("origin", Some("fix"), SILENCE).unwrap();
            assert_eq!(again, "origin:fix", "{context}");
            assert_eq!(refs(), pushed, "{context}");
            kills += u32::from(is_killed);
        } else {
            assert_eq!(refs(), others, "{context}");
        }
        is_killed
    });
    // Before git, and before the two steps of the note.
    assert_eq!(kills, 3);
}
