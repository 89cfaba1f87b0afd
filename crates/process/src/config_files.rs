//! Changes to the user's configuration files of a CLI, by a run or left by a killed one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use teamster_core::provider::{ConfigEdit, ConfigLocation, ConfigTable};
use teamster_core::{AgentError, ErrorCode, ErrorKind};
use teamster_mcp_config::edit::names;
use teamster_mcp_config::lease::{self, Lease, Released, pending, restore};
use teamster_mcp_config::private_home::Home;

use crate::launch::{Env, Plan};
use crate::notice::Notice;
use crate::run_folder::RunFolder;
use crate::trace::trace;

/// Changes of a run to configuration files, which are undone at its end.
#[derive(Debug, Default)]
pub(crate) struct ConfigFiles {
    lease: Option<(PathBuf, Lease)>,
    home: Option<Home>,
}

impl ConfigFiles {
    /// Returns whether any run has a lease on the file.
    pub(crate) fn is_leased(file: &Path) -> bool {
        lease::exists(file)
    }

    /// Removes the servers of killed runs from the files, and refuses a server that the CLI would mix with one of the
    /// user's. Blocks.
    #[expect(clippy::unused_self, reason = "as without the feature")]
    pub(crate) fn look_after(
        &self,
        plan: &mut Plan,
        notices: &mut Vec<Notice>,
    ) -> Result<(), AgentError> {
        undo_killed_runs(plan, notices);
        check_names(plan, notices)
    }

    /// Applies the change, and points the CLI to the changed file. Blocks.
    pub(crate) fn change<'a>(
        &mut self,
        edit: ConfigEdit,
        env: &mut Env,
        folder: impl FnOnce() -> Result<&'a RunFolder, AgentError>,
    ) -> Result<(), AgentError> {
        match &edit.location {
            ConfigLocation::Lease => {
                let lease = Lease::acquire(&edit)?;
                trace!(DEBUG, file = %lease.file().display(), "lease");
                self.lease = Some((edit.table.file, lease));
                Ok(())
            }
            ConfigLocation::PrivateHome(home) => {
                let made = Home::make(folder()?.path(), &edit, home)?;
                let made = self.home.insert(made);
                env.set_path(home.variable, made.path())
            }
            _ => Err(AgentError::new(
                ErrorCode::ConfigLease,
                ErrorKind::Internal,
                "unknown location of a configuration file",
            )),
        }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.lease.is_none() && self.home.is_none()
    }

    /// Undoes all changes. Blocks.
    pub(crate) fn give_back(&mut self, notices: &mut Vec<Notice>) {
        if let Some((file, lease)) = self.lease.take() {
            let released = lease.release();
            trace!(DEBUG, file = %file.display(), outcome = ?released, "lease released");
            match released {
                Ok(Released::Cleaned) => notices.push(Notice::info(format!(
                    "{}: another program changed it during the run, so only the MCP servers of the run \
                     were taken out of it",
                    file.display()
                ))),
                Ok(_) => {}
                Err(error) => notices.push(Notice::warning(error.to_string())),
            }
        }
        if let Some(home) = self.home.take() {
            notices.extend(
                home.copy_new_files_to_user()
                    .into_iter()
                    .map(Notice::warning),
            );
        }
    }
}

/// Removes the servers of killed runs from the files that the CLI reads. The CLI would start them, because runs add
/// them as approved. Servers of live runs are kept.
fn undo_killed_runs(plan: &mut Plan, notices: &mut Vec<Notice>) {
    let leased = |file: &PathBuf| ConfigFiles::is_leased(file);
    for file in std::mem::take(&mut plan.leasable)
        .into_iter()
        .filter(leased)
    {
        let killed = match pending(&file) {
            Ok(Some(pending)) if pending.running == 0 => pending.servers,
            _ => Vec::new(),
        };
        match restore(&file) {
            Ok(Released::Restored | Released::Cleaned) if !killed.is_empty() => {
                notices.push(Notice::info(format!(
                    "{}: a run that was killed had left its MCP servers in it, and they were \
                     taken out: {}",
                    file.display(),
                    killed.join(", ")
                )));
            }
            Ok(_) => {}
            Err(error) => notices.push(Notice::warning(format!(
                "{error}; MCP servers of a run that was killed may still be in it, and {} may \
                 start them",
                plan.cli
            ))),
        }
    }
}

/// Refuses a server that the CLI would mix with one of the user's.
fn check_names(plan: &Plan, notices: &mut Vec<Notice>) -> Result<(), AgentError> {
    let leased = match &plan.launch.config {
        Some(edit) if edit.location == ConfigLocation::Lease => Some(&edit.table.file),
        _ => None,
    };
    for table in &plan.launch.names_taken {
        if plan.servers.is_empty() || Some(&table.file) == leased {
            // The lease checks this itself, and can tell the entries of other runs from the user's.
            continue;
        }
        let file = table.file.display();
        let taken = match taken(table, &plan.servers) {
            Ok(Some(_)) => {
                // The server may be a leftover of a killed run. If not, nothing is changed.
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
            // The CLI reports the problem with its file itself.
            Err(error) => notices.push(Notice::warning(format!(
                "{file}: the names of its MCP servers are not known: {error}"
            ))),
        }
    }
    Ok(())
}

/// Returns the first of these names that is also in the table. The error is the reason why that is unknown.
fn taken(table: &ConfigTable, servers: &[String]) -> Result<Option<String>, String> {
    let text = match fs::read_to_string(&table.file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        result => result.map_err(|error| error.to_string())?,
    };
    let users = names(&text, table.format, table.key).map_err(|error| error.to_string())?;
    Ok(servers.iter().find(|name| users.contains(name)).cloned())
}
