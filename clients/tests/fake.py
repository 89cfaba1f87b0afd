"""Servers that are not teamster, or fail, for the tests of the client for Python."""

import json
import re
import socket
import threading
import time
from contextlib import contextmanager

LIMIT = 30
JSON = "application/json"
VIEW = json.dumps({"runId": "a", "seq": 0, "state": "running"})
END = b"event: end\ndata: {}\n\n"


def text(seq):
    return {"seq": seq, "type": "text", "text": str(seq)}


def done(seq):
    return {"seq": seq, "type": "done", "runId": "a", "result": {"status": "completed"}}


def until(what, check):
    end = time.monotonic() + LIMIT
    while not check():
        assert time.monotonic() < end, f"after {LIMIT} s there is no {what}"
        time.sleep(0.01)


class Fake:
    """A server that gives each request, with its number from 1, to a function. `open` is how many connections there are."""

    def __init__(self, respond):
        self.respond, self.requests, self.connections, self.open = respond, [], [], 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            self.open += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        received = b""
        try:
            while piece := connection.recv(65536):
                received += piece
                found = re.search(rb"content-length: (\d+)", received, re.I)
                head, end, body = received.partition(b"\r\n\r\n")
                # A record of TLS has no such line.
                if received[0] != 22 and not (end and len(body) >= int(found[1] if found else 0)):
                    continue
                self.requests.append(received.decode("latin1"))
                received = b""
                self.respond(connection, self.requests[-1], len(self.requests))
        except OSError:
            pass
        finally:
            connection.close()
            self.open -= 1

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def head(status, media, more=""):
    media = f"Content-Type: {media}\r\n" if media else ""
    return f"HTTP/1.1 {status} X\r\n{media}{more}Connection: close\r\n\r\n".encode()


def raw(content, close=True):
    def respond(connection, _request, _number):
        connection.sendall(content)
        if close:
            connection.shutdown(socket.SHUT_RDWR)

    return respond


def reply(status, media, body="", more=""):
    body = body if isinstance(body, bytes) else body.encode()
    return raw(head(status, media, f"Content-Length: {len(body)}\r\n{more}") + body)


def problem(status, code):
    return reply(status, "application/problem+json", json.dumps({"status": status, "code": code, "detail": code}))


def stream(*entries):
    return head(200, "text/event-stream") + b"".join(f"data: {json.dumps(entry)}\n\n".encode() for entry in entries)


def routes(events, other):
    """Responses to requests for streams, and to others."""
    return lambda connection, request, number: (events if "/events" in request.split("\r\n")[0] else other)(connection, request, number)


def steps(*responses):
    """One response after the other; the last one for all further requests."""
    return lambda connection, request, number: responses[min(number, len(responses)) - 1](connection, request, number)


silent = raw(b"", close=False)
closes = lambda connection, *_: connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def fake(respond):
    server = Fake(respond)
    try:
        yield server
    finally:
        server.end()
