//! Files of a run: private files, a private home, a changed configuration file.

use std::ffi::OsStr;
use std::io;

use teamster_core::provider::{ConfigLocation, Launch, PathLocation, RunAssembler};
use teamster_core::{AbortHandle, AgentError, ErrorCode, ErrorKind};
use tokio::runtime::Handle;

use crate::config_files::ConfigFiles;
use crate::container::Contained;
use crate::launch::{Env, Plan};
use crate::notice::Notice;
use crate::run_folder::RunFolder;
use crate::trace::in_span;

/// Name of the folder for temporary files in the private folder.
const TMP: &str = "tmp";
/// Name of the home of a container in the private folder.
const HOME: &str = "home";

/// Files of a run. Releasing or dropping this removes or restores them. Both block.
#[derive(Debug, Default)]
pub(crate) struct OnDisk {
    config: ConfigFiles,
    folder: Option<RunFolder>,
    notices: Vec<Notice>,
}

impl OnDisk {
    /// Returns whether a run needs any files.
    pub(crate) fn is_needed(plan: &Plan) -> bool {
        let launch = &plan.launch;
        !launch.private_files.is_empty()
            || launch.private_tmp
            || plan.container.is_some()
            || launch.config.is_some()
            || !launch.names_taken.is_empty()
            || plan
                .leasable
                .iter()
                .any(|file| ConfigFiles::is_leased(file))
    }

    /// Creates the files of the plan, and adds their locations to the plan. Blocks.
    pub(crate) fn make(plan: &mut Plan, abort: &AbortHandle) -> Result<Self, AgentError> {
        let mut made = Self::default();
        made.config.look_after(plan, &mut made.notices)?;
        made.write_files(&mut plan.launch, &mut plan.env)?;
        if plan.launch.private_tmp {
            made.make_tmp(&mut plan.env)?;
        }
        if let Some(edit) = plan.launch.config.take() {
            if edit.location == ConfigLocation::Lease && abort.is_aborted() {
                return Err(RunAssembler::aborted_error());
            }
            let Self { config, folder, .. } = &mut made;
            config.change(edit, &mut plan.env, || own_folder(folder))?;
        }
        if let Some(container) = &mut plan.container {
            made.contain(container, &mut plan.env)?;
        }
        Ok(made)
    }

    pub(crate) fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Removes or restores all files and returns the notices about that.
    pub(crate) fn release(mut self) -> Vec<Notice> {
        self.give_back();
        self.take_notices()
    }

    /// Like [`release`](Self::release), on a blocking thread.
    pub(crate) async fn release_elsewhere(self, handle: &Handle) -> Vec<Notice> {
        if self.is_nothing() {
            return Vec::new();
        }
        // If it panics or the runtime is shut down, `self` was dropped, which releases as well.
        handle
            .spawn_blocking(in_span(move || self.release()))
            .await
            .unwrap_or_default()
    }

    fn is_nothing(&self) -> bool {
        self.config.is_nothing() && self.folder.is_none()
    }

    fn give_back(&mut self) {
        self.config.give_back(&mut self.notices);
        // The private home is in it.
        let Some(folder) = self.folder.take() else {
            return;
        };
        if let Err(error) = folder.end_container() {
            self.notices.push(Notice::warning(format!(
                "the container of the run may still be there, and is removed later: {error}"
            )));
        }
    }

    /// Writes the private files and adds their paths to the arguments and variables.
    fn write_files(&mut self, launch: &mut Launch, env: &mut Env) -> Result<(), AgentError> {
        for (index, file) in std::mem::take(&mut launch.private_files)
            .into_iter()
            .enumerate()
        {
            let folder = self.folder()?;
            let name = format!("private-{index}");
            let written = match file.location {
                PathLocation::ArgumentNamed(_, suffix) => {
                    folder.write(&format!("{name}{suffix}"), &file.content)
                }
                PathLocation::ArgumentDirectory(_, inner) => {
                    folder.make_directory(&name).and_then(|directory| {
                        folder.write(&format!("{name}/{inner}"), &file.content)?;
                        Ok(directory)
                    })
                }
                _ => folder.write(&name, &file.content),
            };
            let path = written.map_err(|error| not_written(&error))?;
            match file.location {
                PathLocation::Argument(index)
                | PathLocation::ArgumentNamed(index, _)
                | PathLocation::ArgumentDirectory(index, _) => {
                    if let Some(argument) = launch.args.get_mut(index) {
                        argument.push(&path);
                    }
                }
                // The caller's value takes precedence.
                PathLocation::Variable(name) => {
                    env.set
                        .entry(name.into())
                        .or_insert_with(|| path.into_os_string());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn make_tmp(&mut self, env: &mut Env) -> Result<(), AgentError> {
        let made = self.folder()?.make_directory(TMP);
        env.set_path("TMPDIR", &made.map_err(|error| not_written(&error))?)
    }

    /// Mounts the files into the container, with a home if the CLI has none, and notes the container for its removal.
    fn contain(&mut self, container: &mut Contained, env: &mut Env) -> Result<(), AgentError> {
        let has_home = container.has_home() || env.set.contains_key(OsStr::new("HOME"));
        let folder = self.folder()?;
        let made = || -> io::Result<_> {
            let home = (!has_home)
                .then(|| folder.make_directory(HOME))
                .transpose()?;
            folder.has_container(&container.named())?;
            Ok((home, folder.content()?))
        };
        let (home, content) = made().map_err(|error| not_written(&error))?;
        if let Some(home) = home {
            env.set_path("HOME", &home)?;
        }
        for (path, is_folder) in content {
            container.mount(path, !is_folder);
        }
        Ok(())
    }

    fn folder(&mut self) -> Result<&RunFolder, AgentError> {
        own_folder(&mut self.folder)
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Returns the folder for the private files, and creates it on the first call.
fn own_folder(folder: &mut Option<RunFolder>) -> Result<&RunFolder, AgentError> {
    match folder {
        Some(folder) => Ok(folder),
        none => {
            let folder = RunFolder::new().map_err(|error| not_written(&error))?;
            Ok(none.insert(folder))
        }
    }
}

fn not_written(error: &io::Error) -> AgentError {
    let message = format!(
        "a private file for the CLI cannot be written in {}: {error}; let TMPDIR name a folder that can be written",
        tempfile::env::temp_dir().display()
    );
    AgentError::new(ErrorCode::Io, ErrorKind::Internal, message)
}
