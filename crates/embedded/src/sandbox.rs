//! Confinement of commands by Landlock, an option.
//!
//! A process can only confine itself, so a command is started through this program: it confines itself, and then
//! becomes the command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// First argument of the process that becomes a confined command. The directories follow, then `--` and the command.
const ARGUMENT: &str = "--teamster-sandbox";

/// True if `main` of this program calls [`become_sandboxed`].
static IS_OFFERED: AtomicBool = AtomicBool::new(false);

/// Becomes a confined command, if the arguments of this process ask for one. Otherwise lets runs of the embedded
/// agent confine commands with `--sandbox`, and returns `None`. To be called from `main`, with the arguments without
/// the program.
///
/// Returns the reason if the command could not be confined or started.
pub fn become_sandboxed(arguments: impl IntoIterator<Item = OsString>) -> Option<String> {
    let mut arguments = arguments.into_iter();
    if arguments.next().is_none_or(|first| first != ARGUMENT) {
        IS_OFFERED.store(true, Ordering::Relaxed);
        return None;
    }
    let directories: Vec<_> = (arguments.by_ref())
        .take_while(|argument| argument != "--")
        .map(PathBuf::from)
        .collect();
    Some(imp::become_command(&directories, arguments))
}

/// Returns the program that confines commands, or the reason why there is none.
pub(crate) fn program() -> Result<PathBuf, String> {
    if !IS_OFFERED.load(Ordering::Relaxed) {
        return Err("this program cannot confine commands".to_owned());
    }
    imp::check()?;
    std::env::current_exe()
        .map_err(|error| format!("the path of this program is not known: {error}"))
}

/// Returns the arguments of that program for a command.
pub(crate) fn arguments<'a>(directories: impl Iterator<Item = &'a Path>) -> Vec<OsString> {
    let mut arguments = vec![OsString::from(ARGUMENT)];
    arguments.extend(directories.map(|directory| directory.as_os_str().to_owned()));
    arguments.push("--".into());
    arguments
}

#[cfg(target_os = "linux")]
mod imp {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use landlock::{
        ABI, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated,
        RulesetCreatedAttr, RulesetError, path_beneath_rules,
    };

    use super::{OsString, PathBuf};

    /// Version of Landlock whose rights are used, where the kernel has them.
    const ABI: ABI = ABI::V5;

    /// Returns a set of rules against writing.
    fn ruleset() -> Result<RulesetCreated, RulesetError> {
        // The first version is a must: without it, nothing would be confined.
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_write(ABI::V1))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_write(ABI))?
            .create()
    }

    /// Returns why commands cannot be confined.
    pub(super) fn check() -> Result<(), String> {
        let missing = |error| format!("this kernel has no Landlock (Linux 5.13 or newer): {error}");
        ruleset().map(drop).map_err(missing)
    }

    pub(super) fn become_command(
        directories: &[PathBuf],
        mut command: impl Iterator<Item = OsString>,
    ) -> String {
        let others = [
            std::env::temp_dir(),
            "/tmp".into(),
            "/var/tmp".into(),
            "/dev".into(),
        ];
        let writable = directories.iter().cloned().chain(others);
        let confined = ruleset()
            .and_then(|rules| {
                rules.add_rules(path_beneath_rules(writable, AccessFs::from_write(ABI)))
            })
            .and_then(RulesetCreated::restrict_self);
        if let Err(error) = confined {
            return format!("the command cannot be confined: {error}");
        }
        let Some(program) = command.next() else {
            return "the command is missing".to_owned();
        };
        let error = Command::new(&program).args(command).exec();
        format!("{} cannot be started: {error}", program.display())
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use super::{OsString, PathBuf};

    const MISSING: &str = "commands are confined by Landlock, which only Linux has";

    pub(super) fn check() -> Result<(), String> {
        Err(MISSING.to_owned())
    }

    pub(super) fn become_command(_: &[PathBuf], _: impl Iterator<Item = OsString>) -> String {
        MISSING.to_owned()
    }
}
