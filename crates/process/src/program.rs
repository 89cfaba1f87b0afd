//! Finding a CLI's program.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use teamster_core::{AgentError, CliProvider, ErrorCode, ErrorDetail, ErrorKind};

/// Finds a program like a shell: `name` in the directories of `path` (the value of a `PATH` variable), or `name`
/// itself if it is a path.
///
/// # Errors
///
/// Fails with [`ErrorCode::CliNotFound`]. The error names the searched directories, or a file that was found but is
/// not executable.
pub fn find_program(name: &str, path: Option<&OsStr>) -> Result<PathBuf, AgentError> {
    if Path::new(name).components().count() > 1 {
        return check_program(Path::new(name));
    }
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    if let Ok(found) = which::which_in(name, path, here) {
        return Ok(found);
    }
    let dirs: Vec<PathBuf> = path
        .map(|path| std::env::split_paths(path).collect())
        .unwrap_or_default();
    if let Some(found) = dirs.iter().map(|d| d.join(name)).find(|p| p.is_file()) {
        return Err(not_executable(&found));
    }
    let searched = if dirs.is_empty() {
        "PATH is not set or empty".to_owned()
    } else {
        let dirs: Vec<_> = dirs.iter().map(|d| d.display().to_string()).collect();
        format!("searched {}", dirs.join(", "))
    };
    let message = format!("the program `{name}` was not found: {searched}");
    Err(not_found(message).detail(ErrorDetail::missing_program(name, "")))
}

/// Folders in the home folder into which installers put programs. A service's `PATH` often lacks them: the shell's
/// start files add them.
const HOME_FOLDERS: [&str; 12] = [
    // The installers of Claude Code, Codex and Copilot, and of uv.
    ".local/bin",
    // Claude Code's older local installation.
    ".claude/local",
    ".opencode/bin",
    ".bun/bin",
    // The usual prefix of npm without root.
    ".npm-global/bin",
    ".volta/bin",
    ".local/share/mise/shims",
    ".asdf/shims",
    ".nodenv/shims",
    ".local/share/pnpm",
    "Library/pnpm",
    ".yarn/bin",
];
/// Folders of Homebrew, which are not on the `PATH` of a service either.
const HOMEBREW: [&str; 3] = [
    "/opt/homebrew/bin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/usr/local/bin",
];
/// Folders of version managers of Node.js, with a folder for each version and that of the programs in it.
const NODE_VERSIONS: [(&str, &str); 2] = [
    (".nvm/versions/node", "bin"),
    (".local/share/fnm/node-versions", "installation/bin"),
];

/// Variables by which a shim recognizes its own recursion, and the version managers of these shims. A process that a
/// shim has started inherits it. In a further shim it means that nothing is to be resolved: that one ends, or takes
/// another program.
pub const SHIM_GUARDS: [(&str, &str); 3] = [
    ("_VOLTA_TOOL_RECURSION", "Volta"),
    ("__MISE_SHIM_PATH", "mise"),
    ("__MISE_SHIM", "mise"),
];

/// Finds the program of a CLI on `path`, or else where its installers put it in `home`, the user's home folder.
///
/// # Errors
///
/// Fails as [`find_program`] does.
pub fn find_cli(
    name: &str,
    path: Option<&OsStr>,
    home: Option<&Path>,
) -> Result<PathBuf, AgentError> {
    find_program(name, path).or_else(|error| {
        let is_missing = matches!(
            error.detail.as_deref(),
            Some(ErrorDetail::MissingProgram { .. })
        );
        let home = home.filter(|home| is_missing && home.is_absolute());
        home.and_then(|home| installed(name, home)).ok_or(error)
    })
}

/// Finds a program where installers put it.
fn installed(name: &str, home: &Path) -> Option<PathBuf> {
    let versions = NODE_VERSIONS.iter().flat_map(|(versions, programs)| {
        let entries = std::fs::read_dir(home.join(versions)).into_iter().flatten();
        let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        folders.sort_by_key(|folder| {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            crate::node::parse(&name)
        });
        // The newest first.
        folders
            .into_iter()
            .rev()
            .map(move |folder| folder.join(programs))
    });
    let folders = HOME_FOLDERS.iter().map(|folder| home.join(folder));
    let folders = folders.chain(versions).chain(HOMEBREW.map(PathBuf::from));
    folders
        .map(|folder| folder.join(name))
        .find_map(|file| check_program(&file).ok())
}

/// Returns the `path` on which a program that was found elsewhere finds its interpreter, which is beside it. `None` if
/// its folder is on `path`.
pub fn on_path(program: &Path, path: Option<&OsStr>) -> Option<OsString> {
    let folder = program.parent()?;
    let folders: Vec<PathBuf> = path.map(|path| std::env::split_paths(path).collect())?;
    if folders.iter().any(|it| it == folder) {
        return None;
    }
    let all = std::iter::once(folder.to_owned()).chain(folders);
    std::env::join_paths(all).ok()
}

/// Returns the version manager whose shim a program is, by its path.
pub fn shim_manager(program: &Path) -> Option<&'static str> {
    let folder = program.parent()?.to_str()?;
    [
        (".volta/bin", "Volta"),
        ("mise/shims", "mise"),
        (".asdf/shims", "asdf"),
        (".nodenv/shims", "nodenv"),
        (".pyenv/shims", "pyenv"),
        (".rbenv/shims", "rbenv"),
    ]
    .into_iter()
    .find(|(end, _)| folder.ends_with(end))
    .map(|(_, manager)| manager)
}

