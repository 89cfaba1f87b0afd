"""Code shared by both clients, without I/O: requests, server-sent events, and retries."""

from __future__ import annotations

import json
import math
import re
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from .errors import ConnectionLost, Problem, Silence, TeamsterError, UnexpectedResponse

#: Addresses at which a server has responded: it is only away for a while if it cannot be reached.
REACHED: set[str] = set()
#: Time in which a server that has never responded may break connections, in seconds: it may be another one.
STRANGER = 5
#: Time that one page of a log waits for entries, in seconds.
PAGE_SECONDS = 20
#: The media type of JSON.
JSON = "application/json"
#: The media type of files.
BYTES = "application/octet-stream"
#: The media type of a stream.
STREAM = "text/event-stream"
#: Errors that no attempt can resolve.
FINAL = (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, UnicodeError)


@dataclass
class Options:
    """Address of the server, and time limits in seconds."""

    url: str
    token: str | None
    reconnect: float
    silence: float
    timeout: float

    def __post_init__(self) -> None:
        if re.match(r"\w+://[^/?#]*@", self.url):
            raise TeamsterError("the address has a password: give the token as `token`")
        # That of a file ends with a line.
        self.token = (self.token or "").strip() or None
        if self.token is not None:
            header("the token", self.token)
        for name in ("reconnect", "silence", "timeout"):
            seconds(name, getattr(self, name))

    def client(self, more: dict[str, Any]) -> dict[str, Any]:
        """The arguments of an ``httpx`` client: these, and ``more``."""
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        # Each follower has a connection of its own.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        # No proxy of the environment reaches this machine; one of the caller may.
        hosts = () if "proxy" in more else ("127.0.0.1", "localhost", "[::1]")
        mounts = {f"all://{host}": None for host in hosts}
        return {"base_url": f"{self.url.rstrip('/')}/v1", "headers": headers, "limits": limits, "mounts": mounts} | more

    @contextmanager
    def environment(self) -> Generator[None]:
        """Turns the errors of making an ``httpx`` client, such as those of proxies in the environment, into one of this client."""
        try:
            port = httpx.URL(self.url).port
            if port is not None and port > 65535:
                raise httpx.InvalidURL(f"there is no port {port}")
            yield
        except httpx.InvalidURL as error:
            raise ConnectionLost(f"cannot reach {self.url}: {error}") from error
        except (ImportError, ValueError, OSError) as error:
            raise TeamsterError(f"cannot make an HTTP client: {error}") from error

    def limits(self, timeout: float | None) -> dict[str, float | None]:
        """Time limits of a request, as the extension ``timeout`` of ``httpx`` has them."""
        if timeout is not None:
            seconds("timeout", timeout)
        limit = finite(self.timeout if timeout is None else timeout)
        return {"connect": 10 if limit is None else min(10, limit), "read": limit, "write": limit, "pool": None}

    def check(self, response: httpx.Response, media: str) -> None:
        """Checks that the response is one of the server."""
        if response.is_redirect or not response.is_success:
            place = response.headers.get("location", "another address")
            raise UnexpectedResponse(f"{self.url} redirects to {place}: give the client the address of the server itself")
        found = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code != 204 and found != media:
            raise UnexpectedResponse(f"{self.url} is not teamster serve: its response is {found or 'of no type'}, not {media}")
        REACHED.add(self.url)

    @contextmanager
    def errors(self) -> Generator[None]:
        """Turns the errors of the transport into one of this client."""
        try:
            yield
        except httpx.DecodingError as error:
            raise UnexpectedResponse(f"{self.url} is not teamster serve: its response cannot be decompressed") from error
        except httpx.ReadTimeout as error:
            raise Silence(f"cannot reach {self.url}: no response in time") from error
        except (httpx.RequestError, httpx.InvalidURL, UnicodeError) as error:
            raise ConnectionLost(f"cannot reach {self.url}: {error or type(error).__name__}") from error

    def parse(self, content: bytes | str, has: str) -> Any:
        """Parses an object that has this field."""
        try:
            found = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise UnexpectedResponse(f"{self.url} is not teamster serve: its response is no JSON") from error
        if not isinstance(found, dict) or has not in found:
            raise UnexpectedResponse(f"{self.url} is not teamster serve: its response has no `{has}`")
        return found

    def number(self, found: Any, has: str) -> int:
        """The number of what has this field too: of an entry, or of the newest one."""
        seq = found.get("seq") if isinstance(found, dict) and has in found else None
        if type(seq) is not int:
            raise UnexpectedResponse(f"{self.url} is not teamster serve: an entry has no number")
        return seq

    def page(self, content: bytes | None) -> Any:
        """A page of a log. Without content the log has ended."""
        found = {"entries": [], "ended": True} if content is None else self.parse(content, "ended")
        if not isinstance(found.get("entries"), list):
            raise UnexpectedResponse(f"{self.url} is not teamster serve: its response has no `entries`")
        return found


