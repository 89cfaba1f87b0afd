//! `teamster trust`: which set-up commands of repositories run on this machine.

pub(crate) mod args;

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use teamster_host::{PROJECT_FILE, Project, common_dir, trust};

use crate::report::note;
use crate::{exit_code, words};
use args::TrustArgs;

/// Trusts, lists or forgets set-up commands and returns the exit code.
pub(crate) fn main(args: &TrustArgs) -> anyhow::Result<u8> {
    let trust = trust()?;
    if args.list {
        let trusted = trust.list()?;
        if trusted.is_empty() {
            note("no set-up commands are trusted; `teamster trust` trusts those of a repository");
        }
        let lines = trusted
            .iter()
            .flat_map(|it| shown(&it.repository, &it.digest, &it.setup));
        return exit_code::of_lines(lines);
    }
    let directory = args.directory.clone().unwrap_or_else(|| PathBuf::from("."));
    if args.remove {
        let repository = common_dir(&directory).map_err(exit_code::misuse)?;
        let removed = trust.remove(&repository)?;
        return exit_code::of_lines([format!(
            "{} of {} no longer trusted",
            words::plural(removed as u64, "set-up"),
            name(&repository)
        )]);
    }
    let project = match &args.from {
        Some(from) => Project::of_commit(&directory, from),
        None => Project::of_worktree(&directory),
    };
    let project = project.map_err(exit_code::misuse)?;
    let project = (project.filter(|it| !it.setup.is_empty()))
        .ok_or_else(|| exit_code::misuse(anyhow!("{PROJECT_FILE} has no set-up commands there")))?;
    trust.add(&project)?;
    exit_code::of_lines(shown(&project.repository, &project.digest, &project.setup))
}

/// Returns the lines about the trusted commands of a repository.
fn shown(repository: &Path, digest: &str, commands: &[String]) -> Vec<String> {
    let short = digest.get(..12).unwrap_or(digest);
    let head = format!("trusted in {} ({PROJECT_FILE} {short}):", name(repository));
    let commands = commands.iter().flat_map(|it| it.lines());
    let commands = commands.map(|line| format!("  {}", words::one_line(line)));
    [head].into_iter().chain(commands).collect()
}

/// Returns the name of a repository for people: that of its working tree.
fn name(repository: &Path) -> String {
    let tree = repository.parent().filter(|_| repository.ends_with(".git"));
    words::printable(&tree.unwrap_or(repository).to_string_lossy())
}