/// Returns the CLI's native program, if the provider knows one for this launcher and it exists; otherwise the
/// launcher.
pub fn native_program(provider: &(impl CliProvider + ?Sized), found: PathBuf) -> PathBuf {
    let Ok(launcher) = found.canonicalize() else {
        return found;
    };
    provider
        .native_programs(&launcher)
        .into_iter()
        .find_map(|native| check_program(&native).ok())
        .unwrap_or(found)
}

/// Checks a program that is given by its path. Returns the absolute path, because the CLI is started in another
/// directory.
pub(crate) fn check_program(program: &Path) -> Result<PathBuf, AgentError> {
    let program = std::path::absolute(program).map_err(|error| {
        not_found(format!(
            "the program {} has no absolute path: {error}",
            program.display()
        ))
    })?;
    match program.metadata() {
        Err(error) => Err(not_found(format!(
            "the program {} cannot be used: {error}",
            program.display()
        ))),
        Ok(data) if data.is_dir() => Err(not_found(format!(
            "the program {} is a directory",
            program.display()
        ))),
        Ok(_) => {
            which::which_in(&program, None::<&OsStr>, "/").map_err(|_| not_executable(&program))
        }
    }
}

pub(crate) fn not_found(message: String) -> AgentError {
    AgentError::new(ErrorCode::CliNotFound, ErrorKind::NotFound, message)
}

fn not_executable(file: &Path) -> AgentError {
    not_found(format!(
        "{0} is not executable; if it is the right file, run `chmod +x {0}`",
        file.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn message(result: Result<PathBuf, AgentError>) -> String {
        let Err(error) = result else {
            panic!("{result:?}");
        };
        assert_eq!(error.code, ErrorCode::CliNotFound);
        assert_eq!(error.kind, ErrorKind::NotFound);
        error.message
    }

    #[test]
    fn a_program_is_found_on_the_given_path() {
        let found = find_program("sh", Some(OsStr::new("/nowhere:/bin:/usr/bin"))).unwrap();
        assert_eq!(found, Path::new("/bin/sh"));
        assert_eq!(find_program("/bin/sh", None).unwrap(), Path::new("/bin/sh"));
    }

    #[test]
    fn a_missing_program_is_reported_with_the_searched_path() {
        assert_eq!(
            message(find_program(
                "no-such-cli",
                Some(OsStr::new("/nowhere:/bin"))
            )),
            "the program `no-such-cli` was not found: searched /nowhere, /bin"
        );
        assert_eq!(
            message(find_program("no-such-cli", None)),
            "the program `no-such-cli` was not found: PATH is not set or empty"
        );
        let missing = message(find_program("/nowhere/cli", None));
        assert!(missing.starts_with("the program /nowhere/cli cannot be used: "));
        assert_eq!(
            message(find_program("/usr/bin", None)),
            "the program /usr/bin is a directory"
        );
    }

    #[test]
    fn a_cli_is_found_where_its_installer_put_it() {
        let home = tempfile::tempdir().unwrap();
        let put = |folder: &str| {
            let folder = home.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            let file = folder.join("some-cli");
            fs::write(&file, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            file
        };
        let path = Some(OsStr::new("/nowhere:/bin"));
        let find = || find_cli("some-cli", path, Some(home.path()));
        assert_eq!(
            message(find()),
            "the program `some-cli` was not found: searched /nowhere, /bin"
        );
        put(".nvm/versions/node/v9.11.2/bin");
        let newest = put(".nvm/versions/node/v22.21.1/bin");
        assert_eq!(find().unwrap(), newest);
        // Its interpreter is beside it.
        let extended = on_path(&newest, path).unwrap();
        assert_eq!(
            extended.to_str().unwrap(),
            format!("{}:/nowhere:/bin", newest.parent().unwrap().display())
        );
        assert_eq!(on_path(Path::new("/bin/some-cli"), path), None);
        let own = put(".local/bin");
        assert_eq!(find().unwrap(), own);
        // `PATH` comes first, and a program that is named by its path is no other one.
        let first = put("first");
        let path = Some(first.parent().unwrap().as_os_str());
        assert_eq!(
            find_cli("some-cli", path, Some(home.path())).unwrap(),
            first
        );
        assert!(find_cli("/nowhere/some-cli", path, Some(home.path())).is_err());
        assert_eq!(
            shim_manager(Path::new("/h/.volta/bin/claude")),
            Some("Volta")
        );
        assert_eq!(shim_manager(&own), None);
    }

    #[test]
    fn a_file_without_the_right_to_execute_is_named_with_the_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cli");
        fs::write(&file, "#!/bin/sh\n").unwrap();
        let expected = format!(
            "{0} is not executable; if it is the right file, run `chmod +x {0}`",
            file.display()
        );
        let path = Some(dir.path().as_os_str());
        assert_eq!(message(find_program("cli", path)), expected);
        assert_eq!(message(check_program(&file)), expected);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find_program("cli", path).unwrap(), file);
        assert_eq!(check_program(&file).unwrap(), file);
    }
}
