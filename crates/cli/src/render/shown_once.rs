//! Notices that a person is shown once, such as about a version of a CLI.

use std::fs::{DirBuilder, OpenOptions, metadata, read_to_string};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use teamster_host::state;

use crate::words;

/// File with the notices that were shown, one a line, in the user's state directory.
const FILE: &str = "teamster/shown-notices";

/// Returns whether a notice was never shown, and remembers it. One that cannot be remembered is shown each time.
pub(crate) fn is_first(notice: &str) -> bool {
    state::file(FILE).is_none_or(|file| is_first_in(&file, notice))
}

fn is_first_in(file: &Path, notice: &str) -> bool {
    let notice = words::one_line(notice);
    // To open a FIFO would block.
    if metadata(file).is_ok_and(|meta| !meta.is_file()) {
        return true;
    }
    let known = read_to_string(file).unwrap_or_default();
    if known.lines().any(|line| line == notice) {
        return false;
    }
    // Without it, the notice is shown again.
    let _ = remember(file, &notice);
    true
}

fn remember(file: &Path, notice: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        (DirBuilder::new().recursive(true).mode(0o700)).create(folder)?;
    }
    let mut options = OpenOptions::new();
    let mut file = options.create(true).append(true).mode(0o600).open(file)?;
    // One write, so that notices of two processes are two lines.
    file.write_all(format!("{notice}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_first_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state/shown");
        assert!(is_first_in(&file, "version 1"));
        assert!(!is_first_in(&file, "version 1"));
        assert!(is_first_in(&file, "version 1.2"));
        assert_eq!(read_to_string(&file).unwrap(), "version 1\nversion 1.2\n");
        // It cannot be remembered.
        assert!(is_first_in(folder.path(), "version 1"));
        assert!(is_first_in(folder.path(), "version 1"));
    }
}
