#!/usr/bin/env node
// Runs the program `teamster` of the package for this platform.
'use strict';

const { spawn } = require('node:child_process');

const SCOPE = '@teamster-rs';
const name = `${SCOPE}/${process.platform}-${process.arch}`;

let program;
try {
  program = require.resolve(`${name}/bin/teamster`);
} catch {
  console.error(
    `teamster: the package ${name} is not installed.\n` +
      'If optional dependencies are off, install it by its name. If there is none for this platform, build ' +
      'teamster with `cargo install teamster-cli`.',
  );
  process.exit(3);
}

const args = process.argv.slice(2);
// Becomes the program, where Node can do that: signals, the terminal and the exit code are then its own.
if (typeof process.execve === 'function') {
  process.execve(program, [program, ...args], process.env);
}

const child = spawn(program, args, { stdio: 'inherit' });
// A terminal sends Ctrl-C to both processes: handing it on would make it the second one.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    if (signal === 'SIGTERM' || !process.stdin.isTTY) child.kill(signal);
  });
}
child.on('error', (error) => {
  console.error(`teamster: cannot start ${program}: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
