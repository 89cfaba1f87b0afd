//! Terminal modes: restores what the line editor changed, even if it is never dropped.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Mutex;

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use teamster_core::sync::lock;

/// The original modes while the line editor, or [`RawMode`], has changed them.
static ORIGINAL_MODES: Mutex<Option<Termios>> = Mutex::new(None);

/// Disables bracketed paste and ends the line of the prompt.
const RESET: &[u8] = b"\x1b[?2004l\r\n";

/// Guard held while the line editor reads: [`restore`] resets the terminal.
pub(crate) struct EditorGuard(());

impl EditorGuard {
    pub(crate) fn begin() -> Self {
        // Without a terminal nothing changes.
        store_modes(tcgetattr(io::stdin()).ok());
        Self(())
    }
}

impl Drop for EditorGuard {
    fn drop(&mut self) {
        store_modes(None);
    }
}

/// Guard that disables line buffering and echo, and enables bracketed paste.
pub(crate) struct RawMode(());

impl RawMode {
    pub(crate) fn begin() -> Self {
        let original = tcgetattr(io::stdin()).ok();
        if let Some(mut modes) = original.clone() {
            modes.local_flags -= LocalFlags::ICANON | LocalFlags::ECHO;
            // If this fails, input is still read, but by line.
            let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &modes);
        }
        store_modes(original);
        // Bracketed paste keeps pasted text one message. Errors are ignored: there may be no terminal.
        let _ = write_to_terminal(b"\x1b[?2004h");
        Self(())
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        restore_with(b"\x1b[?2004l");
    }
}

/// Restores the terminal if the line editor is reading, which MUST NOT continue after this.
pub(crate) fn restore() {
    restore_with(RESET);
}

fn restore_with(reset: &[u8]) {
    let before = lock(&ORIGINAL_MODES).take();
    if let Some(before) = before {
        // The terminal may be gone.
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &before);
        let _ = write_to_terminal(reset);
    }
}

/// Writes to `/dev/tty`, or to stderr if it cannot be opened.
pub(crate) fn write_to_terminal(bytes: &[u8]) -> io::Result<()> {
    match File::options().write(true).open("/dev/tty") {
        Ok(mut tty) => tty.write_all(bytes),
        Err(_) => io::stderr().write_all(bytes),
    }
}

fn store_modes(modes: Option<Termios>) {
    *lock(&ORIGINAL_MODES) = modes;
}
