//! `cargo xtask tidy`: checks that no compiler makes.

mod anatomy;
mod layers;
mod names;
mod published;
mod sleeps;
mod test_names;
mod variables;
mod words;

use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use teamster_testkit::fixture::{SNAPSHOT, STDOUT};
use teamster_testkit::snapshot;

use crate::replay::SNAPSHOT_SOURCE;
use crate::{Outcome, root};

/// Maximum number of lines of a Rust file. Longer files are hard to navigate.
const MOST_LINES: usize = 500;

/// Leftovers that code must not contain. Each is split, so that this file does not match.
const LEFTOVERS: &[&str] = &[
    concat!("to", "do!"),
    concat!("db", "g!"),
    concat!("FIX", "ME"),
];

/// Returns whether a folder is skipped: ignored or used by git.
fn is_skipped(folder: &str) -> bool {
    folder == ".git" || folder == "target" || folder.starts_with("target-")
}

type Check = fn(&Tree, &mut Vec<Problem>);

const CHECKS: &[Check] = &[
    lengths,
    white_space,
    leftovers,
    manifests,
    documentation,
    snapshots,
    links,
    index,
    sleeps::check,
    test_names::check,
    anatomy::check,
    names::check,
    published::check,
    words::check,
    layers::check,
    variables::check,
];

/// Check what no compiler checks: lengths of files, manifests, snapshots, links, white space, the files of
/// provider crates, names of CLIs outside of them.
///
/// Rust files have at most 500 lines; provider crates have the files of the table "Provider anatomy" in
/// docs/architecture.md; every crate has a description, a license and the workspace's lints; every library
/// asks for documentation; every published crate has README, licence texts, keywords and categories; every fixture has a snapshot, and every snapshot a fixture and no more than its
/// test in its header; links between files lead somewhere; every page of docs is in its index; no test sleeps in real time; names of tests have
/// a subject and at most 60 characters; words that are gone for
/// good stay away; every environment variable is in the tables of docs/operating.md; crates stand on lower layers only, only programs parse arguments, print and name commands, and no
/// modules of `cli`, `server` and `conformance` import each other in a circle; no tabs, no spaces
/// at the end of a line, nothing half-finished in code.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder to check [default: this repository]
    #[arg(long, value_name = "PATH")]
    root: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<Outcome> {
    let tree = Tree::read(args.root.as_deref().unwrap_or(root()))?;
    let mut problems = Vec::new();
    for check in CHECKS {
        check(&tree, &mut problems);
    }
    for problem in &problems {
        writeln!(out, "{problem}")?;
    }
    writeln!(
        out,
        "{} files, {} problems",
        tree.files.len(),
        problems.len()
    )?;
    Ok(Outcome::problems_if(!problems.is_empty()))
}

/// All files below a folder.
struct Tree {
    root: PathBuf,
    files: Vec<File>,
}

struct File {
    /// Path from the root, separated by `/`.
    path: String,
    /// Content; empty for kinds of files that are not checked.
    text: String,
}

impl File {
    fn is(&self, extension: &str) -> bool {
        self.path.ends_with(extension)
    }

    /// Returns the lines with their numbers, from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(i, line)| (i + 1, line))
    }

    fn problem(&self, line: usize, message: impl Into<String>) -> Problem {
        Problem {
            path: self.path.clone(),
            line,
            message: message.into(),
        }
    }
}

/// A problem in a file. Line 0 stands for the entire file.
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    path: String,
    line: usize,
    message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

impl Tree {
    fn read(root: &Path) -> anyhow::Result<Self> {
        let mut tree = Self {
            root: root.to_owned(),
            files: Vec::new(),
        };
        tree.read_folder(root)?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    fn read_folder(&mut self, folder: &Path) -> anyhow::Result<()> {
        let what = || folder.display().to_string();
        for entry in fs::read_dir(folder).with_context(what)? {
            let entry = entry.with_context(what)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().with_context(what)?;
            if kind.is_dir() && !is_skipped(&name) {
                self.read_folder(&entry.path())?;
            } else if kind.is_file() {
                let path = entry.path();
                let is_text = [".rs", ".md", ".toml", SNAPSHOT]
                    .iter()
                    .any(|end| name.ends_with(end));
                let text = if is_text {
                    fs::read_to_string(&path).with_context(|| path.display().to_string())?
                } else {
                    String::new()
                };
                let below = path.strip_prefix(&self.root).unwrap_or(&path);
                let path = below.to_string_lossy().replace('\\', "/");
                self.files.push(File { path, text });
            }
        }
        Ok(())
    }

    fn with<'a>(&'a self, extension: &'static str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.is(extension))
    }

    fn has(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.path == path)
    }
}

