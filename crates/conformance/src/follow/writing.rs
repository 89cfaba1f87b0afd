//! What `--write` changes in the repository: the list of tested versions, and a line of the changelog.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use teamster_mock_model::Cli;

use super::schema::files;
use crate::install;

/// The field of a provider's facts with its tested versions.
const TESTED: &str = "info.tested_versions = &[";

/// Adds a version to the tested ones of its provider, and a line to the changelog. Returns what was written.
pub(super) fn tested(cli: Cli, version: &str) -> anyhow::Result<Vec<PathBuf>> {
    let provider = teamster::Providers::builtin().get(cli.id());
    let info = provider.context("unknown provider")?.info();
    if info.tested_versions.contains(&version) {
        return Ok(Vec::new());
    }
    let source = source_of(cli)?;
    let text = fs::read_to_string(&source)?;
    let changed = with_version(&text, cli, version)
        .with_context(|| format!("{}: no list of tested versions", source.display()))?;
    fs::write(&source, changed)?;
    let formatted = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .arg(&source)
        .status();
    if !formatted.is_ok_and(|status| status.success()) {
        bail!(
            "rustfmt failed; format {} with `cargo fmt --all`",
            source.display()
        );
    }
    let changelog = crate::root().join("CHANGELOG.md");
    let line = format!("- {} {version} is tested.", info.name);
    let text = fs::read_to_string(&changelog)?;
    let changed = with_line(&text, &line)
        .with_context(|| format!("{}: no section `[Unreleased]`", changelog.display()))?;
    fs::write(&changelog, changed)?;
    Ok(vec![source, changelog])
}

/// Returns the beginning of the facts of a provider, in its source.
fn beginning(cli: Cli) -> String {
    format!("CliInfo::new(\"{cli}\"")
}

/// Finds the source with the facts of a provider.
fn source_of(cli: Cli) -> anyhow::Result<PathBuf> {
    let all = files(&crate::root().join("crates"))?;
    let found = all.into_iter().find(|path| is_it(path, cli));
    found.with_context(|| format!("no source under crates has the facts of {cli}"))
}

fn is_it(path: &Path, cli: Cli) -> bool {
    path.extension().is_some_and(|end| end == "rs")
        && fs::read_to_string(path)
            .is_ok_and(|text| text.contains(&beginning(cli)) && text.contains(TESTED))
}

/// Adds a version to the list of a provider, in the order of versions.
fn with_version(source: &str, cli: Cli, version: &str) -> Option<String> {
    let facts = source.find(&beginning(cli))?;
    let start = facts + source[facts..].find(TESTED)? + TESTED.len();
    let end = start + source[start..].find(']')?;
    let known = source[start..end].split(',');
    let known = known.map(|it| it.trim().trim_matches('"').to_owned());
    let mut versions: Vec<String> = known.filter(|it| !it.is_empty()).collect();
    if !versions.iter().any(|it| it == version) {
        versions.push(version.to_owned());
    }
    versions.sort_by_key(|version| install::numbers(version));
    let list: Vec<_> = versions.iter().map(|it| format!("\"{it}\"")).collect();
    Some(format!(
        "{}{}{}",
        &source[..start],
        list.join(", "),
        &source[end..]
    ))
}

/// Adds a line to what has changed since the last release, once.
fn with_line(changelog: &str, line: &str) -> Option<String> {
    const UNRELEASED: &str = "## [Unreleased]";
    const CHANGED: &str = "### Changed\n\n";
    let start = changelog.find(UNRELEASED)?;
    let after = start + UNRELEASED.len();
    let end = changelog[after..]
        .find("\n## ")
        .map_or(changelog.len(), |at| after + at + 1);
    let section = &changelog[after..end];
    if section.lines().any(|it| it == line) {
        return Some(changelog.to_owned());
    }
    let (before, rest) = match section.find(CHANGED) {
        Some(at) => changelog.split_at(after + at + CHANGED.len()),
        None => {
            let (before, rest) = changelog.split_at(after + section.trim_end().len());
            let rest = rest.trim_start_matches('\n');
            let gap = if rest.is_empty() { "" } else { "\n" };
            return Some(format!("{before}\n\n{CHANGED}{line}\n{gap}{rest}"));
        }
    };
    Some(format!("{before}{line}\n{rest}"))
}

#[cfg(test)]
mod tests {
    //! Made-up sources.

    use super::super::followed::Followed;
    use super::*;

    #[test]
    fn a_version_is_added_in_its_place_and_once() {
        let source = "let x = CliInfo::new(\"pi\", \"Pi\", \"pi\");\ninfo.tested_versions = &[\"0.9.1\"];\n\
                      let y = CliInfo::new(\"codex\", \"Codex\", \"codex\");\n\
                      info.tested_versions = &[\"0.9.0\", \"0.10.0\"];\n";
        let once = with_version(source, Cli::Codex, "0.9.5").unwrap();
        assert!(
            once.contains("&[\"0.9.0\", \"0.9.5\", \"0.10.0\"];"),
            "{once}"
        );
        assert!(once.contains("&[\"0.9.1\"];"), "{once}");
        assert_eq!(with_version(&once, Cli::Codex, "0.9.5"), Some(once.clone()));
        assert_eq!(with_version(source, Cli::Gemini, "1.0.0"), None);
    }

    #[test]
    fn every_followed_cli_has_its_list() {
        let all = Followed::all().unwrap();
        for cli in all.iter().filter_map(Followed::cli) {
            let text = fs::read_to_string(source_of(cli).unwrap()).unwrap();
            let changed = with_version(&text, cli, "999.0.0").unwrap();
            assert!(changed.contains("\"999.0.0\"]"), "{cli}");
        }
    }

    #[test]
    fn a_line_of_the_changelog_is_there_once() {
        let log = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- x\n\n## [0.1.0]\n\n- y\n";
        let once = with_line(log, "- Codex 1.2.3 is tested.").unwrap();
        assert_eq!(
            once,
            "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- x\n\n### Changed\n\n- Codex 1.2.3 is tested.\n\n## [0.1.0]\n\n- y\n"
        );
        assert_eq!(
            with_line(&once, "- Codex 1.2.3 is tested."),
            Some(once.clone())
        );
        let twice = with_line(&once, "- Pi 2.0.0 is tested.").unwrap();
        assert!(
            twice.contains("### Changed\n\n- Pi 2.0.0 is tested.\n- Codex 1.2.3 is tested.\n\n##"),
            "{twice}"
        );
        assert_eq!(with_line("# Changelog\n", "- x"), None);
    }
}
