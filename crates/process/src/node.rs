//! Node.js of a CLI: whether it is new enough, and the package that npm has installed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use crate::ProcessGroup;

/// Time that Node.js may take to print its version.
const VERSION_LIMIT: Duration = Duration::from_secs(3);

/// The most that is read of a program for its first line, in bytes.
const LINE_BYTES: u64 = 256;
/// Number of folders above a program in which its `package.json` is searched.
const LEVELS: usize = 6;

pub(crate) type Version = [u64; 3];

/// Explains the failure of a CLI by a Node.js that is too old for it, such as `needs Node 22.19 or newer (its
/// package.json), found v20.20.2 at /usr/bin/node`. `stderr` is what the failed CLI printed, `path` the value of the
/// `PATH` on which its first line searches `node`.
///
/// `None` if Node.js is new enough or does not start the program, or the CLI failed for another reason.
pub async fn node_problem(program: &Path, stderr: &str, path: Option<&OsStr>) -> Option<String> {
    // A CLI may work with a Node.js that it does not promise to support, and fail for a reason of its own.
    if !stderr.to_ascii_lowercase().contains("node") {
        return None;
    }
    let program = program.canonicalize().ok()?;
    let range = required(&program)?;
    let node = node_of(&program, path)?;
    let found = version_of(&node).await?;
    if satisfies(&range, parse(&found)?) {
        return None;
    }
    Some(format!(
        "needs Node {} (its package.json), found {found} at {}",
        for_people(&range),
        node.display()
    ))
}

/// The npm package of a CLI that Node.js runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodePackage {
    /// Name of the package, such as `@google/gemini-cli`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The `package.json` that has both.
    pub file: PathBuf,
}

/// Returns the npm package of a program, if its files prove that it starts: the program is a script for Node.js that
/// the package installs, and the Node.js on `path` works and is one that the package supports.
pub async fn node_package(program: &Path, path: Option<&OsStr>) -> Option<NodePackage> {
    let program = program.canonicalize().ok()?;
    let node = node_of(&program, path)?;
    let (file, package) = package_of(&program)?;
    let folder = file.parent()?;
    let is_program = |value: &Value| {
        let target = value.as_str().map(|target| folder.join(target));
        target
            .and_then(|target| target.canonicalize().ok())
            .as_ref()
            == Some(&program)
    };
    let is_installed = match &package["bin"] {
        Value::Object(programs) => programs.values().any(is_program),
        one => is_program(one),
    };
    let found = parse(&version_of(&node).await?)?;
    let range = package["engines"]["node"].as_str();
    if !is_installed
        || range.is_some_and(|range| !satisfies(range, found))
        || !has_native_program(folder, &package)
    {
        return None;
    }
    Some(NodePackage {
        name: package["name"].as_str()?.to_owned(),
        version: package["version"].as_str()?.to_owned(),
        file,
    })
}

/// Returns `false` if a package lacks the program for this machine: its optional dependencies have one package for each
/// kind of machine, with the version of the package itself, and npm has installed none.
fn has_native_program(folder: &Path, package: &Value) -> bool {
    let Some(all) = package["optionalDependencies"].as_object() else {
        return true;
    };
    let mut programs = (all.iter())
        .filter(|(_, version)| **version == package["version"])
        .map(|(name, _)| Path::new("node_modules").join(name).join("package.json"))
        .peekable();
    let is_installed =
        |file: &PathBuf| folder.ancestors().any(|folder| folder.join(file).is_file());
    programs.peek().is_none() || programs.any(|file| is_installed(&file))
}

/// Returns the versions of Node.js that the package of this program supports.
fn required(program: &Path) -> Option<String> {
    let (_, package) = package_of(program)?;
    Some(package["engines"]["node"].as_str()?.to_owned())
}

/// Returns the nearest `package.json` above a program, and its content.
fn package_of(program: &Path) -> Option<(PathBuf, Value)> {
    let file = (program.ancestors().skip(1).take(LEVELS))
        .map(|folder| folder.join("package.json"))
        .find(|file| file.is_file())?;
    let package = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
    Some((file, package))
}

/// Returns the program that the first line of this script names, if that is `node`.
fn node_of(program: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    let mut text = Vec::new();
    (File::open(program).ok()?.take(LINE_BYTES))
        .read_to_end(&mut text)
        .ok()?;
    let line = text.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?.strip_prefix("#!")?;
    let mut words = line.split_whitespace();
    let interpreter = Path::new(words.next()?);
    if interpreter.file_name()? == "node" {
        return Some(interpreter.to_owned());
    }
    words
        .find(|word| !word.starts_with('-'))
        .filter(|word| *word == "node")?;
    which::which_in("node", path, "/").ok()
}

