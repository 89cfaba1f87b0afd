#!/usr/bin/env python3
"""The same work for three servers of agents, offline: `server_rivals.py teamster PROGRAM`, `server_rivals.py opencode PROGRAM` or
`server_rivals.py sandbox-agent PROGRAM`. `server_load.rs` is the same for `teamster` alone, with more watchers that look.

PROGRAM of the other two is the program of the npm package `opencode-ai` or `@sandbox-agent/cli-linux-x64`. Run it without a network:

    unshare -rn sh -c 'ip link set lo up && exec python3 server_rivals.py opencode PROGRAM'

`opencode` is an agent itself: it asks a scripted model here, each of whose pieces has the time. `sandbox-agent` starts
agents: a stand-in here, each of whose lines has the time. 24 of them are live, and each prints every 100 ms. 200
watchers read everything that a client can subscribe to; 20 of them look at what they read. One more connects 100 times,
and sends the last event id that it has, where there is one.
"""

import http.client
import http.server
import json
import os
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time

SESSIONS, LIVE, LINES, WATCHERS, LOOKING, RECONNECTS = 1000, 24, 200, 200, 20, 100
AT = re.compile(rb"T(\d{19})")
# The header of the token, for the server that needs one.
TOKEN = {}


class Model(http.server.BaseHTTPRequestHandler):
    """Chat completions: pieces with the time for a prompt `live`, else one piece."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        live = b"go live" in body and b'"tools"' in body
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for n in range(LINES if live else 1):
            self.piece({"content": f"T{time.time_ns()} "})
            if live:
                time.sleep(0.1)
        self.piece({}, "stop")
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def piece(self, delta, reason=None):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m1", "choices": [choice]}
        if reason:
            chunk["usage"] = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.flush()


# A stand-in for an agent of the Agent Client Protocol.
AGENT = """#!/usr/bin/env python3
import json, sys, time
if '--version' in sys.argv:
    print('1.18.33'); sys.exit()
def line(value):
    print(json.dumps({'jsonrpc': '2.0', **value}), flush=True)
for text in sys.stdin:
    ask = json.loads(text)
    method = ask.get('method')
    if method == 'initialize':
        line({'id': ask['id'], 'result': {'protocolVersion': 1, 'agentCapabilities': {}, 'authMethods': []}})
    elif method == 'session/new':
        line({'id': ask['id'], 'result': {'sessionId': 's'}})
    elif method == 'session/prompt':
        for n in range(LINES):
            content = {'type': 'text', 'text': f'T{time.time_ns()} '}
            update = {'sessionUpdate': 'agent_message_chunk', 'content': content}
            line({'method': 'session/update', 'params': {'sessionId': 's', 'update': update}})
            time.sleep(0.1)
        line({'id': ask['id'], 'result': {'stopReason': 'end_turn'}})
