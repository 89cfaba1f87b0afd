//! Folder of a supervisor's files, next to the configuration.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Name of the folder, next to the configuration.
const FOLDER: &str = ".teamster";
const SOCKET: &str = "supervisor.sock";
/// Longest path of a socket that the system accepts, in bytes without the terminating zero.
const LONGEST_SOCKET: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// Paths of the files of a supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateFolder {
    folder: PathBuf,
}

impl StateFolder {
    /// Returns the state folder of a configuration. `config` is an absolute path.
    pub(crate) fn of(config: &Path) -> Self {
        let beside = config.parent().unwrap_or(Path::new("/"));
        Self {
            folder: resolve_links(beside).join(FOLDER),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.join("supervisor.json")
    }

    /// Returns the path of the lock file. It is locked while a supervisor runs and has its process id.
    pub(crate) fn lock(&self) -> PathBuf {
        self.folder.join("supervisor.lock")
    }

    /// Returns the path of the file with the last times of schedules.
    pub(crate) fn schedules(&self) -> PathBuf {
        self.folder.join("schedules.json")
    }

    /// Returns the path of the event history.
    pub(crate) fn history(&self) -> PathBuf {
        self.folder.join("history.jsonl")
    }

    /// Returns the path of the socket, if it is short enough.
    pub(crate) fn socket(&self) -> Option<PathBuf> {
        let socket = self.folder.join(SOCKET);
        (socket.as_os_str().len() <= LONGEST_SOCKET).then_some(socket)
    }

    /// Creates the folder, accessible to this user only.
    pub(crate) fn create(&self) -> io::Result<()> {
        private_folder(&self.folder)?;
        let ignore = self.folder.join(".gitignore");
        if !ignore.exists() {
            fs::write(ignore, "*\n")?;
        }
        Ok(())
    }

    /// Returns the socket's path. Creates another private folder for it if the usual path is too long.
    pub(crate) fn create_socket_folder(&self) -> io::Result<PathBuf> {
        if let Some(socket) = self.socket() {
            return Ok(socket);
        }
        let folder = self.short_folder(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from));
        private_folder(&folder)?;
        Ok(folder.join(SOCKET))
    }

    /// Returns the path of a short folder that is unique to this state folder.
    fn short_folder(&self, runtime: Option<PathBuf>) -> PathBuf {
        use std::fmt::Write as _;

        let mut name = format!("teamster-{}-", nix::unistd::geteuid());
        for byte in &Sha256::digest(self.folder.as_os_str().as_bytes())[..8] {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        let room = LONGEST_SOCKET - name.len() - SOCKET.len() - 2;
        let runtime =
            runtime.filter(|it| it.is_absolute() && it.is_dir() && it.as_os_str().len() <= room);
        runtime.unwrap_or_else(|| "/tmp".into()).join(name)
    }
}

/// Resolves links in a path. A path that does not exist is returned unchanged.
pub(crate) fn resolve_links(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Creates a folder that only this user can enter, or restricts an existing one.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    // A link could lead to a folder of another user.
    let found = fs::symlink_metadata(folder)?;
    if !found.is_dir() {
        return Err(io::Error::other("it is not a directory"));
    }
    if found.uid() != nix::unistd::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user"));
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn the_folder_is_for_this_user_alone() {
        let dir = tempfile::tempdir().unwrap();
        let folder = StateFolder::of(&dir.path().join("agents.config.json"));
        folder.create().unwrap();
        assert_eq!(mode(folder.path()), 0o700);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        folder.create().unwrap();
        assert_eq!(mode(folder.path()), 0o700);
        assert_eq!(
            fs::read_to_string(folder.path().join(".gitignore")).unwrap(),
            "*\n"
        );
    }

    #[test]
    fn a_link_in_its_place_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = StateFolder::of(&dir.path().join("agents.config.json"));
        std::os::unix::fs::symlink(dir.path(), folder.path()).unwrap();
        let error = folder.create().unwrap_err();
        assert_eq!(error.to_string(), "it is not a directory");
    }

    #[test]
    fn a_path_that_is_too_long_for_a_socket_has_another_place() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("x".repeat(120));
        fs::create_dir(&deep).unwrap();
        let folder = StateFolder::of(&deep.join("agents.config.json"));
        assert_eq!(folder.socket(), None);
        let short = folder.short_folder(Some(dir.path().to_owned()));
        assert!(short.starts_with(dir.path()), "{}", short.display());
        assert!(short.join(SOCKET).as_os_str().len() <= LONGEST_SOCKET);
        assert_eq!(short, folder.short_folder(Some(dir.path().to_owned())));
        let other = StateFolder::of(&dir.path().join("agents.config.json"));
        assert_ne!(short, other.short_folder(Some(dir.path().to_owned())));
        // Cases without a usable `XDG_RUNTIME_DIR`.
        for runtime in [None, Some("relative".into()), Some(deep)] {
            assert!(folder.short_folder(runtime).starts_with("/tmp"));
        }
        private_folder(&short).unwrap();
        assert_eq!(mode(&short), 0o700);
    }
}
