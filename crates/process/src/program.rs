//! Finding a CLI's program.

use std::ffi::OsStr;
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

#[cfg(all(test, unix))]
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
