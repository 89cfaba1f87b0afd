//! Files that other programs run or obey later: an edit of one is more than an edit.

use std::path::{Component, Path};

use super::Words;

/// Folders whose content is protected.
const FOLDERS: [Words; 5] = [
    // Version control and its hooks.
    Words(".git .githooks .git-hooks .hg .husky .jj .svn"),
    // Editors and containers for development.
    Words(".devcontainer .fleet .idea .nvim .vim .vscode .vscode-server .zed"),
    // Agents.
    Words(
        "
            .agents .aider .claude .cline .clinerules .codex .continue .copilot .cursor .factory .gemini
            .kilocode .kimi .kiro .opencode .pi .qwen .roo .teamster .windsurf
        ",
    ),
    // Continuous integration.
    Words(".buildkite .circleci .forgejo .gitea .gitlab .woodpecker"),
    // Programs that read them in a folder that they are started in, and logins.
    Words(".bundle .cargo .direnv .gnupg .mise .mvn .ssh .yarn"),
];

/// Names of files that are protected in every folder.
const FILES: [Words; 6] = [
    // Version control. A folder with a `HEAD` can be a repository with its own hooks.
    Words(
        "
            .gitattributes .gitconfig .gitmodules .hgrc .lefthook.yml .pre-commit-config.yaml
            .pre-commit-config.yml head lefthook.yaml lefthook.yml
        ",
    ),
    // Shells and what they load.
    Words(
        "
            .bash_aliases .bash_login .bash_logout .bash_profile .bashrc .cshrc .envrc .inputrc .kshrc
            .login .mise.toml .profile .tool-versions .xprofile .zlogin .zprofile .zshenv .zshrc mise.toml
        ",
    ),
    // Editors and debuggers.
    Words(".dir-locals.el .emacs .exrc .gdbinit .lldbinit .nvim.lua .nvimrc .vimrc"),
    // Package managers.
    Words(".bazelrc .condarc .npmrc .pnp.cjs .pnpmfile.cjs .pypirc .yarnrc .yarnrc.yml pip.conf"),
    // Agents: servers, settings and instructions.
    Words(
        "
            .aider.conf.yml .clinerules .cursorrules .goosehints .mcp.json .roorules .windsurfrules agent.md
            agents.config.json agents.md agents.override.md claude.local.md claude.md
            copilot-instructions.md gemini.md mcp.json opencode.json opencode.jsonc qwen.md skill.md
            teamster.toml warp.md
        ",
    ),
    // Continuous integration.
    Words(".drone.yml .gitlab-ci.yml .travis.yml azure-pipelines.yml jenkinsfile"),
];

/// Returns whether a file is protected. `path` is below one of a run's directories, and relative to it.
pub(super) fn is_protected(root: &Path, path: &Path) -> bool {
    let names: Vec<_> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
            _ => None,
        })
        .collect();
    let Some((file, _)) = names.split_last() else {
        return false;
    };
    let is_folder = |name: &String| FOLDERS.iter().any(|folders| folders.has(name));
    let of_github = names.windows(2).any(|two| {
        two[0] == ".github"
            && matches!(
                two[1].as_str(),
                "workflows" | "actions" | "hooks" | "instructions"
            )
    });
    names.iter().any(is_folder)
        || of_github
        || FILES.iter().any(|files| files.has(file))
        || file.ends_with(".code-workspace")
        || file.ends_with(".instructions.md")
        || path
            .ancestors()
            .skip(1)
            .any(|folder| is_repository(&root.join(folder)))
}

/// Returns whether git takes a folder for a repository of its own.
fn is_repository(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    has("HEAD") && has("objects") && has("refs")
}