"""


def call(port, method, path, body=None, limit=300):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=limit)
    data = None if body is None else json.dumps(body)
    connection.request(method, path, data, {"Content-Type": "application/json", **TOKEN})
    text = connection.getresponse().read()
    connection.close()
    return json.loads(text) if text.strip() else None


def pss(pid):
    """Of the process and its children, in MiB."""
    pids, all_of = [pid], {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parent = int(open(f"/proc/{entry}/stat").read().rsplit(")", 1)[1].split()[1])
                all_of.setdefault(parent, []).append(int(entry))
            except OSError:
                pass
    for one in pids:
        pids += all_of.get(one, [])
    return pss_of(pid), sum(pss_of(one) for one in pids)


def pss_of(pid):
    try:
        text = open(f"/proc/{pid}/smaps_rollup").read()
    except OSError:
        return 0
    return int(re.search(r"^Pss:\s+(\d+)", text, re.M).group(1)) / 1024


def subscribe(port, path, last=None):
    stream = socket.create_connection(("127.0.0.1", port))
    again = f"Last-Event-ID: {last}\r\n" if last else ""
    again += "".join(f"{name}: {value}\r\n" for name, value in TOKEN.items())
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n{again}\r\n"
    stream.sendall(head.encode())
    return stream


class Watcher(threading.Thread):
    """Reads a stream, and notes which pieces came when."""

    def __init__(self, port, path):
        super().__init__(daemon=True)
        self.stream, self.seen = subscribe(port, path), {}

    def run(self):
        rest = b""
        while data := self.stream.recv(1 << 16):
            now = time.time_ns()
            rest += data
            lines = rest.split(b"\n")
            rest = lines.pop()
            for line in lines:
                # An update can repeat the whole text: the first time counts.
                for at in AT.findall(line):
                    self.seen.setdefault(at, now)


def drain(port, paths):
    """Reads the streams of watchers that do not look, in a process of their own."""
    if os.fork():
        return
    select = selectors.DefaultSelector()
    for path in paths:
        select.register(subscribe(port, path), selectors.EVENT_READ)
    while True:
        for key, _ in select.select():
            if not key.fileobj.recv(1 << 16):
                os._exit(0)


def reconnect(port, path, seen):
    """Connects again and again, and reads three pieces each time."""
    last = None
    for _ in range(RECONNECTS):
        try:
            stream, rest, count = subscribe(port, path, last), b"", 0
        except ConnectionRefusedError:
            # The figures are there, and the server has been stopped.
            return
        stream.settimeout(5)
        try:
            while count < 3 and (data := stream.recv(1 << 14)):
                rest += data
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    if line.startswith(b"id: ") or line.startswith(b"id:"):
                        last = line.split(b":", 1)[1].strip().decode()
                    found = [at for at in AT.findall(line) if at not in seen]
                    seen.update(found)
                    count += bool(found)
        except socket.timeout:
            pass
        stream.close()


def wait_for(port, path):
    for _ in range(600):
        try:
            # A connection without a request would stop OpenCode's server from reading any other.
            return call(port, "GET", path, limit=5)
        except OSError:
            time.sleep(0.1)
    sys.exit("the server does not listen")


def measure(port, pid, paths, start, all_in_one):
    """`paths` are those of the streams; with `all_in_one` each has all pieces."""
    looking = [Watcher(port, paths[n % len(paths)]) for n in range(LOOKING)]
    for watcher in looking:
        watcher.start()
    drain(port, [paths[n % len(paths)] for n in range(WATCHERS - LOOKING)])
    time.sleep(2)
    seen, most = set(), (0, 0)
    start()
    again = threading.Thread(target=reconnect, args=(port, paths[0], seen), daemon=True)
    again.start()
    for _ in range(int(LINES * 0.1) + 12):
        most = max(most, pss(pid))
        time.sleep(1)
    again.join(60)
    times = sorted(now - int(at) for watcher in looking for at, now in watcher.seen.items())
    ms = lambda percent: times[min(len(times) * percent // 100, len(times) - 1)] / 1e6
    print(f"from the line to the watcher: p50 {ms(50):.1f} ms, p99 {ms(99):.1f} ms ({len(times)} pieces)")
    expected = LINES * LIVE if all_in_one else LINES
    lost = [expected - len(watcher.seen) for watcher in looking]
    print(f"{LOOKING} watchers: {expected} pieces each, {sum(lost)} lost")
    stream = set(looking[0].seen)
    ended = max(seen, default=b"")
    print(f"{RECONNECTS} connections: {len(seen)} pieces, {len([at for at in stream if at <= ended and at not in seen])} lost")
    print(f"PSS with {WATCHERS} watchers, at most: {most[0]:.0f} MiB, with its agents {most[1]:.0f} MiB")


# A stand-in for Claude Code.
CLAUDE = """#!/usr/bin/env python3
import json, sys, time
if '--version' in sys.argv:
    print('2.1.197 (Claude Code)'); sys.exit()
live = 'live' in ' '.join(sys.argv)
def line(value):
    print(json.dumps({**value, 'session_id': 's'}), flush=True)
line({'type': 'system', 'subtype': 'init', 'model': 'opus'})
time.sleep(8 * live)
for n in range(LINES):
    use = {'type': 'tool_use', 'id': f't{n}', 'name': 'Bash', 'input': {'at': f'T{time.time_ns()}'}}
    line({'type': 'assistant', 'message': {'id': f'm{n}', 'role': 'assistant', 'content': [use]}})
    time.sleep(0.1 * live)
