//! Commands and skills in the files that a CLI reads, before it has reported them.

use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use teamster_core::{CliInfo, SlashCommand};

/// Maximum number of commands and skills.
const MAX_COMMANDS: usize = 500;
/// Depth of folders of commands.
const DEPTH: usize = 4;
/// Size of the beginning of a file that has its description, in bytes.
const HEAD: u64 = 16 << 10;

/// Returns the commands and skills in the files that this CLI reads for the working directory: those of the project and of the
/// user, each name once. What the CLI itself has is not in files.
pub fn cli_commands(info: &CliInfo, directory: &Path) -> Vec<SlashCommand> {
    let variable = |name: &str| env::var_os(name);
    let mut found = Vec::new();
    for location in info.commands {
        if let Some(folder) = location.path(directory, &variable) {
            commands_in(&folder, "", DEPTH, &mut found);
        }
    }
    for location in info.skills {
        if let Some(folder) = location.path(directory, &variable) {
            skills_in(&folder, &mut found);
        }
    }
    let mut all: Vec<SlashCommand> = Vec::new();
    for command in found {
        if all.iter().all(|it| it.name != command.name) {
            all.push(command);
        }
    }
    all
}

/// Adds the Markdown files of a folder. Those of a folder in it have its name and a colon before theirs.
fn commands_in(folder: &Path, prefix: &str, depth: usize, found: &mut Vec<SlashCommand>) {
    for (name, path) in entries(folder) {
        if found.len() >= MAX_COMMANDS {
            return;
        }
        if path.is_dir() {
            if depth > 0 {
                commands_in(&path, &format!("{prefix}{name}:"), depth - 1, found);
            }
        } else if let Some(stem) = name.strip_suffix(".md") {
            found.extend(command(format!("{prefix}{stem}"), &path));
        }
    }
}

/// Adds the folders with a skill.
fn skills_in(folder: &Path, found: &mut Vec<SlashCommand>) {
    for (name, path) in entries(folder) {
        if found.len() >= MAX_COMMANDS {
            return;
        }
        found.extend(command(name, &path.join("SKILL.md")));
    }
}

/// Returns the entries of a folder in the order of their names, without hidden ones. A folder that cannot be read has none.
fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter_map(|it| Some((it.file_name().into_string().ok()?, it.path())));
    let mut named: Vec<_> = named.filter(|(name, _)| !name.starts_with('.')).collect();
    named.sort();
    named
}

/// Reads the beginning of a file. `None` if it is not a regular file that can be read.
fn command(name: String, path: &Path) -> Option<SlashCommand> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut head = Vec::new();
    File::open(path)
        .ok()?
        .take(HEAD)
        .read_to_end(&mut head)
        .ok()?;
    let head = String::from_utf8_lossy(&head);
    let command = SlashCommand::new(name);
    Some(
        command
            .description(field(&head, "description"))
            .input_hint(field(&head, "argument-hint")),
    )
}

/// Returns a text of one line in the front matter of a Markdown file.
fn field(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines();
    if lines.next()?.trim_end() != "---" {
        return None;
    }
    let mut lines = lines.take_while(|line| line.trim_end() != "---");
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let value = value.trim();
    let quoted = |mark: char| value.strip_prefix(mark)?.strip_suffix(mark);
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
    // A block follows in other lines.
    let is_text = !value.is_empty() && !matches!(value, ">" | "|" | ">-" | "|-");
    is_text.then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use teamster_core::provider::FileLocation;

    use super::*;

    #[test]
    fn commands_and_skills_of_a_project_have_their_descriptions() {
        let project = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = project.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "c/fix.md",
            "---\ndescription: \"Fix it\"\nargument-hint: [issue]\n---\ndescription: no\n",
        );
        write("c/git/commit.md", "Commit.\n");
        write("c/notes.txt", "no command");
        write("c/.hidden.md", "no command");
        write(
            "s/review/SKILL.md",
            "---\nname: review\ndescription: >\n  Reviews\n---\n",
        );
        // The command of this name comes first.
        write("s/fix/SKILL.md", "---\ndescription: a skill\n---\n");
        write("s/empty/README.md", "no skill");
        let mut info = CliInfo::new("x", "X", "x");
        info.commands = &[FileLocation::Project("c"), FileLocation::Project("none")];
        info.skills = &[FileLocation::Project("s")];
        assert_eq!(
            cli_commands(&info, project.path()),
            [
                SlashCommand::new("fix")
                    .description("Fix it")
                    .input_hint("[issue]"),
                SlashCommand::new("git:commit"),
                SlashCommand::new("review"),
            ]
        );
    }
}
