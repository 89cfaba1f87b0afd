//! Where on this machine a run may work.

use std::path::Path;

use teamster_api::{ServiceError, Workspace};
use teamster_core::AgentError;

use crate::names::RunKey;

/// Returns whether a run may work there. `allows` decides about the directories of the machine that it names.
pub(super) fn is_allowed(location: Option<&Workspace>, allows: impl Fn(&Path) -> bool) -> bool {
    match location {
        // That in which the worker was started.
        Some(Workspace::Worktree { directory, .. }) => directory.as_deref().is_some_and(allows),
        // git reads a relative one, and that of `file://host/path`, from elsewhere.
        Some(Workspace::Repository { url, .. }) => {
            local_path(url).is_none_or(|path| path.is_absolute() && allows(path))
        }
        Some(location) => location.path().is_none_or(|path| allows(path)),
        None => true,
    }
}

/// Refuses a run whose names have capitals, where a disk ignores the case of names: its folders might be those of
/// another owner or run. Names the one that has them.
pub(super) fn check_case(key: &RunKey) -> Result<(), ServiceError> {
    let names = [("owner", &key.owner), ("run_id", &key.run)];
    for (parameter, name) in names {
        if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            let small = name.to_ascii_lowercase();
            let problem = format!(
                "the disk of this machine takes \"{name}\" and \"{small}\" for one: use small letters, or another machine"
            );
            return Err(AgentError::refused(parameter, problem).into());
        }
    }
    Ok(())
}

/// Returns the path in the URL of a repository, if git reads it as one of this machine or gives it to a helper.
pub(super) fn local_path(url: &str) -> Option<&Path> {
    let path = match url.split_once("://") {
        Some((scheme, path)) if scheme.eq_ignore_ascii_case("file") => path,
        Some((scheme, _)) if !scheme.contains("::") => return None,
        Some(_) => url,
        // `host:path`, but not `helper::address`, nor a path with a colon.
        None => match url.split_once(':') {
            Some((host, rest)) if !host.contains('/') && !rest.starts_with(':') => return None,
            _ => url,
        },
    };
    Some(Path::new(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_disk_ignores_case_only_small_letters_are_taken() {
        assert_eq!(check_case(&RunKey::new("ann-1", "fix_2.b")), Ok(()));
        for (owner, run, parameter) in [("Ann", "fix", "owner"), ("ann", "Fix", "run_id")] {
            let refused = check_case(&RunKey::new(owner, run)).unwrap_err();
            assert_eq!(refused.parameter.as_deref(), Some(parameter));
            assert!(refused.message.contains("use small letters"), "{refused}");
        }
    }

    #[test]
    fn a_repository_of_the_machine_has_an_absolute_path() {
        for (url, allowed) in [
            ("/a", true),
            ("file:///a", true),
            ("file://ok/a", false),
            ("ok/a", false),
            ("ext::sh", false),
        ] {
            let location =
                serde_json::json!({ "kind": "repository", "url": url, "commit": "main" });
            let location = serde_json::from_value(location).unwrap();
            assert_eq!(is_allowed(Some(&location), |_| true), allowed, "{url}");
        }
    }

    #[test]
    fn directories_of_the_machine_are_used_only_if_they_are_allowed() {
        let may = |location: serde_json::Value| {
            let location = serde_json::from_value(location).unwrap();
            is_allowed(Some(&location), |path| path.starts_with("/ok"))
        };
        let json = |kind: &str, name: &str, value: &str| {
            let mut location = serde_json::json!({ "kind": kind });
            location[name] = value.into();
            if kind == "repository" {
                location["commit"] = "main".into();
            }
            location
        };
        assert!(may(json("directory", "path", "/ok/a")));
        assert!(!may(json("directory", "path", "/home")));
        assert!(may(json("worktree", "directory", "/ok/a")));
        assert!(!may(serde_json::json!({ "kind": "worktree" })));
        for (url, allowed) in [
            ("https://example.com/a.git", true),
            ("git@example.com:a/b.git", true),
            ("/ok/a", true),
            ("file:///ok/a", true),
            ("/home/x", false),
            ("FILE:///home/x", false),
            ("../x", false),
            ("x", false),
            ("./a:b", false),
            ("ext::sh", false),
            ("ext::ssh://x", false),
        ] {
            assert_eq!(may(json("repository", "url", url)), allowed, "{url}");
        }
    }
}