line({'type': 'result', 'subtype': 'success', 'is_error': False, 'num_turns': 1, 'result': 'x'})
"""


def teamster(program, home):
    agent = os.path.join(home, "claude")
    with open(agent, "w") as file:
        file.write(CLAUDE.replace("LINES", str(LINES)))
    os.chmod(agent, 0o755)
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home, "XDG_STATE_HOME": home, "TEAMSTER_STORE": "off",
           "TEAMSTER_CLAUDE_BIN": agent}
    server = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0"], env=env, cwd=home, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        port = int(server.stdout.readline().rsplit(":", 1)[1])
        with open(os.path.join(home, "teamster/server/token")) as file:
            TOKEN["Authorization"] = f"Bearer {file.read().strip()}"
        run = lambda prompt: call(port, "POST", "/v1/runs", {"provider": "claude", "prompt": prompt, "askTimeoutMs": 0})
        first = run("go")["runId"]
        while call(port, "GET", f"/v1/runs/{first}")["state"] != "ended":
            time.sleep(0.1)
        runs = os.path.join(home, "teamster/runs")
        for n in range(SESSIONS - 1):
            one = first[:-4] + f"{n:04x}"
            if one == first:
                continue
            os.mkdir(os.path.join(runs, one), 0o700)
            for name in ["run.json", "events.ndjson"]:
                with open(os.path.join(runs, first, name)) as file:
                    text = file.read().replace(first, one)
                with open(os.path.join(runs, one, name), "w") as file:
                    file.write(text)
        began = time.time()
        count = len(call(port, "GET", "/v1/runs?limit=1000")["runs"])
        print(f"{count} runs, listed in {time.time() - began:.2f} s; PSS: {pss(server.pid)[0]:.0f} MiB")
        live = [run("live")["runId"] for _ in range(LIVE)]
        measure(port, server.pid, [f"/v1/runs/{one}/events" for one in live], lambda: None, False)
    finally:
        server.kill()


def opencode(program, home):
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{model.server_address[1]}/v1"
    models = {"m1": {"name": "m1", "tool_call": True, "limit": {"context": 200000, "output": 32000}}}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "O", "models": models,
                "options": {"baseURL": url, "apiKey": "sk-test-000"}}
    config = {"share": "disabled", "autoupdate": False, "enabled_providers": ["mocko"], "provider": {"mocko": provider}}
    env = {"PATH": "/usr/bin:/bin", "HOME": home, "OPENCODE_CONFIG_CONTENT": json.dumps(config),
           "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}
    port, work = 4097, os.path.join(home, "work")
    os.mkdir(work)
    server = subprocess.Popen([program, "serve", "--hostname", "127.0.0.1", "--port", str(port)], env=env, cwd=work,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, "/global/health")
        ask = {"model": {"providerID": "mocko", "modelID": "m1"}}
        new = lambda: call(port, "POST", "/session", {"title": "t"})["id"]
        call(port, "POST", f"/session/{new()}/message", {**ask, "parts": [{"type": "text", "text": "go"}]})
        print(f"PSS after its first session: {pss(server.pid)[0]:.0f} MiB")
        began = time.time()
        for n in range(SESSIONS):
            call(port, "POST", f"/session/{new()}/message", {**ask, "parts": [{"type": "text", "text": "go"}]})
        print(f"{SESSIONS} sessions with a turn in {time.time() - began:.0f} s; PSS: {pss(server.pid)[0]:.0f} MiB")
        sessions = [new() for _ in range(LIVE)]
        def start():
            for one in sessions:
                parts = [{"type": "text", "text": "go live"}]
                call(port, "POST", f"/session/{one}/prompt_async", {**ask, "parts": parts})
        measure(port, server.pid, ["/event"], start, True)
    finally:
        server.kill()


def sandbox_agent(program, home):
    agents = os.path.join(home, "bin")
    os.mkdir(agents)
    path = os.path.join(agents, "opencode")
    with open(path, "w") as file:
        file.write(AGENT.replace("LINES", str(LINES)))
    os.chmod(path, 0o755)
    port = 2469
    env = {"PATH": f"{agents}:/usr/bin:/bin", "HOME": home}
    server = subprocess.Popen([program, "server", "--no-token", "--no-telemetry", "--port", str(port)], env=env,
                              cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, "/v1/health")
        print(f"PSS after its start: {pss(server.pid)[0]:.0f} MiB (it keeps no sessions on the disk)")
        paths = []
        for n in range(LIVE):
            path = f"/v1/acp/s{n}"
            rpc = lambda method, params: {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            hello = {"protocolVersion": 1, "clientCapabilities": {}}
            call(port, "POST", f"{path}?agent=opencode", rpc("initialize", hello))
            call(port, "POST", path, rpc("session/new", {"cwd": home, "mcpServers": []}))
            paths.append(path)
        def start():
            for path in paths:
                prompt = {"jsonrpc": "2.0", "id": 2, "method": "session/prompt",
                          "params": {"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]}}
                threading.Thread(target=call, args=(port, "POST", path, prompt), daemon=True).start()
        measure(port, server.pid, paths, start, False)
    finally:
        server.kill()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        {"teamster": teamster, "opencode": opencode, "sandbox-agent": sandbox_agent}[sys.argv[1]](sys.argv[2], folder)
