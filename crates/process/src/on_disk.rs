//! What a run has on disk for its time: private files, a private home, a changed configuration file.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use teamster_core::{
    AbortHandle, AgentError, AgentEvent, ConfigEdit, ConfigPlace, ConfigTable, ErrorCode,
    ErrorKind, FilePlace, Launch, NoticeLevel, NoticeSource, RunAssembler,
};
use teamster_mcp::edit::names;
use teamster_mcp::lease::{Lease, Released, pending, restore};
use tokio::runtime::Handle;

use crate::launch::{Env, Plan};
use crate::private_home::Home;
use crate::run_folder::RunFolder;
use crate::trace::trace;

/// The folder for temporary files among the private ones.
const TMP: &str = "tmp";

/// What is there to say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) level: NoticeLevel,
    pub(crate) message: String,
}

impl Notice {
    pub(crate) fn warning(message: String) -> Self {
        Self {
            level: NoticeLevel::Warning,
            message,
        }
    }

    fn info(message: String) -> Self {
        Self {
            level: NoticeLevel::Info,
            message,
        }
    }

    pub(crate) fn event(self) -> AgentEvent {
        AgentEvent::notice(self.level, NoticeSource::Runtime, self.message)
    }
}

/// It is given back when this is released or dropped, and both block.
#[derive(Debug, Default)]
pub(crate) struct OnDisk {
    lease: Option<(PathBuf, Lease)>,
    home: Option<Home>,
    folder: Option<RunFolder>,
    notices: Vec<Notice>,
}

impl OnDisk {
    /// Whether a run needs any of it.
    pub(crate) fn is_needed(plan: &Plan) -> bool {
        let launch = &plan.launch;
        !launch.private_files.is_empty()
            || launch.private_tmp
            || launch.config.is_some()
            || !launch.names_taken.is_empty()
            || !plan.leased.is_empty()
    }

    /// Makes what the plan asks for, and tells the CLI in the plan where it is. Blocks.
    pub(crate) fn make(plan: &mut Plan, abort: &AbortHandle) -> Result<Self, AgentError> {
        let mut made = Self::default();
        made.undo_killed_runs(plan);
        made.check_names(plan)?;
        made.write_files(&mut plan.launch, &mut plan.env)?;
        if plan.launch.private_tmp {
            made.make_tmp(&mut plan.env)?;
        }
        match plan.launch.config.take() {
            None => {}
            Some(edit) if edit.place == ConfigPlace::Lease => {
                if abort.is_aborted() {
                    return Err(RunAssembler::aborted_error());
                }
                let lease = Lease::acquire(&edit)?;
                trace!(DEBUG, file = %lease.file().display(), "lease");
                made.lease = Some((edit.table.file, lease));
            }
            Some(edit) => made.make_home(&edit, &mut plan.env)?,
        }
        Ok(made)
    }

    /// What there is to say so far.
    pub(crate) fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Gives everything back and returns what there is to say about that.
    pub(crate) fn release(mut self) -> Vec<Notice> {
        self.give_back();
        self.take_notices()
    }

    /// The same, without blocking the thread.
    pub(crate) async fn release_elsewhere(self, handle: &Handle) -> Vec<Notice> {
        if self.is_nothing() {
            return Vec::new();
        }
        // If it panics, or the runtime is shut down, it was dropped.
        handle
            .spawn_blocking(move || self.release())
            .await
            .unwrap_or_default()
    }

    fn is_nothing(&self) -> bool {
        self.lease.is_none() && self.home.is_none() && self.folder.is_none()
    }

    fn give_back(&mut self) {
        if let Some((file, lease)) = self.lease.take() {
            match lease.release() {
                Ok(Released::Cleaned) => self.notices.push(Notice::info(format!(
                    "{}: somebody changed it during the run, so only the MCP servers of the run \
                     were taken out of it",
                    file.display()
                ))),
                Ok(_) => {}
                Err(error) => self.notices.push(Notice::warning(error.to_string())),
            }
        }
        if let Some(home) = self.home.take() {
            self.notices.extend(home.carry_back());
        }
        // With the private home in it.
        self.folder = None;
    }

