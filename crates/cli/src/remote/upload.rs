//! `--repo DIR`: a repository of this machine for a run on another one.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use teamster_api::{ServiceError, Workspace};
use teamster_core::sync::lock;
use teamster_workspace::{Progress, submit};

use super::Machine;
use crate::report::note;
use crate::words;

/// Time between two lines about progress.
const EVERY: Duration = Duration::from_millis(200);

/// Submits the repository that contains this directory for the run with this id. Returns where the agent is to work.
pub(crate) async fn upload(
    machine: &Machine,
    id: &str,
    directory: &Path,
    quiet: bool,
) -> Result<Workspace, ServiceError> {
    let progress = Shown::new(!quiet && io::stderr().is_terminal());
    let submitted = submit(&machine.runs(), id, directory, &|step| progress.show(step)).await;
    progress.clear();
    let submitted = submitted?;
    crate::report::warn(&submitted.warnings);
    if !quiet {
        let uncommitted = match submitted.uncommitted {
            0 => String::new(),
            count => format!(
                ", with {} not committed",
                words::plural(count as u64, "file")
            ),
        };
        let included = match submitted.included {
            0 => String::new(),
            count => format!(
                ", with {} of .worktreeinclude",
                words::plural(count as u64, "file")
            ),
        };
        let sent = words::bytes(submitted.sent);
        note(&format!(
            "repository submitted: {sent} sent{uncommitted}{included}"
        ));
    }
    Ok(submitted.workspace)
}

/// A line about progress on a terminal.
struct Shown {
    is_on: bool,
    last: Mutex<Option<Instant>>,
}

impl Shown {
    fn new(is_on: bool) -> Self {
        Self {
            is_on,
            last: Mutex::new(None),
        }
    }

    fn show(&self, step: Progress) {
        let text = match step {
            Progress::Packing => "packing the repository".to_owned(),
            Progress::Sending { sent, total, .. } => {
                format!(
                    "sending the repository: {} of {}",
                    words::bytes(sent),
                    words::bytes(total)
                )
            }
            _ => return,
        };
        let mut last = lock(&self.last);
        if !self.is_on || last.is_some_and(|last| last.elapsed() < EVERY) {
            return;
        }
        *last = Some(Instant::now());
        // A terminal that cannot be written to shows no progress.
        let _ = write!(io::stderr(), "\r\x1b[K{text}");
    }

    fn clear(&self) {
        if lock(&self.last).is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
