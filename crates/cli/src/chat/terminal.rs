//! Terminal modes: restores what the line editor changed, even if it is never dropped.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Mutex;

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use teamster_core::sync::lock;

/// The original modes while the line editor, or [`Keys`], has changed them.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Disables bracketed paste and ends the line of the prompt.
const LEAVE: &[u8] = b"\x1b[?2004l\r\n";

/// Guard held while the line editor reads: [`restore`] resets the terminal.
pub(super) struct Reading(());

impl Reading {
    pub(crate) fn begin() -> Self {
        // Without a terminal nothing changes.
        set(tcgetattr(io::stdin()).ok());
        Self(())
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        set(None);
    }
}

/// Guard that disables line buffering and echo, and enables bracketed paste.
pub(crate) struct Keys(());

impl Keys {
    pub(crate) fn begin() -> Self {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut modes) = before.clone() {
            modes.local_flags -= LocalFlags::ICANON | LocalFlags::ECHO;
            // If this fails, input is still read, but by line.
            let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &modes);
        }
        set(before);
        // Bracketed paste keeps pasted text one message. Errors are ignored: there may be no terminal.
        let _ = write_to_terminal(b"\x1b[?2004h");
        Self(())
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = lock(&BEFORE).take() {
            // The terminal may be gone.
            let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &before);
            let _ = write_to_terminal(b"\x1b[?2004l");
        }
    }
}

/// Restores the terminal if the line editor is reading, which MUST NOT continue after this.
pub(crate) fn restore() {
    let before = lock(&BEFORE).take();
    if let Some(before) = before {
        // The terminal may be gone.
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &before);
        let _ = write_to_terminal(LEAVE);
    }
}

/// Writes to `/dev/tty`, or to stderr if it cannot be opened.
pub(crate) fn write_to_terminal(bytes: &[u8]) -> io::Result<()> {
    match File::options().write(true).open("/dev/tty") {
        Ok(mut tty) => tty.write_all(bytes),
        Err(_) => io::stderr().write_all(bytes),
    }
}

fn set(modes: Option<Termios>) {
    *lock(&BEFORE) = modes;
}