async fn version_of(node: &Path) -> Option<String> {
    let mut command = Command::new(node);
    command
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // `node` may be a script that starts another program.
    let (child, _group) = ProcessGroup::spawn(&mut command).ok()?;
    let output = child.wait_with_output();
    let output = timeout(VERSION_LIMIT, output).await.ok()?.ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// Returns the range in words: `22.19 or newer` for `>=22.19.0`.
fn for_people(range: &str) -> String {
    match range.trim().strip_prefix(">=").map(str::trim) {
        Some(least) if parse(least).is_some() => {
            let mut least = least.trim_start_matches('v');
            while let Some(shorter) = least.strip_suffix(".0") {
                least = shorter;
            }
            format!("{least} or newer")
        }
        _ => range.trim().to_owned(),
    }
}

/// Returns whether a version is in a range as `package.json` has it: alternatives separated by `||`, each a list of
/// comparators. A comparator of an unknown form is taken for satisfied.
fn satisfies(range: &str, version: Version) -> bool {
    range.split("||").any(|all| {
        let words: Vec<&str> = all.split_whitespace().collect();
        let mut index = 0;
        let mut good = true;
        while index < words.len() {
            let (operator, rest) = operator(words[index]);
            // `18 - 20`, and an operator with a space after it.
            if words.get(index + 1) == Some(&"-") && index + 2 < words.len() {
                good &= compare(">=", rest, version) && compare("<=", words[index + 2], version);
                index += 3;
            } else if rest.is_empty() && index + 1 < words.len() {
                good &= compare(operator, words[index + 1], version);
                index += 2;
            } else {
                good &= compare(operator, rest, version);
                index += 1;
            }
        }
        good
    })
}

fn operator(word: &str) -> (&str, &str) {
    let end = word.find(|c: char| !"<>=^~".contains(c));
    word.split_at(end.unwrap_or(word.len()))
}

/// Compares with a version of one to three numbers: `20` and `20.x` mean all versions that begin so.
fn compare(operator: &str, text: &str, version: Version) -> bool {
    let text = text.trim_start_matches('v');
    let parts: Vec<u64> = (text.split('.'))
        .map_while(|part| part.split(['-', '+']).next()?.parse().ok())
        .take(3)
        .collect();
    let Some(depth) = parts.len().checked_sub(1) else {
        return true;
    };
    let mut least = [0; 3];
    least[..parts.len()].copy_from_slice(&parts);
    // The first version that does not begin with these numbers.
    let above = |depth: usize| {
        let mut above = [0; 3];
        above[..=depth].copy_from_slice(&least[..=depth]);
        above[depth] += 1;
        above
    };
    match operator {
        ">=" => version >= least,
        ">" => version >= above(depth),
        "<" => version < least,
        "<=" => version < above(depth),
        "^" => {
            let first = least.iter().position(|part| *part > 0).unwrap_or(depth);
            version >= least && version < above(first.min(depth))
        }
        "~" => version >= least && version < above(depth.min(1)),
        "" | "=" => version >= least && version < above(depth),
        _ => true,
    }
}

/// Returns the numbers of a version such as `v20.20.2` or `22.19`.
pub(crate) fn parse(text: &str) -> Option<Version> {
    let mut version = [0; 3];
    let mut parts = text.trim().trim_start_matches('v').split('.');
    for (index, part) in version.iter_mut().enumerate() {
        match parts.next() {
            Some(text) => *part = text.split(['-', '+']).next()?.parse().ok()?,
            None if index == 0 => return None,
            None => {}
        }
    }
    Some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_packages() {
        for (range, inside, outside) in [
            (">=22.19.0", "22.19.0 23.0.0", "22.18.9 20.20.2"),
            (">= 18", "18.0.0 22.1.0", "17.9.9"),
            (">20", "21.0.0", "20.20.2"),
            (
                "^20.17.0 || >=22.9.0",
                "20.20.2 22.9.0 24.0.0",
                "20.16.0 21.5.0 22.8.0",
            ),
            ("20.x || 22", "20.1.0 22.19.0", "21.0.0 23.0.0"),
            (">=18 <21", "18.1.0 20.20.2", "17.0.0 21.0.0"),
            ("18 - 20", "18.0.0 20.20.2", "21.0.0"),
            ("~20.19", "20.19.5", "20.20.0"),
            ("~20", "20.0.0 20.99.0", "19.0.0 21.0.0"),
            ("<=20", "20.20.2", "21.0.0"),
            ("=20.1.0", "20.1.0", "20.0.9 20.1.1"),
            ("^0.0.3", "0.0.3", "0.0.4"),
            ("^0.12.3", "0.12.9", "0.13.0"),
            ("*", "1.0.0", ""),
            ("lts", "1.0.0", ""),
        ] {
            for version in inside.split_whitespace() {
                assert!(
                    satisfies(range, parse(version).unwrap()),
                    "{version} in {range}"
                );
            }
            for version in outside.split_whitespace() {
                assert!(
                    !satisfies(range, parse(version).unwrap()),
                    "{version} in {range}"
                );
            }
        }
        assert_eq!(for_people(">=22.19.0"), "22.19 or newer");
        assert_eq!(for_people(">= 20"), "20 or newer");
        assert_eq!(for_people("^20.17.0 || >=22.9.0"), "^20.17.0 || >=22.9.0");
    }

    #[test]
    fn a_launcher_without_its_native_program_is_recognized() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("lib/node_modules/cline");
        fs::create_dir_all(&folder).unwrap();
        let with = |dependencies: Value| {
            let package =
                serde_json::json!({"version": "3.0.65", "optionalDependencies": dependencies});
            has_native_program(&folder, &package)
        };
        let of_another_version = serde_json::json!({"node-pty": "1.0.0"});
        assert!(with(of_another_version));
        let native = serde_json::json!({"@cline/cli-x": "3.0.65", "@cline/cli-y": "3.0.65"});
        assert!(!with(native.clone()));
        let beside = root.path().join("lib/node_modules/@cline/cli-y");
        fs::create_dir_all(&beside).unwrap();
        fs::write(beside.join("package.json"), "{}").unwrap();
        assert!(with(native));
    }
}
