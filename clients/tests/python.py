"""The client for Python as it is published, against a real server: .ci/clients installs it and runs this."""

import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from teamster_client import AsyncTeamster, ConnectionLost, Problem, Teamster
from teamster_client.protocol import SseParser

HERE = Path(__file__).resolve().parent
PROGRAM = os.environ.get("TEAMSTER", str(HERE.parent.parent / "target/debug/teamster"))
LIMIT = 30


class Server:
    """A real server with its own home, whose Claude Code is agent.py."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="teamster-clients-"))
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "XDG_STATE_HOME": str(self.folder),
                    "TEAMSTER_CLAUDE_BIN": str(HERE / "agent.py")}
        self.port = 0
        self.start()
        self.token = (self.folder / "teamster/server/token").read_text().strip()

    def start(self):
        command = [PROGRAM, "serve", "--listen", f"127.0.0.1:{self.port}"]
        self.child = subprocess.Popen(command, env=self.env, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        self.url = self.child.stdout.readline().strip()
        self.port = int(self.url.rpartition(":")[2])

    def kill(self):
        self.child.kill()
        self.child.wait()
        self.child.stdout.close()

    def end(self):
        self.kill()
        runs = self.folder / "teamster/runs"
        # One by one: one that has ended is an error.
        for run in os.listdir(runs) if runs.exists() else ():
            subprocess.run([PROGRAM, "cancel", "--kill", run], env=self.env, stderr=subprocess.DEVNULL, timeout=LIMIT)
        shutil.rmtree(self.folder, ignore_errors=True)


def until(what, check):
    end = time.monotonic() + LIMIT
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"after {LIMIT} s there is no {what}")
        time.sleep(0.02)


def whole(entries):
    """The text of a log that has to be whole."""
    assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1)), entries
    assert entries[-1]["type"] == "done"
    return "".join(entry["text"] for entry in entries if entry["type"] == "text")


def pieces(number):
    return "".join(f"piece {i}\n" for i in range(1, number + 1))


def refused(status, code, act):
    try:
        act()
    except Problem as problem:
        assert (problem.status, problem.code) == (status, code), problem
    else:
        raise AssertionError(f"no {code}")


def where_no_server_is_every_call_fails_at_once(_server, _client):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nothing = free.getsockname()[1]
    for url in (f"http://127.0.0.1:{nothing}", "http://no-such-host.invalid"):
        with Teamster(url, "token") as wrong:
            for act in (lambda: wrong.start(provider="claude", prompt="x"), wrong.runs, lambda: wrong.run("x").view(),
                        lambda: next(wrong.run("x").entries()), lambda: next(wrong.watch())):
                try:
                    act()
                except ConnectionLost:
                    pass
                else:
                    raise AssertionError(url)


def a_large_entry_is_parsed_in_time_that_is_linear_in_its_size(_server, _client):
    parser = SseParser()
    piece = b"x" * (16 << 10)
    assert parser.push(b"id: 1\r\ndata: ") == []
    for _ in range(2240):
        assert parser.push(piece) == []
    assert [(name, len(data)) for name, data in parser.push(b"\r\n\r\n")] == [("message", 2240 * len(piece))]


def more_than_a_hundred_followers(server, client):
    run = client.start(provider="claude", prompt="wait")

    async def follow():
        async with AsyncTeamster(server.url, server.token) as many:
            followers = [many.run(run.id).entries() for _ in range(130)]
            await asyncio.wait_for(asyncio.gather(*(anext(follower) for follower in followers)), LIMIT)
            for follower in followers:
                await follower.aclose()

    asyncio.run(follow())
    run.cancel(kill=True)


def a_run_is_followed_answered_and_has_a_result(server, client):
    run = client.start(provider="claude", prompt="ask")
    entries = []
    for entry in run:
        entries.append(entry)
        if entry["type"] == "permission" and entry["decision"] == "requested":
            run.answer(entry["requestId"], {"decision": "allow"})
    assert "allowed" in whole(entries)
    assert run.result()["status"] == "completed"
    assert list(client.run(run.id)) == entries
    assert [entry["seq"] for entry in run.entries(after=3)][0] == 4
    assert list(run.entries(after=len(entries))) == []


def nothing_is_lost_when_the_server_is_killed_and_started_again(server, client):
    run = client.start(provider="claude", prompt="count 60 0.05")
    entries, restarted = [], None
    for entry in run:
        entries.append(entry)
        if entry["type"] == "text" and restarted is None:
            server.kill()
            restarted = threading.Timer(0.5, server.start)
            restarted.start()
    restarted.join()
    assert whole(entries) == pieces(60)


def a_start_during_a_restart_starts_one_run(server, client):
    before = len(client.runs()["runs"])
    server.kill()
    restarted = threading.Timer(0.5, server.start)
    restarted.start()
    run = client.start(provider="claude", prompt="echo")
    restarted.join()
    assert run.result()["status"] == "completed"
    assert len(client.runs()["runs"]) == before + 1


def errors_have_their_codes_and_end_what_cannot_go_on(server, client):
    with Teamster(server.url, "x" * 20) as stranger:
        refused(401, "UNAUTHORIZED", stranger.runs)
    refused(404, "RUN_NOT_FOUND", lambda: list(client.run("00000000-0000-7000-8000-000000000000")))
    refused(422, "INVALID_PARAMS", lambda: client.start(provider="claude", prompt=" "))
    run = client.start(provider="claude", prompt="ask")
    [request] = until("request", client.requests)
    client.answer(request["requestId"], {"decision": "deny", "reason": "no"})
    assert "denied: no" in run.result()["text"]
    with Teamster("http://127.0.0.1:9", "x", reconnect=0.3) as lost:
        try:
            list(lost.run("x"))
        except ConnectionLost:
            pass
        else:
            raise AssertionError("it is not lost")


def a_session_takes_one_prompt_after_the_other(server, client):
    session = client.start_session(provider="claude")
    turn = session.send("count 40 0.05", sender="test")
    entries, restarted = [], None
    for entry in turn:
        entries.append(entry)
        if entry["type"] == "text" and restarted is None:
            server.kill()
            restarted = threading.Timer(0.5, server.start)
            restarted.start()
    restarted.join()
    assert "".join(entry["text"] for entry in entries if entry["type"] == "text") == pieces(40)
    assert (entries[-1]["type"], entries[-1]["runId"]) == ("done", turn.id)
    short, queued = session.send("count 10 0.05"), session.send("echo", queue=True)
    assert short.result()["status"] == "completed"
    assert queued.result()["finalMessage"] == "echo"
    turn = session.send("wait")
    until("turn in progress", lambda: session.view().get("live", {}).get("state") == "running")
    refused(409, "SESSION_BUSY", lambda: session.send("more"))
    session.steer("go on")
    assert "heard: go on" in turn.result()["text"]
    turn = session.send("wait")
    for entry in turn:
        if entry["type"] == "text":
            break
    session.interrupt()
    assert turn.result()["status"] == "aborted"
    session.change(permission="accept-edits")
    assert session.send("echo").result()["finalMessage"] == "echo"
    assert len(client.sessions()) == 1
    session.end()
    log = list(session.entries())
    assert [entry["seq"] for entry in log] == list(range(1, len(log) + 1))


def what_a_run_has_changed_comes_back(server, client):
    repository = server.folder / "repository"
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-C", str(repository)]
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "first"], check=True)
    run = client.start(provider="claude", prompt="create", workingDirectory=str(repository), worktree=True, artifacts=["*.txt"])
    assert run.result()["workspace"]["filesChanged"] == 1
    until("end", lambda: run.view()["state"] == "ended")
    diff = run.diff()
    assert (diff["files"][0]["path"], diff["insertions"]) == ("large.txt", 48 << 10)
    assert run.diff(paths=["other", "another"])["files"] == []
    assert "hunks" not in run.diff(stat=True)["files"][0]
    assert [file["name"] for file in run.files()["files"]] == ["bundle", "files/large.txt", "patch"]
    assert run.read("files/large.txt") == b"0123456789abcde\n" * (48 << 10)
    assert run.read("patch").startswith(b"diff --git a/large.txt b/large.txt\n")
    refused(404, "FILE_NOT_FOUND", lambda: run.read("files/none"))
    assert run.apply()["filesChanged"] == 1
    refused(409, "CHANGES_CONFLICT", run.apply)
    run.discard()
    refused(409, "NO_WORKSPACE", run.diff)
    refused(409, "NO_WORKSPACE", lambda: client.start(provider="claude", prompt="count 1 0").diff())


def the_rest_of_the_api(server, client):
    assert any(provider["id"] == "claude" for provider in client.providers())
    assert client.usage(by="model", since="7d")["by"] == "model"
    assert client.limits()["limits"] == []
    assert len(client.history(agent="claude", limit=1)["runs"]) == 1
    assert client.agents()["agents"] == []
    refused(404, "AGENT_NOT_FOUND", lambda: client.command("x", "stop"))
    refused(404, "AGENT_NOT_FOUND", lambda: client.agent_log("x"))
    run = client.start(provider="claude", prompt="wait")
    for entry in run:
        if entry["type"] == "text":
            break
    assert run.view()["state"] == "running"
    run.cancel()
    assert run.result()["status"] == "aborted"


def the_same_with_asyncio(server, client):
    async def main():
        async with AsyncTeamster(server.url, server.token) as teamster:
            run = await teamster.start(provider="claude", prompt="count 60 0.05")
            entries, changes, restarted = [], [], None

            async def watch():
                async for change in teamster.watch():
                    changes.append(change)

            watching = asyncio.create_task(watch())
            async for entry in run:
                entries.append(entry)
                if entry["type"] == "text" and restarted is None:
                    server.kill()
                    restarted = asyncio.get_running_loop().run_in_executor(None, lambda: (time.sleep(0.5), server.start()))
            await restarted
            assert whole(entries) == pieces(60)
            ended = lambda: any(change["type"] == "run" and change["run"]["runId"] == run.id and change["run"]["state"] == "ended" for change in changes)
            async with asyncio.timeout(LIMIT):
                while not ended():
                    await asyncio.sleep(0.02)
            assert sum(change["type"] == "snapshot" for change in changes) >= 2
            watching.cancel()
            run = await teamster.start(provider="claude", prompt="ask")
            async for entry in run:
                if entry["type"] == "permission" and entry["decision"] == "requested":
                    await run.answer(entry["requestId"], {"decision": "allow"})
            assert (await run.result())["finalMessage"] == "allowed"

    asyncio.run(main())


def the_examples_of_its_readme(server, client):
    readme = (HERE.parent / "python/README.md").read_text()
    blocking, with_asyncio, session, errors, limits, cancelled = re.findall(r"```python\n(.*?)```", readme, re.S)

    def prints(code, **variables):
        out = StringIO()
        with redirect_stdout(out):
            exec(code, variables)
        return out.getvalue()

    def awaits(code):
        return "import asyncio\nasync def main():\n" + textwrap.indent(code, "    ") + "\nasyncio.run(main())"

    os.environ["TEAMSTER_TOKEN"] = server.token
    # The agent asks if it has its word; without an answer it would wait.
    for code, prompt in ((blocking, "ask"), (awaits(with_asyncio), "echo")):
        code = code.replace("http://127.0.0.1:7420", server.url).replace("Fix the failing test", prompt)
        printed = prints(code, token=server.token)
        assert printed.endswith("completed\n"), printed
    printed = prints(session, teamster=client)
    assert "user:message" not in printed and printed.endswith("And the docs?\n"), printed
    unknown = "00000000-0000-7000-8000-000000000000"
    cases = ((server.url, unknown, "RUN_NOT_FOUND 404 no "), ("http://127.0.0.1:9", unknown, "no server: "), (server.url, "", "failed: "),
             # Another path of the server has no API, but its page.
             (f"{server.url}/v1/openapi.json?", unknown, "not teamster serve: "))
    for url, run_id, right in cases:
        with Teamster(url, server.token) as teamster:
            printed = prints(errors, teamster=teamster, run_id=run_id)
            assert printed.startswith(right), printed
    run = client.start(provider="claude", prompt="wait")
    assert prints(limits, Teamster=Teamster, url=server.url, token=server.token, run_id=run.id) in ("running\n", "starting\n")
    code = f"async with AsyncTeamster({server.url!r}, {server.token!r}) as teamster:\n" + textwrap.indent(cancelled.replace("timeout(30)", "timeout(1)"), "    ")
    printed = prints(awaits(code), AsyncTeamster=AsyncTeamster, run_id=run.id)
    assert printed.startswith("1 ") and printed.endswith("stopped waiting\n"), printed
    run.cancel(kill=True)


TESTS = [where_no_server_is_every_call_fails_at_once, a_large_entry_is_parsed_in_time_that_is_linear_in_its_size,
         more_than_a_hundred_followers, a_run_is_followed_answered_and_has_a_result, nothing_is_lost_when_the_server_is_killed_and_started_again,
         a_start_during_a_restart_starts_one_run, errors_have_their_codes_and_end_what_cannot_go_on, a_session_takes_one_prompt_after_the_other,
         what_a_run_has_changed_comes_back, the_rest_of_the_api,
         the_same_with_asyncio, the_examples_of_its_readme]


def main():
    server = Server()
    try:
        with Teamster(server.url, server.token) as client:
            for test in TESTS:
                begin = time.monotonic()
                name = test.__name__.replace("_", " ")
                try:
                    test(server, client)
                except BaseException:
                    print(f"FAILED {name}", file=sys.stderr)
                    raise
                print(f"ok {name} ({time.monotonic() - begin:.1f} s)", flush=True)
    finally:
        server.end()


main()
