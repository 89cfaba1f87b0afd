#!/bin/sh
# A CLI that plays what was recorded of a real one. In the folder $PLAY, `lines.N` is what its Nth start
# prints, and `end.N` how it ends then. It writes down how it was started: `argv.N`, with a NUL after each
# argument, and `stdin.N`.
set -u
n=1
while [ -e "$PLAY/argv.$n" ]; do n=$((n + 1)); done
for argument; do printf '%s\0' "$argument"; done >"$PLAY/argv.$n"
cat >"$PLAY/stdin.$n"
[ -e "$PLAY/lines.$n" ] && cat "$PLAY/lines.$n"
[ -e "$PLAY/end.$n" ] && [ "$(cat "$PLAY/end.$n")" = kill ] && kill -KILL $$
exit 1
