# shellcheck shell=sh
# The filter of Git LFS in a repository that was submitted: content is kept beside this file, as git-lfs keeps it, and no
# server is asked for it. Run as `sh FILE clean` (content to a pointer) or `sh FILE smudge` (a pointer to its content).
set -eu
umask 077
LC_ALL=C
export LC_ALL
store=${0%/*}/lfs
mkdir -p "$store/tmp"
file=$(mktemp "$store/tmp/teamster-XXXXXX")
trap 'rm -f "$file"' EXIT
trap 'exit 1' HUP INT TERM
cat >"$file"
size=$(($(wc -c <"$file")))
name=
if [ "$size" -lt 1024 ] && head -n 1 "$file" | grep -q '^version https://git-lfs\.github\.com/spec/v1$'; then
  name=$(sed -n 's/^oid sha256:\([0-9a-f]\{64\}\)$/\1/p' "$file")
fi
path() { printf '%s/objects/%s/%s/%s' "$store" "$(printf %.2s "$1")" "$(printf '%s' "$1" | cut -c 3-4)" "$1"; }
case $1 in
  clean)
    # A pointer stays a pointer; an empty file needs none.
    if [ -n "$name" ] || [ "$size" -eq 0 ]; then
      cat "$file"
      exit
    fi
    if command -v sha256sum >/dev/null; then name=$(sha256sum <"$file"); else name=$(shasum -a 256 <"$file"); fi
    name=${name%% *}
    to=$(path "$name")
    if [ ! -s "$to" ]; then
      mkdir -p "${to%/*}"
      mv "$file" "$to"
    fi
    printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' "$name" "$size"
    ;;
  smudge)
    if [ -n "$name" ] && [ -s "$(path "$name")" ]; then cat "$(path "$name")"; else cat "$file"; fi
    ;;
esac
