//! Patterns of paths in rules.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use crate::tools::{Roots, Target, plain};

/// A pattern of paths, such as `src/**` or `.env`.
#[derive(Debug, Clone)]
pub(super) struct PathPattern {
    /// Folder or file that the pattern begins with, up to its first wildcard. Not absolute if the pattern is not.
    base: PathBuf,
    /// Rest of the pattern, if it has wildcards: as it is, and without regard to case.
    rest: Option<(GlobMatcher, GlobMatcher)>,
}

impl PathPattern {
    /// Reads a pattern. `~/` at its beginning is the home directory.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = match text.strip_prefix("~/").zip(std::env::home_dir()) {
            Some((rest, home)) => home.join(rest).to_string_lossy().into_owned(),
            None => text.to_owned(),
        };
        // Paths have no `/` at their end.
        let text = match text.trim_end_matches('/') {
            "" => text.as_str(),
            trimmed => trimmed,
        };
        let is_wild = |part: &&str| part.contains(['*', '?', '[', ']', '{', '}', '\\']);
        let parts: Vec<_> = text.split('/').collect();
        let fixed = parts.iter().position(is_wild);
        let (base, rest) = parts.split_at(fixed.unwrap_or(parts.len()));
        if rest.contains(&"..") {
            return Err("`..` after a wildcard matches nothing".to_owned());
        }
        let mut base = base.join("/");
        if text.starts_with('/') && base.is_empty() {
            base.push('/');
        }
        let rest = rest.join("/");
        Ok(Self {
            base: base.into(),
            rest: if rest.is_empty() {
                None
            } else {
                Some((glob(&rest, false)?, glob(&rest, true)?))
            },
        })
    }

    /// Returns whether a rule with this pattern allows a path. Only the path's target counts.
    pub(super) fn allows(&self, roots: &Roots, target: &Target) -> bool {
        let Ok(real) = &target.real else { return false };
        let base = plain(&roots.working().join(&self.base));
        let real_base = base.canonicalize().unwrap_or_else(|_| base.clone());
        [base, real_base].iter().any(|base| match &self.rest {
            None => real == base,
            Some((rest, _)) => real
                .strip_prefix(base)
                .is_ok_and(|path| rest.is_match(path)),
        })
    }

    /// Returns whether a rule with this pattern denies a path: as it was requested, or what it leads to. What is in a
    /// folder that is denied is denied as well. A relative pattern is about each directory of the run.
    pub(super) fn denies(&self, roots: &Roots, target: &Target) -> bool {
        let paths = std::iter::once(&target.asked).chain(target.real.as_ref().ok());
        let paths: Vec<_> = paths.collect();
        roots.all().any(|root| {
            let base = plain(&root.join(&self.base));
            let real_base = base.canonicalize().unwrap_or_else(|_| base.clone());
            let matches = |path: &&PathBuf| {
                [&base, &real_base].into_iter().any(|base| {
                    let Some(path) = below(path, base) else {
                        return false;
                    };
                    (self.rest.as_ref()).is_none_or(|(_, rest)| is_in(&path, rest))
                })
            };
            paths.iter().any(matches) || (self.rest.is_none() && is_linked(&real_base, target))
        })
    }
}

/// Compiles a pattern. The error is its problem.
pub(super) fn glob(pattern: &str, ignores_case: bool) -> Result<GlobMatcher, String> {
    let mut glob = GlobBuilder::new(pattern);
    let glob = glob.case_insensitive(ignores_case).build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|error| error.kind().to_string())
}

/// Returns whether a path or a folder that it is in matches.
fn is_in(path: &Path, pattern: &GlobMatcher) -> bool {
    path.ancestors()
        .filter(|path| !path.as_os_str().is_empty())
        .any(|path| pattern.is_match(path))
}

/// Returns the rest of a path below `base`, without regard to case: not every file system has one.
fn below(path: &Path, base: &Path) -> Option<PathBuf> {
    let lower = |name: &OsStr| name.to_string_lossy().to_lowercase();
    let mut names = path.components();
    for expected in base.components() {
        if lower(names.next()?.as_os_str()) != lower(expected.as_os_str()) {
            return None;
        }
    }
    Some(names.as_path().to_owned())
}

/// Returns whether a path is another hard link to this file.
fn is_linked(base: &Path, target: &Target) -> bool {
    use std::os::unix::fs::MetadataExt;

    let about = |path: &Path| path.metadata().ok().filter(|about| about.nlink() > 1);
    let Some(about_path) = target.real.as_ref().ok().and_then(|real| about(real)) else {
        return false;
    };
    let same = about(base).filter(std::fs::Metadata::is_file);
    same.is_some_and(|it| (it.dev(), it.ino()) == (about_path.dev(), about_path.ino()))
}
