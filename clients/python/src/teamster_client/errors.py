"""Errors."""

from __future__ import annotations

import json
import time
from email.utils import parsedate_to_datetime

#: The longest delay in seconds, 31 years: a timer cannot take any number.
LONGEST = 1e9
#: Statuses of a proxy while the server is not ready.
TRANSIENT = {408, 429, 500, 502, 503, 504}


class TeamsterError(Exception):
    """Every error of this client, but those of wrong arguments, such as TypeError."""


class Problem(TeamsterError):
    """An error of the API: a problem of RFC 9457."""

    def __init__(self, status: int, code: str | None, detail: str, retry_after: float | None = None) -> None:
        super().__init__(detail)
        #: The HTTP status.
        self.status = status
        #: The error code; None if a proxy replied.
        self.code = code
        #: The error, for people.
        self.detail = detail
        #: The delay before the next attempt that the server asked for (``Retry-After``), in seconds. Starts and streams
        #: wait for it.
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[type[Problem], tuple[int, str | None, str, float | None]]:
        # Else it could not be pickled, as for another process.
        return type(self), (self.status, self.code, self.detail, self.retry_after)

    @classmethod
    def of(cls, status: int, body: bytes, retry_after: str | None = None) -> Problem:
        """Returns the problem in the body of an error response; of any other body, one without a code."""
        try:
            found = json.loads(body)
            code, detail = found["code"], found["detail"]
        except (ValueError, KeyError, TypeError, RecursionError):
            code = detail = None
        delay = delay_of((retry_after or "").strip()) if status in (429, 503) else None
        if isinstance(code, str) and isinstance(detail, str):
            return cls(status, code, detail, delay)
        return cls(status, None, f"the server replied with status {status}", delay)

    @property
    def is_transient(self) -> bool:
        """True if the same request may succeed later: a proxy or the server is not ready."""
        return self.code in (None, "TOO_MANY_CONNECTIONS") and self.status in TRANSIENT


def delay_of(retry_after: str) -> float | None:
    """The delay of a ``Retry-After``: a number of seconds, or a date."""
    if retry_after.isascii() and retry_after.isdigit():
        return min(float(retry_after), LONGEST)
    try:
        at = parsedate_to_datetime(retry_after) if retry_after.endswith("GMT") else None
    except ValueError:
        at = None
    return None if at is None else max(0.0, at.timestamp() - time.time())


class ConnectionLost(TeamsterError):
    """No response: the server cannot be reached, breaks the connection, or takes longer than ``timeout`` or ``reconnect``."""


class UnexpectedResponse(TeamsterError):
    """The response is not one of ``teamster serve``: a redirect, another media type, no JSON, or fields are missing."""


class Silence(ConnectionLost):
    """No byte arrived for too long."""
