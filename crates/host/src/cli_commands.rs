//! Commands and skills in the files that a CLI reads, before it has reported them.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};

use teamster_core::{CliInfo, SlashCommand};
use teamster_process::open_regular_file;

/// Maximum number of commands and skills.
const MAX_COMMANDS: usize = 500;
/// Maximum number of files and folders that are looked at. A link may lead to a folder above it, again and again.
const MAX_ENTRIES: usize = 5000;
/// Depth of folders of commands.
const DEPTH: usize = 4;
/// Size of the beginning of a file that has its description, in bytes.
const HEAD: u64 = 16 << 10;

/// Returns the commands and skills in the files that this CLI reads for the working directory: those of the project and of the
/// user, each name once. What the CLI itself has is not in files.
pub fn cli_commands(info: &CliInfo, directory: &Path) -> Vec<SlashCommand> {
    let variable = |name: &str| env::var_os(name);
    let mut search = Search {
        found: Vec::new(),
        left: MAX_ENTRIES,
    };
    for location in info.commands {
        if let Some(folder) = location.path(directory, &variable) {
            search.commands_in(&folder, "", DEPTH);
        }
    }
    for location in info.skills {
        if let Some(folder) = location.path(directory, &variable) {
            search.skills_in(&folder);
        }
    }
    let mut all: Vec<SlashCommand> = Vec::new();
    for command in search.found {
        if all.iter().all(|it| it.name != command.name) {
            all.push(command);
        }
    }
    all
}

/// What was found so far.
struct Search {
    found: Vec<SlashCommand>,
    /// The number of files and folders that may still be looked at.
    left: usize,
}

impl Search {
    /// Adds the Markdown files of a folder. Those of a folder in it have its name and a colon before theirs.
    fn commands_in(&mut self, folder: &Path, prefix: &str, depth: usize) {
        for (name, path) in self.entries(folder) {
            if self.found.len() >= MAX_COMMANDS {
                return;
            }
            if path.is_dir() {
                if depth > 0 {
                    self.commands_in(&path, &format!("{prefix}{name}:"), depth - 1);
                }
            } else if let Some(stem) = name.strip_suffix(".md") {
                self.found.extend(command(format!("{prefix}{stem}"), &path));
            }
        }
    }

    fn skills_in(&mut self, folder: &Path) {
        for (name, path) in self.entries(folder) {
            if self.found.len() >= MAX_COMMANDS {
                return;
            }
            self.found.extend(command(name, &path.join("SKILL.md")));
        }
    }

    /// Returns the entries of a folder in the order of their names, without hidden ones. A folder that cannot be read has
    /// none.
    fn entries(&mut self, folder: &Path) -> Vec<(String, PathBuf)> {
        let entries = fs::read_dir(folder).into_iter().flatten();
        let entries: Vec<_> = entries.take(self.left).flatten().collect();
        self.left -= entries.len();
        let named = (entries.into_iter())
            .filter_map(|it| Some((it.file_name().into_string().ok()?, it.path())));
        let mut named: Vec<_> = named.filter(|(name, _)| !name.starts_with('.')).collect();
        named.sort();
        named
    }
}

/// Reads the beginning of a file. `None` if it is not a regular file that can be read, or a skill for the model alone.
fn command(name: String, path: &Path) -> Option<SlashCommand> {
    let file = open_regular_file(OpenOptions::new().read(true), path).ok()?;
    let mut head = Vec::new();
    file.take(HEAD).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    if field(&head, "user-invocable").as_deref() == Some("false") {
        return None;
    }
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
        write("s/hidden/SKILL.md", "---\nuser-invocable: false\n---\n");
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

    #[test]
    fn links_that_lead_back_end_the_search() {
        let project = tempfile::tempdir().unwrap();
        let folder = project.path().join("c");
        fs::create_dir(&folder).unwrap();
        for number in 0..100 {
            std::os::unix::fs::symlink(".", folder.join(number.to_string())).unwrap();
        }
        fs::write(folder.join("#first.md"), "Begin.").unwrap();
        let mut search = Search {
            found: Vec::new(),
            left: 1000,
        };
        search.commands_in(&folder, "", DEPTH);
        assert_eq!(search.left, 0);
        assert!(search.found.contains(&SlashCommand::new("#first")));
    }
}
