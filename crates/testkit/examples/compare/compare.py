#!/usr/bin/env python3
"""Measures teamster and other tools in one run, with the same fake CLI, and prints the table of docs/comparison.md.

    crates/testkit/examples/compare/compare.py [--rounds 5] [--tools FOLDER]

It builds teamster, and installs the others from npm and PyPI in the versions of package.json and requirements.txt, in
FOLDER or a temporary folder. Needs Linux on x86-64, cargo, npm and Python 3.10. In each round every tool does the same
work in turn, so that other load on the machine affects all alike: many lines at full speed, lines at intervals, short
runs. Each row is the median of the rounds. Of a tool that fails the error is printed, and its row is left out.
"""

import argparse
import ctypes
import datetime
import json
import os
import pathlib
import platform
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]
# Lines at full speed; lines at intervals of so many microseconds, of which the first are not counted; lines of a short
# run, and short runs in one process, of which the first are not counted either.
MANY, PACED, INTERVAL, WARM_UP, SHORT, RUNS, WARM_UP_RUNS = 100_000, 1000, 1000, 100, 5, 25, 5
# PR_SET_CHILD_SUBREAPER of prctl(2).
SUBREAPER = 36


def sh(*command, **options):
    subprocess.run(command, check=True, stdout=sys.stderr, **options)


def install(folder):
    for file in ["package.json", "drive.mjs", "drive.py"]:
        shutil.copy(HERE / file, folder)
    # Without optional packages: they are copies of the CLIs, which the fake one replaces.
    sh("npm", "install", "--omit=optional", "--no-audit", "--no-fund", "--loglevel=error", cwd=folder)
    if not (folder / "venv").exists():
        sh(sys.executable, "-m", "venv", folder / "venv")
    sh(folder / "venv/bin/python", "-m", "pip", "install", "-q", "-r", HERE / "requirements.txt")


def tools(folder, release):
    """Returns the name, the version and the command of each tool."""
    of = json.loads((HERE / "package.json").read_text())["dependencies"]
    python = HERE.joinpath("requirements.txt").read_text().split("==")[1].strip()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    node = [folder / "node_modules/node/bin/node"]
    drive, compare, agent = [*node, folder / "drive.mjs"], release / "examples/compare", folder / "agents/agent"
    run = [compare, "program", release / "teamster", "run", "claude", "x", "--json", "--bin", agent]
    acpx = [*node, folder / "node_modules/acpx/dist/cli.js", "--agent", agent, "--format", "json", "exec", "x"]
    return [
        ("floor: spawns, reads and splits lines (Rust)", "", [compare, "floor"]),
        ("**teamster**, library, Claude Code", commit.strip(), [compare, "library", "claude"]),
        ("**teamster**, library, Codex", commit.strip(), [compare, "library", "codex"]),
        ("Node alone: `spawn`, `readline`, `JSON.parse`", of["node"], [*drive, "node"]),
        ("claude-agent-sdk, TypeScript", of["@anthropic-ai/claude-agent-sdk"], [*drive, "claude"]),
        ("claude-agent-sdk, Python", python, [folder / "venv/bin/python", folder / "drive.py"]),
        ("codex-sdk, TypeScript", of["@openai/codex-sdk"], [*drive, "codex"]),
        ("sandbox-agent, server and TypeScript SDK", of["sandbox-agent"], [*drive, "sandbox"]),
        ("program `acpx exec --format json`", of["acpx"], [compare, "program", *acpx]),
        ("program **`teamster run --json --store off`**", commit.strip(), [*run, "--store", "off"]),
        ("program **`teamster run --json`**", commit.strip(), run),
    ]


