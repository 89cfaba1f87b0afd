//! The modes of the terminal: what the editor has changed is put right also if it never comes to its end.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Mutex;

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use teamster_core::sync::lock;

/// The modes before the editor changed them, while it reads.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Ends the paste in brackets and the line of the prompt.
const LEAVE: &[u8] = b"\x1b[?2004l\r\n";

/// The editor reads while this lives.
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

/// Every key is there at once and none is shown, while this lives.
pub(crate) struct Keys(());

impl Keys {
    pub(crate) fn begin() -> Self {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut modes) = before.clone() {
            modes.local_flags -= LocalFlags::ICANON | LocalFlags::ECHO;
            // Without it, keys are there with the end of their line.
            let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &modes);
        }
        set(before);
        // What is pasted stays one message. Without a terminal nothing is.
        let _ = write_to_terminal(b"\x1b[?2004h");
        Self(())
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = lock(&BEFORE).take() {
            // A terminal that is gone needs nothing.
            let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &before);
            let _ = write_to_terminal(b"\x1b[?2004l");
        }
    }
}

/// Leaves the terminal as it was, if the editor reads. It must not go on after this.
pub(crate) fn restore() {
    let before = lock(&BEFORE).take();
    if let Some(before) = before {
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &before);
        let _ = write_to_terminal(LEAVE);
    }
}

/// Writes to the terminal, wherever stdout and stderr go.
pub(crate) fn write_to_terminal(bytes: &[u8]) -> io::Result<()> {
    match File::options().write(true).open("/dev/tty") {
        Ok(mut tty) => tty.write_all(bytes),
        Err(_) => io::stderr().write_all(bytes),
    }
}

fn set(modes: Option<Termios>) {
    *lock(&BEFORE) = modes;
}
