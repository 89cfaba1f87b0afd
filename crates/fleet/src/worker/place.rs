//! Where on this machine a run may work.

use std::path::Path;

use teamster_api::Workspace;

/// Returns whether a run may work there. `allows` decides about the directories of the machine that it names.
pub(super) fn is_allowed(place: Option<&Workspace>, allows: impl Fn(&Path) -> bool) -> bool {
    match place {
        // That in which the worker was started.
        Some(Workspace::Worktree { directory, .. }) => directory.as_deref().is_some_and(allows),
        // git reads a relative one, and that of `file://host/path`, from elsewhere.
        Some(Workspace::Repository { url, .. }) => {
            local_path(url).is_none_or(|path| path.is_absolute() && allows(path))
        }
        Some(place) => place.path().is_none_or(|path| allows(path)),
        None => true,
    }
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
    #[test]
    fn a_repository_of_the_machine_has_an_absolute_path() {
        for (url, allowed) in [
            ("/a", true),
            ("file:///a", true),
            ("file://ok/a", false),
            ("ok/a", false),
            ("ext::sh", false),
        ] {
            let place = serde_json::json!({ "kind": "repository", "url": url, "commit": "main" });
            let place = serde_json::from_value(place).unwrap();
            assert_eq!(super::is_allowed(Some(&place), |_| true), allowed, "{url}");
        }
    }

    #[test]
    fn directories_of_the_machine_are_used_only_if_they_are_allowed() {
        let is_allowed = |place: serde_json::Value| {
            let place = serde_json::from_value(place).unwrap();
            super::is_allowed(Some(&place), |path| path.starts_with("/ok"))
        };
        let json = |kind: &str, name: &str, value: &str| {
            let mut place = serde_json::json!({ "kind": kind });
            place[name] = value.into();
            if kind == "repository" {
                place["commit"] = "main".into();
            }
            place
        };
        assert!(is_allowed(json("directory", "path", "/ok/a")));
        assert!(!is_allowed(json("directory", "path", "/home")));
        assert!(is_allowed(json("worktree", "directory", "/ok/a")));
        assert!(!is_allowed(serde_json::json!({ "kind": "worktree" })));
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
            assert_eq!(is_allowed(json("repository", "url", url)), allowed, "{url}");
        }
    }
}
