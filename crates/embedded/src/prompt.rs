//! System prompt.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use teamster_core::{ExecuteParams, SystemPrompt};

/// File with a project's instructions.
const INSTRUCTIONS: &str = "AGENTS.md";
/// Maximum bytes read from that file.
const MOST: u64 = 32 << 10;

/// Returns the system prompt of a run.
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
    if let Some(instructions) = instructions(directory) {
        text.push_str("\n\nInstructions of this project (AGENTS.md):\n\n");
        text.push_str(&instructions);
    }
    text
}

fn instructions(directory: &Path) -> Option<String> {
    let file = File::open(directory.join(INSTRUCTIONS)).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
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
}
