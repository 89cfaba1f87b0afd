#!/bin/sh
# Stands in for the client of a container engine: what it starts runs on this machine, in a session of its own that outlives
# the client, as a container does. It records its command lines in `calls`, beside itself.
dir=$(cd "$(dirname "$0")" && pwd)
printf '%s\n' "$@" '' >> "$dir/calls"

fail() {
    echo "$2" >&2
    exit "$1"
}

case "$1" in
info)
    [ ! -e "$dir/stopped" ] || fail 1 "Cannot connect to the Docker daemon. Is the docker daemon running?"
    echo "28.2.2 [name=seccomp,profile=builtin]"
    ;;
image)
    [ -e "$dir/image" ] || fail 1 "Error response from daemon: No such image"
    cat "$dir/image"
    ;;
pull)
    [ ! -e "$dir/offline" ] || fail 1 "Error response from daemon: the registry does not answer"
    while [ -e "$dir/slow" ]; do sleep 0.02; done
    echo "Pull complete"
    touch "$dir/image"
    ;;
rm)
    [ -e "$dir/$3.pid" ] || fail 1 "Error response from daemon: No such container: $3"
    kill -s KILL -- "-$(cat "$dir/$3.pid")" 2> /dev/null
    rm "$dir/$3.pid"
    ;;
run)
    shift
    while :; do
        case "$1" in
        --rm | --interactive | --init | --pull=never | --stop-timeout=0) shift ;;
        --name)
            name=$2
            shift 2
            ;;
        --entrypoint)
            program=$2
            shift 2
            ;;
        --workdir)
            cd "$2" || exit 125
            shift 2
            ;;
        --env)
            case "$2" in *=*) export "${2?}" ;; esac
            shift 2
            ;;
        --*) shift 2 ;;
        *) break ;;
        esac
    done
    shift
    set -- "$program" "$@"
    command -v "$1" > /dev/null || fail 127 "docker: Error response from daemon: exec: \"$1\": executable file not found"
    echo "$PPID" > "$dir/owner"
    exec 3<&0
    trap 'kill -s TERM -- "-$(cat "$dir/$name.pid")" 2> /dev/null' TERM
    # Its parent ends at once. Its own shell waits for the program even if both get a signal.
    (setsid sh -c 'dir=$1; name=$2; shift 2
        trap : TERM
        echo $$ > "$dir/$name.new"; mv "$dir/$name.new" "$dir/$name.pid"
        "$@" <&3; echo $? > "$dir/$name.code"' sh "$dir" "$name" "$@" &)
    while [ ! -s "$dir/$name.code" ]; do sleep 0.02; done
    rm -f "$dir/$name.pid"
    exit "$(cat "$dir/$name.code")"
    ;;
esac
