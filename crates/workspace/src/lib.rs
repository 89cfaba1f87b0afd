//! Workspaces of agents: a git worktree for a run or session, and its content at the end.
//!
//! git commands are bound to the repository of their directory: variables such as `GIT_DIR`, which a hook or an alias sets,
//! do not reach them.
#![warn(missing_docs)]

mod bundle;
mod diff;
mod git;
mod included;
mod large;
mod local;
mod mirror;
mod network;
mod project;
mod remote;
mod running;
mod snapshot;
mod step;
mod submit;
mod submodules;
mod take;
mod trust;
mod upload;
mod worktree;

pub use git::common_dir;
pub use included::Included;
pub use local::set_git_silence;
pub use mirror::{IncludedFiles, Mirror, Wait};
pub use network::SILENCE;
pub use project::{PROJECT_FILE, Project};
pub use remote::{UnknownCommit, folder_name, is_url, resolve};
pub use submit::{Progress, Submitted, give_up, submit};
pub use take::{Incoming, TakeError, Target};
pub use trust::{Trust, TrustedProject};
pub use upload::{Source, Taken};
pub use worktree::{
    DiscardError, Finished, Kept, NewWorktree, Origin, Worktree, WorktreeKey, remove_forgotten,
};
