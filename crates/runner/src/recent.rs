//! The newest runs among thousands, without reading all of them.

use std::fs;

use crate::folder::INFO;
use crate::server::SOCKET;
use crate::{RunFolder, Runs, RunsError};

impl Runs {
    /// Returns the newest runs, at most `most`, and of the others those whose runner is there, newest first.
    ///
    /// It goes by the times of files, and reads no other run. So one whose files were restored or copied may be missing, or
    /// take the place of another one; [`list`](Self::list) has all.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be listed.
    pub fn recent(&self, most: usize) -> Result<Vec<RunFolder>, RunsError> {
        let mut found = Vec::new();
        for id in self.ids()? {
            let path = self.root().join(&id);
            // A link leads to a folder that is not this user's run, which `get` refuses.
            if let Ok(about) = fs::symlink_metadata(path.join(INFO)) {
                let may_be_live = fs::symlink_metadata(path.join(SOCKET)).is_ok();
                found.push((about.modified().ok(), id, may_be_live));
            }
        }
        found.sort_by(|a, b| b.cmp(a));
        let mut runs = Vec::new();
        for (index, (_, id, may_be_live)) in found.into_iter().enumerate() {
            if index < most || may_be_live {
                // The run may have just been removed, or be of a later version.
                let run = self.get(&id).ok().flatten();
                runs.extend(run.filter(|run| index < most || run.has_runner()));
            }
        }
        runs.sort_by(|a, b| {
            let key = |run: &RunFolder| (run.info().accepted_at_ms, run.id().to_owned());
            key(b).cmp(&key(a))
        });
        Ok(runs)
    }
}
