#!/usr/bin/env python3
"""Runs a command at a terminal of its own, of 500 columns, and prints what it shows there: `terminal.py COMMAND…`."""

import fcntl
import os
import pty
import struct
import sys
import termios

child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 500, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])
while True:
    try:
        shown = os.read(terminal, 65536)
    except OSError:
        # The command has ended.
        break
    if not shown:
        break
    sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
