//! Instruction files of agents.

use std::path::Path;

use teamster_core::CliInfo;
use teamster_core::provider::COMMON_INSTRUCTIONS;

/// Returns the instruction files of an agent: first those of its CLI, then those of the default CLI, for which
/// the agent may have been written, then the one that most CLIs share. The full prompt names them all.
pub(crate) fn instruction_files(
    agent: Option<&CliInfo>,
    usual: Option<&CliInfo>,
) -> Vec<&'static str> {
    let of_clis = agent.into_iter().chain(usual);
    let of_clis = of_clis.flat_map(|info| info.instructions.iter().copied());
    let mut files: Vec<&'static str> = Vec::new();
    for file in of_clis.chain([COMMON_INSTRUCTIONS]) {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files
}

pub(crate) fn has_instructions(directory: &Path, files: &[&str]) -> bool {
    files.iter().any(|file| directory.join(file).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_own_come_first_and_none_comes_twice() {
        static USUAL: CliInfo = {
            let mut info = CliInfo::new("usual", "Usual", "usual");
            info.instructions = &["USUAL.md"];
            info
        };
        static OTHER: CliInfo = {
            let mut info = CliInfo::new("other", "Other", "other");
            info.instructions = &["OTHER.md", COMMON_INSTRUCTIONS];
            info
        };
        let files = instruction_files(Some(&OTHER), Some(&USUAL));
        assert_eq!(files, ["OTHER.md", "AGENTS.md", "USUAL.md"]);
        let files = instruction_files(Some(&USUAL), Some(&USUAL));
        assert_eq!(files, ["USUAL.md", "AGENTS.md"]);
        assert_eq!(instruction_files(None, None), ["AGENTS.md"]);
    }
}