fn lengths(tree: &Tree, problems: &mut Vec<Problem>) {
    for file in tree.with(".rs") {
        let lines = file.text.lines().count();
        if lines > MOST_LINES {
            let problem = format!("has {lines} lines, more than {MOST_LINES}: split it");
            problems.push(file.problem(0, problem));
        }
    }
}

fn white_space(tree: &Tree, problems: &mut Vec<Problem>) {
    for file in [".rs", ".md", ".toml"]
        .into_iter()
        .flat_map(|end| tree.with(end))
    {
        for (number, line) in file.lines() {
            if line.ends_with([' ', '\t']) {
                problems.push(file.problem(number, "white space at the end of the line"));
            } else if line.contains('\t') {
                problems.push(file.problem(number, "a tab; indent with spaces"));
            }
        }
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            problems.push(file.problem(0, "no newline at the end"));
        }
    }
}

fn leftovers(tree: &Tree, problems: &mut Vec<Problem>) {
    for file in tree.with(".rs") {
        for (number, line) in file.lines() {
            for word in LEFTOVERS.iter().filter(|word| line.contains(**word)) {
                problems.push(file.problem(number, format!("`{word}` is left over")));
            }
        }
    }
}

fn manifests(tree: &Tree, problems: &mut Vec<Problem>) {
    for file in tree.with("/Cargo.toml") {
        let manifest: toml::Table = match file.text.parse() {
            Ok(manifest) => manifest,
            Err(error) => {
                problems.push(file.problem(0, format!("is no TOML: {}", error.message())));
                continue;
            }
        };
        let package = manifest.get("package");
        for field in ["description", "license"] {
            if package.is_none_or(|package| package.get(field).is_none()) {
                problems.push(file.problem(0, format!("`package.{field}` is missing")));
            }
        }
        let lints = manifest
            .get("lints")
            .and_then(|lints| lints.get("workspace"));
        if lints.and_then(toml::Value::as_bool) != Some(true) {
            problems.push(file.problem(0, "`lints.workspace = true` is missing"));
        }
    }
}

fn documentation(tree: &Tree, problems: &mut Vec<Problem>) {
    for file in tree.with("/src/lib.rs") {
        if !file.text.contains("#![warn(missing_docs)]") {
            problems.push(file.problem(0, "`#![warn(missing_docs)]` is missing"));
        }
    }
}

fn snapshots(tree: &Tree, problems: &mut Vec<Problem>) {
    let header = snapshot::with_header(SNAPSHOT_SOURCE, "");
    for file in &tree.files {
        let Some((folder, name)) = file.path.rsplit_once('/') else {
            continue;
        };
        if !folder.starts_with("fixtures/") {
            continue;
        }
        let (other, message) = match name {
            STDOUT => (
                SNAPSHOT,
                "has no snapshot: run `cargo xtask replay --accept`",
            ),
            SNAPSHOT => (
                STDOUT,
                "is the snapshot of nothing: there is no stdout.ndjson",
            ),
            _ => continue,
        };
        if !tree.has(&format!("{folder}/{other}")) {
            problems.push(file.problem(0, message));
        }
        if name == SNAPSHOT && !file.text.starts_with(&header) {
            let problem = format!("has another header than `source: {SNAPSHOT_SOURCE}` alone");
            problems.push(file.problem(0, problem));
        }
    }
}

fn links(tree: &Tree, problems: &mut Vec<Problem>) {
    for file in tree.with(".md") {
        let mut in_code = false;
        for (number, line) in file.lines() {
            if line.trim_start().starts_with("```") {
                in_code = !in_code;
            }
            if in_code {
                continue;
            }
            for target in link_targets(line) {
                let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
                if !tree.root.join(folder).join(target).exists() {
                    problems.push(file.problem(number, format!("the link to {target} is dead")));
                }
            }
        }
    }
}

/// Checks that each page of `docs` is in the index of that folder.
fn index(tree: &Tree, problems: &mut Vec<Problem>) {
    let pages = || {
        tree.with(".md")
            .filter(|file| file.path.starts_with("docs/"))
    };
    let Some(index) = pages().find(|file| file.path == "docs/README.md") else {
        return;
    };
    let linked: Vec<_> = index
        .lines()
        .flat_map(|(_, line)| link_targets(line))
        .collect();
    for page in pages() {
        let name = page.path.trim_start_matches("docs/");
        if name != "README.md" && !name.contains('/') && !linked.contains(&name) {
            problems.push(page.problem(1, "is not in the index docs/README.md".to_owned()));
        }
    }
}

/// Returns the targets of a line's links to files.
fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split([')', ' ', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains(':'))
}

#[cfg(test)]
mod tests;