def seconds(name: str, limit: object) -> None:
    """Checks that this limit of time is a number of seconds: those of ``httpx`` have four limits."""
    if not isinstance(limit, (int, float)) or not limit >= 0:
        raise TeamsterError(f"`{name}` is a number of seconds, not {limit!r}")


def finite(limit: float) -> float | None:
    """This limit of time; None if it is infinite."""
    return None if limit == math.inf else limit


def path_of(*parts: str) -> str:
    """A path of these parts, each as one segment."""
    for part in parts:
        # No escape keeps a URL from resolving dots.
        if part in ("", ".", ".."):
            raise TeamsterError(f"{part!r} is not an id")
    try:
        return "".join(f"/{quote(part, safe='')}" for part in parts)
    except UnicodeError as error:
        raise TeamsterError(f"{parts!r} has what is not an id") from error


def request_path(request_id: str) -> str:
    """The path of a request."""
    run, slash, number = request_id.rpartition("/")
    if not slash:
        raise TeamsterError(f"{request_id!r} is not an id of a request, which is RUN/NUMBER")
    return path_of("requests", run, number)


def header(name: str, value: str) -> str:
    """Returns this value of a header. The error does not show it: it may be a secret."""
    if not re.fullmatch(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?", value):
        raise TeamsterError(f"{name} is empty or has characters that a header cannot have: use printable ASCII")
    return value


def start_headers(idempotency_key: str | None) -> dict[str, str]:
    """Headers with which a repeated start has no effect."""
    return {"Idempotency-Key": str(uuid.uuid4()) if idempotency_key is None else header("the idempotency key", idempotency_key)}


def encoded(content: Any, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """Arguments of a request with this content as JSON."""
    return {"content": json.dumps(content), "headers": {"Content-Type": JSON} | (headers or {})}


def query(**values: Any) -> dict[str, Any]:
    """Parameters without those that are None."""
    return {name: value for name, value in values.items() if value is not None}


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
        """Delay before the next attempt after this error, at least the one that the server asked for; None is a stream without its end. Raises an error that no attempt can resolve."""
        is_lost = isinstance(error, ConnectionLost)
        if error is not None and not is_lost and not (isinstance(error, Problem) and error.is_transient):
            raise error
        limit = self.options.reconnect
        cause = error and error.__cause__
        if isinstance(cause, FINAL):
            raise error or cause
        if is_lost and self.options.url not in REACHED:
            if not is_break(cause):
                raise error or ConnectionLost()
            limit = min(limit, STRANGER)
        now = time.monotonic()
        self.since = now if self.since is None else self.since
        if now - self.since > limit:
            raise ConnectionLost(f"no connection to {self.options.url} for {limit:g} s: {error or 'the stream was cut'}") from error
        asked = error.retry_after or 0 if isinstance(error, Problem) else 0
        # That late, no attempt is made.
        if error is not None and now - self.since + asked > limit:
            raise error
        delay, self.delay = self.delay, min(self.delay * 2, 3)
        return max(delay, asked)


def is_break(error: BaseException | None) -> bool:
    """True if this is the error of a connection that was made and broke."""
    if isinstance(error, httpx.RemoteProtocolError):
        # Else the response is not HTTP.
        return "disconnected" in str(error) or "closed connection" in str(error)
    return isinstance(error, (httpx.ReadError, httpx.WriteError, httpx.CloseError))


@dataclass
class SseParser:
    """Parses bytes in pieces and returns complete events, as pairs of name and data. A line ends with LF, CRLF or CR."""

    #: Pieces of a line that is not complete yet: they are joined once, so that the work is linear in its size.
    pieces: list[bytes] = field(default_factory=list)
    #: True after a CR at the end of a piece: an LF that follows belongs to it.
    after_cr: bool = False
    is_first: bool = True
    event: str = ""
    data: list[str] = field(default_factory=list)

    def push(self, piece: bytes) -> list[tuple[str, str]]:
        is_rest = self.after_cr and piece.startswith(b"\n")
        if piece:
            self.after_cr = piece.endswith(b"\r")
        piece = piece[is_rest:].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *others = piece.split(b"\n")
        self.pieces.append(first)
        if not others:
            return []
        lines = [b"".join(self.pieces), *others[:-1]]
        self.pieces = [others[-1]]
        if self.is_first:
            lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
            self.is_first = False
        events = []
        for line in lines:
            text = line.decode("utf-8", "replace")
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
