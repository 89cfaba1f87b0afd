//! Files of the repository that are generated from its code.

use std::fs;
use std::io::Write;

use anyhow::Context as _;

use crate::root;

/// Writes a file, given by its path from the root, or only checks that it is current. Returns `false` if it
/// is outdated and was only checked.
pub(crate) fn bring(
    path: &str,
    text: &str,
    task: &str,
    check: bool,
    out: &mut impl Write,
) -> anyhow::Result<bool> {
    let file = root().join(path);
    if fs::read_to_string(&file).is_ok_and(|there| there == text) {
        writeln!(out, "{path} is current")?;
    } else if check {
        writeln!(
            out,
            "{path} is not current: run `cargo xtask {task}` and commit the change"
        )?;
        return Ok(false);
    } else {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        fs::write(&file, text).with_context(|| file.display().to_string())?;
        writeln!(out, "{path} is written")?;
    }
    Ok(true)
}
