"""Code shared by both clients, without I/O: requests, server-sent events, and retries."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from .errors import ConnectionLost, Problem, Silence

#: Time that one page of a log waits for entries, in seconds.
PAGE_SECONDS = 20


@dataclass
class Options:
    """Address of the server, and time limits."""

    url: str
    token: str | None
    reconnect: float
    silence: float

    def client(self) -> dict[str, Any]:
        """The arguments of an ``httpx`` client."""
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        timeout = httpx.Timeout(60, connect=10, read=max(60, self.silence))
        return {"base_url": f"{self.url.rstrip('/')}/v1", "headers": headers, "timeout": timeout}

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
    return response.json() if response.content else None


@dataclass
class Patience:
    """Delays between attempts to reconnect, until the server was unreachable for too long."""

    limit: float
    since: float = field(default_factory=time.monotonic)
    delay: float = 0.1

    def reached(self) -> None:
        """Resets the delays: data has arrived."""
        self.since = time.monotonic()
        self.delay = 0.1

    def after(self, error: Exception | None) -> float:
        """Delay before the next attempt after this error. Raises an error that no attempt can resolve."""
        is_transient = error is None or isinstance(error, (httpx.TransportError, Silence))
        if not is_transient and not (isinstance(error, Problem) and error.is_transient):
            assert error is not None
            raise error
        if time.monotonic() - self.since > self.limit:
            raise ConnectionLost(f"no connection to the server for {self.limit:.0f} s") from error
        delay, self.delay = self.delay, min(self.delay * 2, 3)
        return delay


@dataclass
class SseParser:
    """Parses bytes in pieces and returns complete events, as pairs of name and data."""

    rest: bytes = b""
    event: str = ""
    data: list[str] = field(default_factory=list)

    def push(self, piece: bytes) -> list[tuple[str, str]]:
        *lines, self.rest = (self.rest + piece).split(b"\n")
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
