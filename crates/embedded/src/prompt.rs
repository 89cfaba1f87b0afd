//! System prompt.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use teamster_core::{ExecuteParams, SystemPrompt};
use teamster_process::is_repository;

/// File with a project's instructions.
const INSTRUCTIONS: &str = "AGENTS.md";
/// Maximum bytes read from such files.
const MOST: u64 = 32 << 10;

pub(crate) fn system(params: &ExecuteParams, directory: &Path) -> String {
    let own = match &params.system_prompt {
        Some(SystemPrompt::Replace(text)) => text.clone(),
        Some(SystemPrompt::Append(text)) => format!("{}\n\n{text}", usual(directory)),
        _ => usual(directory),
    };
    let form = params.output_schema.as_ref().map_or("", |_| FORM);
    format!("{own}{form}")
}

const FORM: &str = "\n\nWhen you are done, give the final answer by calling the tool StructuredOutput, \
                    exactly once.";

fn usual(directory: &Path) -> String {
    let mut text = format!(
        "You are a coding agent. You work in the directory {}. Do what the user asks, with the tools you \
         have, and then say briefly what you did. Read before you edit, change no more than needed, and \
         check what you did. Paths are relative to that directory. If a tool is denied, say so instead of \
         working around it. Nobody can answer questions in the middle of a turn.",
        directory.display()
    );
    for (file, instructions) in instructions(directory) {
        let _ = write!(
            text,
            "\n\nInstructions of this project ({file}):\n\n{instructions}"
        );
    }
    text
}

/// Returns the instructions for a directory: those of the repository's root first, its own last. Without a
/// repository, only its own.
fn instructions(directory: &Path) -> Vec<(String, String)> {
    let root = (directory.ancestors().find(|folder| is_repository(folder))).unwrap_or(directory);
    let mut left = MOST;
    let mut found = Vec::new();
    // What is nearer is more important if there is too much.
    for folder in directory.ancestors() {
        if let Some(text) = read(&folder.join(INSTRUCTIONS), left) {
            left -= text.len() as u64;
            let shown = if folder == directory {
                INSTRUCTIONS.to_owned()
            } else {
                folder.join(INSTRUCTIONS).display().to_string()
            };
            found.push((shown, text));
        }
        if folder == root {
            break;
        }
    }
    found.reverse();
    found
}

/// Reads the beginning of a file with instructions. `None` if there is nothing in it.
fn read(path: &Path, most: u64) -> Option<String> {
    // A pipe may never end.
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    File::open(path)
        .ok()?
        .take(most)
        .read_to_end(&mut bytes)
        .ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    let text = text[..text.floor_char_boundary(usize::try_from(most).ok()?)].to_owned();
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_the_project_and_the_callers_are_added() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("AGENTS.md"), "Use tabs.\n").unwrap();
        let mut params = ExecuteParams::new("hi");
        params.system_prompt = Some(SystemPrompt::Append("Be kind.".into()));
        let text = system(&params, temp.path());
        assert!(text.contains("(AGENTS.md):\n\nUse tabs."), "{text}");
        assert!(text.ends_with("\n\nBe kind."), "{text}");
        params.system_prompt = Some(SystemPrompt::Replace("Judge.".into()));
        assert_eq!(system(&params, temp.path()), "Judge.");
    }

    #[test]
    fn instructions_go_from_the_root_of_the_repository_down() {
        let temp = tempfile::tempdir().unwrap();
        let outer = temp.path();
        let inner = outer.join("repo/a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(outer.join("AGENTS.md"), "Outside.").unwrap();
        std::fs::write(outer.join("repo/AGENTS.md"), "Root.").unwrap();
        std::fs::write(inner.join("AGENTS.md"), "Own.").unwrap();
        let texts = || -> Vec<_> {
            instructions(&inner)
                .into_iter()
                .map(|(_, text)| text)
                .collect()
        };
        assert_eq!(texts(), ["Own."]);
        std::fs::write(outer.join("repo/.git"), "gitdir: x").unwrap();
        assert_eq!(texts(), ["Root.", "Own."]);
        let text = system(&ExecuteParams::new("hi"), &inner);
        let root = outer.join("repo/AGENTS.md");
        assert!(
            text.contains(&format!("({}):\n\nRoot.", root.display())),
            "{text}"
        );
        std::fs::write(inner.join("AGENTS.md"), "ä".repeat(40_000)).unwrap();
        let long = texts();
        assert_eq!(long.len(), 1, "nothing is left for the root");
        assert!(long[0].len() as u64 <= MOST);
    }
}