class Work:
    """Runs drivers in a folder with the fake CLI."""

    def __init__(self, folder, release):
        self.agents = folder / "agents"
        self.agents.mkdir(exist_ok=True)
        shutil.copy(release / "examples/compare", self.agents / "agent")
        opencode = self.agents / "opencode"
        opencode.unlink(missing_ok=True)
        opencode.symlink_to("agent")
        self.home = tempfile.mkdtemp(dir=folder)
        self.env = {
            "HOME": self.home,
            "PATH": f"{self.agents}:{folder}/node_modules/node/bin:/usr/local/bin:/usr/bin:/bin",
            "COMPARE_AGENT": str(self.agents / "agent"),
            "COMPARE_SANDBOX_AGENT": str(folder / "node_modules/@sandbox-agent/cli-linux-x64/bin/sandbox-agent"),
        }

    def run(self, command, lines, interval=0, runs=1):
        """Returns the reports of a driver's runs, its milliseconds, and the processor time of all of its processes but
        the fake CLI, in microseconds."""
        (self.agents / "plan").write_text(f"{lines} {interval}")
        env = {**self.env, "COMPARE_RUNS": str(runs), **({"COMPARE_TIMES": "1"} if interval else {})}
        before, start = processor_time(), time.monotonic()
        driver = subprocess.run(command, env=env, cwd=self.home, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        ms = (time.monotonic() - start) * 1000
        reap()
        spent = processor_time() - before - int((self.agents / "spent").read_text())
        reports = [json.loads(line) for line in driver.stdout.splitlines()]
        if driver.returncode or len(reports) != runs:
            raise RuntimeError(f"exit code {driver.returncode}, {len(reports)} of {runs} runs: {driver.stderr[-2000:]}")
        return reports, ms, spent


def processor_time():
    """Of all processes that have ended, in microseconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) * 1e6


def reap():
    """Waits for processes that a driver has left. Those that live on are killed."""
    deadline = time.monotonic() + 5
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid and time.monotonic() > deadline:
            for child in pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
                os.kill(int(child), signal.SIGKILL)
        if not pid:
            time.sleep(0.01)


def measure(work, command):
    """Returns the figures of one round of a tool."""
    _, first, few = work.run(command, SHORT)
    reports, _, many = work.run(command, MANY)
    paced, _, _ = work.run(command, PACED, INTERVAL)
    times = sorted(paced[0]["times"][WARM_UP:])
    short, _, _ = work.run(command, SHORT, runs=RUNS)
    return {
        "cpu": (many - few) / (MANY - SHORT),
        "p50": times[len(times) // 2] / 1000,
        "p99": times[len(times) * 99 // 100] / 1000,
        "short": statistics.median(report["ms"] for report in short[WARM_UP_RUNS:]),
        "first": first,
        "lost": 100 - 100 * reports[0]["lines"] / MANY,
    }


def digits(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tools", type=pathlib.Path, help="folder of the installed tools, which is kept")
    args = parser.parse_args()
    folder = pathlib.Path(args.tools or tempfile.mkdtemp()).resolve()
    folder.mkdir(exist_ok=True)
    try:
        install(folder)
        sh("cargo", "build", "--release", "-p", "teamster-cli", "-p", "teamster-testkit", "--bin", "teamster", "--example",
           "compare", cwd=ROOT)
        release = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "release"
        compare(args.rounds, folder, release)
    finally:
        if not args.tools:
            shutil.rmtree(folder)


def compare(rounds, folder, release):
    # What a driver leaves becomes a child of this process, so its processor time is counted.
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    work, all_tools = Work(folder, release), tools(folder, release)
    figures, failed = {}, {}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        for name, _, command in all_tools:
            if name not in failed:
                try:
                    figures.setdefault(name, []).append(measure(work, command))
                except (RuntimeError, LookupError, OSError) as error:
                    failed[name] = error
                    print(f"left out: {name}: {error}", file=sys.stderr)
    print(f"{datetime.date.today()}, {platform.system()} {platform.release()} on {platform.machine()}, "
          f"{os.cpu_count()} processors, {rounds} rounds, load {os.getloadavg()[2]:.1f}\n")
    print("| Tool | Version | processor time a line, µs | latency p50 / p99, µs | a short run, ms | the first run of a "
          "process, ms | lines lost |\n|---|---|---|---|---|---|---|")
    for name, version, _ in all_tools:
        if name not in failed:
            of = {key: statistics.median(figure[key] for figure in figures[name]) for key in figures[name][0]}
            print(f"| {name} | {version} | {digits(of['cpu'])} | {of['p50']:.0f} / {of['p99']:,.0f} | "
                  f"{digits(of['short'])} | {digits(of['first'])} | {of['lost']:.0f} % |")


if __name__ == "__main__":
    main()
