//! A stdout that was closed when the program was started.
//!
//! The standard library opens `/dev/null` in its place before `main`, so what is printed would be lost without an error.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use nix::libc;

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

#[used]
#[expect(unsafe_code, reason = "nothing else runs before the standard library")]
// SAFETY: the system calls the functions in this section one after the other before `main`. This one needs nothing that is
// set up later: it makes one system call and stores a flag.
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_os = "macos"), unsafe(link_section = ".init_array"))]
static BEFORE_MAIN: extern "C" fn() = look;

extern "C" fn look() {
    #[expect(unsafe_code, reason = "a closed descriptor cannot be borrowed")]
    // SAFETY: the call only reads the flags of a descriptor, or fails if it is closed.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    IS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Fails if stdout was closed.
pub(crate) fn check() -> anyhow::Result<()> {
    if IS_CLOSED.load(Ordering::Relaxed) {
        return Err(anyhow!(
            "cannot write the output: stdout is closed; redirect it to a file, or to /dev/null"
        ));
    }
    Ok(())
}
