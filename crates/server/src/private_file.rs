//! Files of secrets, for this user alone.

use std::io::{self, ErrorKind};
use std::path::Path;

use ring::error::Unspecified;
use teamster_process::{FileMode, create_file, make_private_folder};

/// Creates a file of mode 0600 with this content, unless a file of its name exists. A missing folder is created.
pub(crate) fn make_once(path: &Path, content: &str) -> io::Result<()> {
    make_private_folder(folder_of(path))?;
    // The whole file gets its name at once: another server may be starting as well.
    match create_file(path, content.as_bytes(), FileMode::Private) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Returns the error of a secret that the system's random numbers were missing for.
pub(crate) fn no_random(_: Unspecified) -> io::Error {
    io::Error::other("the system's random number generator failed")
}

/// Returns the folder of a file. A bare name is one in the current folder.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_folder_of_a_bare_name_is_the_current_one() {
        for (path, folder) in [("token", "."), ("a/token", "a"), ("/token", "/")] {
            assert_eq!(folder_of(Path::new(path)), Path::new(folder), "{path}");
        }
    }

    #[test]
    fn a_secret_is_private_and_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server/secret");
        make_once(&path, "first").unwrap();
        make_once(&path, "second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        for (path, mode) in [(path.as_path(), 0o600), (folder_of(&path), 0o700)] {
            let found = fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode, "{}", path.display());
        }
    }
}
