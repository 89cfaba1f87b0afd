//! Protection of keys against the commands that the model runs.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc::getenv;

use crate::model::SERVICES;

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
        // SAFETY: no other thread exists, as the caller ensures, and the name ends with NUL.
        let first = unsafe { getenv(c_name.as_ptr()) };
        // SAFETY: no other thread exists. The value is removed first, so that the new one gets memory of its own.
        unsafe {
            std::env::remove_var(name);
            std::env::set_var(name, &value);
        }
        // SAFETY: no other thread exists, and the name ends with NUL.
        let now = unsafe { getenv(c_name.as_ptr()) };
        if !first.is_null() && first != now {
            // SAFETY: `first` points to the value in the initial environment: as many writable bytes, followed by a
            // NUL, to which nothing in the environment refers any more.
            unsafe { std::ptr::write_bytes(first, 0, value.len()) };
        }
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
