//! The modes of the terminal: what the editor has changed is put right also if it never comes to its end.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Mutex;

use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use teamster_core::sync::lock;

/// The modes before the editor changed them, while it reads.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Ends the paste in brackets and the line of the prompt.
const LEAVE: &[u8] = b"\x1b[?2004l\r\n";

/// The editor reads while this lives.
pub(super) struct Reading(());

impl Reading {
    pub(super) fn begin() -> Self {
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

/// Leaves the terminal as it was, if the editor reads. It must not go on after this.
pub(super) fn restore() {
    let before = lock(&BEFORE).take();
    if let Some(before) = before {
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &before);
        let _ = write_to_terminal(LEAVE);
    }
}

/// Writes to the terminal, wherever stdout and stderr go.
pub(super) fn write_to_terminal(bytes: &[u8]) -> io::Result<()> {
    match File::options().write(true).open("/dev/tty") {
        Ok(mut tty) => tty.write_all(bytes),
        Err(_) => io::stderr().write_all(bytes),
    }
}

fn set(modes: Option<Termios>) {
    *lock(&BEFORE) = modes;
}
