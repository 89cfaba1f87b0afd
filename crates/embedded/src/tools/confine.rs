//! Confinement of paths to the directories of a run.

use std::path::{Component, Path, PathBuf};

/// A path of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The path as it was requested: absolute and without `.` and `..`, symbolic links not followed.
    pub(crate) asked: PathBuf,
    /// The path that it leads to, or the reason why the call cannot use it.
    pub(crate) real: Result<PathBuf, String>,
}

/// Returns a path without `.` and `..`. Symbolic links are not followed.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// Directories that tools may use, with symbolic links resolved.
#[derive(Debug)]
pub(crate) struct Roots(Vec<PathBuf>);

impl Roots {
    /// Takes the directories, of which the first is the working directory. The list must not be empty.
    pub(crate) fn new(directories: Vec<PathBuf>) -> Self {
        Self(directories)
    }

    pub(crate) fn working(&self) -> &Path {
        self.0.first().map_or(Path::new("."), PathBuf::as_path)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(PathBuf::as_path)
    }

    /// Resolves an existing path and checks that it is inside one of the directories.
    pub(crate) fn existing(&self, path: &str) -> Target {
        self.target(path, self.find(path))
    }

    /// Resolves a path that may not exist yet and checks that it is inside one of the directories.
    pub(crate) fn new_or_existing(&self, path: &str) -> Target {
        self.target(path, self.find_or_new(path))
    }

    /// Resolves a path that another program uses, wherever it is.
    pub(crate) fn anywhere(&self, path: &str) -> Target {
        let asked = plain(&self.working().join(path));
        let known = asked.ancestors().find_map(|known| {
            let rest = asked.strip_prefix(known).ok()?;
            Some(known.canonicalize().ok()?.join(rest))
        });
        self.target(path, Ok(known.unwrap_or(asked)))
    }

    fn target(&self, path: &str, real: Result<PathBuf, String>) -> Target {
        let asked = plain(&self.working().join(path));
        Target { asked, real }
    }

    fn find(&self, path: &str) -> Result<PathBuf, String> {
        let real = self.absolute(path)?;
        let real = real
            .canonicalize()
            .map_err(|error| format!("{path}: {error}"))?;
        self.inside(path, real)
    }

    fn find_or_new(&self, path: &str) -> Result<PathBuf, String> {
        let absolute = self.absolute(path)?;
        let mut missing = Vec::new();
        let mut known = absolute.as_path();
        loop {
            match known.symlink_metadata() {
                Ok(_) => break,
                Err(_) => match (known.parent(), known.components().next_back()) {
                    (Some(parent), Some(Component::Normal(name))) => {
                        missing.push(name.to_owned());
                        known = parent;
                    }
                    // Reject `..` below a missing folder, because its target is unknown.
                    _ => return Err(format!("{path}: a folder in it does not exist")),
                },
            }
        }
        // Fails for a dangling link.
        let mut real = known
            .canonicalize()
            .map_err(|error| format!("{path}: {error}"))?;
        if !missing.is_empty() && !real.is_dir() {
            return Err(format!("{path}: {} is not a folder", known.display()));
        }
        real.extend(missing.into_iter().rev());
        self.inside(path, real)
    }

    /// Returns a path as it is shown to the model.
    pub(crate) fn shown(&self, real: &Path) -> String {
        let shown = real.strip_prefix(self.working()).unwrap_or(real);
        shown.display().to_string()
    }

    /// Returns whether a resolved path is inside one of the directories.
    pub(crate) fn holds(&self, real: &Path) -> bool {
        self.0.iter().any(|root| real.starts_with(root))
    }

    fn absolute(&self, path: &str) -> Result<PathBuf, String> {
        if path.trim().is_empty() {
            return Err("the path is empty".to_owned());
        }
        if path.contains('\0') {
            return Err("the path holds a NUL byte".to_owned());
        }
        Ok(self.working().join(path))
    }

    fn inside(&self, path: &str, real: PathBuf) -> Result<PathBuf, String> {
        if self.holds(&real) {
            return Ok(real);
        }
        let roots: Vec<_> = self
            .0
            .iter()
            .map(|root| root.display().to_string())
            .collect();
        Err(format!(
            "{path} leads out of the directories of this run ({}); work inside of them, or ask the user to \
             add the other one (--add-dir)",
            roots.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_with_dots_or_links_stay_inside() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        let (work, other, outside) = (base.join("work"), base.join("other"), base.join("outside"));
        for folder in [&work, &other, &outside] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(work.join("a.txt"), "a").unwrap();
        std::fs::write(outside.join("secret"), "s").unwrap();
        symlink(&outside, work.join("out")).unwrap();
        symlink(outside.join("secret"), work.join("link")).unwrap();
        symlink(outside.join("nothing"), work.join("dangling")).unwrap();
        symlink(work.join("a.txt"), work.join("inner")).unwrap();
        let roots = Roots::new(vec![work.clone(), other.clone()]);

        let existing = |path: &str| roots.existing(path).real;
        assert_eq!(existing("a.txt"), Ok(work.join("a.txt")));
        assert!(existing("./x/../a.txt").is_err(), "x is not there");
        assert_eq!(existing("inner"), Ok(work.join("a.txt")));
        assert_eq!(
            existing(work.join("a.txt").to_str().unwrap()),
            Ok(work.join("a.txt"))
        );
        for path in [
            "../outside/secret",
            "out/secret",
            "link",
            "/etc/passwd",
            "..",
            "",
            "a\0b",
        ] {
            assert!(existing(path).is_err(), "{path}");
        }
        let error = existing("link").unwrap_err();
        assert!(
            error.starts_with("link leads out of") && error.contains("--add-dir"),
            "{error}"
        );

        let new = |path: &str| roots.new_or_existing(path).real;
        assert_eq!(new("b/c/d.txt"), Ok(work.join("b/c/d.txt")));
        assert_eq!(new("a.txt"), Ok(work.join("a.txt")));
        assert_eq!(new("../other/new"), Ok(other.join("new")));
        for path in [
            "out/new",
            "dangling",
            "../new",
            "x/../../new",
            "b/../../../new",
            "/new",
            "a.txt/b",
            "link",
        ] {
            assert!(new(path).is_err(), "{path}");
        }
    }
}
