"""Code shared by both clients, without I/O: requests, server-sent events, and retries."""

from __future__ import annotations

import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from .errors import ConnectionLost, Problem, Silence, UnexpectedResponse

#: Addresses at which a server has responded: it is only away for a while if it cannot be reached.
REACHED: set[str] = set()
#: Time that one page of a log waits for entries, in seconds.
PAGE_SECONDS = 20


@dataclass
class Options:
    """Address of the server, and time limits."""

    url: str
    token: str | None
    reconnect: float
    silence: float

    def received(self, response: httpx.Response, media: str = "application/json") -> httpx.Response:
        """Checks that the response is one of the server."""
        if not response.is_success:
            return response
        found = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code != 204 and found != media:
            raise UnexpectedResponse(f"{self.url} is not teamster serve: its response is {found or 'of no type'}, not {media}")
        REACHED.add(self.url)
        return response

    @contextmanager
    def errors(self) -> Generator[None]:
        """Turns the errors of the transport into one of this client."""
        try:
            yield
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise ConnectionLost(f"cannot reach {self.url}: {error or type(error).__name__}") from error

    def is_final(self, error: Exception) -> bool:
        """True if at the address is no server, so that no attempt can reach one."""
        cause = error.__cause__
        if isinstance(cause, (httpx.InvalidURL, httpx.UnsupportedProtocol)):
            return True
        return isinstance(cause, httpx.ConnectError) and self.url not in REACHED

    def client(self) -> dict[str, Any]:
        """The arguments of an ``httpx`` client."""
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        timeout = httpx.Timeout(60, connect=10, read=max(60, self.silence))
        # Each follower has a connection of its own.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        return {"base_url": f"{self.url.rstrip('/')}/v1", "headers": headers, "timeout": timeout, "limits": limits}

    def stream(self) -> dict[str, Any]:
        """Arguments of a request for a stream."""
        timeout = httpx.Timeout(self.silence, connect=10)
        return {"headers": {"Accept": "text/event-stream"}, "timeout": timeout}

    def page(self) -> dict[str, Any]:
        """Arguments of a request for a page of a log."""
        return {"timeout": httpx.Timeout(PAGE_SECONDS + self.silence, connect=10)}


def path_of(*parts: str) -> str:
    """A path of these parts, each as one segment."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def request_path(request_id: str) -> str:
    """The path of a request."""
    run, _, number = request_id.rpartition("/")
    return path_of("requests", run, number)


def start_headers(idempotency_key: str | None) -> dict[str, str]:
    """Headers with which a repeated start has no effect."""
    return {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}


def query(**values: Any) -> dict[str, Any]:
    """Parameters without those that are None."""
    return {name: value for name, value in values.items() if value is not None}


def body(response: httpx.Response) -> Any:
    """JSON of a response; None without a body."""
    if not response.is_success:
        raise Problem.of(response)
    try:
        return response.json() if response.content else None
    except ValueError as error:
        raise UnexpectedResponse(f"the response of {response.url.host} is no JSON: is it teamster serve?") from error


@dataclass
class Patience:
    """Delays between attempts to reconnect, until the server was unreachable for too long."""

    options: Options
    #: When the connection broke; None while there is one.
    since: float | None = None
    delay: float = 0.1

    def reached(self) -> None:
        """Resets the delays: data has arrived."""
        self.since = None
        self.delay = 0.1

    def after(self, error: Exception | None) -> float:
        """Delay before the next attempt after this error. Raises an error that no attempt can resolve."""
        is_transient = error is None or isinstance(error, (ConnectionLost, Silence))
        if error is not None and self.options.is_final(error):
            raise error
        if not is_transient and not (isinstance(error, Problem) and error.is_transient):
            assert error is not None
            raise error
        now = time.monotonic()
        self.since = now if self.since is None else self.since
        if now - self.since > self.options.reconnect:
            raise ConnectionLost(f"no connection to the server for {self.options.reconnect:.0f} s") from error
        delay, self.delay = self.delay, min(self.delay * 2, 3)
        return delay


@dataclass
class SseParser:
    """Parses bytes in pieces and returns complete events, as pairs of name and data."""

    #: Pieces of a line that is not complete yet: they are joined once, so that the work is linear in its size.
    pieces: list[bytes] = field(default_factory=list)
    event: str = ""
    data: list[str] = field(default_factory=list)

    def push(self, piece: bytes) -> list[tuple[str, str]]:
        first, *others = piece.split(b"\n")
        self.pieces.append(first)
        if not others:
            return []
        lines = [b"".join(self.pieces), *others[:-1]]
        self.pieces = [others[-1]]
        events = []
        for line in lines:
            text = line.removesuffix(b"\r").decode("utf-8", "replace")
            if not text:
                if self.data:
                    events.append((self.event or "message", "\n".join(self.data)))
                self.event, self.data = "", []
                continue
            name, _, value = text.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                self.data.append(value)
            elif name == "event":
                self.event = value
        return events
