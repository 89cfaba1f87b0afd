//! Protection of keys against the commands that the model runs.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc::{getenv, strlen};

use crate::model::SERVICES;

/// First byte of the name of an entry that is being removed.
const REMOVED: u8 = 1;

/// True if runs protect the memory of this process.
static PROTECTS_MEMORY: AtomicBool = AtomicBool::new(false);

/// Hides the keys of model services from processes that look at this one.
///
/// Their values are erased in the block of memory that the process was started with, which `/proc/PID/environ` and
/// `ps e` show. They stay in the environment, also for processes that are started. Once the embedded agent has begun
/// a run, other processes of the same user can no longer read the memory of this one (Linux): it writes no core
/// dumps, debuggers are refused, and its files in `/proc` belong to root.
///
/// # Safety
///
/// To be called from `main`, before there is another thread and before anything keeps a pointer into the environment.
#[expect(unsafe_code, reason = "it changes the environment")]
pub unsafe fn hide_keys() {
    PROTECTS_MEMORY.store(true, Ordering::Relaxed);
    let names = SERVICES.iter().flat_map(|service| service.key_variables);
    for name in names {
        let (Some(value), Ok(c_name)) = (std::env::var_os(name), CString::new(*name)) else {
            continue;
        };
        let removed = format!("{}{}", char::from(REMOVED), &name[1..]);
        loop {
            // SAFETY: no other thread exists, as the caller ensures, and the name ends with NUL.
            let found = unsafe { getenv(c_name.as_ptr()) };
            if found.is_null() {
                break;
            }
            // SAFETY: no other thread exists. `found` points to the value in an entry `NAME=VALUE` of the environment:
            // writable bytes that end with NUL, after the name and `=`. The entry is renamed and then removed, so that
            // the next one with this name is found: a program may be started with several.
            unsafe {
                std::ptr::write_bytes(found, 0, strlen(found));
                found.sub(name.len() + 1).cast::<u8>().write(REMOVED);
                std::env::remove_var(&removed);
            }
        }
        // SAFETY: no other thread exists.
        unsafe { std::env::set_var(name, &value) };
    }
}

/// Protects the memory of this process, if [`hide_keys`] was called.
pub(crate) fn protect_memory() {
    #[cfg(target_os = "linux")]
    if PROTECTS_MEMORY.load(Ordering::Relaxed) {
        // Fails for no process that may write its own memory.
        let _ = nix::sys::prctl::set_dumpable(false);
    }
}

#[cfg(all(test, target_os = "linux"))]
#[expect(unsafe_code, reason = "it changes the environment")]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    /// Variable of the process that hides its keys.
    const HIDES: &str = "TEAMSTER_TEST_HIDES_KEYS";
    const TEST: &str = "keys::tests::a_key_that_is_there_twice_is_erased_twice";

    #[test]
    fn a_key_that_is_there_twice_is_erased_twice() {
        if std::env::var_os(HIDES).is_some() {
            // SAFETY: the only other thread waits for this test.
            unsafe { hide_keys() };
            let block = std::fs::read("/proc/self/environ").unwrap();
            let block = String::from_utf8_lossy(&block).into_owned();
            assert!(block.contains(HIDES) && !block.contains("sk-"), "{block}");
            assert_eq!(std::env::var("OPENAI_API_KEY").unwrap(), "sk-one");
            let copies = std::env::vars_os().filter(|(name, _)| name == "OPENAI_API_KEY");
            assert_eq!(copies.count(), 1);
            return;
        }
        let text = |text: &str| CString::new(text).unwrap();
        let program = text(std::env::current_exe().unwrap().to_str().unwrap());
        let args = ["test", TEST, "--exact", "--test-threads=1"].map(text);
        let hides = format!("{HIDES}=1");
        let env = ["OPENAI_API_KEY=sk-one", &hides, "OPENAI_API_KEY=sk-second"].map(text);
        // The environment of a `Command` has each name once.
        let mut command = Command::new("true");
        // SAFETY: only `execve` is called in the child, whose arguments were made before.
        unsafe {
            command.pre_exec(move || {
                let Err(error) = nix::unistd::execve(&program, &args, &env);
                Err(error.into())
            });
        }
        let output = command.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{printed}");
        assert!(printed.contains("1 passed"), "{printed}");
    }
}
