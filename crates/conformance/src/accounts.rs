//! Usage by the CLIs' own files.

use std::path::Path;

use teamster::Usage;
use teamster_usage::{Dimension, Places, Scan};

/// Returns what a session has used by the CLI's files in this home. `None` if they do not have it.
pub(crate) fn usage_of_files(home: &Path, session: &str) -> Option<Usage> {
    let accounts = Scan::new(Places::of_home(home)).run();
    let sessions = accounts.by(Dimension::Session);
    let mut of_it = sessions
        .iter()
        .filter(|group| group.name.as_deref() == Some(session));
    of_it.next().map(|group| group.figures.usage)
}