    /// Takes the servers of killed runs out of the files that the CLI reads: it would start them, and runs
    /// put them there approved. Those of runs that are alive stay.
    fn undo_killed_runs(&mut self, plan: &mut Plan) {
        for file in std::mem::take(&mut plan.leased) {
            let killed = match pending(&file) {
                Ok(Some(pending)) if pending.running == 0 => pending.servers,
                _ => Vec::new(),
            };
            match restore(&file) {
                Ok(Released::Restored | Released::Cleaned) if !killed.is_empty() => {
                    self.notices.push(Notice::info(format!(
                        "{}: a run that was killed had left its MCP servers in it, and they were \
                         taken out: {}",
                        file.display(),
                        killed.join(", ")
                    )));
                }
                Ok(_) => {}
                Err(error) => self.notices.push(Notice::warning(format!(
                    "{error}; MCP servers of a run that was killed may still be in it, and {} may \
                     start them",
                    plan.cli
                ))),
            }
        }
    }

    /// Refuses a server that the CLI would mix with one of the user's.
    fn check_names(&mut self, plan: &Plan) -> Result<(), AgentError> {
        let leased = match &plan.launch.config {
            Some(edit) if edit.place == ConfigPlace::Lease => Some(&edit.table.file),
            _ => None,
        };
        for table in &plan.launch.names_taken {
            if plan.servers.is_empty() || Some(&table.file) == leased {
                // The lease looks itself, and knows the entries of other runs from the user's.
                continue;
            }
            let file = table.file.display();
            let taken = match taken(table, &plan.servers) {
                Ok(Some(_)) => {
                    // It may be what a killed run has left there. If not, nothing is changed.
                    let _ = restore(&table.file);
                    taken(table, &plan.servers)
                }
                result => result,
            };
            match taken {
                Ok(None) => {}
                Ok(Some(name)) => {
                    let theirs = pending(&table.file).ok().flatten();
                    let is_a_runs = theirs.is_some_and(|it| it.servers.contains(&name));
                    let (whose, or) = if is_a_runs {
                        (" of another run", ", or wait for that run's end")
                    } else {
                        ("", "")
                    };
                    return Err(AgentError::refused_server(
                        name.as_str(),
                        format!(
                            "{file} has a server{whose} of this name too, and {} would mix the two \
                             or leave one out; choose another name{or}",
                            plan.cli
                        ),
                    ));
                }
                // The CLI says itself what is wrong with its file.
                Err(error) => self.notices.push(Notice::warning(format!(
                    "{file}: the names of its MCP servers are not known: {error}"
                ))),
            }
        }
        Ok(())
    }

    /// Writes the private files and puts their paths where the CLI looks for them.
    fn write_files(&mut self, launch: &mut Launch, env: &mut Env) -> Result<(), AgentError> {
        for (index, file) in std::mem::take(&mut launch.private_files)
            .into_iter()
            .enumerate()
        {
            let suffix = match &file.place {
                FilePlace::ArgumentNamed(_, suffix) => *suffix,
                _ => "",
            };
            let path = self
                .folder()?
                .write(&format!("private-{index}{suffix}"), &file.content)
                .map_err(|error| not_written(&error))?;
            match file.place {
                FilePlace::Argument(index) | FilePlace::ArgumentNamed(index, _) => {
                    if let Some(argument) = launch.args.get_mut(index) {
                        argument.push(&path);
                    }
                }
                // What the caller sets counts more.
                FilePlace::Variable(name) => {
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
        let path = self.folder()?.path().join(TMP);
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| not_written(&error))?;
        env.set_path("TMPDIR", &path)
    }

    fn make_home(&mut self, edit: &ConfigEdit, env: &mut Env) -> Result<(), AgentError> {
        let ConfigPlace::PrivateHome(home) = &edit.place else {
            return Err(AgentError::new(
                ErrorCode::ConfigLease,
                ErrorKind::Internal,
                "this place of a configuration file is not known",
            ));
        };
        let made = Home::make(self.folder()?.path(), edit, home)?;
        let made = self.home.insert(made);
        env.set_path(home.variable, made.path())
    }

    fn folder(&mut self) -> Result<&RunFolder, AgentError> {
        match &mut self.folder {
            Some(folder) => Ok(folder),
            none => {
                let folder = RunFolder::new().map_err(|error| not_written(&error))?;
                Ok(none.insert(folder))
            }
        }
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// The first of these names that the table has too. An error says why that is not known.
fn taken(table: &ConfigTable, servers: &[String]) -> Result<Option<String>, String> {
    let text = match fs::read_to_string(&table.file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        result => result.map_err(|error| error.to_string())?,
    };
    let users = names(&text, table.format, table.key).map_err(|error| error.to_string())?;
    Ok(servers.iter().find(|name| users.contains(name)).cloned())
}

fn not_written(error: &io::Error) -> AgentError {
    let message = format!(
        "a private file for the CLI cannot be written in {}: {error}",
        tempfile::env::temp_dir().display()
    );
    AgentError::new(ErrorCode::Io, ErrorKind::Internal, message)
}
